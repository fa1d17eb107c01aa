//! Scales of Laplace noise: for a price in rho, and the papers' for a guarantee with a delta.

use super::calibrate::Scale;
use super::error::NoiseError;
use crate::concentrated;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;

/// The least scale that `price` pays for: under rho by Laplace noise's own constant, otherwise by its epsilon.
pub(super) fn scale(change: Sensitivity, _: usize, price: Price) -> Result<Scale, NoiseError> {
    match price {
        Price::Concentrated(rho) => scale_for_rho(change, rho),
        Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => {
            Scale::for_price(change, price.largest_pure_epsilon())
        }
    }
}

/// The smallest scale whose noise costs at most `rho`, by Laplace noise's own constant
/// ([`rho_of_laplace`](concentrated::rho_of_laplace)): less noise than any mechanism of which only the epsilon is known.
pub(super) fn scale_for_rho(change: Sensitivity, rho: Rho) -> Result<Scale, NoiseError> {
    if change.0 == 0 {
        return Err(NoiseError::NoSensitivity);
    }
    let mut too_few = 0;
    let mut enough = Scale::LARGEST / 16;
    if !is_paid(change, enough, rho) {
        return Err(NoiseError::TooMuchNoiseForRho { rho });
    }
    while enough - too_few > 1 {
        let between = too_few.midpoint(enough);
        if is_paid(change, between, rho) {
            enough = between;
        } else {
            too_few = between;
        }
    }
    Scale::new(16 * enough).ok_or(NoiseError::TooMuchNoiseForRho { rho })
}

/// Returns true if `rho` pays for noise of so many sixteenths.
fn is_paid(change: Sensitivity, sixteenths: u64, rho: Rho) -> bool {
    Scale::new(16 * sixteenths)
        .is_some_and(|scale| concentrated::rho_of_laplace(change, scale) <= rho)
}

/// The scale `lambda_delta = 2 S sqrt(2 N ln(1/delta)) / price` (`[AR17]` theorem 7) or the pure `N S / price`, whichever
/// is smaller: (`price`, `delta`)-differentially private for neighbours of whose `values` values none differs by more
/// than `sup`.
///
/// The theorem is advanced composition (`[DRV10]` theorem III.3) of `N` values that cost
/// `e0 = price / (2 sqrt(2 N ln(1/delta)))` each. Departure from the paper, which leaves it out: that holds while
/// `N e0 (exp(e0) - 1) <= price / 2`, and elsewhere the pure scale is taken. It is the smaller one up to
/// `N = 8 ln(1/delta)` too. Gaussian noise is three to four times smaller at the same guarantee.
pub(super) fn advanced_scale(
    sup: u64,
    values: usize,
    price: Epsilon,
    delta: Delta,
) -> Result<Scale, NoiseError> {
    let all = sup
        .checked_mul(values as u64)
        .ok_or(NoiseError::TooMuchNoise { price });
    let pure = all.and_then(|all| Scale::for_price(Sensitivity(all), price));
    match price_of_a_value(values, price, delta)
        .map(|part| Scale::for_price(Sensitivity(sup), part))
    {
        Some(Ok(advanced)) if pure.as_ref().map_or(true, |pure| advanced < *pure) => Ok(advanced),
        _ => pure,
    }
}

/// Price that one of the values may have, rounded down; `None` where the theorem promises nothing.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded to the safe side"
)]
fn price_of_a_value(values: usize, price: Epsilon, delta: Delta) -> Option<Epsilon> {
    // Far above all errors of the few operations here.
    const MARGIN: f64 = 1e-12;
    let count = values as f64;
    let trillionths = price.trillionths() as f64;
    let delta = delta.to_f64();
    if delta <= 0.0 || delta >= 1.0 {
        return None;
    }
    let part = trillionths / (2.0 * (2.0 * count * -libm::log(delta)).sqrt()) * (1.0 - MARGIN);
    let second = count * part * libm::expm1(part / 1e12);
    (second * (1.0 + MARGIN) <= trillionths / 2.0).then(|| Epsilon::from_trillionths(part as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUP: u64 = 1 << 32;

    fn scale(values: usize, price: &str, delta: &str) -> f64 {
        let scale =
            advanced_scale(SUP, values, price.parse().unwrap(), delta.parse().unwrap()).unwrap();
        scale.units() as f64 / SUP as f64
    }

    #[test]
    fn many_values_get_the_scale_of_the_theorem() {
        for (values, price, delta, per_point) in [
            (121, "1", "0.000001", 163.5),
            (121, "4", "0.000001", 40.9),
            (1024, "1", "0.000000001", 582.7),
        ] {
            // Published as standard deviations.
            let found = scale(values, price, delta) * 2.0_f64.sqrt();
            assert!(
                (found / per_point - 1.0).abs() < 1e-3,
                "{values} {price} {delta}: {found}"
            );
        }
    }

    /// `8 ln(1/delta)` is 110.5.
    #[test]
    fn few_values_get_the_pure_scale() {
        assert!((scale(110, "0.5", "0.000001") / 220.0 - 1.0).abs() < 1e-9);
        assert!(scale(112, "0.5", "0.000001") < 0.999 * 224.0);
        for delta in ["0", "1"] {
            assert!(
                (scale(500, "0.5", delta) / 1000.0 - 1.0).abs() < 1e-9,
                "delta {delta}"
            );
        }
    }

    /// A sum that does not fit must not become the largest that does: an epsilon of 500 would buy far too little noise for it.
    #[test]
    fn a_sum_of_changes_that_does_not_fit_is_refused() {
        let found = advanced_scale(1 << 50, 1 << 20, "500".parse().unwrap(), Delta::ZERO);
        assert!(
            matches!(found, Err(NoiseError::TooMuchNoise { .. })),
            "{found:?}"
        );
    }

    /// At 121 values and 10^-6 the condition ends at `2 c ln(1 + c/N) = 45.2`, `c = sqrt(2 N ln(1/delta))`.
    #[test]
    fn beyond_its_condition_the_theorem_is_not_used() {
        let c = (2.0 * 121.0 * 1e6_f64.ln()).sqrt();
        let end = 2.0 * c * (c / 121.0).ln_1p();
        assert!((end - 45.2).abs() < 0.1, "{end}");
        let before = end - 0.01;
        assert!(scale(121, &format!("{before:.6}"), "0.000001") < 0.99 * 121.0 / before);
        let after = end + 0.01;
        assert!(
            (scale(121, &format!("{after:.6}"), "0.000001") / (121.0 / after) - 1.0).abs() < 1e-6
        );
    }
}
