//! What a table of keys that nobody listed says of its rows, and of keys that it does not have.
//!
//! The formulas are those of `clients/FORMAT.md`, "Keys that nobody listed".

use serde::Serialize;

use super::{CountedTable, KeyStatistic, LEVEL};
use crate::error::SynopsisError;
use crate::found_keys::{FoundKeys, FoundRow};
use crate::tables::ConfidenceInterval;

/// Keys of a table that nobody listed, and what their absence says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundSummary {
    /// Number of keys in the table.
    pub keys: usize,
    /// Number of those that were found in this window.
    pub new: usize,
    /// Number of users or records with their noise above which a key is found.
    pub threshold: f64,
    /// A key that is not in the table had fewer than about so many users or records: with so many it is there with even odds. Absent where
    /// new ones were not looked for.
    pub absent_below: Option<f64>,
    /// There were too many different keys to look for new ones.
    pub is_overfull: bool,
    /// Name of what is counted.
    #[serde(skip)]
    counted: &'static str,
    /// The table has no room for more keys: its rows are the largest of more.
    #[serde(skip)]
    is_full: bool,
}

impl FoundSummary {
    /// Numbers of keys, and what it says that one is not there.
    pub fn in_words(&self) -> String {
        if self.is_overfull {
            return self.absence_in_words();
        }
        let keys = match self.keys {
            1 => "1 key".to_owned(),
            keys => format!("{keys} keys"),
        };
        let full = match self.is_full {
            true => {
                "; the table is full, and its keys were chosen for their large numbers, which no interval allows for"
            }
            false => "",
        };
        format!(
            "{keys}, {} of them new; {}{full}",
            self.new,
            self.absence_in_words()
        )
    }

    /// What it says that a key is not in the table.
    pub fn absence_in_words(&self) -> String {
        let Some(below) = self.absent_below else {
            return "too many different keys to look for new ones".to_owned();
        };
        let counted = self.counted;
        let decimals = usize::from(below < 10.0);
        format!("a key that is not here had fewer than about {below:.decimals$} {counted}")
    }
}

impl CountedTable<'_> {
    /// Numbers of keys that nobody listed, and what it says that one is not there; `None` where keys are listed.
    pub fn found_summary(&self) -> Option<FoundSummary> {
        let found = self.found()?;
        let statistic = self.basis.columns.first()?.statistic;
        let threshold = found.threshold_count();
        let keys = self.basis.keys.len();
        // Of a full table the least row has pushed out what is absent.
        let is_full = keys >= found.most as usize;
        let least = match is_full {
            true => self.values.iter().copied().fold(f64::INFINITY, f64::min),
            false => threshold,
        };
        Some(FoundSummary {
            keys,
            new: found.new_keys(),
            threshold,
            absent_below: (!found.is_overfull()).then_some(least.max(threshold)),
            is_overfull: found.is_overfull(),
            is_full,
            counted: match statistic {
                KeyStatistic::Users => "users",
                _ => "records",
            },
        })
    }

    fn found(&self) -> Option<&FoundKeys> {
        self.basis.found.as_ref()
    }

    /// What is said of the key of a row; `None` where keys are listed.
    pub(super) fn found_row(&self, place: usize) -> Option<FoundRow> {
        self.found()?.rows.get(place).copied()
    }

    /// The interval of the number of a key that was found in this window; `None` of any other.
    pub(super) fn interval_of_new(&self, value: f64, place: usize) -> Option<ConfidenceInterval> {
        let is_new = self.found_row(place)?.is_new;
        let found = self.found()?;
        is_new.then(|| found.interval_of_new(value, self.noise.scale, LEVEL))
    }

    /// The error about a key that is not there.
    pub(super) fn missing_key(&self, key: &str) -> SynopsisError {
        let key = key.to_owned();
        match self.found_summary() {
            Some(summary) => SynopsisError::AbsentKey {
                key,
                absence: summary.absence_in_words(),
            },
            None => SynopsisError::NoSuchKey { key },
        }
    }

    /// Refuses sums over keys where nobody listed them.
    pub(super) fn check_has_all_keys(&self) -> Result<(), SynopsisError> {
        match self.found() {
            Some(_) => Err(SynopsisError::KeysMissing),
            None => Ok(()),
        }
    }
}
