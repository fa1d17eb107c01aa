//! The public time grid: windows and blocks. Pure arithmetic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{Timestamp, micros};

/// A span of event time, start included, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// Spans of equal `length`, end to end in both directions from `origin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    origin: Timestamp,
    length: Duration,
}

impl Grid {
    /// `None` where `length` is shorter than a microsecond.
    pub fn new(origin: Timestamp, length: Duration) -> Option<Self> {
        (micros(length) > 0).then_some(Grid { origin, length })
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    /// The span that `time` lies in.
    pub fn span_of(&self, time: Timestamp) -> Span {
        // `rem_euclid`: times before the origin belong to the span that starts before them.
        let into = (time.micros() - self.origin.micros()).rem_euclid(micros(self.length));
        let start = Timestamp::from_micros(time.micros() - into);
        Span { start, end: start.plus(self.length) }
    }

    /// The span after `span`.
    pub fn after(&self, span: Span) -> Span {
        Span { start: span.end, end: span.end.plus(self.length) }
    }

    /// Every span that meets `span`, in order.
    pub fn spans_meeting(&self, span: Span) -> impl Iterator<Item = Span> + use<> {
        let grid = *self;
        std::iter::successors(Some(grid.span_of(span.start)), move |s| Some(grid.after(*s)))
            .take_while(move |s| s.start < span.end)
    }

    /// The first span that starts at or after `time`.
    pub fn first_from(&self, time: Timestamp) -> Span {
        let span = self.span_of(time);
        if span.start == time { span } else { self.after(span) }
    }
}
