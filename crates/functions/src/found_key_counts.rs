//! Users or records of keys that nobody listed (`docs/proofs/found-keys.md`).
//!
//! # What is released
//!
//! One number a key: its users, or its records where every record is a unit. Which keys are published, and with what noise, is decided by
//! the selection that gets [`Target::candidates`]: so there are no exact values beside them.
//!
//! # Why the sensitivities hold
//!
//! A unit is in at most `max_keys` keys of the window ([`FoundKeyCounting`]), which depend on its own records alone. A unit more or less
//! changes each of them by at most 1: users are counted once, and a record is a unit of its own with one key. So with
//! [`UNIT_GRAINS`] the 1-norm is at most `max_keys` times that, the 2-norm its root times that. A record that is replaced keeps its key, but
//! presence and key are not hidden where keys are found: there is no sensitivity under `replace_one`.

use std::sync::Arc;

use bernstream_noise::{CandidateCounts, Exact};
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{Target, root_rounded_up};
use bernstream_release::window::FoundKeyCounting;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_synopsis::shape::{Basis, KeyBasis, KeyColumn, KeyStatistic, Shape};

/// Natural units of a grid unit: a power of two, so that nothing is rounded.
const GRAIN: f64 = 1.0 / UNIT_GRAINS as f64;

/// The table of one release whose keys nobody listed: all of it is public.
#[derive(Clone, Debug)]
pub struct FoundKeyCounts {
    counting: Arc<FoundKeyCounting>,
    statistic: KeyStatistic,
    most: u32,
}

impl FoundKeyCounts {
    /// A table of one statistic, [`KeyStatistic::Users`] or, where every record is a unit, [`KeyStatistic::Records`], of at most so many
    /// rows.
    pub fn new(counting: FoundKeyCounting, statistic: KeyStatistic, most: u32) -> Self {
        FoundKeyCounts {
            counting: Arc::new(counting),
            statistic,
            most,
        }
    }

    /// Keys of a table that is as large as one can be: as many as can be published, each as long as a key can be, or as its number is.
    fn largest_keys(&self) -> Vec<String> {
        // Every window asks for them: padding by a format takes several times as long.
        let zeros = "0".repeat(self.counting.longest);
        let mut keys = Vec::new();
        for number in 0..self.most {
            let digits = number.to_string();
            let padding = zeros.len().saturating_sub(digits.len());
            keys.push(zeros[..padding].to_owned() + &digits);
        }
        keys
    }
}

impl Builtin for FoundKeyCounts {}

impl Target for FoundKeyCounts {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::FoundKeys(Arc::clone(&self.counting))
    }

    /// The largest table that can be published. Its keys stand for those that are found, which differ from window to window; whoever
    /// describes a table says how they were found.
    fn shape(&self) -> Shape {
        Shape {
            dimensions: 0,
            degree: 1,
            basis: Basis::Keys(KeyBasis {
                keys: self.largest_keys(),
                columns: vec![KeyColumn {
                    statistic: self.statistic,
                    unit: GRAIN,
                }],
                units: None,
                found: None,
            }),
        }
    }

    /// A grid unit is the unit of the noise: the column has a unit of its own ([`KeyColumn::unit`]).
    fn unit(&self) -> f64 {
        1.0
    }

    /// No values: how many there are is secret, so noise cannot simply be added to them. The selection gets [`Target::candidates`] instead.
    fn evaluate(&self, _: &Accumulator) -> Exact {
        Exact::new(Vec::new())
    }

    fn candidates(&self, accumulator: &Accumulator) -> Option<CandidateCounts> {
        let totals = accumulator.found_keys()?;
        Some(CandidateCounts::new(totals.counts.clone(), totals.is_full))
    }

    /// Whatever the cap on the records of a unit is: users are counted once, and a record is a unit of its own.
    fn sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<Sensitivity, TargetError> {
        let of_key = self.sup_sensitivity(adjacency, 1)?;
        // At most 2^44.
        Ok(Sensitivity(of_key * u64::from(self.counting.max_keys)))
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        match adjacency {
            Adjacency::AddRemove => Ok(UNIT_GRAINS),
            Adjacency::ReplaceOne => Err(TargetError::NotReplaceable),
        }
    }

    fn euclidean_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        let of_key = u128::from(self.sup_sensitivity(adjacency, 1)?);
        // At most 2^56.
        let square = of_key * of_key * u128::from(self.counting.max_keys);
        Ok(root_rounded_up(square))
    }

    /// Users or records of any number of keys.
    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        noisy.into_iter().map(|grains| grains * GRAIN).collect()
    }
}
