//! A black box that is written in the configuration: `F(y) = sum_i g(x_i, y)`, `g` an expression such as
//! `exp(-((delay - at.delay)/15)^2 / 2)`, on the lattice and in natural units (privacy mathematics, sections 9 and 10).
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
//! into a public range at each lattice point, `[lo_p, hi_p]`, and its 1-norm under a public limit `R`, in integers, after
//! all floating point: whatever `g` was, infinite and not a number included. So, and exactly,
//!
//! * add-remove: `D1 = min(R, sum_p max(|lo_p|, |hi_p|))`, `S = max_p max(|lo_p|, |hi_p|)`;
//! * replace-one: `D1 = min(2 R, sum_p w_p)`, `S = max_p w_p`, with `w_p = max(hi_p, 0) - min(lo_p, 0)`: a value that is
//!   replaced by one that is null or outside the domain takes away all that it added, so 0 is among the values.
//!
//! Sums saturate at 2^127. What a record adds to one is at most 2^33, so that would take 2^94 records.
//!
//! The ranges are [`Formula::proved`] by interval arithmetic over the whole domain, so that they change nothing but the
//! last unit of a value, or an expression that cannot be bounded is refused; or they are [`Formula::clipped`] to what the
//! caller says, and records that would add more add less. Both are (epsilon, 0)-differentially private.
//!
//! # Cost
//!
//! A record costs one evaluation of `g` a lattice point, so there are at most [`MOST_POINTS`] of them.

mod bound;
mod interval;
mod parse;
mod pointwise;

use std::fmt;
use std::sync::Arc;

use self::interval::{Interval, SIDES};
use self::parse::Tree;
pub use self::pointwise::Pointwise;
use super::{Adjacency, Basis, Exact, Sensitivity, Shape, Target};
use crate::window::accumulator::{Accumulator, AccumulatorSpec, Feature, Record};

pub const MOST_POINTS: usize = 1 << 14;

/// Three axes and a label of a record, three axes of a lattice point.
const VARIABLES: usize = SIDES + 3;

/// The most that a record can add to one value: `S_int = 2^32`.
const UNITS: f64 = 4_294_967_296.0;

/// A variable and its domain, in natural units.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    pub min: f64,
    pub max: f64,
}

/// The label's variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// In natural units.
    Number(Variable),
    /// 1 or -1, by this name.
    Class(String),
}

/// An expression on a lattice, read but not bounded yet.
#[derive(Clone)]
pub struct Formula {
    tree: Tree,
    shape: Shape,
    axes: Vec<[f64; 2]>,
    /// `None` without a label.
    label: Option<[f64; 2]>,
    /// How many variables a record has.
    sides: usize,
    /// The domain of records: one cell, or one a class.
    cells: Vec<[Interval; SIDES]>,
    widths: [f64; SIDES],
    /// The lattice in natural units, row-major.
    points: Vec<Vec<f64>>,
}

impl Formula {
    /// `text` over the `axes` of the domain, 1 to 3, and the `label` if records have one, on the lattice of `degree` `k`.
    pub fn new(text: &str, axes: &[Variable], label: Option<&Label>, degree: u32) -> Result<Self, super::Error> {
        if !(1..=3).contains(&axes.len()) {
            return Err(super::Error::Axes(axes.len()));
        }
        let most = MOST_POINTS as u32 - 1;
        if !(1..=most).contains(&degree) {
            return Err(super::Error::Degree { degree, most });
        }
        let shape = Shape { dimensions: axes.len(), degree, basis: Basis::Bernstein };
        if shape.values() > MOST_POINTS {
            let points = shape.values() as u64;
            return Err(super::Error::Points { degree, axes: axes.len(), points, most: MOST_POINTS });
        }
        let mut names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
        names.extend(label.map(|label| label.name().to_string()));
        names.extend(axes.iter().map(|axis| format!("at.{}", axis.name)));
        if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            return Err(Error::Twice(twice.1.clone()).into());
        }
        let numbers = axes.iter().chain(label.and_then(Label::number));
        if let Some(wrong) =
            numbers.into_iter().find(|axis| !(axis.min < axis.max && (axis.max - axis.min).is_finite()))
        {
            return Err(Error::Domain { name: wrong.name.clone(), min: wrong.min, max: wrong.max }.into());
        }
        let tree = Tree::parse(text, &names)?;
        let ranges: Vec<[f64; 2]> = axes.iter().map(|axis| [axis.min, axis.max]).collect();
        let label_range = label.map(|label| label.number().map_or([-1.0, 1.0], |axis| [axis.min, axis.max]));
        let sides = ranges.len() + usize::from(label.is_some());
        let mut cell = [Interval::ZERO; SIDES];
        for (side, [min, max]) in cell.iter_mut().zip(ranges.iter().chain(&label_range)) {
            *side = Interval::new(*min, *max);
        }
        let widths = cell.map(|side| side.width());
        let cells = match label {
            Some(Label::Class(_)) => [-1.0, 1.0].map(|class| with(cell, ranges.len(), class)).to_vec(),
            _ => vec![cell],
        };
        let points = lattice(degree, &ranges);
        Ok(Formula { tree, shape, axes: ranges, label: label_range, sides, cells, widths, points })
    }

    /// The target whose ranges interval arithmetic proves; an error where it cannot.
    pub fn proved(self) -> Result<Expression, super::Error> {
        let bounds = self.bounds().map_err(Error::Unbounded)?;
        let largest = bounds.points.iter().flatten().fold(0.0_f64, |most, end| most.max(end.abs()));
        if largest == 0.0 {
            return Err(Error::Zero.into());
        }
        let unit = unit_of(largest)?;
        let points = bounds.points.iter().map(|[lo, hi]| [(lo / unit).floor() as i64, (hi / unit).ceil() as i64]);
        // Rounding adds at most half a unit a point.
        let norm = ((bounds.norm / unit).ceil() as i64).saturating_add(bounds.points.len() as i64);
        Ok(Expression::new(self, unit, points.collect(), norm))
    }

    /// The target that takes at most `sup` from a record at each lattice point, either sign, and at most `sum` over all of
    /// them; what is beyond is scaled down.
    pub fn clipped(self, sup: f64, sum: f64) -> Result<Expression, super::Error> {
        if !(sup > 0.0 && sum >= sup && sum.is_finite()) {
            return Err(Error::Clip { sup, sum }.into());
        }
        let unit = unit_of(sup)?;
        let most = UNITS as i64;
        let points = vec![[-most, most]; self.points.len()];
        Ok(Expression::new(self, unit, points, (sum / unit).floor() as i64))
    }

    /// The values for these records as the expression gives them, without a bound: for public records only, such as those
    /// that a sampler draws.
    pub fn values(&self, records: &[Record]) -> Vec<f64> {
        let natural: Vec<_> = records.iter().map(|record| self.natural(record)).collect();
        let value = |p| natural.iter().map(|record| self.value(record, p)).sum();
        (0..self.points.len()).map(value).collect()
    }

    /// A record's values in natural units.
    fn natural(&self, record: &Record) -> [f64; SIDES] {
        let mut natural = [0.0; SIDES];
        let places = (0..self.axes.len()).map(|axis| record.x(axis));
        let label = self.label.iter().map(|_| record.label() / 2.0 + 0.5);
        for ((natural, [min, max]), place) in
            natural.iter_mut().zip(self.axes.iter().chain(&self.label)).zip(places.chain(label))
        {
            *natural = between(*min, *max, place);
        }
        natural
    }

    fn value(&self, record: &[f64; SIDES], p: usize) -> f64 {
        let mut variables = [0.0; VARIABLES];
        variables[..self.sides].copy_from_slice(&record[..self.sides]);
        for (variable, y) in variables[self.sides..].iter_mut().zip(&self.points[p]) {
            *variable = *y;
        }
        self.tree.evaluate(&variables)
    }
}

impl Label {
    fn name(&self) -> &str {
        match self {
            Label::Number(variable) => &variable.name,
            Label::Class(name) => name,
        }
    }

    fn number(&self) -> Option<&Variable> {
        if let Label::Number(variable) = self { Some(variable) } else { None }
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Formula").field("tree", &self.tree).field("shape", &self.shape).finish_non_exhaustive()
    }
}

fn with(mut cell: [Interval; SIDES], side: usize, value: f64) -> [Interval; SIDES] {
    if let Some(side) = cell.get_mut(side) {
        *side = Interval::point(value);
    }
    cell
}

fn between(min: f64, max: f64, place: f64) -> f64 {
    (min + place * (max - min)).clamp(min, max)
}

fn lattice(degree: u32, ranges: &[[f64; 2]]) -> Vec<Vec<f64>> {
    ranges.iter().fold(vec![Vec::new()], |points, [min, max]| {
        let along = |point: &Vec<f64>| {
            let at = |j| between(*min, *max, f64::from(j) / f64::from(degree));
            (0..=degree).map(|j| [&point[..], &[at(j)]].concat()).collect::<Vec<_>>()
        };
        points.iter().flat_map(along).collect()
    })
}

fn unit_of(sup: f64) -> Result<f64, Error> {
    let unit = sup / UNITS;
    if unit.is_normal() { Ok(unit) } else { Err(Error::Unbounded(Unbounded::TooLarge)) }
}

/// An expression whose sensitivity is known.
#[derive(Clone, Debug)]
pub struct Expression(Arc<Summand>);

/// What one record adds.
#[derive(Debug)]
struct Summand {
    formula: Formula,
    /// In natural units.
    unit: f64,
    /// Least and most at each lattice point, in grid units.
    points: Vec<[i64; 2]>,
    /// The most in the 1-norm.
    norm: i64,
}

impl Expression {
    fn new(formula: Formula, unit: f64, points: Vec<[i64; 2]>, norm: i64) -> Self {
        // Ranges that exclude 0 have a least norm.
        let least = points.iter().map(|range| 0.clamp(range[0], range[1]).abs()).sum();
        Expression(Arc::new(Summand { formula, unit, points, norm: norm.max(least) }))
    }

    /// `S` and `D1` in natural units, as proved or as clipped.
    pub fn bounds(&self, adjacency: Adjacency) -> [f64; 2] {
        self.0.sensitivities(adjacency).map(|units| units as f64 * self.0.unit)
    }
}

impl Summand {
    /// `S` and `D1` of one record, in grid units.
    fn sensitivities(&self, adjacency: Adjacency) -> [u64; 2] {
        let each = self.points.iter().map(|[lo, hi]| match adjacency {
            Adjacency::AddRemove => lo.unsigned_abs().max(hi.unsigned_abs()),
            Adjacency::ReplaceOne => hi.max(&0).abs_diff(*lo.min(&0)),
        });
        let norm = match adjacency {
            Adjacency::AddRemove => self.norm.unsigned_abs(),
            Adjacency::ReplaceOne => 2 * self.norm.unsigned_abs(),
        };
        [each.clone().max().unwrap_or(0), each.sum::<u64>().min(norm)]
    }

    /// Whole numbers in their ranges, of a 1-norm of at most [`Summand::norm`].
    fn vector(&self, record: &Record) -> Vec<i64> {
        let natural = self.formula.natural(record);
        let whole = |(p, [lo, hi]): (usize, &[i64; 2])| {
            // Halves up. The cast saturates, and makes 0 of what is not a number.
            let value = (self.formula.value(&natural, p) / self.unit + 0.5).floor() as i64;
            value.clamp(*lo, *hi)
        };
        let mut vector: Vec<i64> = self.points.iter().enumerate().map(whole).collect();
        self.shorten(&mut vector);
        vector
    }

    /// Scales down what is beyond the norm, towards the value of each range that is nearest to 0: `|v| = |w| + |v - w|`
    /// with `w` that value, so the result is in the norm and every value in its range.
    fn shorten(&self, vector: &mut [i64]) {
        let long: u64 = vector.iter().map(|v| v.unsigned_abs()).sum();
        let norm = self.norm.unsigned_abs();
        if long <= norm {
            return;
        }
        let nearest = |range: &[i64; 2]| 0.clamp(range[0], range[1]);
        let least: u64 = self.points.iter().map(|range| nearest(range).unsigned_abs()).sum();
        let (room, excess) = (i128::from(norm.saturating_sub(least)), i128::from(long - least));
        for (v, range) in vector.iter_mut().zip(&self.points) {
            let w = nearest(range);
            *v = w + (i128::from(*v - w) * room / excess) as i64;
        }
    }
}

impl Feature for Summand {
    fn count(&self) -> usize {
        self.points.len()
    }

    fn add(&self, record: &Record, sums: &mut [i128]) {
        for (sum, value) in sums.iter_mut().zip(self.vector(record)) {
            *sum = sum.saturating_add(i128::from(value));
        }
    }
}

impl Target for Expression {
    fn is_sum(&self) -> bool {
        true
    }

    fn keep(&self) -> AccumulatorSpec {
        AccumulatorSpec::Sums(self.0.clone())
    }

    fn shape(&self) -> Shape {
        self.0.formula.shape.clone()
    }

    /// In the expression's own units: nothing is mapped.
    fn unit(&self) -> f64 {
        self.0.unit
    }

    fn evaluate(&self, state: &Accumulator) -> Exact {
        let mut values = state.sums().to_vec();
        values.resize(self.0.points.len(), 0);
        Exact::new(values)
    }

    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, super::Error> {
        let [_, sum] = self.0.sensitivities(adjacency);
        sum.checked_mul(contributions.into()).map(Sensitivity).ok_or(super::Error::Contributions { contributions })
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, super::Error> {
        let [sup, _] = self.0.sensitivities(adjacency);
        sup.checked_mul(contributions.into()).ok_or(super::Error::Contributions { contributions })
    }
}

/// Why an expression cannot be a target.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error("the expression cannot be read at character {column}: {what}")]
    Syntax { column: usize, what: String },
    #[error("two variables of the expression are called '{0}': rename a column")]
    Twice(String),
    #[error("the domain of '{name}' in the expression runs from {min} to {max}: its max must be above its min")]
    Domain { name: String, min: f64, max: f64 },
    #[error("the expression is 0 for every record of the domain")]
    Zero,
    #[error(
        "the expression cannot be bounded over the domain: {0}; change the expression or the domain, or clip what a record \
         adds"
    )]
    Unbounded(Unbounded),
    #[error("a record cannot be clipped to {sup} a point and {sum} in all: 0 < sup <= sum")]
    Clip { sup: f64, sum: f64 },
}

/// What interval arithmetic could not bound.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unbounded {
    #[error("it divides by what can be 0")]
    Division,
    #[error("it takes the logarithm of what can be 0 or less")]
    Logarithm,
    #[error("it takes the root of what can be less than 0 (write a square as x^2, not x*x)")]
    Root,
    #[error("it raises what can be 0 or less to a power that is no whole number of at most 64")]
    Power,
    #[error("it can be too large or too small for a number")]
    TooLarge,
}
