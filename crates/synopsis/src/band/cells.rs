//! The sup of noise on cells: `G(y) = sum_j z_j K(y - p_j)`, `z` the noise on the counts.
//!
//! With `P = L L'` the kernel is a product in `u = L' y`, slanted or not: so the values at the points of a lattice that is
//! even in `u` come of one sum after the other, where the sum over the nodes of an axis has weights of its own for each node of
//! the later axes.
//!
//! Between the points: a place of a cell of the lattice is the mean of the cell's corners with weights for which the
//! first order cancels, so `|G|` there is at most the largest at a corner, and half of what the second derivatives add. Along `e`
//! these are at most `||G|| sqrt(3) |e|^2`, `||G||^2 = z' K z` in the space of the kernel, and the weighted mean of `|e|^2` is at most
//! the sum of `(d_a / 2)^2` over the steps `d_a`. Corners may lie outside of the cube.

use super::sup::{NoiseSup, affordable_draws, draw_generator};
use crate::CellBasis;
use crate::NoiseDistribution;
use crate::cholesky::{cholesky_factor, dot_product, solve_upper};
use crate::noise::{unit_noise, weighted_noise};
use crate::quadratic::diagonal_matrix;
use crate::tensor::grid_points;

/// Most products of one draw: where there would be more the lattice is wider.
const MOST_PRODUCTS: usize = 20_000_000;
/// Further from a node, in widths, its kernel is below `2^-53`.
const REACH: f64 = 8.6;
/// Entries of the kernel matrix below it are bounded by their sum alone.
const NEAR: f64 = 1e-3;
/// Places of an axis where the quantile of the noise at a point is looked at.
const PLACES: u32 = 24;

/// The kernels of the nodes on a public lattice of points, and how much the sup over the cube exceeds that over the points.
pub(super) struct CellBandPlan {
    law: NoiseDistribution,
    count: usize,
    /// Sums over the nodes, one an axis.
    sums: Vec<AxisSum>,
    /// Tells which points are corners of a cell that may meet the cube.
    inside: Vec<bool>,
    /// `sup |G| <= max_u |G(u)| + rise * ||G||`.
    rise: f64,
    gram: NodeGram,
    /// The largest `||a(y)||_1` on the points.
    norm: f64,
}

/// The sum over the nodes of one axis, at each point along it.
struct AxisSum {
    nodes: usize,
    /// Weights at the points, for each node of the later axes, the last one fastest; one for all where it is the same for all.
    points: Vec<Vec<NodeWeights>>,
}

/// The nodes that matter at one point, and their weights.
struct NodeWeights {
    first: usize,
    weights: Vec<f64>,
}

impl CellBandPlan {
    pub fn new(basis: &CellBasis, law: NoiseDistribution) -> Self {
        let axes = basis.steps.len();
        let mut a_width = [16.0, 10.0, 8.0]
            .get(axes.saturating_sub(1))
            .copied()
            .unwrap_or(8.0);
        let mut lattice = BandLattice::new(basis, a_width);
        while lattice.products(basis) > MOST_PRODUCTS && a_width > 1.0 {
            a_width *= 0.9;
            lattice = BandLattice::new(basis, a_width);
        }
        let half_steps = lattice
            .axes
            .iter()
            .map(|axis| (axis.step() / 2.0).powi(2))
            .sum::<f64>();
        let mut plan = CellBandPlan {
            law,
            count: basis.count(),
            sums: (0..axes)
                .map(|axis| lattice.axis_sum(basis, axis))
                .collect(),
            inside: lattice.points_near_cube(),
            rise: 3.0_f64.sqrt() / 2.0 * half_steps,
            gram: NodeGram::new(basis),
            norm: 1.0,
        };
        plan.norm = plan.largest_on_points(&vec![1.0; plan.count]);
        plan
    }

    pub fn draws(&self) -> u32 {
        affordable_draws(self.products())
    }

    /// Number of products of one draw.
    fn products(&self) -> usize {
        let mut left = self.count;
        let mut done = 1;
        let mut products = self.gram.near.len() * self.count;
        for sum in &self.sums {
            left /= sum.nodes;
            let weights: usize = sum
                .points
                .iter()
                .flatten()
                .map(|row| row.weights.len())
                .sum();
            products += weights * left / sum.points.len().max(1) * done;
            done *= sum.points.first().map_or(1, Vec::len);
        }
        products
    }

    /// An error of 1 in every value moves the function by at most so much on the points; between them it can be a little more.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    pub fn draw_sup(&self, seed: u64, draw: u32) -> NoiseSup {
        let z = unit_noise(self.law, self.count, &mut draw_generator(seed, draw));
        let plain = self.largest_on_points(&z);
        NoiseSup {
            weighted: plain + self.rise * self.gram.square(&z).sqrt(),
            plain,
        }
    }

    /// `max_u |sum_j z_j K(y - p_j)|` on the points.
    fn largest_on_points(&self, z: &[f64]) -> f64 {
        let mut values = z.to_vec();
        for sum in &self.sums {
            values = sum.apply(&values);
        }
        let mut largest = 0.0_f64;
        for (value, is_inside) in values.iter().zip(&self.inside) {
            if *is_inside {
                largest = largest.max(value.abs());
            }
        }
        largest
    }
}

impl AxisSum {
    /// Sums up the first axis of `values`; what comes of it is the last axis.
    fn apply(&self, values: &[f64]) -> Vec<f64> {
        let inner = values.len() / self.nodes;
        let along = self.points.first().map_or(0, Vec::len);
        let width = inner / self.points.len().max(1);
        let mut result = vec![0.0; inner * along];
        let mut sums = vec![0.0; width];
        for (block, rows) in self.points.iter().enumerate() {
            let start = block * width;
            for (point, row) in rows.iter().enumerate() {
                sums.fill(0.0);
                let slices = values.chunks_exact(inner).skip(row.first);
                for (weight, slice) in row.weights.iter().zip(slices) {
                    for (sum, value) in sums.iter_mut().zip(&slice[start..start + width]) {
                        *sum += weight * value;
                    }
                }
                let column = result.iter_mut().skip(start * along + point).step_by(along);
                for (entry, sum) in column.zip(&sums) {
                    *entry = *sum;
                }
            }
        }
        result
    }
}

/// Points that are even in `u = L' y`, in a box that holds the cube.
struct BandLattice {
    /// Rows of `L`.
    factor: Vec<Vec<f64>>,
    axes: Vec<LatticeAxis>,
}

/// Points along one axis of `u`, which is in widths of the kernel.
struct LatticeAxis {
    first: f64,
    length: f64,
    steps: u32,
}

impl LatticeAxis {
    fn step(&self) -> f64 {
        self.length / f64::from(self.steps)
    }

    fn points(&self) -> Vec<f64> {
        (0..=self.steps)
            .map(|j| self.first + self.length * f64::from(j) / f64::from(self.steps))
            .collect()
    }
}

impl BandLattice {
    /// Lays `a_width` points on every width of the kernel.
    fn new(basis: &CellBasis, a_width: f64) -> Self {
        let mut lower = basis.precision.clone();
        for (index, row) in lower.iter_mut().enumerate() {
            row.truncate(index + 1);
        }
        let factor = cholesky_factor(lower, 0.0);
        let mut axes = Vec::with_capacity(factor.len());
        for axis in 0..factor.len() {
            let column: Vec<f64> = factor
                .iter()
                .filter_map(|row| row.get(axis).copied())
                .collect();
            let first = column.iter().map(|l| l.min(0.0)).sum::<f64>();
            let length = column.iter().map(|l| l.abs()).sum::<f64>();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 8 to 100000"
            )]
            let steps = (length * a_width).ceil().clamp(8.0, 1e5) as u32;
            axes.push(LatticeAxis {
                first,
                length,
                steps,
            });
        }
        BandLattice { factor, axes }
    }

    /// About how many products one draw takes.
    fn products(&self, basis: &CellBasis) -> usize {
        let mut left = basis.count();
        let mut done = 1;
        let mut all = 0_usize;
        for (axis, nodes) in basis.nodes().iter().enumerate() {
            let step = self.factor[axis][axis] / f64::from(basis.steps[axis]);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a cast from a float saturates"
            )]
            let near = nodes.len().min((2.0 * REACH / step) as usize + 1);
            left /= nodes.len();
            let points = self.axes[axis].steps as usize + 1;
            all = all.saturating_add(left.saturating_mul(near * points).saturating_mul(done));
            done = done.saturating_mul(points);
        }
        all
    }

    fn axis_sum(&self, basis: &CellBasis, axis: usize) -> AxisSum {
        let nodes = basis.nodes();
        let scale = self.factor[axis][axis];
        let points = self.axes[axis].points();
        let mut rows = Vec::new();
        for shift in self.node_shifts(&nodes, axis) {
            rows.push(
                points
                    .iter()
                    .map(|u| NodeWeights::new(&nodes[axis], scale, shift, *u))
                    .collect(),
            );
        }
        AxisSum {
            nodes: nodes[axis].len(),
            points: rows,
        }
    }

    /// Shifts of the nodes of an axis, along `u`, by the nodes of the later axes; one shift of 0 where the kernel is not slanted.
    fn node_shifts(&self, nodes: &[Vec<f64>], axis: usize) -> Vec<f64> {
        let slants = &self.factor[axis + 1..];
        if slants.iter().all(|row| row[axis] == 0.0) {
            return vec![0.0];
        }
        let mut shifts = vec![0.0];
        for (row, along) in slants.iter().zip(&nodes[axis + 1..]) {
            let slant = row[axis];
            let mut longer = Vec::with_capacity(shifts.len() * along.len());
            for shift in &shifts {
                longer.extend(along.iter().map(|node| shift + slant * node));
            }
            shifts = longer;
        }
        shifts
    }

    /// Tells which points may be corners of a cell that meets the cube: those that lie no further outside of it than a cell reaches.
    fn points_near_cube(&self) -> Vec<bool> {
        let axes = self.axes.len();
        let steps: Vec<f64> = self.axes.iter().map(LatticeAxis::step).collect();
        // How far a cell reaches in the cube along each axis, by a step along each axis of `u`.
        let mut reach = vec![0.0; axes];
        for step in diagonal_matrix(&steps) {
            for (reach, moved) in reach.iter_mut().zip(solve_upper(&self.factor, &step)) {
                *reach += moved.abs();
            }
        }
        let coordinates: Vec<Vec<f64>> = self.axes.iter().map(LatticeAxis::points).collect();
        let mut are_near = Vec::new();
        for u in grid_points(&coordinates) {
            let place = solve_upper(&self.factor, &u);
            are_near.push(
                place
                    .iter()
                    .zip(&reach)
                    .all(|(y, reach)| (-reach - 1e-9..=1.0 + reach + 1e-9).contains(y)),
            );
        }
        are_near
    }
}

impl NodeWeights {
    /// Weights at the point `u` of nodes that lie at `scale p + shift` along `u`.
    fn new(nodes: &[f64], scale: f64, shift: f64, u: f64) -> Self {
        let first = nodes.partition_point(|node| scale * node + shift - u < -REACH);
        let mut weights = Vec::new();
        for node in &nodes[first..] {
            let away = scale * node + shift - u;
            if away > REACH {
                break;
            }
            weights.push((-away * away / 2.0).exp());
        }
        NodeWeights { first, weights }
    }
}

/// The kernel matrix `K` of the nodes: its entry depends on how many steps two nodes are apart on each axis.
struct NodeGram {
    /// Nodes of each axis; axes that are not there come first and have one.
    widths: [usize; 3],
    /// Entries of at least [`NEAR`], one of each pair of opposite ways, without the diagonal.
    near: Vec<GramEntry>,
    /// The sum of all others, over both ways: no eigenvalue of theirs is larger.
    far: f64,
}

/// The entry of all pairs of nodes that are so many steps apart on each axis.
struct GramEntry {
    apart: [isize; 3],
    value: f64,
}

impl NodeGram {
    fn new(basis: &CellBasis) -> Self {
        let absent = 3_usize.saturating_sub(basis.steps.len());
        let mut widths = [1; 3];
        for (width, nodes) in widths.iter_mut().skip(absent).zip(basis.nodes()) {
            *width = nodes.len();
        }
        let [a, b, c] = widths.map(|width| width as isize - 1);
        let mut gram = NodeGram {
            widths,
            near: Vec::new(),
            far: 0.0,
        };
        for i in 0..=a {
            for j in -b..=b {
                for k in -c..=c {
                    if [i, j, k] > [0, 0, 0] {
                        gram.add_entry(basis, [i, j, k]);
                    }
                }
            }
        }
        gram
    }

    fn add_entry(&mut self, basis: &CellBasis, apart: [isize; 3]) {
        let absent = 3_usize.saturating_sub(basis.steps.len());
        let offset: Vec<f64> = apart
            .iter()
            .skip(absent)
            .zip(&basis.steps)
            .map(|(count, steps)| *count as f64 / f64::from(*steps))
            .collect();
        let square: f64 = basis
            .precision
            .iter()
            .zip(&offset)
            .map(|(row, along)| along * dot_product(row, &offset))
            .sum();
        let value = (-square.max(0.0) / 2.0).exp();
        if value >= NEAR {
            self.near.push(GramEntry { apart, value });
        } else {
            self.far += 2.0 * value;
        }
    }

    /// At least `z' K z`.
    fn square(&self, z: &[f64]) -> f64 {
        let pairs: f64 = self
            .near
            .iter()
            .map(|entry| entry.value * self.products(z, entry.apart))
            .sum();
        ((1.0 + self.far) * dot_product(z, z) + 2.0 * pairs).max(0.0)
    }

    /// The sum of `z_i z_j` over the nodes `i` and those `j` that are so many steps further.
    fn products(&self, z: &[f64], apart: [isize; 3]) -> f64 {
        let [_, width, depth] = self.widths;
        let [first, second, third] = [0, 1, 2].map(|axis| {
            let width = self.widths[axis];
            let apart = apart[axis];
            apart.min(0).unsigned_abs()..width - apart.max(0).unsigned_abs()
        });
        let further = (apart[0] * width as isize + apart[1]) * depth as isize + apart[2];
        let mut sum = 0.0;
        for i in first {
            for j in second.clone() {
                let start = (i * width + j) * depth + third.start;
                let other = start.saturating_add_signed(further);
                sum += dot_product(
                    &z[start..start + third.len()],
                    &z[other..other + third.len()],
                );
            }
        }
        sum
    }
}

/// `q` such that noise of scale 1 stays within `q |a(y)|_2` with 95 % probability at any one point `y`, `a` the kernels of the
/// nodes there: the largest at places that lie evenly within two steps of the middle and at the corner.
pub(super) fn pointwise(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    let corner = vec![0.0; basis.steps.len()];
    let mut places = vec![corner];
    for place in 0..=PLACES {
        let steps_away = 2.0 * f64::from(place) / f64::from(PLACES);
        places.push(
            basis
                .steps
                .iter()
                .map(|steps| (0.5 + steps_away / f64::from(*steps)).min(1.0))
                .collect(),
        );
    }
    let mut largest = 0.0_f64;
    for place in places {
        let influences = basis.kernel_values(&place);
        let noise = weighted_noise(law, 1.0, &influences);
        largest = largest.max(noise.half_width / dot_product(&influences, &influences).sqrt());
    }
    largest
}
