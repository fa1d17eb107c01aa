//! Exact counts of the keys of a window that nobody listed: here, because only code of this crate may open them.

use std::collections::BTreeMap;
use std::fmt;

/// Exact counts of all keys of a window, and how many different keys there are. Secret, as [`Exact`](super::Exact) values are: only
/// [`KeySearch`](super::key_search::KeySearch) makes published ones of them.
#[derive(Clone, Default)]
pub struct CandidateCounts {
    counts: BTreeMap<String, u64>,
    is_full: bool,
}

impl CandidateCounts {
    /// Counts of keys. `is_full` says that there are as many different keys as the limit, or more, and that none is kept.
    pub fn new(counts: BTreeMap<String, u64>, is_full: bool) -> Self {
        CandidateCounts { counts, is_full }
    }

    pub(super) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Number of different keys, at most `limit`.
    pub(super) fn distinct(&self, limit: u64) -> u64 {
        match self.is_full {
            true => limit,
            false => (self.counts.len() as u64).min(limit),
        }
    }
}

impl fmt::Debug for CandidateCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CandidateCounts")
    }
}
