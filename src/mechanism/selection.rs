//! One of finitely many public functions, by how well it fits.

use super::Error;
use super::calibrate::{Epsilon, Scale};
use super::noise::{Generator, permute_and_flip};
use crate::target::{Exact, Sensitivity};

/// The exponential mechanism over a finite public set of functions (Hall, Rinaldo and Wasserman 2013, section 3.2), by its
/// variant permute-and-flip (McKenna and Sheldon 2020): never a worse utility on average, and no normaliser to compute.
///
/// For neighbours whose exact utilities differ by at most the sensitivity each, one choice is `price`-differentially
/// private, with delta 0: in a random order, a function whose utility falls short of the best by `g` is taken with
/// probability `exp(-price g / 2 S)`, decided exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    scale: Scale,
}

impl Selection {
    /// `sup` is the most that any one utility changes, in the units of the utilities.
    pub fn calibrated(sup: u64, price: Epsilon) -> Result<Self, Error> {
        let both = sup.checked_mul(2).ok_or(Error::TooMuchNoise { price })?;
        Scale::for_price(Sensitivity(both), price).map(|scale| Selection { scale })
    }

    /// `2 S / price`.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. The index of a function, 0 where there is none; each call costs the price once more.
    pub fn choose(&self, utilities: &Exact, generator: &mut Generator) -> usize {
        permute_and_flip(self.scale, utilities.reveal(), generator)
    }
}
