//! Any target with a sensitivity that was sampled on a public prior: random differential privacy ([`super::sampler`] says
//! what that is, and why the order statistic covers).
//!
//! Values are whole numbers of grid units, so changes are sampled and released exactly, without floating point.
//!
//! # What holds whatever the records are
//!
//! Values are clipped to a public range before they are compared or released, so no record, likely or not, changes one by
//! more than the range is wide. Clipping brings no two values further apart, so a bound that is proved for the target still
//! holds as well; the noise is only not made for it ([`Clipped::worst`]).

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha20Rng;

use super::sampler::{Plan, Prior};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::sampler::Error;
use bernstream_release::target::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::Shape;

/// The farthest end of a range, in grid units: differences over a lattice fit `u128`.
const FARTHEST: i128 = 1 << 62;

/// A target whose values are clipped to a public range.
#[derive(Clone, Debug)]
pub struct Clipped {
    target: Arc<dyn Target>,
    /// In grid units.
    range: [i128; 2],
}

impl Clipped {
    /// `range` in grid units.
    ///
    /// # Errors
    ///
    /// If the ends of the range do not ascend, or are beyond `2^62` grid units.
    pub fn new(
        target: Arc<dyn Target>,
        range: [i128; 2],
    ) -> Result<Self, bernstream_release::Error> {
        let [lo, hi] = range;
        if lo < hi && lo >= -FARTHEST && hi <= FARTHEST {
            Ok(Clipped { target, range })
        } else {
            Err(Error::Range.into())
        }
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let [lo, hi] = self.range;
        self.target.evaluate(accumulator).clamped(lo, hi)
    }

    /// The most that any record changes the values in the 1-norm: by the range, or by what is proved where that is less.
    pub fn worst(&self, adjacency: Adjacency) -> u128 {
        let by_range = self.range[1]
            .abs_diff(self.range[0])
            .saturating_mul(self.target.shape().values() as u128);
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
    /// At any one value.
    pub sup: u64,
    /// In the 1-norm.
    pub sum: u64,
}

impl SampledChange {
    fn between(one: &Exact, other: &Exact) -> Self {
        let whole = |units: u128| u64::try_from(units).unwrap_or(u64::MAX);
        SampledChange {
            sup: whole(one.sup_distance(other)),
            sum: whole(one.sum_distance(other)),
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
pub struct Neighbours {
    pub target: Clipped,
    pub prior: Prior,
    pub records: u32,
    pub adjacency: Adjacency,
    pub seed: u64,
}

impl Neighbours {
    /// How far the pair of this number is apart.
    ///
    /// Under add-remove one of its windows has a record and the other has not; a target that keeps so many records and no more
    /// may then exchange it for another. Under replace-one the record has other values, which may be invalid: then it is not
    /// there. In both cases the larger change counts.
    pub fn change(&self, pair: u32) -> SampledChange {
        let spec = self.target.target.accumulator();
        let mut rng = ChaCha20Rng::from_seed(self.key(pair));
        let (kept, is_bounded) = match spec {
            AccumulatorSpec::Records { most } => (self.records.min(most), true),
            _ => (self.records, false),
        };
        let common: Vec<Record> = (1..kept)
            .map(|_| self.prior.draw_for(&spec, &mut rng))
            .collect();
        let [one, other] = [(); 2].map(|()| self.prior.draw_for(&spec, &mut rng));
        let values = |last: Option<Record>| {
            self.target
                .evaluate(&spec.filled(common.iter().copied().chain(last)))
        };
        let with = values(Some(one));
        let replaced = || SampledChange::between(&with, &values(Some(other)));
        let removed = || SampledChange::between(&with, &values(None));
        match (self.adjacency, is_bounded) {
            (Adjacency::AddRemove, false) => removed(),
            (Adjacency::AddRemove, true) | (Adjacency::ReplaceOne, _) => removed().max(replaced()),
        }
    }

    fn key(&self, pair: u32) -> [u8; 32] {
        let mut key = [0; 32];
        for (byte, number) in key.iter_mut().zip(
            self.seed
                .to_le_bytes()
                .into_iter()
                .chain(pair.to_le_bytes()),
        ) {
            *byte = number;
        }
        key
    }
}

impl Plan {
    /// The `k`-th smallest of the changes of as many pairs as planned, in each norm.
    ///
    /// # Errors
    ///
    /// Where it is 0: noise for that would be none.
    pub fn statistic_of(
        &self,
        changes: &[SampledChange],
    ) -> Result<SampledChange, bernstream_release::Error> {
        let smallest = |norm: fn(&SampledChange) -> u64| {
            let mut sorted: Vec<u64> = changes.iter().map(norm).collect();
            sorted.sort_unstable();
            let place = (self.order as usize)
                .checked_sub(1)
                .filter(|_| sorted.len() == self.samples as usize);
            place
                .and_then(|place| sorted.get(place))
                .copied()
                .ok_or(Error::Incomplete)
        };
        let change = SampledChange {
            sup: smallest(|change| change.sup)?,
            sum: smallest(|change| change.sum)?,
        };
        if change.sum == 0 {
            Err(Error::NothingChanges.into())
        } else {
            Ok(change)
        }
    }
}

/// A clipped target whose sensitivity is a sampled one. What it says of neighbours is random differential privacy only.
#[derive(Clone, Debug)]
pub struct SampledTarget {
    pub clipped: Clipped,
    pub change: SampledChange,
    pub adjacency: Adjacency,
}

impl SampledTarget {
    fn allows(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<(), bernstream_release::Error> {
        match (adjacency == self.adjacency, contributions) {
            (true, 1) => Ok(()),
            (true, _) => Err(Error::Unit.into()),
            (false, _) => Err(Error::Adjacency.into()),
        }
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
    ) -> Result<Sensitivity, bernstream_release::Error> {
        self.allows(adjacency, contributions)
            .map(|()| Sensitivity(self.change.sum))
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, bernstream_release::Error> {
        self.allows(adjacency, contributions)
            .map(|()| self.change.sup)
    }

    /// The 1-norm's, for which the failures were counted: `sqrt(D1 S)` would fail wherever one of the two does.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, bernstream_release::Error> {
        self.sensitivity(adjacency, contributions)
            .map(|sensitivity| sensitivity.0)
    }
}
