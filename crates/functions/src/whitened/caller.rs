//! A caller's own function of a window's records by whitened coordinates on public points: what the Gaussian process and the
//! kernel ball add noise to.
//!
//! **The guarantee rests on what the caller declares**: how much one record can change the function in the norm of the kernel's
//! space. Nothing here can check it. For the Ornstein-Uhlenbeck kernel on one axis [`sobolev_norm`] makes that norm of bounds on
//! the change and its slope. That a change is small everywhere is not enough: a step of any height has no norm at all.
//!
//! # What is done with the declaration
//!
//! `c = M (f(p_1), ..., f(p_d))` with the points and `M` of [`Points`], drawn back to the ball of radius `R`, the declared
//! `longest`, where it is longer: a projection, which brings no two vectors further apart. With `r` the declared norm of
//! the change, `e` the declared error of a value, `q` what `M` makes at most of a function of norm 1 ([`Points::stretch_bound`]) and
//! `s` of an error of 1 at each point ([`Points::whitening_norm`]),
//!
//! ```text
//! D2 = min(q r + 2 s e, 2 R) + 2 w + sqrt(d) units,    S = D2,    D1 = sqrt(d) D2
//! ```
//!
//! `w` is what floats lose. The product with `M` is off by at most `t |f(P)|_inf`, `t` that of [`Points`] for values of 1. As
//! `q < 1.01`, no value is above `1.02 |c|`; so before it is drawn back a long vector is off by at most a part `1.02 t` of
//! itself, and after it by `3 t R`, as is a short one. To this come `d + 12` roundings of parts of `R`.
//!
//! A window keeps its first `most` records, so one record more may push one out; and a record whose values become invalid is
//! not kept. So under either adjacency a record may come or go or be replaced: where both changes are declared, the larger
//! counts. Values that are no numbers,
//! or beyond 10^100 in size, break the declaration; all coordinates are 0 then.

use std::fmt;

use crate::blackbox::{Fitted, RecordFunction};
use bernstream_noise::Exact;
use bernstream_release::blackbox::BlackBoxError as Refused;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::times_contributions;
use bernstream_release::target::{Target, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::{Basis, PointKernel, Shape};
use bernstream_synopsis::whitened::points::Points;

/// The largest declared change in grid units.
const UNITS: f64 = 4_294_967_296.0;
/// `R` is at most so many units: they fit `i64`.
const WIDEST: f64 = 4.611_686_018_427_388e18;

/// Declaration that the caller answers for. Units are the function's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelDeclaration {
    /// The norm of the change, in the kernel's space, where one record is replaced by another, or goes: its values may become
    /// null or leave a domain that drops them.
    pub replaced: f64,
    /// The norm where one record comes or goes; without it there is no release under add-remove, and `replaced` alone must
    /// hold under replace-one.
    pub added: Option<f64>,
    /// Largest distance of a computed value from the function that the changes are declared for. 0 says that values are exact, or
    /// that the changes are those of the values as computed: few sums of floats are.
    pub error: f64,
    /// The norm that functions are clipped to. A longer one loses accuracy and no privacy.
    pub longest: f64,
}

/// A caller's function on kernel points.
#[derive(Clone, Debug)]
pub struct KernelBlackBox<F> {
    function: F,
    points: Points,
    most: u32,
    longest: f64,
    unit: f64,
    /// `D2` in grid units.
    replaced: u128,
    added: Option<u128>,
}

/// A closure that takes the records and a point of the unit cube, as a [`RecordFunction`]. It runs once a point: a function that
/// prepares something of the records once should be a [`RecordFunction`] of its own.
#[derive(Clone)]
pub struct ClosureFunction<F>(pub F);

impl<F> fmt::Debug for ClosureFunction<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a closure")
    }
}

impl<F: Fn(&[Record], &[f64]) -> f64 + Send + Sync> RecordFunction for ClosureFunction<F> {
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
        Box::new(move |point| (self.0)(records, point))
    }
}

impl<F: RecordFunction> KernelBlackBox<F> {
    /// `function` on at most `count` points for `kernel` ([`Points::choose_greedily`]) on `axes` axes, of windows that keep `most`
    /// records.
    ///
    /// # Example
    ///
    /// The share of `n` records near a point, by triangles of half-width 0.2: a record more is a triangle of height `1/n`.
    ///
    /// ```
    /// use bernstream_synopsis::machine::CubeKernel;
    /// use bernstream_functions::whitened::caller::{ClosureFunction, KernelBlackBox, KernelDeclaration, sobolev_norm};
    /// use bernstream_synopsis::{Adjacency, PointKernel};
    /// use bernstream_release::Target;
    /// use bernstream_release::window::accumulator::Record;
    ///
    /// let near = |records: &[Record], y: &[f64]| {
    ///     records.iter().map(|d| (1.0 - (y[0] - d.x(0)).abs() / 0.2).max(0.0) / 100.0).sum::<f64>()
    /// };
    /// // The slope of a triangle is 5/n on 0.4 of the line at most: in the mean of squares, sqrt(0.4) 5/n. A replacement
    /// // is a record less and one more.
    /// let added = sobolev_norm(0.2, 0.01, 0.4_f64.sqrt() * 0.05);
    /// let declared = KernelDeclaration { replaced: 2.0 * added, added: Some(added), error: 1e-14, longest: 3.0 };
    /// let kernel = PointKernel::Machine(CubeKernel::Laplacian { bandwidth: 0.2 });
    /// let target = KernelBlackBox::with_declaration(ClosureFunction(near), kernel, 1, 40, 100, declared)?;
    /// let change = target.euclidean_sensitivity(Adjacency::AddRemove, 1)? as f64 * target.unit();
    /// assert!((change / (2.0 * added) - 1.0).abs() < 1e-3, "a full window may exchange one for another");
    /// # Ok::<(), bernstream_release::TargetError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the kernel, the number of points or the declaration is invalid.
    pub fn with_declaration(
        function: F,
        kernel: PointKernel,
        axes: usize,
        count: usize,
        most: u32,
        declared: KernelDeclaration,
    ) -> Result<Self, TargetError> {
        let KernelDeclaration {
            replaced,
            added,
            error,
            longest,
        } = declared;
        if most == 0 {
            return Err(Refused::NoRecords.into());
        }
        for change in [Some(replaced), added].into_iter().flatten() {
            let possible =
                change > 0.0 && change < f64::INFINITY && (0.0..f64::INFINITY).contains(&error);
            if !possible {
                return Err(Refused::Change {
                    sup: change,
                    sum: change,
                    error,
                }
                .into());
            }
        }
        if !(longest > 0.0 && longest < 1e100) {
            return Err(Refused::Range {
                lo: 0.0,
                hi: longest,
            }
            .into());
        }
        let mut points = Points::choose_greedily(kernel.clone(), axes, count)?;
        let mut stretch = points.stretch_bound();
        let mut part = points.rounding_loss();
        // The last points are those that floats hardly tell apart.
        while points.count() > 1 && !(stretch < 1.01 && part < 1e-3) {
            points = Points::choose_greedily(kernel.clone(), axes, points.count() - 1)?;
            stretch = points.stretch_bound();
            part = points.rounding_loss();
        }
        let d = points.count() as f64;
        let bound = CoordinateBound {
            stretch,
            spread: points.whitening_norm(),
            error,
            longest,
            lost: longest * (3.0 * part + (d + 12.0) * f64::EPSILON),
        };
        let largest = bound.coordinate_length(added.unwrap_or(replaced).max(replaced));
        let unit = largest / UNITS;
        if !(unit.is_normal() && longest / unit <= WIDEST) {
            return Err(Refused::Fine {
                sup: largest,
                lo: -longest,
                hi: longest,
            }
            .into());
        }
        // Rounding moves each coordinate of a difference by less than a unit.
        let rounding = u128::from(root_rounded_up(points.count() as u128));
        let replaced = (bound.coordinate_length(replaced) / unit).ceil() as u128 + rounding;
        let added =
            added.map(|added| (bound.coordinate_length(added) / unit).ceil() as u128 + rounding);
        Ok(KernelBlackBox {
            function,
            points,
            most,
            longest,
            unit,
            replaced,
            added,
        })
    }

    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Coordinates before they are rounded.
    fn whitened_coordinates(&self, records: &[Record]) -> Vec<f64> {
        let fitted = self.function.fit(records);
        let points = self.points.basis().points.iter();
        let values: Vec<f64> = points.map(|p| fitted(p)).collect();
        if !values.iter().all(|value| value.abs() <= 1e100) {
            return vec![0.0; values.len()];
        }
        let mut coordinates = self.points.whiten(&values);
        let length = coordinates.iter().map(|c| c * c).sum::<f64>().sqrt();
        if length > self.longest {
            for coordinate in &mut coordinates {
                *coordinate *= self.longest / length;
            }
        }
        coordinates
    }

    /// `D2` for one record.
    fn record_length(&self, adjacency: Adjacency) -> Result<u128, TargetError> {
        match self.added {
            Some(added) => Ok(added.max(self.replaced)),
            None if adjacency == Adjacency::ReplaceOne => Ok(self.replaced),
            None => Err(Refused::NotDeclared.into()),
        }
    }
}

/// Bound of what a declared change makes of the coordinates, as in the [module](self).
struct CoordinateBound {
    /// `q`.
    stretch: f64,
    /// `s`.
    spread: f64,
    /// `e`.
    error: f64,
    /// `R`.
    longest: f64,
    /// `w`.
    lost: f64,
}

impl CoordinateBound {
    fn coordinate_length(&self, change: f64) -> f64 {
        let whole =
            (self.stretch * change + 2.0 * self.spread * self.error).min(2.0 * self.longest);
        (whole + 2.0 * self.lost) * (1.0 + 1e-9)
    }
}

/// The norm in the space of `exp(-|x - y| / bandwidth)` on `[0, 1]`, at most, of a function that is nowhere above `sup` in size
/// and whose slope is at most `slope`, everywhere or in the root of the mean square over `[0, 1]`.
///
/// That space is `H^1` with (`[HRW13]`, equation 10, `gamma = 1 / bandwidth`)
///
/// ```text
/// ||f||^2 = (f(0)^2 + f(1)^2) / 2 + (1 / 2 gamma) int_0^1 f'^2 + gamma^2 f^2
///        <= sup^2 (1 + gamma / 2) + slope^2 / 2 gamma
/// ```
///
/// A function must be continuous: a slope that is bounded where there is one says nothing of a jump. The bound is reached
/// by constants, and nearly by fast zigzags.
pub fn sobolev_norm(bandwidth: f64, sup: f64, slope: f64) -> f64 {
    let gamma = 1.0 / bandwidth;
    (sup * sup * (1.0 + gamma / 2.0) + slope * slope / (2.0 * gamma)).sqrt() * (1.0 + 1e-12)
}

impl<F: RecordFunction> Builtin for KernelBlackBox<F> {}

impl<F: RecordFunction> Target for KernelBlackBox<F> {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records { most: self.most }
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.points.axes(),
            degree: 1,
            basis: Basis::Kernel(self.points.basis().clone()),
        }
    }

    /// Grid unit in the function's own units.
    fn unit(&self) -> f64 {
        self.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let coordinates = self.whitened_coordinates(accumulator.records());
        Exact::new(
            coordinates
                .into_iter()
                .map(|c| (c / self.unit).round() as i128)
                .collect(),
        )
    }

    /// `ceil(sqrt(d)) D2`.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let count = u128::from(root_rounded_up(self.points.count() as u128));
        times_contributions(count * self.record_length(adjacency)?, contributions).map(Sensitivity)
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.euclidean_sensitivity(adjacency, contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        times_contributions(self.record_length(adjacency)?, contributions)
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        self.points.coefficients(&noisy)
    }
}
