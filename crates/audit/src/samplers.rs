//! The samplers at the scales in use, against the distributions that they claim.
//!
//! Of every mechanism of a plan, private choices included: the law of the size of a draw, on which its density rests; the law of one
//! value (or, of the ball, of its direction); its low bits; and signs, alone, of neighbouring values, and of successive draws. Together the
//! size and the direction are all there is of a draw, but neighbours in one draw are only told by their signs.

use serde::Serialize;

use super::deadline::Deadline;
use super::evidence::{AuditTest, scale_fails_at};
use super::gamma::probability_up_to;
use super::law::NoiseLaw;
use super::looks::SequentialTest;
use super::tally::{ThresholdCounts, quantiles};
use super::threads::in_parts;
use crate::low_bits;
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::marginals::BINS;
use bernstream_synopsis::NoiseDistribution;
use bernstream_worker::pipeline::ReleasePlan;

/// Number of values of a draw for keys that nobody listed, of which there can be any number.
const KEYS: usize = 64;
/// Number of draws that are made with one generator.
const OF_A_GENERATOR: u64 = 50;
const THRESHOLDS: u32 = 256;
/// Beyond this part of what is allowed, whole numbers are too coarse for a law of the reals.
const COARSE: f64 = 0.2;

/// A mechanism of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// A description of what it is the noise of.
    pub of: String,
    pub mechanism: Mechanism,
    /// Number of values that it is added to at once.
    pub values: usize,
}

/// The findings about one mechanism.
#[derive(Clone, Debug, Serialize)]
pub struct SamplerFindings {
    pub of: String,
    pub noise: NoiseDistribution,
    pub scale_in_grid_units: u64,
    pub values: usize,
    pub draws: u64,
    pub tests: Vec<AuditTest>,
    /// Distributions that whole numbers of this size are too coarse for.
    pub untested: Vec<String>,
    /// The distribution of the size of a draw.
    pub sizes: DistributionCurve,
}

/// A distribution function at some thresholds: the part of the draws up to each, and that of the declared distribution.
#[derive(Clone, Debug, Serialize)]
pub struct DistributionCurve {
    pub thresholds: Vec<f64>,
    pub drawn: Vec<f64>,
    pub declared: Vec<f64>,
}

/// Every mechanism of a plan, each once: of functions at the price of a first window, of running sums, and of private choices.
pub fn samplers_of_plan(plan: &ReleasePlan) -> Vec<Sampler> {
    let mut all: Vec<Sampler> = Vec::new();
    for release in &plan.releases {
        let name = &release.description().release;
        for variant in release.variants.iter() {
            let values = match release.key_search {
                // A draw has as many values as there are keys.
                Some(_) => KEYS.min(variant.target.shape().value_count()),
                None => variant.target.shape().value_count(),
            };
            all.push(match &release.series {
                Some(noise) => Sampler {
                    of: format!("the panes of {name}"),
                    mechanism: noise.series.noise(),
                    values,
                },
                None => Sampler {
                    of: name.clone(),
                    mechanism: variant.mechanism,
                    values,
                },
            });
            if let Some(order) = &variant.order {
                all.push(Sampler {
                    of: format!("the choice of an order of {name}"),
                    mechanism: order.mechanism(),
                    values: variant.descriptions.iter().count(),
                });
            }
        }
        if let Some(bandwidth) = &release.bandwidth {
            all.push(Sampler {
                of: format!("the choice of bandwidths of {name}"),
                mechanism: bandwidth.mechanism(),
                values: BINS * release.form.axes.len(),
            });
        }
    }
    let mut different: Vec<Sampler> = Vec::new();
    for sampler in all {
        if !different.iter().any(|known| known.draws_as(&sampler)) {
            different.push(sampler);
        }
    }
    different
}

/// Draws until `deadline`, at most `most` times, and at least until a first look; `seed` and `number` determine every draw.
pub fn test_sampler(
    sampler: &Sampler,
    (seed, number): (u64, u64),
    alarm: f64,
    most: u64,
    deadline: &Deadline,
) -> SamplerFindings {
    let law = sampler.law();
    let sizes = law.size_thresholds();
    let values = law.value_thresholds();
    let of_size: Vec<f64> = sizes
        .iter()
        .map(|x| probability_up_to(law.gamma_shape(), *x))
        .collect();
    let of_value: Vec<f64> = values
        .iter()
        .map(|x| law.value_probability_up_to(*x))
        .collect();
    let mut seen = DrawCounts::new(sizes, values);
    let mut looks = SequentialTest::new(alarm, 1_000);
    let mut done = 0;
    let mut last: Option<SamplerFindings> = None;
    loop {
        let blocks = done..looks.runs().div_ceil(OF_A_GENERATOR);
        let goes_on = last.is_some();
        let parts = in_parts(blocks.clone(), |blocks| {
            let mut part = seen.empty();
            for block in blocks {
                if goes_on && deadline.is_stopped() {
                    return None;
                }
                let generator = Generator::frozen(generator_key([seed, 1, number, block]));
                sampler.draw_block(generator, block, &law, &mut part);
            }
            Some(part)
        });
        let parts: Option<Vec<DrawCounts>> = parts.into_iter().collect();
        // What was drawn since the last look does not count.
        if let (None, Some(last)) = (&parts, last) {
            return last;
        }
        parts
            .iter()
            .flatten()
            .for_each(|part| seen.merge_counts(part));
        done = blocks.end;
        let sampled = sampler.sampled_so_far(&seen, &of_size, &of_value, &looks, alarm);
        let is_over = deadline.is_over() || looks.next_look().runs() > most;
        if is_over || sampled.tests.iter().any(AuditTest::has_failed) {
            return sampled;
        }
        last = Some(sampled);
        looks = looks.next_look();
    }
}

/// The counts of all draws.
#[derive(Clone, Debug)]
struct DrawCounts {
    sizes: ThresholdCounts,
    values: ThresholdCounts,
    /// The signs of one value, of two neighbours, of successive draws.
    signs: [SignCount; 3],
    /// The low bits of one value.
    low: ThresholdCounts,
}

/// The number of signs that are positive, and of all but zeros.
#[derive(Clone, Copy, Debug, Default)]
struct SignCount {
    positive: u64,
    all: u64,
}

impl DrawCounts {
    fn new(sizes: Vec<f64>, values: Vec<f64>) -> Self {
        DrawCounts {
            sizes: ThresholdCounts::new(sizes),
            values: ThresholdCounts::new(values),
            signs: [SignCount::default(); 3],
            low: low_bits::low_bits_tally(),
        }
    }

    fn empty(&self) -> Self {
        DrawCounts::new(
            self.sizes.thresholds().to_vec(),
            self.values.thresholds().to_vec(),
        )
    }

    fn merge_counts(&mut self, other: &DrawCounts) {
        self.sizes.join(&other.sizes);
        self.values.join(&other.values);
        self.low.join(&other.low);
        for (ours, theirs) in self.signs.iter_mut().zip(other.signs) {
            ours.positive += theirs.positive;
            ours.all += theirs.all;
        }
    }

    fn count_sign(&mut self, kind: usize, sign: i128) {
        if let Some(count) = self.signs.get_mut(kind)
            && sign != 0
        {
            count.positive += u64::from(sign > 0);
            count.all += 1;
        }
    }
}

fn sign_at(noise: &[i128], index: usize) -> i128 {
    noise.get(index).map_or(0, |z| z.signum())
}

impl Sampler {
    #[expect(clippy::cast_precision_loss, reason = "compared to many fewer digits")]
    fn law(&self) -> NoiseLaw {
        let scale = self.mechanism.scale().units() as f64;
        NoiseLaw {
            noise: self.mechanism.distribution(),
            scale,
            values: self.values,
        }
    }

    fn draws_as(&self, other: &Sampler) -> bool {
        self.mechanism == other.mechanism && self.values == other.values
    }

    /// The draws of one generator, that of a block.
    fn draw_block(
        &self,
        mut generator: Generator,
        block: u64,
        law: &NoiseLaw,
        seen: &mut DrawCounts,
    ) {
        let zero = Exact::new(vec![0; self.values]);
        let mut before = 0;
        for draw in 0..OF_A_GENERATOR {
            let noise = self.mechanism.release_noisy(&zero, &mut generator);
            let noise = noise.values();
            seen.sizes.add(law.size_of_draw(noise));
            // Values of one draw may depend on each other: of each draw one value, every place in turn.
            let at = usize::try_from((block * OF_A_GENERATOR + draw) % self.values.max(1) as u64)
                .unwrap_or(0);
            seen.values.add(law.value_figure(noise, at));
            seen.low
                .add(low_bits::low_bits_of(noise.get(at).copied().unwrap_or(0)));
            let sign = sign_at(noise, at);
            seen.count_sign(0, sign);
            if self.values > 1 {
                seen.count_sign(1, sign * sign_at(noise, (at + 1) % self.values));
            }
            let first = sign_at(noise, 0);
            seen.count_sign(2, first * before);
            before = first;
        }
    }

    fn sampled_so_far(
        &self,
        seen: &DrawCounts,
        of_size: &[f64],
        of_value: &[f64],
        looks: &SequentialTest,
        alarm: f64,
    ) -> SamplerFindings {
        let law = self.law();
        let draws = seen.sizes.total();
        let band = looks.confidence_band(draws);
        let rounding = law.rounding_distance();
        let mut sampled = SamplerFindings {
            of: self.of.clone(),
            noise: law.noise,
            scale_in_grid_units: self.mechanism.scale().units(),
            values: self.values,
            draws,
            tests: Vec::new(),
            untested: Vec::new(),
            sizes: DistributionCurve {
                thresholds: seen.sizes.thresholds().to_vec(),
                drawn: seen.sizes.parts_up_to(),
                declared: of_size.to_vec(),
            },
        };
        // Half a square shrinks twice.
        let power = if law.noise == NoiseDistribution::DiscreteGaussian {
            0.5
        } else {
            1.0
        };
        let wanted = 2.0 * (band + rounding);
        let by_size = scale_fails_at(wanted, seen.sizes.thresholds(), of_size, |x| {
            probability_up_to(law.gamma_shape(), x)
        });
        let mut test = AuditTest::of_distance(
            "the size of a draw",
            seen.sizes.distance(of_size),
            band + rounding,
            draws,
            alarm,
        );
        test.fails_at = by_size.map(|factor| factor.powf(power));
        sampled.add(test, rounding <= COARSE * band);
        if !of_value.is_empty() {
            let is_ball = law.noise == NoiseDistribution::Ball;
            let what = if is_ball {
                "the direction of a draw"
            } else {
                "one value"
            };
            let own = match law.noise {
                NoiseDistribution::DiscreteLaplace => 0.0,
                NoiseDistribution::DiscreteGaussian => 1.0 / (40.0 * law.scale * law.scale),
                _ => rounding,
            };
            let difference = seen.values.distance(of_value);
            let mut test = AuditTest::of_distance(what, difference, band + own, draws, alarm);
            if !is_ball {
                test.fails_at = scale_fails_at(wanted, seen.values.thresholds(), of_value, |x| {
                    law.value_probability_up_to(x)
                });
            }
            sampled.add(test, own <= COARSE * band);
        }
        let difference = seen.low.distance(&low_bits::even_distribution());
        let test = AuditTest::of_distance("the low bits of values", difference, band, draws, alarm);
        sampled.add(test, low_bits::are_even(law.scale));
        let kinds = [
            "the signs of values",
            "the signs of neighbouring values",
            "the signs of successive draws",
        ];
        for (what, signs) in kinds.into_iter().zip(seen.signs) {
            if signs.all > 0 {
                #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
                let difference = (signs.positive as f64 / signs.all as f64 - 0.5).abs();
                let allowed = looks.confidence_band(signs.all);
                let test = AuditTest::of_distance(what, difference, allowed, signs.all, alarm);
                sampled.tests.push(test);
            }
        }
        sampled
    }
}

impl SamplerFindings {
    /// Adds a test, or only its name where whole numbers are too coarse for it.
    fn add(&mut self, test: AuditTest, is_fine: bool) {
        if is_fine {
            self.tests.push(test);
        } else {
            self.untested.push(test.what);
        }
    }
}

impl NoiseLaw {
    /// Thresholds for the size of a draw.
    pub(super) fn size_thresholds(&self) -> Vec<f64> {
        let reach = 12.0 * self.gamma_shape().sqrt() + 40.0;
        quantiles(THRESHOLDS, 0.0, self.gamma_shape() + reach, |x| {
            probability_up_to(self.gamma_shape(), x)
        })
    }

    /// Thresholds for one value; none where it has no law of its own.
    fn value_thresholds(&self) -> Vec<f64> {
        match self.noise {
            NoiseDistribution::Ball if self.values < 2 => Vec::new(),
            NoiseDistribution::Ball => {
                quantiles(THRESHOLDS, 0.0, 1.0, |x| self.value_probability_up_to(x))
            }
            NoiseDistribution::DiscreteCube => {
                let reach = self.gamma_shape() + 12.0 * self.gamma_shape().sqrt() + 40.0;
                quantiles(THRESHOLDS, 0.0, reach, |x| self.value_probability_up_to(x))
            }
            _ => quantiles(THRESHOLDS, 0.0, 50.0, |x| self.value_probability_up_to(x)),
        }
    }
}

/// The key of a generator: no two lists of numbers share one.
pub(super) fn generator_key(numbers: [u64; 4]) -> [u8; 32] {
    let mut key = [0; 32];
    for (place, number) in key.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    key
}
