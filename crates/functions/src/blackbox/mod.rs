//! A caller's own function of a window's records (the vignette's "target"), released on the lattice.
//!
//! **The guarantee rests on what the caller declares**: how much one record can change the function. Nothing here can
//! check it. A sensitivity that was sampled on a public prior ([`super::sampler`]) gives random differential privacy,
//! which is less, and [`BlackBox::gamma`] says so. Both need a label and a ledger of their own (`docs/proofs/black-boxes.md`).
//!
//! # What is done with the declaration
//!
//! Values are clipped to a public range, which brings no two of them further apart, and what is not a number becomes the
//! middle of the range. A window keeps its first `most` records, so one record more may push one out; and a record whose
//! values become invalid is not kept. So under either adjacency a record may come or go or be replaced: where both changes are
//! declared, the larger counts.
//!
//! A value `v` becomes `q(v) = floor(v / unit + 1/2)`. With an evaluation error of at most `e`, `n` lattice points, and the
//! two roundings of the quotient and the sum, each below `2^-53` of at most `M + 1`, `M = max |range| / unit`:
//!
//! ```text
//! S_int <= ceil((S + 2 e) / unit + (M + 1) 2^-51)        D1_int <= (D1 + 2 e n) / unit + n (M + 1) 2^-51 + n
//! ```
//!
//! and, `q` being monotone, never more than `q(hi) - q(lo)` a point, whatever was declared.
//!
//! # Example
//!
//! The mean of the labels, the largest and the smallest `cut` left out, as a function that is the same everywhere.
//!
//! ```
//! use bernstream_functions::blackbox::{BlackBox, LatticeDeclaration, DeclaredChange, Fitted, RecordFunction};
//! use bernstream_synopsis::Adjacency;
//! use bernstream_release::Target;
//! use bernstream_release::window::accumulator::Record;
//!
//! #[derive(Debug)]
//! struct TrimmedMean {
//!     cut: usize,
//!     records: u32,
//! }
//!
//! impl RecordFunction for TrimmedMean {
//!     fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
//!         let mut labels: Vec<f64> = records.iter().map(Record::label).collect();
//!         labels.sort_by(f64::total_cmp);
//!         let kept = labels.get(self.cut..labels.len().saturating_sub(self.cut)).unwrap_or_default();
//!         let mean = kept.iter().sum::<f64>() / f64::from(self.records);
//!         Box::new(move |_| mean)
//!     }
//! }
//!
//! // Replacing a record moves the sum of what is kept by at most 2, and one that becomes invalid takes at most 1 of it
//! // away. The error is that of 100 sums of at most 100 and of a quotient, each correctly rounded.
//! let mean = TrimmedMean { cut: 5, records: 100 };
//! let replaced = DeclaredChange { sup: 0.02, sum: Some(0.04) };
//! let declared = LatticeDeclaration { replaced, added: None, error: 1e-12, range: [-1.0, 1.0] };
//! let target = BlackBox::with_declaration(mean, 1, 1, 100, declared)?;
//! let records = (0..100).map(|i| Record::new(&[0.5], f64::from(i) / 100.0));
//! let exact = target.evaluate(&target.accumulator().filled_accumulator(records));
//! assert!(target.sensitivity(Adjacency::ReplaceOne, 1).is_ok());
//! assert!(target.sensitivity(Adjacency::AddRemove, 1).is_err(), "it was not declared");
//! # let cannot_be_shown = format!("{exact:?}");
//! # assert_eq!(cannot_be_shown, "Exact(2 values)");
//! # Ok::<(), bernstream_release::TargetError>(())
//! ```

use std::fmt::Debug;

use super::sampler::SampledSensitivity;
use bernstream_noise::Exact;
pub use bernstream_release::blackbox::error::BlackBoxError;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

const MOST_POINTS: usize = 1 << 20;

/// The largest declared change in grid units.
const UNITS: f64 = 4_294_967_296.0;
/// A range is at most so many units: they fit `i64`.
const WIDEST: f64 = 4.611_686_018_427_388e18;

/// A function of a point.
pub type Fitted<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// A function of records that becomes a function of a point.
pub trait RecordFunction: Debug + Send + Sync {
    /// Fits `records`, which are sorted by themselves and may be none. The result is asked at points of the unit cube, one
    /// coordinate an axis.
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a>;
}

/// Largest change of a function between neighbouring data sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeclaredChange {
    /// Change at any point.
    pub sup: f64,
    /// Summed over the lattice; without it, `sup` at each point.
    pub sum: Option<f64>,
}

/// Declaration that the caller answers for. Units are the function's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeDeclaration {
    /// Change where one record is replaced by another, or goes: its values may become null or leave a domain that drops them.
    pub replaced: DeclaredChange,
    /// Change where one record comes or goes; without it there is no release under add-remove, and `replaced` alone must hold under
    /// replace-one.
    pub added: Option<DeclaredChange>,
    /// Largest distance of a computed value from the function that the changes are declared for.
    pub error: f64,
    /// Range that values are clipped to.
    pub range: [f64; 2],
}

/// A caller's function with a sensitivity.
#[derive(Clone, Debug)]
pub struct BlackBox<F> {
    function: F,
    shape: Shape,
    most: u32,
    range: [f64; 2],
    unit: f64,
    /// Sup norm and 1-norm, in grid units.
    replaced: [u64; 2],
    added: Option<[u64; 2]>,
    gamma: Option<f64>,
}

impl<F: RecordFunction> BlackBox<F> {
    /// `function` of the first `most` records of a window, on the lattice of `degree` in `dimensions` 1 to 3.
    ///
    /// # Errors
    ///
    /// If the lattice, the range or the declared changes are invalid.
    pub fn with_declaration(
        function: F,
        dimensions: usize,
        degree: u32,
        most: u32,
        declared: LatticeDeclaration,
    ) -> Result<Self, TargetError> {
        let LatticeDeclaration {
            replaced,
            added,
            error,
            range,
        } = declared;
        let shape = lattice_shape(dimensions, degree)?;
        if most == 0 {
            return Err(BlackBoxError::NoRecords.into());
        }
        let [lo, hi] = range;
        if !(lo < hi && (hi - lo).is_finite()) {
            return Err(BlackBoxError::Range { lo, hi }.into());
        }
        for change in [Some(replaced), added].into_iter().flatten() {
            let sum = change.sum.unwrap_or(change.sup);
            if !(change.sup > 0.0
                && sum > 0.0
                && sum < f64::INFINITY
                && (0.0..f64::INFINITY).contains(&error))
            {
                return Err(BlackBoxError::Change {
                    sup: change.sup,
                    sum,
                    error,
                }
                .into());
            }
        }
        let largest = added.map_or(replaced.sup, |added| added.sup.max(replaced.sup)) + 2.0 * error;
        let unit = largest.min(hi - lo) / UNITS;
        let widest = lo.abs().max(hi.abs()) / unit;
        if !(unit.is_normal() && widest <= WIDEST) {
            return Err(BlackBoxError::Fine {
                sup: largest,
                lo,
                hi,
            }
            .into());
        }
        let rounding = Rounding {
            points: shape.value_count(),
            unit,
            quotient: (widest + 1.0) * f64::EPSILON * 2.0,
            error,
            span: whole_units(hi, unit).abs_diff(whole_units(lo, unit)) as u64,
        };
        let replaced = rounding.rounded_units(replaced);
        let added = added.map(|added| rounding.rounded_units(added));
        Ok(BlackBox {
            function,
            shape,
            most,
            range,
            unit,
            replaced,
            added,
            gamma: None,
        })
    }

    /// `function` with a sensitivity that was sampled for windows of `most` records: random differential privacy. What was
    /// sampled under add-remove holds for both adjacencies. There is no evaluation error: the values were the program's.
    ///
    /// # Errors
    ///
    /// As [`BlackBox::with_declaration`].
    pub fn with_sample(
        function: F,
        dimensions: usize,
        degree: u32,
        range: [f64; 2],
        sampled: &SampledSensitivity,
    ) -> Result<Self, TargetError> {
        let change = DeclaredChange {
            sup: sampled.sup,
            sum: Some(sampled.sum),
        };
        let added = (sampled.adjacency == Adjacency::AddRemove).then_some(change);
        let declared = LatticeDeclaration {
            replaced: change,
            added,
            error: 0.0,
            range,
        };
        let target =
            BlackBox::with_declaration(function, dimensions, degree, sampled.records, declared)?;
        Ok(BlackBox {
            gamma: Some(sampled.gamma),
            ..target
        })
    }

    /// Probability over the prior with which the guarantee may fail for a window; `None` where it was declared.
    pub fn gamma(&self) -> Option<f64> {
        self.gamma
    }

    fn declared_change(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<[u64; 2], TargetError> {
        if self.gamma.is_some() && contributions > 1 {
            return Err(BlackBoxError::SampledUnit.into());
        }
        let change = match self.added {
            Some(added) => [0, 1].map(|norm| self.replaced[norm].max(added[norm])),
            None if adjacency == Adjacency::ReplaceOne => self.replaced,
            None => return Err(BlackBoxError::NotDeclared.into()),
        };
        match change.map(|units| units.checked_mul(contributions.into())) {
            [Some(sup), Some(sum)] => Ok([sup, sum]),
            _ => Err(TargetError::Contributions { contributions }),
        }
    }
}

/// Bounds of what rounding to grid units adds to a declared change.
struct Rounding {
    /// `n`.
    points: usize,
    unit: f64,
    /// Rounding of the quotients of two values, in grid units.
    quotient: f64,
    /// `e`.
    error: f64,
    /// `q(hi) - q(lo)`.
    span: u64,
}

impl Rounding {
    /// `S` and `D1` in grid units.
    fn rounded_units(&self, change: DeclaredChange) -> [u64; 2] {
        let n = self.points as f64;
        let sup = ((change.sup + 2.0 * self.error) / self.unit + self.quotient).ceil() as u64;
        let sup = sup.saturating_add(1).min(self.span);
        let all = sup.saturating_mul(self.points as u64);
        let sum = match change.sum {
            Some(sum) => {
                ((sum + 2.0 * self.error * n) / self.unit + n * self.quotient).ceil() as u64
            }
            None => all,
        };
        [sup, sum.saturating_add(self.points as u64 + 1).min(all)]
    }
}

/// The values of `function` on the lattice, clipped to `range`, for public records: what [`super::sampler`] asks.
pub fn lattice_values<F: RecordFunction + ?Sized>(
    function: &F,
    shape: &Shape,
    range: [f64; 2],
    records: &[Record],
) -> Vec<f64> {
    let [lo, hi] = range;
    let fitted = function.fit(records);
    let side = shape.degree as usize + 1;
    let mut values = Vec::with_capacity(shape.value_count());
    for index in 0..shape.value_count() {
        let mut point = [0.0; 3];
        let mut rest = index;
        for coordinate in point.iter_mut().take(shape.dimensions).rev() {
            *coordinate = (rest % side) as f64 / f64::from(shape.degree);
            rest /= side;
        }
        let value = fitted(point.get(..shape.dimensions).unwrap_or_default());
        values.push(if value.is_nan() {
            lo / 2.0 + hi / 2.0
        } else {
            value.clamp(lo, hi)
        });
    }
    values
}

/// The lattice of `degree` in `dimensions` 1 to 3.
///
/// # Errors
///
/// If the dimensions or the degree are out of range.
pub fn lattice_shape(dimensions: usize, degree: u32) -> Result<Shape, TargetError> {
    if !(1..=3).contains(&dimensions) {
        return Err(ShapeError::Axes(dimensions).into());
    }
    let most = MOST_POINTS as u32 - 1;
    if !(1..=most).contains(&degree) {
        return Err(TargetError::Degree { degree, most });
    }
    let shape = Shape {
        dimensions,
        degree,
        basis: Basis::Bernstein,
    };
    if shape.value_count() > MOST_POINTS {
        let points = shape.value_count() as u64;
        return Err(TargetError::Points {
            degree,
            axes: dimensions,
            points,
            most: MOST_POINTS,
        });
    }
    Ok(shape)
}

/// Grid units of a value, halves up.
fn whole_units(value: f64, unit: f64) -> i128 {
    (value / unit + 0.5).floor() as i128
}

impl<F: RecordFunction> Builtin for BlackBox<F> {}

impl<F: RecordFunction> Target for BlackBox<F> {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records { most: self.most }
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    /// Grid unit in the function's own units.
    fn unit(&self) -> f64 {
        self.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let values = lattice_values(
            &self.function,
            &self.shape,
            self.range,
            accumulator.records(),
        );
        Exact::new(
            values
                .into_iter()
                .map(|value| whole_units(value, self.unit))
                .collect(),
        )
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        self.declared_change(adjacency, contributions)
            .map(|[_, sum]| Sensitivity(sum))
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.declared_change(adjacency, contributions)
            .map(|[sup, _]| sup)
    }

    /// The sensitivity in the 1-norm: of a sampled change `sqrt(D1 S)` would fail wherever one of the two does.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.sensitivity(adjacency, contributions)
            .map(|sensitivity| sensitivity.0)
    }
}
