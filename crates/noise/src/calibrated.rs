//! Calibrated noise: what turns an exact vector into one that may be published.

use super::calibrate::Scale;
use super::error::NoiseError;
use super::exact::Exact;
use super::noise::Generator;
use super::noisy::Noisy;
use crate::laplace;
use crate::noise;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon};
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;

/// Noise of one distribution and scale.
///
/// For neighbours whose exact values differ by at most the sensitivity that it was calibrated to, in the norm of its
/// distribution, one release costs the price that it was calibrated to, under the adjacency of that sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    distribution: NoiseDistribution,
    scale: Scale,
}

impl Mechanism {
    /// The least noise that the price pays for. `change` is `Target::sensitivity_in` the norm of the distribution; `values` is
    /// how many values a unit can change.
    ///
    /// # Errors
    ///
    /// If the sensitivity or the price is 0, the price buys no noise of this distribution, or the noise would be too large.
    pub fn calibrated(
        distribution: NoiseDistribution,
        change: Sensitivity,
        values: usize,
        price: Price,
    ) -> Result<Self, NoiseError> {
        Ok(Mechanism {
            distribution,
            scale: noise::scale_for_price(distribution, change, values, price)?,
        })
    }

    /// Noise of a given scale, whatever it costs.
    pub fn with_scale(distribution: NoiseDistribution, scale: Scale) -> Self {
        Mechanism {
            distribution,
            scale,
        }
    }

    /// Discrete Laplace noise for a change in the 1-norm and a price of pure differential privacy.
    ///
    /// # Errors
    ///
    /// As [`Mechanism::calibrated`].
    pub fn laplace(change: Sensitivity, price: Epsilon) -> Result<Self, NoiseError> {
        Mechanism::calibrated(
            NoiseDistribution::DiscreteLaplace,
            change,
            1,
            Price::Pure(price),
        )
    }

    /// The Laplace noise of `[AR17]` for a guarantee with a delta: for neighbours of whose `values` values none differs by more
    /// than `sup`.
    ///
    /// # Errors
    ///
    /// As [`Mechanism::calibrated`].
    pub fn advanced_laplace(
        sup: u64,
        values: usize,
        price: Epsilon,
        delta: Delta,
    ) -> Result<Self, NoiseError> {
        let scale = laplace::advanced_scale(sup, values, price, delta)?;
        Ok(Mechanism {
            distribution: NoiseDistribution::DiscreteLaplace,
            scale,
        })
    }

    pub fn distribution(&self) -> NoiseDistribution {
        self.distribution
    }

    /// The `s` of the [`NoiseDistribution`], in grid units.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once per window and key, and keep the
    /// result.
    pub fn release_noisy(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        let mut values = vec![0; exact.reveal().len()];
        noise::fill_noise(self.distribution, self.scale, generator, &mut values);
        for (noisy, exact) in values.iter_mut().zip(exact.reveal()) {
            *noisy = exact.saturating_add(*noisy);
        }
        Noisy(values)
    }
}
