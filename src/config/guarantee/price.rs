//! What windows cost, and what their noise takes of it.

use crate::accountant::policy::Policy;
use crate::config::settings::{Calibration, Payment, Release};
use crate::mechanism::NoiseDistribution;
use crate::mechanism::calibrate::Delta;
use crate::mechanism::price::Price;

/// What the windows of a block cost, in words.
pub fn price_policy(policy: Policy) -> String {
    match policy {
        Policy::Fixed(price) => format!("{price} for every window"),
        Policy::Horizon { share, windows } => {
            let price = policy.price(0).unwrap_or(share.zero());
            format!("{price} for each of the first {windows} windows of its block, together {share}")
        }
        Policy::Decaying { share, half_after } => {
            let price = policy.price(0).unwrap_or(share.zero());
            format!(
                "{price} for the first window of its block, and always less: the first N windows together have N / (N + \
                 {half_after}) of {share}, half of it after {half_after}"
            )
        }
    }
}

/// What noise of pure differential privacy takes of a price of another kind.
pub fn pure_noise(release: &Release) -> Option<String> {
    let epsilon = release.payment.epsilon();
    match (release.noise.law(), release.payment.price()) {
        (NoiseDistribution::DiscreteLaplace, Price::Concentrated(_)) if matches!(release.payment, Payment::Own(_)) => Some(
            "Its noise is Laplace noise, whose own constant is smaller than that of other pure mechanisms: a rho of t + exp(-t) - 1, \
             t being the largest change over the scale."
                .to_owned(),
        ),
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Concentrated(_))
            if matches!(release.policy, Policy::Decaying { .. }) =>
        {
            Some(
                "Its noise is of pure differential privacy, which costs a rho of epsilon tanh(epsilon / 2).".to_owned(),
            )
        }
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Concentrated(_)) => Some(format!(
            "Its noise is of pure differential privacy with epsilon = {epsilon}, which costs a rho of epsilon tanh(epsilon / 2)."
        )),
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Approximate { delta, .. })
            if !matches!(release.policy, Policy::Decaying { .. })
                && delta > Delta::ZERO
                && release.calibration == Calibration::Tight =>
        {
            Some(format!(
                "Its noise is of pure differential privacy with epsilon = {epsilon} and makes no use of the delta."
            ))
        }
        _ => None,
    }
}
