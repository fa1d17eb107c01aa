//! How many records lie in a range, which part of all they are, and what their label is.

use super::ratio::{Parts, fieller};
use super::{Estimate, Interval, Tables};
use crate::cholesky::dot;
use crate::domain::unit_point;
use crate::error::Error;
use crate::histogram::Spline;

/// A range of the domain: a product of intervals. Cells that it covers in part count in part, as the spline is spread.
#[derive(Clone, Debug)]
pub struct Range<'t> {
    tables: &'t Tables,
    /// How much of each node lies in it.
    weights: Vec<f64>,
}

impl Tables {
    /// The records between `low` and `high` on each axis, in natural units. At an end of the domain nothing is lost: what the spline spreads
    /// beyond it counts.
    ///
    /// # Errors
    ///
    /// If there are not as many intervals as axes, one is empty, or one reaches beyond the domain.
    pub fn range(&self, sides: &[[f64; 2]]) -> Result<Range<'_>, Error> {
        let [low, high] =
            [0, 1].map(|end| sides.iter().map(|side| side[end]).collect::<Vec<f64>>());
        let low = unit_point(&self.axes, &low)?;
        let high = unit_point(&self.axes, &high)?;
        if low.iter().zip(&high).any(|(low, high)| low >= high) {
            return Err(Error::EmptyRange);
        }
        let weights = low
            .iter()
            .zip(&high)
            .enumerate()
            .map(|(axis, (low, high))| {
                let low = self.below(axis, *low);
                let high = self.below(axis, *high);
                high.into_iter()
                    .zip(low)
                    .map(|(high, low)| high - low)
                    .collect::<Vec<f64>>()
            });
        let weights = weights.fold(vec![1.0], |product, axis| {
            product
                .iter()
                .flat_map(|weight| axis.iter().map(move |along| weight * along))
                .collect()
        });
        Ok(Range {
            tables: self,
            weights,
        })
    }

    /// Of each node of an axis, how much of what lies of its spline inside the cube is below `x`: a node at an end has records on one side
    /// only.
    pub(super) fn below(&self, axis: usize, x: f64) -> Vec<f64> {
        let steps = self.basis.steps.get(axis).copied().unwrap_or(1);
        let nodes = self.basis.nodes().swap_remove(axis);
        let of = |node: f64, x: f64| integral(self.basis.spline, (x - node) * f64::from(steps));
        let part = |node: f64| {
            let none = of(node, 0.0);
            let all = of(node, 1.0);
            (of(node, x.clamp(0.0, 1.0)) - none) / (all - none)
        };
        nodes.into_iter().map(part).collect()
    }
}

impl Range<'_> {
    /// The number of records.
    pub fn count(&self) -> Estimate {
        let tables = self.tables;
        let value = dot(&tables.counts, &self.weights);
        let length = (tables.count() as f64 * dot(&self.weights, &self.weights)).sqrt();
        Estimate {
            value,
            interval: Some(Interval::around(value, tables.within.pointwise * length)),
        }
    }

    /// The part of all records.
    pub fn share(&self) -> Estimate {
        let tables = self.tables;
        let g = &self.weights;
        let part = dot(&tables.counts, g);
        let all = tables.all();
        let q = tables.within.pointwise * (tables.count() as f64).sqrt();
        let interval = fieller(part, all, q, [dot(g, g), g.iter().sum(), g.len() as f64]);
        let interval = interval.map(|interval| interval.map(|share| share.clamp(0.0, 1.0)));
        Estimate {
            value: if all > 0.0 {
                (part / all).clamp(0.0, 1.0)
            } else {
                f64::NAN
            },
            interval,
        }
    }

    /// The part of the records of the range that are in a table: a class, or how near to its largest value a number is.
    ///
    /// # Errors
    ///
    /// If there is no such table, or no label.
    pub fn probability(&self, table: usize) -> Result<Estimate, Error> {
        let (tables, table) = (self.tables, self.tables.table(table)?);
        let parts = Parts::of_weights(
            tables.sums(&self.weights),
            dot(&self.weights, &self.weights),
        );
        let interval = parts.interval(table, tables.within.pointwise);
        Ok(Estimate {
            value: tables.probabilities(&parts)[table],
            interval,
        })
    }

    /// The mean label of the records of the range.
    ///
    /// # Errors
    ///
    /// If the label is no number.
    pub fn mean(&self) -> Result<Estimate, Error> {
        self.tables.number()?;
        let Estimate { value, interval } = self.probability(1)?;
        let natural = |p| self.tables.natural(p);
        Ok(Estimate {
            value: natural(value),
            interval: interval.map(|interval| interval.map(natural)),
        })
    }
}

/// How much of a spline lies below a place that is so many steps above its node.
fn integral(spline: Spline, u: f64) -> f64 {
    match spline {
        Spline::Box => (u + 0.5).clamp(0.0, 1.0),
        Spline::Linear if u <= 0.0 => (1.0 + u).max(0.0).powi(2) / 2.0,
        Spline::Linear => 1.0 - (1.0 - u).max(0.0).powi(2) / 2.0,
        Spline::Quadratic if u <= -0.5 => (u + 1.5).max(0.0).powi(3) / 6.0,
        Spline::Quadratic if u <= 0.5 => 0.5 + 0.75 * u - u.powi(3) / 3.0,
        Spline::Quadratic => 1.0 - (1.5 - u).max(0.0).powi(3) / 6.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_rise_from_none_to_all_and_their_slope_is_the_spline() {
        for spline in Spline::ALL {
            assert_eq!([-1.5, 1.5].map(|u| integral(spline, u)), [0.0, 1.0]);
            for i in -299..300 {
                let u = f64::from(i) / 200.0;
                let slope = (integral(spline, u + 1e-6) - integral(spline, u - 1e-6)) / 2e-6;
                let share = match spline {
                    Spline::Box => f64::from(u8::from(u.abs() < 0.5)),
                    Spline::Linear => (1.0 - u.abs()).max(0.0),
                    Spline::Quadratic if u.abs() <= 0.5 => 0.75 - u * u,
                    Spline::Quadratic => (1.5 - u.abs()).max(0.0).powi(2) / 2.0,
                };
                let is_corner = spline == Spline::Box && (u.abs() - 0.5).abs() < 1e-3;
                assert!(
                    is_corner || (slope - share).abs() < 1e-5,
                    "{spline} at {u}: {slope}, not {share}"
                );
            }
        }
    }
}
