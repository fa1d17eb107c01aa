//! Where a row belongs, by the public rules alone.

use std::ops::Range;

use arrow_array::Array;

use super::counts::Refusal;
use super::grid::Span;
use super::rules::Rules;
use crate::clock::Timestamp;
use crate::source::Batch;

/// How long the value of the unit column may be, in bytes. Every user of an open window is kept whole, for each of its periods.
pub const LONGEST_UNIT: usize = 1024;

/// Where a row belongs in its window, and the user whose cap it falls under.
pub(super) struct Assignment<'a> {
    pub time: Timestamp,
    pub group: usize,
    pub user: Option<&'a [u8]>,
}

/// The public rules, prepared for the rows of one message; it keeps nothing of other rows.
pub(super) struct RecordRouter<'a> {
    pub rules: &'a Rules,
    pub keys: Option<&'a [(Vec<u8>, usize)]>,
    pub backfill_until: Option<Timestamp>,
    /// The start of the first window that is of use.
    pub oldest: Timestamp,
    /// The starts of the windows that are closed for good.
    pub closed: Range<Timestamp>,
    /// The message timestamp of the rows, and the latest event time that it allows.
    pub message: Option<Timestamp>,
    pub latest: Timestamp,
}

/// A window, and whether it still takes rows of this message.
pub(super) struct Destination {
    pub span: Span,
    is_closed: bool,
    is_late: bool,
}

impl RecordRouter<'_> {
    pub fn destination(&self, time: Timestamp) -> Destination {
        let span = self.rules.grid.span_of(time);
        let cutoff = self.rules.cutoff(span, self.backfill_until);
        Destination {
            span,
            is_closed: span.start < self.oldest
                || self.closed.contains(&span.start)
                || self.rules.end.is_some_and(|end| span.end > end),
            is_late: self.message.is_some_and(|message| message >= cutoff),
        }
    }

    /// Where a row belongs. `at` is the last row's window, and becomes this one's.
    #[inline]
    pub fn assign<'a>(&self, batch: &'a Batch, row: usize, at: &mut Destination) -> Result<Assignment<'a>, Refusal> {
        if batch.times.is_null(row) {
            return Err(Refusal::Missing);
        }
        let time = Timestamp::from_micros(batch.times.value(row));
        if !at.span.contains(time) {
            *at = self.destination(time);
        }
        if at.is_closed {
            return Err(Refusal::Closed);
        }
        if time > self.latest {
            return Err(Refusal::Ahead);
        }
        if at.is_late {
            return Err(Refusal::Late);
        }
        let group = self.group(batch, row)?;
        let user = match self.rules.cap {
            Some(_) => Some(batch.units.as_ref().and_then(|units| units.get(row)).ok_or(Refusal::Missing)?),
            None => None,
        };
        if user.is_some_and(|user| user.len() > LONGEST_UNIT) {
            return Err(Refusal::LongUnit);
        }
        Ok(Assignment { time, group, user })
    }

    #[inline]
    fn group(&self, batch: &Batch, row: usize) -> Result<usize, Refusal> {
        let Some(keys) = self.keys else { return Ok(0) };
        let key = batch.keys.as_ref().and_then(|column| column.get(row)).ok_or(Refusal::UnknownKey)?;
        let found = keys.binary_search_by(|(known, _)| known.as_slice().cmp(key)).map_err(|_| Refusal::UnknownKey)?;
        keys.get(found).map(|(_, group)| *group).ok_or(Refusal::UnknownKey)
    }
}
