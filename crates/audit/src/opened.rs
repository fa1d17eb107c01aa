//! The exact values of records that an audit makes up.

use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::NoiseDistribution;

/// The values themselves. Nothing outside of `bernstream-noise` can read them, but whoever freezes a generator can draw its noise again
/// and subtract it: an audit does so with records that nobody sent.
pub(super) fn open_exact_values(exact: &Exact) -> Vec<i128> {
    let mechanism = Mechanism::with_scale(NoiseDistribution::DiscreteLaplace, Scale::SMALLEST);
    let noisy = mechanism.release_noisy(exact, &mut Generator::frozen([0; 32]));
    let zeros = Exact::new(vec![0; noisy.values().len()]);
    let noise = mechanism.release_noisy(&zeros, &mut Generator::frozen([0; 32]));
    noisy
        .values()
        .iter()
        .zip(noise.values())
        .map(|(noisy, noise)| noisy.saturating_sub(*noise))
        .collect()
}
