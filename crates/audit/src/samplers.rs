//! The samplers at the scales in use, against the distributions that they claim.
//!
//! Of every mechanism of a plan, private choices included: the law of the size of a draw, on which its density rests; the law of one
//! value (or, of the ball, of its direction); its low bits; and signs, alone, of neighbouring values, and of successive draws. Together the
//! size and the direction are all there is of a draw, but neighbours in one draw are only told by their signs.

use serde::Serialize;

use super::deadline::Deadline;
use super::evidence::{Test, Verdict, fails_at};
use super::gamma::probability_up_to;
use super::law::Law;
use super::looks::SequentialTest;
use super::tally::{Tally, distance, quantiles};
use super::threads::in_parts;
use crate::low_bits;
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::marginals::BINS;
use bernstream_synopsis::NoiseDistribution;
use bernstream_worker::pipeline::Plan;

/// So many draws are made with one generator.
const OF_A_GENERATOR: u64 = 50;
const THRESHOLDS: u32 = 256;
/// Beyond this part of what is allowed, whole numbers are too coarse for a law of the reals.
const COARSE: f64 = 0.2;

/// A mechanism of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// What it is the noise of.
    pub of: String,
    pub mechanism: Mechanism,
    /// How many values it is added to at once.
    pub values: usize,
}

/// What was found of one mechanism.
#[derive(Clone, Debug, Serialize)]
pub struct Sampled {
    pub of: String,
    pub noise: NoiseDistribution,
    pub scale_in_grid_units: u64,
    pub values: usize,
    pub draws: u64,
    pub tests: Vec<Test>,
    /// Distributions that whole numbers of this size are too coarse for.
    pub untested: Vec<String>,
    /// Of the size of a draw.
    pub sizes: Curve,
}

/// A distribution function at some thresholds: the part of the draws up to each, and that of the declared distribution.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    pub thresholds: Vec<f64>,
    pub drawn: Vec<f64>,
    pub declared: Vec<f64>,
}

/// Every mechanism of a plan, each once: of functions at the price of a first window, of running sums, and of private choices.
pub fn samplers(plan: &Plan) -> Vec<Sampler> {
    let mut all: Vec<Sampler> = Vec::new();
    for release in &plan.releases {
        let name = &release.description().release;
        let mut add = |of: String, mechanism: Mechanism, values: usize| {
            let is_new = !all
                .iter()
                .any(|known| (known.mechanism, known.values) == (mechanism, values));
            if is_new {
                all.push(Sampler {
                    of,
                    mechanism,
                    values,
                });
            }
        };
        for variant in release.variants.iter() {
            match &release.series {
                Some(noise) => {
                    add(
                        format!("the panes of {name}"),
                        noise.series.noise(),
                        variant.target.shape().values(),
                    );
                }
                None => add(
                    name.clone(),
                    variant.mechanism,
                    variant.target.shape().values(),
                ),
            }
            if let Some(order) = &variant.order {
                add(
                    format!("the choice of an order of {name}"),
                    order.mechanism(),
                    variant.descriptions.iter().count(),
                );
            }
        }
        if let Some(bandwidth) = &release.bandwidth {
            let counts = BINS * release.form.axes.len();
            add(
                format!("the choice of bandwidths of {name}"),
                bandwidth.mechanism(),
                counts,
            );
        }
    }
    all
}

/// Draws until `deadline`, at most `most` times, and at least until a first look; `seed` and `number` determine every draw.
pub fn test(
    sampler: &Sampler,
    (seed, number): (u64, u64),
    alarm: f64,
    most: u64,
    deadline: &Deadline,
) -> Sampled {
    let law = sampler.law();
    let sizes = law.sizes();
    let values = law.values_of_one();
    let of_size: Vec<f64> = sizes
        .iter()
        .map(|x| probability_up_to(law.shape(), *x))
        .collect();
    let of_value: Vec<f64> = values.iter().map(|x| law.value_up_to(*x)).collect();
    let mut seen = Seen::new(sizes, values);
    let mut looks = SequentialTest::new(alarm, 1_000);
    let mut done = 0;
    let mut last: Option<Sampled> = None;
    loop {
        let blocks = done..looks.runs().div_ceil(OF_A_GENERATOR);
        let goes_on = last.is_some();
        let parts = in_parts(blocks.clone(), |blocks| {
            let mut part = seen.empty();
            for block in blocks {
                if goes_on && deadline.is_stopped() {
                    return None;
                }
                sampler.draw((seed, number, block), &law, &mut part);
            }
            Some(part)
        });
        let parts: Option<Vec<Seen>> = parts.into_iter().collect();
        // What was drawn since the last look does not count.
        if let (None, Some(last)) = (&parts, last) {
            return last;
        }
        parts.iter().flatten().for_each(|part| seen.join(part));
        done = blocks.end;
        let sampled = sampler.sampled(&law, &seen, (&of_size, &of_value), &looks, alarm);
        let is_over = deadline.is_over() || looks.next().runs() > most;
        if is_over || sampled.tests.iter().any(Test::has_failed) {
            return sampled;
        }
        (last, looks) = (Some(sampled), looks.next());
    }
}

/// What was counted.
#[derive(Clone, Debug)]
struct Seen {
    sizes: Tally,
    values: Tally,
    /// Of signs that are positive: how many, and of how many. Of one value, of two neighbours, of successive draws.
    signs: [(u64, u64); 3],
    /// Of the low bits of one value.
    low: Tally,
}

impl Seen {
    fn new(sizes: Vec<f64>, values: Vec<f64>) -> Self {
        Seen {
            sizes: Tally::new(sizes),
            values: Tally::new(values),
            signs: [(0, 0); 3],
            low: low_bits::tally(),
        }
    }

    fn empty(&self) -> Self {
        Seen::new(
            self.sizes.thresholds().to_vec(),
            self.values.thresholds().to_vec(),
        )
    }

    fn join(&mut self, other: &Seen) {
        self.sizes.join(&other.sizes);
        self.values.join(&other.values);
        self.low.join(&other.low);
        for (ours, theirs) in self.signs.iter_mut().zip(other.signs) {
            *ours = (ours.0 + theirs.0, ours.1 + theirs.1);
        }
    }

    fn sign(&mut self, kind: usize, sign: i128) {
        if let Some((positive, all)) = self.signs.get_mut(kind).filter(|_| sign != 0) {
            *positive += u64::from(sign > 0);
            *all += 1;
        }
    }
}

impl Sampler {
    #[expect(clippy::cast_precision_loss, reason = "compared to many fewer digits")]
    fn law(&self) -> Law {
        let scale = self.mechanism.scale().units() as f64;
        Law {
            noise: self.mechanism.distribution(),
            scale,
            values: self.values,
        }
    }

    /// The draws of one generator.
    fn draw(&self, (seed, number, block): (u64, u64, u64), law: &Law, seen: &mut Seen) {
        let mut generator = Generator::frozen(key([seed, 1, number, block]));
        let zero = Exact::new(vec![0; self.values]);
        let mut before = 0;
        for draw in 0..OF_A_GENERATOR {
            let noise = self.mechanism.release(&zero, &mut generator);
            let noise = noise.values();
            seen.sizes.add(law.size(noise));
            // Values of one draw may depend on each other: of each draw one value, every place in turn.
            let at = usize::try_from((block * OF_A_GENERATOR + draw) % self.values.max(1) as u64)
                .unwrap_or(0);
            seen.values.add(law.of_value(noise, at));
            seen.low
                .add(low_bits::of(noise.get(at).copied().unwrap_or(0)));
            let sign = |at: usize| noise.get(at).map_or(0, |z| z.signum());
            seen.sign(0, sign(at));
            seen.sign(
                1,
                sign(at)
                    * if self.values > 1 {
                        sign((at + 1) % self.values)
                    } else {
                        0
                    },
            );
            let first = sign(0);
            seen.sign(2, first * before);
            before = first;
        }
    }

    fn sampled(
        &self,
        law: &Law,
        seen: &Seen,
        (of_size, of_value): (&[f64], &[f64]),
        looks: &SequentialTest,
        alarm: f64,
    ) -> Sampled {
        let draws = seen.sizes.total();
        let band = looks.band(draws);
        let mut tests = Vec::new();
        let mut untested = Vec::new();
        let rounding = law.rounding();
        let mut of_law = |what: &str, rounding: f64, difference: f64, fails_at: Option<f64>| {
            if rounding > COARSE * band {
                untested.push(what.to_owned());
                return;
            }
            let allowed = band + rounding;
            let verdict = Verdict::of(difference <= allowed);
            tests.push(Test {
                what: what.to_owned(),
                verdict,
                difference,
                allowed,
                draws,
                false_alarm: alarm,
                fails_at,
            });
        };
        let scaled = |thresholds: &[f64], expected: &[f64], up_to: &dyn Fn(f64) -> f64| {
            fails_at(2.0 * (band + rounding), |factor| {
                let shrunk: Vec<f64> = thresholds.iter().map(|x| up_to(x / factor)).collect();
                distance(&shrunk, expected)
            })
        };
        // Half a square shrinks twice.
        let power = if law.noise == NoiseDistribution::DiscreteGaussian {
            0.5
        } else {
            1.0
        };
        let up_to = |x: f64| probability_up_to(law.shape(), x);
        let by_size =
            scaled(seen.sizes.thresholds(), of_size, &up_to).map(|factor| factor.powf(power));
        of_law(
            "the size of a draw",
            rounding,
            seen.sizes.distance(of_size),
            by_size,
        );
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
            let up_to = |x: f64| law.value_up_to(x);
            let by_value = (!is_ball)
                .then(|| scaled(seen.values.thresholds(), of_value, &up_to))
                .flatten();
            of_law(what, own, seen.values.distance(of_value), by_value);
        }
        if low_bits::are_even(law.scale) {
            let difference = seen.low.distance(&low_bits::even());
            let what = "the low bits of values".to_owned();
            let verdict = Verdict::of(difference <= band);
            tests.push(Test {
                what,
                verdict,
                difference,
                allowed: band,
                draws,
                false_alarm: alarm,
                fails_at: None,
            });
        } else {
            untested.push("the low bits of values".to_owned());
        }
        let kinds = [
            "the signs of values",
            "the signs of neighbouring values",
            "the signs of successive draws",
        ];
        for (what, (positive, all)) in kinds.into_iter().zip(seen.signs) {
            if all > 0 {
                #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
                let difference = (positive as f64 / all as f64 - 0.5).abs();
                let what = what.to_owned();
                let allowed = looks.band(all);
                let verdict = Verdict::of(difference <= allowed);
                let fails_at = None;
                tests.push(Test {
                    what,
                    verdict,
                    difference,
                    allowed,
                    draws: all,
                    false_alarm: alarm,
                    fails_at,
                });
            }
        }
        Sampled {
            of: self.of.clone(),
            noise: law.noise,
            scale_in_grid_units: self.mechanism.scale().units(),
            values: self.values,
            draws,
            tests,
            untested,
            sizes: Curve {
                thresholds: seen.sizes.thresholds().to_vec(),
                drawn: seen.sizes.parts(),
                declared: of_size.to_vec(),
            },
        }
    }
}

impl Law {
    /// Thresholds for the size of a draw.
    pub(super) fn sizes(&self) -> Vec<f64> {
        let reach = 12.0 * self.shape().sqrt() + 40.0;
        quantiles(THRESHOLDS, (0.0, self.shape() + reach), |x| {
            probability_up_to(self.shape(), x)
        })
    }

    /// Thresholds for one value; none where it has no law of its own.
    fn values_of_one(&self) -> Vec<f64> {
        match self.noise {
            NoiseDistribution::Ball if self.values < 2 => Vec::new(),
            NoiseDistribution::Ball => quantiles(THRESHOLDS, (0.0, 1.0), |x| self.value_up_to(x)),
            NoiseDistribution::DiscreteCube => {
                let reach = self.shape() + 12.0 * self.shape().sqrt() + 40.0;
                quantiles(THRESHOLDS, (0.0, reach), |x| self.value_up_to(x))
            }
            _ => quantiles(THRESHOLDS, (0.0, 50.0), |x| self.value_up_to(x)),
        }
    }
}

/// The key of a generator: no two lists of numbers share one.
pub(super) fn key(numbers: [u64; 4]) -> [u8; 32] {
    let mut key = [0; 32];
    for (place, number) in key.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    key
}
