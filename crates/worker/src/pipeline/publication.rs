//! The time at which a window is due on the output: by the clock alone.

use std::time::Duration;

use bernstream_release::window::WindowRules;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// The rule for when a window is due on the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// This long after its cutoff.
    AfterCutoff(Duration),
    /// Files have no cutoff: the time in the synopsis is the end of the window.
    AtWindowEnd,
}

impl Publication {
    /// The time at which the synopses of a window are due.
    pub(super) fn due_time(self, window: Span, cutoff: Timestamp) -> Timestamp {
        match self {
            Publication::AfterCutoff(delay) => cutoff.plus(delay),
            Publication::AtWindowEnd => window.end,
        }
    }

    /// The time at which the window that starts at `start` is due. Files have no such schedule, and behind its end a grid has no windows.
    pub(super) fn scheduled_due_time(
        self,
        rules: &WindowRules,
        start: Timestamp,
        backfill_until: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let Publication::AfterCutoff(_) = self else {
            return None;
        };
        let window = rules.grid.span_of(start);
        let is_in_grid = rules.end.is_none_or(|end| window.end <= end);
        is_in_grid.then(|| self.due_time(window, rules.window_cutoff(window, backfill_until)))
    }

    /// Number of windows that start at `until` or later and are due by `now`. Files have no such schedule.
    pub(super) fn count_due_windows(
        self,
        rules: &WindowRules,
        until: Timestamp,
        backfill_until: Option<Timestamp>,
        now: Timestamp,
    ) -> u64 {
        let Publication::AfterCutoff(delay) = self else {
            return 0;
        };
        let cutoff = now.minus(delay);
        if backfill_until.is_some_and(|backfill| cutoff < backfill) {
            return 0;
        }
        let end = cutoff.minus(rules.allowed_lateness);
        let end = rules.end.map_or(end, |last| end.min(last));
        rules.grid.count_spans(until, end)
    }
}
