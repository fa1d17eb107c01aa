//! Readings of noisy tables of cells: densities, counts, shares, quantiles, regressions and classes, each with its
//! interval; all of it is post-processing and costs no privacy.
//!
//! ```
//! use bernstream_synopsis::Synopsis;
//! use bernstream_synopsis::tables::KernelFit;
//!
//! # fn main() -> Result<(), bernstream_synopsis::SynopsisError> {
//! # let synopsis = bernstream_synopsis::tables::example();
//! let tables = synopsis.tables()?;
//! // Every bandwidth from the smallest on, in natural units; and any range.
//! let arrival = tables.kernel(Some(&[30.0]))?.expected(&[15.0], KernelFit::Linear)?;
//! let late = tables.range(&[[15.0, 120.0]])?;
//! println!("{:.1} minutes, {:?} with 95 % probability", arrival.value, arrival.pointwise);
//! println!("{:.0} flights, {:.2} of all", late.count().value, late.share().value);
//! let median = tables.quantile(0.5)?;
//! # assert!(median.value > -30.0 && median.interval.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! The formulas are those of `clients/FORMAT.md`, "Tables of cells". Two errors are told apart: intervals cover the noise; what kernel
//! and spline smooth away is no part of them. Where an interval of a ratio is unknown, the noise may be all that there is.

mod density_ratio;
mod function;
mod kernel;
mod line;
mod naive;
mod quantile;
mod questions;
mod range;
mod ratio;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use self::function::TableFunction;
pub use self::kernel::{ClassEstimate, KernelFit, TableKernel};
pub use self::questions::{AnswerKind, Questions, RangeSides, TableAnswer, in_context};
pub use self::range::TableRange;
use self::ratio::RatioParts;
pub(crate) use self::ratio::fieller_interval;
use super::description::{AxisDescription, Basis, CellLabel, TargetDescription};
use super::error::SynopsisError;
use super::released::Synopsis;
use crate::cholesky::sequential_dot;
use crate::{CellBasis, TableBasis};

/// A value at a point and its 95 % intervals, at this point alone and at all points and bandwidths at once; `None` is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointEstimate {
    pub value: f64,
    pub pointwise: Option<ConfidenceInterval>,
    pub simultaneous: Option<ConfidenceInterval>,
}

/// A value and its 95 % interval; `None` is unknown. Where the number of records may be none, so may be the value: then it is that of
/// all records, or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<ConfidenceInterval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceInterval {
    pub lower: f64,
    pub upper: f64,
}

impl ConfidenceInterval {
    pub(crate) fn around(value: f64, half_width: f64) -> Self {
        ConfidenceInterval {
            lower: value - half_width,
            upper: value + half_width,
        }
    }

    pub(crate) fn clamped(self, least: f64, most: f64) -> Self {
        ConfidenceInterval {
            lower: self.lower.clamp(least, most),
            upper: self.upper.clamp(least, most),
        }
    }
}

/// The tables of a synopsis, ready to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    axes: Vec<AxisDescription>,
    basis: TableBasis,
    /// Basis that reads them with their smallest bandwidths.
    narrowest: CellBasis,
    label: Option<CellLabel>,
    values: Vec<f64>,
    /// Count of each node in all tables together.
    counts: Vec<f64>,
    /// The standard deviation of the noise on one value.
    deviation: f64,
    /// A weighted sum of values is off by at most so many lengths of the weights.
    within: IntervalFactors,
}

/// Factors of the intervals at one point, and at all points and bandwidths at once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IntervalFactors {
    pointwise: f64,
    simultaneous: f64,
}

impl Synopsis {
    /// The tables of cells.
    ///
    /// # Errors
    ///
    /// If the synopsis holds none.
    pub fn tables(&self) -> Result<Tables, SynopsisError> {
        let description = &self.description;
        let Basis::Tables(basis) = &description.basis else {
            return Err(SynopsisError::NoTables);
        };
        let TargetDescription::Cells(target) = &description.target else {
            return Err(SynopsisError::NoTables);
        };
        let narrowest = basis
            .basis_for_bandwidths(&basis.bandwidths)
            .ok_or(SynopsisError::NoTables)?;
        let mut counts = vec![0.0; basis.count()];
        for table in self.values.chunks(counts.len().max(1)) {
            for (count, value) in counts.iter_mut().zip(table) {
                *count += value;
            }
        }
        let deviation =
            description.noise.scale * description.noise.law.variance(self.values.len()).sqrt();
        let simultaneous = description.band.half_width;
        Ok(Tables {
            axes: description.domain.clone(),
            basis: basis.clone(),
            narrowest,
            label: target.label.clone(),
            values: self.values.clone(),
            counts,
            deviation,
            within: IntervalFactors {
                pointwise: description.band.pointwise.unwrap_or(simultaneous),
                simultaneous,
            },
        })
    }
}

impl Tables {
    pub fn label(&self) -> Option<&CellLabel> {
        self.label.as_ref()
    }

    /// Number of tables: 1 without a label.
    pub fn count(&self) -> usize {
        self.basis.tables as usize
    }

    /// The smallest bandwidths, in natural units.
    pub fn bandwidths(&self) -> Vec<f64> {
        self.basis
            .bandwidths
            .iter()
            .zip(&self.axes)
            .map(|(b, axis)| b * (axis.max - axis.min))
            .collect()
    }

    /// The noisy number of all records.
    fn all(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The sums of each table with these weights on its nodes.
    fn table_sums(&self, weights: &[f64]) -> Vec<f64> {
        self.values
            .chunks(weights.len().max(1))
            .map(|table| sequential_dot(table, weights))
            .collect()
    }

    /// The part of all records in each table.
    fn table_parts(&self) -> Vec<f64> {
        let sums: Vec<f64> = self
            .table_sums(&vec![1.0; self.counts.len()])
            .into_iter()
            .map(|sum| sum.max(0.0))
            .collect();
        let all: f64 = sums.iter().sum();
        let alike = 1.0 / sums.len() as f64;
        sums.iter()
            .map(|sum| if all > 0.0 { sum / all } else { alike })
            .collect()
    }

    /// The probability of each table, from what is counted of it somewhere.
    fn probabilities(&self, parts: &RatioParts) -> Vec<f64> {
        parts.probabilities(self.deviation, &self.table_parts())
    }

    /// Meaning of a probability of the second table, in natural units: the expected value of a label that is a number.
    fn label_of_probability(&self, probability: f64) -> f64 {
        match &self.label {
            Some(CellLabel::Number { min, max, .. }) => min + (max - min) * probability,
            _ => probability,
        }
    }

    fn natural_interval(&self, interval: Option<ConfidenceInterval>) -> Option<ConfidenceInterval> {
        let interval = interval?;
        Some(ConfidenceInterval {
            lower: self.label_of_probability(interval.lower),
            upper: self.label_of_probability(interval.upper),
        })
    }

    /// Checks that the label is a number.
    fn check_number(&self) -> Result<(), SynopsisError> {
        match self.label {
            Some(CellLabel::Number { .. }) => Ok(()),
            _ => Err(SynopsisError::NoNumber),
        }
    }

    /// Checks that the label has classes.
    fn check_classes(&self) -> Result<(), SynopsisError> {
        match self.label {
            Some(CellLabel::Above { .. } | CellLabel::Classes { .. }) => Ok(()),
            _ => Err(SynopsisError::NoClasses),
        }
    }

    /// Checks that the label can be read so.
    fn check_fit(&self, fit: KernelFit) -> Result<(), SynopsisError> {
        match fit {
            KernelFit::Naive => self.check_classes(),
            KernelFit::Constant | KernelFit::Linear => Ok(()),
        }
    }

    /// Checks that there is a label, and a table of this number.
    fn check_table(&self, table: usize) -> Result<usize, SynopsisError> {
        if self.label.is_none() || table >= self.count() {
            return Err(SynopsisError::NoSuchTable {
                table,
                tables: self.count(),
            });
        }
        Ok(table)
    }
}

/// A synopsis of 1,000 flights that left up to 2 hours late, for the example above.
#[doc(hidden)]
#[expect(
    clippy::expect_used,
    reason = "of a file of this crate; a test calls it"
)]
pub fn example() -> Synopsis {
    use super::description::{Cells, Description};
    use crate::histogram::Spline;
    let mut description: Description =
        serde_json::from_str(crate::EXAMPLE).expect("the example is a description");
    description.degree = 1;
    description.order = 1;
    let bandwidths = vec![0.1];
    description.basis = Basis::Tables(TableBasis {
        spline: Spline::Linear,
        steps: vec![10],
        bandwidths,
        tables: 2,
    });
    let label = CellLabel::Number {
        column: "arr_delay".to_owned(),
        min: -60.0,
        max: 150.0,
    };
    description.target = TargetDescription::Cells(Cells { label: Some(label) });
    let values = (0..11)
        .map(|j| 60.0 - 2.0 * f64::from(j))
        .chain((0..11).map(|j| 20.0 + 2.0 * f64::from(j)));
    Synopsis::new(description, values.collect()).expect("it fits")
}
