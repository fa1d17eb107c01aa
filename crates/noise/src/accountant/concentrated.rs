//! Zero-concentrated differential privacy in the words of (epsilon, delta).
//!
//! For a filter the `rho` to convert is the total that no path exceeds, not what was spent when somebody looked `[WRRW23]`.

use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};

/// An epsilon that `rho` implies with this delta, the smallest known: the infimum over `a > 1` of
/// `a rho + ln(1 - 1/a) + ln(1 / (a delta)) / (a - 1)` [CKS20, corollary 13], rounded up.
///
/// `None` where there is none: for a delta of 0, and where it is too large for a price.
///
/// Every `a` gives an epsilon that holds, so only the rounding of the formula matters: `2^-44` of the sum of the sizes of its
/// terms is added, some hundred times the error.
pub fn epsilon_of(rho: Rho, delta: Delta) -> Option<Epsilon> {
    if rho == Rho::ZERO || delta >= Delta::from_quintillionths(1_000_000_000_000_000_000) {
        return Some(Epsilon::ZERO);
    }
    if delta == Delta::ZERO {
        return None;
    }
    let rho = rho.to_f64();
    let surprise = -libm::log(delta.to_f64());
    // y = a - 1. The slope is rho - (ln(1/delta) - ln a) / y^2, which changes its sign once.
    let mut low = 0.0;
    let mut high = libm::sqrt(surprise / rho);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if rho * middle * middle + libm::log1p(middle) < surprise {
            low = middle;
        } else {
            high = middle;
        }
    }
    let log = libm::log1p(high);
    let [renyi, gain, rest] = [
        (1.0 + high) * rho,
        libm::log(high) - log,
        (surprise - log) / high,
    ];
    let error = renyi + libm::log(high).abs() + log + (surprise + log + 1.0) / high;
    round_up(renyi + gain + rest + error / (1_u64 << 44) as f64)
}

/// The largest rho whose [`epsilon_of`] with this delta is within `epsilon`.
pub fn rho_for(epsilon: Epsilon, delta: Delta) -> Rho {
    largest_rho(|rho| epsilon_of(rho, delta).is_some_and(|needed| needed <= epsilon))
}

/// The largest rho that `is_within` accepts, where it accepts all up to some rho; one that it accepts in any case.
pub(super) fn largest_rho(is_within: impl Fn(Rho) -> bool) -> Rho {
    let mut within = 0;
    let mut beyond = u64::MAX;
    while beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if is_within(Rho::from_trillionths(middle)) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    Rho::from_trillionths(within)
}

/// No less than this number, as a price; `None` where it is too large for one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "in range, and rounded up before"
)]
pub(super) fn round_up(epsilon: f64) -> Option<Epsilon> {
    // The product is rounded, perhaps down: one more unit at 10^3 and beyond, where a unit is below its error.
    let units = libm::ceil(epsilon.max(0.0) * 1e12 * (1.0 + f64::EPSILON));
    (units < 1e19).then(|| Epsilon::from_trillionths(units as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lost_needs_no_epsilon_and_no_delta_means_no_epsilon() {
        let rho = Rho::from_trillionths(1);
        let delta = Delta::from_quintillionths(1);
        assert_eq!(epsilon_of(Rho::ZERO, Delta::ZERO), Some(Epsilon::ZERO));
        assert_eq!(epsilon_of(rho, Delta::ZERO), None);
        assert_eq!(epsilon_of(Rho::from_trillionths(u64::MAX), delta), None);
        assert_eq!(epsilon_of(rho, "1".parse().unwrap()), Some(Epsilon::ZERO));
        assert_eq!(rho_for("1".parse().unwrap(), Delta::ZERO), Rho::ZERO);
    }

    #[test]
    fn what_is_paid_for_needs_no_more_and_one_unit_more_would() {
        for epsilon in ["0.001", "0.3", "1", "12", "3000"] {
            for delta in ["0.01", "0.000001", "0.000000000000000001"] {
                let epsilon: Epsilon = epsilon.parse().unwrap();
                let delta: Delta = delta.parse().unwrap();
                let rho = rho_for(epsilon, delta);
                assert!(
                    epsilon_of(rho, delta).unwrap() <= epsilon,
                    "{epsilon} {delta} {rho}"
                );
                let more = Rho::from_trillionths(rho.trillionths() + 1);
                assert!(
                    epsilon_of(more, delta).unwrap() > epsilon,
                    "{epsilon} {delta} {rho}"
                );
            }
        }
    }
}
