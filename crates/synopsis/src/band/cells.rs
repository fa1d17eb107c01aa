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

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::sup::{MAX_DRAWS, MIN_DRAWS, Sup, WORK};
use crate::CellBasis;
use crate::NoiseDistribution;
use crate::cholesky::{backward, dot, factor};
use crate::noise::{unit_noise, weighted};

/// Most products of one draw: where there would be more the lattice is wider.
const MOST_PRODUCTS: usize = 20_000_000;
/// Further from a node, in widths, its kernel is below `2^-53`.
const REACH: f64 = 8.6;
/// Entries of the kernel matrix below it are bounded by their sum alone.
const NEAR: f64 = 1e-3;
/// Places of an axis where the quantile of the noise at a point is looked at.
const PLACES: u32 = 24;

/// The kernels of the nodes on a public lattice of points, and how much the sup over the cube exceeds that over the points.
pub(super) struct Plan {
    law: NoiseDistribution,
    count: usize,
    /// One an axis.
    sums: Vec<Sum>,
    /// Which points are corners of a cell that may meet the cube.
    inside: Vec<bool>,
    /// `sup |G| <= max_u |G(u)| + rise * ||G||`.
    rise: f64,
    gram: Gram,
    /// The largest `||a(y)||_1` on the points.
    norm: f64,
}

/// The sum over the nodes of one axis, at each point along it.
struct Sum {
    nodes: usize,
    /// For each node of the later axes, the last one fastest; one for all where it is the same for all.
    points: Vec<Vec<Row>>,
}

/// The nodes that matter at one point, and their weights.
struct Row {
    first: usize,
    weights: Vec<f64>,
}

impl Plan {
    pub fn new(basis: &CellBasis, law: NoiseDistribution) -> Self {
        let axes = basis.steps.len();
        let mut a_width = [16.0, 10.0, 8.0]
            .get(axes.saturating_sub(1))
            .copied()
            .unwrap_or(8.0);
        let mut lattice = Lattice::of(basis, a_width);
        while lattice.products(basis) > MOST_PRODUCTS && a_width > 1.0 {
            a_width *= 0.9;
            lattice = Lattice::of(basis, a_width);
        }
        let half_steps = lattice
            .axes
            .iter()
            .map(|axis| (axis.step() / 2.0).powi(2))
            .sum::<f64>();
        let mut plan = Plan {
            law,
            count: basis.count(),
            sums: (0..axes).map(|axis| lattice.sum(basis, axis)).collect(),
            inside: lattice.inside(),
            rise: 3.0_f64.sqrt() / 2.0 * half_steps,
            gram: Gram::of(basis),
            norm: 1.0,
        };
        plan.norm = plan.largest(&vec![1.0; plan.count]);
        plan
    }

    pub fn draws(&self) -> u32 {
        u32::try_from(WORK / self.products().max(1))
            .unwrap_or(MAX_DRAWS)
            .clamp(MIN_DRAWS, MAX_DRAWS)
    }

    /// Of one draw.
    fn products(&self) -> usize {
        let mut left = self.count;
        let mut done = 1;
        let of_axis = |sum: &Sum| {
            left /= sum.nodes;
            let weights: usize = sum
                .points
                .iter()
                .flatten()
                .map(|row| row.weights.len())
                .sum();
            let products = weights * left / sum.points.len().max(1) * done;
            done *= sum.points.first().map_or(1, Vec::len);
            products
        };
        self.sums.iter().map(of_axis).sum::<usize>() + self.gram.near.len() * self.count
    }

    /// An error of 1 in every value moves the function by at most so much on the points; between them it can be a little more.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    pub fn sup(&self, seed: u64, draw: u32) -> Sup {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(draw));
        let z = unit_noise(self.law, self.count, &mut rng);
        let plain = self.largest(&z);
        Sup {
            weighted: plain + self.rise * self.gram.square(&z).sqrt(),
            plain,
        }
    }

    /// `max_u |sum_j z_j K(y - p_j)|` on the points.
    fn largest(&self, z: &[f64]) -> f64 {
        let values = self
            .sums
            .iter()
            .fold(z.to_vec(), |values, sum| sum.of_first(&values));
        let inside = values
            .iter()
            .zip(&self.inside)
            .filter(|(_, inside)| **inside);
        inside.fold(0.0, |largest: f64, (value, _)| largest.max(value.abs()))
    }
}

impl Sum {
    /// The first axis of `values` summed up; what comes of it is the last axis.
    fn of_first(&self, values: &[f64]) -> Vec<f64> {
        let inner = values.len() / self.nodes;
        let along = self.points.first().map_or(0, Vec::len);
        let width = inner / self.points.len().max(1);
        let mut result = vec![0.0; inner * along];
        let mut sums = vec![0.0; width];
        for (block, rows) in self.points.iter().enumerate() {
            let start = block * width;
            for (point, row) in rows.iter().enumerate() {
                sums.fill(0.0);
                for (weight, values) in row
                    .weights
                    .iter()
                    .zip(values.chunks_exact(inner).skip(row.first))
                {
                    let values = &values[start..start + width];
                    sums.iter_mut()
                        .zip(values)
                        .for_each(|(sum, value)| *sum += weight * value);
                }
                let to = result.iter_mut().skip(start * along + point).step_by(along);
                to.zip(&sums).for_each(|(to, sum)| *to = *sum);
            }
        }
        result
    }
}

/// Points that are even in `u = L' y`, in a box that holds the cube.
struct Lattice {
    /// The rows of `L`.
    factor: Vec<Vec<f64>>,
    axes: Vec<Along>,
}

/// Points along one axis of `u`, which is in widths of the kernel.
struct Along {
    first: f64,
    length: f64,
    steps: u32,
}

impl Along {
    fn step(&self) -> f64 {
        self.length / f64::from(self.steps)
    }

    fn points(&self) -> Vec<f64> {
        (0..=self.steps)
            .map(|j| self.first + self.length * f64::from(j) / f64::from(self.steps))
            .collect()
    }
}

impl Lattice {
    /// With so many points a width.
    fn of(basis: &CellBasis, a_width: f64) -> Self {
        let lower = basis
            .precision
            .iter()
            .enumerate()
            .map(|(i, row)| row.iter().copied().take(i + 1).collect());
        let factor = factor(lower.collect(), 0.0);
        let along = |axis: usize| {
            let of_cube = || factor.iter().filter_map(|row| row.get(axis).copied());
            let first = of_cube().map(|l| l.min(0.0)).sum::<f64>();
            let length = of_cube().map(f64::abs).sum::<f64>();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 8 to 100000"
            )]
            let steps = (length * a_width).ceil().clamp(8.0, 1e5) as u32;
            Along {
                first,
                length,
                steps,
            }
        };
        Lattice {
            axes: (0..factor.len()).map(along).collect(),
            factor,
        }
    }

    /// About how many products one draw takes.
    fn products(&self, basis: &CellBasis) -> usize {
        let mut left = basis.count();
        let mut done = 1;
        let mut all = 0_usize;
        for (axis, (along, nodes)) in self.axes.iter().zip(basis.nodes()).enumerate() {
            let step = self.factor[axis][axis] / f64::from(basis.steps[axis]);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a cast from a float saturates"
            )]
            let near = nodes.len().min((2.0 * REACH / step) as usize + 1);
            left /= nodes.len();
            let points = along.steps as usize + 1;
            all = all.saturating_add(left.saturating_mul(near * points).saturating_mul(done));
            done = done.saturating_mul(points);
        }
        all
    }

    fn sum(&self, basis: &CellBasis, axis: usize) -> Sum {
        let nodes = basis.nodes();
        let later: Vec<(f64, &Vec<f64>)> = self
            .factor
            .iter()
            .map(|row| row.get(axis).copied().unwrap_or(0.0))
            .zip(&nodes)
            .skip(axis + 1)
            .collect();
        // Where a node of the later axes moves those of this one.
        let moves = match later.iter().any(|(slant, _)| *slant != 0.0) {
            true => later
                .iter()
                .fold(vec![0.0], |moves: Vec<f64>, (slant, along)| {
                    moves
                        .iter()
                        .flat_map(|moved| along.iter().map(move |p| moved + slant * p))
                        .collect()
                }),
            false => vec![0.0],
        };
        let own = self.factor[axis][axis];
        let points = self.axes[axis].points();
        let row = |u: f64, moved: f64| {
            let away = |p: &f64| own * p + moved - u;
            let first = nodes[axis].partition_point(|p| away(p) < -REACH);
            let near = nodes[axis]
                .iter()
                .skip(first)
                .map(away)
                .take_while(|away| *away <= REACH);
            Row {
                first,
                weights: near.map(|away| (-away * away / 2.0).exp()).collect(),
            }
        };
        let rows = |moved: &f64| points.iter().map(|u| row(*u, *moved)).collect();
        Sum {
            nodes: nodes[axis].len(),
            points: moves.iter().map(rows).collect(),
        }
    }

    /// Which points may be corners of a cell that meets the cube: those that lie no further outside of it than a cell reaches.
    fn inside(&self) -> Vec<bool> {
        let axes = self.axes.len();
        // What a step along each axis of `u` moves in the cube.
        let moves = |along: usize| {
            let step = self.axes[along].step();
            backward(
                &self.factor,
                &(0..axes)
                    .map(|axis| if axis == along { step } else { 0.0 })
                    .collect::<Vec<f64>>(),
            )
        };
        let moves: Vec<Vec<f64>> = (0..axes).map(moves).collect();
        let reach: Vec<f64> = (0..axes)
            .map(|axis| moves.iter().map(|of| of[axis].abs()).sum())
            .collect();
        let points = self
            .axes
            .iter()
            .fold(vec![vec![]], |points: Vec<Vec<f64>>, along| {
                let along = along.points();
                points
                    .iter()
                    .flat_map(|point| along.iter().map(|u| [&point[..], &[*u]].concat()))
                    .collect()
            });
        let is_inside = |u: &Vec<f64>| {
            let mut place = backward(&self.factor, u).into_iter().zip(&reach);
            place.all(|(y, reach)| (-reach - 1e-9..=1.0 + reach + 1e-9).contains(&y))
        };
        points.iter().map(is_inside).collect()
    }
}

/// The kernel matrix `K` of the nodes: its entry depends on how many steps two nodes are apart on each axis.
struct Gram {
    /// Nodes of each axis; axes that are not there come first and have one.
    widths: [usize; 3],
    /// Entries of at least [`NEAR`], one of each pair of opposite ways, without the diagonal.
    near: Vec<([isize; 3], f64)>,
    /// The sum of all others, over both ways: no eigenvalue of theirs is larger.
    far: f64,
}

impl Gram {
    fn of(basis: &CellBasis) -> Self {
        let absent = 3_usize.saturating_sub(basis.steps.len());
        let mut widths = [1; 3];
        widths
            .iter_mut()
            .skip(absent)
            .zip(basis.nodes())
            .for_each(|(width, along)| *width = along.len());
        let value = |apart: &[isize; 3]| {
            let apart: Vec<f64> = apart
                .iter()
                .skip(absent)
                .zip(&basis.steps)
                .map(|(o, m)| *o as f64 / f64::from(*m))
                .collect();
            let along = |row: &Vec<f64>| dot(row, &apart);
            let form: f64 = basis
                .precision
                .iter()
                .zip(&apart)
                .map(|(row, d)| d * along(row))
                .sum();
            (-form.max(0.0) / 2.0).exp()
        };
        let [a, b, c] = widths.map(|width| width as isize - 1);
        let mut near = Vec::new();
        let mut far = 0.0;
        for apart in
            (0..=a).flat_map(|i| (-b..=b).flat_map(move |j| (-c..=c).map(move |k| [i, j, k])))
        {
            if apart > [0, 0, 0] {
                match value(&apart) {
                    value if value >= NEAR => near.push((apart, value)),
                    value => far += 2.0 * value,
                }
            }
        }
        Gram { widths, near, far }
    }

    /// At least `z' K z`.
    fn square(&self, z: &[f64]) -> f64 {
        let pairs: f64 = self
            .near
            .iter()
            .map(|(apart, value)| value * self.products(z, *apart))
            .sum();
        ((1.0 + self.far) * dot(z, z) + 2.0 * pairs).max(0.0)
    }

    /// The sum of `z_i z_j` over the nodes `i` and those `j` that are so many steps further.
    fn products(&self, z: &[f64], apart: [isize; 3]) -> f64 {
        let [_, width, depth] = self.widths;
        let [first, second, third] = [0, 1, 2].map(|axis| {
            let width = self.widths[axis];
            let apart = apart[axis];
            apart.min(0).unsigned_abs()..width - apart.max(0).unsigned_abs()
        });
        let starts = first.flat_map(|i| {
            second
                .clone()
                .map(move |j| (i * width + j) * depth + third.start)
        });
        let further = (apart[0] * width as isize + apart[1]) * depth as isize + apart[2];
        let row = |start: usize| {
            let other = start.saturating_add_signed(further);
            dot(
                &z[start..start + third.len()],
                &z[other..other + third.len()],
            )
        };
        starts.map(row).sum()
    }
}

/// `q` such that noise of scale 1 stays within `q |a(y)|_2` with 95 % probability at any one point `y`, `a` the kernels of the
/// nodes there: the largest at places that lie evenly within two steps of the middle and at the corner.
pub(super) fn pointwise(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    let within = |place: u32, m: &u32| {
        (0.5 + 2.0 * f64::from(place) / f64::from(PLACES) / f64::from(*m)).min(1.0)
    };
    let middle = (0..=PLACES).map(|place| basis.steps.iter().map(|m| within(place, m)).collect());
    let corner = std::iter::once(vec![0.0; basis.steps.len()]);
    let factor = |y: Vec<f64>| {
        let influences = basis.at(&y);
        weighted(law, 1.0, &influences).half_width / dot(&influences, &influences).sqrt()
    };
    middle.chain(corner).map(factor).fold(0.0, f64::max)
}
