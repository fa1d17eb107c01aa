//! Bounds of how much an exchanged record changes a minimiser and its values: machines and regressions claim them.

use super::solver::RiskProblem;
use bernstream_noise::Exact;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::times_contributions;
use bernstream_release::target::root_rounded_up;
use bernstream_synopsis::adjacency::Sensitivity;
use bernstream_synopsis::machine::loss::Loss;

/// Grid units of the sup sensitivity, before rounding is added.
const UNITS: f64 = (1_u64 << 32) as f64;

/// Bound of what exchanging one record of a window does to the minimiser `f_D` in the space of the kernel.
///
/// With `v = (C/m) (pull(y', f'(x')) K_x' - pull(y, f'(x)) K_x)`, `f'` the minimiser for `D'`: the gradient of `J_D` is 0 at
/// `f_D` and `-v` or `v` at `f'`, and `J_D - ||f||^2 / 2` is convex, so `h = f' - f_D` has `<v - h, h> >= 0`. That is a ball:
///
/// ```text
/// || h - v/2 || <= ||v|| / 2
/// ```
///
/// So `||h|| <= ||v|| <= r`, and a linear functional of `h` is at most the mean of its value at `v` and of `r` times
/// its norm. The proof is in `docs/proofs/machines.md`.
///
/// A full window that takes one more record gives one away, so both adjacencies are an exchange; one that is not full
/// changes by one pull only.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeBound {
    /// `r >= ||v||`.
    pub r: f64,
    /// Bound of the sum of the two coefficients in `v`.
    pub pulls: f64,
    /// Largest distance of the result from the minimiser.
    pub tolerance: f64,
}

impl ExchangeBound {
    /// The result's tolerance is this part of `r` on each side: a surcharge of 5 %.
    const WANTED: f64 = 0.025;

    /// The problem whose minimiser is released, with a tolerance that this bound allows; `error` is that of the space for
    /// `records` records.
    pub fn tolerable_problem(loss: Loss, c: f64, records: u32, error: f64) -> RiskProblem {
        let wanted = Self::WANTED * radius(loss, c, records);
        RiskProblem::new(loss, c, records, wanted, error)
    }

    pub fn new(problem: &RiskProblem) -> Self {
        let RiskProblem {
            loss, c, records, ..
        } = *problem;
        let share = c / f64::from(records);
        ExchangeBound {
            r: radius(loss, c, records),
            pulls: share * 2.0 * loss.steepest_pull(c) * (1.0 + 1e-9),
            tolerance: problem.tolerance,
        }
    }

    /// Largest change of a linear functional of the result: `norm` its norm, `at` the largest value it has on a record's
    /// `K_x`, in size. Also the 1-norm of several, with `norm` and `at` those of their signed sums, and their 2-norm, with those
    /// of the map that they make up.
    pub fn functional_change(&self, norm: f64, at: f64) -> f64 {
        let straight = (self.pulls * at).min(self.r * norm);
        (straight + self.r * norm) / 2.0 + 2.0 * self.tolerance * norm
    }
}

/// `r`.
fn radius(loss: Loss, c: f64, records: u32) -> f64 {
    c / f64::from(records) * loss.exchange_bound(c) * (1.0 + 1e-9)
}

/// Sensitivities that a target claims, in whole grid units, for one record.
#[derive(Clone, Copy, Debug)]
pub struct SensitivityClaim {
    pub unit: f64,
    sum: u128,
    pub length: u128,
    sup: u128,
}

/// Distances that one record can move values before they are rounded, in the 1-norm, the 2-norm and the sup norm.
#[derive(Clone, Copy, Debug)]
pub struct RecordChange {
    pub sum: f64,
    pub length: f64,
    pub sup: f64,
}

impl SensitivityClaim {
    /// `change` bounds that of `values` values; each is computed to within `error`.
    pub fn new(values: usize, change: RecordChange, error: f64) -> Self {
        let sup = change.sup + 2.0 * error;
        let sum = change.sum + 2.0 * error * values as f64;
        let length = change.length + 2.0 * error * (values as f64).sqrt();
        let claim = SensitivityClaim {
            unit: sup / UNITS,
            sum: 0,
            length: 0,
            sup: 0,
        };
        let [sum, length, sup] = [sum, length, sup].map(|change| claim.whole_units(change));
        SensitivityClaim {
            sum: sum + values as u128,
            length: length + u128::from(root_rounded_up(values as u128)),
            sup: sup + 1,
            ..claim
        }
    }

    /// A change in grid units, before rounding is added. Casts saturate; the factor covers the division.
    pub fn whole_units(&self, change: f64) -> u128 {
        (change / self.unit * (1.0 + 1e-12)).ceil() as u128
    }

    /// # Errors
    ///
    /// If it exceeds `2^64` grid units.
    pub fn sensitivity(&self, contributions: u32) -> Result<Sensitivity, TargetError> {
        times_contributions(self.sum, contributions).map(Sensitivity)
    }

    /// # Errors
    ///
    /// If it exceeds `2^64` grid units.
    pub fn sup_sensitivity(&self, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(self.sup, contributions)
    }

    /// # Errors
    ///
    /// If it exceeds `2^64` grid units.
    pub fn euclidean_sensitivity(&self, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(self.length, contributions)
    }

    /// Values rounded to whole units, halves up.
    pub fn rounded_values(&self, values: impl IntoIterator<Item = f64>) -> Exact {
        Exact::new(
            values
                .into_iter()
                .map(|value| (value / self.unit + 0.5).floor() as i128)
                .collect(),
        )
    }
}
