//! The sensitivity that the noise was made for, so that anyone can compute its scale again.

use serde::{Deserialize, Serialize};

use super::target::{Method, TargetDescription};
use crate::Basis;
use crate::Norm;

/// Sensitivity: how much a privacy unit can change the exact values of one window, all keys together; of a sum over several panes
/// those of one pane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensitivityDescription {
    pub norm: Norm,
    /// Norm of the change in units of [`NoiseDescription::grid`](super::NoiseDescription::grid).
    pub units: u64,
    /// Number of records of the unit; each changes the values as much as one alone.
    pub records: u32,
    /// Number of values that the unit can change.
    pub values: u64,
    pub derived: Derivation,
    /// Noise that is drawn for one pane, from which that of a sum over several is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<FreshNoise>,
}

/// Derivation of a sensitivity: by a page of `docs/proofs`, or not by a proof for these noisy values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Derivation {
    Densities,
    Cells,
    Regression,
    Bayes,
    Machines,
    Expressions,
    Moments,
    Counts,
    Quantiles,
    /// Bound of a paper: larger, to compare with.
    Paper,
    /// Found on a public prior: random differential privacy.
    Sampled,
}

/// Noise that is drawn once for each pane, or for each node of a tree over them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FreshNoise {
    /// Scale in the units of the values.
    pub scale: f64,
    /// Number of draws that a pane is in, all of it in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// Squared 2-norm of what a change of one pane comes back as, where each draw is in several panes, a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm_squared: Option<f64>,
}

impl Derivation {
    /// The page that proves the least bound for a function in this form.
    pub fn for_target(target: &TargetDescription, basis: &Basis) -> Self {
        match target {
            TargetDescription::Density(_) if matches!(basis, Basis::Cells(_)) => Derivation::Cells,
            TargetDescription::Density(_) => Derivation::Densities,
            TargetDescription::Sum(_) => Derivation::Expressions,
            TargetDescription::Moments(_) => Derivation::Moments,
            TargetDescription::Cells(_) => Derivation::Cells,
            TargetDescription::Counts(counts) if counts.quantiles.is_some() => {
                Derivation::Quantiles
            }
            TargetDescription::Counts(_) => Derivation::Counts,
            TargetDescription::Regression(regression) => Derivation::of_method(&regression.method),
            TargetDescription::Classifier(classifier)
            | TargetDescription::Probability(classifier) => {
                Derivation::of_method(&classifier.method)
            }
        }
    }

    fn of_method(method: &Method) -> Self {
        match method {
            Method::PriestleyChao { .. } => Derivation::Regression,
            Method::KernelBayes { .. } | Method::GaussianBayes { .. } => Derivation::Bayes,
            Method::KernelMachine { .. } | Method::Logistic { .. } => Derivation::Machines,
        }
    }
}
