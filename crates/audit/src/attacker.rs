//! The best attacker for two neighbouring streams: the log likelihood ratio of what was released, and its law under the declared noise.

use std::ops::Range;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::deadline::Deadline;
use super::law::NoiseLaw;
use super::looks::SequentialTest;
use super::samplers::generator_key;
use super::tally::ThresholdCounts;
use super::threads::in_parts;
use bernstream_synopsis::NoiseDistribution;

/// Thresholds of the attacker, for each of the two streams.
const THRESHOLDS: usize = 200;
/// Numbers that are simulated for the law of the declared noise, and draws at most.
const NUMBERS: u64 = 60_000_000;
const DRAWS: u64 = 1_000_000;
/// Draws at once, and the most for each part of the scale at which it is asked whether a test would fail.
const DRAWS_AT_ONCE: u64 = 20_000;
/// Numbers that are simulated for each part of the scale, and the fewest draws.
const NUMBERS_OF_A_FACTOR: u64 = 5_000_000;
const LEAST_OF_A_FACTOR: u64 = 2_000;
/// The parts of the scale at which the attacker is asked: each a hundredth less than the one before, down to a tenth.
const FACTOR: f64 = 1.01;
const FACTORS: i32 = 231;

/// Knows in which keys the streams differ, and by how much.
#[derive(Clone, Debug)]
pub(super) struct Attacker(pub Vec<WatchedKey>);

/// A key in which the streams differ.
#[derive(Clone, Debug)]
pub(super) struct WatchedKey {
    pub place: usize,
    /// The declared law.
    pub law: NoiseLaw,
    /// The exact values of the first stream, and by how much they are more than those of the second.
    pub exact: Vec<i128>,
    pub change: Vec<i128>,
}

impl Attacker {
    /// The norm of the change over the scale: of several keys, each of which has noise of its own, the sum, or the root of the sum of
    /// squares for Gaussian noise.
    pub fn change_in_scales(&self) -> f64 {
        let each = self
            .0
            .iter()
            .map(|watched| watched.law.norm_in_scales(&watched.change));
        match self.law().noise {
            NoiseDistribution::DiscreteGaussian => each.map(|mu| mu * mu).sum::<f64>().sqrt(),
            _ => each.sum(),
        }
    }

    /// The law of one key; that of every key.
    pub fn law(&self) -> NoiseLaw {
        let none = NoiseLaw {
            noise: NoiseDistribution::DiscreteLaplace,
            scale: 1.0,
            values: 0,
        };
        self.0.first().map_or(none, |watched| watched.law)
    }

    /// The law of the sizes of all keys together.
    pub fn joint_law(&self) -> NoiseLaw {
        let law = self.law();
        NoiseLaw {
            values: law.values * self.0.len(),
            ..law
        }
    }

    /// The law of the log likelihood ratio under the declared noise, `factor` times its scale: draws with the unit. By the symmetry of
    /// every law, what it is without the unit has the same law with the other sign.
    fn simulate_ratios(&self, seed: u64, draws: Range<u64>, factor: f64) -> Vec<f64> {
        let parts = in_parts(draws, |range| {
            let mut rng = ChaCha12Rng::from_seed(generator_key([seed, 4, range.start, 0]));
            let mut ratios = Vec::new();
            for _ in range {
                let losses = self
                    .0
                    .iter()
                    .map(|watched| watched.simulated_loss(factor, &mut rng));
                ratios.push(losses.sum::<f64>());
            }
            ratios
        });
        parts.into_iter().flatten().collect()
    }

    /// The curve of the declared noise. For Gaussian noise in closed form: with `mu` the distance, the log likelihood ratio is normal
    /// of mean `mu^2 / 2` and variance `mu^2`. For the others simulated, until `deadline` at most.
    pub fn calculate_curve(&self, seed: u64, alarm: f64, deadline: &Deadline) -> CalculatedCurve {
        let values = self.joint_law().values.max(1) as u64;
        let is_gaussian = self.law().noise == NoiseDistribution::DiscreteGaussian;
        let draws = if is_gaussian {
            DRAWS_AT_ONCE
        } else {
            (NUMBERS / values).clamp(DRAWS_AT_ONCE, DRAWS)
        };
        let mut ratios = self.simulate_ratios(seed, 0..DRAWS_AT_ONCE, 1.0);
        while (ratios.len() as u64) < draws && !deadline.is_over() {
            let done = ratios.len() as u64;
            ratios.extend(self.simulate_ratios(seed, done..done + DRAWS_AT_ONCE, 1.0));
        }
        let draws = ratios.len() as u64;
        ratios.sort_by(f64::total_cmp);
        // Between two numbers, so that no threshold lies on one that comes with a probability of its own.
        let step = (ratios.len() / THRESHOLDS).max(1);
        let one_side: Vec<f64> = (0..ratios.len())
            .step_by(step)
            .filter_map(|index| middle_above(&ratios, index))
            .collect();
        let thresholds = ThresholdCounts::new(one_side.iter().flat_map(|x| [*x, -*x]).collect())
            .thresholds()
            .to_vec();
        let mut with = ThresholdCounts::new(thresholds.clone());
        let mut without = ThresholdCounts::new(thresholds.clone());
        ratios.iter().for_each(|x| with.add(*x));
        ratios.iter().for_each(|x| without.add(-*x));
        let mut with = with.parts_up_to();
        let mut without = without.parts_up_to();
        let mut error = SequentialTest::new(alarm / 2.0, draws).confidence_band(draws);
        if is_gaussian {
            let mu = self.change_in_scales();
            with = thresholds
                .iter()
                .map(|t| normal_up_to(*t, mu * mu / 2.0, mu))
                .collect();
            without = thresholds
                .iter()
                .map(|t| normal_up_to(*t, -mu * mu / 2.0, mu))
                .collect();
            error = 0.0;
        }
        CalculatedCurve {
            thresholds,
            with,
            without,
            error: error + self.joint_law().rounding_distance(),
        }
    }

    /// The largest part of the scale, of some, at which the log likelihood ratio with the unit has a distribution that is at least
    /// `wanted` from the calculated one.
    pub fn scale_that_fails(&self, calculated: &CalculatedCurve, wanted: f64) -> Option<f64> {
        [0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.3]
            .into_iter()
            .find(|factor| {
                let ratios = self.simulate_at_scale(calculated, *factor);
                ratios.with.distance(&calculated.with) >= wanted
            })
    }

    /// The largest part of the scale, down to a tenth and to a part in a hundred, at which this attacker's error rates break a
    /// promise: `breaks` says whether one pair of them does, false positives first. The less noise, the lower they are.
    pub fn scale_that_breaks(
        &self,
        calculated: &CalculatedCurve,
        breaks: impl Fn(f64, f64) -> bool,
    ) -> Option<f64> {
        let mut holds = 0;
        let mut broken = FACTORS;
        if !self
            .simulate_at_scale(calculated, factor_of(broken))
            .break_promise(&breaks)
        {
            return None;
        }
        while broken - holds > 1 {
            let middle = i32::midpoint(holds, broken);
            if self
                .simulate_at_scale(calculated, factor_of(middle))
                .break_promise(&breaks)
            {
                broken = middle
            } else {
                holds = middle
            }
        }
        Some(factor_of(broken))
    }

    /// The log likelihood ratios of the declared noise if it had this part of its scale.
    fn simulate_at_scale(&self, calculated: &CalculatedCurve, factor: f64) -> ScaledRatios {
        let values = self.joint_law().values.max(1) as u64;
        let draws = (NUMBERS_OF_A_FACTOR / values).clamp(LEAST_OF_A_FACTOR, DRAWS_AT_ONCE);
        let mut ratios = ScaledRatios {
            with: ThresholdCounts::new(calculated.thresholds.clone()),
            without: ThresholdCounts::new(calculated.thresholds.clone()),
        };
        for ratio in self.simulate_ratios(5, 0..draws, factor) {
            ratios.with.add(ratio);
            ratios.without.add(-ratio);
        }
        ratios
    }
}

/// The part of the scale after so many steps down.
fn factor_of(step: i32) -> f64 {
    FACTOR.powi(-step)
}

impl WatchedKey {
    /// The loss of a draw of the declared noise, `factor` times its scale.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a simulated number is rounded to whole units"
    )]
    fn simulated_loss(&self, factor: f64, rng: &mut ChaCha12Rng) -> f64 {
        let mut noise = self.law.simulate_draw(rng);
        if factor != 1.0 {
            #[expect(clippy::cast_precision_loss, reason = "a simulated number")]
            for z in &mut noise {
                *z = (*z as f64 * factor).round() as i128;
            }
        }
        self.law.privacy_loss(&noise, &self.change)
    }
}

/// The middle between a number in a sorted list and the next one that is larger.
fn middle_above(sorted: &[f64], index: usize) -> Option<f64> {
    let low = *sorted.get(index)?;
    let next = sorted.partition_point(|x| *x <= low + 1e-9 * (1.0 + low.abs()));
    Some(f64::midpoint(low, *sorted.get(next)?))
}

/// The normal distribution function.
fn normal_up_to(x: f64, mean: f64, deviation: f64) -> f64 {
    libm::erfc((mean - x) / deviation * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Log likelihood ratios with the unit and without it.
struct ScaledRatios {
    with: ThresholdCounts,
    without: ThresholdCounts,
}

impl ScaledRatios {
    /// Returns whether a pair of error rates breaks a promise.
    fn break_promise(&self, breaks: impl Fn(f64, f64) -> bool) -> bool {
        let with = self.with.parts_up_to();
        let mut pairs = with.iter().zip(self.without.parts_up_to());
        pairs.any(|(with, without)| breaks(1.0 - without, *with))
    }
}

/// The law of the log likelihood ratio at some thresholds, with the unit and without it.
pub(super) struct CalculatedCurve {
    pub thresholds: Vec<f64>,
    pub with: Vec<f64>,
    pub without: Vec<f64>,
    /// The largest error of these probabilities.
    pub error: f64,
}
