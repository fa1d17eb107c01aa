//! The public rules: windows, domains, keys and caps.

use std::time::Duration;

use super::accumulator::{AccumulatorSpec, LABEL, Record, whole_label};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, Span, SpanGrid};

/// The public rules that assign a record to a window or drop it; no rule depends on another record.
#[derive(Clone, Debug)]
pub struct WindowRules {
    /// The windows.
    pub grid: SpanGrid,
    /// End of the grid, a window's end.
    pub end: Option<Timestamp>,
    /// Time after its end for which a window still takes records.
    pub allowed_lateness: Duration,
    /// Most by which a record's event time may exceed its message timestamp.
    pub max_future_skew: Duration,
    /// The declared keys; without them a window has one group.
    pub keys: Option<Vec<String>>,
    /// The name, for each part of the key in their order, of everything that is not listed there; of a part without one such records are
    /// dropped. Empty where no part has one. Keys with these names are among `keys`.
    pub other: Vec<Option<String>>,
    /// Longest key, in bytes, where nobody listed the keys: a record whose key is missing, empty, longer or no UTF-8 is dropped. `None` where
    /// keys are listed, or there are none.
    pub longest_key: Option<usize>,
    /// Limit on what a user may contribute; without it every record is a unit of its own.
    pub cap: Option<Cap>,
}

impl WindowRules {
    /// Time when `window` stops taking records: message timestamps before the cutoff are in, all others are out.
    pub fn window_cutoff(&self, window: Span, backfill_until: Option<Timestamp>) -> Timestamp {
        let cutoff = window.end.plus(self.allowed_lateness);
        backfill_until.map_or(cutoff, |until| cutoff.max(until))
    }

    /// Returns whether a record with this event time can belong to a window of the grid, whichever of them are open.
    pub fn has_window(&self, time: Timestamp, message: Option<Timestamp>) -> bool {
        let is_after = self
            .end
            .is_some_and(|end| self.grid.span_of(time).end > end);
        let is_ahead = message.is_some_and(|message| time > message.plus(self.max_future_skew));
        time >= self.grid.origin() && !is_after && !is_ahead
    }

    /// The oldest message timestamp that a record of `window` can have.
    pub fn oldest_message(&self, window: Span) -> Timestamp {
        window.start.minus(self.max_future_skew)
    }
}

/// Part of the records of a window that one release takes.
#[derive(Clone, Debug)]
pub struct ReleaseInput {
    /// The domain, 1 to 3 axes.
    pub axes: Vec<DomainAxis>,
    /// The label of a record, where the function has one.
    pub label: Option<RecordLabel>,
    /// Places of its values in a batch: one an axis, and that of the label.
    pub columns: Vec<usize>,
    /// Kind of state that a window keeps of the records.
    pub accumulator: AccumulatorSpec,
    /// Number of windows that it is evaluated on together: the one that closes, and those before it.
    pub panes: u32,
}

impl ReleaseInput {
    /// Returns whether a record of a window can become this one: it lies in the domain, and its label is one of those that there are.
    pub(super) fn can_keep(&self, record: &Record) -> bool {
        for (axis, coordinate) in record.place.0.iter().enumerate() {
            let last = if axis < self.axes.len() {
                self.accumulator.last_coordinate(axis)
            } else {
                0
            };
            if *coordinate > last {
                return false;
            }
        }
        match &self.label {
            None => record.label == 0,
            Some(RecordLabel::Number(_)) => (-LABEL..=LABEL).contains(&record.label),
            Some(RecordLabel::Above(_)) => [-LABEL, LABEL].contains(&record.label),
            Some(RecordLabel::Classes(values)) => {
                usize::try_from(record.label).is_ok_and(|class| class < values.len())
            }
        }
    }
}

/// One axis of the domain, in natural units; mapped to `[0, 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainAxis {
    pub min: f64,
    pub max: f64,
    pub outside: OutsideRule,
}

impl DomainAxis {
    /// The place of `value` in `[0, 1]`; `None` where the record is dropped.
    #[inline]
    pub fn unit_place(&self, value: f64) -> Option<f64> {
        if !self.contains(value) && (self.outside == OutsideRule::Drop || value.is_nan()) {
            return None;
        }
        Some(self.nearest_unit(value))
    }

    /// Returns whether `value` lies in the domain, its ends included.
    #[inline]
    pub fn contains(&self, value: f64) -> bool {
        value >= self.min && value <= self.max
    }

    /// The place in `[0, 1]` of the number of the domain that is nearest to `value`.
    #[inline]
    pub(super) fn nearest_unit(&self, value: f64) -> f64 {
        ((value.clamp(self.min, self.max) - self.min) / (self.max - self.min)).clamp(0.0, 1.0)
    }
}

/// The label of a record, for regressions and classifiers.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordLabel {
    /// A number: `min` becomes -1, `max` becomes 1.
    Number(DomainAxis),
    /// A class: 1 above the threshold, -1 at or below it.
    Above(f64),
    /// One of several classes: its place in this list. A record with another value is dropped.
    Classes(Vec<f64>),
}

/// Treatment of a record whose value lies outside the domain (null and NaN are always dropped).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideRule {
    Clamp,
    Drop,
}

/// Limit of `records` of a user's records a window and period.
#[derive(Clone, Debug)]
pub struct Cap {
    pub period: Blocks,
    pub records: u32,
}

impl RecordLabel {
    /// The label of a record with this value, in `[-1, 1]`, or the place of its class in a list of several; `None` where the record is
    /// dropped.
    pub fn of(&self, value: f64) -> Option<f64> {
        match self {
            RecordLabel::Classes(_) => self.label_of_record(value).map(f64::from),
            _ => self
                .label_of_record(value)
                .map(|whole| f64::from(whole) / f64::from(LABEL)),
        }
    }

    /// The label as a record keeps it; `None` where the record is dropped.
    #[inline]
    pub(super) fn label_of_record(&self, value: f64) -> Option<i32> {
        match self {
            RecordLabel::Number(axis) => axis
                .unit_place(value)
                .map(|unit| whole_label(2.0 * unit - 1.0)),
            RecordLabel::Above(threshold) => Some(if value > *threshold { LABEL } else { -LABEL }),
            RecordLabel::Classes(values) => values
                .iter()
                .position(|class| *class == value)
                .and_then(|class| i32::try_from(class).ok()),
        }
    }
}
