//! The laws of noise at scale 1, the grid so fine that it is not seen; for public simulation and for what a client may know of
//! the noise.

mod inversion;

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

use self::inversion::{LEVEL, SymmetricLaw, gamma_law, sinc};
use crate::NoiseDistribution;
use crate::description::NoiseDescription;

const DRAWS: usize = 100_000;
const SEED: u64 = 0x706f_696e_7477_6973;
/// Weights below this part of the largest are left out of the shape of the law, not of its width.
const SMALLEST: f64 = 1e-6;

/// The noise of an answer.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct AnswerNoise {
    pub deviation: f64,
    /// With this probability the noise is at most this large, either sign.
    pub level: f64,
    pub half_width: f64,
}

/// Noise of a law with scale 1 on `count` values.
pub fn unit_noise(law: NoiseDistribution, count: usize, rng: &mut ChaCha12Rng) -> Vec<f64> {
    match law {
        NoiseDistribution::DiscreteLaplace => (0..count).map(|_| laplace_sample(rng)).collect(),
        // Uniform in a cube whose radius has the Gamma law of N + 1 (`DiscreteCube`).
        NoiseDistribution::DiscreteCube => {
            let radius = gamma_sample(count as f64 + 1.0, rng);
            (0..count)
                .map(|_| radius * rng.random_range(-1.0..1.0))
                .collect()
        }
        // On a sphere whose radius has the Gamma law of N.
        NoiseDistribution::Ball => {
            let mut noise: Vec<f64> = (0..count).map(|_| rng.sample(StandardNormal)).collect();
            let length = noise.iter().map(|z| z * z).sum::<f64>().sqrt();
            let radius = gamma_sample(count as f64, rng);
            noise.iter_mut().for_each(|z| *z *= radius / length);
            noise
        }
        NoiseDistribution::DiscreteGaussian => {
            (0..count).map(|_| rng.sample(StandardNormal)).collect()
        }
    }
}

/// Laplace noise of scale 1.
pub(super) fn laplace_sample(rng: &mut ChaCha12Rng) -> f64 {
    let size: f64 = rng.sample(Exp1);
    if rng.random() { size } else { -size }
}

fn gamma_sample(shape: f64, rng: &mut ChaCha12Rng) -> f64 {
    Gamma::new(shape, 1.0).map_or(f64::NAN, |gamma| gamma.sample(rng))
}

/// `q` such that noise of scale 1 stays within `q |a|_2` at a point with 95 % probability, whatever the influences `a` of the
/// `count` values there are.
///
/// Exact for the Gaussian and, simulated, for the ball: what they do depends on `|a|_2` alone. For Laplace noise it is
/// `ln 20`, the quantile where one value decides, and up to 8 % too wide where many do; for the cube that of many small
/// influences, and up to a fifth too wide where one value decides (`tests::no_influences_exceed_the_pointwise_factor`).
pub(super) fn pointwise_factor(law: NoiseDistribution, count: usize) -> f64 {
    let n = count as f64;
    match law {
        NoiseDistribution::DiscreteLaplace => 20.0_f64.ln(),
        NoiseDistribution::DiscreteGaussian => 1.959_963_985,
        NoiseDistribution::DiscreteCube => simulated_quantile(|rng| {
            gamma_sample(n + 1.0, rng) * rng.sample::<f64, _>(StandardNormal) / 3.0_f64.sqrt()
        }),
        NoiseDistribution::Ball => simulated_quantile(|rng| {
            let along: f64 = rng.sample(StandardNormal);
            // The squared length of the other coordinates is chi squared.
            let across = if count > 1 {
                2.0 * gamma_sample((n - 1.0) / 2.0, rng)
            } else {
                0.0
            };
            gamma_sample(n, rng) * along / (along * along + across).sqrt()
        }),
    }
}

/// The noise of `sum_i w_i z_i`, `z` noise of `law` with this scale on as many values as there are weights.
///
/// The quantile is that of the continuous law, its characteristic function inverted to better than a part in a thousand,
/// which is added: the noise itself is on a grid that is billions of times finer.
pub(crate) fn weighted_noise(law: NoiseDistribution, scale: f64, weights: &[f64]) -> AnswerNoise {
    let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
    if length == 0.0 {
        return AnswerNoise {
            deviation: 0.0,
            level: LEVEL,
            half_width: 0.0,
        };
    }
    let largest = weights.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
    let few: Vec<f64> = weights
        .iter()
        .map(|w| w.abs())
        .filter(|w| *w >= SMALLEST * largest)
        .collect();
    let count = weights.len() as f64;
    // Of the cube: the deviation at radius 1, and that of the radius.
    let uniform = length / 3.0_f64.sqrt();
    let radius = ((count + 1.0) * (count + 2.0)).sqrt();
    let deviation = match law {
        NoiseDistribution::DiscreteLaplace => 2.0_f64.sqrt() * length,
        NoiseDistribution::DiscreteCube => uniform * radius,
        NoiseDistribution::DiscreteGaussian => length,
        NoiseDistribution::Ball => (count + 1.0).sqrt() * length,
    };
    let quantile = match law {
        NoiseDistribution::DiscreteLaplace => laplace_quantile(&few, deviation),
        NoiseDistribution::DiscreteCube => cube_quantile(&few, uniform, radius, count),
        NoiseDistribution::DiscreteGaussian => quantile_of_law(|u| (-u * u / 2.0).exp()),
        // Uniform on a sphere whose radius has the Gamma law of `N`: one direction is like any other.
        NoiseDistribution::Ball => {
            quantile_of_law(|u| (-(count + 1.0) / 2.0 * (u * u / (count + 1.0)).ln_1p()).exp())
        }
    };
    AnswerNoise {
        deviation: scale * deviation,
        level: LEVEL,
        half_width: scale * deviation * quantile * 1.001,
    }
}

impl NoiseDescription {
    /// Noise of the sum of the values with these weights.
    pub(super) fn of_weighted_sum(&self, weights: &[f64]) -> AnswerNoise {
        weighted_noise(self.law, self.scale, weights)
    }
}

/// The quantile of a law whose characteristic function is its own envelope.
fn quantile_of_law(law: impl Fn(f64) -> f64) -> f64 {
    let sum = SymmetricLaw::new(&law, &law);
    inversion::quantile(|x| sum.exceeds(x))
}

/// The quantile of weighted Laplace noise in deviations: `1 / (1 + w^2 u^2)` is the characteristic function of one value.
fn laplace_quantile(weights: &[f64], deviation: f64) -> f64 {
    quantile_of_law(|u| {
        let logarithms = weights.iter().map(|w| (w * u / deviation).powi(2).ln_1p());
        (-logarithms.sum::<f64>()).exp()
    })
}

/// The quantile of weighted noise that is uniform in a cube whose radius has the Gamma law of `count + 1`, in deviations: `uniform` is
/// that of the weighted sum at radius 1, `radius` that of the radius.
fn cube_quantile(weights: &[f64], uniform: f64, radius: f64, count: f64) -> f64 {
    let sum = SymmetricLaw::new(
        |u| weights.iter().map(|w| sinc(w * u / uniform)).product(),
        |u| {
            weights
                .iter()
                .map(|w| (uniform / (w * u)).min(1.0))
                .product()
        },
    );
    let radii = gamma_law(count + 1.0);
    inversion::quantile(|x| {
        radii
            .iter()
            .map(|atom| atom.probability * sum.exceeds(x * radius / atom.value))
            .sum()
    })
}

/// The 95 % quantile of the size of what is drawn.
fn simulated_quantile(draw: impl Fn(&mut ChaCha12Rng) -> f64) -> f64 {
    let mut rng = ChaCha12Rng::seed_from_u64(SEED);
    let mut sizes: Vec<f64> = (0..DRAWS).map(|_| draw(&mut rng).abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // Three deviations of the count above the quantile.
    sizes
        .get(DRAWS * 95 / 100 + 207)
        .copied()
        .unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const LAWS: [NoiseDistribution; 4] = [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
        NoiseDistribution::DiscreteGaussian,
    ];

    /// Kolmogorov and Smirnov's distance to the Laplace law of scale 1; beyond 1.95 / sqrt(n) once in a thousand
    /// samples.
    #[test]
    fn simulated_noise_has_the_laplace_law() {
        let mut rng = ChaCha12Rng::seed_from_u64(4);
        let mut sample: Vec<f64> = (0..20_000).map(|_| laplace_sample(&mut rng)).collect();
        sample.sort_by(f64::total_cmp);
        let distance = |sample: &[f64]| {
            let law = |z: f64| {
                if z < 0.0 {
                    z.exp() / 2.0
                } else {
                    1.0 - (-z).exp() / 2.0
                }
            };
            let apart = |(i, z): (usize, &f64)| (law(*z) - (i as f64 + 0.5) / 20_000.0).abs();
            sample.iter().enumerate().map(apart).fold(0.0, f64::max)
        };
        let critical = 1.95 / 20_000_f64.sqrt();
        assert!(distance(&sample) < critical);
        let stretched: Vec<f64> = sample.iter().map(|z| 1.1 * z).collect();
        assert!(distance(&stretched) > critical);
    }

    #[test]
    fn every_law_has_the_variance_that_it_is_said_to_have() {
        for law in LAWS {
            for count in [1, 5, 40] {
                let mut rng = ChaCha12Rng::seed_from_u64(8);
                let square = |_| {
                    unit_noise(law, count, &mut rng)
                        .iter()
                        .map(|z| z * z)
                        .sum::<f64>()
                        / count as f64
                };
                let found = (0..20_000).map(square).sum::<f64>() / 20_000.0;
                // The worst is the ball of one value, whose squares deviate by sqrt(5) of their mean: 1.6 % a deviation.
                assert!(
                    (found / law.variance(count) - 1.0).abs() < 0.065,
                    "{law:?} {count}: {found}"
                );
            }
        }
    }

    #[test]
    fn no_influences_exceed_the_pointwise_factor() {
        let alike = |n: usize| vec![1.0; n];
        let falling = |n: usize| (0..n).map(|i| 0.6_f64.powi(i as i32)).collect::<Vec<f64>>();
        let half = |n: usize| [vec![1.0], vec![0.5; n - 1]].concat();
        for law in LAWS {
            for (count, influences) in [
                (1, alike(1)),
                (2, alike(2)),
                (2, half(2)),
                (3, alike(3)),
                (6, falling(6)),
                (20, alike(20)),
                (20, half(20)),
                (20, [vec![1.0], vec![0.0; 19]].concat()),
            ] {
                let length = influences.iter().map(|a| a * a).sum::<f64>().sqrt();
                let width = pointwise_factor(law, count) * length;
                let mut rng = ChaCha12Rng::seed_from_u64(31);
                let mut noises: Vec<f64> = (0..20_000)
                    .map(|_| {
                        unit_noise(law, count, &mut rng)
                            .iter()
                            .zip(&influences)
                            .map(|(z, a)| z * a)
                            .sum()
                    })
                    .map(f64::abs)
                    .collect();
                noises.sort_by(f64::total_cmp);
                let covered = noises.partition_point(|noise| *noise <= width);
                // Three deviations of a count of 19,000.
                assert!(covered > 19_000 - 93, "{law:?} {influences:?}: {covered}");
                let too_wide = width / noises[19_000];
                assert!(too_wide < 1.21, "{law:?} {influences:?}: {too_wide}");
                if law != NoiseDistribution::DiscreteCube || influences == alike(20) {
                    assert!(too_wide < 1.1, "{law:?} {influences:?}: {too_wide}");
                }
                // Noise 30 % larger is found out wherever the width is not a fifth too large.
                let louder = noises.partition_point(|noise| 1.3 * noise <= width);
                assert!(louder < 18_900, "{law:?} {influences:?}: {louder}");
            }
        }
    }

    /// Weights of one value, of a few that fall off, and of many alike.
    fn cases() -> Vec<Vec<f64>> {
        let falling = (0..8).map(|m| 0.5_f64.powi(m)).collect();
        vec![
            vec![1.0],
            vec![1.0, 1e-9, 0.0],
            falling,
            vec![1.0, -1.0, 1.0],
            vec![0.1; 60],
        ]
    }

    /// How often drawn noise is larger than the half-width times `factor`, and its variance over what is claimed.
    fn drawn(law: NoiseDistribution, weights: &[f64], factor: f64) -> [f64; 2] {
        const DRAWS: usize = 40_000;
        let claimed = weighted_noise(law, 3.0, weights);
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let draws: Vec<f64> = (0..DRAWS)
            .map(|_| {
                3.0 * unit_noise(law, weights.len(), &mut rng)
                    .iter()
                    .zip(weights)
                    .map(|(z, w)| z * w)
                    .sum::<f64>()
            })
            .collect();
        let above = draws
            .iter()
            .filter(|x| x.abs() > factor * claimed.half_width)
            .count();
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / DRAWS as f64;
        [
            above as f64 / DRAWS as f64,
            variance / claimed.deviation.powi(2),
        ]
    }

    #[test]
    fn noise_is_as_large_as_claimed_and_within_its_half_width_as_often() {
        for law in LAWS {
            for weights in cases() {
                let [above, variance] = drawn(law, &weights, 1.0);
                // Four deviations of a count of 2,000, and of a variance with heavy tails.
                assert!(
                    (above - 0.05).abs() < 0.0044,
                    "{law:?} {weights:?}: {above}"
                );
                assert!(
                    (variance - 1.0).abs() < 0.08,
                    "{law:?} {weights:?}: {variance}"
                );
            }
        }
    }

    #[test]
    fn a_half_width_30_percent_too_small_is_noticed() {
        for law in LAWS {
            assert!(
                cases()
                    .iter()
                    .all(|weights| drawn(law, weights, 0.7)[0] > 0.08)
            );
        }
    }

    #[test]
    fn one_value_has_the_quantile_of_its_law() {
        let laplace = weighted_noise(NoiseDistribution::DiscreteLaplace, 2.0, &[0.0, -1.5]);
        assert!(
            (laplace.half_width / (3.0 * 20.0_f64.ln()) - 1.001).abs() < 1e-4,
            "{laplace:?}"
        );
        assert_eq!(
            weighted_noise(NoiseDistribution::DiscreteLaplace, 1.0, &[0.0; 3]).half_width,
            0.0
        );
    }
}
