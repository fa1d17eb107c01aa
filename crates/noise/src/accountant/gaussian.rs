//! Books of Gaussian noise alone: the exact curve of the Gaussian, a few percent below what `rho` says of any noise.
//!
//! Gaussian releases compose into one: `mu^2 = 2 rho` adds up (`[DRS22]`), also under a filter whose prices
//! are chosen adaptively, never exceeding the total (`[ST22]`; `[KTH22]`). As with
//! [`concentrated`](super::concentrated), the total is what holds.

use super::concentrated::{self, largest_rho};
use crate::calibrate::Scale;
use crate::gaussian::delta_curve;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};

/// Amount of discrete noise that was, or will at most be, drawn: so many values, no noise finer than `sigma` grid units.
///
/// The curve is that of the continuous law. One discrete value is within `1 / 40 sigma^2` of the continuous one, rounded,
/// in total variation (`gaussian.rs`), which costs
/// `(1 + exp(epsilon)) / 40 sigma^2` of delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnNoise {
    pub values: u64,
    pub sigma: Scale,
}

impl DrawnNoise {
    /// The total variation between all that was drawn and its continuous counterpart, rounded up.
    #[expect(clippy::cast_precision_loss, reason = "within the margin")]
    pub(super) fn total_variation(self) -> f64 {
        let sigma = self.sigma.units() as f64;
        self.values as f64 / (40.0 * sigma * sigma) * (1.0 + 1e-12)
    }
}

/// The largest epsilon whose curve is read: a promise for it holds for every larger one, and there is none worth more.
const LARGEST: f64 = 2000.0;

/// At least the delta of all Gaussian releases together at `epsilon`: `rho` is their total.
///
/// `Q(epsilon/mu - mu/2) - exp(epsilon) Q(epsilon/mu + mu/2)` with `mu = sqrt(2 rho)` (`[BW18]`, theorem 8), with a
/// margin for every rounding, and the part of [`DrawnNoise`]; then rounded up by up to two units. `10^-12` of the epsilon pays for
/// the constants of the sampler. Where whole numbers would cost more than they gain, the delta of the best smaller epsilon: a
/// promise for it is one for every larger.
pub fn delta_of(rho: Rho, drawn: DrawnNoise, epsilon: Epsilon) -> Delta {
    if rho == Rho::ZERO {
        return Delta::ZERO;
    }
    // Rounded up by more than the error of the root.
    let mu = libm::sqrt(2.0 * rho.to_f64()) * (1.0 + 1e-15);
    let epsilon = (epsilon.to_f64().min(LARGEST) * (1.0 - 1e-15) - 1e-12).max(0.0);
    let apart = drawn.total_variation();
    let best = cheapest_epsilon(mu, apart, epsilon);
    round_up_delta((delta_curve(mu, best) + (1.0 + libm::exp(best)) * apart).min(1.0))
}

/// The epsilon up to `most` whose delta is the least. The curve's slope is `-exp(epsilon) Q(epsilon/mu + mu/2)`, that of the other
/// part `exp(epsilon) apart`: together they fall until that tail is `apart`, and rise from there.
fn cheapest_epsilon(mu: f64, apart: f64, most: f64) -> f64 {
    if is_falling(mu, apart, most) {
        return most;
    }
    let mut low = 0.0;
    let mut high = most;
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if is_falling(mu, apart, middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns true if the delta of [`cheapest_epsilon`] still falls at `epsilon`.
fn is_falling(mu: f64, apart: f64, epsilon: f64) -> bool {
    libm::erfc((epsilon / mu + mu / 2.0) * std::f64::consts::FRAC_1_SQRT_2) / 2.0 > apart
}

/// The largest rho that Gaussian releases may spend together within (`epsilon`, `delta`): by their curve ([`delta_of`]), or as any
/// noise of that rho ([`concentrated::rho_for`]), whichever is more.
///
/// Both hold for the same releases: each is a discrete Gaussian whose price is its `rho`, so their Renyi divergences add up to
/// those of the total, whole numbers and sampler included; the conversion of that total needs no curve and no allowance for
/// whole numbers. Where that allowance, `(1 + exp(epsilon))` times a constant, takes up all of the delta, it is the larger one.
/// The total rises with `epsilon` and with `delta`: what keeps a promise keeps every weaker one, and both parts say so.
pub fn rho_for(drawn: DrawnNoise, epsilon: Epsilon, delta: Delta) -> Rho {
    let by_curve = largest_rho(|rho| delta_of(rho, drawn, epsilon) <= delta);
    by_curve.max(concentrated::rho_for(epsilon, delta))
}

/// No less than this probability.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 1, and rounded up before"
)]
pub(super) fn round_up_delta(delta: f64) -> Delta {
    const ONE: u64 = 1_000_000_000_000_000_000;
    if delta < 1.0 {
        let units = libm::ceil(delta.max(0.0) * (1.0 + 1e-15) * 1e18) as u64;
        Delta::from_quintillionths((units + 1).min(ONE))
    } else {
        Delta::from_quintillionths(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine() -> DrawnNoise {
        DrawnNoise {
            values: 1_000_000,
            sigma: Scale::new(Scale::LARGEST).unwrap(),
        }
    }

    #[test]
    fn what_is_paid_for_keeps_the_promise_and_one_unit_more_would_not() {
        // At 96 whole numbers would cost more than any delta: the total is that of any noise.
        for epsilon in ["0.01", "1", "7"] {
            for delta in ["0.01", "0.000001", "0.000000000001"] {
                let epsilon: Epsilon = epsilon.parse().unwrap();
                let delta: Delta = delta.parse().unwrap();
                let rho = rho_for(fine(), epsilon, delta);
                assert!(rho > concentrated::rho_for(epsilon, delta));
                assert!(
                    delta_of(rho, fine(), epsilon) <= delta,
                    "{epsilon} {delta} {rho}"
                );
                let more =
                    Rho::from_trillionths(rho.trillionths() + rho.trillionths() / 1_000_000 + 1);
                assert!(
                    delta_of(more, fine(), epsilon) > delta,
                    "{epsilon} {delta} {rho}"
                );
            }
        }
    }

    /// As much noise as a book may have: whole numbers cost more than the whole delta from an epsilon of 5.8 on.
    fn most() -> DrawnNoise {
        DrawnNoise {
            values: 1 << 33,
            sigma: Scale::new(1 << 33).unwrap(),
        }
    }

    #[test]
    fn a_weaker_promise_never_leaves_less_and_never_less_than_of_any_noise() {
        let deltas: Vec<Delta> = ["0.000000000001", "0.000000001", "0.000001", "0.01"]
            .map(|delta| delta.parse().unwrap())
            .to_vec();
        for drawn in [fine(), most()] {
            let mut below = vec![Rho::ZERO; deltas.len()];
            for i in 1..=240 {
                let epsilon = Epsilon::from_trillionths(i * 83_333_333_333);
                let totals: Vec<Rho> = deltas
                    .iter()
                    .map(|delta| rho_for(drawn, epsilon, *delta))
                    .collect();
                for (total, delta) in totals.iter().zip(&deltas) {
                    assert!(
                        *total >= concentrated::rho_for(epsilon, *delta),
                        "{epsilon} {delta} {total}"
                    );
                }
                assert!(totals.is_sorted(), "{epsilon}: {totals:?}");
                assert!(
                    totals.iter().zip(&below).all(|(now, before)| now >= before),
                    "{epsilon}: {totals:?} {below:?}"
                );
                below = totals;
            }
        }
    }

    /// What it was before: at an epsilon of 6 less than at 5, and less than of any noise.
    #[test]
    fn where_whole_numbers_cost_more_than_the_delta_a_smaller_epsilon_is_promised() {
        let of = |epsilon: &str| {
            rho_for(
                most(),
                epsilon.parse().unwrap(),
                "0.000000001".parse().unwrap(),
            )
            .to_f64()
        };
        for (epsilon, expected) in [("4", 0.2238), ("5", 0.3309), ("6", 0.4353), ("7", 0.5761)] {
            assert!(
                (of(epsilon) - expected).abs() < 1e-4,
                "{epsilon}: {}",
                of(epsilon)
            );
        }
        // The least delta by the curve alone is that of any epsilon up to the one asked for: no coarser grid does better.
        let rho = Rho::from_trillionths(300_000_000_000);
        let drawn = most();
        let mu = libm::sqrt(2.0 * rho.to_f64());
        let at = |epsilon: f64| {
            delta_curve(mu, epsilon) + (1.0 + libm::exp(epsilon)) * drawn.total_variation()
        };
        let grid = (0..=7000)
            .map(|i| at(f64::from(i) / 1000.0))
            .fold(1.0, f64::min);
        let best = delta_of(rho, drawn, "7".parse().unwrap()).to_f64();
        assert!((best / grid - 1.0).abs() < 1e-6, "{best} {grid}");
        assert!(best < at(7.0) / 2.0 && best < at(3.5) / 2.0, "{best}");
    }

    #[test]
    fn coarse_noise_and_many_values_cost_more() {
        let coarse = DrawnNoise {
            values: 1,
            sigma: Scale::new(1 << 10).unwrap(),
        };
        let rho = Rho::from_trillionths(500_000_000_000);
        let epsilon = Epsilon::from_trillionths(1_000_000_000_000);
        let costs = |drawn: DrawnNoise| delta_of(rho, drawn, epsilon).to_f64();
        let more = costs(coarse) - costs(fine());
        let expected = (1.0 + 1_f64.exp()) / 40.0 / f64::from(1 << 20);
        assert!((more / expected - 1.0).abs() < 1e-6, "{more} {expected}");
        assert_eq!(
            costs(DrawnNoise {
                values: u64::MAX,
                sigma: Scale::new(16).unwrap()
            }),
            1.0
        );
        assert_eq!(delta_of(Rho::ZERO, coarse, Epsilon::ZERO), Delta::ZERO);
    }
}
