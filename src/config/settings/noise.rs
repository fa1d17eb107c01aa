//! The noise of a release, and the coordinates that it is added to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::settings::payment::Payment;
use crate::mechanism::NoiseDistribution;

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
    /// Gaussian, independent on every lattice value. Needs a price with a delta, or in rho.
    Gaussian,
    /// Gaussian, independent on the whitened coordinates of kernel points: a Gaussian process on the domain. Same prices.
    GaussianProcess,
}

impl NoiseKind {
    const ALL: [NoiseKind; 5] =
        [NoiseKind::Laplace, NoiseKind::Cube, NoiseKind::Ball, NoiseKind::Gaussian, NoiseKind::GaussianProcess];

    /// The kinds that a price pays for.
    pub fn paid_with(payment: Option<&Payment>) -> Vec<NoiseKind> {
        let pays_for_all = payment.is_some_and(|payment| payment.pays_for_gaussian());
        NoiseKind::ALL.into_iter().filter(|kind| pays_for_all || kind.is_pure()).collect()
    }

    /// Whether it gives pure differential privacy.
    pub fn is_pure(self) -> bool {
        self.law().is_pure()
    }

    pub fn law(self) -> NoiseDistribution {
        match self {
            NoiseKind::Laplace => NoiseDistribution::DiscreteLaplace,
            NoiseKind::Cube => NoiseDistribution::DiscreteCube,
            NoiseKind::Ball => NoiseDistribution::Ball,
            NoiseKind::Gaussian | NoiseKind::GaussianProcess => NoiseDistribution::DiscreteGaussian,
        }
    }

    /// Whether it is added to kernel points, not to a lattice.
    pub fn is_on_points(self) -> bool {
        matches!(self, NoiseKind::Ball | NoiseKind::GaussianProcess)
    }
}

impl fmt::Display for NoiseKind {
    /// As in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            NoiseKind::Laplace => "laplace",
            NoiseKind::Cube => "cube",
            NoiseKind::Ball => "ball",
            NoiseKind::Gaussian => "gaussian",
            NoiseKind::GaussianProcess => "gaussian_process",
        })
    }
}

/// The coordinates that a function is represented by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinates {
    /// Values on a lattice of this degree.
    Lattice { degree: u32 },
    /// Whitened coordinates of at most so many kernel points.
    Points { most: u32 },
}
