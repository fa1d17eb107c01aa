//! Interface of every target: exact values of a window's records, and how much neighbours can change them.

use std::fmt;

use super::builtin::Builtin;
use super::error::TargetError;
use crate::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_noise::{CandidateCounts, Exact};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::law::Norm;
use bernstream_synopsis::shape::Shape;

/// A function of a window's records, on a lattice, and how much a record can change it.
///
/// All of a target is public. Values are whole numbers of grid units; in natural units a value is
/// `offset + unit * value`.
///
/// Every function is a [`Builtin`], for what [`Target::publish`] returns counts as noisy:
///
/// ```compile_fail,E0277
/// use bernstream_synopsis::{Adjacency, Sensitivity, Shape};
/// use bernstream_release::{TargetError, Target};
/// use bernstream_noise::Exact;
/// use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
///
/// #[derive(Debug)]
/// struct Leak(Vec<f64>, AccumulatorSpec, Shape);
///
/// impl Target for Leak {
///     fn accumulator(&self) -> AccumulatorSpec {
///         self.1.clone()
///     }
///     fn shape(&self) -> Shape {
///         self.2.clone()
///     }
///     fn unit(&self) -> f64 {
///         1.0
///     }
///     fn evaluate(&self, _: &Accumulator) -> Exact {
///         Exact::new(vec![])
///     }
///     fn sensitivity(&self, _: Adjacency, _: u32) -> Result<Sensitivity, TargetError> {
///         Ok(Sensitivity(0))
///     }
///     fn sup_sensitivity(&self, _: Adjacency, _: u32) -> Result<u64, TargetError> {
///         Ok(0)
///     }
///     fn publish(&self, _: Vec<f64>) -> Vec<f64> {
///         self.0.clone()
///     }
/// }
/// ```
pub trait Target: Builtin + fmt::Debug + Send + Sync {
    /// Kind of state that a window must keep of its records for [`Target::evaluate`].
    fn accumulator(&self) -> AccumulatorSpec;

    /// Meaning of the released values: the same for every window.
    fn shape(&self) -> Shape;

    /// Value of one grid unit, where the domain is the unit cube and a label lies in `[-1, 1]`.
    fn unit(&self) -> f64;

    /// The exact values of one window and key, [`Shape::value_count`] of them. `accumulator` must be one of [`Target::accumulator`].
    fn evaluate(&self, accumulator: &Accumulator) -> Exact;

    /// Exact counts of keys that nobody listed; `None` for a function of listed keys or of none. `accumulator` must be one of
    /// [`Target::accumulator`].
    fn candidates(&self, _accumulator: &Accumulator) -> Option<CandidateCounts> {
        None
    }

    /// Returns whether the values are a sum over the records: those of several windows then add up, each rounded by itself.
    fn is_sum(&self) -> bool {
        false
    }

    /// Returns whether the values of several windows may be added up, each bounded by itself, and still be what the shape says: those
    /// of a sum over records, and those of a table whose caps hold in each of the windows.
    fn adds_up(&self) -> bool {
        self.is_sum()
    }

    /// The most that one evaluation can take, whatever the records are.
    fn cost(&self) -> EvaluationCost {
        EvaluationCost::default()
    }

    /// Largest change of the values in the 1-norm by a unit of at most `contributions` records, all keys together.
    ///
    /// # Errors
    ///
    /// If no bound holds for this adjacency, or it is too large for `contributions`.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError>;

    /// Largest change of any one value by such a unit, in grid units, summed over the keys: cubes are drawn a key apart.
    ///
    /// # Errors
    ///
    /// As [`Target::sensitivity`].
    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32)
    -> Result<u64, TargetError>;

    /// Largest change of the values in the 2-norm by such a unit, in grid units, summed over the keys. Without a bound of the
    /// target's own `sqrt(D1 S)`, which follows from the other two norms: true where those hold for all neighbours, not where each was
    /// sampled.
    ///
    /// # Errors
    ///
    /// As [`Target::sensitivity`].
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        interpolated_sensitivity(self, adjacency, contributions)
    }

    /// Largest change of the values by such a unit in `norm`, that of a law of noise.
    ///
    /// # Errors
    ///
    /// As [`Target::sensitivity`].
    fn sensitivity_in(
        &self,
        norm: Norm,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        match norm {
            Norm::One => self.sensitivity(adjacency, contributions),
            Norm::Two => self
                .euclidean_sensitivity(adjacency, contributions)
                .map(Sensitivity),
            Norm::Sup => self
                .sup_sensitivity(adjacency, contributions)
                .map(Sensitivity),
        }
    }

    /// Values that are published of noisy ones: the coefficients of the shape's
    /// [`Basis`](bernstream_synopsis::shape::Basis). Linear post-processing, at no price.
    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        noisy
    }

    /// The effect of single records on the values, in grid units before rounding: the change by any record more or less
    /// is a convex combination of these and of none, up to less than one unit in each value. `None` where there is no such
    /// list.
    fn effects(&self) -> Option<Vec<Vec<i128>>> {
        None
    }

    /// Sensitivity that the papers charge in place of [`Target::sensitivity`], to compare with: `N S`, `S` their bound in the sup
    /// norm. Where their `S` is false it is refused: noise of that scale would promise a privacy that is not there.
    ///
    /// A target that overrides this must return a bound that holds.
    ///
    /// # Errors
    ///
    /// If the papers give no bound for this target, or one that is false.
    fn papers_sensitivity(
        &self,
        _: Adjacency,
        _contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        Err(TargetError::PapersGiveNone)
    }
}

/// `sqrt(D1 S)`, rounded up: a bound in the 2-norm, because `sum z_i^2 <= max |z_i| sum |z_i|`.
///
/// # Errors
///
/// If a sensitivity of the target is larger than a number can say.
pub fn interpolated_sensitivity<T: Target + ?Sized>(
    target: &T,
    adjacency: Adjacency,
    contributions: u32,
) -> Result<u64, TargetError> {
    let one = target.sensitivity(adjacency, contributions)?.0;
    let sup = target.sup_sensitivity(adjacency, contributions)?;
    Ok(root_rounded_up(u128::from(one) * u128::from(sup)))
}

/// The square root, rounded up.
pub fn root_rounded_up(square: u128) -> u64 {
    let down = square.isqrt();
    // At most 2^64 is the root of 128 bits.
    u64::try_from(if down * down < square { down + 1 } else { down }).unwrap_or(u64::MAX)
}

/// `N S`: the sensitivity that the papers charge where their `S` is [`Target::sup_sensitivity`].
///
/// # Errors
///
/// If it is larger than a number can say.
pub fn sensitivity_of_every_value(
    target: &dyn Target,
    adjacency: Adjacency,
    contributions: u32,
) -> Result<Sensitivity, TargetError> {
    let sup = target.sup_sensitivity(adjacency, contributions)?;
    sup.checked_mul(target.shape().value_count() as u64)
        .map(Sensitivity)
        .ok_or(TargetError::Contributions { contributions })
}

/// The most that the evaluation of a full window and key can take; public. Zero where it is negligible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvaluationCost {
    /// Memory beside what the window keeps.
    pub bytes: u64,
    /// Multiplications. Few records and simple ones need far fewer.
    pub products: u64,
}
