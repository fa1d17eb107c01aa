//! The candidate with the smallest predicted error, of all families, where most of the records form a cluster.
//!
//! A candidate that follows the roughest function is too noisy for all others: that error is told beside it, and not chosen by.

use std::thread;

use crate::select::search::{CandidateSearch, CandidateTask};
use crate::settings::{Coordinates, NoiseCandidate, NoiseSelection, ReleasedFunction};

impl CandidateSearch<'_> {
    /// The best candidate; `None` if no candidate can be built, drawn and sent. `build` returns the function on given
    /// coordinates.
    pub fn choose_best(
        &self,
        build: impl Fn(Coordinates) -> Option<ReleasedFunction>,
    ) -> Option<NoiseSelection> {
        let families = [
            self.lattice_judges(&build),
            self.point_judges(&build),
            self.cell_judges(&build),
        ];
        let mut candidates = side_by_side(families.into_iter().flatten());
        candidates.sort_by_key(|candidate| candidate.noise);
        // The first of equals: the smallest message of the simplest kind.
        let best = candidates
            .iter()
            .copied()
            .min_by(|a, b| a.expected.spread.total_cmp(&b.expected.spread))?;
        let rough = build(best.on).and_then(|function| self.worst_functions(&function));
        let open = self.open.to_vec();
        Some(NoiseSelection {
            open,
            candidates,
            best,
            taken: best,
            rough,
        })
    }
}

/// The candidates that all of them find, in their order.
fn side_by_side<'a>(judges: impl Iterator<Item = CandidateTask<'a>>) -> Vec<NoiseCandidate> {
    thread::scope(|scope| {
        let workers: Vec<_> = judges.map(|judge| scope.spawn(judge)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    })
}
