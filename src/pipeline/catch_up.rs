//! How far a worker is that catches up: windows and the clock, nothing of the records.

use std::time::{Duration, Instant};

use tracing::info;

use crate::clock::Timestamp;
use crate::window::Rules;

/// From one line to the next, and from the first window that is late to the first line.
const PAUSE: Duration = Duration::from_secs(5);

/// Says now and then how many windows are told of since the worker is behind.
#[derive(Debug)]
pub struct CatchUp {
    /// The end of the newest window that was told of in time.
    since: Timestamp,
    told: Instant,
    is_told: bool,
}

impl CatchUp {
    pub fn new(since: Timestamp) -> Self {
        CatchUp { since, told: Instant::now(), is_told: false }
    }

    /// Every window before `until` was told of, and `left` that are due were not.
    pub fn report(&mut self, rules: &Rules, until: Timestamp, left: u64) {
        let done = rules.grid.count(self.since, until);
        if left == 0 {
            if self.is_told {
                info!("caught up: every window that is due is done");
            }
            *self = CatchUp::new(until);
        } else if self.told.elapsed() >= PAUSE {
            info!(until = %until, "catching up: {done} of {} windows that are due are done", done.saturating_add(left));
            (self.told, self.is_told) = (Instant::now(), true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Publication;
    use crate::window::grid::Grid;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Windows of an hour, three of grace.
    fn rules(end: Option<u32>) -> Rules {
        let grid = Grid::new(at(0), HOUR).unwrap();
        Rules { grid, end: end.map(at), allowed_lateness: 3 * HOUR, max_future_skew: HOUR, keys: None, cap: None }
    }

    fn at(hour: u32) -> Timestamp {
        Timestamp::from_micros(0).plus(hour * HOUR)
    }

    #[test]
    fn what_is_due_follows_from_the_clock() {
        // Published an hour after the cutoff: the first window, over at 1, is due at 5.
        let hourly = Publication::AfterCutoff(HOUR);
        let due = |until, now| hourly.due_after(&rules(None), at(until), None, at(now));
        assert_eq!([due(0, 4), due(0, 5), due(0, 6), due(1, 6), due(2, 6), due(9, 6)], [0, 1, 2, 1, 0, 0]);
        assert_eq!(hourly.due_after(&rules(Some(2)), at(0), None, at(90)), 2);
        // History is due all at once.
        let history = |now| hourly.due_after(&rules(None), at(0), Some(at(20)), at(now));
        assert_eq!([history(20), history(21), history(22)], [0, 17, 18]);
        assert_eq!(Publication::AtWindowEnd.due_after(&rules(None), at(0), None, at(90)), 0);
    }

    #[test]
    fn a_worker_in_step_is_never_behind() {
        let mut behind = CatchUp::new(at(0));
        behind.report(&rules(None), at(3), 0);
        assert_eq!((behind.since, behind.is_told), (at(3), false));
        // Late, but not for long.
        behind.report(&rules(None), at(4), 7);
        assert_eq!((behind.since, behind.is_told), (at(3), false));
        behind.told -= PAUSE;
        behind.report(&rules(None), at(5), 6);
        assert!(behind.is_told);
        behind.report(&rules(None), at(11), 0);
        assert_eq!((behind.since, behind.is_told), (at(11), false));
    }
}
