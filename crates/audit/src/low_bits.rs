//! The low bits of a draw. Where the scale is large they are even under every law; noise that is rounded more coarsely than its
//! grid shows the exact values between its steps, and moves no curve by more than a part of a step.

use super::tally::ThresholdCounts;

/// The scale, in grid units, from which on the lowest eight bits are even but for a part of 10^-6.
const LARGE: f64 = 262_144.0;

/// Counts what [`low_bits_of`] gives.
pub(super) fn low_bits_tally() -> ThresholdCounts {
    ThresholdCounts::new((0..u8::MAX).map(|below| f64::from(below) + 0.5).collect())
}

/// The lowest eight bits of a value in the other order: the lowest counts most, so that a step of two is seen best.
pub(super) fn low_bits_of(value: i128) -> f64 {
    let [low, ..] = value.to_le_bytes();
    f64::from(low.reverse_bits())
}

/// The distribution function of even bits.
pub(super) fn even_distribution() -> Vec<f64> {
    (1..=u8::MAX)
        .map(|count| f64::from(count) / 256.0)
        .collect()
}

/// Returns whether noise of this scale has even bits.
pub(super) fn are_even(scale: f64) -> bool {
    scale >= LARGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_noise::Exact;
    use bernstream_noise::Mechanism;
    use bernstream_noise::noise::Generator;
    use bernstream_synopsis::NoiseDistribution;
    use bernstream_synopsis::Sensitivity;
    use bernstream_synopsis::calibrate::{Epsilon, Rho};
    use bernstream_synopsis::price::Price;

    #[test]
    fn noise_that_is_rounded_to_steps_is_found_and_other_noise_is_even() {
        const DRAWS: usize = 40_000;
        let one = Price::Pure(Epsilon::from_trillionths(1_000_000_000_000));
        let rho = Price::Concentrated(Rho::from_trillionths(500_000_000_000));
        for (law, price) in [
            (NoiseDistribution::DiscreteLaplace, one),
            (NoiseDistribution::DiscreteCube, one),
            (NoiseDistribution::Ball, one),
            (NoiseDistribution::DiscreteGaussian, rho),
        ] {
            let noise = Mechanism::calibrated(law, Sensitivity(1 << 18), 4, price).unwrap();
            assert!(are_even(noise.scale().units() as f64));
            let mut generator = Generator::frozen([7; 32]);
            let mut draw = || {
                noise
                    .release_noisy(&Exact::new(vec![0; 4]), &mut generator)
                    .values()[1]
            };
            let draws: Vec<i128> = (0..DRAWS).map(|_| draw()).collect();
            let off = |step: i128| {
                let mut seen = low_bits_tally();
                draws
                    .iter()
                    .for_each(|z| seen.add(low_bits_of(z.div_euclid(step) * step)));
                seen.distance(&even_distribution())
            };
            // By chance less than 2.3 / sqrt(draws), but for a probability of 10^-4.
            assert!(off(1) < 0.0115, "{law}: {}", off(1));
            for step in [2, 4, 16, 256, 65_536] {
                assert!(off(step) > 0.49, "{law}, {step}: {}", off(step));
            }
        }
    }
}
