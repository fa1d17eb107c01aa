//! Proper densities and distribution functions: post-processing of a reading, at no price.

use crate::domain::unit_point;
use crate::error::SynopsisError;
use crate::evaluator::{Evaluator, cube_midpoints};

/// Steps of a distribution function.
const STEPS: u32 = 1_000;

/// A density that is nowhere negative and integrates to 1: a reading clipped at 0 and divided by its integral.
///
/// Clipping brings no point further from a density than the reading was.
#[derive(Clone, Debug)]
pub struct ProperDensity {
    evaluator: Evaluator,
    mass: f64,
}

/// A distribution function on a domain of one axis: it rises from 0 to 1 and never falls.
///
/// The nearest such function, in least squares, to the running integral of a reading (pool adjacent violators; `[Aye55]`), divided by the whole of it.
#[derive(Clone, Debug)]
pub struct CumulativeDistribution {
    evaluator: Evaluator,
    /// Values at the ends of equal steps, the first 0 and the last 1.
    values: Vec<f64>,
}

impl Evaluator {
    /// The density that this reading becomes, by the midpoint rule as in [`Evaluator::total_mass`].
    ///
    /// # Errors
    ///
    /// If the reading is nowhere above 0.
    pub fn proper_density(self) -> Result<ProperDensity, SynopsisError> {
        let points = cube_midpoints(self.axes().len());
        let mean = points
            .iter()
            .map(|y| self.value_in_cube(y).max(0.0))
            .sum::<f64>()
            / points.len() as f64;
        let mass = self.volume() * mean;
        if mass > 0.0 {
            Ok(ProperDensity {
                evaluator: self,
                mass,
            })
        } else {
            Err(SynopsisError::NoMass { mass })
        }
    }

    /// The distribution function that this reading becomes.
    ///
    /// # Errors
    ///
    /// If there is more than one axis, or the integral over the domain is not above 0.
    pub fn distribution_function(self) -> Result<CumulativeDistribution, SynopsisError> {
        if self.axes().len() != 1 {
            return Err(SynopsisError::NotOneAxis {
                axes: self.axes().len(),
            });
        }
        let mut sum = 0.0;
        let mut running = Vec::with_capacity(STEPS as usize);
        for step in 0..STEPS {
            sum += self.value_in_cube(&[(f64::from(step) + 0.5) / f64::from(STEPS)])
                / f64::from(STEPS);
            running.push(sum);
        }
        if sum.is_nan() || sum <= 0.0 {
            return Err(SynopsisError::NoMass {
                mass: sum * self.volume(),
            });
        }
        let mut values = vec![0.0];
        values.extend(
            isotonic_regression(&running)
                .into_iter()
                .map(|value| (value / sum).clamp(0.0, 1.0)),
        );
        if let Some(last) = values.last_mut() {
            *last = 1.0;
        }
        Ok(CumulativeDistribution {
            evaluator: self,
            values,
        })
    }
}

impl ProperDensity {
    /// The density at a point of the domain, in natural units.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        Ok(self.evaluator.evaluate(point)?.max(0.0) / self.mass)
    }

    /// Mass that the reading was divided by.
    pub fn mass(&self) -> f64 {
        self.mass
    }
}

impl CumulativeDistribution {
    /// The part of the mass at or below a point of the domain.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the number of steps"
    )]
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, SynopsisError> {
        let point = unit_point(self.evaluator.axes(), point)?;
        let at = point.first().copied().unwrap_or(f64::NAN) * f64::from(STEPS);
        let before = (at.floor() as usize).min(STEPS as usize - 1);
        Ok(match self.values.get(before..before + 2) {
            Some([low, high]) => low + (high - low) * (at - before as f64),
            _ => f64::NAN,
        })
    }
}

/// The rising sequence nearest to `values` in least squares.
pub(super) fn isotonic_regression(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<EqualBlock> = Vec::new();
    for value in values {
        let mut next = EqualBlock {
            sum: *value,
            count: 1,
        };
        while let Some(last) = blocks.pop_if(|last| !last.is_at_most(&next)) {
            next.sum += last.sum;
            next.count += last.count;
        }
        blocks.push(next);
    }
    let mut rising = Vec::with_capacity(values.len());
    for block in blocks {
        rising.extend(std::iter::repeat_n(block.mean(), block.count));
    }
    rising
}

/// A block of equal values.
struct EqualBlock {
    sum: f64,
    count: usize,
}

impl EqualBlock {
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn is_at_most(&self, other: &EqualBlock) -> bool {
        self.mean() <= other.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violators_are_pooled() {
        assert_eq!(
            isotonic_regression(&[1.0, 3.0, 2.0, 4.0]),
            [1.0, 2.5, 2.5, 4.0]
        );
        assert_eq!(isotonic_regression(&[3.0, 2.0, 1.0]), [2.0; 3]);
        assert_eq!(isotonic_regression(&[0.0, 1.0, 1.0]), [0.0, 1.0, 1.0]);
    }
}
