//! The simultaneous band: how far the noise can move a released function, everywhere at once.

mod cells;
mod kernel;
mod lattice;
mod sup;
mod tables;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use self::sup::{NoiseSup, affordable_draws, available_threads, draw_sups, weight_at};
use crate::NoiseDistribution;
use crate::description::{BandCoverage, NoiseBand, NoiseDescription};
use crate::noise::{pointwise_factor, unit_noise};
use crate::{Basis, Shape};

const LEVEL: f64 = 0.95;
const SEED: u64 = 0x6265_726e_7374_7265;

/// A simultaneous band for the noise of one plan, in units of the noise's scale.
///
/// With probability at least `level`, noise of the law with scale 1 on the exact vector moves the released function at every
/// point `x` of the unit cube by at most `half_width / prod_i s(x_i)`, where on a lattice the positive polynomial `s`
/// approximates one over the noise's standard deviation on one axis: a constant width would be set by the corners, where one
/// lattice value decides, and be several times too wide inside. For other forms `s` is 1. Of moments, the half-width holds
/// for each of them, and of a table by key for each number in units of the noise of its column. Of tables of cells, it holds for every weighted sum of values that is read by a kernel, with weights of length 1.
///
/// `half_width` is an order statistic of simulated sups, chosen to exceed the true quantile with confidence 99.9 %. Each sup is
/// bounded over the whole cube, not only where it is evaluated: on a lattice by `bernstein::DenseNodes`, for kernel functions by
/// their second derivatives (Gaussian kernel), by their convexity (Laplacian) or as polynomials. Simulated from public
/// quantities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    pub level: f64,
    pub half_width: f64,
    /// Bernstein coefficients of `s`, the same on every axis.
    pub weights: Vec<f64>,
    /// Pointwise factor: at one point, noise of scale 1 stays within this times `|a|_2` with probability at least `level`, `a` the influences of
    /// the exact values on the function there.
    pub pointwise: f64,
    pub draws: u32,
    /// Mean of the sup of the noise over the domain, unweighted.
    pub expected_sup: f64,
    /// Operator norm, how far an error of 1 in every exact value can move the function: an upper bound, but of cells the most on the points that
    /// are looked at. It multiplies a step of the grid, a part in 10^9 of the noise or less.
    pub norm: f64,
}

impl Band {
    /// Simulates the band: for the same arguments the same one, on any number of threads.
    ///
    /// In a dev build 4.5 s of one core in 2-D at degree 20, and far longer for a lattice of 10^4 points.
    pub fn simulate(shape: &Shape, law: NoiseDistribution, order: u32) -> Band {
        Band::simulate_with_progress(shape, law, order, &|_, _| {})
    }

    /// Simulates the band; `progress` is called with how many draws are done, of how many, where it takes long.
    pub fn simulate_with_progress(
        shape: &Shape,
        law: NoiseDistribution,
        order: u32,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Band {
        let band = match &shape.basis {
            Basis::Affine if law == NoiseDistribution::DiscreteLaplace => {
                Band::of_affine_function(shape.dimensions)
            }
            // Largest at a corner, where it is the sum of the absolute values.
            Basis::Affine => Band::of_values(law, shape.value_count(), |z| {
                z.iter().map(|z| z.abs()).sum()
            }),
            // Wherever keys are found, the band is one for as many as there can be.
            Basis::Keys(basis) if basis.found.is_some() => {
                Band::of_independent_laplace(basis.most_keys())
            }
            Basis::Keys(_) if law == NoiseDistribution::DiscreteLaplace => {
                Band::of_independent_laplace(shape.value_count())
            }
            Basis::Cosine { .. } | Basis::Keys(_) => {
                Band::of_released_values(law, shape.value_count())
            }
            Basis::Bernstein => {
                let plan =
                    lattice::LatticeBandPlan::new(shape.dimensions, shape.degree, law, order);
                let sups = draw_sups(
                    plan.draws(),
                    available_threads(),
                    |draw| plan.draw_sup(SEED, draw),
                    progress,
                );
                Band {
                    weights: plan.weights.clone(),
                    ..Band::of_sups(sups, plan.norm())
                }
            }
            Basis::Kernel(basis) => {
                let plan = kernel::KernelBandPlan::new(basis, shape.dimensions, law);
                let sups = draw_sups(
                    plan.draws(),
                    available_threads(),
                    |draw| plan.draw_sup(SEED, draw),
                    progress,
                );
                Band::of_sups(sups, plan.norm())
            }
            Basis::Cells(basis) => {
                let plan = cells::CellBandPlan::new(basis, law);
                let sups = draw_sups(
                    plan.draws(),
                    available_threads(),
                    |draw| plan.draw_sup(SEED, draw),
                    progress,
                );
                return Band {
                    pointwise: cells::pointwise(basis, law),
                    ..Band::of_sups(sups, plan.norm())
                };
            }
            Basis::Tables(basis) => {
                let plan = tables::TableBandPlan::new(basis, law);
                let sups = draw_sups(
                    plan.draws(),
                    available_threads(),
                    |draw| plan.draw_sup(SEED, draw),
                    progress,
                );
                Band::of_sups(sups, plan.norm())
            }
        };
        Band {
            pointwise: pointwise_factor(law, shape.value_count()),
            ..band
        }
    }

    /// Band for the sum of several independent draws of `law`, this being the band of one draw of `values` values, and `normal` that
    /// of Gaussian noise; in units of the scale at which one draw has the deviation of the sum.
    ///
    /// A sum lies between one draw and the normal law. The wider of the two holds for both; that it holds for what lies
    /// between them is simulated (the tests of this module), not proved.
    #[must_use]
    pub fn of_sums(self, law: NoiseDistribution, values: usize, normal: &Band) -> Band {
        let unit = law.deviation(values);
        Band {
            half_width: self.half_width.max(unit * normal.half_width),
            pointwise: self.pointwise.max(unit * normal.pointwise),
            expected_sup: self.expected_sup.max(unit * normal.expected_sup),
            ..self
        }
    }

    /// [`Band::expected_sup`] from so many draws of noise on kernel functions or cells, from more of it elsewhere: to plan with.
    pub(super) fn expected_sup_of_few(shape: &Shape, law: NoiseDistribution, draws: u32) -> f64 {
        match &shape.basis {
            Basis::Kernel(basis) => {
                let plan = kernel::KernelBandPlan::new(basis, shape.dimensions, law);
                mean_sup(draws, |draw| plan.draw_sup(SEED, draw))
            }
            Basis::Cells(basis) => {
                let plan = cells::CellBandPlan::new(basis, law);
                mean_sup(draws, |draw| plan.draw_sup(SEED, draw))
            }
            _ => Band::simulate(shape, law, 1).expected_sup,
        }
    }

    /// The band of `count` released values themselves, all at once.
    pub fn of_released_values(law: NoiseDistribution, count: usize) -> Band {
        Band {
            norm: 1.0,
            pointwise: pointwise_factor(law, count),
            ..Band::of_values(law, count, largest_magnitude)
        }
    }

    /// Simulates the band where the sup is a function of the noisy values themselves.
    fn of_values(law: NoiseDistribution, count: usize, sup: impl Fn(&[f64]) -> f64) -> Band {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        let mut sups = Vec::new();
        for _ in 0..affordable_draws(64 * count.max(1)) {
            let plain = sup(&unit_noise(law, count, &mut rng));
            sups.push(NoiseSup {
                weighted: plain,
                plain,
            });
        }
        Band::of_sups(sups, count as f64)
    }

    fn of_sups(mut sups: Vec<NoiseSup>, norm: f64) -> Band {
        // Sorted before anything is summed, so that the threads cannot decide the result.
        sups.sort_by(|a, b| {
            a.weighted
                .total_cmp(&b.weighted)
                .then(a.plain.total_cmp(&b.plain))
        });
        let draws = u32::try_from(sups.len()).unwrap_or(u32::MAX);
        let half_width = sups
            .get(quantile_rank(draws) - 1)
            .map_or(f64::INFINITY, |sup| sup.weighted);
        let expected_sup = sups.iter().map(|sup| sup.plain).sum::<f64>() / f64::from(draws);
        Band {
            level: LEVEL,
            half_width,
            weights: vec![1.0],
            pointwise: f64::NAN,
            draws,
            expected_sup,
            norm,
        }
    }

    /// The band of so many values under Laplace noise, which is independent on each: all are within `x` with probability
    /// `(1 - exp(-x))^n`, and the largest is a harmonic number on average.
    fn of_independent_laplace(count: usize) -> Band {
        let all_within = LEVEL.ln() / count.max(1) as f64;
        let expected_sup = (1..=count).map(|n| 1.0 / n as f64).sum();
        Band {
            level: LEVEL,
            half_width: -(-all_within.exp_m1()).ln(),
            weights: vec![1.0],
            pointwise: f64::NAN,
            draws: 0,
            expected_sup,
            norm: 1.0,
        }
    }

    /// The band of an affine function under Laplace noise: the sum of `l + 1` absolute values is a Gamma variable, whose
    /// quantile is rounded up.
    fn of_affine_function(dimensions: usize) -> Band {
        let count = dimensions as f64 + 1.0;
        let mut low = 0.0;
        let mut high = 100.0;
        while high - low > 1e-9 {
            let middle = (low + high) / 2.0;
            if gamma_exceeds(dimensions, middle) > 1.0 - LEVEL {
                low = middle
            } else {
                high = middle
            }
        }
        Band {
            level: LEVEL,
            half_width: high,
            weights: vec![1.0],
            pointwise: f64::NAN,
            draws: 0,
            expected_sup: count,
            norm: count,
        }
    }

    /// The band for `noise`, in its units.
    ///
    /// Discrete noise, and the rounding of exact values to its grid, each differ from what was simulated by half a
    /// step and (for a scale of at least one step) an eighth: a step and a quarter, times the operator norm, is added. At one
    /// point that is at most `1.25 sqrt(N) |a|_2` steps, each 2^-32 of the noise or less: a millionth.
    pub fn scaled_to_noise(&self, noise: &NoiseDescription) -> NoiseBand {
        let dimensions_at_most = 3;
        let largest_weight = self
            .weights
            .iter()
            .fold(1.0_f64, |a, b| a.max(*b))
            .powi(dimensions_at_most);
        let half_width =
            noise.scale * self.half_width + 1.25 * noise.grid * self.norm * largest_weight;
        NoiseBand {
            covers: BandCoverage::Noise,
            level: self.level,
            half_width,
            weights: self.weights.clone(),
            pointwise: Some(noise.scale * self.pointwise * (1.0 + 1e-6)),
            draws: self.draws,
        }
    }
}

impl NoiseBand {
    /// Half the width of the band at a point of the unit cube.
    pub(super) fn half_width_at(&self, point: &[f64]) -> f64 {
        self.half_width
            / point
                .iter()
                .map(|x| weight_at(&self.weights, *x))
                .product::<f64>()
    }
}

fn mean_sup(draws: u32, sup: impl Fn(u32) -> NoiseSup) -> f64 {
    (0..draws).map(|draw| sup(draw).plain).sum::<f64>() / f64::from(draws)
}

pub(super) fn largest_magnitude(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).fold(0.0, f64::max)
}

/// `P[Gamma(n) > x]` of `n = dimensions + 1`: that of fewer than `n` events of a Poisson process in time `x`.
fn gamma_exceeds(dimensions: usize, x: f64) -> f64 {
    let mut term = (-x).exp();
    let mut sum = term;
    for events in 1..=dimensions {
        term *= x / events as f64;
        sum += term;
    }
    sum
}

/// The order statistic, from 1, that exceeds the quantile at [`LEVEL`] with confidence 99.9 %.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the number of draws"
)]
fn quantile_rank(draws: u32) -> usize {
    let expected = f64::from(draws) * LEVEL;
    (expected + 3.09 * (expected * (1.0 - LEVEL)).sqrt())
        .ceil()
        .min(f64::from(draws)) as usize
}

#[cfg(test)]
mod tests;
