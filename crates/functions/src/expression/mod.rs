//! A black box that is written in the configuration: `F(y) = sum_i g(x_i, y)`, `g` an expression such as
//! `exp(-((delay - at.delay)/15)^2 / 2)`, on the lattice and in natural units (`docs/proofs/expressions.md`).
//!
//! # Names
//!
//! A record's values go by the names of their columns, the point of the lattice by the same names with `at.` before them,
//! the label by its column's name; a class is 1 or -1. A name that is no single word stands in double quotes. There are
//! `+ - * / ^`, `abs cos exp ln max min sin sqrt tanh`, `pi` and parentheses; `^` binds more than a sign, and to the right.
//!
//! # Why the sensitivities hold
//!
//! What a record adds is a vector of whole numbers that depends on the record and on public things alone. It is forced
//! into a public range at each lattice point, `[lo_p, hi_p]`, and its 1-norm and 2-norm under public limits `R` and `Q`, in
//! integers, after all floating point: whatever `g` was, infinite and not a number included. So, and exactly,
//!
//! * add-remove: `D1 = min(R, sum_p max(|lo_p|, |hi_p|))`, `S = max_p max(|lo_p|, |hi_p|)`, `D2 = min(Q, sqrt(D1 S))`;
//! * replace-one: `D1 = min(2 R, sum_p w_p)`, `S = max_p w_p`, with `w_p = max(hi_p, 0) - min(lo_p, 0)`: a value that is
//!   replaced by one that is null or outside the domain takes away all that it added, so 0 is among the values. `D2` is at most
//!   `2 Q`, or `sqrt(2) Q` where no range has both signs.
//!
//! Sums saturate at 2^127. What a record adds to one is at most 2^33, so that would take 2^94 records.
//!
//! The ranges are [`Formula::with_proved_ranges`] by interval arithmetic over the whole domain, so that they change nothing but the
//! last unit of a value, or an expression that cannot be bounded is refused; or they are [`Formula::with_clipped_ranges`] to what the
//! caller says, and records that would add more add less. Both are (epsilon, 0)-differentially private.
//!
//! # Cost
//!
//! A record costs one evaluation of `g` a lattice point, so there are at most [`MOST_POINTS`] of them.

mod bound;
mod formula;

use std::sync::Arc;

pub use self::formula::{Formula, LabelVariable, MOST_POINTS, Variable};
use bernstream_synopsis::expression::error::{ExpressionError, Unbounded};

use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::times_contributions;
use bernstream_release::target::{Target, interpolated_sensitivity, root_rounded_up};
use bernstream_release::window::accumulator::{
    Accumulator, AccumulatorSpec, Record, RecordFeature,
};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::Shape;

/// The most that a record can add to one value: `S_int = 2^32`.
const UNITS: f64 = 4_294_967_296.0;

impl Formula {
    /// The target whose ranges interval arithmetic proves.
    ///
    /// # Errors
    ///
    /// If interval arithmetic cannot bound the expression, or it is 0 everywhere.
    pub fn with_proved_ranges(self) -> Result<Expression, TargetError> {
        let bounds = self.domain_bounds().map_err(ExpressionError::Unbounded)?;
        let largest = bounds
            .points
            .iter()
            .flatten()
            .fold(0.0_f64, |most, end| most.max(end.abs()));
        if largest == 0.0 {
            return Err(ExpressionError::Zero.into());
        }
        let unit = grid_unit(largest)?;
        let points = bounds
            .points
            .iter()
            .map(|[lo, hi]| [(lo / unit).floor() as i64, (hi / unit).ceil() as i64]);
        // Rounding adds at most half a unit a point.
        let norm = ((bounds.norm / unit).ceil() as i64).saturating_add(bounds.points.len() as i64);
        let side = root_rounded_up(bounds.points.len() as u128);
        let length = ((bounds.length / unit).ceil() as u64).saturating_add(side);
        Ok(Expression::new(self, unit, points.collect(), norm, length))
    }

    /// The target that takes at most `sup` from a record at each lattice point, either sign, and at most `sum` over all of
    /// them; what is beyond is scaled down.
    ///
    /// # Errors
    ///
    /// Unless `0 < sup <= sum`, both finite.
    pub fn with_clipped_ranges(self, sup: f64, sum: f64) -> Result<Expression, TargetError> {
        if !(sup > 0.0 && sum >= sup && sum.is_finite()) {
            return Err(ExpressionError::Clip { sup, sum }.into());
        }
        let unit = grid_unit(sup)?;
        let most = UNITS as i64;
        let points = vec![[-most, most]; self.points.len()];
        let sum = (sum / unit).floor() as i64;
        let length =
            root_rounded_up(u128::from(most.unsigned_abs()) * u128::from(sum.unsigned_abs()));
        Ok(Expression::new(self, unit, points, sum, length))
    }
}

fn grid_unit(sup: f64) -> Result<f64, ExpressionError> {
    let unit = sup / UNITS;
    if unit.is_normal() {
        Ok(unit)
    } else {
        Err(ExpressionError::Unbounded(Unbounded::TooLarge))
    }
}

/// An expression whose sensitivity is known.
#[derive(Clone, Debug)]
pub struct Expression(Arc<RecordSummand>);

/// Values that one record adds.
#[derive(Debug)]
struct RecordSummand {
    formula: Formula,
    /// Grid unit in natural units.
    unit: f64,
    /// Least and most at each lattice point, in grid units.
    points: Vec<[i64; 2]>,
    /// The most in the 1-norm.
    norm: i64,
    /// The most in the 2-norm.
    length: u64,
}

impl Expression {
    fn new(formula: Formula, unit: f64, points: Vec<[i64; 2]>, norm: i64, length: u64) -> Self {
        // Ranges that exclude 0 have a least norm.
        let nearest: Vec<i64> = points.iter().map(nearest_to_zero).collect();
        let norm = norm.max(nearest.iter().map(|value| value.abs()).sum());
        let length = length.max(root_rounded_up(sum_of_squares(&nearest)));
        Expression(Arc::new(RecordSummand {
            formula,
            unit,
            points,
            norm,
            length,
        }))
    }

    /// `S` and `D1` in natural units, as proved or as clipped.
    pub fn natural_bounds(&self, adjacency: Adjacency) -> [f64; 2] {
        self.0
            .sensitivities(adjacency)
            .map(|units| units as f64 * self.0.unit)
    }
}

impl RecordSummand {
    /// `S` and `D1` of one record, in grid units.
    fn sensitivities(&self, adjacency: Adjacency) -> [u64; 2] {
        let mut sup = 0_u64;
        let mut sum = 0;
        for [lo, hi] in &self.points {
            let change = match adjacency {
                Adjacency::AddRemove => lo.unsigned_abs().max(hi.unsigned_abs()),
                Adjacency::ReplaceOne => hi.max(&0).abs_diff(*lo.min(&0)),
            };
            sup = sup.max(change);
            sum += change;
        }
        let norm = match adjacency {
            Adjacency::AddRemove => self.norm.unsigned_abs(),
            Adjacency::ReplaceOne => 2 * self.norm.unsigned_abs(),
        };
        [sup, sum.min(norm)]
    }

    /// `D2` of one record, in grid units, by the limit of the 2-norm.
    fn euclidean_change(&self, adjacency: Adjacency) -> u64 {
        let is_one_sided = self.points.iter().all(|[lo, hi]| *lo >= 0 || *hi <= 0);
        match adjacency {
            Adjacency::AddRemove => self.length,
            // Two vectors whose values have the same signs are no further apart than orthogonal ones.
            Adjacency::ReplaceOne if is_one_sided => {
                root_rounded_up(2 * u128::from(self.length).pow(2))
            }
            Adjacency::ReplaceOne => self.length.saturating_mul(2),
        }
    }

    /// Whole numbers in their ranges, of a 1-norm of at most [`RecordSummand::norm`] and a 2-norm of at most [`RecordSummand::length`].
    fn whole_vector(&self, record: &Record) -> Vec<i64> {
        let natural = self.formula.natural(record);
        let mut vector = Vec::with_capacity(self.points.len());
        for (p, [lo, hi]) in self.points.iter().enumerate() {
            // Halves up. The cast saturates, and makes 0 of what is not a number.
            let value = (self.formula.value(&natural, p) / self.unit + 0.5).floor() as i64;
            vector.push(value.clamp(*lo, *hi));
        }
        self.shorten_vector(&mut vector);
        vector
    }

    /// Scales down what is beyond a norm, towards the value `w` of each range that is nearest to 0, and rounded towards it:
    /// `|v| = |w| + |v - w|` value by value, so `|v| <= |w| + |v - w|` in the 2-norm too; the result is in both norms and every
    /// value in its range.
    fn shorten_vector(&self, vector: &mut [i64]) {
        let long: u64 = vector.iter().map(|v| v.unsigned_abs()).sum();
        let norm = self.norm.unsigned_abs();
        if long > norm {
            let least: u64 = self
                .points
                .iter()
                .map(|range| nearest_to_zero(range).unsigned_abs())
                .sum();
            self.scale_towards_nearest(vector, norm.saturating_sub(least), long - least);
        }
        if sum_of_squares(vector) > u128::from(self.length).pow(2) {
            let least: Vec<i64> = self.points.iter().map(nearest_to_zero).collect();
            let away: Vec<i64> = least.iter().zip(&*vector).map(|(w, v)| v - w).collect();
            self.scale_towards_nearest(
                vector,
                self.length - root_rounded_up(sum_of_squares(&least)),
                root_rounded_up(sum_of_squares(&away)),
            );
        }
    }

    /// `w + (v - w) room / excess`.
    fn scale_towards_nearest(&self, vector: &mut [i64], room: u64, excess: u64) {
        let room = i128::from(room);
        let excess = i128::from(excess.max(1));
        for (v, range) in vector.iter_mut().zip(&self.points) {
            let w = nearest_to_zero(range);
            *v = w + (i128::from(*v - w) * room / excess) as i64;
        }
    }
}

/// The value of a range that is nearest to 0.
fn nearest_to_zero(range: &[i64; 2]) -> i64 {
    0.clamp(range[0], range[1])
}

/// The sum of the squares; values are below 2^34.
fn sum_of_squares(values: &[i64]) -> u128 {
    values
        .iter()
        .map(|value| u128::from(value.unsigned_abs()).pow(2))
        .sum()
}

impl RecordFeature for RecordSummand {
    fn sum_count(&self) -> usize {
        self.points.len()
    }

    fn add(&self, record: &Record, sums: &mut [i128]) {
        for (sum, value) in sums.iter_mut().zip(self.whole_vector(record)) {
            *sum = sum.saturating_add(i128::from(value));
        }
    }

    fn feature_identity(&self) -> serde_json::Value {
        serde_json::json!({
            "expression": 1,
            "formula": self.formula.formula_identity(),
            "unit": self.unit,
            "points": self.points,
            "norm": self.norm,
            "length": self.length,
        })
    }
}

impl Builtin for Expression {}

impl Target for Expression {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Sums(self.0.clone())
    }

    fn shape(&self) -> Shape {
        self.0.formula.shape.clone()
    }

    /// Grid unit in the expression's own units: nothing is mapped.
    fn unit(&self) -> f64 {
        self.0.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let mut values = accumulator.sums().to_vec();
        values.resize(self.0.points.len(), 0);
        Exact::new(values)
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let [_, sum] = self.0.sensitivities(adjacency);
        sum.checked_mul(contributions.into())
            .map(Sensitivity)
            .ok_or(TargetError::Contributions { contributions })
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let [sup, _] = self.0.sensitivities(adjacency);
        sup.checked_mul(contributions.into())
            .ok_or(TargetError::Contributions { contributions })
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let own = times_contributions(self.0.euclidean_change(adjacency).into(), contributions)?;
        Ok(own.min(interpolated_sensitivity(self, adjacency, contributions)?))
    }
}
