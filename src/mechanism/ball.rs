use super::Error;
use super::Noisy;
use super::calibrate::{Epsilon, Scale};
use super::noise::{Generator, RoundedBall};
use crate::target::{Exact, Sensitivity};

/// Noise of one length in every direction, calibrated to the 2-norm of the change and one price: the kernel ball, where the
/// values are whitened coordinates (privacy mathematics, section 11).
///
/// For neighbours whose exact values differ by at most the sensitivity in the 2-norm, one release is
/// `price`-differentially private, with delta 0 and for the adjacency of the sensitivity ([`RoundedBall`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ball {
    scale: Scale,
}

impl Ball {
    /// `euclidean` is [`Target::euclidean_sensitivity`](crate::target::Target::euclidean_sensitivity).
    pub fn calibrated(euclidean: u64, price: Epsilon) -> Result<Self, Error> {
        Scale::for_price(Sensitivity(euclidean), price).map(|scale| Ball { scale })
    }

    /// `s` in the density `exp(-||x||_2 / s)`, in grid units.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once a window and key, and keep the
    /// result.
    pub fn release(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        let mut values = vec![0; exact.reveal().len()];
        RoundedBall::new(self.scale).fill(generator, &mut values);
        for (noisy, exact) in values.iter_mut().zip(exact.reveal()) {
            *noisy = exact.saturating_add(*noisy);
        }
        Noisy(values)
    }
}
