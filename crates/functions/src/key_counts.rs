//! Users, records and sums of values for each of many keys (`docs/proofs/counts.md`), and counts of ranges of a value, of which
//! quantiles are read (`docs/proofs/quantiles.md`).
//!
//! # What is released
//!
//! For each statistic a whole number of steps for each key: users, records, records at both ends of a value in grains, with those
//! between where variances are told, or bounded sums of users. All get noise of one scale, and a step of a statistic is as many grid units as its part of the price asks for: under
//! Laplace noise in proportion to its part, under Gaussian noise to the root of it. That is the same as noise of its own for each statistic
//! at its part of the price.
//!
//! # Why the sensitivities hold
//!
//! A unit is in at most `max_keys` keys of the window ([`KeyCounting`]), and what it has there depends on its own records alone. A
//! unit more or less changes in each of them users by at most 1, records by at most `max_records`, the grains of a value together
//! by [`RECORD_GRAINS`] times that, and a bounded sum by [`UnitSum::STEPS`](bernstream_release::window::UnitSum::STEPS). So with `g_i` the grid units
//! of the largest change of statistic `i`, the 1-norm is at most `max_keys sum_i g_i`, the 2-norm `sqrt(max_keys sum_i g_i^2)`: grains are
//! not negative, so their 2-norm is no larger than their sum. Nothing is rounded. A record that is replaced stays in its key: it
//! may become valid, which changes its records by 1, or move its value, which takes the grains of one record away and adds as many, `2` records in the 1-norm and `sqrt
//! 2` in the 2-norm. Users and bounded sums have no sensitivity then.
//!
//! Numbers of units by how many keys they have, before the cap, change by 1 in one bin, whatever the unit has: its change is added once, and
//! not `max_keys` times. They follow the columns, and have noise of the same scale.
//!
//! In a key a unit counts at one place, and in the block of that place: 1 each, 2 in the 1-norm and `sqrt 2` in the 2-norm. A record that
//! is replaced leaves one place and block and comes to another: twice as many counts change by 1.

use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{Target, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::window::{KeyCounting, KeyTotals, RECORD_GRAINS, UnitSum};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::law::Norm;
use bernstream_synopsis::shape::{Basis, KeyBasis, KeyColumn, KeyStatistic, Shape};
use bernstream_synopsis::told_caps::UnitCounts;
use std::sync::Arc;

/// Grid units of the whole price, or more: so fine that no statistic with a tenth of the price or more is rounded by more than 5 parts in a
/// million of its noise.
const UNITS: f64 = (1_u64 << 40) as f64;

/// Statistic of each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedStatistic {
    Users,
    Records,
    /// Records, sum and mean of the values, and their variance where squares are kept.
    Values,
    /// Sum of the values, bounded for each user.
    Sums,
    /// Units by ranges of their mean value, for quantiles.
    Ranges,
    /// Units by how many keys they have, before the cap: of the whole table, not of a key.
    Caps,
}

impl CountedStatistic {
    /// Returns whether the numbers of several windows add up to one of all of them, the caps of a unit in each window by itself.
    fn adds_up(self) -> bool {
        matches!(
            self,
            CountedStatistic::Records | CountedStatistic::Values | CountedStatistic::Sums
        )
    }
}

/// A statistic, and its part of the price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatisticShare {
    pub statistic: CountedStatistic,
    /// Above 0; of all statistics together 1.
    pub part: f64,
}

/// The table by key of one release: all of it is public.
#[derive(Clone, Debug)]
pub struct KeyCounts {
    counting: Arc<KeyCounting>,
    statistics: Vec<ScaledStatistic>,
}

/// A statistic on the grid of the noise.
#[derive(Clone, Copy, Debug)]
struct ScaledStatistic {
    statistic: CountedStatistic,
    /// Grid units of a step.
    weight: u64,
    /// Steps of the largest change by a unit in one key.
    change: u64,
}

impl KeyCounts {
    /// Statistics with these parts of the price, for noise that is made for changes in `norm`.
    ///
    /// # Errors
    ///
    /// If a part is so small that its statistic has more noise than can be drawn.
    pub fn new(
        counting: KeyCounting,
        shares: &[StatisticShare],
        norm: Norm,
    ) -> Result<Self, TargetError> {
        let mut statistics = Vec::with_capacity(shares.len());
        // The statistic with the largest steps has a whole number of units for each: only those with smaller ones are rounded.
        let mut coarsest = 1.0_f64;
        for share in shares {
            coarsest = coarsest.max(
                largest_change(share.statistic, &counting) as f64
                    / relative(share, &counting, norm),
            );
        }
        let units = coarsest * (UNITS / coarsest).max(1.0).ceil();
        for share in shares {
            let change = largest_change(share.statistic, &counting);
            let weight = (units * relative(share, &counting, norm) / change as f64).round();
            if !(1.0..=UNITS * UNITS.sqrt()).contains(&weight) {
                return Err(TargetError::Contributions {
                    contributions: counting.max_records,
                });
            }
            statistics.push(ScaledStatistic {
                statistic: share.statistic,
                weight: weight as u64,
                change,
            });
        }
        Ok(KeyCounts {
            counting: Arc::new(counting),
            statistics,
        })
    }

    fn columns(&self) -> Vec<KeyColumn> {
        let mut columns = Vec::new();
        for scaled in &self.statistics {
            let unit = self.step(scaled.statistic) / scaled.weight as f64;
            for statistic in self.column_statistics(scaled.statistic) {
                columns.push(KeyColumn { statistic, unit });
            }
        }
        columns
    }

    /// A step of a statistic in natural units.
    fn step(&self, statistic: CountedStatistic) -> f64 {
        match statistic {
            CountedStatistic::Users
            | CountedStatistic::Records
            | CountedStatistic::Ranges
            | CountedStatistic::Caps => 1.0,
            CountedStatistic::Values => 1.0 / RECORD_GRAINS as f64,
            CountedStatistic::Sums => self.counting.sum.as_ref().map_or(1.0, UnitSum::step),
        }
    }

    fn column_statistics(&self, statistic: CountedStatistic) -> Vec<KeyStatistic> {
        match statistic {
            CountedStatistic::Users => vec![KeyStatistic::Users],
            CountedStatistic::Records => vec![KeyStatistic::Records],
            CountedStatistic::Values if self.counting.keeps_squares => {
                vec![KeyStatistic::Low, KeyStatistic::Middle, KeyStatistic::High]
            }
            CountedStatistic::Values => vec![KeyStatistic::Low, KeyStatistic::High],
            CountedStatistic::Sums => vec![KeyStatistic::Sum],
            CountedStatistic::Caps => Vec::new(),
            CountedStatistic::Ranges => {
                let ranges = self.counting.grid.map(|grid| grid.ranges());
                ranges
                    .unwrap_or_default()
                    .into_iter()
                    .map(KeyStatistic::Range)
                    .collect()
            }
        }
    }
}

/// The part of the grid that the largest change in a key gets. Numbers of units change once for all keys of a unit, so that their change may
/// be larger at the same price.
fn relative(share: &StatisticShare, counting: &KeyCounting, norm: Norm) -> f64 {
    let part = match share.statistic {
        CountedStatistic::Caps => share.part * f64::from(counting.max_keys),
        _ => share.part,
    };
    match norm {
        Norm::Two => part.sqrt(),
        Norm::One | Norm::Sup => part,
    }
}

/// Steps of the largest change of a statistic by a unit in one key.
fn largest_change(statistic: CountedStatistic, counting: &KeyCounting) -> u64 {
    let records = u64::from(counting.max_records);
    match statistic {
        CountedStatistic::Users | CountedStatistic::Ranges | CountedStatistic::Caps => 1,
        CountedStatistic::Records => records,
        CountedStatistic::Values => records * RECORD_GRAINS,
        CountedStatistic::Sums => UnitSum::STEPS.unsigned_abs(),
    }
}

/// The exact number of steps of a column and key.
fn steps_of(statistic: KeyStatistic, totals: &KeyTotals) -> i128 {
    match statistic {
        KeyStatistic::Users => totals.users,
        KeyStatistic::Records => totals.records,
        KeyStatistic::Low => totals.low,
        KeyStatistic::Middle => totals.middle,
        KeyStatistic::High => totals.high,
        KeyStatistic::Sum => totals.sum,
        KeyStatistic::Range(range) => {
            let places = totals.places.get(range.from as usize..range.to as usize);
            places
                .unwrap_or_default()
                .iter()
                .map(|units| i128::from(*units))
                .sum()
        }
    }
}

impl ScaledStatistic {
    /// Grid units of the largest change in one key, in the 1-norm and in the sup norm.
    fn grid_change(&self) -> u128 {
        u128::from(self.weight) * u128::from(self.change)
    }

    /// Number of columns that change by as much as that: of a value that is replaced two, as if all grains of a record went from one to another; of counts of ranges one of each of `levels`,
    /// and two where a value is replaced.
    fn changed_columns(&self, adjacency: Adjacency, levels: u32) -> Result<u128, TargetError> {
        match (adjacency, self.statistic) {
            (Adjacency::AddRemove, CountedStatistic::Ranges) => Ok(levels.into()),
            (Adjacency::ReplaceOne, CountedStatistic::Ranges) => Ok(2 * u128::from(levels)),
            (Adjacency::AddRemove, _) | (Adjacency::ReplaceOne, CountedStatistic::Records) => Ok(1),
            (Adjacency::ReplaceOne, CountedStatistic::Values) => Ok(2),
            (
                Adjacency::ReplaceOne,
                CountedStatistic::Users | CountedStatistic::Sums | CountedStatistic::Caps,
            ) => Err(TargetError::NotReplaceable),
        }
    }

    /// Number of keys that a unit changes it in. A unit is in one bin, however many keys it has.
    fn changed_keys(&self, counting: &KeyCounting) -> u128 {
        match self.statistic {
            CountedStatistic::Caps => 1,
            _ => counting.max_keys.into(),
        }
    }
}

impl Builtin for KeyCounts {}

impl Target for KeyCounts {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Keys(Arc::clone(&self.counting))
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: 0,
            degree: 1,
            basis: Basis::Keys(KeyBasis {
                found: None,
                keys: self.counting.keys.clone(),
                columns: self.columns(),
                units: self.told_units(),
            }),
        }
    }

    /// A grid unit is the unit of the noise: each column has a unit of its own ([`KeyColumn::unit`]).
    fn unit(&self) -> f64 {
        1.0
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let totals = accumulator.key_totals();
        let mut values = Vec::new();
        for scaled in &self.statistics {
            for statistic in self.column_statistics(scaled.statistic) {
                for totals in totals {
                    values.push(steps_of(statistic, totals).saturating_mul(scaled.weight.into()));
                }
            }
        }
        if let Some(weight) = self.weight_of_units() {
            for units in accumulator.unit_counts() {
                values.push(i128::from(*units).saturating_mul(weight.into()));
            }
        }
        Exact::new(values)
    }

    /// Records and sums add up; users do not, since a user of two windows is one user of both.
    fn adds_up(&self) -> bool {
        self.statistics
            .iter()
            .all(|scaled| scaled.statistic.adds_up())
    }

    /// Whatever the cap on the records of a unit is: keys and records of a key have caps of their own.
    fn sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<Sensitivity, TargetError> {
        let mut units = 0;
        for scaled in &self.statistics {
            let columns = scaled.changed_columns(adjacency, self.levels())?;
            units += scaled.grid_change() * columns * scaled.changed_keys(&self.counting);
        }
        match u64::try_from(units) {
            Ok(units) => Ok(Sensitivity(units)),
            Err(_) => Err(self.too_large()),
        }
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        let mut largest = 0;
        for scaled in &self.statistics {
            scaled.changed_columns(adjacency, self.levels())?;
            largest = largest.max(scaled.grid_change());
        }
        u64::try_from(largest).map_err(|_| self.too_large())
    }

    fn euclidean_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        let mut squares: u128 = 0;
        for scaled in &self.statistics {
            let columns = scaled.changed_columns(adjacency, self.levels())?;
            let square = scaled.grid_change().checked_pow(2);
            let changed = columns * scaled.changed_keys(&self.counting);
            let square = square.and_then(|square| square.checked_mul(changed));
            let sum = square.and_then(|square| squares.checked_add(square));
            squares = sum.ok_or_else(|| self.too_large())?;
        }
        Ok(root_rounded_up(squares))
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        let rows = self.counting.keys.len().max(1);
        let mut published = noisy;
        let columns = self.columns();
        let of_units = published.get_mut(rows * columns.len()..);
        if let (Some(weight), Some(units)) = (self.weight_of_units(), of_units) {
            for value in units {
                *value *= 1.0 / weight as f64;
            }
        }
        for (column, values) in columns.iter().zip(published.chunks_mut(rows)) {
            for value in values {
                *value *= column.unit;
            }
        }
        published
    }
}

impl KeyCounts {
    /// Number of counts of ranges that a value is in.
    fn levels(&self) -> u32 {
        self.counting.grid.map_or(0, |grid| grid.levels())
    }

    /// Grid units of a unit in the numbers of units; `None` where they are not told.
    fn weight_of_units(&self) -> Option<u64> {
        let mut statistics = self.statistics.iter();
        let scaled = statistics.find(|scaled| scaled.statistic == CountedStatistic::Caps)?;
        Some(scaled.weight)
    }

    fn told_units(&self) -> Option<UnitCounts> {
        self.weight_of_units().map(|weight| UnitCounts {
            bins: self.counting.unit_bins.clone(),
            unit: 1.0 / weight as f64,
            packed: String::new(),
        })
    }

    fn too_large(&self) -> TargetError {
        TargetError::Contributions {
            contributions: self.counting.max_records,
        }
    }
}
