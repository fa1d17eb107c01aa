//! Discrete Gaussian noise.

use super::generator::Generator;
use super::geometric::uniform_below;
use super::real::{BinaryFraction, Exponent, RationalCache};
use crate::calibrate::Scale;

/// `P[Z = z]` proportional to `exp(-z^2 / 2 sigma^2)` on the integers, `sigma` the [`Scale`].
///
/// # Guarantee
///
/// Added to integer vectors of `N` coordinates that differ by at most `D2` in the 2-norm, these variates give
/// `D2^2 / 2 sigma^2` zero-concentrated differential privacy (`[CKS20]` theorem 14). Nothing departs from the law but the
/// constants of the digits: every probability of the vector is within `exp(N 2^-97)` times what it should be
/// (`Geometric`), which `Gaussian` pays for.
///
/// # How
///
/// `[CKS20]` algorithm 3: a discrete Laplace variate of scale `sigma = 16 b` is accepted with probability
/// `exp(-(|z| - sigma)^2 / 2 sigma^2)`. Its size is `b V + u`, `u` uniform in `0..b`, as in discrete Laplace noise; one coin
/// accepts both `u` and the size.
pub struct DiscreteGaussian {
    /// `b`, 1 to `2^52`.
    sixteenth: u64,
}

impl DiscreteGaussian {
    pub fn new(sigma: Scale) -> Self {
        DiscreteGaussian {
            sixteenth: sigma.units() / 16,
        }
    }

    /// Replaces `values` by independent variates.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let mut quotients = RationalCache::new();
        values.fill_with(|| self.draw_one(&mut quotients, generator));
    }

    fn draw_one(&self, quotients: &mut RationalCache, generator: &mut Generator) -> i128 {
        loop {
            let quotient = quotients.next_quotient(generator);
            let u = uniform_below(generator, self.sixteenth);
            let mut part = BinaryFraction::quotient(u, self.sixteenth);
            if !Exponent::half_normal(quotient).accepts_fraction(&mut part, generator) {
                continue;
            }
            let size = i128::from(self.sixteenth) * i128::from(quotient) + i128::from(u);
            let is_negative = generator.next_word() & 1 == 1;
            // One of the two zeros.
            if is_negative && size == 0 {
                continue;
            }
            return if is_negative { -size } else { size };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_takes_few_words() {
        for units in [16, 1 << 40] {
            let mut generator = Generator::frozen([8; 32]);
            let mut values = vec![0; 10_000];
            DiscreteGaussian::new(Scale::new(units).unwrap()).fill(&mut generator, &mut values);
            // The position is in halves of a word.
            let words = generator.0.get_word_pos() as f64 / 20_000.0;
            println!("sigma {units}: {words:.1} words each");
            assert!(words < 8.0, "{words}");
        }
    }
}
