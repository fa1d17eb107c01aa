//! The sup of the noise on what kernels read from tables of cells: of `sum_j a_j z_j / |a|`, `a` the weights of the nodes, over all points and
//! all bandwidths from the smallest on.
//!
//! Looked at on points and bandwidths that lie so densely that neighbours are nearly the same sum, for means and for lines through
//! records that are spread evenly; on several axes the lines are products. One table is drawn: sums over several are nearer to the
//! Gaussian law, whose tails are lighter.

use super::largest_magnitude;
use super::sup::{NoiseSup, affordable_draws, draw_generator};
use crate::NoiseDistribution;
use crate::TableBasis;
use crate::cholesky::dot_product;
use crate::noise::unit_noise;
use crate::tensor::even_coordinates;

/// From one bandwidth to the next.
const WIDER: f64 = 1.4;
/// Points a bandwidth, for one to three axes.
const A_WIDTH: [f64; 3] = [8.0, 5.0, 3.0];

/// The weights of the nodes of each axis at its points, of length 1, for every bandwidth and fit.
pub(super) struct TableBandPlan {
    law: NoiseDistribution,
    count: usize,
    fields: Vec<Vec<PointRows>>,
}

/// One row a point.
type PointRows = Vec<Vec<f64>>;

impl TableBandPlan {
    pub fn new(basis: &TableBasis, law: NoiseDistribution) -> Self {
        let mut fields = Vec::new();
        let mut bandwidths = basis.bandwidths.clone();
        loop {
            for is_line in [false, true] {
                fields.push(
                    (0..bandwidths.len())
                        .map(|axis| axis_weights(basis, &bandwidths, axis, is_line))
                        .collect(),
                );
            }
            if bandwidths.iter().all(|b| *b >= 0.5) {
                return TableBandPlan {
                    law,
                    count: basis.count(),
                    fields,
                };
            }
            for bandwidth in &mut bandwidths {
                *bandwidth = (*bandwidth * WIDER).min(1.0);
            }
        }
    }

    pub fn draws(&self) -> u32 {
        let products: usize = self.fields.iter().map(|axes| self.products(axes)).sum();
        affordable_draws(products)
    }

    /// Number of products for one bandwidth and fit.
    fn products(&self, axes: &[PointRows]) -> usize {
        let mut size = self.count;
        let mut products = 0;
        for rows in axes {
            products += size * rows.len();
            size = size / rows.first().map_or(1, Vec::len).max(1) * rows.len();
        }
        products
    }

    /// An error of 1 in every value moves a sum by at most so much.
    pub fn norm(&self) -> f64 {
        (self.count as f64).sqrt()
    }

    pub fn draw_sup(&self, seed: u64, draw: u32) -> NoiseSup {
        let z = unit_noise(self.law, self.count, &mut draw_generator(seed, draw));
        let mut plain = 0.0_f64;
        for axes in &self.fields {
            let mut sums = z.clone();
            for rows in axes {
                sums = sum_first_axis(&sums, rows);
            }
            plain = plain.max(largest_magnitude(&sums));
        }
        NoiseSup {
            weighted: plain,
            plain,
        }
    }
}

/// Sums up the first axis of `values` at its points; what comes of it is the last axis.
fn sum_first_axis(values: &[f64], rows: &PointRows) -> Vec<f64> {
    let nodes = rows.first().map_or(1, Vec::len).max(1);
    let inner = values.len() / nodes;
    let mut sums = Vec::with_capacity(inner * rows.len());
    let mut along = Vec::with_capacity(nodes);
    for offset in 0..inner {
        along.clear();
        along.extend(values.iter().skip(offset).step_by(inner));
        sums.extend(rows.iter().map(|row| dot_product(row, &along)));
    }
    sums
}

/// Weights of the nodes of one axis at its points.
fn axis_weights(basis: &TableBasis, bandwidths: &[f64], axis: usize, is_line: bool) -> PointRows {
    let nodes = basis.nodes().swap_remove(axis);
    let step = 1.0 / f64::from(basis.steps[axis]);
    let variance = bandwidths[axis].powi(2) - basis.spline.variance() * step * step;
    let a_width = A_WIDTH.get(bandwidths.len() - 1).copied().unwrap_or(3.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float saturates"
    )]
    let points = (a_width / bandwidths[axis]).ceil().clamp(4.0, 4e3) as u32;
    let mut rows = Vec::with_capacity(points as usize + 1);
    for y in even_coordinates(points) {
        let mut weights: Vec<f64> = nodes
            .iter()
            .map(|node| (-(node - y).powi(2) / (2.0 * variance)).exp())
            .collect();
        if is_line {
            fit_line(&mut weights, &nodes, y);
        }
        let length = dot_product(&weights, &weights)
            .sqrt()
            .max(f64::MIN_POSITIVE);
        for weight in &mut weights {
            *weight /= length;
        }
        rows.push(weights);
    }
    rows
}

/// Turns the weights of a mean around `y` into those of a line through records that are spread evenly.
fn fit_line(weights: &mut [f64], nodes: &[f64], y: f64) {
    let mut first_moment = 0.0;
    let mut second_moment = 0.0;
    for (weight, node) in weights.iter().zip(nodes) {
        if (0.0..=1.0).contains(node) {
            first_moment += *weight * (node - y);
            second_moment += *weight * (node - y).powi(2);
        }
    }
    let slope = first_moment / f64::max(second_moment, f64::MIN_POSITIVE);
    for (weight, node) in weights.iter_mut().zip(nodes) {
        *weight *= 1.0 - slope * (node - y);
    }
}
