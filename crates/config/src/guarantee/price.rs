//! Prices in words.

use crate::settings::{Calibration, Payment, ReleaseSettings};
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::calibrate::Delta;
use bernstream_synopsis::price::Price;

/// The prices of the windows of a block.
pub fn policy_sentence(policy: PricePolicy) -> String {
    match policy {
        PricePolicy::Fixed(price) => format!("{price} for every window"),
        PricePolicy::Horizon { share, windows } => {
            let price = policy.window_price(0).unwrap_or(share.zero_of_kind());
            format!(
                "{price} for each of the first {windows} windows of its block, together {share}"
            )
        }
        PricePolicy::Decaying { share, half_after } => {
            let price = policy.window_price(0).unwrap_or(share.zero_of_kind());
            format!(
                "{price} for the first window of its block, and always less: the first N windows together have N / (N + \
                 {half_after}) of {share}, half of it after {half_after}"
            )
        }
    }
}

/// A sentence about the price of pure noise in a budget of another kind.
pub fn pure_noise_sentence(release: &ReleaseSettings) -> Option<String> {
    let accumulator = release.function.target.accumulator();
    if !release.noise.is_pure() || matches!(accumulator, AccumulatorSpec::FoundKeys(_)) {
        return None;
    }
    let epsilon = release.payment.epsilon();
    let is_own = matches!(release.payment, Payment::Own(_));
    // A constant of the noise's own can also be the larger one, as that of a ball of one value is.
    let is_less = release.payment.charged_price()
        != Payment::converted_from(epsilon).charged_price()
        && release
            .payment
            .charged_price()
            .is_within(Payment::converted_from(epsilon).charged_price());
    let law = release.noise.noise_distribution();
    let is_decaying = matches!(release.policy, PricePolicy::Decaying { .. });
    match release.payment.charged_price() {
        Price::Concentrated(_) if law == NoiseDistribution::DiscreteLaplace && is_own => Some(
            "Its noise is Laplace noise, whose own constant is smaller than that of other pure mechanisms: a rho of t + exp(-t) - 1, \
             t being the largest change over the scale."
                .to_owned(),
        ),
        Price::Concentrated(_) if law == NoiseDistribution::DiscreteLaplace => Some(format!(
            "Its noise is Laplace noise of pure differential privacy with epsilon = {epsilon}, which costs a rho of epsilon + \
             exp(-epsilon) - 1, its own constant: smaller than that of other pure mechanisms."
        )),
        Price::Concentrated(_) if law == NoiseDistribution::Ball && !is_own && is_less => Some(format!(
            "Its noise is a ball of pure differential privacy with epsilon = {epsilon}, which costs a rho of at most epsilon^2 / {}, \
             its own constant for so many values: less than that of other pure mechanisms.",
            2 * release.shape().value_count()
        )),
        Price::Concentrated(_) if is_decaying => {
            Some("Its noise is of pure differential privacy, which costs a rho of epsilon tanh(epsilon / 2).".to_owned())
        }
        Price::Concentrated(_) => Some(format!(
            "Its noise is of pure differential privacy with epsilon = {epsilon}, which costs a rho of epsilon tanh(epsilon / 2)."
        )),
        Price::Approximate { delta, .. }
            if !is_decaying && delta > Delta::ZERO && release.calibration == Calibration::Tight =>
        {
            Some(format!(
                "Its noise is of pure differential privacy with epsilon = {epsilon} and makes no use of the delta."
            ))
        }
        Price::Approximate { .. } | Price::Pure(_) | Price::Slots(_) => None,
    }
}
