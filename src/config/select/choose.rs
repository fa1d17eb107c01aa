//! The candidate whose predicted errors are nearest to the smallest, of all families.

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
        let best =
            candidates.iter().copied().min_by(|a, b| regret(&candidates, a).total_cmp(&regret(&candidates, b)))?;
        let rough = build(best.on).and_then(|function| self.rough(&function));
        let open = self.open.to_vec();
        Some(Selection { expected_records: self.expected_records, open, candidates, best, taken: best, rough })
    }
}

/// How many times the smallest error a candidate's is, whichever of the two assumptions is worse for it.
///
/// What follows the roughest function is too noisy for all others, and what suits most is far off for the roughest.
fn regret(candidates: &[Candidate], candidate: &Candidate) -> f64 {
    let times = |of: fn(&Candidate) -> f64| of(candidate) / candidates.iter().map(of).fold(f64::INFINITY, f64::min);
    times(|candidate| candidate.expected.error).max(times(|candidate| candidate.expected.spread))
}

/// What all of them find, in their order.
fn side_by_side<'a>(judges: impl Iterator<Item = Judge<'a>>) -> Vec<Candidate> {
    thread::scope(|scope| {
        let workers: Vec<_> = judges.map(|judge| scope.spawn(judge)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}
