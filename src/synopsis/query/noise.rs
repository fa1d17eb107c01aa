//! How large a weighted sum of the noise of several values is: its standard deviation, and a quantile.

use std::f64::consts::PI;

use crate::synopsis::description::NoiseDistribution;

/// The noise of an answer.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct NoiseError {
    pub deviation: f64,
    /// With this probability the noise is at most this large, either sign.
    pub level: f64,
    pub half_width: f64,
}

const LEVEL: f64 = 0.95;

/// Weights below this part of the largest are left out of the shape of the law, not of its width.
const SMALLEST: f64 = 1e-6;
/// Steps of an integral, in turns over so many standard deviations, and the most of them.
const DEVIATIONS: f64 = 80.0;
const MOST_STEPS: usize = 40_000;
/// Where what is left of a characteristic function is left out.
const NEGLIGIBLE: f64 = 1e-8;

/// The noise of `sum_i w_i z_i`, `z` noise of `law` with this scale on as many values as there are weights.
///
/// The quantile is that of the continuous law, its characteristic function inverted to better than a part in a thousand,
/// which is added: the noise itself is on a grid that is billions of times finer.
pub(super) fn of(law: NoiseDistribution, scale: f64, weights: &[f64]) -> NoiseError {
    let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
    if length == 0.0 {
        return NoiseError { deviation: 0.0, level: LEVEL, half_width: 0.0 };
    }
    let largest = weights.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
    let few: Vec<f64> = weights.iter().map(|w| w.abs()).filter(|w| *w >= SMALLEST * largest).collect();
    let count = weights.len() as f64;
    let (deviation, quantile) = match law {
        // `1 / (1 + w^2 u^2)` is the characteristic function of one value, and its own envelope.
        NoiseDistribution::DiscreteLaplace => {
            let deviation = 2.0_f64.sqrt() * length;
            let log = |u: f64| few.iter().map(|w| (w * u / deviation).powi(2).ln_1p()).sum::<f64>();
            let sum = Symmetric::new(|u| (-log(u)).exp(), |u| (-log(u)).exp());
            (deviation, quantile(|x| sum.exceeds(x)))
        }
        // Uniform in a cube whose radius has the Gamma law of `N + 1`.
        NoiseDistribution::DiscreteCube => {
            let uniform = length / 3.0_f64.sqrt();
            let law = |u: f64| few.iter().map(|w| sinc(w * u / uniform)).product::<f64>();
            let envelope = |u: f64| few.iter().map(|w| (uniform / (w * u)).min(1.0)).product::<f64>();
            let sum = Symmetric::new(law, envelope);
            let radius = ((count + 1.0) * (count + 2.0)).sqrt();
            let radii = gamma(count + 1.0);
            let exceeds = |x: f64| radii.iter().map(|(r, p)| p * sum.exceeds(x * radius / r)).sum();
            (uniform * radius, quantile(exceeds))
        }
        NoiseDistribution::DiscreteGaussian => {
            let law = |u: f64| (-u * u / 2.0).exp();
            let sum = Symmetric::new(law, law);
            (length, quantile(|x| sum.exceeds(x)))
        }
        // Uniform on a sphere whose radius has the Gamma law of `N`: one direction is like any other.
        NoiseDistribution::Ball => {
            let deviation = (count + 1.0).sqrt() * length;
            let law = |u: f64| (-(count + 1.0) / 2.0 * (u * u / (count + 1.0)).ln_1p()).exp();
            let sum = Symmetric::new(law, law);
            (deviation, quantile(|x| sum.exceeds(x)))
        }
    };
    NoiseError { deviation: scale * deviation, level: LEVEL, half_width: scale * deviation * quantile * 1.001 }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// The smallest `x`, up to 80, that is exceeded with probability at most 5 %.
fn quantile(exceeds: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, DEVIATIONS);
    while high - low > 1e-5 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > 1.0 - LEVEL { low = middle } else { high = middle }
    }
    high
}

/// A symmetric law of variance 1: its characteristic function over `u` at the midpoints of even steps.
struct Symmetric(Vec<f64>);

impl Symmetric {
    const STEP: f64 = PI / DEVIATIONS;

    fn new(law: impl Fn(f64) -> f64, envelope: impl Fn(f64) -> f64) -> Self {
        let midpoints = (0..MOST_STEPS).map(|k| (k as f64 + 0.5) * Self::STEP);
        Symmetric(midpoints.take_while(|u| envelope(*u) > NEGLIGIBLE).map(|u| law(u) / u).collect())
    }

    /// `P[|X| > x] = 1 - (2 / pi) integral_0^inf phi(u) sin(u x) / u du`. Even steps of `h` fold the law into
    /// `2 pi / h`, 160 deviations: beyond half of that there is nothing.
    fn exceeds(&self, x: f64) -> f64 {
        if x > DEVIATIONS {
            return 0.0;
        }
        let term = |(k, part): (usize, &f64)| part * ((k as f64 + 0.5) * Self::STEP * x).sin();
        1.0 - 2.0 / PI * Self::STEP * self.0.iter().enumerate().map(term).sum::<f64>()
    }
}

/// The Gamma law of this shape as some hundred values with their probabilities.
fn gamma(shape: f64) -> Vec<(f64, f64)> {
    const PARTS: usize = 100;
    let (low, high) = ((shape - 7.0 * shape.sqrt()).max(0.0), shape + 7.0 * shape.sqrt() + 20.0);
    let values = (0..PARTS).map(|k| low + (high - low) * (k as f64 + 0.5) / PARTS as f64);
    let mode = (shape - 1.0).max(f64::MIN_POSITIVE);
    let log = |r: f64| (shape - 1.0) * (r / mode).ln() - (r - mode);
    let weighed: Vec<(f64, f64)> = values.map(|r| (r, log(r).exp())).collect();
    let mass: f64 = weighed.iter().map(|(_, p)| p).sum();
    weighed.into_iter().map(|(r, p)| (r, p / mass)).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha12Rng;

    use super::*;
    use crate::synopsis::noise::unit_noise;

    /// Weights of one value, of a few that fall off, and of many alike.
    fn cases() -> Vec<Vec<f64>> {
        let falling = (0..8).map(|m| 0.5_f64.powi(m)).collect();
        vec![vec![1.0], vec![1.0, 1e-9, 0.0], falling, vec![1.0, -1.0, 1.0], vec![0.1; 60]]
    }

    /// How often drawn noise is larger than the half-width times `factor`, and its variance over what is claimed.
    fn drawn(law: NoiseDistribution, weights: &[f64], factor: f64) -> [f64; 2] {
        const DRAWS: usize = 40_000;
        let claimed = of(law, 3.0, weights);
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                3.0 * unit_noise(law, weights.len(), &mut rng).iter().zip(weights).map(|(z, w)| z * w).sum::<f64>()
            })
            .collect();
        let above = draws.iter().filter(|x| x.abs() > factor * claimed.half_width).count();
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / DRAWS as f64;
        [above as f64 / DRAWS as f64, variance / claimed.deviation.powi(2)]
    }

    #[test]
    fn noise_is_as_large_as_claimed_and_within_its_half_width_as_often() {
        for law in [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
            NoiseDistribution::Ball,
            NoiseDistribution::DiscreteGaussian,
        ] {
            for weights in cases() {
                let [above, variance] = drawn(law, &weights, 1.0);
                // Four deviations of a count of 2,000, and of a variance with heavy tails.
                assert!((above - 0.05).abs() < 0.0044, "{law:?} {weights:?}: {above}");
                assert!((variance - 1.0).abs() < 0.08, "{law:?} {weights:?}: {variance}");
            }
        }
    }

    #[test]
    fn a_half_width_30_percent_too_small_is_noticed() {
        for law in [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
            NoiseDistribution::Ball,
            NoiseDistribution::DiscreteGaussian,
        ] {
            assert!(cases().iter().all(|weights| drawn(law, weights, 0.7)[0] > 0.08));
        }
    }

    #[test]
    fn one_value_has_the_quantile_of_its_law() {
        let laplace = of(NoiseDistribution::DiscreteLaplace, 2.0, &[0.0, -1.5]);
        assert!((laplace.half_width / (3.0 * 20.0_f64.ln()) - 1.001).abs() < 1e-4, "{laplace:?}");
        assert_eq!(of(NoiseDistribution::DiscreteLaplace, 1.0, &[0.0; 3]).half_width, 0.0);
    }
}
