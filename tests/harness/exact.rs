//! Exact values, which the crate `noise` shows to nobody.

use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::NoiseDistribution;

pub trait Opened {
    /// The values themselves: whoever freezes a generator can draw its noise again and subtract it.
    fn opened(&self) -> Vec<i128>;
}

impl Opened for Exact {
    fn opened(&self) -> Vec<i128> {
        let mechanism = Mechanism::with_scale(NoiseDistribution::DiscreteLaplace, Scale::SMALLEST);
        let drawn = |exact: &Exact| mechanism.release_noisy(exact, &mut Generator::frozen([0; 32]));
        let noisy = drawn(self);
        let noise = drawn(&Exact::new(vec![0; noisy.values().len()]));
        noisy
            .values()
            .iter()
            .zip(noise.values())
            .map(|(noisy, noise)| noisy - noise)
            .collect()
    }
}
