//! Noise of one length in every direction.

use super::calibrate::{Epsilon, Scale};
use super::noise::{Generator, RoundedBall};
use super::{Error, Noisy};
use crate::targets::{Exact, Sensitivity};

/// The K-norm mechanism of the 2-norm (Hardt and Talwar 2010), calibrated to the change of all values together and one
/// price. A departure from `[AR17]`, made for whitened coordinates, of which a record changes none by much.
///
/// For neighbours whose exact values differ by at most the sensitivity in the 2-norm, one release is
/// `price`-differentially private, with delta 0 and for the adjacency of the sensitivity. The standard deviation of a value
/// is `sqrt(d + 1) D2 / price`, `d` the number of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ball {
    scale: Scale,
}

impl Ball {
    /// `euclidean` is `D2`, in grid units. At most `2^20` values are released.
    pub fn calibrated(euclidean: u64, price: Epsilon) -> Result<Self, Error> {
        Scale::for_price(Sensitivity(euclidean), price).map(|scale| Ball { scale })
    }

    /// `s` in a density proportional to `exp(-||noise|| / s)`, in grid units.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. Each call costs the price once more, the same values or not: call it once a window and key, and keep the
    /// result.
    pub fn release(&self, exact: &Exact, generator: &mut Generator) -> Noisy {
        let mut values = vec![0; exact.reveal().len()];
        RoundedBall::new(self.scale).fill(generator, &mut values);
        Noisy(values.into_iter().zip(exact.reveal()).map(|(noise, exact)| exact.saturating_add(noise)).collect())
    }
}
