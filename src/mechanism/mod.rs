//! From exact to noisy: the only door.

mod advanced;
mod ball;
pub mod calibrate;
pub mod choice;
pub mod concentrated;
pub mod continual;
pub(crate) mod gaussian;
pub mod noise;
pub mod online;
mod selection;
pub mod price;

use std::fmt;

use rand::rngs::SysError;
use serde::{Deserialize, Serialize};

use crate::targets::{self, Adjacency, Exact, Sensitivity, Target};
pub use ball::Ball;
use calibrate::{Delta, Epsilon, Rho, Scale};
pub use gaussian::Gaussian;
use noise::{DiscreteCube, DiscreteLaplace, Generator};
use price::Price;
pub use selection::{Candidates, Selection};

/// Noisy lattice values in grid units: safe to publish once paid for. Only a mechanism makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noisy(Vec<i128>);

impl Noisy {
    /// Row-major over the lattice, the last axis fastest.
    pub fn values(&self) -> &[i128] {
        &self.0
    }
}

/// The law of the noise on an exact vector, `s` its scale. Each is made for the change in one norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NoiseDistribution {
    /// `P[noise = z] ~ exp(-sum_i |z_i| / s)`, for the 1-norm.
    #[serde(rename = "discrete laplace")]
    DiscreteLaplace,
    /// `P[noise = z] ~ exp(-max_i |z_i| / s)`, for the sup norm.
    #[serde(rename = "discrete cube")]
    DiscreteCube,
    /// `exp(-||x||_2 / s)` on the real vectors, rounded to whole numbers, for the 2-norm.
    #[serde(rename = "rounded ball")]
    Ball,
    /// `P[noise = z] ~ exp(-sum_i z_i^2 / 2 s^2)`, for the 2-norm; no pure differential privacy.
    #[serde(rename = "discrete gaussian")]
    DiscreteGaussian,
}

impl fmt::Display for NoiseDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoiseDistribution::DiscreteLaplace => "Laplace",
            NoiseDistribution::DiscreteCube => "cube",
            NoiseDistribution::Ball => "ball",
            NoiseDistribution::DiscreteGaussian => "Gaussian",
        })
    }
}

impl NoiseDistribution {
    /// How much a unit of at most `contributions` records can change the values of `target` in the norm of this law.
    pub fn sensitivity(
        self,
        target: &dyn Target,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, targets::Error> {
        match self {
            NoiseDistribution::DiscreteLaplace => target.sensitivity(adjacency, contributions),
            NoiseDistribution::DiscreteCube => target.sup_sensitivity(adjacency, contributions).map(Sensitivity),
            NoiseDistribution::Ball | NoiseDistribution::DiscreteGaussian => {
                target.euclidean_sensitivity(adjacency, contributions).map(Sensitivity)
            }
        }
    }
}

/// Noise of one law, calibrated: what turns an exact vector into one that may be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    Laplace(Laplace),
    Cube(Cube),
    Ball(Ball),
    Gaussian(Gaussian),
}

impl Mechanism {
    /// For `values` values; `change` is [`NoiseDistribution::sensitivity`]. Laws of pure differential privacy take what a price pays of that
    /// kind; Gaussian noise has no pure price, and slots calibrate nothing.
    pub fn calibrated(law: NoiseDistribution, change: Sensitivity, values: usize, price: Price) -> Result<Self, Error> {
        match law {
            NoiseDistribution::DiscreteLaplace => match price {
                Price::Concentrated(rho) => Laplace::for_rho(change, rho).map(Mechanism::Laplace),
                _ => Laplace::calibrated(change, price.pure()).map(Mechanism::Laplace),
            },
            NoiseDistribution::DiscreteCube => Cube::calibrated(change.0, price.pure()).map(Mechanism::Cube),
            NoiseDistribution::Ball => Ball::calibrated(change.0, price.pure()).map(Mechanism::Ball),
            NoiseDistribution::DiscreteGaussian => match price {
                Price::Pure(_) | Price::Slots(_) => Err(Error::NoPromise { delta: Delta::ZERO }),
                Price::Approximate { epsilon, delta } => {
                    Gaussian::for_epsilon_delta(change.0, values, epsilon, delta).map(Mechanism::Gaussian)
                }
                Price::Concentrated(rho) => Gaussian::for_rho(change.0, rho).map(Mechanism::Gaussian),
            },
        }
    }

    pub fn law(&self) -> NoiseDistribution {
        match self {
            Mechanism::Laplace(_) => NoiseDistribution::DiscreteLaplace,
            Mechanism::Cube(_) => NoiseDistribution::DiscreteCube,
            Mechanism::Ball(_) => NoiseDistribution::Ball,
            Mechanism::Gaussian(_) => NoiseDistribution::DiscreteGaussian,
        }
    }

    /// The `s` of the [`NoiseDistribution`], in grid units.
    pub fn scale(&self) -> Scale {
        match self {
            Mechanism::Laplace(laplace) => laplace.scale(),
            Mechanism::Cube(cube) => cube.scale(),
            Mechanism::Ball(ball) => ball.scale(),
            Mechanism::Gaussian(gaussian) => gaussian.scale(),
        }
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once a window and key, and keep the
    /// result.
    pub fn release(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        match self {
            Mechanism::Laplace(laplace) => laplace.release(exact, generator),
            Mechanism::Cube(cube) => cube.release(exact, generator),
            Mechanism::Ball(ball) => ball.release(exact, generator),
            Mechanism::Gaussian(gaussian) => gaussian.release(exact, generator),
        }
    }
}

/// The Bernstein mechanism with Laplace noise (`[AR17]` section 4), calibrated to one target and one price.
///
/// Each lattice value gets independent discrete Laplace noise of one scale. For neighbours whose exact values differ by
/// at most the sensitivity in the 1-norm, one release is `price`-differentially private, with delta 0 and for the
/// adjacency of the sensitivity. Departure from the paper: the scale follows the 1-norm of the change over the lattice,
/// which is at most the paper's `N S` and for narrow kernels far less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Laplace {
    scale: Scale,
}

impl Laplace {
    pub fn calibrated(sensitivity: Sensitivity, price: Epsilon) -> Result<Self, Error> {
        Scale::for_price(sensitivity, price).map(|scale| Laplace { scale })
    }

    /// The smallest scale whose noise costs at most `rho`, by Laplace noise's own constant
    /// ([`rho_of_laplace`](concentrated::rho_of_laplace)): less noise than any mechanism of which only the epsilon is known.
    pub fn for_rho(sensitivity: Sensitivity, rho: Rho) -> Result<Self, Error> {
        if sensitivity.0 == 0 {
            return Err(Error::NoSensitivity);
        }
        let scale = |sixteenths: u64| Scale::new(16 * sixteenths);
        let is_paid =
            |sixteenths| scale(sixteenths).is_some_and(|s| concentrated::rho_of_laplace(sensitivity, s) <= rho);
        let (mut too_few, mut enough) = (0, Scale::LARGEST / 16);
        if !is_paid(enough) {
            return Err(Error::TooMuchNoiseForRho { rho });
        }
        while enough - too_few > 1 {
            let between = too_few.midpoint(enough);
            (too_few, enough) = if is_paid(between) { (too_few, between) } else { (between, enough) };
        }
        scale(enough).map(|scale| Laplace { scale }).ok_or(Error::TooMuchNoiseForRho { rho })
    }

    /// The scale of the noise at every lattice point, in grid units.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once a window and key, and keep the
    /// result.
    pub fn release(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        let mut values = vec![0; exact.reveal().len()];
        DiscreteLaplace::new(self.scale).fill(generator, &mut values);
        for (noisy, exact) in values.iter_mut().zip(exact.reveal()) {
            *noisy = exact.saturating_add(*noisy);
        }
        Noisy(values)
    }
}

/// The Bernstein mechanism with noise that is uniform in a cube of random size, calibrated to the largest change of any one
/// value and one price. A departure from `[AR17]`, whose bound `N S` in the 1-norm it does without.
///
/// For neighbours whose exact values differ by at most the sensitivity in the sup norm, one release is
/// `price`-differentially private, with delta 0 and for the adjacency of the sensitivity. The standard deviation of a value
/// is `sqrt((N + 1)(N + 2) / 3) S / price` against `sqrt 2 D1 / price` of [`Laplace`]: less where a record moves nearly all
/// of the `N` values by nearly `S`, as with kernel machines and functions of which nothing else is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cube {
    scale: Scale,
}

impl Cube {
    /// `sup` is [`Target::sup_sensitivity`](crate::targets::Target::sup_sensitivity). At most `2^20` values are released.
    pub fn calibrated(sup: u64, price: Epsilon) -> Result<Self, Error> {
        Scale::for_price(Sensitivity(sup), price).map(|scale| Cube { scale })
    }

    /// `s` in `P[noise = z] ~ exp(-max |z_i| / s)`, in grid units.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once a window and key, and keep the
    /// result.
    pub fn release(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        let mut values = vec![0; exact.reveal().len()];
        DiscreteCube::new(self.scale).fill(generator, &mut values);
        Noisy(values.into_iter().zip(exact.reveal()).map(|(noise, exact)| exact.saturating_add(noise)).collect())
    }
}

/// Why there can be no noise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the operating system gives no randomness, so nothing can be released: {0}")]
    Entropy(#[from] SysError),
    #[error("a price of 0 buys nothing: give the release an epsilon above 0")]
    NoPrice,
    #[error("a sensitivity of 0 cannot be right: every record has some effect")]
    NoSensitivity,
    #[error(
        "a price of {price} is so low that the noise would exceed 2^56 grid units, millions of times what a record adds: \
         raise epsilon or lower the number of records a unit may contribute"
    )]
    TooMuchNoise { price: Epsilon },
    #[error(
        "a rho of {rho} is so low that the noise would exceed 2^56 grid units, millions of times what a record adds: raise \
         rho or lower the number of records a unit may contribute"
    )]
    TooMuchNoiseForRho { rho: Rho },
    #[error(
        "a delta of {delta} is no promise that Gaussian noise can keep: give one above 0 and below 1, such as 0.000001"
    )]
    NoPromise { delta: Delta },
    #[error(
        "errors of {error} at each point leave no room beside a change of {change}, both in grid units: take a finer grid, \
         such as 2^24 units to the change"
    )]
    NoSlack { change: u64, error: f64 },
    #[error("a point has {axes} coordinates, each from 0 to 1, and the function has one value there")]
    Point { axes: usize },
    #[error(transparent)]
    Kernel(#[from] targets::Error),
}
