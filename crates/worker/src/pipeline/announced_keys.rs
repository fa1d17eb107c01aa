//! The announced list: keys that earlier windows found, and until when each is published. The ledger keeps it, written with the row of the
//! window that changed it, so that whoever draws the next window has the list of the row before.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::PipelineError;
use super::plan::PlannedRelease;
use super::series::StateReader;
use bernstream_noise::key_search::{KeySearch, KeySearchOutcome, SelectedKey};
use bernstream_noise::noise::Generator;
use bernstream_noise::{CandidateCounts, Noisy};
use bernstream_synopsis::Basis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::found_keys::{FoundKeys, FoundRow, OverfullRule};
use bernstream_synopsis::grid::Span;

/// The search for keys that nobody listed, and what becomes of those that are found. All of it is public.
#[derive(Clone, Debug)]
pub struct PlannedKeySearch {
    pub search: KeySearch,
    /// Time for which a key stays announced after the last window that published it above the threshold.
    pub keep: Duration,
    /// Most rows of a window, and the longest key in bytes: for the description.
    pub most: u32,
    pub longest: u32,
    /// The list restarts where this differs from what wrote it: other columns of the key, for example.
    pub identity: String,
}

/// The keys that are announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedKeys {
    identity: String,
    keys: BTreeMap<String, AnnouncedKey>,
}

/// The time for which a key is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedKey {
    /// The end of the window that found it.
    pub since: Timestamp,
    /// Every window that begins before this time publishes it.
    pub until: Timestamp,
}

impl AnnouncedKeys {
    /// The slot where the ledger keeps the list of a release: never that of a running sum, which a release of the same name may have been.
    pub fn slot_name(release: &str) -> String {
        serde_json::json!([release, null, "found"]).to_string()
    }

    /// The list that the ledger has; an empty one where it has none, or one of another identity.
    ///
    /// # Errors
    ///
    /// If what is stored is no list.
    pub fn from_stored(stored: Option<&[u8]>, identity: &str) -> Result<Self, PipelineError> {
        let empty = AnnouncedKeys {
            identity: identity.to_owned(),
            keys: BTreeMap::new(),
        };
        let Some(bytes) = stored else {
            return Ok(empty);
        };
        let found: AnnouncedKeys =
            serde_json::from_slice(bytes).map_err(|_| PipelineError::AnnouncedKeysDamaged)?;
        Ok(match found.identity == identity {
            true => found,
            false => empty,
        })
    }

    /// The bytes for the ledger.
    pub fn to_stored(&self) -> Vec<u8> {
        serde_json::json!(self).to_string().into_bytes()
    }

    /// The keys, in the order of their bytes.
    pub fn keys(&self) -> &BTreeMap<String, AnnouncedKey> {
        &self.keys
    }

    /// The keys that a window with this start publishes whatever their counts are.
    pub fn published_at(&self, start: Timestamp) -> BTreeSet<String> {
        let mut published = BTreeSet::new();
        for (key, announced) in &self.keys {
            if announced.until > start {
                published.insert(key.clone());
            }
        }
        published
    }

    /// The list after `window`, which published `rows`: by published numbers alone. What it did not publish is no longer announced.
    #[must_use]
    pub fn after_window(&self, window: Span, rows: &[SelectedKey], keep: Duration) -> Self {
        let mut keys = BTreeMap::new();
        for row in rows {
            let before = self.keys.get(&row.key).filter(|_| row.was_announced);
            let kept_until = window.end.plus(keep);
            let announced = match before {
                Some(before) if row.is_above => AnnouncedKey {
                    until: kept_until,
                    ..*before
                },
                Some(before) => *before,
                None => AnnouncedKey {
                    since: window.end,
                    until: kept_until,
                },
            };
            keys.insert(row.key.clone(), announced);
        }
        AnnouncedKeys {
            identity: self.identity.clone(),
            keys,
        }
    }
}

/// What a search of a window publishes, and the list that it leaves.
pub(super) struct SearchedWindow {
    pub description: Description,
    pub noisy: Noisy,
    /// The slot of the list and its bytes, for the ledger.
    pub state: (String, Vec<u8>),
}

impl PlannedRelease {
    /// Searches a window for keys: those that are announced, and those that are found.
    ///
    /// # Errors
    ///
    /// If the stored list cannot be read or is damaged.
    pub(super) fn release_found_keys(
        &self,
        planned: &PlannedKeySearch,
        candidates: &CandidateCounts,
        stored: &StateReader<'_>,
        window: Span,
        generator: &mut Generator,
    ) -> Result<SearchedWindow, PipelineError> {
        let about = self.description();
        let slot = AnnouncedKeys::slot_name(&about.release);
        let before = AnnouncedKeys::from_stored(stored(&slot)?.as_deref(), &planned.identity)?;
        let published = before.published_at(window.start);
        let outcome = planned
            .search
            .search_keys(candidates, &published, generator);
        // An overfull window leaves the list as it is.
        let after = match outcome.is_overfull {
            true => before,
            false => before.after_window(window, &outcome.rows, planned.keep),
        };
        Ok(SearchedWindow {
            description: planned.describe_table(about, &outcome, &after, window),
            noisy: outcome.noisy,
            state: (slot, after.to_stored()),
        })
    }
}

impl PlannedKeySearch {
    /// The description of a synopsis with its keys; `announced` is the list after its window.
    fn describe_table(
        &self,
        about: &Description,
        outcome: &KeySearchOutcome,
        announced: &AnnouncedKeys,
        window: Span,
    ) -> Description {
        let mut description = Description {
            window,
            ..about.clone()
        };
        if let Basis::Keys(basis) = &mut description.basis {
            basis.keys = outcome.rows.iter().map(|row| row.key.clone()).collect();
            basis.found = Some(self.describe_search(outcome, announced));
        }
        description
    }

    fn describe_search(&self, outcome: &KeySearchOutcome, announced: &AnnouncedKeys) -> FoundKeys {
        let mut rows = Vec::with_capacity(outcome.rows.len());
        for row in &outcome.rows {
            if let Some(announced) = announced.keys.get(&row.key) {
                rows.push(FoundRow {
                    is_new: !row.was_announced,
                    until: announced.until,
                });
            }
        }
        FoundKeys {
            threshold: self.search.selection().threshold(),
            delta: self.search.selection_delta(),
            keep_seconds: self.keep.as_secs(),
            most: self.most,
            longest: self.longest,
            overfull: self.search.overfull_test().map(|test| OverfullRule {
                limit: test.limit(),
                soft_limit: test.soft_limit(),
                is_overfull: outcome.is_overfull,
            }),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;
    const KEEP: Duration = Duration::from_secs(3 * 3600);

    fn window(hour: i64) -> Span {
        Span {
            start: Timestamp::from_micros(hour * HOUR),
            end: Timestamp::from_micros((hour + 1) * HOUR),
        }
    }

    fn row(key: &str, was_announced: bool, is_above: bool) -> SelectedKey {
        SelectedKey {
            key: key.to_owned(),
            was_announced,
            is_above,
        }
    }

    fn empty() -> AnnouncedKeys {
        AnnouncedKeys::from_stored(None, "columns").unwrap()
    }

    #[test]
    fn a_key_is_published_from_the_next_window_on_until_its_time_and_renewed_by_published_numbers()
    {
        let found = empty().after_window(window(0), &[row("a", false, true)], KEEP);
        let announced = found.keys()["a"];
        assert_eq!(announced.since, window(0).end);
        assert_eq!(announced.until, window(3).end);
        for hour in 1..=3 {
            assert!(
                found.published_at(window(hour).start).contains("a"),
                "{hour}"
            );
        }
        assert!(found.published_at(window(4).start).is_empty());
        // Below the threshold it keeps its time; above it has a new one.
        let kept = found.after_window(window(1), &[row("a", true, false)], KEEP);
        assert_eq!(kept.keys()["a"], announced);
        let renewed = found.after_window(window(2), &[row("a", true, true)], KEEP);
        assert_eq!(renewed.keys()["a"].since, announced.since);
        assert_eq!(renewed.keys()["a"].until, window(5).end);
        // Found again after its time, it is new.
        let again = found.after_window(window(9), &[row("a", false, true)], KEEP);
        assert_eq!(again.keys()["a"].since, window(9).end);
        // What has no row is not announced any more.
        assert!(found.after_window(window(1), &[], KEEP).keys().is_empty());
    }

    #[test]
    fn a_list_is_stored_and_one_of_other_columns_is_not_taken() {
        let found = empty().after_window(window(0), &[row("\u{202e}\0\"", false, true)], KEEP);
        let bytes = found.to_stored();
        let read = |identity| AnnouncedKeys::from_stored(Some(bytes.as_slice()), identity);
        assert_eq!(read("columns").unwrap(), found);
        assert!(read("others").unwrap().keys().is_empty());
        assert!(AnnouncedKeys::from_stored(Some(b"{}"), "columns").is_err());
    }
}
