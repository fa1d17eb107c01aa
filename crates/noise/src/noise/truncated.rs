//! Discrete Laplace noise within bounds.

use super::generator::Generator;
use super::laplace::DiscreteLaplace;
use crate::calibrate::Scale;

/// `P[X = x]` proportional to `exp(-|x| / s)` for `|x| <= K`, and 0 elsewhere: [`DiscreteLaplace`], drawn again until it is within the
/// bound `K`.
///
/// # Guarantee
///
/// Added to whole numbers that differ by at most `D`, it is `(D/s + 2^-96, delta)`-differentially private, `delta` the mass of the upper `D`
/// points: for [`laplace_truncation`](bernstream_synopsis::key_threshold::laplace_truncation), which finds `K` for a delta.
pub struct TruncatedLaplace {
    laplace: DiscreteLaplace,
    bound: u64,
}

impl TruncatedLaplace {
    pub fn new(scale: Scale, bound: u64) -> Self {
        TruncatedLaplace {
            laplace: DiscreteLaplace::new(scale),
            bound,
        }
    }

    /// Replaces `values` by independent variates. How long that takes depends on the noise alone.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let mut kept = 0;
        while kept < values.len() {
            self.laplace.fill(generator, &mut values[kept..]);
            let drawn = kept;
            for index in drawn..values.len() {
                if values[index].unsigned_abs() <= u128::from(self.bound) {
                    values.swap(kept, index);
                    kept += 1;
                }
            }
        }
    }
}
