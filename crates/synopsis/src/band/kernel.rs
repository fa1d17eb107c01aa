//! The sup of noise in the space of a kernel: `z' n(y)`, `z` the noise on the whitened coordinates, `n` Newton's basis.

use super::sup::{NoiseSup, affordable_draws, draw_generator};
use crate::NoiseDistribution;
use crate::bernstein::DenseNodes;
use crate::cholesky::dot_product;
use crate::newton::Newton;
use crate::noise::unit_noise;
use crate::quadratic::diagonal_matrix;
use crate::tensor::{even_coordinates, grid_points};
use crate::{KernelBasis, PointKernel, machine};

/// Most numbers of the basis on the grid (160 MB).
const MOST_ENTRIES: usize = 20_000_000;

/// The basis on a public grid, and how much the sup over the cube exceeds that over the grid.
pub(super) struct KernelBandPlan {
    law: NoiseDistribution,
    count: usize,
    /// `n(y)`, point by point.
    rows: Vec<f64>,
    grid: BandGrid,
}

/// Points `y` of the cube such that `sup |G| <= factor * max_y |G(y)| + rise * ||z||_2`.
struct BandGrid {
    points: Vec<Vec<f64>>,
    factor: f64,
    rise: f64,
}

impl KernelBandPlan {
    pub fn new(basis: &KernelBasis, dimensions: usize, law: NoiseDistribution) -> Self {
        let newton = Newton::on_points(basis);
        let grid = BandGrid::new(basis, dimensions);
        let rows = grid
            .points
            .iter()
            .flat_map(|y| newton.basis_values(y))
            .collect();
        KernelBandPlan {
            law,
            count: newton.count(),
            rows,
            grid,
        }
    }

    pub fn draws(&self) -> u32 {
        affordable_draws(self.rows.len())
    }

    /// An error of 1 in every coordinate moves the function by at most `||n(y)||_1 <= sqrt(d) ||n(y)||_2`.
    pub fn norm(&self) -> f64 {
        (self.count as f64).sqrt()
    }

    pub fn draw_sup(&self, seed: u64, draw: u32) -> NoiseSup {
        let z = unit_noise(self.law, self.count, &mut draw_generator(seed, draw));
        let plain = self
            .rows
            .chunks_exact(self.count)
            .map(|n| dot_product(n, &z).abs())
            .fold(0.0, f64::max);
        let length = dot_product(&z, &z).sqrt();
        NoiseSup {
            weighted: self.grid.factor * plain + self.grid.rise * length,
            plain,
        }
    }
}

impl BandGrid {
    fn new(basis: &KernelBasis, dimensions: usize) -> Self {
        match &basis.kernel {
            PointKernel::Gaussian { precision } => {
                BandGrid::gaussian(precision, basis.points.len())
            }
            PointKernel::Machine(machine::CubeKernel::Gaussian { bandwidth }) => {
                let precision = diagonal_matrix(&vec![bandwidth.powi(-2); dimensions]);
                BandGrid::gaussian(&precision, basis.points.len())
            }
            PointKernel::Machine(machine::CubeKernel::Laplacian { .. }) => {
                BandGrid::laplacian(&basis.points, dimensions)
            }
            PointKernel::Machine(machine::CubeKernel::Polynomial { power }) => {
                BandGrid::polynomial(*power, dimensions, basis.points.len())
            }
            // Affine: largest in a corner.
            PointKernel::Machine(machine::CubeKernel::Linear) => BandGrid {
                points: grid_points(&vec![vec![0.0, 1.0]; dimensions]),
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
        let mut half_steps = Vec::with_capacity(axes);
        let mut coordinates = Vec::with_capacity(axes);
        for (axis, row) in precision.iter().enumerate() {
            let width = row.get(axis).map_or(1.0, |p| p.powf(-0.5));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 1 to 20 million"
            )]
            let steps = (a_width / width).ceil().clamp(12.0, most.max(12.0)) as u32;
            half_steps.push(0.5 / f64::from(steps));
            coordinates.push(even_coordinates(steps));
        }
        let mut form = 0.0;
        for (row, e) in precision.iter().zip(&half_steps) {
            let mut turned = 0.0;
            for (entry, f) in row.iter().zip(&half_steps) {
                turned += entry.abs() * e * f;
            }
            form += turned;
        }
        BandGrid {
            points: grid_points(&coordinates),
            factor: 1.0,
            rise: 3.0_f64.sqrt() / 2.0 * form,
        }
    }

    /// Every coordinate of the points, and the ends. Between two of them, along an axis, `G` is `a exp(y/b) + c exp(-y/b)`:
    /// convex where it is positive, so `|G|` is largest at an end.
    fn laplacian(points: &[Vec<f64>], dimensions: usize) -> Self {
        let mut coordinates = Vec::with_capacity(dimensions);
        for axis in 0..dimensions {
            let mut along = vec![0.0, 1.0];
            along.extend(points.iter().filter_map(|point| point.get(axis)));
            along.sort_by(f64::total_cmp);
            along.dedup();
            coordinates.push(along);
        }
        BandGrid {
            points: grid_points(&coordinates),
            factor: 1.0,
            rise: 0.0,
        }
    }

    /// Chebyshev nodes, as for any polynomial; fewer a degree where there would be too many.
    fn polynomial(power: u32, dimensions: usize, count: usize) -> Self {
        let mut density = 6;
        while density > 2
            && ((power * density) as usize).pow(dimensions as u32) * count > MOST_ENTRIES
        {
            density -= 1;
        }
        let nodes = DenseNodes::new(power, density);
        BandGrid {
            points: grid_points(&vec![nodes.points; dimensions]),
            factor: nodes.factor.powi(dimensions as i32),
            rise: 0.0,
        }
    }
}
