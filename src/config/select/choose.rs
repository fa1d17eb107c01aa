//! The candidate with the smallest predicted error, of all families.

use std::thread;

use crate::config::select::search::{Judge, Search};
use crate::config::settings::{Candidate, Coordinates, Function, Selection};

impl Search<'_> {
    /// The best candidate; `None` if no candidate can be built, drawn and sent. `build` returns the function on given
    /// coordinates.
    pub fn choose(&self, build: impl Fn(Coordinates) -> Option<Function>) -> Option<Selection> {
        let families = [self.lattices(&build), self.points(&build), self.cells(&build)];
        let mut candidates = side_by_side(families.into_iter().flatten());
        candidates.sort_by_key(|candidate| candidate.noise);
        // The first of equals: the smallest message of the simplest kind.
        let best = candidates.iter().copied().min_by(|a, b| a.expected.error.total_cmp(&b.expected.error))?;
        let bump = build(best.on).and_then(|function| self.bump(&function));
        let open = self.open.to_vec();
        Some(Selection { expected_records: self.expected_records, open, candidates, best, taken: best, bump })
    }
}

/// What all of them find, in their order.
fn side_by_side<'a>(judges: impl Iterator<Item = Judge<'a>>) -> Vec<Candidate> {
    thread::scope(|scope| {
        let workers: Vec<_> = judges.map(|judge| scope.spawn(judge)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}
