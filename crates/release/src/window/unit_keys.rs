//! Keys of each unit in a window, for counts by key (`docs/proofs/counts.md`).
//!
//! Of the keys of a unit those of the smallest rank count (a bottom-k sample), and a rank depends on unit and key alone, under the public key
//! of the pipeline. So which keys count does not depend
//! on how the records are spread over partitions and readers, nor on the order in which they come.

use std::collections::{HashMap, HashSet};
use std::hash::Hasher;

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;

use super::accumulator::LABEL;
use super::open::UnitKey;
use bernstream_synopsis::key_quantiles::RankGrid;
use bernstream_synopsis::told_caps::UnitBin;

/// Rules of a release that counts by key. All of it is public.
#[derive(Clone, Debug)]
pub struct KeyCounting {
    /// The declared keys, in their order.
    pub keys: Vec<String>,
    /// Most keys of a unit in a window.
    pub max_keys: u32,
    /// Most records that count of a unit and key, from 1 to [`MOST_RECORDS`].
    pub max_records: u32,
    /// Bounds of the sum of one unit and key, where values are summed so.
    pub sum: Option<UnitSum>,
    /// The squares of the values are summed as well, where variances are told.
    pub keeps_squares: bool,
    /// Places that the mean value of a unit and key counts at, where quantiles are told.
    pub grid: Option<RankGrid>,
    /// Bins that units count in by how many keys they have, before the cap; none where that is not told.
    pub unit_bins: Vec<UnitBin>,
    pub ranks: RankKey,
}

impl KeyCounting {
    /// Most keys of a unit that a window keeps: those that count, or as many as the last bin begins with, if that is more.
    fn kept_keys(&self) -> usize {
        let told = self.unit_bins.last().map_or(0, |last| last.least);
        usize::try_from(self.max_keys.max(told)).unwrap_or(usize::MAX)
    }

    /// Returns whether a window can keep so many keys of a unit that has any.
    pub(super) fn can_keep(&self, keys: usize) -> bool {
        (1..=self.kept_keys()).contains(&keys)
    }

    /// The keys of a unit that count, of those that are kept in the order of their ranks.
    fn counted<'a>(&self, kept: &'a [KeptKey]) -> &'a [KeptKey] {
        let most = usize::try_from(self.max_keys).unwrap_or(usize::MAX);
        kept.get(..most).unwrap_or(kept)
    }
}

/// Most records of a unit and key that can count.
pub const MOST_RECORDS: u32 = 1 << 20;

/// Grains of a record that is divided between the bounds of its value: one for each step of a label, so that sums and means of records that
/// all count are not rounded.
pub const RECORD_GRAINS: u64 = 1 << 31;

/// Bounds of the sum of the values of one unit and key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitSum {
    /// The values at the labels -1 and 1.
    pub value_min: f64,
    pub value_max: f64,
    /// The bounds of the sum, which it is moved to.
    pub min: f64,
    pub max: f64,
}

impl UnitSum {
    /// Steps of the larger bound: a sum is a whole number of steps.
    pub const STEPS: i64 = 1 << 31;

    /// One step in natural units.
    pub fn step(&self) -> f64 {
        self.min.abs().max(self.max.abs()) / UnitSum::STEPS as f64
    }

    /// The bounded sum of the values of a unit and key, in steps: never more than [`UnitSum::STEPS`] either way.
    ///
    /// It is bounded in floats, rounded towards zero, and bounded again as a whole number: its sensitivity rests on the last bound alone.
    fn steps(&self, kept: &KeptKey) -> i64 {
        let middle = f64::midpoint(self.value_min, self.value_max);
        let half = (self.value_max - self.value_min) / 2.0;
        let labels = kept.bounded_labels() as f64 / f64::from(LABEL);
        let sum = middle * f64::from(kept.records) + half * labels;
        let steps = (sum.clamp(self.min, self.max) / self.step()) as i64;
        steps.clamp(-UnitSum::STEPS, UnitSum::STEPS)
    }
}

/// Key of the hash that ranks the keys of a unit: public, so that every process of a deployment ranks alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankKey([u8; 16]);

impl RankKey {
    /// The key of a pipeline: the first half of SHA-256 of its name.
    pub fn for_pipeline(pipeline: &str) -> Self {
        let digest = Sha256::new()
            .chain_update("bernstream keys 1")
            .chain_update(pipeline)
            .finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        RankKey(key)
    }

    /// Hexadecimal digits, to compare keys by.
    pub fn as_hex(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// The rank of a key of a unit: another order of the keys for every unit.
    pub(super) fn rank(&self, unit: &UnitKey, key: &str) -> u64 {
        let mut hash = SipHasher24::new_with_key(&self.0);
        hash.write(&unit.period.micros().to_le_bytes());
        hash.write(&(unit.user.len() as u64).to_le_bytes());
        hash.write(&unit.user);
        hash.write(key.as_bytes());
        hash.finish()
    }
}

/// Square of the upper bound of a value: the sum of `u32::MAX` of them does not wrap.
const SQUARE: u64 = 1 << 32;

/// Square of a value, rounded down: from 0 at the lower bound of the value to [`SQUARE`] at the upper one.
fn square_of(label: i32) -> u64 {
    let above = i64::from(label.clamp(-LABEL, LABEL)) + i64::from(LABEL);
    // From 0 to 2^31, and its square to 2^62.
    above.unsigned_abs().pow(2) >> 30
}

/// Records of one unit and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptKey {
    pub rank: u64,
    pub group: u32,
    /// Their number, which saturates at `u32::MAX`.
    pub records: u32,
    /// The sum of their values as whole numbers from `-LABEL` to `LABEL`, modulo 2^64: it wraps only from 2^33 records on.
    pub labels: i64,
    /// The sum of their squares ([`square_of`]), which only variances need.
    pub squares: u64,
}

impl KeptKey {
    /// The sum of the labels, clamped to what so many records can have.
    fn bounded_labels(&self) -> i64 {
        let most = self.largest_labels();
        self.labels.clamp(-most, most)
    }

    fn largest_labels(&self) -> i64 {
        i64::from(self.records) * i64::from(LABEL)
    }

    fn largest_squares(&self) -> u64 {
        u64::from(self.records) * SQUARE
    }

    /// The grains of so many of its records at the lower end of the value, in the middle and at the upper end: none is negative, and all
    /// together are [`RECORD_GRAINS`] a record. Without squares there are none in the middle.
    fn grains(&self, counting: &KeyCounting, counted: u32) -> [i128; 3] {
        let all = u128::from(counted) * u128::from(RECORD_GRAINS);
        let largest = i128::from(self.largest_labels());
        let above = (i128::from(self.bounded_labels()) + largest).unsigned_abs();
        // At most 2^51 grains times 2^63.
        let mean = all * above / (2 * largest.unsigned_abs()).max(1);
        let [low, middle, high] = if counting.keeps_squares {
            let most = self.largest_squares();
            // At most 2^51 grains times 2^64.
            let square = all * u128::from(self.squares.min(most)) / u128::from(most).max(1);
            // 2 y - 1 <= y^2 <= y, which rounding must not change.
            let square = square.clamp((2 * mean).saturating_sub(all), mean);
            [all + square - 2 * mean, 2 * (mean - square), square]
        } else {
            [all - mean, 0, mean]
        };
        [low, middle, high].map(u128::cast_signed)
    }

    /// The place of the mean of the values: the nearest, of two that are equally near the upper one.
    fn place(&self, grid: RankGrid) -> usize {
        let last = i128::from(grid.places) - 1;
        let all = i128::from(self.largest_labels());
        // From 0 to twice as much, at most 2^63.
        let above = i128::from(self.bounded_labels()) + all;
        let place = (above * last + all) / (2 * all).max(1);
        usize::try_from(place).unwrap_or_default()
    }

    /// Returns whether so many records can have these sums of labels and squares: any once their number has saturated.
    pub fn are_sums_possible(&self) -> bool {
        let are_possible =
            self.labels == self.bounded_labels() && self.squares <= self.largest_squares();
        self.records == u32::MAX || are_possible
    }

    /// Returns whether it comes before another key of its unit.
    pub fn precedes(&self, other: &KeptKey) -> bool {
        (self.rank, self.group) < (other.rank, other.group)
    }
}

/// Exact totals of one key in a closed window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTotals {
    /// Users with a unit in which the key counts, each once.
    pub users: i128,
    /// Records, of each unit at most [`KeyCounting::max_records`].
    pub records: i128,
    /// These records in grains, [`RECORD_GRAINS`] a record, divided between the bounds of the value: `high` has `y = (value - min) / (max - min)` of
    /// them, `low` the rest, and `middle` none. The value of a unit is its mean. With [`KeyCounting::keeps_squares`] `high` has `y^2` of
    /// them, `middle` `2 y (1 - y)` and `low` `(1 - y)^2`, each in the mean over the unit.
    pub low: i128,
    pub middle: i128,
    pub high: i128,
    /// Sums of the units in steps ([`UnitSum`]).
    pub sum: i128,
    /// Units by the place of their mean value ([`RankGrid`]): empty where there are none, or no places.
    pub places: Vec<u64>,
}

impl KeyTotals {
    /// Totals of records that are units of their own; `None` where these are no grains of whole records, or of more than a partition
    /// can have: sums of those that are taken never overflow.
    pub(super) fn of_records([low, middle, high]: [i128; 3]) -> Option<Self> {
        let grains = low.checked_add(middle)?.checked_add(high)?;
        let records = grains / i128::from(RECORD_GRAINS);
        let are_parts = low >= 0 && middle >= 0 && high >= 0;
        let is_whole = are_parts && grains == records * i128::from(RECORD_GRAINS);
        let can_be_read = (1..=i128::from(i64::MAX)).contains(&records);
        (is_whole && can_be_read).then_some(KeyTotals {
            records,
            low,
            middle,
            high,
            ..KeyTotals::default()
        })
    }

    /// Adds a record that is all that its unit has, a user where there are users.
    pub(super) fn add_lone_record(&mut self, counting: &KeyCounting, label: i32) {
        self.users += 1;
        self.add_unit(counting, &KeptKey::of_one_record(0, label));
    }

    /// Adds what a unit has of the key. Grains grow by exactly as many as its counted records have.
    fn add_unit(&mut self, counting: &KeyCounting, kept: &KeptKey) {
        let counted = kept.records.min(counting.max_records);
        let [low, middle, high] = kept.grains(counting, counted);
        self.records += i128::from(counted);
        self.low += low;
        self.middle += middle;
        self.high += high;
        if let Some(sum) = &counting.sum {
            self.sum += i128::from(sum.steps(kept));
        }
        if let Some(grid) = counting.grid {
            self.places.resize(grid.places as usize, 0);
            if let Some(units) = self.places.get_mut(kept.place(grid)) {
                *units += 1;
            }
        }
    }

    /// Gives records that are units of their own their places; `None` unless each has one.
    pub(super) fn with_places(self, places: Vec<u64>) -> Option<Self> {
        let placed: u128 = places.iter().map(|units| u128::from(*units)).sum();
        let is_each = i128::try_from(placed).ok()? == self.records;
        is_each.then_some(KeyTotals { places, ..self })
    }

    fn add_totals(&mut self, other: &KeyTotals) {
        if self.places.len() < other.places.len() {
            self.places.resize(other.places.len(), 0);
        }
        for (ours, theirs) in self.places.iter_mut().zip(&other.places) {
            *ours = ours.saturating_add(*theirs);
        }
        self.users += other.users;
        self.records += other.records;
        self.low += other.low;
        self.middle += other.middle;
        self.high += other.high;
        self.sum += other.sum;
    }
}

/// Exact numbers of a closed window that counts by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedKeys {
    /// The totals of each key.
    pub totals: Vec<KeyTotals>,
    /// Units by how many keys they have, one number for each of [`KeyCounting::unit_bins`].
    pub units: Vec<u64>,
}

impl CountedKeys {
    pub(super) fn new(counting: &KeyCounting) -> Self {
        CountedKeys {
            totals: vec![KeyTotals::default(); counting.keys.len()],
            units: vec![0; counting.unit_bins.len()],
        }
    }

    /// Adds a record that is all that its unit has, in the first key.
    pub(super) fn add_lone_record(&mut self, counting: &KeyCounting, label: i32) {
        if let Some(totals) = self.totals.first_mut() {
            totals.add_lone_record(counting, label);
            self.add_unit_of(counting, 1);
        }
    }

    /// Counts a unit of which so many keys are kept.
    fn add_unit_of(&mut self, counting: &KeyCounting, keys: usize) {
        // One that has more than are kept is in the last bin, which begins there.
        let mut bins = counting.unit_bins.iter();
        if let Some(bin) = bins.position(|bin| keys <= bin.most as usize)
            && let Some(units) = self.units.get_mut(bin)
        {
            *units += 1;
        }
    }
}

/// State of an open window for a release that counts by key.
#[derive(Clone)]
pub(super) enum OpenKeys {
    Users(UnitKeys),
    /// Totals of each key, where every record is a unit.
    Records(Vec<KeyTotals>),
}

/// The keys of each unit that have the smallest ranks so far, in the order of their ranks: those that count come first, and more where it
/// is told how many keys a unit has.
#[derive(Clone)]
pub(super) struct UnitKeys(pub HashMap<UnitKey, Vec<KeptKey>>);

impl OpenKeys {
    pub fn new(counting: &KeyCounting, has_users: bool) -> Self {
        match has_users {
            true => OpenKeys::Users(UnitKeys(HashMap::new())),
            false => OpenKeys::Records(vec![KeyTotals::default(); counting.keys.len()]),
        }
    }

    /// Adds a record that is a unit of its own.
    pub fn add_record(&mut self, counting: &KeyCounting, group: u32, label: i32) {
        let OpenKeys::Records(totals) = self else {
            return;
        };
        let kept = KeptKey::of_one_record(group, label);
        if let Some(totals) = totals.get_mut(group as usize) {
            totals.add_unit(counting, &kept);
        }
    }

    /// Adds a record of a user.
    pub fn add_user_record(
        &mut self,
        counting: &KeyCounting,
        unit: &UnitKey,
        group: u32,
        label: i32,
    ) {
        if let OpenKeys::Users(units) = self {
            units.add_record(counting, unit, group, label);
        }
    }

    /// Adds what another reader has of other records.
    pub fn join_keys(&mut self, counting: &KeyCounting, other: OpenKeys) {
        match (self, other) {
            (OpenKeys::Users(ours), OpenKeys::Users(theirs)) => ours.join_units(counting, theirs),
            (OpenKeys::Records(ours), OpenKeys::Records(theirs)) => {
                for (ours, theirs) in ours.iter_mut().zip(&theirs) {
                    ours.add_totals(theirs);
                }
            }
            _ => {}
        }
    }

    /// The numbers of the window, with the caps applied.
    pub fn counted_keys(self, counting: &KeyCounting) -> CountedKeys {
        match self {
            OpenKeys::Users(units) => units.counted_keys(counting),
            OpenKeys::Records(totals) => CountedKeys {
                totals,
                ..CountedKeys::new(counting)
            },
        }
    }
}

impl UnitKeys {
    fn add_record(&mut self, counting: &KeyCounting, unit: &UnitKey, group: u32, label: i32) {
        let added = KeptKey::of_one_record(group, label);
        let Some(kept) = self.0.get_mut(unit) else {
            let mut kept = Vec::with_capacity(1);
            kept.extend(added.ranked(counting, unit));
            self.0.insert(unit.clone(), kept);
            return;
        };
        // Most records are of a key that the unit has already, which needs no rank.
        if let Some(known) = kept.iter_mut().find(|known| known.group == group) {
            known.add(&added);
        } else if let Some(added) = added.ranked(counting, unit) {
            insert_by_rank(kept, counting, added);
        }
    }

    fn join_units(&mut self, counting: &KeyCounting, other: UnitKeys) {
        for (unit, kept) in other.0 {
            let known = self.0.entry(unit).or_default();
            for other in kept {
                match known.iter_mut().find(|known| known.group == other.group) {
                    Some(known) => known.add(&other),
                    None => insert_by_rank(known, counting, other),
                }
            }
        }
    }

    fn counted_keys(self, counting: &KeyCounting) -> CountedKeys {
        let UnitKeys(units) = self;
        let mut counted = CountedKeys::new(counting);
        for kept in units.values() {
            counted.add_unit_of(counting, kept.len());
            for kept in counting.counted(kept) {
                if let Some(totals) = counted.totals.get_mut(kept.group as usize) {
                    totals.add_unit(counting, kept);
                }
            }
        }
        count_users(counting, &units, &mut counted.totals);
        counted
    }
}

impl KeptKey {
    /// A record that is a unit of its own, which needs no rank.
    fn of_one_record(group: u32, label: i32) -> Self {
        KeptKey {
            rank: 0,
            group,
            records: 1,
            labels: i64::from(label),
            squares: square_of(label),
        }
    }

    /// Adds the rank that the key has among those of a unit; `None` where there is no such key, or no record.
    pub fn ranked(self, counting: &KeyCounting, unit: &UnitKey) -> Option<Self> {
        let key = counting.keys.get(self.group as usize)?;
        (self.records > 0).then(|| KeptKey {
            rank: counting.ranks.rank(unit, key),
            ..self
        })
    }

    fn add(&mut self, other: &KeptKey) {
        self.records = self.records.saturating_add(other.records);
        self.labels = self.labels.wrapping_add(other.labels);
        self.squares = self.squares.wrapping_add(other.squares);
    }
}

/// Keeps a key in its place by rank, and drops the last one where there are too many.
fn insert_by_rank(kept: &mut Vec<KeptKey>, counting: &KeyCounting, added: KeptKey) {
    let place = kept.partition_point(|other| other.precedes(&added));
    let most = counting.kept_keys();
    if place < most {
        kept.truncate(most - 1);
        kept.insert(place, added);
    }
}

/// Counts each user once for a key, in however many of its units the key counts.
fn count_users(
    counting: &KeyCounting,
    units: &HashMap<UnitKey, Vec<KeptKey>>,
    totals: &mut [KeyTotals],
) {
    let has_one_period = has_one_period(units);
    let mut counted = HashSet::new();
    for (unit, kept) in units {
        for kept in counting.counted(kept) {
            let user_and_key = UserAndKey {
                user: &unit.user,
                group: kept.group,
            };
            // Within one period a user is one unit.
            let is_first = has_one_period || counted.insert(user_and_key);
            if is_first && let Some(totals) = totals.get_mut(kept.group as usize) {
                totals.users += 1;
            }
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct UserAndKey<'a> {
    user: &'a [u8],
    group: u32,
}

/// Returns whether all units are of one period.
pub(super) fn has_one_period<K>(units: &HashMap<UnitKey, Vec<K>>) -> bool {
    let mut periods = units.keys().map(|unit| unit.period);
    let first = periods.next();
    periods.all(|period| Some(period) == first)
}
