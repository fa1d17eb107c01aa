//! The laws of noise, and all that is known of them without drawing: what a reader of a synopsis needs.

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// Properties of a law.
struct LawProperties {
    name: &'static str,
    norm: Norm,
    /// Tells that it gives pure differential privacy.
    is_pure: bool,
    /// The variance of one of so many values at a scale of 1, as a fraction. Under every distribution values are uncorrelated
    /// and have the same variance.
    variance: fn(u128) -> [u128; 2],
    /// Stands for the distribution in the state of a series: never changed, never used again.
    number: u64,
}

impl NoiseDistribution {
    fn definition(self) -> LawProperties {
        match self {
            NoiseDistribution::DiscreteLaplace => LawProperties {
                name: "Laplace",
                norm: Norm::One,
                is_pure: true,
                variance: |_| [2, 1],
                number: 0,
            },
            NoiseDistribution::DiscreteCube => LawProperties {
                name: "cube",
                norm: Norm::Sup,
                is_pure: true,
                variance: |n| [(n + 1) * (n + 2), 3],
                number: 1,
            },
            NoiseDistribution::Ball => LawProperties {
                name: "ball",
                norm: Norm::Two,
                is_pure: true,
                variance: |n| [n + 1, 1],
                number: 2,
            },
            NoiseDistribution::DiscreteGaussian => LawProperties {
                name: "Gaussian",
                norm: Norm::Two,
                is_pure: false,
                variance: |_| [1, 1],
                number: 3,
            },
        }
    }

    /// The norm of the change that its noise hides.
    pub fn norm(self) -> Norm {
        self.definition().norm
    }

    /// Tells that it gives pure differential privacy.
    pub fn is_pure(self) -> bool {
        self.definition().is_pure
    }

    /// The variance of one of `values` values at a scale of 1, as a fraction.
    pub(super) fn variance_fraction(self, values: u128) -> [u128; 2] {
        (self.definition().variance)(values)
    }

    /// The variance of one of `values` values, at a scale of 1. Under every distribution values are uncorrelated.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn variance(self, values: usize) -> f64 {
        let [numerator, denominator] = self.variance_fraction(values as u128);
        numerator as f64 / denominator as f64
    }

    /// The standard deviation of one of `values` values, at a scale of 1.
    pub fn deviation(self, values: usize) -> f64 {
        self.variance(values).sqrt()
    }

    /// Number that stands for it in the state of a series.
    pub fn number(self) -> u64 {
        self.definition().number
    }
}

impl fmt::Display for NoiseDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.definition().name)
    }
}
