//! What an attacker knows of keys that nobody listed: how likely each row of a table is in either of two streams. In floats, and with
//! none of the code that draws.

use rand::RngExt;
use rand::rngs::ChaCha12Rng;

use bernstream_synopsis::key_threshold::UNIT_GRAINS;

/// A logarithm that stands for infinity: whatever is finite is far below.
pub(super) const CERTAIN: f64 = 1e6;

/// Law of the numbers of keys: discrete Laplace noise of a scale, of keys that are not announced truncated to the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SearchLaw {
    pub scale: u64,
    pub threshold: u64,
}

/// A key whose number differs between two streams.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttackedKey {
    pub key: String,
    /// The number of its units with the unit, and without it.
    pub with: u64,
    pub without: u64,
    pub is_announced: bool,
}

#[expect(clippy::cast_precision_loss, reason = "compared to many fewer digits")]
impl SearchLaw {
    /// The probability that a key with so many units is found.
    pub fn chance_found(&self, count: u64) -> f64 {
        if count == 0 {
            return 0.0;
        }
        self.chance_above(i128::from(self.threshold) - grains(count))
    }

    /// The probability that truncated noise is above `x`.
    fn chance_above(&self, x: i128) -> f64 {
        let bound = i128::from(self.threshold);
        if x >= bound {
            return 0.0;
        }
        if x < -bound {
            return 1.0;
        }
        if x < 0 {
            return 1.0 - self.chance_above(-x - 1);
        }
        let r = self.power(1);
        let upper = self.power(x + 1) - self.power(bound + 1);
        upper / (1.0 + r - 2.0 * self.power(bound + 1))
    }

    /// `exp(-x / s)`.
    fn power(&self, x: i128) -> f64 {
        libm::exp(-(x as f64) / self.scale as f64)
    }

    /// The log likelihood ratio of a row, or of none: with the unit over without it; `None` if it is possible in neither stream.
    pub fn loss(&self, key: &AttackedKey, row: Option<i128>) -> Option<f64> {
        match row {
            Some(count) if key.is_announced => Some(self.loss_of_noise(key, count)),
            // An announced key is never left out.
            None if key.is_announced => None,
            Some(count) => match [key.with, key.without].map(|units| self.can_find(units, count)) {
                [false, false] => None,
                [true, false] => Some(CERTAIN),
                [false, true] => Some(-CERTAIN),
                [true, true] => Some(self.loss_of_noise(key, count)),
            },
            None => {
                let [with, without] =
                    [key.with, key.without].map(|units| 1.0 - self.chance_found(units));
                match (with > 0.0, without > 0.0) {
                    (false, false) => None,
                    (true, false) => Some(CERTAIN),
                    (false, true) => Some(-CERTAIN),
                    (true, true) => Some(libm::log(with) - libm::log(without)),
                }
            }
        }
    }

    fn loss_of_noise(&self, key: &AttackedKey, count: i128) -> f64 {
        let [with, without] =
            [key.with, key.without].map(|units| (count - grains(units)).unsigned_abs() as f64);
        (without - with) / self.scale as f64
    }

    fn can_find(&self, units: u64, count: i128) -> bool {
        let bound = i128::from(self.threshold);
        units > 0 && count > bound && (count - grains(units)).abs() <= bound
    }

    /// A row of a key with so many units, or none, where the noise has this part of its scale.
    pub fn simulate_row(
        &self,
        units: u64,
        is_announced: bool,
        factor: f64,
        rng: &mut ChaCha12Rng,
    ) -> Option<i128> {
        let scale = self.scale as f64 * factor;
        let bound = i128::from(self.threshold);
        if is_announced {
            return Some(grains(units) + simulate_laplace(scale, rng));
        }
        let noise = loop {
            let noise = simulate_laplace(scale, rng);
            if noise.abs() <= bound {
                break noise;
            }
        };
        let count = grains(units) + noise;
        (units > 0 && count > bound).then_some(count)
    }
}

/// A discrete Laplace variate: the difference of two geometric ones.
fn simulate_laplace(scale: f64, rng: &mut ChaCha12Rng) -> i128 {
    let [one, other] = [(); 2].map(|()| {
        let uniform: f64 = rng.random();
        (-scale * libm::log(1.0 - uniform)).floor() as i128
    });
    one - other
}

fn grains(units: u64) -> i128 {
    i128::from(units) * i128::from(UNIT_GRAINS)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const LAW: SearchLaw = SearchLaw {
        scale: 4112,
        threshold: 12_000,
    };

    fn key(with: u64, without: u64, is_announced: bool) -> AttackedKey {
        AttackedKey {
            key: String::new(),
            with,
            without,
            is_announced,
        }
    }

    #[test]
    fn chances_are_the_sums_of_the_law() {
        let weight = |x: i128| (-(x.abs() as f64) / LAW.scale as f64).exp();
        let bound = i128::from(LAW.threshold);
        let all: f64 = (-bound..=bound).map(weight).sum();
        for units in [1, 2, 3, 5, 6, 7] {
            let least = bound - grains(units) + 1;
            let above: f64 = (least.max(-bound)..=bound).map(weight).sum();
            let found = LAW.chance_found(units);
            assert!((found - above / all).abs() < 1e-12, "{units}: {found}");
        }
        assert_eq!(LAW.chance_found(0), 0.0);
    }

    /// The mean of `exp(-loss)` with the unit is the probability, without it, of what is possible with it.
    #[test]
    fn losses_are_ratios_of_chances() {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        for (key, possible) in [
            (key(3, 2, false), 1.0),
            // Of the fewer units, numbers are possible that the more never have.
            (key(6, 5, false), 0.951),
            (key(1, 0, false), 1.0),
            (key(1, 0, true), 1.0),
        ] {
            let mut sum = 0.0;
            let draws = 200_000;
            for _ in 0..draws {
                let row = LAW.simulate_row(key.with, key.is_announced, 1.0, &mut rng);
                sum += (-LAW.loss(&key, row).expect("it was drawn")).exp();
            }
            let mean = sum / f64::from(draws);
            assert!((mean - possible).abs() < 0.02, "{key:?}: {mean}");
        }
    }

    /// A key that one draw finds, and whose number another draw tells: the number is often one that cannot have found it.
    #[test]
    fn a_second_draw_for_the_number_gives_rows_that_no_noise_gives() {
        let mut rng = ChaCha12Rng::seed_from_u64(4);
        let near = key(3, 2, false);
        let mut found = 0;
        let mut impossible = 0;
        for _ in 0..10_000 {
            let row = LAW.simulate_row(near.with, false, 1.0, &mut rng);
            assert!(LAW.loss(&near, row).is_some());
            if row.is_some() {
                let second = LAW.simulate_row(near.with, true, 1.0, &mut rng);
                found += 1;
                impossible += usize::from(LAW.loss(&near, second).is_none());
            }
        }
        println!("{impossible} of {found} found keys");
        assert!(impossible * 3 > found, "{impossible} of {found}");
    }

    #[test]
    fn what_no_noise_gives_is_possible_in_neither_stream() {
        let bound = i128::from(LAW.threshold);
        let near = key(3, 2, false);
        assert_eq!(LAW.loss(&near, Some(bound)), None);
        assert_eq!(LAW.loss(&near, Some(grains(3) + bound + 1)), None);
        assert_eq!(LAW.loss(&near, Some(grains(3) + bound)), Some(CERTAIN));
        assert_eq!(LAW.loss(&key(1, 0, true), None), None);
        assert_eq!(LAW.loss(&key(1, 0, false), Some(bound + 1)), Some(CERTAIN));
    }
}
