//! The request to stop, from a signal or from a loop that failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

/// The longest sleep, and so the delay with which a stop is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// Cheap to clone; all clones share one request.
#[derive(Clone, Debug, Default)]
pub struct StopRequest {
    asked: Arc<AtomicBool>,
    /// Each of them stops this one too.
    above: Vec<Arc<AtomicBool>>,
}

impl StopRequest {
    pub fn request_stop(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub fn is_requested(&self) -> bool {
        let mut flags = std::iter::once(&self.asked).chain(&self.above);
        flags.any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Returns whether whoever started everything has asked for it, and not a part that cannot go on.
    pub fn is_asked_from_outside(&self) -> bool {
        self.above
            .first()
            .unwrap_or(&self.asked)
            .load(Ordering::Relaxed)
    }

    /// Another one, which stops with this one, and alone.
    #[must_use]
    pub fn child_request(&self) -> Self {
        StopRequest {
            asked: Arc::default(),
            above: self.above.iter().chain([&self.asked]).cloned().collect(),
        }
    }

    /// Sleeps for `pause`, or until a stop is requested.
    pub fn sleep_or_stop(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_requested() && Instant::now() < until {
            thread::sleep(LONGEST_SLEEP.min(pause));
        }
    }

    /// Sleeps until `moment`, never shorter; `false` if a stop is requested before.
    pub(super) fn wait_until(&self, moment: Timestamp, clock: &ScheduleClock) -> bool {
        loop {
            let left = moment.since(clock.now());
            if left.is_zero() {
                return true;
            }
            if self.is_requested() {
                return false;
            }
            thread::sleep(LONGEST_SLEEP.min(left));
        }
    }
}

/// Requests a stop when it is dropped, unless it was disarmed: a loop that fails or panics stops the other one.
pub(super) struct StopGuard<'a> {
    stop: &'a StopRequest,
    is_armed: bool,
}

impl<'a> StopGuard<'a> {
    pub fn new(stop: &'a StopRequest) -> Self {
        StopGuard {
            stop,
            is_armed: true,
        }
    }

    pub fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            self.stop.request_stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_stops_all_that_is_below_and_nothing_above() {
        let top = StopRequest::default();
        let middle = top.child_request();
        let beside = top.child_request();
        let bottom = middle.child_request();
        middle.request_stop();
        assert_eq!(
            [&top, &middle, &beside, &bottom].map(StopRequest::is_requested),
            [false, true, false, true]
        );
        assert!(!middle.is_asked_from_outside() && !bottom.is_asked_from_outside());
        let bottom = top.child_request().child_request();
        assert!(!bottom.is_requested());
        top.request_stop();
        assert!(bottom.is_requested() && beside.is_requested());
        assert!(
            [&top, &middle, &bottom]
                .iter()
                .all(|stop| stop.is_asked_from_outside())
        );
    }
}
