//! The sup of noise in the space of a kernel: `z' n(y)`, `z` the noise on the whitened coordinates, `n` Newton's basis.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::sup::{MAX_DRAWS, MIN_DRAWS, Sup, WORK};
use crate::NoiseDistribution;
use crate::bernstein::nodes;
use crate::cholesky::dot;
use crate::newton::Newton;
use crate::noise::unit_noise;
use crate::{KernelBasis, PointKernel, machine};

/// Most numbers of the basis on the grid (160 MB).
const MOST_ENTRIES: usize = 20_000_000;

/// The basis on a public grid, and how much the sup over the cube exceeds that over the grid.
pub(super) struct Plan {
    law: NoiseDistribution,
    count: usize,
    /// `n(y)`, point by point.
    rows: Vec<f64>,
    grid: Grid,
}

/// Points `y` of the cube such that `sup |G| <= factor * max_y |G(y)| + rise * ||z||_2`.
struct Grid {
    points: Vec<Vec<f64>>,
    factor: f64,
    rise: f64,
}

impl Plan {
    pub fn new(basis: &KernelBasis, dimensions: usize, law: NoiseDistribution) -> Self {
        let newton = Newton::on(basis);
        let grid = Grid::of(basis, dimensions);
        let rows = grid.points.iter().flat_map(|y| newton.at(y)).collect();
        Plan {
            law,
            count: newton.count(),
            rows,
            grid,
        }
    }

    pub fn draws(&self) -> u32 {
        u32::try_from(WORK / self.rows.len().max(1))
            .unwrap_or(MAX_DRAWS)
            .clamp(MIN_DRAWS, MAX_DRAWS)
    }

    /// An error of 1 in every coordinate moves the function by at most `||n(y)||_1 <= sqrt(d) ||n(y)||_2`.
    pub fn norm(&self) -> f64 {
        (self.count as f64).sqrt()
    }

    pub fn sup(&self, seed: u64, draw: u32) -> Sup {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(draw));
        let z = unit_noise(self.law, self.count, &mut rng);
        let plain = self
            .rows
            .chunks_exact(self.count)
            .map(|n| dot(n, &z).abs())
            .fold(0.0, f64::max);
        let length = dot(&z, &z).sqrt();
        Sup {
            weighted: self.grid.factor * plain + self.grid.rise * length,
            plain,
        }
    }
}

impl Grid {
    fn of(basis: &KernelBasis, dimensions: usize) -> Self {
        match &basis.kernel {
            PointKernel::Gaussian { precision } => Grid::gaussian(precision, basis.points.len()),
            PointKernel::Machine(machine::Kernel::Gaussian { bandwidth }) => {
                let row = |i| {
                    (0..dimensions)
                        .map(|j| if i == j { bandwidth.powi(-2) } else { 0.0 })
                        .collect()
                };
                let precision: Vec<Vec<f64>> = (0..dimensions).map(row).collect();
                Grid::gaussian(&precision, basis.points.len())
            }
            PointKernel::Machine(machine::Kernel::Laplacian { .. }) => {
                Grid::laplacian(&basis.points, dimensions)
            }
            PointKernel::Machine(machine::Kernel::Polynomial { power }) => {
                Grid::polynomial(*power, dimensions, basis.points.len())
            }
            // Affine: largest in a corner.
            PointKernel::Machine(machine::Kernel::Linear) => Grid {
                points: product(&vec![vec![0.0, 1.0]; dimensions]),
                factor: 1.0,
                rise: 0.0,
            },
        }
    }

    /// Evenly spaced. Where `|G|` is largest in the cube, `G` has no slope within the face that the place lies in; a grid point
    /// of that face is at most half a step `e` away on each axis, and along `e` the second derivative of `G` is at most
    /// `||G||_H sqrt(3) e'Pe`, the root of the kernel's fourth derivative: so the rise is at most `sqrt(3) / 2 e'Pe ||z||_2`.
    fn gaussian(precision: &[Vec<f64>], count: usize) -> Self {
        let axes = precision.len();
        let a_width = [10.0, 8.0, 8.0]
            .get(axes.saturating_sub(1))
            .copied()
            .unwrap_or(8.0);
        let most = ((MOST_ENTRIES / count.max(1)) as f64)
            .powf(1.0 / axes as f64)
            .floor()
            - 1.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1 to 20 million"
        )]
        let steps = |axis: usize| {
            let width = precision
                .get(axis)
                .and_then(|row| row.get(axis))
                .map_or(1.0, |p| p.powf(-0.5));
            (a_width / width).ceil().clamp(12.0, most.max(12.0)) as u32
        };
        let steps: Vec<u32> = (0..axes).map(steps).collect();
        let half: Vec<f64> = steps.iter().map(|n| 0.5 / f64::from(*n)).collect();
        let form: f64 = precision
            .iter()
            .zip(&half)
            .map(|(row, e)| {
                row.iter()
                    .zip(&half)
                    .map(|(p, f)| p.abs() * e * f)
                    .sum::<f64>()
            })
            .sum();
        let axis = |n: &u32| (0..=*n).map(|j| f64::from(j) / f64::from(*n)).collect();
        let points = product(&steps.iter().map(axis).collect::<Vec<Vec<f64>>>());
        Grid {
            points,
            factor: 1.0,
            rise: 3.0_f64.sqrt() / 2.0 * form,
        }
    }

    /// Every coordinate of the points, and the ends. Between two of them, along an axis, `G` is `a exp(y/b) + c exp(-y/b)`:
    /// convex where it is positive, so `|G|` is largest at an end.
    fn laplacian(points: &[Vec<f64>], dimensions: usize) -> Self {
        let axis = |axis: usize| {
            let own = points.iter().filter_map(|p| p.get(axis).copied());
            let mut all: Vec<f64> = own.chain([0.0, 1.0]).collect();
            all.sort_by(f64::total_cmp);
            all.dedup();
            all
        };
        Grid {
            points: product(&(0..dimensions).map(axis).collect::<Vec<Vec<f64>>>()),
            factor: 1.0,
            rise: 0.0,
        }
    }

    /// Chebyshev nodes, as for any polynomial; fewer a degree where there would be too many.
    fn polynomial(power: u32, dimensions: usize, count: usize) -> Self {
        let is_small = |density: &u32| {
            ((power * density) as usize).pow(dimensions as u32) * count <= MOST_ENTRIES
        };
        let (axis, factor) = nodes(power, [6, 5, 4, 3].into_iter().find(is_small).unwrap_or(2));
        Grid {
            points: product(&vec![axis; dimensions]),
            factor: factor.powi(dimensions as i32),
            rise: 0.0,
        }
    }
}

/// The points with these coordinates, the last axis fastest.
fn product(axes: &[Vec<f64>]) -> Vec<Vec<f64>> {
    axes.iter().fold(vec![vec![]], |points, axis| {
        points
            .iter()
            .flat_map(|p: &Vec<f64>| axis.iter().map(move |y| [p.as_slice(), &[*y]].concat()))
            .collect()
    })
}
