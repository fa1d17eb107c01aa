//! The laws of noise as formulas: what samplers and attacks are tested against. In floats, and with none of the code that draws.

use rand::rngs::ChaCha12Rng;

use super::gamma::probability_up_to;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::noise::unit_noise;

/// Noise of one distribution and scale, in grid units, on so many values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseLaw {
    pub noise: NoiseDistribution,
    pub scale: f64,
    pub values: usize,
}

impl NoiseLaw {
    /// The size of a draw, of which the density is a function: the norm of the distribution over the scale; half its square for
    /// Gaussian noise.
    ///
    /// Its law is the Gamma law of [`NoiseLaw::gamma_shape`]: the density `exp(-||z||)` of `N` values has spheres of area proportional to
    /// `r^(N-1)`, whatever the norm, and half a sum of `N` squares of normal variates is half a chi squared variate.
    #[expect(
        clippy::cast_precision_loss,
        reason = "noise is compared to many fewer digits"
    )]
    pub fn size_of_draw(&self, noise: &[i128]) -> f64 {
        match self.noise {
            NoiseDistribution::DiscreteLaplace => one_norm(noise) as f64 / self.scale,
            NoiseDistribution::DiscreteCube => sup_norm(noise) as f64 / self.scale,
            NoiseDistribution::Ball => squared_norm(noise).sqrt() / self.scale,
            NoiseDistribution::DiscreteGaussian => {
                squared_norm(noise) / (2.0 * self.scale * self.scale)
            }
        }
    }

    /// The shape of the Gamma law of [`NoiseLaw::size_of_draw`].
    #[expect(clippy::cast_precision_loss, reason = "at most 2^20 values")]
    pub fn gamma_shape(&self) -> f64 {
        match self.noise {
            NoiseDistribution::DiscreteGaussian => self.values as f64 / 2.0,
            _ => self.values as f64,
        }
    }

    /// The distance that the law of [`NoiseLaw::size_of_draw`] on whole numbers can have from that on the reals: rounding moves each value by half a unit
    /// at most, the size by `N / 2s`, and the density of a Gamma law is at most 1. Half a square moves by `N^(1/2) / s` times its root.
    #[expect(clippy::cast_precision_loss, reason = "an allowance, rounded up")]
    pub fn rounding_distance(&self) -> f64 {
        (self.values as f64 + 1.0) / self.scale
    }

    /// `ln` of the density at `noise` over that at `noise + change`: what an output betrays of which of two neighbours it came from,
    /// whose exact values are `change` apart. [`NoiseLaw::size_of_draw`] at the one place less that at the other, without cancellation.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the differences are exact in whole numbers, or small beside the rest"
    )]
    pub fn privacy_loss(&self, noise: &[i128], change: &[i128]) -> f64 {
        match self.noise {
            NoiseDistribution::DiscreteLaplace => {
                let mut difference: i128 = 0;
                for (z, to) in noise.iter().zip(add_change(noise, change)) {
                    difference =
                        difference.saturating_add(to.saturating_abs() - z.saturating_abs());
                }
                difference as f64 / self.scale
            }
            NoiseDistribution::DiscreteCube => {
                let to = sup_norm(&add_change(noise, change));
                (to.cast_signed() - sup_norm(noise).cast_signed()) as f64 / self.scale
            }
            NoiseDistribution::Ball => {
                let to = squared_norm(&add_change(noise, change)).sqrt();
                let both = to + squared_norm(noise).sqrt();
                if both > 0.0 {
                    difference_of_squares(noise, change) / both / self.scale
                } else {
                    0.0
                }
            }
            NoiseDistribution::DiscreteGaussian => {
                difference_of_squares(noise, change) / (2.0 * self.scale * self.scale)
            }
        }
    }

    /// The norm of a change, over the scale: the largest loss for noise of pure differential privacy, and `mu` of Gaussian noise.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn norm_in_scales(&self, change: &[i128]) -> f64 {
        match self.noise {
            NoiseDistribution::DiscreteLaplace => one_norm(change) as f64 / self.scale,
            NoiseDistribution::DiscreteCube => sup_norm(change) as f64 / self.scale,
            NoiseDistribution::Ball | NoiseDistribution::DiscreteGaussian => {
                squared_norm(change).sqrt() / self.scale
            }
        }
    }

    /// A draw of the law on the reals, rounded: public, and independent of the exact samplers.
    pub(super) fn simulate_draw(&self, rng: &mut ChaCha12Rng) -> Vec<i128> {
        unit_noise(self.noise, self.values, rng)
            .into_iter()
            .map(|z| (z * self.scale).round() as i128)
            .collect()
    }

    /// The figure of one value that is looked at: its size over the scale; of the ball its part of the length.
    #[expect(
        clippy::cast_precision_loss,
        reason = "noise is compared to many fewer digits"
    )]
    pub(super) fn value_figure(&self, noise: &[i128], at: usize) -> f64 {
        let value = noise.get(at).map_or(0.0, |z| z.unsigned_abs() as f64);
        match self.noise {
            NoiseDistribution::Ball => value / squared_norm(noise).sqrt().max(1.0),
            _ => value / self.scale,
        }
    }

    /// `P(of_value <= x)`.
    ///
    /// Laplace: that of the whole numbers, exactly. Gaussian: that of the reals, rounded. Cube: uniform up to a radius of the Gamma law
    /// of `N + 1`, so `P(> x) = Q(N + 1, x) - x Q(N, x) / N`. Ball: the cosine of an angle that is uniform on the sphere, of density
    /// proportional to `sin^(N-2)`.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^20 values")]
    pub(super) fn value_probability_up_to(&self, x: f64) -> f64 {
        let n = self.values as f64;
        let units = (x * self.scale).floor();
        match self.noise {
            _ if x < 0.0 => 0.0,
            NoiseDistribution::DiscreteLaplace => {
                let step = libm::exp(-1.0 / self.scale);
                1.0 - 2.0 * libm::exp(-(units + 1.0) / self.scale) / (1.0 + step)
            }
            NoiseDistribution::DiscreteGaussian => {
                libm::erf((units + 0.5) / self.scale * std::f64::consts::FRAC_1_SQRT_2)
            }
            NoiseDistribution::DiscreteCube => {
                let above = 1.0 - probability_up_to(n, x);
                let above_radius = 1.0 - probability_up_to(n + 1.0, x);
                (1.0 - above_radius + x * above / n).clamp(0.0, 1.0)
            }
            NoiseDistribution::Ball => cosine_up_to(n, x.min(1.0)),
        }
    }
}

/// `P(|cos| <= x)` for a direction that is uniform on the sphere of `n >= 2` dimensions, by Simpson's rule over the angle from the
/// equator.
fn cosine_up_to(n: f64, x: f64) -> f64 {
    // Beyond twelve deviations there is nothing.
    let most = (12.0 / n.sqrt()).min(std::f64::consts::FRAC_PI_2);
    let part = cosine_power_integral(n, x.asin().min(most)) / cosine_power_integral(n, most);
    part.clamp(0.0, 1.0)
}

/// The integral of `cos^(n-2)` from 0 to `to`.
fn cosine_power_integral(n: f64, to: f64) -> f64 {
    const STEPS: u32 = 512;
    let step = to / f64::from(STEPS);
    let terms = (0..=STEPS).map(|i| {
        let weight = match i {
            0 | STEPS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * (f64::from(i) * step).cos().max(0.0).powf(n - 2.0)
    });
    terms.sum::<f64>() * step / 3.0
}

fn add_change(noise: &[i128], change: &[i128]) -> Vec<i128> {
    let pairs = noise.iter().zip(change);
    pairs.map(|(z, d)| z.saturating_add(*d)).collect()
}

/// The sum of `(z + d)^2 - z^2` over all values.
#[expect(clippy::cast_precision_loss, reason = "compared to many fewer digits")]
fn difference_of_squares(noise: &[i128], change: &[i128]) -> f64 {
    let pairs = noise.iter().zip(change);
    pairs
        .map(|(z, d)| *d as f64 * (2.0 * *z as f64 + *d as f64))
        .sum()
}

fn one_norm(values: &[i128]) -> u128 {
    values.iter().fold(0, |sum: u128, value| {
        sum.saturating_add(value.unsigned_abs())
    })
}

fn sup_norm(values: &[i128]) -> u128 {
    values
        .iter()
        .map(|value| value.unsigned_abs())
        .max()
        .unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "compared to many fewer digits")]
fn squared_norm(values: &[i128]) -> f64 {
    values
        .iter()
        .map(|value| *value as f64 * *value as f64)
        .sum()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const ALL: [NoiseDistribution; 4] = [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
        NoiseDistribution::DiscreteGaussian,
    ];

    /// Of 20,000 draws by other means, no distribution function is further off than six in ten thousand cases would be.
    #[test]
    fn sizes_and_values_have_the_laws_that_are_claimed() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        for (noise, values) in ALL
            .into_iter()
            .flat_map(|noise| [2, 3, 40].map(|values| (noise, values)))
        {
            let law = NoiseLaw {
                noise,
                scale: 1e9,
                values,
            };
            let draws: Vec<Vec<i128>> = (0..20_000).map(|_| law.simulate_draw(&mut rng)).collect();
            let furthest = |of: &dyn Fn(&[i128]) -> f64, up_to: &dyn Fn(f64) -> f64| {
                let mut found: Vec<f64> = draws.iter().map(|draw| of(draw)).collect();
                found.sort_by(f64::total_cmp);
                let n = found.len() as f64;
                found
                    .iter()
                    .enumerate()
                    .map(|(i, x)| (i as f64 / n - up_to(*x)).abs())
                    .fold(0.0, f64::max)
            };
            let size = furthest(&|draw| law.size_of_draw(draw), &|x| {
                probability_up_to(law.gamma_shape(), x)
            });
            let value = furthest(&|draw| law.value_figure(draw, 1), &|x| {
                law.value_probability_up_to(x)
            });
            assert!(
                size < 0.017 && value < 0.017,
                "{noise} {values}: {size} {value}"
            );
        }
    }

    #[test]
    fn a_loss_is_the_difference_of_two_sizes() {
        let mut rng = ChaCha12Rng::seed_from_u64(2);
        for noise in ALL {
            let law = NoiseLaw {
                noise,
                scale: 1e6,
                values: 5,
            };
            let change = [300_000, -200_000, 0, 1_000_000, 7];
            for _ in 0..100 {
                let drawn = law.simulate_draw(&mut rng);
                let moved: Vec<i128> = drawn.iter().zip(change).map(|(z, d)| z + d).collect();
                let loss = law.privacy_loss(&drawn, &change);
                let plain = law.size_of_draw(&moved) - law.size_of_draw(&drawn);
                assert!((loss - plain).abs() < 1e-9, "{noise}: {loss} {plain}");
                let pure = noise.is_pure();
                assert!(
                    !pure || loss.abs() <= law.norm_in_scales(&change) * (1.0 + 1e-12),
                    "{noise}: {loss}"
                );
            }
        }
    }
}
