//! The function that was released.

use serde::{Deserialize, Serialize};

use crate::key_quantiles::RankGrid;
use crate::machine::{CubeKernel, Loss};

/// The function of the records that was released, in natural units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetDescription {
    Density(Density),
    Regression(Regression),
    /// A score whose sign is the class.
    Classifier(Classifier),
    /// The probability of the class above the threshold.
    Probability(Classifier),
    Sum(ExpressionSum),
    /// Cosine moments of the records, to be asked what smooth functions add up to: [`crate::query`].
    Moments(Moments),
    /// Noisy tables of cells, from which many functions can be read: [`crate::tables`].
    Cells(Cells),
    /// Counts and sums for each key: [`crate::key_table`].
    Counts(KeyedCounts),
}

impl TargetDescription {
    /// Name in the description.
    pub fn name(&self) -> &'static str {
        match self {
            TargetDescription::Density(_) => "density",
            TargetDescription::Regression(_) => "regression",
            TargetDescription::Classifier(_) => "classifier",
            TargetDescription::Probability(_) => "probability",
            TargetDescription::Sum(_) => "sum",
            TargetDescription::Moments(_) => "moments",
            TargetDescription::Cells(_) => "cells",
            TargetDescription::Counts(_) => "counts",
        }
    }
}

/// A kernel density, Gaussian kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Density {
    pub kernel: Smoothing,
    /// The public number of records that turns a value into a density, under `replace_one`. Without it divide by the
    /// released mass: the number of records is private.
    pub divide_by: Option<u64>,
}

/// The shape of a Gaussian kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Smoothing {
    /// Standard deviation on each axis.
    Bandwidths(Vec<f64>),
    /// Covariance matrix, row by row.
    Covariance(Vec<Vec<f64>>),
}

/// Expected label at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// The column of the label, and the bounds that it was clipped to.
    pub label: String,
    pub min: f64,
    pub max: f64,
    pub method: Method,
}

/// Function that tells a label above the threshold from the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classifier {
    pub label: String,
    pub above: f64,
    pub method: Method,
}

/// Method that fits a regression or a classifier. Every number of records is a configured bound, none a count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Gap-clipped Priestley-Chao, Gaussian kernel.
    PriestleyChao {
        bandwidth: f64,
        gap: f64,
        max_records: u32,
    },
    /// Naive Bayes, each likelihood a kernel density.
    KernelBayes { bandwidths: Vec<f64> },
    /// Naive Bayes, each likelihood a Gaussian whose variance is never less than the square of the deviation.
    GaussianBayes { min_deviations: Vec<f64> },
    /// Regularised empirical risk. The kernel's bandwidth is a part of the width of every axis.
    KernelMachine {
        loss: Loss,
        kernel: CubeKernel,
        c: f64,
        max_records: u32,
        landmarks: Option<u32>,
    },
    /// Regularised logistic regression.
    Logistic { c: f64, max_records: u32 },
}

/// The sum of an expression over the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpressionSum {
    pub expression: String,
    /// Most that counts of a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<Clip>,
}

/// Records that the tables of cells count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<CellLabel>,
}

/// The label by which records are divided among tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellLabel {
    /// A number, clipped to its bounds: of a record the part of the way from `min` to `max` is in the second table.
    Number { column: String, min: f64, max: f64 },
    /// Threshold; labels above it are in the second table.
    Above { column: String, above: f64 },
    /// A table for each of these values; records with others are left out.
    Classes { column: String, values: Vec<f64> },
}

impl CellLabel {
    /// Number of tables that it makes.
    pub fn tables(&self) -> usize {
        match self {
            CellLabel::Number { .. } | CellLabel::Above { .. } => 2,
            CellLabel::Classes { values, .. } => values.len(),
        }
    }

    pub fn column(&self) -> &str {
        let (CellLabel::Number { column, .. }
        | CellLabel::Above { column, .. }
        | CellLabel::Classes { column, .. }) = self;
        column
    }
}

/// Rules by which records and users count for a key (`docs/proofs/counts.md`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyedCounts {
    /// Most keys of a unit in a window: a random choice that does not depend on what others do.
    pub max_keys: u32,
    /// Most records that count of a unit and key, with the mean of all its records; absent where records are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_records: Option<u32>,
    /// Bounds of the sum of one user and key; absent where records bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_user: Option<ValueBounds>,
    /// The column that is summed, and the bounds of one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<CountedValue>,
    /// Quantiles of the value; absent where other numbers are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<CountedQuantiles>,
    /// Parts of the price, 1 together.
    pub parts: Vec<PricePart>,
}

/// Quantiles of a value that are told of each key (`docs/proofs/quantiles.md`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedQuantiles {
    /// Places that a value counts at; of a user its mean.
    pub grid: RankGrid,
    /// Parts of the values that lie up to each quantile, such as 0.5.
    pub parts: Vec<f64>,
}

/// Part of a price that is for one statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricePart {
    pub of: String,
    pub part: f64,
}

/// The column whose values are summed for each key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedValue {
    pub column: String,
    pub min: f64,
    pub max: f64,
}

/// Ends of a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueBounds {
    pub min: f64,
    pub max: f64,
}

/// Number of frequencies of each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    pub frequencies: u32,
}

/// The most that a record adds, either sign: at any lattice point, and over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clip {
    pub sup: f64,
    pub sum: f64,
}
