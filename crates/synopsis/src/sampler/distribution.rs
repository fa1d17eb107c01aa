//! Laws that the values of a public prior are drawn from.

use serde::{Deserialize, Serialize};

/// Law that one value of a record is drawn from, in natural units.
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
    /// Tests that there is something to draw.
    pub fn is_proper(&self) -> bool {
        match self {
            PriorDistribution::Uniform { min, max } => min <= max && (max - min).is_finite(),
            PriorDistribution::Normal { mean, deviation } => {
                mean.is_finite() && *deviation >= 0.0 && deviation.is_finite()
            }
            PriorDistribution::Exponential { min, mean } => {
                min.is_finite() && *mean > 0.0 && mean.is_finite()
            }
            PriorDistribution::Points { values, weights } => {
                let have_values =
                    !values.is_empty() && values.iter().all(|value| value.is_finite());
                let Some(weights) = weights else {
                    return have_values;
                };
                let total: f64 = weights.iter().sum();
                have_values
                    && weights.len() == values.len()
                    && weights.iter().all(|weight| *weight >= 0.0)
                    && total > 0.0
                    && total.is_finite()
            }
        }
    }
}
