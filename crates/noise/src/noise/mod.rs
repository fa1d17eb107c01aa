//! The distributions of noise, one definition each, and their exact samplers (`docs/proofs/noise.md`).
//!
//! Noise made from a float uniform betrays the value that it hides in its low bits (`[Mir12]`). So everything here is an
//! integer drawn from ChaCha20 words, and every comparison with a probability is exact but for the constants in `geometric.rs`.
//!
//! A new distribution is a sampler in a file of its own, a row in `crates/synopsis/src/law.rs` and an arm of the functions here; what a client may know
//! of it is in `crates/synopsis/src/noise`.

pub mod ball;
pub mod cube;
mod flip;
pub mod gaussian;
mod generator;
mod geometric;
pub mod laplace;
mod real;
pub mod truncated;

pub use self::ball::RoundedBall;
pub use self::cube::DiscreteCube;
pub use self::flip::permute_and_flip;
pub use self::gaussian::DiscreteGaussian;
pub use self::generator::Generator;
pub use self::laplace::DiscreteLaplace;
pub use self::truncated::TruncatedLaplace;
use super::calibrate::Scale;
use super::concentrated::{rho_of_ball, rho_of_laplace};
use super::error::NoiseError;
use super::gaussian::gaussian_scale;
use super::laplace::scale as laplace_scale;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Rho;
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;

/// The least scale that `price` pays for, where a unit can change `values` values by `change`.
pub(super) fn scale_for_price(
    law: NoiseDistribution,
    change: Sensitivity,
    values: usize,
    price: Price,
) -> Result<Scale, NoiseError> {
    match law {
        NoiseDistribution::DiscreteLaplace => laplace_scale(change, values, price),
        NoiseDistribution::DiscreteGaussian => gaussian_scale(change, values, price),
        // Its price is known as an epsilon only.
        NoiseDistribution::DiscreteCube | NoiseDistribution::Ball => {
            Scale::for_price(change, price.largest_pure_epsilon())
        }
    }
}

/// Cost of noise of pure differential privacy in zero-concentrated differential privacy, where more is known of it than its
/// epsilon. `values` are those of one key: of several keys each has noise of its own, what a unit changes there adds up to
/// `change`, and the costs are convex in it and 0 at 0.
pub fn own_rho(
    law: NoiseDistribution,
    change: Sensitivity,
    values: usize,
    scale: Scale,
) -> Option<Rho> {
    match law {
        NoiseDistribution::DiscreteLaplace => Some(rho_of_laplace(change, scale)),
        NoiseDistribution::Ball => Some(rho_of_ball(change, values, scale)),
        NoiseDistribution::DiscreteCube | NoiseDistribution::DiscreteGaussian => None,
    }
}

/// Replaces `values` by a draw.
pub(super) fn fill_noise(
    law: NoiseDistribution,
    scale: Scale,
    generator: &mut Generator,
    values: &mut [i128],
) {
    match law {
        NoiseDistribution::DiscreteLaplace => DiscreteLaplace::new(scale).fill(generator, values),
        NoiseDistribution::DiscreteCube => DiscreteCube::new(scale).fill(generator, values),
        NoiseDistribution::Ball => RoundedBall::new(scale).fill(generator, values),
        NoiseDistribution::DiscreteGaussian => DiscreteGaussian::new(scale).fill(generator, values),
    }
}
