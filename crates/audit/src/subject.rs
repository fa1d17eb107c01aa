//! The subject of an audit.

use std::time::Duration;

use bernstream_release::source::Columns;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_worker::pipeline::ReleasePlan;

/// The subject of an audit. All of it is public.
#[derive(Clone, Copy, Debug)]
pub struct AuditSubject<'a> {
    pub plan: &'a ReleasePlan,
    pub columns: &'a Columns,
    pub adjacency: Adjacency,
    pub stamps: StampSource,
    /// Earlier windows take records until then, as the ledger says.
    pub backfill_until: Option<Timestamp>,
}

/// The clock that stamps a message, and so how far is read for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    /// The broker: a window is read up to the first message stamped this long after its cutoff.
    Broker { slack: Duration },
    /// Producers, whom nothing holds to an order: a window is read to the end of what is there.
    Producers,
    /// Nobody: files.
    None,
}

impl AuditSubject<'_> {
    /// The windows of a replay: enough for every overlap, and one more.
    pub fn replayed_windows(&self) -> Vec<Span> {
        const MOST: u32 = 8;
        let grid = self.plan.rules.grid;
        let panes = self
            .plan
            .releases
            .iter()
            .map(|release| release.form.panes)
            .max()
            .unwrap_or(1);
        let count = panes.saturating_add(1).clamp(3, MOST);
        let first = grid.span_of(grid.origin());
        let mut windows = Vec::new();
        let mut window = first;
        for _ in 0..count {
            if self.plan.rules.end.is_some_and(|end| window.end > end) {
                break;
            }
            windows.push(window);
            window = grid.span_after(window);
        }
        windows
    }

    /// The end of the last window of a replay.
    pub(crate) fn end_of_replay(&self) -> Timestamp {
        self.replayed_windows()
            .last()
            .map_or(self.plan.rules.grid.origin(), |span| span.end)
    }
}
