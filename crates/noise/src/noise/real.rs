//! Real numbers drawn exactly: the digits that a question needs, and more of them only where it is in doubt.

use num_bigint::BigUint;

use super::generator::Generator;
use super::geometric::{CARRY, draw_quotients, uniform_below};

/// A number from 0 to 1, of which the first binary digits are known, 64 at a time.
///
/// What is known is the interval from [`BinaryFraction::digits`] to one more, in units of `2^-64` a word; every decision is made
/// for the whole interval. So the digits that are not known yet are as if nothing had been asked (`[Kar16]`).
pub(super) struct BinaryFraction {
    first: u64,
    further: Vec<u64>,
    rest: DigitSource,
}

/// Source of further digits.
enum DigitSource {
    /// A uniform number: all are equally likely.
    Uniform,
    /// They are those of a fraction of whole numbers, below 1.
    Quotient { remainder: u64, divisor: u64 },
}

impl BinaryFraction {
    pub(super) fn uniform(generator: &mut Generator) -> Self {
        BinaryFraction {
            first: generator.next_word(),
            further: Vec::new(),
            rest: DigitSource::Uniform,
        }
    }

    /// `numerator / divisor`, less than 1.
    pub(super) fn quotient(numerator: u64, divisor: u64) -> Self {
        let Digits { word, remainder } = next_digits(numerator, divisor);
        BinaryFraction {
            first: word,
            further: Vec::new(),
            rest: DigitSource::Quotient { remainder, divisor },
        }
    }

    /// Number of words that are known.
    fn words(&self) -> usize {
        1 + self.further.len()
    }

    fn extend(&mut self, generator: &mut Generator) {
        let word = match &mut self.rest {
            DigitSource::Uniform => generator.next_word(),
            DigitSource::Quotient { remainder, divisor } => {
                let digits = next_digits(*remainder, *divisor);
                *remainder = digits.remainder;
                digits.word
            }
        };
        self.further.push(word);
    }

    /// The known digits as a whole number, after those of `whole`.
    fn digits(&self, whole: u32) -> BigUint {
        let first = BigUint::from(u128::from(whole) << 64 | u128::from(self.first));
        self.further
            .iter()
            .fold(first, |digits, word| (digits << 64) + *word)
    }
}

/// Digits of a quotient.
struct Digits {
    word: u64,
    /// What is left of the numerator.
    remainder: u64,
}

/// The first 64 binary digits of `numerator / divisor`.
fn next_digits(numerator: u64, divisor: u64) -> Digits {
    let dividend = u128::from(numerator) << 64;
    Digits {
        word: (dividend / u128::from(divisor)) as u64,
        remainder: (dividend % u128::from(divisor)) as u64,
    }
}

/// `(constant + linear x + square x^2) / 512` for a fraction `x`: the negative logarithm of a probability.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exponent {
    constant: u64,
    linear: u64,
    square: u64,
}

impl Exponent {
    /// `x / 16`: a uniform `x` is accepted as the part after the point of sixteen times a standard exponential variate.
    const EXPONENTIAL: Exponent = Exponent {
        constant: 0,
        linear: 32,
        square: 0,
    };

    /// `y^2 / 2 - y + 1/2 + x / 16`, `y = (whole + x) / 16`: turns a `whole` of weight `exp(-whole / 16)` and a uniform `x`
    /// into a `y` of density `exp(-y^2 / 2)`. Never negative: it is `((whole - 16)^2 + 2 whole x + x^2) / 512`.
    pub(super) fn half_normal(whole: u32) -> Self {
        let whole = u64::from(whole);
        Exponent {
            constant: whole.abs_diff(16).pow(2),
            linear: 2 * whole,
            square: 1,
        }
    }

    /// True with probability `exp(-self)` at `x`: as many coins as make each exponent at most 1.
    pub(super) fn accepts_fraction(
        self,
        x: &mut BinaryFraction,
        generator: &mut Generator,
    ) -> bool {
        self.accepts_by(Exponent::coin_below, x, generator)
    }

    fn accepts_by(
        self,
        below: fn(Exponent, u64, &mut BinaryFraction, &mut Generator) -> bool,
        x: &mut BinaryFraction,
        generator: &mut Generator,
    ) -> bool {
        let coins = (self.constant + self.linear + self.square).div_ceil(512);
        (0..coins).all(|_| {
            // Coins of probability exponent / k, k = 1, 2, ...: the first to fail is an odd one with probability
            // exp(-exponent) (`[Neu51]`; `[CKS20]` algorithm 1).
            let mut k = 1;
            while below(self, 512 * coins, x, generator)
                && (k == 1 || uniform_below(generator, k) == 0)
            {
                k += 1;
            }
            k % 2 == 1
        })
    }

    /// Returns true if a uniform real falls below `512 self / of` at `x`, which is at most 1.
    fn coin_below(self, of: u64, x: &mut BinaryFraction, generator: &mut Generator) -> bool {
        let coin = BinaryFraction::uniform(generator);
        self.at_sight(of, coin.first, x.first)
            .unwrap_or_else(|| self.in_full(of, coin, x, generator))
    }

    /// Compares as [`coin_below`](Self::coin_below), from 64 digits of the coin and of `x`; `None` where they do not decide. In units of `2^-64`.
    fn at_sight(self, of: u64, coin: u64, x: u64) -> Option<bool> {
        let x = u128::from(x);
        let lowest = (u128::from(self.constant) << 64)
            + u128::from(self.linear) * x
            + ((u128::from(self.square) * x * x) >> 64);
        // One more in the last digit of x adds less than `linear + 2 square`, and less than `square` was cut off.
        let highest = lowest + u128::from(self.linear + 3 * self.square);
        let coin = u128::from(coin) * u128::from(of);
        if coin + u128::from(of) <= lowest {
            Some(true)
        } else if coin >= highest {
            Some(false)
        } else {
            None
        }
    }

    /// `512` times the exponent at `x / 2^places`, in units of `2^-(2 places)`.
    fn scaled(self, x: BigUint, places: usize) -> BigUint {
        let linear = ((BigUint::from(self.constant) << places) + self.linear * &x) << places;
        linear + self.square * &x * &x
    }

    /// Compares as [`coin_below`](Self::coin_below), with as many digits as it takes.
    fn in_full(
        self,
        of: u64,
        mut coin: BinaryFraction,
        x: &mut BinaryFraction,
        generator: &mut Generator,
    ) -> bool {
        loop {
            coin.extend(generator);
            x.extend(generator);
            let places = 64 * x.words();
            let coin_places = 64 * coin.words();
            // Both sides of the comparison in units of `2^-(2 places + coin_places)`.
            let lowest = self.scaled(x.digits(0), places) << coin_places;
            if ((coin.digits(0) + 1_u32) * of) << (2 * places) <= lowest {
                return true;
            }
            let highest = self.scaled(x.digits(0) + 1_u32, places) << coin_places;
            if (coin.digits(0) * of) << (2 * places) >= highest {
                return false;
            }
        }
    }
}

/// Independent `V`, `P[V = v] = (1 - exp(-1/16)) exp(-v / 16)`, drawn 64 at a time.
pub(super) struct RationalCache {
    drawn: [u32; 64],
    left: usize,
}

impl RationalCache {
    pub(super) fn new() -> Self {
        RationalCache {
            drawn: [0; 64],
            left: 0,
        }
    }

    pub(super) fn next_quotient(&mut self, generator: &mut Generator) -> u32 {
        if self.left == 0 {
            *self = RationalCache {
                drawn: draw_quotients(generator, &CARRY),
                left: 64,
            };
        }
        self.left -= 1;
        self.drawn[self.left]
    }
}

/// A positive real in sixteenths: a whole number of them, and a part of one.
pub(super) struct DyadicReal {
    whole: u32,
    part: BinaryFraction,
}

impl DyadicReal {
    /// `P[y > t] = exp(-t)`.
    pub(super) fn exponential(quotients: &mut RationalCache, generator: &mut Generator) -> Self {
        let whole = quotients.next_quotient(generator);
        loop {
            let mut part = BinaryFraction::uniform(generator);
            if Exponent::EXPONENTIAL.accepts_fraction(&mut part, generator) {
                return DyadicReal { whole, part };
            }
        }
    }

    /// The size of a standard normal variate.
    pub(super) fn half_normal(quotients: &mut RationalCache, generator: &mut Generator) -> Self {
        loop {
            let whole = quotients.next_quotient(generator);
            let mut part = BinaryFraction::uniform(generator);
            if Exponent::half_normal(whole).accepts_fraction(&mut part, generator) {
                return DyadicReal { whole, part };
            }
        }
    }

    /// Number of words of the part that are known.
    pub(super) fn words(&self) -> usize {
        self.part.words()
    }

    pub(super) fn extend(&mut self, generator: &mut Generator) {
        self.part.extend(generator);
    }

    /// The known digits: in units of `2^-64` sixteenths a word, the number lies between these and one more.
    pub(super) fn digits(&self) -> BigUint {
        self.part.digits(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normals_and_exponentials() -> impl Strategy<Value = Exponent> {
        prop_oneof![
            Just(Exponent::EXPONENTIAL),
            (0_u32..200).prop_map(Exponent::half_normal)
        ]
    }

    /// As [`Exponent::accepts_by`] has it.
    fn coins(exponent: Exponent) -> u64 {
        (exponent.constant + exponent.linear + exponent.square).div_ceil(512)
    }

    proptest! {
        #[test]
        fn a_decision_at_sight_is_that_of_any_further_digits(
            exponent in normals_and_exponentials(), x: u64, nudge in -3_i64..=3, seed: [u8; 32]
        ) {
            let of = 512 * coins(exponent);
            // The coins at which the decision turns.
            let at = BigUint::from(exponent.constant) * (BigUint::from(1_u32) << 128_u32)
                + ((exponent.linear * BigUint::from(x)) << 64_u32)
                + exponent.square * BigUint::from(x) * x;
            let turn = u64::try_from((at / of) >> 64_u32).unwrap_or(u64::MAX);
            let coin = turn.saturating_add_signed(nudge);
            let mut generator = Generator::frozen(seed);
            let [mut x_in_full, coin_in_full] =
                [x, coin].map(|first| BinaryFraction { first, further: Vec::new(), rest: DigitSource::Uniform });
            let in_full = exponent.in_full(of, coin_in_full, &mut x_in_full, &mut generator);
            if let Some(decided) = exponent.at_sight(of, coin, x) {
                prop_assert_eq!(decided, in_full);
            }
            // Far from the turn all is decided at sight, and rightly.
            prop_assert_eq!(exponent.at_sight(of, turn.saturating_add(1 << 20), x), (turn < u64::MAX - (1 << 20)).then_some(false));
            prop_assert_eq!(exponent.at_sight(of, turn.saturating_sub(1 << 20), x), (turn > 1 << 20).then_some(true));
        }

        #[test]
        fn a_decision_in_full_agrees_with_rationals(
            whole in 0_u32..200, b in 1..=1_u64 << 52, part in 0.0..1.0_f64, word: u64, seed: [u8; 32]
        ) {
            let (exponent, u) = (Exponent::half_normal(whole), (part * b as f64) as u64 % b);
            let of = 512 * coins(exponent);
            let mut ahead = Generator::frozen(seed);
            let words = [word, ahead.next_word(), ahead.next_word(), ahead.next_word()];
            let uniform = words.iter().fold(BigUint::ZERO, |sum, word| (sum << 64) + *word);
            let (u_big, b_big) = (BigUint::from(u), BigUint::from(b));
            let right = exponent.constant * &b_big * &b_big + exponent.linear * &u_big * &b_big + &u_big * &u_big;
            let coin = BinaryFraction { first: word, further: Vec::new(), rest: DigitSource::Uniform };
            let found = exponent.in_full(of, coin, &mut BinaryFraction::quotient(u, b), &mut Generator::frozen(seed));
            prop_assert_eq!(found, uniform * of * &b_big * &b_big < right << 256);
        }

        #[test]
        fn a_quotient_has_the_digits_of_its_fraction(b in 1..u64::MAX, part: u64, words in 1_usize..5) {
            let u = part % b;
            let mut fraction = BinaryFraction::quotient(u, b);
            while fraction.words() < words {
                fraction.extend(&mut Generator::frozen([0; 32]));
            }
            prop_assert_eq!(fraction.digits(0), (BigUint::from(u) << (64 * words)) / b);
        }
    }

    /// Every coin in doubt: the law is the same. A deviation 30 % off is found out.
    #[test]
    fn normals_from_coins_that_are_all_in_doubt_are_normal() {
        const DRAWS: u32 = 20_000;
        let mut quotients = RationalCache::new();
        let mut generator = Generator::frozen([5; 32]);
        let in_doubt =
            |exponent: Exponent, of: u64, x: &mut BinaryFraction, generator: &mut Generator| {
                exponent.in_full(of, BinaryFraction::uniform(generator), x, generator)
            };
        let mut normal = || loop {
            let whole = quotients.next_quotient(&mut generator);
            let mut x = BinaryFraction::uniform(&mut generator);
            if Exponent::half_normal(whole).accepts_by(in_doubt, &mut x, &mut generator) {
                assert!(x.words() > 1);
                return (f64::from(whole) + x.first as f64 / 2.0_f64.powi(64)) / 16.0;
            }
        };
        let square = (0..DRAWS).map(|_| normal().powi(2)).sum::<f64>() / f64::from(DRAWS);
        // The variance of a square is 2: 6.11 standard deviations.
        let range = 1.0 - 6.11 * (2.0 / f64::from(DRAWS)).sqrt()
            ..1.0 + 6.11 * (2.0 / f64::from(DRAWS)).sqrt();
        assert!(range.contains(&square), "{square}");
        assert!(!range.contains(&(square * 1.69)) && !range.contains(&(square / 1.69)));
    }

    #[test]
    fn an_exponent_of_several_coins_has_its_probability() {
        let mut generator = Generator::frozen([6; 32]);
        // exp(-2.5) in three coins.
        let exponent = Exponent {
            constant: 1280,
            linear: 0,
            square: 0,
        };
        assert_eq!(coins(exponent), 3);
        let hits = (0..200_000)
            .filter(|_| {
                exponent
                    .accepts_fraction(&mut BinaryFraction::uniform(&mut generator), &mut generator)
            })
            .count();
        let expected = 200_000.0 * (-2.5_f64).exp();
        assert!(
            (hits as f64 - expected).abs() < 6.11 * expected.sqrt(),
            "{hits} {expected}"
        );
    }

    #[test]
    fn the_largest_deviates_do_not_wrap() {
        let mut generator = Generator::frozen([7; 32]);
        for whole in [1 << 20, u32::MAX] {
            let exponent = Exponent::half_normal(whole);
            for first in [0, u64::MAX] {
                let mut x = BinaryFraction {
                    first,
                    further: Vec::new(),
                    rest: DigitSource::Uniform,
                };
                assert!(!exponent.accepts_fraction(&mut x, &mut generator));
            }
        }
    }
}
