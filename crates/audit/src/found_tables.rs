//! Tables of keys that nobody listed, of two neighbouring streams: what their exact numbers and the tables before them allow.
//!
//! Which keys a table has depends on noisy numbers, and which noise a key gets on how many keys there are before it. Where both streams
//! have the same keys, and the tables before them the same list, the same random numbers are the same noise: then the tables differ in
//! the keys of the unit alone, by what these changed. Otherwise the noise of the other keys is another one, and what is compared is all
//! but the rows; each table must still be one that its own stream can lead to.

use std::collections::{BTreeMap, BTreeSet};

use bernstream_release::window::FoundKeyTotals;
use bernstream_synopsis::Basis;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::found_keys::{FoundKeys, FoundRow};
use bernstream_synopsis::key_threshold::UNIT_GRAINS;

/// Keys that the tables of a release announced, and until when.
pub(super) type AnnouncedList = BTreeMap<String, Timestamp>;

/// The lists of the two streams, by release.
#[derive(Default)]
pub(super) struct AnnouncedLists(BTreeMap<usize, [AnnouncedList; 2]>);

impl AnnouncedLists {
    /// The keys that are announced for a window with this start, in the two streams.
    pub fn announced_at(&self, release: usize, start: Timestamp) -> [AnnouncedList; 2] {
        let mut lists = self.0.get(&release).cloned().unwrap_or_default();
        for list in &mut lists {
            list.retain(|_, until| *until > start);
        }
        lists
    }

    /// Adds what two tables announce. An overfull window announces nothing anew.
    pub fn add_tables(&mut self, release: usize, tables: [&FoundTable<'_>; 2]) {
        let lists = self.0.entry(release).or_default();
        for (list, table) in lists.iter_mut().zip(tables) {
            if !table.found.is_overfull() {
                let rows = table.rows.iter();
                *list = rows
                    .map(|(key, row)| ((*key).to_owned(), row.about.until))
                    .collect();
            }
        }
    }
}

/// The table of one stream, with the exact numbers behind it and the list before it.
pub(super) struct FoundTable<'a> {
    pub totals: &'a FoundKeyTotals,
    pub announced: &'a AnnouncedList,
    pub found: &'a FoundKeys,
    description: &'a Description,
    rows: BTreeMap<&'a str, TableRow>,
}

/// A row, its number in grid units.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TableRow {
    about: FoundRow,
    count: i128,
}

impl<'a> FoundTable<'a> {
    /// `None` where the synopsis is no table of keys that nobody listed.
    pub fn new(
        totals: &'a FoundKeyTotals,
        announced: &'a AnnouncedList,
        synopsis: &'a Synopsis,
    ) -> Option<Self> {
        let Basis::Keys(basis) = &synopsis.description().basis else {
            return None;
        };
        let found = basis.found.as_ref()?;
        let mut rows = BTreeMap::new();
        let described = basis.keys.iter().zip(&found.rows);
        for ((key, about), value) in described.zip(synopsis.values()) {
            let row = TableRow {
                about: *about,
                count: grid_units(*value),
            };
            rows.insert(key.as_str(), row);
        }
        Some(FoundTable {
            totals,
            announced,
            found,
            description: synopsis.description(),
            rows,
        })
    }

    /// The number of different keys, which is that of the limit where there are too many.
    fn distinct(&self) -> u64 {
        let limit = self.found.overfull.map_or(u64::MAX, |rule| rule.limit);
        match self.totals.is_full {
            true => limit,
            false => (self.totals.counts.len() as u64).min(limit),
        }
    }

    fn exact_count(&self, key: &str) -> i128 {
        let count = self.totals.counts.get(key).copied().unwrap_or(0);
        i128::from(count) * i128::from(UNIT_GRAINS)
    }

    /// The keys that get noise of the kind that finds keys.
    fn candidates(&self) -> BTreeSet<&str> {
        let keys = self.totals.counts.keys().map(String::as_str);
        keys.filter(|key| !self.announced.contains_key(*key))
            .collect()
    }

    fn has_room(&self) -> bool {
        self.rows.len() < self.found.most as usize
    }

    /// The description without what differs from table to table.
    fn description_without_rows(&self) -> Description {
        let mut description = self.description.clone();
        if let Basis::Keys(basis) = &mut description.basis {
            basis.keys = Vec::new();
            if let Some(found) = &mut basis.found {
                found.rows = Vec::new();
                if let Some(rule) = &mut found.overfull {
                    rule.is_overfull = false;
                }
            }
        }
        description
    }

    /// Says what this stream alone rules out.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(rule) = &self.found.overfull {
            let distinct = self.distinct();
            if rule.is_overfull && distinct <= rule.soft_limit {
                faults.push(format!("a window of {distinct} keys is overfull"));
            }
            if !rule.is_overfull && distinct >= rule.limit {
                faults.push(format!("a window of {distinct} keys is not overfull"));
            }
            if rule.is_overfull {
                return faults;
            }
        }
        for (key, row) in &self.rows {
            faults.extend(self.fault_of_row(key, row));
        }
        if self.has_room() {
            let left_out = self
                .announced
                .keys()
                .find(|key| !self.rows.contains_key(key.as_str()));
            faults.extend(
                left_out.map(|key| format!("the announced key {key:?} is left out of its table")),
            );
        }
        faults
    }

    fn fault_of_row(&self, key: &str, row: &TableRow) -> Option<String> {
        let threshold = i128::from(self.found.threshold);
        let before = self.announced.get(key);
        if row.about.is_new == before.is_some() {
            return Some(format!("the key {key:?} is new and announced, or neither"));
        }
        let renewed = self.found.until(self.description.window.end);
        let is_above = row.count > threshold;
        let until = match before {
            Some(before) if !is_above => *before,
            _ => renewed,
        };
        if row.about.until != until {
            return Some(format!(
                "the key {key:?} is announced until {} and not until {until}",
                row.about.until
            ));
        }
        if !row.about.is_new {
            return None;
        }
        let exact = self.exact_count(key);
        if exact == 0 {
            return Some(format!("the key {key:?}, which no unit has, is found"));
        }
        let noise = row.count - exact;
        if !is_above || noise.abs() > threshold {
            return Some(format!(
                "the key {key:?} is found with a number that no noise of its law gives"
            ));
        }
        None
    }

    /// Returns whether the same random numbers are the same noise for both tables.
    fn draws_alike(&self, other: &FoundTable<'_>) -> bool {
        let are_open = !self.found.is_overfull() && !other.found.is_overfull();
        are_open && self.announced == other.announced && self.candidates() == other.candidates()
    }
}

/// What a unit changed, in grid units.
#[derive(Default)]
pub(super) struct KeyChanges {
    /// By key, of those that changed.
    pub by_key: BTreeMap<String, i128>,
    /// Of the number of different keys.
    pub distinct: u64,
}

impl KeyChanges {
    /// What differs between two streams. Of a window with too many keys no number is looked at.
    pub fn between(with: &FoundTable<'_>, without: &FoundTable<'_>) -> Self {
        let mut changes = KeyChanges {
            by_key: BTreeMap::new(),
            distinct: with.distinct().abs_diff(without.distinct()),
        };
        if with.totals.is_full || without.totals.is_full {
            return changes;
        }
        for key in with
            .totals
            .counts
            .keys()
            .chain(without.totals.counts.keys())
        {
            let change = with.exact_count(key) - without.exact_count(key);
            if change != 0 {
                changes.by_key.insert(key.clone(), change);
            }
        }
        changes
    }

    /// The 1-norm.
    pub fn norm(&self) -> u128 {
        self.by_key
            .values()
            .map(|change| change.unsigned_abs())
            .sum()
    }

    /// The largest change of a key.
    pub fn largest(&self) -> u128 {
        let changes = self.by_key.values();
        changes
            .map(|change| change.unsigned_abs())
            .max()
            .unwrap_or(0)
    }
}

/// The comparison of two tables.
#[derive(Default)]
pub(super) struct TableComparison {
    pub violations: Vec<String>,
    /// The same random numbers were the same noise, so the rows were compared.
    pub is_drawn_alike: bool,
}

impl TableComparison {
    /// Compares the tables of two streams in one window.
    pub fn of_tables(
        with: &FoundTable<'_>,
        without: &FoundTable<'_>,
        changes: &KeyChanges,
    ) -> Self {
        let mut comparison = TableComparison::default();
        comparison.violations.extend(with.faults());
        comparison.violations.extend(without.faults());
        if with.description_without_rows() != without.description_without_rows() {
            comparison
                .violations
                .push("the descriptions of the tables differ in more than rows".to_owned());
        }
        if !with.draws_alike(without) {
            return comparison;
        }
        comparison.is_drawn_alike = true;
        let keys: BTreeSet<&str> = with
            .rows
            .keys()
            .chain(without.rows.keys())
            .copied()
            .collect();
        for key in keys {
            let change = changes.by_key.get(key).copied().unwrap_or(0);
            let has_fault = match (with.rows.get(key), without.rows.get(key)) {
                (Some(one), Some(other)) => {
                    one.about.is_new != other.about.is_new
                        || one.count - other.count != change
                        || (change == 0 && one.about != other.about)
                }
                // Whatever a table with all rows that it may have has no room for is left out.
                (Some(_), None) => change == 0 && without.has_room(),
                (None, _) => change == 0 && with.has_room(),
            };
            if has_fault {
                comparison.violations.push(format!(
                    "the key {key:?} differs by more than the unit changed, with the same noise"
                ));
            }
        }
        comparison
    }
}

/// Grid units of a published number.
#[expect(clippy::cast_precision_loss, reason = "a power of two")]
fn grid_units(value: f64) -> i128 {
    (value * UNIT_GRAINS as f64).round() as i128
}
