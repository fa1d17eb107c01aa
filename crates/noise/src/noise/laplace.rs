//! Discrete Laplace noise: the cross-polytope.

use super::generator::Generator;
use super::geometric::{CARRY, Geometric, draw_quotients};
use crate::calibrate::Scale;

/// `P[Z = z] = tanh(1 / 2s) exp(-|z| / s)` on the integers, `s` the [`Scale`].
///
/// # Guarantee
///
/// Added to integer vectors of `N` coordinates that differ by at most `D1` in the 1-norm, these variates give
/// `((1 + 2^-105) D1/s + N 2^-99)`-differential privacy with delta 0. Nothing departs from the law but the constants: those
/// of the digits are multiplicatively `2^-145` close, that of the carry `2^-99.7`, and coordinates that differ by `d`
/// differ by at most `d / 64s + 1` carries ([`Geometric`]).
///
/// # How
///
/// A geometric magnitude ([`Geometric`]) and a sign; one of the two zeros is rejected.
pub struct DiscreteLaplace {
    magnitudes: Geometric,
}

impl DiscreteLaplace {
    pub fn new(scale: Scale) -> Self {
        DiscreteLaplace {
            magnitudes: Geometric::new(scale),
        }
    }

    /// Replaces `values` by independent variates.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let mut places = values.iter_mut().peekable();
        while places.peek().is_some() {
            let mut signs = generator.next_word();
            for quotient in draw_quotients(generator, &CARRY) {
                let magnitude = self.magnitudes.complete_quotient(quotient, generator);
                let is_negative = signs & 1 == 1;
                signs >>= 1;
                if is_negative && magnitude == 0 {
                    continue;
                }
                let Some(place) = places.next() else { return };
                *place = if is_negative { -magnitude } else { magnitude };
            }
        }
    }
}
