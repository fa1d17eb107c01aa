//! The sup of the noise of Bernstein polynomials.

use super::sup::{NoiseSup, affordable_draws, draw_generator, weight_at};
use crate::NoiseDistribution;
use crate::bernstein::{Bases, DenseNodes, Operator};
use crate::noise::unit_noise;
use crate::tensor::outer_product;

/// Chebyshev nodes a degree; the continuum correction is 1.035 an axis.
const NODE_DENSITY: u32 = 6;
/// Every third of these nodes is one of those at a third of the density, where a row is looked at first.
const SKIP: usize = 3;

/// All that the draws of one simulation share.
pub(super) struct LatticeBandPlan {
    dimensions: usize,
    degree: u32,
    law: NoiseDistribution,
    order: u32,
    operator: Operator,
    pub weights: Vec<f64>,
    at_nodes: Bases,
    /// Bases at every [`SKIP`]th node, from the second on.
    at_few: Bases,
    /// No row exceeds its largest value at the few nodes by more than this factor.
    few_miss: f64,
    /// `s` at the nodes of the last axis.
    weights_at_nodes: Vec<f64>,
    weights_at_few: Vec<f64>,
    /// The product of `s` at the nodes of all other axes.
    weights_at_others: Vec<f64>,
    pub correction: f64,
}

impl LatticeBandPlan {
    pub fn new(dimensions: usize, degree: u32, law: NoiseDistribution, order: u32) -> Self {
        let weights = weights(dimensions, degree, order);
        let product_degree = degree + u32::try_from(weights.len() - 1).unwrap_or(u32::MAX);
        let few = DenseNodes::new(product_degree, NODE_DENSITY / SKIP as u32);
        let nodes = DenseNodes::new(product_degree, NODE_DENSITY);
        let weights_at_nodes = weights_at(&weights, &nodes.points);
        let other_axes = vec![weights_at_nodes.clone(); dimensions.saturating_sub(1)];
        LatticeBandPlan {
            dimensions,
            degree,
            law,
            order,
            operator: Operator::new(dimensions, degree),
            at_nodes: Bases::at(degree, &nodes.points),
            at_few: Bases::at(degree, &few.points),
            few_miss: few.factor,
            correction: (0..dimensions).map(|_| nodes.factor).product(),
            weights_at_few: weights_at(&weights, &few.points),
            weights,
            weights_at_nodes,
            weights_at_others: outer_product(&other_axes),
        }
    }

    fn points(&self) -> usize {
        (self.degree as usize + 1).pow(self.dimensions as u32)
    }

    /// Number of draws, a function of the plan alone.
    pub fn draws(&self) -> u32 {
        let side = self.degree as usize + 1;
        let nodes = self.weights_at_nodes.len();
        let refine =
            (self.order.saturating_sub(1) as usize) * self.dimensions * self.points() * side;
        let evaluate: usize = (1..=self.dimensions)
            .map(|axis| nodes.pow(axis as u32) * side.pow((self.dimensions - axis) as u32 + 1))
            .sum();
        affordable_draws(refine + evaluate)
    }

    /// An upper bound on the operator norm, or `2^h - 1` where that is harmless: it multiplies a step of the grid, 2^-32 of
    /// the noise or less.
    pub fn norm(&self) -> f64 {
        if self.order <= 10 {
            f64::from((1_u32 << self.order) - 1)
        } else {
            self.operator.norm_bound(self.order)
        }
    }

    pub fn draw_sup(&self, seed: u64, draw: u32) -> NoiseSup {
        let noise = unit_noise(self.law, self.points(), &mut draw_generator(seed, draw));
        let mut tensor = self.operator.coefficients(&noise, self.order);
        for _ in 1..self.dimensions {
            tensor = self.at_nodes.turn_first_axis(&tensor);
        }
        // Rows that stay below the sup at a third of their nodes, by more than they can rise between them, are left out:
        // the sup is the same.
        let mut few = vec![0.0; self.at_few.points()];
        let mut seen = Vec::with_capacity(self.weights_at_others.len());
        let mut sup = NoiseSup {
            weighted: 0.0,
            plain: 0.0,
        };
        for row in 0..self.weights_at_others.len() {
            self.at_few.contract(&tensor, row, &mut few);
            let largest = self.largest_in_row(row, &few, &self.weights_at_few);
            sup = sup.max(&largest);
            seen.push(largest);
        }
        let mut all = vec![0.0; self.at_nodes.points()];
        for (row, largest) in seen.iter().enumerate() {
            if largest.weighted * self.few_miss > sup.weighted
                || largest.plain * self.few_miss > sup.plain
            {
                self.at_nodes.contract(&tensor, row, &mut all);
                sup = sup.max(&self.largest_in_row(row, &all, &self.weights_at_nodes));
            }
        }
        sup
    }

    /// The sup over one row, of its values at nodes where `s` is `weights`.
    fn largest_in_row(&self, row: usize, values: &[f64], weights: &[f64]) -> NoiseSup {
        let mut weighted = 0.0_f64;
        let mut plain = 0.0_f64;
        for (value, weight) in values.iter().zip(weights) {
            plain = plain.max(value.abs());
            weighted = weighted.max((value * weight).abs());
        }
        let others = self.weights_at_others.get(row).copied().unwrap_or(f64::NAN);
        NoiseSup {
            weighted: weighted * others * self.correction,
            plain,
        }
    }
}

/// Coefficients of `s`: one over the standard deviation of one-dimensional noise, on a lattice.
///
/// Positive coefficients make a positive polynomial. Three digits are kept: any positive `s` is valid, and a synopsis
/// carries them.
fn weights(dimensions: usize, degree: u32, order: u32) -> Vec<f64> {
    let weight_degree = degree.min(if dimensions < 3 { 24 } else { 12 });
    let operator = Operator::new(1, degree);
    let mut weights = Vec::with_capacity(weight_degree as usize + 1);
    for index in 0..=weight_degree {
        let place = f64::from(index) / f64::from(weight_degree);
        let weight = 1.0 / operator.noise_deviation(place, order);
        weights.push((weight * 1000.0).round() / 1000.0);
    }
    weights
}

/// Values of `s` at some points of one axis.
fn weights_at(weights: &[f64], points: &[f64]) -> Vec<f64> {
    points.iter().map(|y| weight_at(weights, *y)).collect()
}
