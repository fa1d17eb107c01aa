//! The private selection of one of finitely many public functions.

use super::calibrate::Scale;
use super::error::NoiseError;
use super::noise::{Generator, permute_and_flip};
use crate::Exact;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::Epsilon;

/// The exponential mechanism over a finite public set of functions (`[HRW13]`, section 3.2), by its
/// variant permute-and-flip (`[MS20]`): never a worse utility on average, and no normaliser to compute.
///
/// For neighbours whose exact utilities differ by at most the sensitivity each, one choice is `price`-differentially
/// private, with delta 0: in a random order, a function whose utility falls short of the best by `g` is taken with
/// probability `exp(-price g / 2 S)`, decided exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermuteAndFlip {
    scale: Scale,
}

impl PermuteAndFlip {
    /// `sup` is the most that any one utility changes, in the units of the utilities.
    ///
    /// # Errors
    ///
    /// If the sensitivity or the price is 0, or the scale would be too large.
    pub fn calibrated(sup: u64, price: Epsilon) -> Result<Self, NoiseError> {
        let both = sup
            .checked_mul(2)
            .ok_or(NoiseError::TooMuchNoise { price })?;
        Scale::for_price(Sensitivity(both), price).map(|scale| PermuteAndFlip { scale })
    }

    /// `2 S / price`.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Draws. The index of a function, 0 where there is none; each call costs the price once more.
    pub fn choose_index(&self, utilities: &Exact, generator: &mut Generator) -> usize {
        permute_and_flip(self.scale, utilities.reveal(), generator)
    }
}

/// Candidates for a secret function: public functions, by their values at the public points of a target.
///
/// A candidate's utility is less the further it is from the exact values where it is furthest (`[HRW13]`,
/// section 3.2, with the distance of the sup norm). Neighbours whose values differ by at most `S` at each point are at most that
/// much nearer or further, so one choice is `price`-differentially private with delta 0, as with [`PermuteAndFlip`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCandidates {
    functions: Vec<Vec<i128>>,
    selection: PermuteAndFlip,
}

impl FunctionCandidates {
    /// `functions` in the grid units of the exact values, which must not be what they were chosen by; a point that one does
    /// not reach does not count for it. `sup` is
    /// `Target::sup_sensitivity`.
    ///
    /// # Errors
    ///
    /// If the sensitivity or the price is 0, or the scale would be too large.
    pub fn calibrated(
        functions: Vec<Vec<i128>>,
        sup: u64,
        price: Epsilon,
    ) -> Result<Self, NoiseError> {
        Ok(FunctionCandidates {
            functions,
            selection: PermuteAndFlip::calibrated(sup, price)?,
        })
    }

    /// Draws. The number of a candidate, 0 where there is none; each call costs the price once more.
    pub fn choose_candidate(&self, exact: &Exact, generator: &mut Generator) -> usize {
        self.selection
            .choose_index(&self.utilities(exact), generator)
    }

    /// Utilities in grid units, one a candidate. Secret.
    pub fn utilities(&self, exact: &Exact) -> Exact {
        let mut utilities = Vec::with_capacity(self.functions.len());
        for function in &self.functions {
            let mut farthest = 0;
            for (value, exact) in function.iter().zip(exact.reveal()) {
                farthest = value.abs_diff(*exact).max(farthest);
            }
            utilities.push(-i128::try_from(farthest).unwrap_or(i128::MAX));
        }
        Exact::new(utilities)
    }
}
