//! Records of a range: how many lie in it, which part of all they are, and what their label is.

use super::ratio::{RatioParts, fieller_interval};
use super::{ConfidenceInterval, Estimate, Tables};
use crate::cholesky::dot_product;
use crate::domain::unit_point;
use crate::error::SynopsisError;
use crate::histogram::Spline;
use crate::tensor::outer_product;

/// A range of the domain: a product of intervals. Cells that it covers in part count in part, as the spline is spread.
#[derive(Clone, Debug)]
pub struct TableRange<'t> {
    tables: &'t Tables,
    /// Part of each node that lies in it.
    weights: Vec<f64>,
}

impl Tables {
    /// The records between `low` and `high` on each axis, in natural units. At an end of the domain nothing is lost: what the spline spreads
    /// beyond it counts.
    ///
    /// # Errors
    ///
    /// If there are not as many intervals as axes, one is empty, or one reaches beyond the domain.
    pub fn range(&self, sides: &[[f64; 2]]) -> Result<TableRange<'_>, SynopsisError> {
        let [low, high] =
            [0, 1].map(|end| sides.iter().map(|side| side[end]).collect::<Vec<f64>>());
        let low = unit_point(&self.axes, &low)?;
        let high = unit_point(&self.axes, &high)?;
        if low.iter().zip(&high).any(|(low, high)| low >= high) {
            return Err(SynopsisError::EmptyRange);
        }
        let mut weights = Vec::with_capacity(low.len());
        for (axis, (low, high)) in low.iter().zip(&high).enumerate() {
            let mut along = self.parts_below(axis, *high);
            for (part, below) in along.iter_mut().zip(self.parts_below(axis, *low)) {
                *part -= below;
            }
            weights.push(along);
        }
        Ok(TableRange {
            tables: self,
            weights: outer_product(&weights),
        })
    }

    /// Parts of the nodes of an axis that are below `x`, of what lies of their splines inside the cube: a node at an end has records on
    /// one side only.
    pub(super) fn parts_below(&self, axis: usize, x: f64) -> Vec<f64> {
        let spline = self.basis.spline;
        let steps = f64::from(self.basis.steps.get(axis).copied().unwrap_or(1));
        let mut parts = self.basis.nodes().swap_remove(axis);
        for part in &mut parts {
            let node = *part;
            let none = integral(spline, (0.0 - node) * steps);
            let all = integral(spline, (1.0 - node) * steps);
            let below = integral(spline, (x.clamp(0.0, 1.0) - node) * steps);
            *part = (below - none) / (all - none);
        }
        parts
    }
}

impl TableRange<'_> {
    /// The number of records.
    pub fn count(&self) -> Estimate {
        let tables = self.tables;
        let value = dot_product(&tables.counts, &self.weights);
        let length = (tables.count() as f64 * dot_product(&self.weights, &self.weights)).sqrt();
        Estimate {
            value,
            interval: Some(ConfidenceInterval::around(
                value,
                tables.within.pointwise * length,
            )),
        }
    }

    /// The part of all records.
    pub fn share(&self) -> Estimate {
        let tables = self.tables;
        let g = &self.weights;
        let part = dot_product(&tables.counts, g);
        let all = tables.all();
        let q = tables.within.pointwise * (tables.count() as f64).sqrt();
        let interval = fieller_interval(
            part,
            all,
            q,
            [dot_product(g, g), g.iter().sum(), g.len() as f64],
        )
        .map(|interval| interval.clamped(0.0, 1.0));
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
    pub fn probability(&self, table: usize) -> Result<Estimate, SynopsisError> {
        let tables = self.tables;
        let table = tables.check_table(table)?;
        let parts = RatioParts::of_weights(
            tables.table_sums(&self.weights),
            dot_product(&self.weights, &self.weights),
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
    pub fn mean(&self) -> Result<Estimate, SynopsisError> {
        self.tables.check_number()?;
        let probability = self.probability(1)?;
        Ok(Estimate {
            value: self.tables.label_of_probability(probability.value),
            interval: self.tables.natural_interval(probability.interval),
        })
    }
}

/// Part of a spline that lies below a place that is so many steps above its node.
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
