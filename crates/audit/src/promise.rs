//! The curve that a promise allows an attacker.

use super::law::NoiseLaw;
use bernstream_noise::accountant::concentrated;
use bernstream_noise::gaussian::delta_curve;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::calibrate::{Delta, Rho};
use bernstream_synopsis::description::{PrivacyDefinition, PrivacyDescription};
use bernstream_synopsis::price::Price;

/// The deltas at which a promise of zero-concentrated differential privacy is read, in 10^-18.
const DELTAS: [u64; 12] = [
    500_000_000_000_000_000,
    300_000_000_000_000_000,
    200_000_000_000_000_000,
    100_000_000_000_000_000,
    50_000_000_000_000_000,
    20_000_000_000_000_000,
    10_000_000_000_000_000,
    1_000_000_000_000_000,
    100_000_000_000_000,
    10_000_000_000_000,
    1_000_000_000_000,
    1_000_000_000,
];

/// The cost of a change, beside what is promised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeCost {
    /// `epsilon`, `rho`, or the `delta` at the promised epsilon.
    pub of: &'static str,
    pub found: f64,
    pub promised: f64,
}

/// A promise as guarantees, all of which hold.
#[derive(Clone, Debug, PartialEq)]
pub struct PromisedGuarantees(Vec<Guarantee>);

/// A guarantee of (epsilon, delta)-differential privacy.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Guarantee {
    epsilon: f64,
    delta: f64,
}

impl Guarantee {
    fn pure(epsilon: f64) -> Self {
        Guarantee {
            epsilon,
            delta: 0.0,
        }
    }
}

impl PromisedGuarantees {
    /// The promise of one release of one window, private choices included. Of a declared plan it is that of the whole plan; of random
    /// differential privacy that which holds whatever the records are.
    pub fn from_privacy(privacy: &PrivacyDescription) -> Self {
        if let PrivacyDefinition::Random(random) = &privacy.definition {
            return PromisedGuarantees(vec![Guarantee::pure(random.epsilon_at_worst)]);
        }
        let implied = privacy.implies.map(|implied| Guarantee {
            epsilon: implied.epsilon.to_f64(),
            delta: implied.delta.to_f64(),
        });
        PromisedGuarantees(match privacy.price {
            Price::Pure(epsilon) => vec![Guarantee::pure(epsilon.to_f64())],
            Price::Approximate { epsilon, delta } => vec![Guarantee {
                epsilon: epsilon.to_f64(),
                delta: delta.to_f64(),
            }],
            Price::Concentrated(rho) => guarantees_of_rho(rho),
            Price::Slots(_) => implied.into_iter().collect(),
        })
    }

    /// The least part of false negatives that is left to an attacker who makes this part of false positives:
    /// `max(0, 1 - delta - exp(epsilon) a, exp(-epsilon) (1 - delta - a))`, the largest of all pairs (`[DRS22]`, proposition 3).
    pub fn least_false_negatives(&self, positives: f64) -> f64 {
        let mut least: f64 = 0.0;
        for Guarantee { epsilon, delta } in &self.0 {
            let rest = 1.0 - delta - positives;
            let negatives = 1.0 - delta - epsilon.exp() * positives;
            least = least.max(negatives.max((-epsilon).exp() * rest));
        }
        least
    }

    /// The cost of a change at the declared scale, and the price: the largest epsilon or rho, or the delta at the promised epsilon. `None`
    /// where the price says nothing about one window, or nothing that holds for every pair.
    ///
    /// `found` is [`NoiseLaw::norm_in_scales`], of all keys, and `declared` the same of the declared change; the larger one is held against the
    /// price, but for pure noise at a price in rho, whose calibration may know more of the declared change than its norm. Noise of pure differential privacy has that epsilon; its rho is that of
    /// [`bernstream_noise::concentrated`] for Laplace and ball noise, and `epsilon tanh(epsilon / 2)` of any other. Gaussian noise has `distance^2 / 2`
    /// (`[BS16]`), and the delta of `[BW18]`, theorem 8.
    pub fn cost_of_change(
        privacy: &PrivacyDescription,
        law: &NoiseLaw,
        found: f64,
        declared: f64,
    ) -> Option<ChangeCost> {
        if matches!(privacy.definition, PrivacyDefinition::Random(_)) {
            return None;
        }
        let is_pure = law.noise.is_pure();
        let distance = found.max(declared);
        match privacy.price {
            Price::Pure(epsilon) if is_pure => Some(ChangeCost {
                of: "epsilon",
                found: distance,
                promised: epsilon.to_f64(),
            }),
            Price::Approximate { epsilon, delta } if is_pure && delta == Delta::ZERO => {
                Some(ChangeCost {
                    of: "epsilon",
                    found: distance,
                    promised: epsilon.to_f64(),
                })
            }
            Price::Approximate { epsilon, delta } if !is_pure => Some(ChangeCost {
                of: "delta",
                found: delta_curve(distance, epsilon.to_f64()),
                promised: delta.to_f64(),
            }),
            Price::Concentrated(rho) => Some(ChangeCost {
                of: "rho",
                found: rho_of(law, if is_pure { found } else { distance }),
                promised: rho.to_f64(),
            }),
            // The Laplace noise of `[AR17]` with a delta may have a larger epsilon.
            Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => None,
        }
    }

    /// The promise in words.
    pub fn in_words(privacy: &PrivacyDescription) -> String {
        if let PrivacyDefinition::Random(random) = &privacy.definition {
            let epsilon = random.epsilon_at_worst;
            return format!("epsilon {epsilon} whatever the records are");
        }
        match privacy.price {
            Price::Pure(epsilon) => format!("epsilon {epsilon}"),
            Price::Approximate { epsilon, delta } => format!("epsilon {epsilon}, delta {delta}"),
            Price::Concentrated(rho) => format!("rho {rho}"),
            Price::Slots(_) => match privacy.implies {
                Some(implied) => format!(
                    "epsilon {}, delta {} of the whole plan",
                    implied.epsilon, implied.delta
                ),
                None => "a declared plan".to_owned(),
            },
        }
    }
}

/// In floats; the whole numbers that the noise is made with are a few parts in 10^12 above.
fn rho_of(law: &NoiseLaw, t: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 2^20 values")]
    let values = law.values as f64;
    let of_any = t * (t / 2.0).tanh();
    match law.noise {
        NoiseDistribution::DiscreteGaussian => t * t / 2.0,
        NoiseDistribution::DiscreteLaplace => t + (-t).exp_m1(),
        NoiseDistribution::Ball => of_any.min(if t <= values {
            t * t / (2.0 * values)
        } else {
            t - values / 2.0
        }),
        NoiseDistribution::DiscreteCube => of_any,
    }
}

fn guarantees_of_rho(rho: Rho) -> Vec<Guarantee> {
    let mut guarantees = Vec::new();
    for delta in DELTAS.map(Delta::from_quintillionths) {
        if let Some(epsilon) = concentrated::epsilon_of(rho, delta) {
            guarantees.push(Guarantee {
                epsilon: epsilon.to_f64(),
                delta: delta.to_f64(),
            });
        }
    }
    guarantees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_that_of_the_definition_and_says_little_where_little_is_promised() {
        let pure = PromisedGuarantees(vec![Guarantee::pure(1.0)]);
        let e = 1.0_f64.exp();
        for (positives, least) in [(0.0, 1.0), (0.1, 1.0 - 0.1 * e), (0.5, 0.5 / e), (1.0, 0.0)] {
            assert!(
                (pure.least_false_negatives(positives) - least).abs() < 1e-12,
                "{positives}"
            );
        }
        // Gaussian noise of mu = 1, which costs rho = 1/2: the attacker's best is less than what rho allows.
        let rho = PromisedGuarantees(guarantees_of_rho(Rho::from_trillionths(500_000_000_000)));
        for (positives, gaussian) in [(0.05, 0.740), (0.158_655, 0.5), (0.5, 0.158_655)] {
            let least = rho.least_false_negatives(positives);
            assert!(
                least <= gaussian && least > 0.4 * gaussian,
                "{positives}: {least}"
            );
        }
    }
}
