//! What a storm did and saw, added up over its episodes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::judge::Seen;

#[derive(Default)]
pub struct Counts(Mutex<(BTreeMap<String, u64>, f64)>);

impl Counts {
    pub fn add(&self, what: &str, count: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.0.entry(what.to_owned()).or_default() += count;
    }

    pub fn of(&self, what: &str) -> u64 {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .get(what)
            .copied()
            .unwrap_or(0)
    }

    /// An episode that ended well.
    pub fn judged(&self, seen: &Seen) {
        self.add("seen: episodes", 1);
        self.add("seen: records on the input", seen.records);
        self.add("seen: records that belong to a window", seen.taken);
        self.add(
            "seen: slots published, each compared with its records",
            seen.slots,
        );
        self.add("seen: repeats, each the same bytes", seen.repeats);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.1 = counts.1.max(seen.deviation);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kills: u64 = counts
            .0
            .iter()
            .filter(|(what, _)| what.starts_with("kill"))
            .map(|(_, count)| count)
            .sum();
        for (what, count) in &counts.0 {
            writeln!(f, "{count:>9}  {what}")?;
        }
        writeln!(f, "{kills:>9}  kills in all")?;
        writeln!(
            f,
            "{:>9.4}  records: the largest deviation of a published value",
            counts.1
        )
    }
}
