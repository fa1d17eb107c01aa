//! How far the noise can move a released function, everywhere at once.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::synopsis::bernstein::{Bases, Operator, basis, nodes};
use crate::synopsis::description::{Basis, Covers, Law, Noise, NoiseBand};
use crate::target::Shape;

const LEVEL: f64 = 0.95;
const MAX_DRAWS: u32 = 20_000;
const MIN_DRAWS: u32 = 1_000;
/// Multiplications of a simulation that has more than [`MIN_DRAWS`], counted as if no row were left out.
const WORK: usize = 8_000_000_000;
/// Chebyshev nodes a degree; the continuum correction is 1.035 an axis.
const NODE_DENSITY: u32 = 6;
/// Every third of these nodes is one of those at a third of the density, where a row is looked at first.
const SKIP: usize = 3;
const SEED: u64 = 0x6265_726e_7374_7265;

/// A simultaneous band for the noise of one plan, in units of the noise's scale.
///
/// With probability at least `level`, noise of the law with scale 1 on the lattice values moves the order-`h`
/// polynomial at every point `x` of the unit cube by at most `half_width / prod_i s(x_i)`, where the positive
/// polynomial `s` approximates one over the noise's standard deviation on one axis: a constant width would be set by
/// the corners, where one lattice value decides, and be several times too wide inside.
///
/// `half_width` is an order statistic of simulated sups, chosen to exceed the true quantile with confidence 99.9 %.
/// Each sup is bounded over the whole cube, not only where it is evaluated (`bernstein::nodes`). Simulated from public
/// quantities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    pub level: f64,
    pub half_width: f64,
    /// Bernstein coefficients of `s`, the same on every axis.
    pub weights: Vec<f64>,
    pub draws: u32,
    /// Mean of the sup of the noise over the domain, unweighted.
    pub expected_sup: f64,
    /// An upper bound on the operator norm ([`Operator::norm`]).
    pub norm: f64,
}

impl Band {
    /// The same band for the same arguments, on any number of threads.
    ///
    /// In a dev build 4.5 s of one core in 2-D at degree 20, and far longer for a lattice of 10^4 points.
    pub fn simulate(shape: &Shape, law: Law, order: u32) -> Band {
        if shape.basis == Basis::Affine {
            return Band::affine(shape.dimensions, law);
        }
        let plan = Plan::new(shape.dimensions, shape.degree, law, order);
        let draws = plan.draws();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let mut sups = plan.sups(SEED, draws, threads);
        // Sorted before anything is summed, so that the threads cannot decide the result.
        sups.sort_by(|a, b| a.weighted.total_cmp(&b.weighted).then(a.plain.total_cmp(&b.plain)));
        let half_width = sups.get(rank(draws) - 1).map_or(f64::INFINITY, |sup| sup.weighted);
        let expected_sup = sups.iter().map(|sup| sup.plain).sum::<f64>() / f64::from(draws);
        Band { level: LEVEL, half_width, weights: plan.weights, draws, expected_sup, norm: norm(&plan.operator, order) }
    }

    /// The band of an affine function: its noise is largest at a corner, where it is the sum of `l + 1` absolute values: for
    /// Laplace noise a Gamma variable, whose quantile is rounded up; for other laws simulated.
    fn affine(dimensions: usize, law: Law) -> Band {
        let count = dimensions as f64 + 1.0;
        if law != Law::DiscreteLaplace {
            let mut rng = ChaCha12Rng::seed_from_u64(SEED);
            let mut sum = || unit_noise(law, dimensions + 1, &mut rng).iter().map(|z| z.abs()).sum::<f64>();
            let mut sums: Vec<f64> = (0..MAX_DRAWS).map(|_| sum()).collect();
            sums.sort_by(f64::total_cmp);
            let half_width = sums.get(rank(MAX_DRAWS) - 1).copied().unwrap_or(f64::INFINITY);
            let expected_sup = sums.iter().sum::<f64>() / f64::from(MAX_DRAWS);
            return Band { level: LEVEL, half_width, weights: vec![1.0], draws: MAX_DRAWS, expected_sup, norm: count };
        }
        // P[Gamma(n) > x] is that of fewer than n events of a Poisson process in time x.
        let exceeds = |x: f64| {
            let mut term = (-x).exp();
            (1..=dimensions).fold(term, |sum, j| {
                term *= x / j as f64;
                sum + term
            })
        };
        let (mut low, mut high) = (0.0, 100.0);
        while high - low > 1e-9 {
            let middle = (low + high) / 2.0;
            if exceeds(middle) > 1.0 - LEVEL { low = middle } else { high = middle }
        }
        Band { level: LEVEL, half_width: high, weights: vec![1.0], draws: 0, expected_sup: count, norm: count }
    }

    /// The band for `noise`, in its units.
    ///
    /// Discrete noise, and the rounding of exact values to its grid, each differ from what was simulated by half a
    /// step and (for a scale of at least one step) an eighth: a step and a quarter, times the operator norm, is added.
    pub fn scaled(&self, noise: &Noise) -> NoiseBand {
        let dimensions_at_most = 3;
        let largest_weight = self.weights.iter().fold(1.0_f64, |a, b| a.max(*b)).powi(dimensions_at_most);
        let half_width = noise.scale * self.half_width + 1.25 * noise.grid * self.norm * largest_weight;
        NoiseBand {
            covers: Covers::Noise,
            level: self.level,
            half_width,
            weights: self.weights.clone(),
            draws: self.draws,
        }
    }
}

impl NoiseBand {
    /// Half the width of the band at a point of the unit cube.
    pub(super) fn half_width_at(&self, point: &[f64]) -> f64 {
        self.half_width / point.iter().map(|x| weight(&self.weights, *x)).product::<f64>()
    }
}

/// `s(x)`.
fn weight(weights: &[f64], x: f64) -> f64 {
    let degree = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
    basis(degree, x).iter().zip(weights).map(|(b, w)| b * w).sum()
}

/// The measured norm, or `2^h - 1` where that is harmless: it multiplies a step of the grid, 2^-32 of the noise or
/// less.
fn norm(operator: &Operator, order: u32) -> f64 {
    if order <= 10 { f64::from((1_u32 << order) - 1) } else { operator.norm(order) }
}

/// The order statistic, from 1, that exceeds the quantile at [`LEVEL`] with confidence 99.9 %.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of draws")]
fn rank(draws: u32) -> usize {
    let expected = f64::from(draws) * LEVEL;
    (expected + 3.09 * (expected * (1.0 - LEVEL)).sqrt()).ceil().min(f64::from(draws)) as usize
}

/// Largest noise of one draw over the cube.
struct Sup {
    /// Of noise times the weights, corrected to hold between the nodes.
    weighted: f64,
    /// Of the noise itself, at the nodes.
    plain: f64,
}

impl Sup {
    fn or(self, other: &Sup) -> Sup {
        Sup { weighted: self.weighted.max(other.weighted), plain: self.plain.max(other.plain) }
    }
}

/// All that the draws of one simulation share.
struct Plan {
    dimensions: usize,
    degree: u32,
    law: Law,
    order: u32,
    operator: Operator,
    weights: Vec<f64>,
    at_nodes: Bases,
    /// At every [`SKIP`]th node, from the second on.
    at_few: Bases,
    /// No row exceeds its largest value at the few nodes by more than this factor.
    few_miss: f64,
    /// `s` at the nodes of the last axis.
    weights_at_nodes: Vec<f64>,
    weights_at_few: Vec<f64>,
    /// The product of `s` at the nodes of all other axes.
    weights_at_others: Vec<f64>,
    correction: f64,
}

impl Plan {
    fn new(dimensions: usize, degree: u32, law: Law, order: u32) -> Self {
        let weights = weights(dimensions, degree, order);
        let product_degree = degree + u32::try_from(weights.len() - 1).unwrap_or(u32::MAX);
        let (few, few_miss) = nodes(product_degree, NODE_DENSITY / SKIP as u32);
        let (nodes, factor) = nodes(product_degree, NODE_DENSITY);
        let weights_at_nodes: Vec<f64> = nodes.iter().map(|y| weight(&weights, *y)).collect();
        let weights_at_others = (1..dimensions).fold(vec![1.0], |product, _| {
            product.iter().flat_map(|p| weights_at_nodes.iter().map(move |w| p * w)).collect()
        });
        Plan {
            dimensions,
            degree,
            law,
            order,
            operator: Operator::new(dimensions, degree),
            at_nodes: Bases::at(degree, &nodes),
            at_few: Bases::at(degree, &few),
            few_miss,
            correction: (0..dimensions).map(|_| factor).product(),
            weights_at_few: few.iter().map(|y| weight(&weights, *y)).collect(),
            weights,
            weights_at_nodes,
            weights_at_others,
        }
    }

    fn points(&self) -> usize {
        (0..self.dimensions).map(|_| self.degree as usize + 1).product()
    }

    /// As many draws as [`WORK`] allows, a function of the plan alone.
    fn draws(&self) -> u32 {
        let (side, nodes) = (self.degree as usize + 1, self.weights_at_nodes.len());
        let refine = (self.order.saturating_sub(1) as usize) * self.dimensions * self.points() * side;
        let evaluate: usize = (1..=self.dimensions)
            .map(|axis| nodes.pow(axis as u32) * side.pow((self.dimensions - axis) as u32 + 1))
            .sum();
        u32::try_from(WORK / (refine + evaluate)).unwrap_or(MAX_DRAWS).clamp(MIN_DRAWS, MAX_DRAWS)
    }

    /// The sups of `draws` draws, in any order.
    fn sups(&self, seed: u64, draws: u32, threads: usize) -> Vec<Sup> {
        let every = |first: u32| (first..draws).step_by(threads).map(|draw| self.sup(seed, draw)).collect();
        thread::scope(|scope| {
            let workers: Vec<thread::ScopedJoinHandle<Vec<Sup>>> =
                (0..draws).take(threads).map(|first| scope.spawn(move || every(first))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    fn sup(&self, seed: u64, draw: u32) -> Sup {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(draw));
        let noise = unit_noise(self.law, self.points(), &mut rng);
        let mut tensor = self.operator.coefficients(&noise, self.order);
        for _ in 1..self.dimensions {
            tensor = self.at_nodes.turn_first_axis(&tensor);
        }
        // Rows that stay below the sup at a third of their nodes, by more than they can rise between them, are left out:
        // the sup is the same.
        let rows = self.weights_at_others.len();
        let mut few = vec![0.0; self.at_few.points()];
        let seen: Vec<Sup> = (0..rows)
            .map(|i| {
                self.at_few.contract(&tensor, i, &mut few);
                self.largest(i, &few, &self.weights_at_few)
            })
            .collect();
        let mut sup = seen.iter().fold(Sup { weighted: 0.0, plain: 0.0 }, |sup, row| sup.or(row));
        let mut all = vec![0.0; self.at_nodes.points()];
        for (i, row) in seen.iter().enumerate() {
            if row.weighted * self.few_miss > sup.weighted || row.plain * self.few_miss > sup.plain {
                self.at_nodes.contract(&tensor, i, &mut all);
                sup = sup.or(&self.largest(i, &all, &self.weights_at_nodes));
            }
        }
        sup
    }

    /// The sup over one row, of its values at nodes where `s` is `weights`.
    fn largest(&self, row: usize, values: &[f64], weights: &[f64]) -> Sup {
        let (mut weighted, mut plain) = (0.0_f64, 0.0_f64);
        for (value, weight) in values.iter().zip(weights) {
            plain = plain.max(value.abs());
            weighted = weighted.max((value * weight).abs());
        }
        let others = self.weights_at_others.get(row).copied().unwrap_or(f64::NAN);
        Sup { weighted: weighted * others * self.correction, plain }
    }
}

/// Noise of a law with scale 1 on `count` values, the grid so fine that it is not seen; for public simulation only.
pub(super) fn unit_noise(law: Law, count: usize, rng: &mut ChaCha12Rng) -> Vec<f64> {
    match law {
        Law::DiscreteLaplace => (0..count).map(|_| laplace(rng)).collect(),
        // Uniform in a cube whose radius has the Gamma law of N + 1 ([`crate::mechanism::noise::DiscreteCube`]).
        Law::DiscreteCube => {
            let radius = Gamma::new(count as f64 + 1.0, 1.0).map_or(f64::NAN, |gamma| gamma.sample(rng));
            (0..count).map(|_| radius * rng.random_range(-1.0..1.0)).collect()
        }
        Law::DiscreteGaussian => (0..count).map(|_| rng.sample(StandardNormal)).collect(),
        // A direction, and a length with the Gamma law of d.
        Law::Ball => {
            let radius = Gamma::new(count as f64, 1.0).map_or(f64::NAN, |gamma| gamma.sample(rng));
            let direction: Vec<f64> = (0..count).map(|_| rng.sample(StandardNormal)).collect();
            let length = direction.iter().map(|g| g * g).sum::<f64>().sqrt();
            direction.into_iter().map(|g| radius * g / length).collect()
        }
    }
}

/// Laplace noise of scale 1.
fn laplace(rng: &mut ChaCha12Rng) -> f64 {
    let size: f64 = rng.sample(Exp1);
    if rng.random() { size } else { -size }
}

/// Coefficients of `s`: one over the standard deviation of one-dimensional noise, on a lattice.
///
/// Positive coefficients make a positive polynomial. Three digits are kept: any positive `s` is valid, and a synopsis
/// carries them.
fn weights(dimensions: usize, degree: u32, order: u32) -> Vec<f64> {
    let weight_degree = degree.min(if dimensions < 3 { 24 } else { 12 });
    let operator = Operator::new(1, degree);
    let weight = |i| 1.0 / operator.spread(f64::from(i) / f64::from(weight_degree), order);
    (0..=weight_degree).map(|i| (weight(i) * 1000.0).round() / 1000.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAPLACE: Law = Law::DiscreteLaplace;

    fn simulate(dimensions: usize, degree: u32, law: Law, order: u32) -> Band {
        Band::simulate(&Shape { dimensions, degree, basis: Basis::Bernstein }, law, order)
    }

    #[test]
    fn the_band_of_an_affine_function_is_the_quantile_of_its_noise_at_a_corner() {
        let mut rng = ChaCha12Rng::seed_from_u64(7);
        for dimensions in 1..=3 {
            let band = Band::simulate(&Shape { dimensions, degree: 1, basis: Basis::Affine }, LAPLACE, 1);
            let corner = |rng: &mut ChaCha12Rng| (0..=dimensions).map(|_| laplace(rng).abs()).sum::<f64>();
            let outside = (0..40_000).filter(|_| corner(&mut rng) > band.half_width).count();
            // Four deviations of a count of 2,000.
            assert!(outside.abs_diff(2_000) < 175, "{dimensions}: {outside}");
        }
    }

    /// How often fresh noise of scale `factor` stays within the band at every point of a grid finer than the nodes.
    fn coverage((dimensions, degree, law, order): (usize, u32, Law, u32), factor: f64, draws: u32) -> f64 {
        let band = simulate(dimensions, degree, law, order);
        let noise = Noise { law, scale: 1.0, grid: 1e-12, calibrated: Default::default() };
        let band = band.scaled(&noise);
        let steps: u32 = if dimensions == 1 { 2_000 } else { 90 };
        let grid: Vec<f64> = (0..=steps).map(|i| f64::from(i) / f64::from(steps)).collect();
        let (operator, at_grid) = (Operator::new(dimensions, degree), Bases::at(degree, &grid));
        let points = (0..dimensions).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
            points.into_iter().flat_map(|p| grid.iter().map(move |y| [p.clone(), vec![*y]].concat())).collect()
        });
        let widths: Vec<f64> = points.iter().map(|point| band.half_width_at(point)).collect();
        let mut rng = ChaCha12Rng::seed_from_u64(12);
        let lattice: usize = (0..dimensions).map(|_| degree as usize + 1).product();
        let covered = (0..draws).filter(|_| {
            let noise: Vec<f64> = unit_noise(law, lattice, &mut rng).iter().map(|z| factor * z).collect();
            let moved = at_grid.evaluate(&operator.coefficients(&noise, order), dimensions);
            moved.iter().zip(&widths).all(|(noise, width)| noise.abs() <= *width)
        });
        covered.count() as f64 / f64::from(draws)
    }

    #[test]
    fn the_band_covers_fresh_noise_everywhere_at_once() {
        let cube = Law::DiscreteCube;
        let cases = [((1, 20, LAPLACE, 1), 4_000), ((1, 40, LAPLACE, 3), 4_000), ((2, 6, LAPLACE, 2), 2_000)];
        let of_cubes = [((1, 20, cube, 1), 4_000), ((1, 40, cube, 3), 4_000), ((2, 6, cube, 2), 2_000)];
        for (case, draws) in cases.into_iter().chain(of_cubes) {
            let covered = coverage(case, 1.0, draws);
            // At the true level of at least 0.95, three deviations of the count are 0.01 (4,000) and 0.015 (2,000).
            assert!(covered > 0.945 && covered < 0.985, "{case:?}: {covered}");
        }
    }

    /// Kolmogorov and Smirnov's distance to the Laplace law of scale 1; beyond 1.95 / sqrt(n) once in a thousand
    /// samples.
    #[test]
    fn simulated_noise_has_the_laplace_law() {
        let mut rng = ChaCha12Rng::seed_from_u64(4);
        let mut sample: Vec<f64> = (0..20_000).map(|_| laplace(&mut rng)).collect();
        sample.sort_by(f64::total_cmp);
        let distance = |sample: &[f64]| {
            let law = |z: f64| if z < 0.0 { z.exp() / 2.0 } else { 1.0 - (-z).exp() / 2.0 };
            let apart = |(i, z): (usize, &f64)| (law(*z) - (i as f64 + 0.5) / 20_000.0).abs();
            sample.iter().enumerate().map(apart).fold(0.0, f64::max)
        };
        let critical = 1.95 / 20_000_f64.sqrt();
        assert!(distance(&sample) < critical);
        let stretched: Vec<f64> = sample.iter().map(|z| 1.1 * z).collect();
        assert!(distance(&stretched) > critical);
    }

    #[test]
    fn a_scale_wrong_by_30_percent_is_noticed() {
        assert!(coverage((1, 20, LAPLACE, 1), 1.3, 2_000) < 0.9);
        assert!(coverage((1, 20, Law::DiscreteCube, 1), 1.3, 2_000) < 0.9);
    }

    #[test]
    fn the_width_is_within_10_percent_of_the_true_quantile() {
        let plan = Plan::new(1, 40, LAPLACE, 2);
        let band = simulate(1, 40, LAPLACE, 2);
        let mut fresh: Vec<f64> = plan.sups(77, 20_000, 2).iter().map(|sup| sup.weighted / plan.correction).collect();
        fresh.sort_by(f64::total_cmp);
        // The nodes alone miss the sup by less than the correction, so this quantile is at most the true one.
        let (least, width) = (fresh[19_000], band.half_width);
        assert!(width > least && width < 1.1 * least, "{width} against {least}");
    }

    #[test]
    fn the_band_is_far_narrower_inside_than_at_the_corners() {
        let band = simulate(1, 40, LAPLACE, 2);
        let at = |x| band.half_width / weight(&band.weights, x);
        assert!(at(0.5) < 0.45 * at(0.0), "{} {}", at(0.5), at(0.0));
        assert!((1.2..3.0).contains(&band.expected_sup));
    }

    #[test]
    fn threads_do_not_change_the_draws() {
        let plan = Plan::new(2, 4, LAPLACE, 2);
        let sorted = |threads| {
            let mut sups: Vec<f64> = plan.sups(SEED, 100, threads).iter().map(|sup| sup.weighted).collect();
            sups.sort_by(f64::total_cmp);
            sups
        };
        assert_eq!(sorted(1), sorted(3));
        assert_eq!(sorted(1).len(), 100);
    }

    #[test]
    fn heavy_plans_draw_less_often() {
        assert_eq!(Plan::new(1, 40, LAPLACE, 2).draws(), MAX_DRAWS);
        assert_eq!(Plan::new(3, 20, LAPLACE, 2).draws(), MIN_DRAWS);
        assert_eq!((rank(20_000), rank(1_000)), (19_096, 972));
    }
}
