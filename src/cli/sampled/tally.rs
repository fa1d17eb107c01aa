//! How many records of a sample are of use to the releases, by the public rules alone.

use std::collections::BTreeMap;

use arrow_array::Array;

use bernstream_config::WorkerSettings;
use bernstream_release::source::Batch;
use bernstream_release::window::{KeyGroups, LONGEST_UNIT, RecordLabel, ReleaseInput, WindowRules};
use bernstream_synopsis::clock::Timestamp;

/// Number of different keys that are counted and not listed. Those that come later are none of the commonest, most often.
const MOST_KEYS: usize = 10_000;

/// Numbers of records of a sample that are of use. Counts without noise.
pub struct SampleTally<'a> {
    rules: &'a WindowRules,
    keys: Option<KeyGroups>,
    pub records: u64,
    pub in_window: u64,
    /// Records in a window that came before its cutoff.
    pub in_time: u64,
    pub times: Option<EventTimes>,
    /// Records that count under a key, listed or one that can be found, and those of them whose key has a part that stands for what is not
    /// listed.
    pub with_listed_key: u64,
    pub under_other: u64,
    /// Number of records with each key that is not listed.
    unlisted: BTreeMap<Vec<u8>, u64>,
    pub releases: Vec<ReleaseTally<'a>>,
}

/// The first and the last event time.
#[derive(Clone, Copy)]
pub struct EventTimes {
    pub first: Timestamp,
    pub last: Timestamp,
}

/// Numbers of records of a sample that one release can use.
pub struct ReleaseTally<'a> {
    pub name: &'a str,
    pub form: ReleaseInput,
    /// Records that have all values, and the user.
    pub complete: u64,
    /// Complete records inside the domain, and those exactly at one of its ends.
    pub inside: u64,
    pub at_ends: u64,
}

/// Position of the values of a record.
enum DomainPosition {
    Inside,
    AtEnd,
    Outside,
}

/// A key that is not listed, and how many records have it.
pub struct UnlistedKey<'a> {
    pub key: &'a [u8],
    pub records: u64,
}

impl<'a> SampleTally<'a> {
    pub fn new(settings: &'a WorkerSettings) -> Self {
        let releases = settings.releases.iter().map(|release| ReleaseTally {
            name: &release.name,
            form: settings.release_input(release),
            complete: 0,
            inside: 0,
            at_ends: 0,
        });
        SampleTally {
            rules: &settings.windows,
            keys: KeyGroups::of_rules(&settings.windows),
            records: 0,
            in_window: 0,
            in_time: 0,
            times: None,
            with_listed_key: 0,
            under_other: 0,
            unlisted: BTreeMap::new(),
            releases: releases.collect(),
        }
    }

    pub fn count(&mut self, batch: &Batch) {
        self.records += batch.times.len() as u64;
        for time in batch.times.iter().flatten().map(Timestamp::from_micros) {
            if self.rules.has_window(time, batch.message_time) {
                self.in_window += 1;
                self.in_time += u64::from(self.is_in_time(time, batch.message_time));
            }
            let times = self.times.get_or_insert(EventTimes {
                first: time,
                last: time,
            });
            times.first = times.first.min(time);
            times.last = times.last.max(time);
        }
        self.count_keys(batch);
        for row in 0..batch.times.len() {
            let has_user = self.rules.cap.is_none() || has_user(batch, row);
            for release in self.releases.iter_mut().filter(|_| has_user) {
                release.count(batch, row);
            }
        }
    }

    /// Tells whether a record comes before the cutoff of its window, where none is for the past.
    fn is_in_time(&self, time: Timestamp, message: Option<Timestamp>) -> bool {
        let cutoff = self
            .rules
            .window_cutoff(self.rules.grid.span_of(time), None);
        message.is_none_or(|message| message < cutoff)
    }

    fn count_keys(&mut self, batch: &Batch) {
        if let (Some(longest), Some(keys)) = (self.rules.longest_key, &batch.keys) {
            for row in 0..batch.times.len() {
                let key = keys.get(row);
                self.with_listed_key +=
                    u64::from(key.is_some_and(|key| can_be_found(&key, longest)));
            }
        }
        let (Some(groups), Some(keys)) = (&self.keys, &batch.keys) else {
            return;
        };
        for (row, group) in groups.groups_of_rows(keys).into_iter().enumerate() {
            let is_other = group.is_some_and(|group| groups.is_of_others(group));
            self.with_listed_key += u64::from(group.is_some());
            self.under_other += u64::from(is_other);
            let Some(key) = keys.get(row).filter(|_| is_other || group.is_none()) else {
                continue;
            };
            if let Some(records) = self.unlisted.get_mut(&*key) {
                *records += 1;
            } else if self.unlisted.len() < MOST_KEYS {
                self.unlisted.insert(key.into_owned(), 1);
            }
        }
    }

    /// Tells whether keys are listed.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Tells whether keys are found, and none is listed.
    pub fn finds_keys(&self) -> bool {
        self.rules.longest_key.is_some()
    }

    /// Tells whether something that is not listed has a name to count under.
    pub fn has_other(&self) -> bool {
        self.rules.other.iter().any(Option::is_some)
    }

    /// The keys that are not listed, the commonest first.
    pub fn commonest_unlisted(&self) -> Vec<UnlistedKey<'_>> {
        let mut all: Vec<_> = self
            .unlisted
            .iter()
            .map(|(key, records)| UnlistedKey {
                key,
                records: *records,
            })
            .collect();
        all.sort_by_key(|unlisted| std::cmp::Reverse(unlisted.records));
        all
    }
}

impl ReleaseTally<'_> {
    fn count(&mut self, batch: &Batch, row: usize) {
        let values: Option<Vec<f64>> = self
            .form
            .columns
            .iter()
            .map(|column| number_at(batch, *column, row))
            .collect();
        let Some(values) = values else { return };
        self.complete += 1;
        match place_of_values(&self.form, &values) {
            DomainPosition::Inside => self.inside += 1,
            DomainPosition::AtEnd => self.at_ends += 1,
            DomainPosition::Outside => {}
        }
    }
}

/// Tells whether a key is one that a record can have where keys are found.
fn can_be_found(key: &[u8], longest: usize) -> bool {
    (1..=longest).contains(&key.len()) && std::str::from_utf8(key).is_ok()
}

/// Tells whether a record has a user who can be told apart.
pub(super) fn has_user(batch: &Batch, row: usize) -> bool {
    batch
        .units
        .as_ref()
        .and_then(|users| users.get(row))
        .is_some_and(|user| user.len() <= LONGEST_UNIT)
}

fn number_at(batch: &Batch, column: usize, row: usize) -> Option<f64> {
    let column = batch.values.get(column)?;
    (row < column.len() && column.is_valid(row))
        .then(|| column.value(row))
        .filter(|value| !value.is_nan())
}

/// Compares the values of the axes and of the label with the domain. A label has no ends of its own: most often it is one of two numbers.
fn place_of_values(form: &ReleaseInput, values: &[f64]) -> DomainPosition {
    let mut is_label = true;
    if let (Some(label), Some(value)) = (&form.label, values.get(form.axes.len())) {
        is_label = match label {
            RecordLabel::Number(axis) => axis.contains(*value),
            label => label.of(*value).is_some(),
        };
    }
    if !is_label {
        return DomainPosition::Outside;
    }
    let mut place = DomainPosition::Inside;
    for (axis, value) in form.axes.iter().zip(values) {
        if !axis.contains(*value) {
            return DomainPosition::Outside;
        }
        if *value <= axis.min || *value >= axis.max {
            place = DomainPosition::AtEnd;
        }
    }
    place
}
