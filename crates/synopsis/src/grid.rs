//! The public time grid: windows and blocks. Pure arithmetic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{Timestamp, saturating_micros};

/// A span of event time, start included, end excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// Spans of equal `length`, end to end in both directions from `origin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanGrid {
    origin: Timestamp,
    length: Duration,
}

/// The parts of time that have a budget of their own. A privacy unit lies in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Every span of a grid.
    Every(SpanGrid),
    /// All of time is one: the unit is a user forever.
    Forever,
}

impl Span {
    /// All of time, from the earliest to the latest time that is ever written.
    pub const ALL: Span = Span {
        start: Timestamp::EARLIEST,
        end: Timestamp::LATEST,
    };

    #[inline]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.start <= time && time < self.end
    }
}

impl SpanGrid {
    /// `None` where `length` is shorter than a microsecond.
    pub fn new(origin: Timestamp, length: Duration) -> Option<Self> {
        (saturating_micros(length) > 0).then_some(SpanGrid { origin, length })
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// The span that `time` lies in. At the ends of the representable range, 290,000 years away, spans are cut short.
    pub fn span_of(&self, time: Timestamp) -> Span {
        // `rem_euclid`: times before the origin belong to the span that starts before them.
        let into = time
            .micros()
            .saturating_sub(self.origin.micros())
            .rem_euclid(saturating_micros(self.length));
        let start = Timestamp::from_micros(time.micros().saturating_sub(into));
        Span {
            start,
            end: start.plus(self.length),
        }
    }

    /// The span after `span`.
    pub fn span_after(&self, span: Span) -> Span {
        Span {
            start: span.end,
            end: span.end.plus(self.length),
        }
    }

    /// The start of the span that lies `count` spans before `span`.
    pub fn start_before(&self, span: Span, count: u32) -> Timestamp {
        span.start.minus(self.length.saturating_mul(count))
    }

    /// Number of spans that fit between two times.
    pub fn count_spans(&self, from: Timestamp, to: Timestamp) -> u64 {
        (saturating_micros(to.since(from)) / saturating_micros(self.length)).unsigned_abs()
    }

    /// Every span that meets `span`, in order.
    pub fn spans_meeting(&self, span: Span) -> impl Iterator<Item = Span> + use<> {
        let grid = *self;
        std::iter::successors(Some(grid.span_of(span.start)), move |s| {
            Some(grid.span_after(*s))
        })
        .take_while(move |s| s.start < span.end)
    }

    /// The first span that starts at or after `time`.
    pub fn first_from(&self, time: Timestamp) -> Span {
        let span = self.span_of(time);
        if span.start == time {
            span
        } else {
            self.span_after(span)
        }
    }
}

impl Blocks {
    /// The block that `time` lies in.
    pub fn span_of(&self, time: Timestamp) -> Span {
        match self {
            Blocks::Every(grid) => grid.span_of(time),
            Blocks::Forever => Span::ALL,
        }
    }

    /// The block after `block`, if there is one.
    pub fn block_after(&self, block: Span) -> Option<Span> {
        match self {
            Blocks::Every(grid) => Some(grid.span_after(block)),
            Blocks::Forever => None,
        }
    }

    /// Every block that meets `span`, in order. At least one, as long as `span` is not empty.
    pub fn spans_meeting(&self, span: Span) -> impl Iterator<Item = Span> + use<> {
        let blocks = *self;
        std::iter::successors(Some(blocks.span_of(span.start)), move |block| {
            blocks.block_after(*block)
        })
        .take_while(move |block| block.start < span.end)
    }

    /// The first block that starts at or after `time`. There is none where all of time is one block: that has begun.
    pub fn first_from(&self, time: Timestamp) -> Option<Span> {
        match self {
            Blocks::Every(grid) => Some(grid.first_from(time)),
            Blocks::Forever => None,
        }
    }

    /// Length of a block; `None` if it has no end.
    pub fn length(&self) -> Option<Duration> {
        match self {
            Blocks::Every(grid) => Some(grid.length()),
            Blocks::Forever => None,
        }
    }
}

impl From<SpanGrid> for Blocks {
    fn from(grid: SpanGrid) -> Self {
        Blocks::Every(grid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn grid(origin: i64, length: u64) -> SpanGrid {
        SpanGrid::new(at(origin), Duration::from_secs(length)).expect("a length")
    }

    #[test]
    fn every_time_lies_in_exactly_one_span() {
        let grid = grid(3, 10);
        for seconds in -50..50 {
            let span = grid.span_of(at(seconds));
            assert!(span.contains(at(seconds)));
            assert_eq!(
                (span.start.micros() - at(3).micros()).rem_euclid(10_000_000),
                0
            );
            assert_eq!(span.end.since(span.start), Duration::from_secs(10));
        }
        assert_eq!(grid.span_of(at(2)).end, at(3));
        assert_eq!(grid.span_of(at(3)).start, at(3));
    }

    #[test]
    fn a_window_that_straddles_midnight_meets_both_days() {
        let days = grid(0, 86_400);
        let straddling = Span {
            start: at(86_000),
            end: at(87_000),
        };
        let met: Vec<Span> = days.spans_meeting(straddling).collect();
        assert_eq!(met.len(), 2);
        assert_eq!(met[1].start, at(86_400));
        assert_eq!(
            days.spans_meeting(Span {
                start: at(0),
                end: at(86_400)
            })
            .count(),
            1
        );
    }

    #[test]
    fn the_first_span_from_a_time_never_starts_before_it() {
        let grid = grid(0, 60);
        assert_eq!(grid.first_from(at(60)).start, at(60));
        assert_eq!(grid.first_from(at(61)).start, at(120));
        assert_eq!(grid.first_from(at(-1)).start, at(0));
    }

    #[test]
    fn blocks_of_a_grid_are_its_spans() {
        let days = grid(3, 86_400);
        let blocks = Blocks::from(days);
        for start in [-200_000, 0, 86_000] {
            let span = Span {
                start: at(start),
                end: at(start + 100_000),
            };
            assert!(blocks.spans_meeting(span).eq(days.spans_meeting(span)));
            assert_eq!(
                blocks.first_from(span.start),
                Some(days.first_from(span.start))
            );
            assert_eq!(blocks.span_of(span.start), days.span_of(span.start));
        }
        assert_eq!(blocks.length(), Some(days.length()));
    }

    #[test]
    fn a_unit_for_ever_has_one_block_that_every_window_meets_and_none_after_it() {
        let hours = grid(0, 3600);
        for time in [
            Timestamp::EARLIEST,
            at(0),
            at(1_767_225_600),
            Timestamp::LATEST.minus(Duration::from_secs(7200)),
        ] {
            let window = hours.first_from(time);
            assert_eq!(
                Blocks::Forever.spans_meeting(window).collect::<Vec<_>>(),
                [Span::ALL]
            );
            assert!(Span::ALL.start <= window.start && window.end <= Span::ALL.end);
            assert_eq!(
                (
                    Blocks::Forever.span_of(time),
                    Blocks::Forever.first_from(time)
                ),
                (Span::ALL, None)
            );
        }
        assert_eq!(
            (
                Blocks::Forever.block_after(Span::ALL),
                Blocks::Forever.length()
            ),
            (None, None)
        );
    }

    #[test]
    fn all_of_time_is_written_and_read_again() {
        let text = serde_json::to_string(&Span::ALL).unwrap();
        assert_eq!(
            text,
            r#"{"start":"0001-01-01T00:00:00Z","end":"9999-12-31T23:59:59.999999Z"}"#
        );
        assert_eq!(serde_json::from_str::<Span>(&text).unwrap(), Span::ALL);
    }

    #[test]
    fn times_at_the_ends_of_the_range_do_not_overflow() {
        for micros in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
            let span = grid(-5, 7).span_of(Timestamp::from_micros(micros));
            assert!(span.start.micros() <= micros);
        }
    }
}
