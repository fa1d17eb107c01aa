//! The reading that is expected to be the most accurate.

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::target::{Smoothing, TargetDescription};
use crate::by::SynopsisReading;
use crate::{Basis, cholesky};

/// Above this share of the peak that all records in one place would have, the band is so wide that smoothed counts are expected to
/// be more accurate. Measured on eight laws of records in one to three dimensions; anything from a third to twice of it would do
/// about as well.
const WIDE: f64 = 0.005;

/// A reading that is expected to be more accurate than the published one. It has no band of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recommended {
    /// [`SynopsisReading::Nonnegative`].
    Nonnegative,
}

impl Recommended {
    /// Recommends a reading for a window of so many records, and noise that has a simultaneous band of so much; `None` where the
    /// published reading is the best.
    pub fn for_noise(
        target: &TargetDescription,
        basis: &Basis,
        half_width: f64,
        records: u64,
    ) -> Option<Self> {
        let Basis::Cells(basis) = basis else {
            return None;
        };
        let TargetDescription::Density(density) = target else {
            return None;
        };
        let axes = basis.steps.len();
        let determinant = match &density.kernel {
            Smoothing::Bandwidths(widths) => widths.iter().product::<f64>().powi(2),
            Smoothing::Covariance(rows) => determinant(rows)?,
        };
        let peak = records as f64 / ((2.0 * PI).powi(axes as i32) * determinant).sqrt();
        (half_width >= WIDE * peak).then_some(Recommended::Nonnegative)
    }
}

/// Determinant of a positive definite matrix.
fn determinant(rows: &[Vec<f64>]) -> Option<f64> {
    let mut lower = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        lower.push(row.get(..=index)?.to_vec());
    }
    let factor = cholesky::cholesky_factor(lower, f64::EPSILON);
    let pivots = factor.iter().filter_map(|row| row.last());
    Some(pivots.product::<f64>().powi(2))
}

impl From<Recommended> for SynopsisReading {
    fn from(recommended: Recommended) -> Self {
        match recommended {
            Recommended::Nonnegative => SynopsisReading::Nonnegative,
        }
    }
}

/// Writes the name by which it is asked for.
impl fmt::Display for Recommended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recommended::Nonnegative => f.write_str("nonnegative"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::Density;
    use super::*;
    use crate::CellBasis;
    use crate::histogram::Spline;

    #[test]
    fn smoothed_counts_are_recommended_where_the_band_is_wide_beside_the_records() {
        let diagonal = Smoothing::Bandwidths(vec![20.0, 3.0]);
        let slanted = Smoothing::Covariance(vec![vec![400.0, 30.0], vec![30.0, 11.25]]);
        let precision = vec![vec![90.0, 0.0], vec![0.0, 90.0]];
        let cells = Basis::Cells(CellBasis {
            precision,
            spline: Spline::Box,
            steps: vec![9, 9],
        });
        // A thousand records in one place, over 2 pi and the root of the determinant.
        let peak = 1000.0 / (2.0 * PI * 60.0);
        for kernel in [diagonal, slanted] {
            let target = TargetDescription::Density(Density {
                kernel,
                divide_by: None,
            });
            let of = |half_width: f64, records: u64| {
                Recommended::for_noise(&target, &cells, half_width * peak, records)
            };
            assert_eq!(of(0.0051, 1000), Some(Recommended::Nonnegative));
            assert_eq!(of(0.0051, 1100), None);
            assert_eq!(of(0.0049, 1000), None);
            assert_eq!(
                Recommended::for_noise(&target, &Basis::Affine, peak, 1000),
                None
            );
        }
    }
}
