//! The sup of noise on cells: `sum_j z_j K(y - p_j)`, `z` the noise on the counts.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::sup::{MAX_DRAWS, MIN_DRAWS, Sup, WORK};
use crate::mechanism::NoiseDistribution;
use crate::synopsis::noise::{unit_noise, weighted};
use crate::targets::CellBasis;
use crate::targets::cholesky::dot;

/// Most products of one draw.
const MOST_PRODUCTS: usize = 20_000_000;
/// Places of an axis where the quantile of the noise at a point is looked at.
const PLACES: u32 = 24;

/// The kernels of the nodes on a public grid of points, and how much the sup over the cube exceeds that over the points.
pub(super) struct Plan {
    law: NoiseDistribution,
    count: usize,
    points: Points,
    /// `sup |G| <= max_y |G(y)| + rise * ||G||`, `||G||` the norm in the space of the kernel.
    rise: f64,
    /// `sum_j K(p_i - p_j)`, the largest over the nodes: at least the largest eigenvalue of the kernel matrix.
    spread: f64,
    /// The largest `||a(y)||_1` on the points.
    norm: f64,
}

/// The kernels of the nodes at the points.
enum Points {
    /// Point by point on each axis: the values of a grid are taken one axis after the other.
    Axes(Vec<Vec<Vec<f64>>>),
    /// Point by point.
    All(Vec<Vec<f64>>),
}

impl Plan {
    pub fn new(basis: &CellBasis, law: NoiseDistribution) -> Self {
        let (nodes, count) = (basis.nodes(), basis.count());
        let axes = nodes.len();
        let a_width = [16.0, 10.0, 6.0].get(axes.saturating_sub(1)).copied().unwrap_or(6.0);
        let most = match basis.is_diagonal() {
            true => 4000.0,
            false => ((MOST_PRODUCTS / count.max(1)) as f64).powf(1.0 / axes as f64).floor().max(8.0),
        };
        let width = |axis: usize| basis.precision.get(axis).and_then(|row| row.get(axis)).map_or(1.0, |p| p.powf(-0.5));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 8 to 4000")]
        let steps: Vec<u32> =
            (0..axes).map(|axis| (a_width / width(axis)).ceil().clamp(8.0_f64.min(most), most) as u32).collect();
        let along = |n: &u32| (0..=*n).map(|j| f64::from(j) / f64::from(*n)).collect::<Vec<f64>>();
        let points = if basis.is_diagonal() {
            let of_axis = |(axis, n): (usize, &u32)| {
                let alone = CellBasis {
                    precision: vec![vec![width(axis).powi(-2)]],
                    spline: basis.spline,
                    steps: basis.steps.get(axis).copied().into_iter().collect(),
                };
                along(n).into_iter().map(|y| alone.at(&[y])).collect()
            };
            Points::Axes(steps.iter().enumerate().map(of_axis).collect())
        } else {
            let places = steps.iter().fold(vec![vec![]], |places: Vec<Vec<f64>>, n| {
                let along = along(n);
                places.iter().flat_map(|p| along.iter().map(move |y| [&p[..], &[*y]].concat())).collect()
            });
            Points::All(places.iter().map(|y| basis.at(y)).collect())
        };
        // As for other kernel functions: in the face where `|G|` is largest a point is at most half a step `e` away on each axis, and
        // the second derivative along `e` is at most `||G|| sqrt(3) e'Pe`.
        let half: Vec<f64> = steps.iter().map(|n| 0.5 / f64::from(*n)).collect();
        let form: f64 = basis
            .precision
            .iter()
            .zip(&half)
            .map(|(row, e)| row.iter().zip(&half).map(|(p, f)| p.abs() * e * f).sum::<f64>())
            .sum();
        let middle: Vec<f64> = nodes.iter().filter_map(|axis| axis.get(axis.len() / 2).copied()).collect();
        let spread = basis.at(&middle).iter().sum::<f64>();
        let mut plan = Plan { law, count, points, rise: 3.0_f64.sqrt() / 2.0 * form, spread, norm: 1.0 };
        plan.norm = plan.largest(&vec![1.0; count]);
        plan
    }

    pub fn draws(&self) -> u32 {
        u32::try_from(WORK / self.products().max(1)).unwrap_or(MAX_DRAWS).clamp(MIN_DRAWS, MAX_DRAWS)
    }

    /// Of one draw.
    fn products(&self) -> usize {
        match &self.points {
            Points::All(rows) => rows.len() * self.count,
            Points::Axes(axes) => {
                let mut left = self.count;
                let mut products = 0;
                let mut done = 1;
                for axis in axes {
                    let nodes = axis.first().map_or(1, Vec::len).max(1);
                    left /= nodes;
                    done *= axis.len();
                    products += done * nodes * left;
                }
                products
            }
        }
    }

    /// An error of 1 in every value moves the function by at most so much.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    pub fn sup(&self, seed: u64, draw: u32) -> Sup {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(draw));
        let z = unit_noise(self.law, self.count, &mut rng);
        let plain = self.largest(&z);
        Sup { weighted: plain + self.rise * (self.spread * dot(&z, &z)).sqrt(), plain }
    }

    /// `max_y |sum_j z_j K(y - p_j)|` on the points.
    fn largest(&self, z: &[f64]) -> f64 {
        let values = match &self.points {
            Points::All(rows) => rows.iter().map(|row| dot(row, z)).collect(),
            Points::Axes(axes) => axes.iter().fold(z.to_vec(), |values, rows| along_first(&values, rows)),
        };
        values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()))
    }
}

/// The first axis of `values` summed up with the weights of each row; what comes of it is the last axis.
fn along_first(values: &[f64], rows: &[Vec<f64>]) -> Vec<f64> {
    let nodes = rows.first().map_or(1, Vec::len).max(1);
    let inner = values.len() / nodes;
    let mut result = vec![0.0; inner * rows.len()];
    let mut sums = vec![0.0; inner];
    for (point, row) in rows.iter().enumerate() {
        sums.fill(0.0);
        for (weight, values) in row.iter().zip(values.chunks_exact(inner)) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
        result.iter_mut().skip(point).step_by(rows.len()).zip(&sums).for_each(|(to, sum)| *to = *sum);
    }
    result
}

/// `q` such that noise of scale 1 stays within `q |a(y)|_2` with 95 % probability at any one point `y`, `a` the kernels of the
/// nodes there: the largest at places that lie evenly within two steps of the middle and at the corner.
pub(super) fn pointwise(basis: &CellBasis, law: NoiseDistribution) -> f64 {
    let within = |place: u32, m: &u32| (0.5 + 2.0 * f64::from(place) / f64::from(PLACES) / f64::from(*m)).min(1.0);
    let middle = (0..=PLACES).map(|place| basis.steps.iter().map(|m| within(place, m)).collect());
    let corner = std::iter::once(vec![0.0; basis.steps.len()]);
    let factor = |y: Vec<f64>| {
        let influences = basis.at(&y);
        weighted(law, 1.0, &influences).half_width / dot(&influences, &influences).sqrt()
    };
    middle.chain(corner).map(factor).fold(0.0, f64::max)
}
