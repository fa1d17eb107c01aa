//! The sup of the noise on what kernels read from tables of cells: of `sum_j a_j z_j / |a|`, `a` the weights of the nodes, over all points and
//! all bandwidths from the smallest on.
//!
//! Looked at on points and bandwidths that lie so densely that neighbours are nearly the same sum, for means and for lines through
//! records that are spread evenly; on several axes the lines are products. One table is drawn: sums over several are nearer to the
//! Gaussian law, whose tails are lighter.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::sup::{MAX_DRAWS, MIN_DRAWS, Sup, WORK};
use crate::NoiseDistribution;
use crate::TableBasis;
use crate::cholesky::dot;
use crate::noise::unit_noise;

/// From one bandwidth to the next.
const WIDER: f64 = 1.4;
/// Points a bandwidth, for one to three axes.
const A_WIDTH: [f64; 3] = [8.0, 5.0, 3.0];

/// The weights of the nodes of each axis at its points, of length 1, for every bandwidth and fit.
pub(super) struct Plan {
    law: NoiseDistribution,
    count: usize,
    fields: Vec<Vec<Rows>>,
}

/// One row a point.
type Rows = Vec<Vec<f64>>;

impl Plan {
    pub fn new(basis: &TableBasis, law: NoiseDistribution) -> Self {
        let mut fields = Vec::new();
        let mut bandwidths = basis.bandwidths.clone();
        loop {
            for is_line in [false, true] {
                let rows = |axis: usize| rows(basis, &bandwidths, axis, is_line);
                fields.push((0..bandwidths.len()).map(rows).collect());
            }
            if bandwidths.iter().all(|b| *b >= 0.5) {
                return Plan {
                    law,
                    count: basis.count(),
                    fields,
                };
            }
            bandwidths
                .iter_mut()
                .for_each(|b| *b = (*b * WIDER).min(1.0));
        }
    }

    pub fn draws(&self) -> u32 {
        let products: usize = self.fields.iter().map(|axes| self.products(axes)).sum();
        u32::try_from(WORK / products.max(1))
            .unwrap_or(MAX_DRAWS)
            .clamp(MIN_DRAWS, MAX_DRAWS)
    }

    fn products(&self, axes: &[Rows]) -> usize {
        let mut size = self.count;
        let of_axis = |rows: &Rows| {
            let products = size * rows.len();
            size = size / rows.first().map_or(1, Vec::len).max(1) * rows.len();
            products
        };
        axes.iter().map(of_axis).sum()
    }

    /// An error of 1 in every value moves a sum by at most so much.
    pub fn norm(&self) -> f64 {
        (self.count as f64).sqrt()
    }

    pub fn sup(&self, seed: u64, draw: u32) -> Sup {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(draw));
        let z = unit_noise(self.law, self.count, &mut rng);
        let largest = |axes: &Vec<Rows>| {
            let sums = axes
                .iter()
                .fold(z.clone(), |values, rows| of_first(&values, rows));
            sums.iter()
                .fold(0.0_f64, |largest, sum| largest.max(sum.abs()))
        };
        let plain = self.fields.iter().map(largest).fold(0.0, f64::max);
        Sup {
            weighted: plain,
            plain,
        }
    }
}

/// The first axis of `values` summed up at its points; what comes of it is the last axis.
fn of_first(values: &[f64], rows: &Rows) -> Vec<f64> {
    let nodes = rows.first().map_or(1, Vec::len).max(1);
    let inner = values.len() / nodes;
    let mut result = vec![0.0; inner * rows.len()];
    let mut along = vec![0.0; nodes];
    for at in 0..inner {
        along
            .iter_mut()
            .zip(values.iter().skip(at).step_by(inner))
            .for_each(|(to, from)| *to = *from);
        let to = result.iter_mut().skip(at * rows.len());
        to.zip(rows).for_each(|(to, row)| *to = dot(row, &along));
    }
    result
}

fn rows(basis: &TableBasis, bandwidths: &[f64], axis: usize, is_line: bool) -> Rows {
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
    let row = |point: u32| {
        let y = f64::from(point) / f64::from(points);
        let mut weights: Vec<f64> = nodes
            .iter()
            .map(|p| (-(p - y).powi(2) / (2.0 * variance)).exp())
            .collect();
        if is_line {
            let inside = |p: &f64| (0.0..=1.0).contains(p);
            let moment = |power: i32| -> f64 {
                let of = weights.iter().zip(&nodes).filter(|(_, p)| inside(p));
                of.map(|(weight, p)| weight * (p - y).powi(power)).sum()
            };
            let slope = moment(1) / moment(2).max(f64::MIN_POSITIVE);
            weights
                .iter_mut()
                .zip(&nodes)
                .for_each(|(weight, p)| *weight *= 1.0 - slope * (p - y));
        }
        let length = dot(&weights, &weights).sqrt().max(f64::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight /= length);
        weights
    };
    (0..=points).map(row).collect()
}
