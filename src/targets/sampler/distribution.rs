//! What the values of a public prior are drawn from.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Normal};
use serde::{Deserialize, Serialize};

/// What one value of a record is drawn from, in natural units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PriorDistribution {
    Uniform {
        min: f64,
        max: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// From `min` on, `mean` the mean of what is above it.
    Exponential {
        min: f64,
        mean: f64,
    },
    /// One of these values, as likely as its weight; without weights all alike.
    Points {
        values: Vec<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<Vec<f64>>,
    },
}

impl PriorDistribution {
    /// Whether there is something to draw.
    pub(super) fn is_proper(&self) -> bool {
        match self {
            PriorDistribution::Uniform { min, max } => min <= max && (max - min).is_finite(),
            PriorDistribution::Normal { mean, deviation } => {
                mean.is_finite() && *deviation >= 0.0 && deviation.is_finite()
            }
            PriorDistribution::Exponential { min, mean } => min.is_finite() && *mean > 0.0 && mean.is_finite(),
            PriorDistribution::Points { values, weights } => {
                let fits = |weights: &Vec<f64>| {
                    let total: f64 = weights.iter().sum();
                    weights.len() == values.len()
                        && weights.iter().all(|w| *w >= 0.0)
                        && total > 0.0
                        && total.is_finite()
                };
                !values.is_empty() && values.iter().all(|value| value.is_finite()) && weights.as_ref().is_none_or(fits)
            }
        }
    }

    pub(super) fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        match self {
            PriorDistribution::Uniform { min, max } => min + (max - min) * rng.random::<f64>(),
            PriorDistribution::Normal { mean, deviation } => {
                Normal::new(*mean, *deviation).map_or(*mean, |normal| normal.sample(rng))
            }
            PriorDistribution::Exponential { min, mean } => min + mean * rng.sample::<f64, _>(Exp1),
            PriorDistribution::Points { values, weights } => {
                let weight =
                    |i: usize| weights.as_ref().and_then(|weights| weights.get(i)).map_or(1.0, |weight| *weight);
                let mut left = rng.random::<f64>() * (0..values.len()).map(weight).sum::<f64>();
                let chosen = values.iter().enumerate().find(|(i, _)| {
                    left -= weight(*i);
                    left < 0.0
                });
                chosen.map(|(_, value)| *value).or(values.last().copied()).unwrap_or_default()
            }
        }
    }
}
