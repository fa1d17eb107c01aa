//! The sensitivity sampler (`[RA17]`): how much a record changes a function, from data sets drawn from a *public* prior,
//! never from those that are to be protected (`docs/proofs/sampled.md`).
//!
//! # What it yields
//!
//! Not differential privacy but **random differential privacy** with confidence `gamma`: for two neighbouring data sets
//! drawn from the prior, the guarantee of the mechanism holds with probability at least `1 - gamma`, taken over the draws
//! of the sampler too. It says nothing about data that the prior does not resemble, it is a statement about one window (for
//! `w` windows together `gamma` becomes up to `w gamma`), and it holds for windows of the size that was sampled.
//!
//! # Why the order statistic covers
//!
//! Let `F` be the distribution function of the change `G` between two neighbours, `F_m` the empirical one of `m`
//! independent draws. By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, for `rho <= 1/2`,
//! `F_m <= F + sqrt(log(1/rho) / 2m)` everywhere with probability at least `1 - rho`. With
//!
//! ```text
//! k = ceil(m (1 - gamma + rho + sqrt(log(1/rho) / 2m)))
//! ```
//!
//! and `D` the `k`-th smallest change, `F(D) >= F_m(D) - sqrt(..) >= k/m - sqrt(..) >= 1 - gamma + rho` then. A new pair
//! changes by more than `D` with probability at most `rho + (gamma - rho) = gamma`.
//!
//! `rho` is free. For given `m` the least `k`, and the least `gamma` that `k = m` allows, is at the minimum of
//! `rho + sqrt(log(1/rho) / 2m)`: `rho = exp(W(-1/4m) / 2)`, `W` the lower branch of Lambert's function. For given `gamma` the
//! fewest draws, `m = ceil(log(1/rho) / 2 (gamma - rho)^2)`, are at `rho = exp(W(-gamma / 2 sqrt e) + 1/2)`.

mod prior;

use rand::Rng;
use serde::{Deserialize, Serialize};

pub use self::prior::RecordPrior;
use bernstream_release::error::TargetError;
use bernstream_release::sampler::error::MOST_SAMPLES;
pub use bernstream_release::sampler::error::SamplerError;
use bernstream_release::window::accumulator::Record;
use bernstream_synopsis::adjacency::Adjacency;

/// Number of pairs that are drawn, and the order statistic of their changes that is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingPlan {
    pub gamma: f64,
    /// `m`.
    pub samples: u32,
    /// `k`, counted from 1.
    pub order: u32,
    pub rho: f64,
}

impl SamplingPlan {
    /// The fewest samples for a confidence.
    ///
    /// # Errors
    ///
    /// If `gamma` is not between 0 and 1, or needs too many samples.
    pub fn for_gamma(gamma: f64) -> Result<Self, TargetError> {
        check_confidence(gamma)?;
        let rho = (lambert_lower(-gamma / (2.0 * 0.5_f64.exp())) + 0.5).exp();
        let samples = ((1.0 / rho).ln() / (2.0 * (gamma - rho).powi(2))).ceil();
        if samples > f64::from(MOST_SAMPLES) {
            return Err(SamplerError::Samples { samples }.into());
        }
        let samples = samples as u32;
        SamplingPlan {
            gamma,
            samples,
            order: 0,
            rho,
        }
        .ordered()
    }

    /// The best confidence for a number of samples: the largest change of all is taken.
    ///
    /// # Errors
    ///
    /// If the number of samples is out of range, or too small for any `gamma` below 1.
    pub fn for_samples(samples: u32) -> Result<Self, TargetError> {
        let rho = best_rho(samples)?;
        let gamma = rho + confidence_margin(rho, samples);
        check_confidence(gamma)?;
        Ok(SamplingPlan {
            gamma,
            samples,
            order: samples,
            rho,
        })
    }

    /// The least order statistic for both.
    ///
    /// # Errors
    ///
    /// If either is out of range, or the samples are too few for `gamma`.
    pub fn new(samples: u32, gamma: f64) -> Result<Self, TargetError> {
        check_confidence(gamma)?;
        let rho = best_rho(samples)?;
        SamplingPlan {
            gamma,
            samples,
            order: 0,
            rho,
        }
        .ordered()
    }

    fn ordered(self) -> Result<Self, TargetError> {
        let least = self.rho + confidence_margin(self.rho, self.samples);
        if self.gamma < least {
            return Err(SamplerError::TooFew {
                gamma: self.gamma,
                samples: self.samples,
                least,
            }
            .into());
        }
        let order = (f64::from(self.samples) * (1.0 - self.gamma + least)).ceil() as u32;
        Ok(SamplingPlan {
            order: order.clamp(1, self.samples),
            ..self
        })
    }
}

fn check_confidence(gamma: f64) -> Result<(), SamplerError> {
    if gamma > 0.0 && gamma < 1.0 {
        Ok(())
    } else {
        Err(SamplerError::Gamma(gamma))
    }
}

fn best_rho(samples: u32) -> Result<f64, SamplerError> {
    if !(1..=MOST_SAMPLES).contains(&samples) {
        return Err(SamplerError::Samples {
            samples: samples.into(),
        });
    }
    Ok((lambert_lower(-0.25 / f64::from(samples)) / 2.0).exp())
}

fn confidence_margin(rho: f64, samples: u32) -> f64 {
    ((1.0 / rho).ln() / (2.0 * f64::from(samples))).sqrt()
}

/// `w <= -1` with `w exp(w) = z`, for `z` from `-1/e` to 0: `w exp(w)` falls from 0 to `-1/e` on the way from minus infinity.
fn lambert_lower(z: f64) -> f64 {
    let mut low = -800.0_f64;
    let mut high = -1.0_f64;
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle * middle.exp() > z {
            low = middle
        } else {
            high = middle
        }
    }
    (low + high) / 2.0
}

/// A sampled sensitivity: random differential privacy with confidence `gamma`. Units are the function's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampledSensitivity {
    /// The change at any lattice point.
    pub sup: f64,
    /// The change summed over the lattice.
    pub sum: f64,
    pub gamma: f64,
    /// Number of pairs that were drawn, `m`.
    pub samples: u32,
    /// Order statistic that was taken, `k`.
    pub order: u32,
    pub rho: f64,
    /// The size of the data sets, `n`.
    pub records: u32,
    pub adjacency: Adjacency,
}

/// Draws `plan.samples` pairs of neighbours of `records` records from `draw`, and takes the order statistic of their
/// changes, in the sup norm and in the 1-norm. `values` are the function's on the lattice; it gets records sorted by
/// themselves, as a window keeps them.
///
/// Under either adjacency the change is the larger of that by replacing a record and of that by leaving it out: a window that
/// keeps so many records may exchange one under add-remove, and under replace-one values may become invalid.
///
/// # Errors
///
/// If `records` is 0, or a value is not finite.
pub fn sample_sensitivity<R: Rng>(
    plan: &SamplingPlan,
    records: u32,
    adjacency: Adjacency,
    values: impl Fn(&[Record]) -> Vec<f64>,
    mut draw: impl FnMut(&mut R) -> Record,
    rng: &mut R,
) -> Result<SampledSensitivity, TargetError> {
    if records == 0 {
        return Err(SamplerError::NoRecords.into());
    }
    plan.sampled_statistic(records, adjacency, || {
        let common: Vec<Record> = (1..records).map(|_| draw(rng)).collect();
        let one = values(&sorted_with(&common, Some(draw(rng))));
        let other = values(&sorted_with(&common, Some(draw(rng))));
        let without = values(&sorted_with(&common, None));
        let replaced = value_distances(&one, &other);
        let removed = value_distances(&one, &without);
        [0, 1].map(|norm| larger_or_nan(replaced[norm], removed[norm]))
    })
}

fn sorted_with(common: &[Record], record: Option<Record>) -> Vec<Record> {
    let mut records: Vec<Record> = common.iter().copied().chain(record).collect();
    records.sort_unstable();
    records
}

/// The statistic of [`sample_sensitivity`] for a sum over records, whose change under add-remove is what one record adds, whatever the others are.
///
/// For [`super::expression::Formula::with_clipped_ranges`]: a record is then clipped with probability at most `gamma`, and since no
/// record adds more, the release is (epsilon, 0)-differentially private without any word on the prior.
///
/// # Errors
///
/// If a value is not finite.
pub fn sample_summand<R: Rng>(
    plan: &SamplingPlan,
    values: impl Fn(&[Record]) -> Vec<f64>,
    mut draw: impl FnMut(&mut R) -> Record,
    rng: &mut R,
) -> Result<SampledSensitivity, TargetError> {
    plan.sampled_statistic(1, Adjacency::AddRemove, || {
        let added = values(&[draw(rng)]);
        value_distances(&added, &vec![0.0; added.len()])
    })
}

impl SamplingPlan {
    /// The order statistic of as many changes as planned.
    fn sampled_statistic(
        &self,
        records: u32,
        adjacency: Adjacency,
        mut change: impl FnMut() -> [f64; 2],
    ) -> Result<SampledSensitivity, TargetError> {
        let changes: Vec<[f64; 2]> = (0..self.samples).map(|_| change()).collect();
        let [sup, sum] = [0, 1].map(|norm| self.order_statistic(&changes, norm));
        if !(sup.is_finite() && sum.is_finite()) {
            return Err(SamplerError::NotFinite.into());
        }
        let SamplingPlan {
            gamma,
            samples,
            order,
            rho,
        } = *self;
        Ok(SampledSensitivity {
            sup,
            sum,
            gamma,
            samples,
            order,
            rho,
            records,
            adjacency,
        })
    }

    /// The `k`-th smallest change in one of the two norms; not a number where there are fewer changes.
    fn order_statistic(&self, changes: &[[f64; 2]], norm: usize) -> f64 {
        let mut sorted: Vec<f64> = changes.iter().map(|change| change[norm]).collect();
        sorted.sort_by(f64::total_cmp);
        let place = (self.order as usize).checked_sub(1);
        place
            .and_then(|place| sorted.get(place))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// Distances in the sup norm and the 1-norm; not a number where a value is none.
fn value_distances(one: &[f64], other: &[f64]) -> [f64; 2] {
    let mut sup = 0.0;
    let mut sum = 0.0;
    for (one, other) in one.iter().zip(other) {
        let change = (one - other).abs();
        sup = larger_or_nan(change, sup);
        sum += change;
    }
    [sup, sum]
}

/// The larger of two numbers; not a number where one of them is none.
fn larger_or_nan(one: f64, other: f64) -> f64 {
    if one > other || one.is_nan() {
        one
    } else {
        other
    }
}
