//! The discrete cube: noise that is uniform in a cube of random size.

use super::generator::Generator;
use super::geometric::{CARRY, Geometric, draw_quotients, uniform_below};
use crate::calibrate::Scale;

/// `P[Z = z]` proportional to `exp(-max_i |z_i| / s)` on the integer vectors of `N` coordinates, `s` the [`Scale`]: the
/// K-norm mechanism of the sup norm (`[HT10]`).
///
/// # Guarantee
///
/// Added to integer vectors of which no coordinate differs by more than `S`, such a vector gives
/// `(S/s + (N + 1) 2^-97)`-differential privacy with delta 0: by the triangle inequality `S/s` is exact, and every
/// probability of the radius is within `exp((N + 1) 2^-98.6)` times what it should be ([`Geometric`]). Coordinates are
/// not independent.
///
/// # How
///
/// `exp(-a m) = (1 - exp(-a)) sum_{R >= m} exp(-a R)`: a radius of weight `(2R + 1)^N exp(-a R)`, `a = 1/s`, then each
/// coordinate uniform in `-R ..= R`. The sum of `N + 1` geometric variates has weight `C(R + N, N) exp(-a R)`; accepted
/// with probability `prod_{i=1..N} (2R + 1) / (2R + 2i)`, one exact coin a factor, it is the radius. Where `s` is far
/// above `N`, as in every release, next to nothing is rejected.
pub struct DiscreteCube {
    sizes: Geometric,
}

impl DiscreteCube {
    pub fn new(scale: Scale) -> Self {
        DiscreteCube {
            sizes: Geometric::new(scale),
        }
    }

    /// Replaces `values`, at most `2^20` of them, by one variate.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let radius = self.draw_radius(values.len(), generator);
        let sides = 2 * radius.unsigned_abs() + 1;
        values.fill_with(|| wide_uniform(generator, sides).cast_signed() - radius);
    }

    fn draw_radius(&self, values: usize, generator: &mut Generator) -> i128 {
        loop {
            let sum = self.sum_of_geometric(values + 1, generator);
            if is_accepted(sum.unsigned_abs(), values as u64, generator) {
                return sum;
            }
        }
    }

    /// The sum of `count` independent geometric variates; below `2^105`.
    fn sum_of_geometric(&self, count: usize, generator: &mut Generator) -> i128 {
        let mut sum = 0;
        let mut left = count;
        while left > 0 {
            for quotient in draw_quotients(generator, &CARRY).into_iter().take(left) {
                sum += self.sizes.complete_quotient(quotient, generator);
            }
            left = left.saturating_sub(64);
        }
        sum
    }
}

/// True with probability `prod_{i=1..N} (2R + 1) / (2R + 2i)`.
fn is_accepted(radius: u128, values: u64, generator: &mut Generator) -> bool {
    // Coin i fails with probability (2i - 1) / (2R + 2i), which is at most N / R: words above this cannot make it fail.
    let doubtful = if radius > u128::from(values) {
        ((u128::from(values) << 64) / radius) as u64
    } else {
        u64::MAX
    };
    (1..=values).all(|i| {
        let word = generator.next_word();
        word > doubtful
            || !coin_falls_below(
                word,
                2 * u128::from(i) - 1,
                2 * (radius + u128::from(i)),
                generator,
            )
    })
}

/// Returns true if the uniform real whose first 64 bits are `word` lies below `numerator / denominator`, which is less than 1, its
/// denominator below `2^127`: digit by digit, further words drawn where 64 do not decide.
fn coin_falls_below(
    mut word: u64,
    mut numerator: u128,
    denominator: u128,
    generator: &mut Generator,
) -> bool {
    loop {
        for bit in (0..64).rev() {
            numerator *= 2;
            let digit = numerator >= denominator;
            if digit {
                numerator -= denominator;
            }
            if (word >> bit & 1 == 1) != digit {
                return digit;
            }
        }
        word = generator.next_word();
    }
}

/// A uniform integer in `0..n`.
fn wide_uniform(generator: &mut Generator, n: u128) -> u128 {
    if let Ok(n) = u64::try_from(n) {
        return u128::from(uniform_below(generator, n));
    }
    let mask = u128::MAX >> n.leading_zeros();
    loop {
        let drawn =
            (u128::from(generator.next_word()) << 64 | u128::from(generator.next_word())) & mask;
        if drawn < n {
            return drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    fn big(words: &[u64]) -> BigUint {
        words
            .iter()
            .fold(BigUint::ZERO, |sum, word| (sum << 64) + *word)
    }

    proptest! {
        #[test]
        fn a_coin_agrees_with_rationals(
            denominator in (1_u32..126).prop_flat_map(|bits| 2..=1_u128 << bits), part in 0.0..1.0_f64, nudge in -1_i64..=1,
            seed: [u8; 32]
        ) {
            let numerator = (part * denominator as f64) as u128 % denominator;
            // The words that do not decide, or nearly do not.
            let tie: BigUint = (BigUint::from(numerator) << 64) / denominator;
            let word = u64::try_from(tie).unwrap().saturating_add_signed(nudge);
            let mut ahead = Generator::frozen(seed);
            let words = [word, ahead.next_word(), ahead.next_word(), ahead.next_word()];
            let (uniform, fraction) = (big(&words) * denominator, BigUint::from(numerator) << 256);
            prop_assert_eq!(coin_falls_below(word, numerator, denominator, &mut Generator::frozen(seed)), uniform < fraction);
        }

        #[test]
        fn a_word_that_is_not_looked_at_could_not_make_a_coin_fail(
            radius in (0_u32..100).prop_flat_map(|bits| 0..1_u128 << bits), values in 1_u64..2_000, beyond in 0_u64..9,
            seed: [u8; 32]
        ) {
            prop_assume!(radius > u128::from(values));
            let doubtful = ((u128::from(values) << 64) / radius) as u64;
            for i in [1, values / 2 + 1, values] {
                let word = doubtful.saturating_add(1 + beyond);
                let (odds, of) = (2 * u128::from(i) - 1, 2 * (radius + u128::from(i)));
                prop_assert!(!coin_falls_below(word, odds, of, &mut Generator::frozen(seed)));
            }
        }
    }

    #[test]
    fn wide_integers_are_uniform_beyond_a_word() {
        let mut generator = Generator::frozen([6; 32]);
        // Three parts of equal size, none a power of two.
        let part = 5_u128 << 70;
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            counts[(wide_uniform(&mut generator, 3 * part) / part) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 600),
            "{counts:?}"
        );
    }
}
