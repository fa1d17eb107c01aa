//! Books of Gaussian noise alone: the exact curve of the Gaussian, a few percent below what `rho` says of any noise.
//!
//! Gaussian releases compose into one: `mu^2 = 2 rho` adds up (`[DRS22]`), also under a filter whose prices
//! are chosen adaptively, never exceeding the total (`[ST22]`; `[KTH22]`). As with
//! [`concentrated`](super::concentrated), the total is what holds.

use super::concentrated::largest_rho;
use crate::mechanism::calibrate::{Delta, Epsilon, Rho, Scale};
use crate::mechanism::gaussian::curve;

/// How much discrete noise was, or will at most be, drawn: so many values, no noise finer than `sigma` grid units.
///
/// The curve is that of the continuous law. One discrete value is within `1 / 40 sigma^2` of the continuous one, rounded,
/// in total variation (`mechanism/gaussian.rs`), which costs
/// `(1 + exp(epsilon)) / 40 sigma^2` of delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub values: u64,
    pub sigma: Scale,
}

impl Drawn {
    /// The total variation between all that was drawn and its continuous counterpart, rounded up.
    #[expect(clippy::cast_precision_loss, reason = "within the margin")]
    pub(super) fn apart(self) -> f64 {
        let sigma = self.sigma.units() as f64;
        self.values as f64 / (40.0 * sigma * sigma) * (1.0 + 1e-12)
    }
}

/// The largest epsilon whose curve is read: a promise for it holds for every larger one, and there is none worth more.
const LARGEST: f64 = 2000.0;

/// At least the delta of all Gaussian releases together at `epsilon`: `rho` is their total.
///
/// `Q(epsilon/mu - mu/2) - exp(epsilon) Q(epsilon/mu + mu/2)` with `mu = sqrt(2 rho)` (`[BW18]`, theorem 8), with a
/// margin for every rounding, and the part of [`Drawn`]; then rounded up by up to two units. `10^-12` of the epsilon pays for
/// the constants of the sampler. Where whole numbers would cost more than they gain, the delta of a smaller epsilon.
pub fn delta_of(rho: Rho, drawn: Drawn, epsilon: Epsilon) -> Delta {
    if rho == Rho::ZERO {
        return Delta::ZERO;
    }
    // Rounded up by more than the error of the root.
    let mu = libm::sqrt(2.0 * rho.to_f64()) * (1.0 + 1e-15);
    let epsilon = (epsilon.to_f64().min(LARGEST) * (1.0 - 1e-15) - 1e-12).max(0.0);
    // Beyond the point where both parts are alike in size, a smaller epsilon promises more.
    let apart = drawn.apart();
    let at = |epsilon: f64| curve(mu, epsilon) + (1.0 + libm::exp(epsilon)) * apart;
    round_up_delta((0..=4).map(|part| at(epsilon * 0.5_f64.powi(part))).fold(1.0, f64::min))
}

/// The largest rho that Gaussian releases may spend together within (`epsilon`, `delta`), as [`delta_of`] says.
pub fn rho_for(drawn: Drawn, epsilon: Epsilon, delta: Delta) -> Rho {
    largest_rho(|rho| delta_of(rho, drawn, epsilon) <= delta)
}

/// No less than this probability.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1, and rounded up before")]
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

    fn fine() -> Drawn {
        Drawn { values: 1_000_000, sigma: Scale::new(Scale::LARGEST).unwrap() }
    }

    #[test]
    fn what_is_paid_for_keeps_the_promise_and_one_unit_more_would_not() {
        for epsilon in ["0.01", "1", "7", "96"] {
            for delta in ["0.01", "0.000001", "0.000000000001"] {
                let (epsilon, delta): (Epsilon, Delta) = (epsilon.parse().unwrap(), delta.parse().unwrap());
                let rho = rho_for(fine(), epsilon, delta);
                assert!(delta_of(rho, fine(), epsilon) <= delta, "{epsilon} {delta} {rho}");
                let more = Rho::from_trillionths(rho.trillionths() + rho.trillionths() / 1_000_000 + 1);
                assert!(delta_of(more, fine(), epsilon) > delta, "{epsilon} {delta} {rho}");
            }
        }
    }

    #[test]
    fn coarse_noise_and_many_values_cost_more() {
        let coarse = Drawn { values: 1, sigma: Scale::new(1 << 10).unwrap() };
        let (rho, epsilon) = (Rho::from_trillionths(500_000_000_000), Epsilon::from_trillionths(1_000_000_000_000));
        let costs = |drawn: Drawn| delta_of(rho, drawn, epsilon).to_f64();
        let more = costs(coarse) - costs(fine());
        let expected = (1.0 + 1_f64.exp()) / 40.0 / f64::from(1 << 20);
        assert!((more / expected - 1.0).abs() < 1e-6, "{more} {expected}");
        assert_eq!(costs(Drawn { values: u64::MAX, sigma: Scale::new(16).unwrap() }), 1.0);
        assert_eq!(delta_of(Rho::ZERO, coarse, Epsilon::ZERO), Delta::ZERO);
    }
}
