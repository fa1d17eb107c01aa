//! Exact geometric variates: what all discrete noise is made of.
//!
//! Every comparison with a probability is exact; the only approximations are the eleven constants below, `2^-192` apart from
//! the truth.

use super::generator::Generator;
use crate::calibrate::Scale;

/// `floor(2^192 / (1 + exp(2^j / 16)))`, `j = 0..10`, most significant word first: the law of the binary digits of `V`.
const DIGITS: [[u64; 3]; 10] = [
    [0x7C00554CCDA9C43A, 0xF9F407D18FBBF58D, 0xA3CBD59A8B862392],
    [0x7802A99A07F3CA3E, 0x9B2A9B572655D664, 0xACD8D093EB7FA06A],
    [0x7015336A1DA3E581, 0xFA84A9B880413F7D, 0xFA7749C303A9CE1D],
    [0x60A6815965E37A0E, 0xCA728E27B8D637F3, 0x71EC5D5A125F1AC0],
    [0x44D9585152EA1935, 0xDAE23BC7349EE58B, 0x066CD42FA414B2DF],
    [0x1E84152BAC31AEA9, 0xE735075B0EF62C06, 0x750CC9E1472FEEEF],
    [0x049ABE8790F0B0B3, 0x0EF340F05F6A8DD2, 0x9ACB433A1D732217],
    [0x0015FA3DD7D2F7A5, 0xEA36E4F988E7D4D1, 0xDBF69550F6C13CE3],
    [0x000001E355B81E5B, 0xC47C64B149D446E5, 0x0B43A86D188C6947],
    [0x000000000003908C, 0x9EEC2C804EDAF9AF, 0x325084947216531D],
];

/// `floor(2^192 exp(-64))`: the law of a carry out of the ten digits.
pub(super) const CARRY: [u64; 3] = [0x0000000000000000, 0x0000000CB4EA3990, 0xF265D5F96940384B];

/// `P[G = g] = (1 - exp(-1/s)) exp(-g / s)` on `0, 1, ...`, `s` the [`Scale`].
///
/// Nothing departs from the law but the constants: those of the digits are multiplicatively `2^-145` close, that of the
/// carry `2^-99.7` (`tests::the_odds_of_neighbouring_values_are_those_of_the_law`), so every probability is within
/// `exp(2^-98.6)` times what it should be.
///
/// `G = b V + U`, `s = 16 b`, with independent `P[V = v] ~ exp(-v / 16)` and `P[U = u] ~ exp(-u / 16b)`, `0 <= u < b`.
/// The binary digits of `V` are independent and do not depend on the scale
/// (`[DKMMN06]`): 64 variates at a time, a digit of all of them in one word. `U` is a uniform accepted with
/// probability `exp(-u / 16b)` (`[CKS20]` algorithm 1).
pub(super) struct Geometric {
    /// `b`, 1 to `2^52`.
    sixteenth: u64,
}

impl Geometric {
    pub fn new(scale: Scale) -> Self {
        Geometric {
            sixteenth: scale.units() / 16,
        }
    }

    /// `G`, of which `quotient` is `V`.
    pub fn complete_quotient(&self, quotient: u32, generator: &mut Generator) -> i128 {
        i128::from(self.sixteenth) * i128::from(quotient)
            + i128::from(self.draw_remainder(generator))
    }

    /// `U`: a uniform `u`, accepted where coins of probability `(u / 16b) / k`, `k = 1, 2, ...`, first fail at an odd `k`.
    fn draw_remainder(&self, generator: &mut Generator) -> u64 {
        let b = self.sixteenth;
        loop {
            let UniformDraw { value: u, word } = draw_uniform(generator, b);
            let coin = generator.next_word();
            if fails_at_sight(coin, word) || !word_falls_below(coin, u, 16 * b, generator) {
                return u;
            }
            let mut k = 2;
            while falls_below(u, 16 * b, generator) && uniform_below(generator, k) == 0 {
                k += 1;
            }
            if k % 2 == 1 {
                return u;
            }
        }
    }
}

/// Returns true if a first coin is certain to fail, without a division: `u <= word b / 2^64`, so what exceeds `word / 16` exceeds
/// `u / 16b` too.
fn fails_at_sight(coin: u64, word: u64) -> bool {
    coin > word >> 4
}

/// 64 independent `V`, `P[V = v] = (1 - exp(-1/16)) exp(-v / 16)`, where `carry` is [`CARRY`].
pub(super) fn draw_quotients(generator: &mut Generator, carry: &[u64; 3]) -> [u32; 64] {
    let mut values = [0; 64];
    for (j, probability) in DIGITS.iter().enumerate() {
        let digits = bernoulli_bits(generator, probability);
        for (i, value) in values.iter_mut().enumerate() {
            *value |= ((digits >> i & 1) as u32) << j;
        }
    }
    let mut carrying = u64::MAX;
    loop {
        carrying &= bernoulli_bits(generator, carry);
        if carrying == 0 {
            return values;
        }
        for (i, value) in values.iter_mut().enumerate() {
            *value = value.saturating_add(((carrying >> i & 1) as u32) << DIGITS.len());
        }
    }
}

/// 64 independent bits, each 1 with probability `p / 2^192`: 64 uniform numbers compared with `p`, bit by bit from the
/// top, until all are decided.
fn bernoulli_bits(generator: &mut Generator, p: &[u64; 3]) -> u64 {
    let mut below = 0;
    let mut undecided = u64::MAX;
    for limb in p {
        for bit in (0..64).rev() {
            let word = generator.next_word();
            if limb >> bit & 1 == 1 {
                below |= undecided & !word;
                undecided &= word;
            } else {
                undecided &= !word;
            }
            if undecided == 0 {
                return below;
            }
        }
    }
    below
}

/// A uniform integer in `0..n`.
pub(super) fn uniform_below(generator: &mut Generator, n: u64) -> u64 {
    draw_uniform(generator, n).value
}

/// A uniform integer, and the word that it is the top of.
pub(super) struct UniformDraw {
    pub value: u64,
    pub word: u64,
}

/// Draws a uniform integer in `0..n`: `floor(word n / 2^64)` (`[Lem19]`).
pub(super) fn draw_uniform(generator: &mut Generator, n: u64) -> UniformDraw {
    let surplus = n.wrapping_neg() % n;
    loop {
        let word = generator.next_word();
        let product = u128::from(word) * u128::from(n);
        if product as u64 >= surplus {
            return UniformDraw {
                value: (product >> 64) as u64,
                word,
            };
        }
    }
}

/// Returns true if a uniform real falls below `numerator / denominator`.
pub(super) fn falls_below(numerator: u64, denominator: u64, generator: &mut Generator) -> bool {
    let first = generator.next_word();
    word_falls_below(first, numerator, denominator, generator)
}

/// Returns true if the uniform real whose first 64 bits are `word` lies below `numerator / denominator`, which is less than 1;
/// further bits are drawn where those do not decide.
fn word_falls_below(
    mut word: u64,
    mut numerator: u64,
    denominator: u64,
    generator: &mut Generator,
) -> bool {
    loop {
        let dividend = u128::from(numerator) << 64;
        let quotient = (dividend / u128::from(denominator)) as u64;
        if word != quotient {
            return word < quotient;
        }
        numerator = (dividend % u128::from(denominator)) as u64;
        if numerator == 0 {
            return false;
        }
        word = generator.next_word();
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    /// `floor(2^384 exp(-1/16))`, to a few units, by its alternating series.
    fn exp_minus_sixteenth() -> BigUint {
        let one: BigUint = BigUint::from(1_u32) << 384;
        let mut sum = one.clone();
        let mut term = one;
        for n in 1_u32..=80 {
            term /= 16 * n;
            sum = if n % 2 == 1 { sum - &term } else { sum + &term };
        }
        sum
    }

    fn big(words: &[u64]) -> BigUint {
        words
            .iter()
            .fold(BigUint::ZERO, |sum, word| (sum << 64) + *word)
    }

    #[test]
    fn the_constants_are_those_of_the_law() {
        let one: BigUint = BigUint::from(1_u32) << 384;
        // exp(-2^j / 16) by repeated squaring.
        let mut power = exp_minus_sixteenth();
        for digit in &DIGITS {
            let odds = (&power << 192) / (&one + &power);
            assert_eq!(odds, big(digit));
            power = (&power * &power) >> 384;
        }
        assert_eq!(power >> 192, big(&CARRY));
    }

    /// Theorem 1 of the sampler, by enumeration of the law that the constants really make: `b = 1`, so `|Z| = V`.
    #[test]
    fn the_odds_of_neighbouring_values_are_those_of_the_law() {
        let certain: BigUint = BigUint::from(1_u32) << 192;
        let weight = |v: u32| {
            let digit = |(j, p): (usize, &[u64; 3])| {
                if v >> j & 1 == 1 {
                    big(p)
                } else {
                    &certain - big(p)
                }
            };
            let digits = DIGITS.iter().enumerate().map(digit).product::<BigUint>();
            digits * big(&CARRY).pow(v >> 10) * certain.pow(4 - (v >> 10))
        };
        let odds = exp_minus_sixteenth();
        let mut before = weight(0);
        let mut farthest = BigUint::ZERO;
        for v in 1..4096 {
            let now = weight(v);
            let expected = &before * &odds;
            let found = &now << 384;
            let error = if found > expected {
                &found - &expected
            } else {
                &expected - &found
            };
            // Relative error, in units of 2^-192.
            farthest = farthest.max((error << 192) / expected);
            before = now;
        }
        // The bound, and that it is not idle: the carry is off by about 2^-103.
        assert!(farthest < BigUint::from(1_u32) << (192 - 99), "{farthest}");
        assert!(farthest > BigUint::from(1_u32) << (192 - 104), "{farthest}");
    }

    /// What [`word_falls_below`] decides, by rationals: the first 192 bits of the uniform against the fraction.
    fn below_in_rationals(words: [u64; 3], numerator: u64, denominator: u64) -> Option<bool> {
        let uniform = big(&words) * denominator;
        let fraction = BigUint::from(numerator) << 192;
        if uniform >= fraction {
            Some(false)
        } else if uniform + denominator <= fraction {
            Some(true)
        } else {
            None
        }
    }

    proptest! {
        #[test]
        fn comparisons_agree_with_rationals(
            denominator in 2_u64..1 << 56, part in 0.0..1.0_f64, nudge in -1_i64..=1, seed: [u8; 32]
        ) {
            let numerator = (part * denominator as f64) as u64 % denominator;
            // The words that do not decide, or nearly do not.
            let tie = ((u128::from(numerator) << 64) / u128::from(denominator)) as u64;
            let word = tie.saturating_add_signed(nudge);
            let mut ahead = Generator::frozen(seed);
            let words = [word, ahead.next_word(), ahead.next_word()];
            let decided = below_in_rationals(words, numerator, denominator).expect("192 bits decide");
            prop_assert_eq!(word_falls_below(word, numerator, denominator, &mut Generator::frozen(seed)), decided);
        }

        #[test]
        fn the_fast_acceptance_never_overrules_the_exact_coin(
            b in (0_u32..=52).prop_flat_map(|bits| 1..=1_u64 << bits), word: u64, beyond in -1_i64..4, seed: [u8; 32]
        ) {
            let u = ((u128::from(word) * u128::from(b)) >> 64) as u64;
            // The coins at which the exact one turns, where a rule that is too generous would overrule it.
            let turn = ((u128::from(u) << 64) / u128::from(16 * b)) as u64;
            for coin in [turn, word >> 4].map(|coin| coin.saturating_add_signed(beyond)) {
                let fails = !word_falls_below(coin, u, 16 * b, &mut Generator::frozen(seed));
                prop_assert!(fails || !fails_at_sight(coin, word));
            }
        }
    }

    #[test]
    fn a_fraction_that_ends_is_decided_without_another_word() {
        let mut generator = Generator::frozen([1; 32]);
        assert!(word_falls_below((1 << 63) - 1, 1, 2, &mut generator));
        assert!(!word_falls_below(1 << 63, 1, 2, &mut generator));
        assert!(!word_falls_below(0, 0, 3, &mut generator));
        assert_eq!(
            generator.next_word(),
            Generator::frozen([1; 32]).next_word()
        );
    }

    #[test]
    fn uniform_integers_favour_none_where_words_do_not_divide_evenly() {
        let mut generator = Generator::frozen([3; 32]);
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            // Without the rejection, multiples of 3 would come twice as often.
            counts[(uniform_below(&mut generator, 3 << 62) % 3) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 600),
            "{counts:?}"
        );
    }

    #[test]
    fn carries_add_a_thousand_and_twenty_four_each() {
        // The carry of the law comes once in 2^92 draws; here it is a fair coin.
        let mut generator = Generator::frozen([4; 32]);
        let values: Vec<u32> = (0..1000)
            .flat_map(|_| draw_quotients(&mut generator, &[1 << 63, 0, 0]))
            .collect();
        for carries in 0..6 {
            let expected = 64_000 >> (carries + 1);
            let found = values.iter().filter(|v| *v / 1024 == carries).count() as u32;
            assert!(
                f64::from(found.abs_diff(expected)) < 6.1 * f64::from(expected).sqrt(),
                "{carries}: {found}"
            );
        }
        let mean = values.iter().map(|v| f64::from(v % 1024)).sum::<f64>() / 64_000.0;
        let law = 1.0 / ((1.0_f64 / 16.0).exp() - 1.0);
        assert!(
            (mean / law - 1.0).abs() < 6.1 / 64_000.0_f64.sqrt() * 1.05,
            "{mean} {law}"
        );
    }

    #[test]
    fn sixty_four_bits_are_drawn_with_the_odds_asked_for() {
        let mut generator = Generator::frozen([2; 32]);
        let half = [1 << 63, 0, 0];
        let never = [0; 3];
        let ones = |p: &[u64; 3], generator: &mut Generator| -> u32 {
            (0..1000)
                .map(|_| bernoulli_bits(generator, p).count_ones())
                .sum()
        };
        assert_eq!(ones(&never, &mut generator), 0);
        // 64,000 fair coins: ten standard deviations are 1265.
        assert!(ones(&half, &mut generator).abs_diff(32_000) < 1_265);
    }
}
