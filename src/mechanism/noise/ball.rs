//! The ball: noise of one length in every direction.

use num_bigint::BigUint;

use super::Generator;
use super::real::{Quotients, Sixteenths};
use crate::mechanism::calibrate::Scale;

/// `X` rounded to whole numbers, `X` of density proportional to `exp(-||x|| / s)` on the real vectors of `d` coordinates,
/// `s` the [`Scale`] and the norm Euclidean: the K-norm mechanism of that norm (Hardt and Talwar 2010).
///
/// # Guarantee
///
/// Added to integer vectors that differ by at most `D2` in the 2-norm, such a vector gives `(D2/s + (d + 1) 2^-96)`-
/// differential privacy with delta 0: `f + round(X) = round(f + X)` is made from `f + X` alone, whose density changes by
/// at most `exp(D2/s)` by the triangle inequality. The rounding is certain and no digit is cut off, so nothing departs
/// from the law but the constants of the digits: each of the `d + 1 + (d + 1)/2` deviates is within `exp(2^-97.6)` of its
/// density (`Geometric`). Coordinates are not independent.
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
        RoundedBall { scale: u128::from(scale.units()) }
    }

    /// Replaces `values` by one variate.
    pub fn fill(&self, generator: &mut Generator, values: &mut [i128]) {
        let mut quotients = Quotients::new();
        let mut length = Length::draw(self.scale, values.len(), &mut quotients, generator);
        values.fill_with(|| {
            let is_negative = generator.word() & 1 == 1;
            let size = length.times(Sixteenths::half_normal(&mut quotients, generator), generator);
            if is_negative { -size } else { size }
        });
    }
}

/// `s ||h||`, as closely as is known.
struct Length {
    scale: u128,
    /// Half the sum of two squares each.
    pairs: Vec<Sixteenths>,
    /// The last of an odd number.
    last: Option<Sixteenths>,
    words: usize,
    /// In units of `2^-64` sixteenths a word.
    lowest: BigUint,
    highest: BigUint,
}

impl Length {
    /// Of `dimensions + 1` normal variates.
    fn draw(scale: u128, dimensions: usize, quotients: &mut Quotients, generator: &mut Generator) -> Self {
        let pairs = (0..dimensions.div_ceil(2)).map(|_| Sixteenths::exponential(quotients, generator)).collect();
        let last = dimensions.is_multiple_of(2).then(|| Sixteenths::half_normal(quotients, generator));
        let mut length = Length { scale, pairs, last, words: 0, lowest: BigUint::ZERO, highest: BigUint::ZERO };
        length.refine(generator);
        length
    }

    /// One word more of every deviate: `(16 ||h||)^2 = 32 sum (16 e_i) + (16 h_last)^2`.
    fn refine(&mut self, generator: &mut Generator) {
        self.words += 1;
        for deviate in self.pairs.iter_mut().chain(&mut self.last) {
            while deviate.words() < self.words {
                deviate.extend(generator);
            }
        }
        // A coin may have asked for more digits of a deviate than these.
        let known = |deviate: &Sixteenths| deviate.digits() >> (64 * (deviate.words() - self.words));
        let pairs: BigUint = self.pairs.iter().map(known).sum();
        let last = self.last.as_ref().map(known);
        let root = |pairs: BigUint, last: BigUint| ((pairs << (5 + 64 * self.words)) + &last * &last).sqrt();
        self.lowest = self.scale * root(pairs.clone(), last.clone().unwrap_or_default());
        let (pairs, last) = (pairs + self.pairs.len(), last.map(|last| last + 1_u32).unwrap_or_default());
        self.highest = self.scale * (root(pairs, last) + 1_u32);
    }

    /// The product with `normal`, rounded to a whole number; the largest there is where it is larger.
    fn times(&mut self, mut normal: Sixteenths, generator: &mut Generator) -> i128 {
        loop {
            let digits = normal.digits();
            // 256ths of a unit, and the words of both.
            let places = 8 + 64 * (self.words + normal.words());
            let nearest = |product: BigUint| (product + (BigUint::from(1_u32) << (places - 1))) >> places;
            let size = nearest(&self.lowest * &digits);
            if size == nearest(&self.highest * (digits + 1_u32)) {
                return i128::try_from(&size).unwrap_or(i128::MAX);
            }
            normal.extend(generator);
            while self.words < normal.words() {
                self.refine(generator);
            }
        }
    }
}
