//! The time by which a part of an audit has to end.

use std::time::{Duration, Instant};

use bernstream_worker::pipeline::StopRequest;

/// A time, or a request to stop, whichever comes first.
#[derive(Clone, Debug)]
pub struct Deadline {
    end: Instant,
    stop: StopRequest,
}

impl Deadline {
    pub fn new(end: Instant, stop: &StopRequest) -> Self {
        Deadline {
            end,
            stop: stop.clone(),
        }
    }

    pub fn is_over(&self) -> bool {
        self.is_stopped() || Instant::now() >= self.end
    }

    /// Returns whether somebody asked for an end: nothing more is begun.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_requested()
    }

    pub fn end(&self) -> Instant {
        self.end
    }

    /// The time that is left.
    pub fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The deadline of something that has this part of the time that is left.
    #[must_use]
    pub fn part_of_rest(&self, part: f64) -> Self {
        Deadline {
            end: Instant::now() + self.time_left().mul_f64(part),
            stop: self.stop.clone(),
        }
    }
}
