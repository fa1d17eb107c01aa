//! The distributions of noise, one definition each, and their exact samplers (`docs/proofs/noise.md`).
//!
//! Noise made from a float uniform betrays the value that it hides in its low bits (`[Mir12]`). So everything here is an
//! integer drawn from ChaCha20 words, and every comparison with a probability is exact but for the constants in `geometric.rs`.
//!
//! A new distribution is a sampler in a file of its own and a row in [`NoiseDistribution::definition`]; what a client may know
//! of it is in `synopsis/noise.rs`.

pub mod ball;
pub mod cube;
mod flip;
pub mod gaussian;
mod generator;
mod geometric;
pub mod laplace;
mod real;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::ball::RoundedBall;
pub use self::cube::DiscreteCube;
pub use self::flip::permute_and_flip;
pub use self::gaussian::DiscreteGaussian;
pub use self::generator::Generator;
pub use self::laplace::DiscreteLaplace;
use super::calibrate::{Rho, Scale};
use super::concentrated::{rho_of_ball, rho_of_laplace};
use super::error::Error;
use super::gaussian::scale as gaussian_scale;
use super::laplace::scale as laplace_scale;
use super::price::Price;
use crate::targets::{self, Adjacency, Sensitivity, Target};

/// The distribution of the noise on an exact vector, `s` its scale. Each is made for a change in one norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NoiseDistribution {
    /// `P[noise = z] ~ exp(-sum_i |z_i| / s)`, for the 1-norm: independent noise of one scale on every value, the Bernstein
    /// mechanism of `[AR17]` section 4. Departure from the paper: the scale follows the 1-norm of the change over the
    /// lattice, which is at most the paper's `N S` and for narrow kernels far less.
    #[serde(rename = "discrete laplace")]
    DiscreteLaplace,
    /// `P[noise = z] ~ exp(-max_i |z_i| / s)`, for the sup norm: uniform in a cube of random size. A departure from `[AR17]`. The
    /// standard deviation of a value is `sqrt((N + 1)(N + 2) / 3) S / price` against `sqrt 2 D1 / price` of Laplace noise: less
    /// where a record moves nearly all of the `N` values by nearly `S`, as with kernel machines and functions of which
    /// nothing else is known. At most `2^20` values are released.
    #[serde(rename = "discrete cube")]
    DiscreteCube,
    /// `exp(-||x||_2 / s)` on the real vectors, rounded to whole numbers, for the 2-norm: the K-norm mechanism of that norm
    /// (`[HT10]`). A departure from `[AR17]`, made for whitened coordinates, of which a record changes none by much. The standard
    /// deviation of a value is `sqrt(d + 1) D2 / price`, `d` the number of values, at most `2^20`.
    #[serde(rename = "rounded ball")]
    Ball,
    /// `P[noise = z] ~ exp(-sum_i z_i^2 / 2 s^2)` (`[CKS20]`), for the 2-norm; no pure differential privacy.
    #[serde(rename = "discrete gaussian")]
    DiscreteGaussian,
}

/// The norm in which a change of the exact values counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Norm {
    #[serde(rename = "1-norm")]
    One,
    #[serde(rename = "2-norm")]
    Two,
    #[serde(rename = "sup norm")]
    Sup,
}

/// All that is known of a distribution.
struct Definition {
    name: &'static str,
    norm: Norm,
    /// Whether it gives pure differential privacy.
    is_pure: bool,
    /// The variance of one of so many values at a scale of 1, as a fraction. Under every distribution values are uncorrelated
    /// and have the same variance.
    variance: fn(u128) -> [u128; 2],
    /// The least scale that a price pays for.
    scale: fn(Sensitivity, usize, Price) -> Result<Scale, Error>,
    /// What is known of its cost in zero-concentrated differential privacy beyond its epsilon, for a change of so many values.
    rho: fn(Sensitivity, usize, Scale) -> Option<Rho>,
    /// Replaces values by a draw.
    fill: fn(Scale, &mut Generator, &mut [i128]),
    /// Stands for the distribution in the state of a series: never changed, never used again.
    number: u64,
}

impl NoiseDistribution {
    fn definition(self) -> Definition {
        match self {
            NoiseDistribution::DiscreteLaplace => Definition {
                name: "Laplace",
                norm: Norm::One,
                is_pure: true,
                variance: |_| [2, 1],
                scale: laplace_scale,
                rho: |change, _, scale| Some(rho_of_laplace(change, scale)),
                fill: |scale, generator, values| DiscreteLaplace::new(scale).fill(generator, values),
                number: 0,
            },
            NoiseDistribution::DiscreteCube => Definition {
                name: "cube",
                norm: Norm::Sup,
                is_pure: true,
                variance: |n| [(n + 1) * (n + 2), 3],
                scale: pure_scale,
                rho: |_, _, _| None,
                fill: |scale, generator, values| DiscreteCube::new(scale).fill(generator, values),
                number: 1,
            },
            NoiseDistribution::Ball => Definition {
                name: "ball",
                norm: Norm::Two,
                is_pure: true,
                variance: |n| [n + 1, 1],
                scale: pure_scale,
                rho: |change, values, scale| Some(rho_of_ball(change, values, scale)),
                fill: |scale, generator, values| RoundedBall::new(scale).fill(generator, values),
                number: 2,
            },
            NoiseDistribution::DiscreteGaussian => Definition {
                name: "Gaussian",
                norm: Norm::Two,
                is_pure: false,
                variance: |_| [1, 1],
                scale: gaussian_scale,
                rho: |_, _, _| None,
                fill: |scale, generator, values| DiscreteGaussian::new(scale).fill(generator, values),
                number: 3,
            },
        }
    }

    /// The norm of the change that its noise hides.
    pub fn norm(self) -> Norm {
        self.definition().norm
    }

    /// Whether it gives pure differential privacy.
    pub fn is_pure(self) -> bool {
        self.definition().is_pure
    }

    /// The variance of one of `values` values at a scale of 1, as a fraction.
    pub(super) fn variance_fraction(self, values: u128) -> [u128; 2] {
        (self.definition().variance)(values)
    }

    /// How much a unit of at most `contributions` records can change the values of `target` in the norm of this distribution.
    ///
    /// # Errors
    ///
    /// If the target has no such bound, or it exceeds `2^64` grid units.
    pub fn sensitivity(
        self,
        target: &dyn Target,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, targets::Error> {
        match self.norm() {
            Norm::One => target.sensitivity(adjacency, contributions),
            Norm::Two => target.euclidean_sensitivity(adjacency, contributions).map(Sensitivity),
            Norm::Sup => target.sup_sensitivity(adjacency, contributions).map(Sensitivity),
        }
    }

    /// The least scale that `price` pays for, where a unit can change `values` values by `change`.
    pub(super) fn scale(self, change: Sensitivity, values: usize, price: Price) -> Result<Scale, Error> {
        (self.definition().scale)(change, values, price)
    }

    /// What noise of pure differential privacy costs in zero-concentrated differential privacy, where more is known of it than its
    /// epsilon. `values` are those of one key: of several keys each has noise of its own, what a unit changes there adds up to
    /// `change`, and the costs are convex in it and 0 at 0.
    pub fn own_rho(self, change: Sensitivity, values: usize, scale: Scale) -> Option<Rho> {
        (self.definition().rho)(change, values, scale)
    }

    /// Replaces `values` by a draw.
    pub(super) fn fill(self, scale: Scale, generator: &mut Generator, values: &mut [i128]) {
        (self.definition().fill)(scale, generator, values);
    }

    /// What stands for it in the state of a series.
    pub(super) fn number(self) -> u64 {
        self.definition().number
    }
}

impl fmt::Display for NoiseDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.definition().name)
    }
}

/// The scale of noise whose price is known as an epsilon only.
fn pure_scale(change: Sensitivity, _: usize, price: Price) -> Result<Scale, Error> {
    Scale::for_price(change, price.pure())
}
