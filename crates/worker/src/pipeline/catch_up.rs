//! The progress of a worker that catches up: windows and the clock, nothing about the records.

use std::time::{Duration, Instant};

use tracing::info;

use bernstream_release::window::WindowRules;
use bernstream_synopsis::clock::Timestamp;

/// The pause between two log lines, and between the first late window and the first line.
const LOG_LINE_PAUSE: Duration = Duration::from_secs(5);

/// The target of the lines about progress: when they come is a matter of time, and what they say of windows and the clock alone.
pub const PROGRESS: &str = "bernstream::progress";

/// Logs now and then how many of the windows that are due are done.
#[derive(Debug)]
pub struct CatchUp {
    /// The end of the newest window that was reported in time.
    since: Timestamp,
    last_line: Instant,
    has_logged: bool,
}

impl CatchUp {
    pub fn new(since: Timestamp) -> Self {
        CatchUp {
            since,
            last_line: Instant::now(),
            has_logged: false,
        }
    }

    /// Every window before `until` was reported, and `left` more are due.
    pub fn report_progress(&mut self, rules: &WindowRules, until: Timestamp, left: u64) {
        let done = rules.grid.count_spans(self.since, until);
        if left == 0 {
            if self.has_logged {
                info!(target: PROGRESS, "caught up: every window that is due is done");
            }
            *self = CatchUp::new(until);
        } else if self.last_line.elapsed() >= LOG_LINE_PAUSE {
            let due = done.saturating_add(left);
            info!(target: PROGRESS, until = %until, "catching up: {done} of {due} windows that are due are done");
            self.last_line = Instant::now();
            self.has_logged = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::publication::Publication;
    use bernstream_synopsis::grid::SpanGrid;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Windows of an hour, with an allowed lateness of three hours.
    fn rules(end: Option<u32>) -> WindowRules {
        let grid = SpanGrid::new(at(0), HOUR).unwrap();
        WindowRules {
            grid,
            end: end.map(at),
            allowed_lateness: 3 * HOUR,
            max_future_skew: HOUR,
            keys: None,
            other: Vec::new(),
            longest_key: None,
            cap: None,
        }
    }

    fn at(hour: u32) -> Timestamp {
        Timestamp::from_micros(0).plus(hour * HOUR)
    }

    #[test]
    fn what_is_due_follows_from_the_clock() {
        // Published an hour after the cutoff: the first window, over at 1, is due at 5.
        let hourly = Publication::AfterCutoff(HOUR);
        let due = |until, now| hourly.count_due_windows(&rules(None), at(until), None, at(now));
        assert_eq!(
            [
                due(0, 4),
                due(0, 5),
                due(0, 6),
                due(1, 6),
                due(2, 6),
                due(9, 6)
            ],
            [0, 1, 2, 1, 0, 0]
        );
        assert_eq!(
            hourly.count_due_windows(&rules(Some(2)), at(0), None, at(90)),
            2
        );
        // History is due all at once.
        let history = |now| hourly.count_due_windows(&rules(None), at(0), Some(at(20)), at(now));
        assert_eq!([history(20), history(21), history(22)], [0, 17, 18]);
        assert_eq!(
            Publication::AtWindowEnd.count_due_windows(&rules(None), at(0), None, at(90)),
            0
        );
    }

    #[test]
    fn a_worker_in_step_never_catches_up() {
        let mut catch_up = CatchUp::new(at(0));
        catch_up.report_progress(&rules(None), at(3), 0);
        assert_eq!((catch_up.since, catch_up.has_logged), (at(3), false));
        // Late, but not for long.
        catch_up.report_progress(&rules(None), at(4), 7);
        assert_eq!((catch_up.since, catch_up.has_logged), (at(3), false));
        catch_up.last_line -= LOG_LINE_PAUSE;
        catch_up.report_progress(&rules(None), at(5), 6);
        assert!(catch_up.has_logged);
        catch_up.report_progress(&rules(None), at(11), 0);
        assert_eq!((catch_up.since, catch_up.has_logged), (at(11), false));
    }
}
