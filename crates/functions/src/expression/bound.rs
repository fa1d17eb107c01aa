//! The largest that a record can make something: branch and bound over the domain, with a public and bounded effort.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::formula::{Formula, VARIABLES};
use bernstream_synopsis::expression::error::Unbounded;
use bernstream_synopsis::expression::interval::{Interval, SIDES, Slope};
use bernstream_synopsis::expression::parse::{Binary, Number, Unary};

/// A box of records: a side a variable.
pub(super) type Cell = [Interval; SIDES];

/// The search ends where the bound is within this part of what was reached,
const NEAR: f64 = 0.002;
/// or after so many evaluations of the expression, and no fewer than so many cells.
const EVALUATIONS: usize = 1 << 18;
const FEWEST_CELLS: usize = 64;

/// What one record can add: the least and the most at each lattice point, and the most in the 1-norm and in the 2-norm over
/// the lattice.
pub(super) struct Bounds {
    pub points: Vec<[f64; 2]>,
    pub norm: f64,
    pub length: f64,
}

impl Formula {
    /// Bounds that hold for every record of the domain.
    pub(super) fn bounds(&self) -> Result<Bounds, Unbounded> {
        let effort = (EVALUATIONS / self.points.len()).max(FEWEST_CELLS);
        let magnitude = |record: &[f64; SIDES], sum: fn(f64, f64) -> f64| {
            (0..self.points.len())
                .map(|p| self.value(record, p).abs())
                .fold(0.0, sum)
        };
        // What matters is how near the bound is to the largest value anywhere.
        let corners = self
            .cells
            .iter()
            .flat_map(|cell| [0, 1, 2].map(|end| corner(cell, end)));
        let largest = corners
            .map(|record| magnitude(&record, f64::max))
            .fold(0.0, f64::max);
        let near = |reached: f64| NEAR * reached.abs().max(largest);
        let mut points = Vec::with_capacity(self.points.len());
        for p in 0..self.points.len() {
            let most = |cell: &Cell| self.range(cell, p).map(|range| range.hi);
            let most = self.largest(most, |record| self.value(record, p), near, effort)?;
            let least = |cell: &Cell| self.range(cell, p).map(|range| -range.lo);
            let least = self.largest(least, |record| -self.value(record, p), near, effort)?;
            points.push([-least, most]);
        }
        let all: Interval = points.iter().fold(Interval::ZERO, |sum, [lo, hi]| {
            sum.plus(Interval::new(*lo, *hi).abs())
        });
        let size = |value: Slope| value.unary(Unary::Abs);
        let norm = |cell: &Cell| self.sum(cell, size);
        let norm = self
            .largest(norm, |record| magnitude(record, |a, b| a + b), near, effort)?
            .min(all.hi);
        let square =
            |cell: &Cell| self.sum(cell, |value| size(value).binary(Binary::Times, size(value)));
        let squared = |record: &[f64; SIDES]| {
            (0..self.points.len())
                .map(|p| self.value(record, p).powi(2))
                .sum::<f64>()
        };
        // Within twice the part of a root.
        let near = |reached: f64| 2.0 * NEAR * reached.max(largest * largest);
        // A square can be too large where a value is not.
        let square = self
            .largest(square, squared, near, effort)
            .unwrap_or(f64::INFINITY);
        let length = square.max(0.0).sqrt().next_up().min(norm);
        Ok(Bounds {
            points,
            norm,
            length,
        })
    }

    /// All that the expression can be at lattice point `p`: what the intervals say, and what the mean value theorem says.
    fn range(&self, cell: &Cell, p: usize) -> Result<Interval, Unbounded> {
        let here = self.slope(cell, p);
        let middle = self.slope(&cell.map(|side| side.halved().0), p).value;
        let mut away = middle;
        for (side, slope) in cell.iter().zip(here.slopes) {
            away = away.plus(slope.times(side.halved().1));
        }
        match (here.value.fault, away.fault) {
            (Some(fault), _) => Err(fault),
            (None, Some(_)) => Ok(here.value),
            (None, None) => Ok(Interval::new(
                here.value.lo.max(away.lo),
                here.value.hi.min(away.hi),
            )),
        }
    }

    /// The most that the sum of `of` the values over the lattice can be; slopes of points on both sides of a record cancel.
    fn sum(&self, cell: &Cell, of: impl Fn(Slope) -> Slope) -> Result<f64, Unbounded> {
        let mut plain = Interval::ZERO;
        let mut middle = Interval::ZERO;
        let mut slopes = [Interval::ZERO; SIDES];
        let centre = cell.map(|side| side.halved().0);
        for p in 0..self.points.len() {
            // An absolute value has the slopes of its own kink.
            let here = of(self.slope(cell, p));
            plain = plain.plus(here.value);
            middle = middle.plus(of(self.slope(&centre, p)).value);
            for (sum, slope) in slopes.iter_mut().zip(here.slopes) {
                *sum = sum.plus(slope);
            }
        }
        for (side, slope) in cell.iter().zip(slopes) {
            middle = middle.plus(slope.times(side.halved().1));
        }
        match (plain.fault, middle.fault) {
            (Some(fault), _) => Err(fault),
            (None, Some(_)) => Ok(plain.hi),
            (None, None) => Ok(plain.hi.min(middle.hi)),
        }
    }

    fn slope(&self, cell: &Cell, p: usize) -> Slope {
        let mut variables = [Slope::fixed(Interval::ZERO); VARIABLES];
        for (place, (variable, side)) in variables
            .iter_mut()
            .zip(cell.iter().take(self.sides))
            .enumerate()
        {
            *variable = Slope::variable(*side, place);
        }
        for (variable, y) in variables.iter_mut().skip(self.sides).zip(&self.points[p]) {
            *variable = Slope::fixed(Interval::point(*y));
        }
        self.tree.evaluate(&variables)
    }

    /// A bound on `at` over all records, where `above` bounds it over a cell.
    fn largest(
        &self,
        above: impl Fn(&Cell) -> Result<f64, Unbounded>,
        at: impl Fn(&[f64; SIDES]) -> f64,
        near: impl Fn(f64) -> f64,
        effort: usize,
    ) -> Result<f64, Unbounded> {
        let mut reached = f64::NEG_INFINITY;
        let mut open = BinaryHeap::new();
        let mut look = |cell: Cell, parent: f64, open: &mut BinaryHeap<Open>| {
            let value = at(&cell.map(|side| side.middle()));
            reached = if value > reached { value } else { reached };
            match above(&cell) {
                Ok(most) => open.push(Open {
                    most: most.min(parent),
                    fault: None,
                    cell,
                }),
                Err(fault) => open.push(Open {
                    most: parent,
                    fault: Some(fault),
                    cell,
                }),
            }
            reached
        };
        let mut best = f64::NEG_INFINITY;
        for cell in &self.cells {
            best = look(*cell, f64::INFINITY, &mut open);
        }
        let mut looked = 0;
        while let Some(widest) = open.pop() {
            let is_near = widest.most <= best + near(best);
            let side = (0..self.sides).max_by(|a, b| {
                self.share(&widest.cell, *a)
                    .total_cmp(&self.share(&widest.cell, *b))
            });
            let Some(side) = side.filter(|side| {
                self.share(&widest.cell, *side) > 1e-12 && !is_near && looked < effort
            }) else {
                let fault = widest.fault.unwrap_or(Unbounded::TooLarge);
                return if widest.most.is_finite() {
                    Ok(widest.most)
                } else {
                    Err(fault)
                };
            };
            let whole = widest.cell[side];
            for half in [
                Interval::new(whole.lo, whole.middle()),
                Interval::new(whole.middle(), whole.hi),
            ] {
                let mut cell = widest.cell;
                cell[side] = half;
                best = look(cell, widest.most, &mut open);
                looked += 1;
            }
        }
        Err(Unbounded::TooLarge)
    }

    /// A side's part of the whole domain.
    fn share(&self, cell: &Cell, side: usize) -> f64 {
        let width = self.widths[side];
        if width > 0.0 {
            cell[side].width() / width
        } else {
            0.0
        }
    }
}

fn corner(cell: &Cell, end: usize) -> [f64; SIDES] {
    cell.map(|side| [side.lo, side.middle(), side.hi][end])
}

/// A cell that is not settled, and the most that can be inside.
struct Open {
    most: f64,
    fault: Option<Unbounded>,
    cell: Cell,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.most.total_cmp(&other.most)
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}
