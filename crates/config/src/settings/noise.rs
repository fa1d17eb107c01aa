//! The noise of a release, and the coordinates that it is added to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::settings::payment::Payment;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::cell_kernel::MOST_CELLS;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::whitened::{AxisCounts, Placement};

/// A noise distribution together with the coordinates that it is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseKind {
    /// Independent on every lattice value.
    Laplace,
    /// Uniform in a cube of random size, on the lattice values.
    Cube,
    /// Uniform in a ball of random size, on the whitened coordinates of kernel points.
    Ball,
    /// Laplace, independent on every count of cells.
    Cells,
    /// Gaussian, independent on every lattice value. Needs a price with a delta, or in rho.
    Gaussian,
    /// Gaussian, independent on the whitened coordinates of kernel points: a Gaussian process on the domain. Same prices.
    GaussianProcess,
    /// Gaussian, independent on every count of cells. Same prices.
    GaussianCells,
}

impl NoiseKind {
    const ALL: [NoiseKind; 7] = [
        NoiseKind::Laplace,
        NoiseKind::Cube,
        NoiseKind::Ball,
        NoiseKind::Cells,
        NoiseKind::Gaussian,
        NoiseKind::GaussianProcess,
        NoiseKind::GaussianCells,
    ];

    /// The kinds that a price pays for.
    pub fn paid_with(payment: Option<&Payment>) -> Vec<NoiseKind> {
        let pays_for_all = payment.is_some_and(|payment| payment.pays_for_gaussian());
        NoiseKind::ALL
            .into_iter()
            .filter(|kind| pays_for_all || kind.is_pure())
            .collect()
    }

    /// Returns whether it gives pure differential privacy.
    pub fn is_pure(self) -> bool {
        self.noise_distribution().is_pure()
    }

    pub fn noise_distribution(self) -> NoiseDistribution {
        match self {
            NoiseKind::Laplace | NoiseKind::Cells => NoiseDistribution::DiscreteLaplace,
            NoiseKind::Cube => NoiseDistribution::DiscreteCube,
            NoiseKind::Ball => NoiseDistribution::Ball,
            NoiseKind::Gaussian | NoiseKind::GaussianProcess | NoiseKind::GaussianCells => {
                NoiseDistribution::DiscreteGaussian
            }
        }
    }

    /// Returns whether it is added to values on a lattice.
    pub fn is_on_lattice(self) -> bool {
        !self.is_on_points() && !self.is_on_cells()
    }

    /// Returns whether it is added to coordinates on kernel points.
    pub fn is_on_points(self) -> bool {
        matches!(self, NoiseKind::Ball | NoiseKind::GaussianProcess)
    }

    /// Returns whether it is added to counts of cells.
    pub fn is_on_cells(self) -> bool {
        matches!(self, NoiseKind::Cells | NoiseKind::GaussianCells)
    }
}

impl fmt::Display for NoiseKind {
    /// Writes it as in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NoiseKind::Laplace => "laplace",
            NoiseKind::Cube => "cube",
            NoiseKind::Ball => "ball",
            NoiseKind::Cells => "cells",
            NoiseKind::Gaussian => "gaussian",
            NoiseKind::GaussianProcess => "gaussian_process",
            NoiseKind::GaussianCells => "gaussian_cells",
        })
    }
}

/// The coordinates that a function is represented by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinates {
    /// Values on a lattice of this degree.
    Lattice { degree: u32 },
    /// Whitened coordinates of at most so many kernel points, chosen one after the other.
    Points { most: u32 },
    /// Whitened coordinates of evenly spaced kernel points.
    Tensor(AxisCounts),
    /// Counts of the cells of a grid.
    Cells(CellGrid),
}

impl Coordinates {
    /// The placement of kernel points; `None` for other coordinates.
    pub fn placement(self) -> Option<Placement> {
        match self {
            Coordinates::Lattice { .. } | Coordinates::Cells(_) => None,
            Coordinates::Points { most } => Some(Placement::Greedy(most as usize)),
            Coordinates::Tensor(counts) => Some(Placement::Tensor(counts)),
        }
    }
}

/// A grid of cells, and how records are shared among its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellGrid {
    pub spline: Spline,
    steps: [u32; 3],
    axes: usize,
}

impl CellGrid {
    /// `steps` of each axis, 1 to 3; more are left out.
    pub fn new(spline: Spline, steps: &[u32]) -> Self {
        let mut all = [1; 3];
        for (to, from) in all.iter_mut().zip(steps) {
            *to = *from;
        }
        CellGrid {
            spline,
            steps: all,
            axes: steps.len().min(3),
        }
    }

    /// The finest grid of so many tables on so many axes: a function that can be read off cells can be read off these.
    pub fn finest_grid(spline: Spline, axes: usize, tables: u32) -> Self {
        let most_cells = MOST_CELLS / tables.max(1) as usize;
        for steps in [65_536_u32, 32_768, 4_096, 256, 181, 64, 40, 31, 16] {
            let cells = (steps as usize).checked_pow(axes as u32);
            if cells.is_some_and(|cells| cells <= most_cells) {
                return CellGrid::new(spline, &vec![steps; axes]);
            }
        }
        CellGrid::new(spline, &vec![1; axes])
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        let mut count: usize = 1;
        for steps in self.steps() {
            count = count.saturating_mul(self.spline.nodes(*steps));
        }
        count
    }

    /// Number of steps along each axis.
    pub fn steps(&self) -> &[u32] {
        self.steps.get(..self.axes).unwrap_or_default()
    }
}
