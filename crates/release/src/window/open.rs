//! State of an open window for one form.

use std::collections::{BinaryHeap, HashMap};

use super::accumulator::{Accumulator, AccumulatorSpec, Record};
use super::chunk::ChunkRecords;
use super::found_keys::OpenFoundKeys;
use super::router::RoutedRow;
use super::rules::{Cap, ReleaseInput, WindowRules};
use super::sum::{self, KeySum};
use super::unit_keys::{KeyCounting, OpenKeys};
use crate::source::Batch;
use bernstream_synopsis::clock::Timestamp;

/// State of one open window for one form.
#[derive(Clone)]
pub(super) enum OpenWindow {
    /// A state for each key.
    Groups(OpenGroups),
    /// Counts by key, whose caps hold over all keys of a unit.
    Keys(OpenKeys),
    /// Counts by key, whose keys nobody listed.
    Found(OpenFoundKeys),
}

impl OpenWindow {
    pub fn new(rules: &WindowRules, spec: &AccumulatorSpec) -> Self {
        match spec {
            AccumulatorSpec::Keys(counting) => {
                OpenWindow::Keys(OpenKeys::new(counting, rules.cap.is_some()))
            }
            AccumulatorSpec::FoundKeys(_) => {
                OpenWindow::Found(OpenFoundKeys::new(rules.cap.is_some()))
            }
            _ => OpenWindow::Groups(OpenGroups::new(rules, spec)),
        }
    }

    /// Adds what another window holds, as if its records had been taken.
    pub fn join_window(&mut self, spec: &AccumulatorSpec, cap: Option<&Cap>, other: OpenWindow) {
        match (self, other) {
            (OpenWindow::Groups(ours), OpenWindow::Groups(theirs)) => {
                ours.join_groups(spec, cap, theirs);
            }
            (OpenWindow::Keys(ours), OpenWindow::Keys(theirs)) => {
                if let AccumulatorSpec::Keys(counting) = spec {
                    ours.join_keys(counting, theirs);
                }
            }
            (OpenWindow::Found(ours), OpenWindow::Found(theirs)) => {
                if let AccumulatorSpec::FoundKeys(counting) = spec {
                    ours.join_found(counting, theirs);
                }
            }
            _ => {}
        }
    }

    /// Takes the rows of a chunk unless the form drops them. All belong to this window, and under a cap each has a user.
    pub fn take_rows(&mut self, form: &ReleaseInput, cap: Option<&Cap>, chunk: &ChunkRows<'_>) {
        match self {
            OpenWindow::Groups(groups) => groups.take_rows(form, cap, chunk),
            OpenWindow::Keys(keys) => {
                if let AccumulatorSpec::Keys(counting) = &form.accumulator {
                    keys.take_rows(counting, cap, chunk);
                }
            }
            OpenWindow::Found(keys) => {
                if let AccumulatorSpec::FoundKeys(counting) = &form.accumulator {
                    keys.take_rows(counting, cap, chunk);
                }
            }
        }
    }

    /// The accumulators, the caps decided: one a declared key, or one of all keys.
    pub fn into_accumulators(self, spec: &AccumulatorSpec) -> Vec<Accumulator> {
        match self {
            OpenWindow::Groups(groups) => groups.into_accumulators(spec),
            OpenWindow::Keys(keys) => match spec {
                AccumulatorSpec::Keys(counting) => {
                    vec![Accumulator::Keys(keys.counted_keys(counting))]
                }
                _ => Vec::new(),
            },
            OpenWindow::Found(keys) => vec![Accumulator::FoundKeys(keys.totals())],
        }
    }
}

impl OpenKeys {
    fn take_rows(&mut self, counting: &KeyCounting, cap: Option<&Cap>, chunk: &ChunkRows<'_>) {
        let mut unit = UnitKey {
            period: Timestamp::from_micros(0),
            user: Vec::new(),
        };
        for routed in chunk.rows {
            let place = routed.row - chunk.start;
            if chunk.records.refusal_of(place).is_some() {
                continue;
            }
            let label = chunk.records.get(place).label;
            let Some(cap) = cap else {
                self.add_record(counting, routed.group, label);
                continue;
            };
            let users = chunk.batch.units.as_ref();
            if let Some(user) = users.and_then(|users| users.get(routed.row)) {
                unit.period = cap.period.span_of(time_of(chunk.batch, routed.row)).start;
                unit.user.clear();
                unit.user.extend_from_slice(user);
                self.add_user_record(counting, &unit, routed.group, label);
            }
        }
    }
}

/// State of one open window for one form, a group for each key.
#[derive(Clone)]
pub(super) struct OpenGroups {
    /// Groups, one a declared key, in the order of `WindowRules::keys`.
    pub groups: Vec<GroupState>,
    /// Records under a cap wait here until the window closes, so that an earlier row that comes later can take a place.
    pub waiting: HashMap<UnitKey, Vec<WaitingRecord>>,
    /// Number of records of a key that wait to be added together.
    room: usize,
}

/// State of an open window for one key.
#[derive(Clone)]
pub(super) enum GroupState {
    /// The first records so far, where a bounded number is kept; the last of them on top.
    First(BinaryHeap<WaitingRecord>),
    Sum(KeySum),
}

/// A user within a period.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnitKey {
    pub period: Timestamp,
    pub user: Vec<u8>,
}

/// A record that may still lose its place under a cap. The derived order is the public order of survival: event time, then rank; what is
/// equal in it is interchangeable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitingRecord {
    pub time: Timestamp,
    rank: u64,
    pub group: u32,
    pub record: Record,
}

/// Rows of a chunk that belong to one window.
pub(super) struct ChunkRows<'a> {
    pub batch: &'a Batch,
    /// The place of the chunk in the batch.
    pub start: usize,
    pub rows: &'a [RoutedRow],
    /// All rows of the chunk as the form keeps them.
    pub records: &'a ChunkRecords,
}

impl OpenGroups {
    pub fn new(rules: &WindowRules, spec: &AccumulatorSpec) -> Self {
        let groups = rules.keys.as_ref().map_or(1, Vec::len);
        let group = match spec {
            AccumulatorSpec::Records { .. } => GroupState::First(BinaryHeap::new()),
            _ => GroupState::Sum(KeySum::default()),
        };
        OpenGroups {
            groups: vec![group; groups],
            waiting: HashMap::new(),
            room: sum::waiting_room(spec, groups),
        }
    }

    /// The accumulators with every waiting record added: the cap is decided now.
    fn into_accumulators(mut self, spec: &AccumulatorSpec) -> Vec<Accumulator> {
        // Integer sums, and the first of several records, do not depend on the order of the map.
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            match spec {
                AccumulatorSpec::UserWeighted(histograms) => self.add_parts(histograms, &waiting),
                _ => {
                    for waiting in waiting {
                        self.add_record(spec, waiting.group, waiting.record, || waiting);
                    }
                }
            }
        }
        let mut accumulators = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            accumulators.push(group.accumulator(spec));
        }
        accumulators
    }

    /// Adds the records of a unit, all of them together as one.
    fn add_parts(&mut self, histograms: &AccumulatorSpec, records: &[WaitingRecord]) {
        for waiting in records {
            if let Some(GroupState::Sum(sum)) = self.groups.get_mut(waiting.group as usize) {
                sum.add_part(histograms, waiting.record, records.len() as u64);
            }
        }
    }

    /// Adds what another window holds; what waits in either waits for the cap of both together.
    fn join_groups(&mut self, spec: &AccumulatorSpec, cap: Option<&Cap>, other: OpenGroups) {
        for (unit, waiting) in other.waiting {
            for waiting in waiting {
                if let Some(cap) = cap {
                    self.queue_for_unit(cap, unit.clone(), waiting);
                }
            }
        }
        for (group, theirs) in (0_u32..).zip(other.groups) {
            match theirs {
                GroupState::Sum(theirs) => {
                    if let Some(GroupState::Sum(ours)) = self.groups.get_mut(group as usize) {
                        ours.join_sum(theirs);
                    }
                }
                GroupState::First(records) => {
                    for waiting in records {
                        self.add_record(spec, group, waiting.record, || waiting);
                    }
                }
            }
        }
    }

    /// Takes the rows of a chunk unless the form drops them. All belong to this window, and under a cap each has a user.
    fn take_rows(&mut self, form: &ReleaseInput, cap: Option<&Cap>, chunk: &ChunkRows<'_>) {
        let spec = &form.accumulator;
        let ChunkRows {
            batch,
            start,
            rows,
            records,
        } = *chunk;
        // Rows of one key that follow one another, of which none is dropped.
        if cap.is_none()
            && let [first, .., last] = rows
            && records.are_all_sound()
            && last.row - first.row == rows.len() - 1
            && let [GroupState::Sum(sum)] = &mut self.groups[..]
        {
            let rows = first.row - start..last.row + 1 - start;
            return sum.add_all(spec, self.room, records, rows);
        }
        for routed in rows {
            let place = routed.row - start;
            if records.refusal_of(place).is_some() {
                continue;
            }
            let record = records.get(place);
            if let Some(cap) = cap {
                if let Some(user) = batch.units.as_ref().and_then(|units| units.get(routed.row)) {
                    let time = time_of(batch, routed.row);
                    self.queue_record(
                        cap,
                        user,
                        WaitingRecord::new(time, user, routed.group, record),
                    );
                }
            } else {
                self.add_record(spec, routed.group, record, || {
                    WaitingRecord::new(time_of(batch, routed.row), &[], routed.group, record)
                });
            }
        }
    }

    /// Queues a record among the earliest of its unit.
    fn queue_record(&mut self, cap: &Cap, user: &[u8], waiting: WaitingRecord) {
        let unit = UnitKey {
            period: cap.period.span_of(waiting.time).start,
            user: user.to_vec(),
        };
        self.queue_for_unit(cap, unit, waiting);
    }

    fn queue_for_unit(&mut self, cap: &Cap, unit: UnitKey, waiting: WaitingRecord) {
        let kept = self.waiting.entry(unit).or_default();
        kept.insert(kept.partition_point(|other| *other < waiting), waiting);
        kept.truncate(usize::try_from(cap.records).unwrap_or(usize::MAX));
    }

    /// Adds a record to its group; `waiting` is that record with its place in the order of survival.
    #[inline]
    fn add_record(
        &mut self,
        spec: &AccumulatorSpec,
        group: u32,
        record: Record,
        waiting: impl FnOnce() -> WaitingRecord,
    ) {
        match self.groups.get_mut(group as usize) {
            Some(GroupState::Sum(sum)) => sum.add(spec, self.room, record),
            Some(GroupState::First(first)) => {
                let AccumulatorSpec::Records { most } = spec else {
                    return;
                };
                let waiting = waiting();
                let is_full = first.len() as u64 >= u64::from(*most);
                if is_full && first.peek().is_none_or(|last| waiting > *last) {
                    return;
                }
                first.push(waiting);
                if is_full {
                    first.pop();
                }
            }
            None => {}
        }
    }
}

impl GroupState {
    pub fn accumulator(self, spec: &AccumulatorSpec) -> Accumulator {
        match self {
            GroupState::Sum(sum) => sum.into_total(spec),
            GroupState::First(records) => {
                spec.filled_accumulator(records.into_iter().map(|waiting| waiting.record))
            }
        }
    }
}

pub(super) fn time_of(batch: &Batch, row: usize) -> Timestamp {
    Timestamp::from_micros(batch.times.values().get(row).copied().unwrap_or_default())
}

impl WaitingRecord {
    /// `user` is empty without a cap.
    pub fn new(time: Timestamp, user: &[u8], group: u32, record: Record) -> Self {
        WaitingRecord {
            time,
            rank: survival_rank(time, user, group, &record),
            group,
            record,
        }
    }
}

/// Rank of a record among those of one event time: those of the smallest count first under a cap or a limit. It is public and follows
/// from the record, its time, the place of its key in the configuration and its user (empty without a cap) alone, for where a record lies
/// in the input depends on what was sent before it. At one time it favours some values, at another others.
pub fn survival_rank(time: Timestamp, user: &[u8], group: u32, record: &Record) -> u64 {
    let mut hash = 0;
    for bytes in user.chunks(8) {
        let mut word = 0;
        for byte in bytes {
            word = word << 8 | u64::from(*byte);
        }
        hash = mixed(hash, word);
    }
    let [x, y, z] = record.place.0;
    let label = record.label.cast_unsigned();
    let numbers = [
        time.micros().cast_unsigned(),
        user.len() as u64,
        group.into(),
        x.into(),
        y.into(),
        z.into(),
        label.into(),
    ];
    numbers.into_iter().fold(hash, mixed)
}

/// A step of a multiplicative hash, with the odd number next to `2^64` over the golden ratio.
fn mixed(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}
