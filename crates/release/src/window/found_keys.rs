//! Keys that nobody listed, in an open window: of each unit those of the smallest ranks, or of all records a number for each key.
//!
//! Names of keys come from records, so whoever sends records chooses how many there are. Units bound them: a unit holds at most as many as
//! count, and a name that no unit holds is freed. Where every record is a unit, a limit bounds them, which does not depend on the order of the
//! records either: nothing is ever evicted, and a part that has come to its limit says only that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::open::{ChunkRows, UnitKey, time_of};
use super::rules::Cap;
use super::unit_keys::{RankKey, has_one_period};
use bernstream_synopsis::clock::Timestamp;

/// Rules of a release that finds its keys. All of it is public.
#[derive(Clone, Debug)]
pub struct FoundKeyCounting {
    /// Most keys of a unit in a window, at least 1; 1 where every record is a unit.
    pub max_keys: u32,
    /// Longest key, in bytes: records with a longer one are dropped, where [`WindowRules::longest_key`](super::WindowRules::longest_key)
    /// says the same.
    pub longest: usize,
    /// Number of different keys, at least 1, at which a part of a window is full, where every record is a unit; `None` for users, whose
    /// units bound them.
    pub limit: Option<u32>,
    pub ranks: RankKey,
}

/// Memory that a key takes beside its name, about: its entry in a map that is half full.
const BESIDE_NAME: u64 = 64;

impl FoundKeyCounting {
    pub(super) fn most_keys(&self) -> usize {
        usize::try_from(self.max_keys).unwrap_or(usize::MAX)
    }

    /// Returns whether so many different keys are too many to be kept.
    pub(super) fn is_full_at(&self, keys: usize) -> bool {
        self.limit.is_some_and(|limit| keys as u64 >= limit.into())
    }

    /// Memory, about, that the names of a window and their numbers take at the most; `None` for users, of whom it is not known how many
    /// there are.
    pub fn most_bytes(&self) -> Option<u64> {
        let of_name = (self.longest as u64).saturating_add(BESIDE_NAME);
        Some(of_name.saturating_mul(self.limit?.into()))
    }
}

/// Exact numbers of a closed window whose keys nobody listed. `Debug` shows none of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FoundKeyTotals {
    /// Users that keep each key, or its records where every record is a unit. A number saturates.
    pub counts: BTreeMap<String, u64>,
    /// There are as many different keys as the limit, or more: then `counts` is empty.
    pub is_full: bool,
}

impl fmt::Debug for FoundKeyTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FoundKeyTotals")
    }
}

/// State of an open window for a release that finds its keys.
#[derive(Clone)]
pub(super) enum OpenFoundKeys {
    Users(FoundUnits),
    /// Where every record is a unit.
    Records(FoundRecords),
}

impl OpenFoundKeys {
    pub fn new(has_users: bool) -> Self {
        match has_users {
            true => OpenFoundKeys::Users(FoundUnits::default()),
            false => OpenFoundKeys::Records(FoundRecords::Counted(HashMap::new())),
        }
    }

    /// Takes the rows of a chunk unless the form drops them. All belong to this window, and under a cap each has a user.
    pub fn take_rows(
        &mut self,
        counting: &FoundKeyCounting,
        cap: Option<&Cap>,
        chunk: &ChunkRows<'_>,
    ) {
        let Some(keys) = &chunk.batch.keys else {
            return;
        };
        let users = chunk.batch.units.as_ref();
        let mut joined = Vec::new();
        let mut unit = UnitKey {
            period: Timestamp::from_micros(0),
            user: Vec::new(),
        };
        for routed in chunk.rows {
            if chunk.records.refusal_of(routed.row - chunk.start).is_some() {
                continue;
            }
            let Some(key) = keys.text_of_row(routed.row, counting.longest, &mut joined) else {
                continue;
            };
            match (&mut *self, cap) {
                (OpenFoundKeys::Users(units), Some(cap)) => {
                    if let Some(user) = users.and_then(|users| users.get(routed.row)) {
                        unit.period = cap.period.span_of(time_of(chunk.batch, routed.row)).start;
                        unit.user.clear();
                        unit.user.extend_from_slice(user);
                        units.add_record(counting, &unit, key);
                    }
                }
                (OpenFoundKeys::Records(records), None) => records.add(counting, key, 1),
                _ => {}
            }
        }
    }

    /// Adds what another reader has of other records.
    pub fn join_found(&mut self, counting: &FoundKeyCounting, other: OpenFoundKeys) {
        match (self, other) {
            (OpenFoundKeys::Users(ours), OpenFoundKeys::Users(theirs)) => {
                ours.join_units(counting, theirs);
            }
            (OpenFoundKeys::Records(ours), OpenFoundKeys::Records(theirs)) => {
                ours.join_records(counting, theirs);
            }
            _ => {}
        }
    }

    /// The numbers of the window, with the caps applied.
    pub fn totals(self) -> FoundKeyTotals {
        match self {
            OpenFoundKeys::Users(units) => units.totals(),
            OpenFoundKeys::Records(records) => records.totals(),
        }
    }
}

/// The keys of each unit that have the smallest ranks so far, in the order of their ranks.
#[derive(Clone, Default)]
pub(super) struct FoundUnits {
    pub units: HashMap<UnitKey, Vec<RankedKey>>,
    /// The names that units hold, each once. Copies of a window share the names, and free those of their units when the last of them closes.
    pub names: HashSet<Arc<str>>,
}

/// A key of a unit.
#[derive(Clone)]
pub(super) struct RankedKey {
    pub rank: u64,
    /// One of [`FoundUnits::names`].
    pub name: Arc<str>,
}

impl RankedKey {
    /// Returns whether it comes before another key of its unit: keys of one rank in the order of their bytes.
    pub fn precedes(&self, rank: u64, name: &str) -> bool {
        (self.rank, &*self.name) < (rank, name)
    }
}

impl FoundUnits {
    fn add_record(&mut self, counting: &FoundKeyCounting, unit: &UnitKey, key: &str) {
        let rank = counting.ranks.rank(unit, key);
        let FoundUnits { units, names } = self;
        match units.get_mut(unit) {
            Some(kept) => keep_smallest(kept, names, counting.most_keys(), rank, key),
            None => {
                let mut kept = Vec::new();
                keep_smallest(&mut kept, names, counting.most_keys(), rank, key);
                units.insert(unit.clone(), kept);
            }
        }
    }

    fn join_units(&mut self, counting: &FoundKeyCounting, other: FoundUnits) {
        let FoundUnits { units, names } = self;
        for (unit, theirs) in other.units {
            let ours = units.entry(unit).or_default();
            for RankedKey { rank, name } in theirs {
                keep_smallest(ours, names, counting.most_keys(), rank, &name);
            }
        }
    }

    fn totals(self) -> FoundKeyTotals {
        let has_one_period = has_one_period(&self.units);
        let mut counted = HashSet::new();
        let mut users: HashMap<&str, u64> = HashMap::with_capacity(self.names.len());
        for (unit, kept) in &self.units {
            for RankedKey { name, .. } in kept {
                let user_and_name = UserAndName {
                    user: &unit.user,
                    name,
                };
                // Within one period a user is one unit.
                if has_one_period || counted.insert(user_and_name) {
                    let users = users.entry(name).or_default();
                    *users = users.saturating_add(1);
                }
            }
        }
        FoundKeyTotals {
            counts: users
                .into_iter()
                .map(|(name, users)| (name.to_owned(), users))
                .collect(),
            is_full: false,
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct UserAndName<'a> {
    user: &'a [u8],
    name: &'a str,
}

/// Keeps a key in its place by rank, unless it is there, and drops the last one where there are too many.
fn keep_smallest(
    kept: &mut Vec<RankedKey>,
    names: &mut HashSet<Arc<str>>,
    most: usize,
    rank: u64,
    name: &str,
) {
    let place = kept.partition_point(|other| other.precedes(rank, name));
    let is_known = kept
        .get(place)
        .is_some_and(|other| other.rank == rank && *other.name == *name);
    if is_known || place >= most {
        return;
    }
    if kept.len() >= most
        && let Some(dropped) = kept.pop()
    {
        free_name(names, dropped.name);
    }
    if kept.len() == kept.capacity() {
        // As vectors grow, but never to more than there can be.
        kept.reserve_exact(kept.len().max(1).min(most - kept.len()));
    }
    let name = shared_name(names, name);
    kept.insert(place, RankedKey { rank, name });
}

/// The one copy of a name.
fn shared_name(names: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let shared: Arc<str> = name.into();
    names.insert(Arc::clone(&shared));
    shared
}

/// Frees a name that a unit has dropped, if no other unit holds it.
fn free_name(names: &mut HashSet<Arc<str>>, dropped: Arc<str>) {
    // The set has one, and this is the other.
    if Arc::strong_count(&dropped) <= 2 {
        names.remove(&*dropped);
    }
}

/// Records of each key, where every record is a unit.
#[derive(Clone)]
pub(super) enum FoundRecords {
    /// Fewer different keys than the limit.
    Counted(HashMap<Box<str>, u64>),
    /// As many as the limit, or more: the window is overfull for certain, and no number of it is ever looked at.
    Full,
}

impl FoundRecords {
    fn add(&mut self, counting: &FoundKeyCounting, key: &str, records: u64) {
        let FoundRecords::Counted(counts) = self else {
            return;
        };
        if let Some(count) = counts.get_mut(key) {
            *count = count.saturating_add(records);
        } else if counting.is_full_at(counts.len() + 1) {
            *self = FoundRecords::Full;
        } else {
            counts.insert(key.into(), records);
        }
    }

    fn join_records(&mut self, counting: &FoundKeyCounting, other: FoundRecords) {
        match other {
            FoundRecords::Counted(theirs) => {
                for (key, records) in theirs {
                    self.add(counting, &key, records);
                }
            }
            FoundRecords::Full => *self = FoundRecords::Full,
        }
    }

    fn totals(self) -> FoundKeyTotals {
        match self {
            FoundRecords::Counted(records) => FoundKeyTotals {
                counts: records
                    .into_iter()
                    .map(|(name, records)| (name.into(), records))
                    .collect(),
                is_full: false,
            },
            FoundRecords::Full => FoundKeyTotals {
                counts: BTreeMap::new(),
                is_full: true,
            },
        }
    }
}
