//! The largest that a record can make something: branch and bound over the domain, with a public and bounded effort.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::formula::{Formula, VARIABLES};
use bernstream_synopsis::expression::error::Unbounded;
use bernstream_synopsis::expression::interval::{Interval, SIDES, Slope};
use bernstream_synopsis::expression::parse::{Binary, Number, Unary};

/// A box of records: a side a variable.
pub(super) type RecordBox = [Interval; SIDES];

/// The search ends where the bound is within this part of what was reached,
const NEAR: f64 = 0.002;
/// or after so many evaluations of the expression, and no fewer than so many cells.
const EVALUATIONS: usize = 1 << 18;
const FEWEST_CELLS: usize = 64;

/// Bounds of what one record can add: the least and the most at each lattice point, and the most in the 1-norm and in the 2-norm over
/// the lattice.
pub(super) struct RecordBounds {
    pub points: Vec<[f64; 2]>,
    pub norm: f64,
    pub length: f64,
}

impl Formula {
    /// Bounds that hold for every record of the domain.
    pub(super) fn domain_bounds(&self) -> Result<RecordBounds, Unbounded> {
        // What matters is how near a bound is to the largest value anywhere.
        let mut scale = 0.0_f64;
        for cell in &self.cells {
            for end in 0..3 {
                scale = scale.max(self.largest_size(&cell_corner(cell, end)));
            }
        }
        let mut points = Vec::with_capacity(self.points.len());
        let mut all = Interval::ZERO;
        for p in 0..self.points.len() {
            let most = self.largest_bound(BoundedQuantity::Value(p), scale)?;
            let least = -self.largest_bound(BoundedQuantity::Opposite(p), scale)?;
            points.push([least, most]);
            all = all.plus(Interval::new(least, most).abs());
        }
        let norm = self
            .largest_bound(BoundedQuantity::Norm, scale)?
            .min(all.hi);
        // A square can be too large where a value is not.
        let square = self
            .largest_bound(BoundedQuantity::Squares, scale)
            .unwrap_or(f64::INFINITY);
        let length = square.max(0.0).sqrt().next_up().min(norm);
        Ok(RecordBounds {
            points,
            norm,
            length,
        })
    }

    /// The largest value over the lattice, in size.
    fn largest_size(&self, record: &[f64; SIDES]) -> f64 {
        let sizes = (0..self.points.len()).map(|p| self.value(record, p).abs());
        sizes.fold(0.0, f64::max)
    }

    /// A bound on the quantity over all records.
    fn largest_bound(&self, quantity: BoundedQuantity, scale: f64) -> Result<f64, Unbounded> {
        let search = BoundSearch {
            formula: self,
            quantity,
            scale,
            reached: f64::NEG_INFINITY,
            open: BinaryHeap::new(),
        };
        search.search_bound()
    }

    /// The quantity for one record.
    fn value_of(&self, quantity: BoundedQuantity, record: &[f64; SIDES]) -> f64 {
        let points = 0..self.points.len();
        match quantity {
            BoundedQuantity::Value(p) => self.value(record, p),
            BoundedQuantity::Opposite(p) => -self.value(record, p),
            BoundedQuantity::Norm => {
                let mut norm = 0.0;
                for p in points {
                    norm += self.value(record, p).abs();
                }
                norm
            }
            BoundedQuantity::Squares => points.map(|p| self.value(record, p).powi(2)).sum(),
        }
    }

    /// A bound on the quantity over a cell.
    fn bound_in(&self, quantity: BoundedQuantity, cell: &RecordBox) -> Result<f64, Unbounded> {
        match quantity {
            BoundedQuantity::Value(p) => self.value_range(cell, p).map(|range| range.hi),
            BoundedQuantity::Opposite(p) => self.value_range(cell, p).map(|range| -range.lo),
            BoundedQuantity::Norm => self.sum(cell, size),
            BoundedQuantity::Squares => self.sum(cell, squared_slope),
        }
    }

    /// All that the expression can be at lattice point `p`: what the intervals say, and what the mean value theorem says.
    fn value_range(&self, cell: &RecordBox, p: usize) -> Result<Interval, Unbounded> {
        let here = self.slope(cell, p);
        let middle = self
            .slope(&cell.map(|side| side.split_at_middle().0), p)
            .value;
        let mut away = middle;
        for (side, slope) in cell.iter().zip(here.slopes) {
            away = away.plus(slope.times(side.split_at_middle().1));
        }
        if let Some(fault) = here.value.fault {
            return Err(fault);
        }
        if away.fault.is_some() {
            return Ok(here.value);
        }
        Ok(Interval::new(
            here.value.lo.max(away.lo),
            here.value.hi.min(away.hi),
        ))
    }

    /// The most that the sum of `part` of the values over the lattice can be; slopes of points on both sides of a record cancel.
    fn sum(&self, cell: &RecordBox, part: fn(Slope) -> Slope) -> Result<f64, Unbounded> {
        let mut plain = Interval::ZERO;
        let mut middle = Interval::ZERO;
        let mut slopes = [Interval::ZERO; SIDES];
        let centre = cell.map(|side| side.split_at_middle().0);
        for p in 0..self.points.len() {
            // An absolute value has the slopes of its own kink.
            let here = part(self.slope(cell, p));
            plain = plain.plus(here.value);
            middle = middle.plus(part(self.slope(&centre, p)).value);
            for (sum, slope) in slopes.iter_mut().zip(here.slopes) {
                *sum = sum.plus(slope);
            }
        }
        for (side, slope) in cell.iter().zip(slopes) {
            middle = middle.plus(slope.times(side.split_at_middle().1));
        }
        if let Some(fault) = plain.fault {
            return Err(fault);
        }
        if middle.fault.is_some() {
            return Ok(plain.hi);
        }
        Ok(plain.hi.min(middle.hi))
    }

    fn slope(&self, cell: &RecordBox, p: usize) -> Slope {
        let mut variables = [Slope::fixed(Interval::ZERO); VARIABLES];
        for place in 0..self.sides {
            variables[place] = Slope::variable(cell[place], place);
        }
        for (variable, y) in variables.iter_mut().skip(self.sides).zip(&self.points[p]) {
            *variable = Slope::fixed(Interval::point(*y));
        }
        self.tree.evaluate(&variables)
    }

    fn widest_side(&self, cell: &RecordBox) -> usize {
        (0..self.sides)
            .max_by(|a, b| {
                self.side_share(cell, *a)
                    .total_cmp(&self.side_share(cell, *b))
            })
            .unwrap_or(0)
    }

    /// A side's part of the whole domain.
    fn side_share(&self, cell: &RecordBox, side: usize) -> f64 {
        let width = self.widths[side];
        if width > 0.0 {
            cell[side].width() / width
        } else {
            0.0
        }
    }
}

/// A number that is bounded over all records.
#[derive(Clone, Copy)]
enum BoundedQuantity {
    /// The value at a lattice point.
    Value(usize),
    /// The value with the other sign.
    Opposite(usize),
    /// The sum of all values in size.
    Norm,
    /// The sum of their squares.
    Squares,
}

fn size(value: Slope) -> Slope {
    value.unary(Unary::Abs)
}

fn squared_slope(value: Slope) -> Slope {
    size(value).binary(Binary::Times, size(value))
}

/// The search for a bound on one quantity.
struct BoundSearch<'a> {
    formula: &'a Formula,
    quantity: BoundedQuantity,
    /// The largest value at the corners of the domain, in size.
    scale: f64,
    /// The largest that the quantity was found to be.
    reached: f64,
    open: BinaryHeap<OpenBox>,
}

impl BoundSearch<'_> {
    fn search_bound(mut self) -> Result<f64, Unbounded> {
        for cell in &self.formula.cells {
            self.open_cell(*cell, f64::INFINITY);
        }
        let effort = (EVALUATIONS / self.formula.points.len()).max(FEWEST_CELLS);
        let mut looked = 0;
        while let Some(widest) = self.open.pop() {
            let is_near = widest.most <= self.reached + self.near_distance();
            let side = self.formula.widest_side(&widest.cell);
            let is_wide = self.formula.side_share(&widest.cell, side) > 1e-12;
            if is_near || !is_wide || looked >= effort {
                return if widest.most.is_finite() {
                    Ok(widest.most)
                } else {
                    Err(widest.fault.unwrap_or(Unbounded::TooLarge))
                };
            }
            let whole = widest.cell[side];
            for half in [
                Interval::new(whole.lo, whole.middle()),
                Interval::new(whole.middle(), whole.hi),
            ] {
                let mut cell = widest.cell;
                cell[side] = half;
                self.open_cell(cell, widest.most);
                looked += 1;
            }
        }
        Err(Unbounded::TooLarge)
    }

    /// Opens a cell in which the quantity is at most `parent`.
    fn open_cell(&mut self, cell: RecordBox, parent: f64) {
        let record = cell.map(|side| side.middle());
        let value = self.formula.value_of(self.quantity, &record);
        if value > self.reached {
            self.reached = value;
        }
        let open = match self.formula.bound_in(self.quantity, &cell) {
            Ok(most) => OpenBox {
                most: most.min(parent),
                fault: None,
                cell,
            },
            Err(fault) => OpenBox {
                most: parent,
                fault: Some(fault),
                cell,
            },
        };
        self.open.push(open);
    }

    /// Distance at which a bound is near what was reached.
    fn near_distance(&self) -> f64 {
        match self.quantity {
            // Within twice the part of a root.
            BoundedQuantity::Squares => 2.0 * NEAR * self.reached.max(self.scale * self.scale),
            _ => NEAR * self.reached.abs().max(self.scale),
        }
    }
}

fn cell_corner(cell: &RecordBox, end: usize) -> [f64; SIDES] {
    cell.map(|side| [side.lo, side.middle(), side.hi][end])
}

/// A cell that is not settled, and the most that can be inside.
struct OpenBox {
    most: f64,
    fault: Option<Unbounded>,
    cell: RecordBox,
}

impl Ord for OpenBox {
    fn cmp(&self, other: &Self) -> Ordering {
        self.most.total_cmp(&other.most)
    }
}

impl PartialOrd for OpenBox {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OpenBox {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OpenBox {}
