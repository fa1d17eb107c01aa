//! The ball: noise of one length in every direction.

use num_bigint::BigUint;

use super::generator::Generator;
use super::real::{DyadicReal, RationalCache};
use crate::calibrate::Scale;

/// `X` rounded to whole numbers, `X` of density proportional to `exp(-||x|| / s)` on the real vectors of `d` coordinates,
/// `s` the [`Scale`] and the norm Euclidean: the K-norm mechanism of that norm (`[HT10]`).
///
/// # Guarantee
///
/// Added to integer vectors that differ by at most `D2` in the 2-norm, such a vector gives
/// `(D2/s + (d + 1) 2^-96)`-differential privacy with delta 0: `f + round(X) = round(f + X)` is made from `f + X` alone,
/// whose density changes by at most `exp(D2/s)` by the triangle inequality. The rounding is certain and no digit is cut
/// off, so nothing departs from the law but the constants of the digits: a deviate's density is within `exp(2^-97.6)` of
/// what it should be (`Geometric`), and there are fewer than `3 (d + 1) / 2` of them. Coordinates are not independent.
///
/// # How
///
/// `X = s ||h|| g` with standard normal `h` in `R^(d+1)` and `g` in `R^d`: given `h`, its characteristic function is
/// `exp(-s^2 ||h||^2 ||t||^2 / 2)`, and the mean of that over `h` is `(1 + s^2 ||t||^2)^(-(d+1)/2)`, the Fourier transform of
/// the density. Two squares of `h` are twice an exponential variate. Interval arithmetic on whole numbers bounds each
/// coordinate from both sides, from 64 digits of every deviate; where the two sides round differently, 64 more are drawn.
pub struct RoundedBall {
    scale: u128,
}

impl RoundedBall {
    pub fn new(scale: Scale) -> Self {
        RoundedBall {
            scale: u128::from(scale.units()),
        }
    }

    /// Replaces `values` by one variate.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let mut quotients = RationalCache::new();
        let mut length =
            BallLength::draw_length(self.scale, values.len(), &mut quotients, generator);
        values.fill_with(|| {
            let is_negative = generator.next_word() & 1 == 1;
            let size = length.times_rounded(
                DyadicReal::half_normal(&mut quotients, generator),
                generator,
            );
            if is_negative { -size } else { size }
        });
    }
}

/// `s ||h||`, as closely as is known.
struct BallLength {
    scale: u128,
    /// Half the sum of two squares each.
    pairs: Vec<DyadicReal>,
    /// The last of an odd number.
    last: Option<DyadicReal>,
    words: usize,
    /// Bounds in units of `2^-64` sixteenths a word.
    lowest: BigUint,
    highest: BigUint,
}

impl BallLength {
    /// Draws the length of `dimensions + 1` normal variates.
    fn draw_length(
        scale: u128,
        dimensions: usize,
        quotients: &mut RationalCache,
        generator: &mut Generator,
    ) -> Self {
        let pairs = (0..dimensions.div_ceil(2))
            .map(|_| DyadicReal::exponential(quotients, generator))
            .collect();
        let last = dimensions
            .is_multiple_of(2)
            .then(|| DyadicReal::half_normal(quotients, generator));
        let mut length = BallLength {
            scale,
            pairs,
            last,
            words: 0,
            lowest: BigUint::ZERO,
            highest: BigUint::ZERO,
        };
        length.extend_digits(generator);
        length
    }

    /// One word more of every deviate: `(16 ||h||)^2 = 32 sum (16 e_i) + (16 h_last)^2`.
    fn extend_digits(&mut self, generator: &mut Generator) {
        self.words += 1;
        for deviate in self.pairs.iter_mut().chain(&mut self.last) {
            while deviate.words() < self.words {
                deviate.extend(generator);
            }
        }
        let pairs: BigUint = self
            .pairs
            .iter()
            .map(|pair| first_digits(pair, self.words))
            .sum();
        let last = self
            .last
            .as_ref()
            .map(|last| first_digits(last, self.words));
        let lowest = root_of_squares(pairs.clone(), last.clone().unwrap_or_default(), self.words);
        self.lowest = self.scale * lowest;
        let pairs = pairs + self.pairs.len();
        let last = last.map(|last| last + 1_u32).unwrap_or_default();
        self.highest = self.scale * (root_of_squares(pairs, last, self.words) + 1_u32);
    }

    /// The product with `normal`, rounded to a whole number; the largest there is where it is larger.
    fn times_rounded(&mut self, mut normal: DyadicReal, generator: &mut Generator) -> i128 {
        loop {
            let digits = normal.digits();
            // 256ths of a unit, and the words of both.
            let places = 8 + 64 * (self.words + normal.words());
            let size = round_to_nearest(&self.lowest * &digits, places);
            if size == round_to_nearest(&self.highest * (digits + 1_u32), places) {
                return i128::try_from(&size).unwrap_or(i128::MAX);
            }
            normal.extend(generator);
            while self.words < normal.words() {
                self.extend_digits(generator);
            }
        }
    }
}

/// The first `words` words of digits of a deviate: a coin may have asked for more.
fn first_digits(deviate: &DyadicReal, words: usize) -> BigUint {
    deviate.digits() >> (64 * (deviate.words() - words))
}

/// `16 ||h||` in units of `2^-64` a word, rounded down, of the sum of half the pairs of squares and the last deviate.
fn root_of_squares(pairs: BigUint, last: BigUint, words: usize) -> BigUint {
    ((pairs << (5 + 64 * words)) + &last * &last).sqrt()
}

/// `product / 2^places`, rounded to the nearest.
fn round_to_nearest(product: BigUint, places: usize) -> BigUint {
    (product + (BigUint::from(1_u32) << (places - 1))) >> places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(scale: u128, seed: u32) -> i128 {
        let mut generator = Generator::frozen([0; 32]);
        for _ in 0..seed {
            generator.next_word();
        }
        let mut value = [0];
        RoundedBall { scale }.fill(&mut generator, &mut value);
        value[0]
    }

    /// Where a unit is finer than 64 digits of every deviate, every coordinate is in doubt. What comes out is the same number
    /// with more places.
    #[test]
    fn a_rounding_in_doubt_is_settled_by_more_digits_of_the_same_number() {
        for seed in 0..2_000 {
            let coarse = one(1 << 40, seed);
            let fine = one(1 << 100, seed);
            let cut = (fine + (1 << 59)) >> 60;
            assert!(coarse.abs_diff(cut) <= 1, "{seed}: {coarse} {cut}");
            assert!(fine % (1 << 30) != 0);
        }
    }

    #[test]
    fn in_doubt_every_deviate_is_known_more_closely() {
        let mut quotients = RationalCache::new();
        let mut generator = Generator::frozen([3; 32]);
        let mut length = BallLength::draw_length(1 << 100, 6, &mut quotients, &mut generator);
        assert_eq!(
            (length.words, length.pairs.len(), length.last.is_some()),
            (1, 3, true)
        );
        let lowest = length.lowest.clone() << 64;
        let highest = length.highest.clone() << 64;
        assert!(
            length.times_rounded(
                DyadicReal::half_normal(&mut quotients, &mut generator),
                &mut generator
            ) > 0
        );
        assert_eq!(length.words, 2);
        // The new bounds lie within the old, much closer together.
        assert!(lowest <= length.lowest && length.highest <= highest);
        assert!((&length.highest - &length.lowest) << 60 < highest - lowest);
    }

    /// In one dimension the size has the exponential law.
    #[test]
    fn coordinates_in_doubt_have_the_law() {
        const DRAWS: u32 = 20_000;
        let mut generator = Generator::frozen([9; 32]);
        let mut mean = 0.0;
        for _ in 0..DRAWS {
            let mut value = [0];
            RoundedBall { scale: 1 << 100 }.fill(&mut generator, &mut value);
            mean += value[0].unsigned_abs() as f64 / 2.0_f64.powi(100) / f64::from(DRAWS);
        }
        let reach = 6.11 / f64::from(DRAWS).sqrt();
        assert!(
            (mean - 1.0).abs() < reach
                && (mean * 1.3 - 1.0).abs() > reach
                && (mean / 1.3 - 1.0).abs() > reach,
            "{mean}"
        );
    }

    #[test]
    fn a_draw_takes_few_words() {
        for (dimensions, most) in [(1, 500.0), (32, 14.0), (141, 9.0)] {
            let mut generator = Generator::frozen([8; 32]);
            let mut values = vec![0; dimensions];
            for _ in 0..100 {
                RoundedBall { scale: 1 << 40 }.fill(&mut generator, &mut values);
            }
            let words = generator.0.get_word_pos() as f64 / 200.0 / dimensions as f64;
            println!("{dimensions} coordinates: {words:.1} words each");
            assert!(words < most, "{dimensions}: {words}");
        }
    }
}
