//! Any target with a sensitivity that was sampled on a public prior: random differential privacy ([`super::sampler`] says
//! what that is, and why the order statistic covers).
//!
//! Values are whole numbers of grid units, so changes are sampled and released exactly, without floating point.
//!
//! # What holds whatever the records are
//!
//! Values are clipped to a public range before they are compared or released, so no record, likely or not, changes one by
//! more than the range is wide. Clipping brings no two values further apart, so a bound that is proved for the target still
//! holds as well; the noise is only not made for it ([`ClippedTarget::worst_change`]).

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha20Rng;

use super::sampler::{RecordPrior, SamplingPlan};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::sampler::SamplerError;
use bernstream_release::target::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::Shape;

/// The farthest end of a range, in grid units: differences over a lattice fit `u128`.
const FARTHEST: i128 = 1 << 62;

/// A target whose values are clipped to a public range.
#[derive(Clone, Debug)]
pub struct ClippedTarget {
    target: Arc<dyn Target>,
    /// Least and most value, in grid units.
    range: [i128; 2],
}

impl ClippedTarget {
    /// `range` in grid units.
    ///
    /// # Errors
    ///
    /// If the ends of the range do not ascend, or are beyond `2^62` grid units.
    pub fn new(
        target: Arc<dyn Target>,
        range: [i128; 2],
    ) -> Result<Self, bernstream_release::TargetError> {
        let [lo, hi] = range;
        if lo < hi && lo >= -FARTHEST && hi <= FARTHEST {
            Ok(ClippedTarget { target, range })
        } else {
            Err(SamplerError::Range.into())
        }
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let [lo, hi] = self.range;
        self.target.evaluate(accumulator).clamped(lo, hi)
    }

    /// The most that any record changes the values in the 1-norm: by the range, or by what is proved where that is less.
    pub fn worst_change(&self, adjacency: Adjacency) -> u128 {
        let by_range = self.range[1]
            .abs_diff(self.range[0])
            .saturating_mul(self.target.shape().value_count() as u128);
        let proved = self
            .target
            .sensitivity(adjacency, 1)
            .map_or(u128::MAX, |proved| u128::from(proved.0));
        by_range.min(proved)
    }

    pub fn target(&self) -> &dyn Target {
        &*self.target
    }
}

/// The distance of two neighbours, in grid units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledChange {
    /// Change of any one value.
    pub sup: u64,
    /// Change in the 1-norm.
    pub sum: u64,
}

impl SampledChange {
    fn between(one: &Exact, other: &Exact) -> Self {
        SampledChange {
            sup: u64::try_from(one.sup_distance(other)).unwrap_or(u64::MAX),
            sum: u64::try_from(one.sum_distance(other)).unwrap_or(u64::MAX),
        }
    }

    fn max(self, other: Self) -> Self {
        SampledChange {
            sup: self.sup.max(other.sup),
            sum: self.sum.max(other.sum),
        }
    }
}

/// Pairs of neighbouring windows of `records` records from a public prior. No two pairs share a random number.
#[derive(Clone, Debug)]
pub struct NeighbouringWindows {
    pub target: ClippedTarget,
    pub prior: RecordPrior,
    pub records: u32,
    pub adjacency: Adjacency,
    pub seed: u64,
}

impl NeighbouringWindows {
    /// Distance of the pair of this number.
    ///
    /// Under add-remove one of its windows has a record and the other has not; a target that keeps so many records and no more
    /// may then exchange it for another. Under replace-one the record has other values, which may be invalid: then it is not
    /// there. In both cases the larger change counts.
    pub fn pair_change(&self, pair: u32) -> SampledChange {
        let spec = self.target.target.accumulator();
        let mut rng = ChaCha20Rng::from_seed(self.pair_seed(pair));
        let limit = match spec {
            AccumulatorSpec::Records { most } => Some(most),
            _ => None,
        };
        let records = self.records.min(limit.unwrap_or(u32::MAX));
        let common: Vec<Record> = (1..records)
            .map(|_| self.prior.draw_record_for(&spec, &mut rng))
            .collect();
        let one = self.prior.draw_record_for(&spec, &mut rng);
        let other = self.prior.draw_record_for(&spec, &mut rng);
        let with = self.evaluate(&common, Some(one));
        let removed = SampledChange::between(&with, &self.evaluate(&common, None));
        if self.adjacency == Adjacency::AddRemove && limit.is_none() {
            return removed;
        }
        let replaced = SampledChange::between(&with, &self.evaluate(&common, Some(other)));
        removed.max(replaced)
    }

    /// The values of a window of these records.
    fn evaluate(&self, common: &[Record], last: Option<Record>) -> Exact {
        let spec = self.target.target.accumulator();
        let records = common.iter().copied().chain(last);
        self.target.evaluate(&spec.filled_accumulator(records))
    }

    fn pair_seed(&self, pair: u32) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&pair.to_le_bytes());
        key
    }
}

impl SamplingPlan {
    /// The `k`-th smallest of the changes of as many pairs as planned, in each norm.
    ///
    /// # Errors
    ///
    /// Where it is 0: noise for that would be none.
    pub fn integer_statistic(
        &self,
        changes: &[SampledChange],
    ) -> Result<SampledChange, bernstream_release::TargetError> {
        let change = SampledChange {
            sup: self.order_statistic_of(changes.iter().map(|change| change.sup).collect())?,
            sum: self.order_statistic_of(changes.iter().map(|change| change.sum).collect())?,
        };
        if change.sum == 0 {
            Err(SamplerError::NothingChanges.into())
        } else {
            Ok(change)
        }
    }

    fn order_statistic_of(&self, mut changes: Vec<u64>) -> Result<u64, SamplerError> {
        if changes.len() != self.samples as usize {
            return Err(SamplerError::Incomplete);
        }
        changes.sort_unstable();
        let place = (self.order as usize).checked_sub(1);
        place
            .and_then(|place| changes.get(place))
            .copied()
            .ok_or(SamplerError::Incomplete)
    }
}

/// A clipped target whose sensitivity is a sampled one. What it says of neighbours is random differential privacy only.
#[derive(Clone, Debug)]
pub struct SampledTarget {
    pub clipped: ClippedTarget,
    pub change: SampledChange,
    pub adjacency: Adjacency,
}

impl SampledTarget {
    fn check_sampled(&self, adjacency: Adjacency, contributions: u32) -> Result<(), SamplerError> {
        if adjacency != self.adjacency {
            return Err(SamplerError::Adjacency);
        }
        if contributions != 1 {
            return Err(SamplerError::Unit);
        }
        Ok(())
    }
}

impl Builtin for SampledTarget {}

impl Target for SampledTarget {
    fn accumulator(&self) -> AccumulatorSpec {
        self.clipped.target.accumulator()
    }

    fn shape(&self) -> Shape {
        self.clipped.target.shape()
    }

    fn unit(&self) -> f64 {
        self.clipped.target.unit()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        self.clipped.evaluate(accumulator)
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, bernstream_release::TargetError> {
        self.check_sampled(adjacency, contributions)?;
        Ok(Sensitivity(self.change.sum))
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, bernstream_release::TargetError> {
        self.check_sampled(adjacency, contributions)?;
        Ok(self.change.sup)
    }

    /// The sensitivity in the 1-norm, for which the failures were counted: `sqrt(D1 S)` would fail wherever one of the two does.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, bernstream_release::TargetError> {
        self.sensitivity(adjacency, contributions)
            .map(|sensitivity| sensitivity.0)
    }
}
