//! An expression on a lattice, read but not bounded yet.

use std::fmt;

use bernstream_release::error::TargetError;
use bernstream_release::window::accumulator::Record;
use bernstream_synopsis::expression::error::ExpressionError;
use bernstream_synopsis::expression::interval::{Interval, SIDES};
use bernstream_synopsis::expression::parse::ExpressionTree;
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

pub const MOST_POINTS: usize = 1 << 14;

/// Three axes and a label of a record, three axes of a lattice point.
pub(super) const VARIABLES: usize = SIDES + 3;

/// A variable and its domain, in natural units.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    pub min: f64,
    pub max: f64,
}

/// The label's variable.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelVariable {
    /// A number in natural units.
    Number(Variable),
    /// 1 or -1, by this name.
    Class(String),
}

/// An expression on a lattice, read but not bounded yet.
#[derive(Clone)]
pub struct Formula {
    text: String,
    /// The variables, in the order of their values.
    names: Vec<String>,
    pub(super) tree: ExpressionTree,
    pub(super) shape: Shape,
    axes: Vec<[f64; 2]>,
    /// `None` without a label.
    label: Option<[f64; 2]>,
    /// Number of variables of a record.
    pub(super) sides: usize,
    /// The domain of records: one cell, or one a class.
    pub(super) cells: Vec<[Interval; SIDES]>,
    pub(super) widths: [f64; SIDES],
    /// The lattice in natural units, row-major.
    pub(super) points: Vec<Vec<f64>>,
}

impl Formula {
    /// `text` over the `axes` of the domain, 1 to 3, and the `label` if records have one, on the lattice of `degree` `k`.
    ///
    /// # Errors
    ///
    /// If the text is not an expression of the variables, or the domain or the lattice is invalid.
    pub fn new(
        text: &str,
        axes: &[Variable],
        label: Option<&LabelVariable>,
        degree: u32,
    ) -> Result<Self, TargetError> {
        if !(1..=3).contains(&axes.len()) {
            return Err(ShapeError::Axes(axes.len()).into());
        }
        let most = MOST_POINTS as u32 - 1;
        if !(1..=most).contains(&degree) {
            return Err(TargetError::Degree { degree, most });
        }
        let shape = Shape {
            dimensions: axes.len(),
            degree,
            basis: Basis::Bernstein,
        };
        if shape.value_count() > MOST_POINTS {
            let points = shape.value_count() as u64;
            return Err(TargetError::Points {
                degree,
                axes: axes.len(),
                points,
                most: MOST_POINTS,
            });
        }
        let mut names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
        names.extend(label.map(|label| label.name().to_string()));
        names.extend(axes.iter().map(|axis| format!("at.{}", axis.name)));
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return Err(ExpressionError::Twice(name.clone()).into());
            }
        }
        for axis in axes.iter().chain(label.and_then(LabelVariable::number)) {
            if !(axis.min < axis.max && (axis.max - axis.min).is_finite()) {
                return Err(ExpressionError::Domain {
                    name: axis.name.clone(),
                    min: axis.min,
                    max: axis.max,
                }
                .into());
            }
        }
        let tree = ExpressionTree::parse(text, &names)?;
        let ranges: Vec<[f64; 2]> = axes.iter().map(|axis| [axis.min, axis.max]).collect();
        let label_range = label.map(|label| {
            label
                .number()
                .map_or([-1.0, 1.0], |axis| [axis.min, axis.max])
        });
        let sides = ranges.len() + usize::from(label.is_some());
        let mut cell = [Interval::ZERO; SIDES];
        for (side, [min, max]) in cell.iter_mut().zip(ranges.iter().chain(&label_range)) {
            *side = Interval::new(*min, *max);
        }
        let widths = cell.map(|side| side.width());
        let cells = match label {
            Some(LabelVariable::Class(_)) => [-1.0, 1.0]
                .map(|class| with_side(cell, ranges.len(), class))
                .to_vec(),
            _ => vec![cell],
        };
        let points = natural_lattice(degree, &ranges);
        let text = text.to_owned();
        Ok(Formula {
            text,
            names,
            tree,
            shape,
            axes: ranges,
            label: label_range,
            sides,
            cells,
            widths,
            points,
        })
    }

    /// The values for these records as the expression gives them, without a bound: for public records only, such as those
    /// that a sampler draws.
    pub fn exact_values(&self, records: &[Record]) -> Vec<f64> {
        let natural: Vec<_> = records.iter().map(|record| self.natural(record)).collect();
        let mut values = Vec::with_capacity(self.points.len());
        for p in 0..self.points.len() {
            values.push(natural.iter().map(|record| self.value(record, p)).sum());
        }
        values
    }

    /// The expression and its lattice, but for the domain.
    pub(super) fn formula_identity(&self) -> serde_json::Value {
        serde_json::json!({ "text": self.text, "names": self.names, "degree": self.shape.degree })
    }

    /// A record's values in natural units.
    pub(super) fn natural(&self, record: &Record) -> [f64; SIDES] {
        let mut natural = [0.0; SIDES];
        for (axis, [min, max]) in self.axes.iter().enumerate() {
            natural[axis] = natural_value(*min, *max, record.x(axis));
        }
        if let Some([min, max]) = self.label {
            natural[self.axes.len()] = natural_value(min, max, record.label() / 2.0 + 0.5);
        }
        natural
    }

    pub(super) fn value(&self, record: &[f64; SIDES], p: usize) -> f64 {
        let mut variables = [0.0; VARIABLES];
        variables[..self.sides].copy_from_slice(&record[..self.sides]);
        for (variable, y) in variables[self.sides..].iter_mut().zip(&self.points[p]) {
            *variable = *y;
        }
        self.tree.evaluate(&variables)
    }
}

impl LabelVariable {
    fn name(&self) -> &str {
        match self {
            LabelVariable::Number(variable) => &variable.name,
            LabelVariable::Class(name) => name,
        }
    }

    fn number(&self) -> Option<&Variable> {
        if let LabelVariable::Number(variable) = self {
            Some(variable)
        } else {
            None
        }
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Formula")
            .field("tree", &self.tree)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

fn with_side(mut cell: [Interval; SIDES], side: usize, value: f64) -> [Interval; SIDES] {
    if let Some(side) = cell.get_mut(side) {
        *side = Interval::point(value);
    }
    cell
}

fn natural_value(min: f64, max: f64, place: f64) -> f64 {
    (min + place * (max - min)).clamp(min, max)
}

/// The points of the lattice in natural units, row-major.
fn natural_lattice(degree: u32, ranges: &[[f64; 2]]) -> Vec<Vec<f64>> {
    let mut points = vec![Vec::new()];
    for [min, max] in ranges {
        let mut extended = Vec::with_capacity(points.len() * (degree as usize + 1));
        for point in &points {
            for j in 0..=degree {
                let coordinate = natural_value(*min, *max, f64::from(j) / f64::from(degree));
                extended.push([&point[..], &[coordinate]].concat());
            }
        }
        points = extended;
    }
    points
}
