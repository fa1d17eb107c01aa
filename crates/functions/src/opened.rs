//! The exact values of records that a test makes up.

use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::Generator;
use bernstream_noise::{Exact, Mechanism};
use bernstream_synopsis::NoiseDistribution;

/// The values themselves: whoever freezes a generator can draw its noise again and subtract it.
pub fn opened(exact: &Exact) -> Vec<i128> {
    let mechanism = Mechanism::with_scale(NoiseDistribution::DiscreteLaplace, Scale::SMALLEST);
    let noisy = mechanism.release_noisy(exact, &mut Generator::frozen([0; 32]));
    let zeros = Exact::new(vec![0; noisy.values().len()]);
    let noise = mechanism.release_noisy(&zeros, &mut Generator::frozen([0; 32]));
    let pairs = noisy.values().iter().zip(noise.values());
    pairs
        .map(|(noisy, noise)| noisy.saturating_sub(*noise))
        .collect()
}
