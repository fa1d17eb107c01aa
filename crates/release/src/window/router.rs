//! Windows and groups that rows belong to, by the public rules alone.

use std::ops::Range;

use arrow_array::Array;

use super::counts::{DropReason, RecordCounts};
use super::keys::KeyGroups;
use super::rules::WindowRules;
use crate::source::Batch;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// Longest value of the unit column, in bytes. Every user of an open window is kept whole, for each of its periods.
pub const LONGEST_UNIT: usize = 1024;

/// A row that belongs to a window.
#[derive(Clone, Copy)]
pub(super) struct RoutedRow {
    /// The start of its window.
    pub window: Timestamp,
    /// Its place in the batch.
    pub row: usize,
    pub group: u32,
}

/// The public rules, prepared for the rows of one message; it keeps nothing of other rows.
pub(super) struct RecordRouter<'a> {
    pub rules: &'a WindowRules,
    pub keys: Option<&'a KeyGroups>,
    pub backfill_until: Option<Timestamp>,
    /// The start of the first window that is of use.
    pub oldest: Timestamp,
    /// The starts of the windows that are closed for good.
    pub closed: Range<Timestamp>,
    /// The message timestamp of the rows, and the latest event time that it allows.
    pub message: Option<Timestamp>,
    pub latest: Timestamp,
}

/// A window, and why it takes no rows of this message, if it takes none: the first is checked before the row's own time is.
struct RowDestination {
    span: Span,
    is_closed: bool,
    is_late: bool,
}

/// State that a router remembers from one chunk of a batch to the next.
pub(super) struct RouterMemory {
    /// The window of the last row: most often the next one's too.
    at: RowDestination,
    /// The group of each row of the batch, once one is asked for.
    groups: Option<Vec<Option<u32>>>,
}

impl RecordRouter<'_> {
    pub fn memory(&self) -> RouterMemory {
        RouterMemory {
            at: self.destination(self.oldest),
            groups: None,
        }
    }

    fn destination(&self, time: Timestamp) -> RowDestination {
        let span = self.rules.grid.span_of(time);
        let cutoff = self.rules.window_cutoff(span, self.backfill_until);
        RowDestination {
            span,
            is_closed: span.start < self.oldest
                || self.closed.contains(&span.start)
                || self.rules.end.is_some_and(|end| span.end > end),
            is_late: self.message.is_some_and(|message| message >= cutoff),
        }
    }

    /// Finds which of `rows` belong to a window, window by window, and counts those that do not.
    pub fn route_rows(
        &self,
        batch: &Batch,
        rows: &Range<usize>,
        memory: &mut RouterMemory,
        found: &mut Vec<RoutedRow>,
        counts: &mut RecordCounts,
    ) {
        found.clear();
        let RouterMemory { at, groups } = memory;
        match self.window_of_rows(batch, rows, at) {
            Some(Ok(window)) => found.extend(rows.clone().map(|row| RoutedRow {
                window,
                row,
                group: 0,
            })),
            Some(Err(refusal)) => return counts.add(refusal, rows.len()),
            None => {
                for row in rows.clone() {
                    match self.window_of_row(batch, row, at) {
                        Ok(window) => found.push(RoutedRow {
                            window,
                            row,
                            group: 0,
                        }),
                        Err(refusal) => counts.add(refusal, 1),
                    }
                }
                found.sort_by_key(|routed| routed.window);
            }
        }
        if let Some(keys) = self.keys
            && !found.is_empty()
        {
            let groups = groups.get_or_insert_with(|| match &batch.keys {
                Some(column) => keys.groups_of_rows(column),
                None => Vec::new(),
            });
            keep_accepted(found, counts, |routed| {
                let group = groups
                    .get(routed.row)
                    .copied()
                    .flatten()
                    .ok_or(DropReason::UnknownKey)?;
                Ok(RoutedRow { group, ..routed })
            });
        }
        if let Some(longest) = self.rules.longest_key {
            let mut joined = Vec::new();
            keep_accepted(found, counts, |routed| {
                let keys = batch.keys.as_ref();
                keys.and_then(|keys| keys.text_of_row(routed.row, longest, &mut joined))
                    .map(|_| routed)
                    .ok_or(DropReason::UnknownKey)
            });
        }
        if self.rules.cap.is_some() {
            keep_accepted(found, counts, |routed| {
                let user = batch
                    .units
                    .as_ref()
                    .and_then(|units| units.get(routed.row))
                    .ok_or(DropReason::Missing)?;
                if user.len() > LONGEST_UNIT {
                    Err(DropReason::LongUnit)
                } else {
                    Ok(routed)
                }
            });
        }
    }

    /// The window of all `rows`, or why all of them are dropped, where their earliest and latest times say so.
    fn window_of_rows(
        &self,
        batch: &Batch,
        rows: &Range<usize>,
        at: &mut RowDestination,
    ) -> Option<Result<Timestamp, DropReason>> {
        if batch
            .times
            .nulls()
            .is_some_and(|nulls| nulls.slice(rows.start, rows.len()).null_count() > 0)
        {
            return None;
        }
        let times = batch.times.values().get(rows.clone())?;
        let mut first = i64::MAX;
        let mut last = i64::MIN;
        for time in times {
            first = first.min(*time);
            last = last.max(*time);
        }
        let [first, last] = [first, last].map(Timestamp::from_micros);
        if !at.span.contains(first) {
            *at = self.destination(first);
        }
        if !at.span.contains(first) || !at.span.contains(last) {
            return None;
        }
        if at.is_closed {
            return Some(Err(DropReason::Closed));
        }
        if last > self.latest {
            return None;
        }
        Some(if at.is_late {
            Err(DropReason::Late)
        } else {
            Ok(at.span.start)
        })
    }

    /// The window of one row. `at` is the last row's window, and becomes this one's.
    fn window_of_row(
        &self,
        batch: &Batch,
        row: usize,
        at: &mut RowDestination,
    ) -> Result<Timestamp, DropReason> {
        if batch.times.is_null(row) {
            return Err(DropReason::Missing);
        }
        let time = Timestamp::from_micros(batch.times.value(row));
        if !at.span.contains(time) {
            *at = self.destination(time);
        }
        if at.is_closed {
            return Err(DropReason::Closed);
        }
        if time > self.latest {
            return Err(DropReason::Ahead);
        }
        if at.is_late {
            Err(DropReason::Late)
        } else {
            Ok(at.span.start)
        }
    }
}

/// Keeps the rows that `check` returns, and counts the others.
fn keep_accepted(
    found: &mut Vec<RoutedRow>,
    counts: &mut RecordCounts,
    mut check: impl FnMut(RoutedRow) -> Result<RoutedRow, DropReason>,
) {
    found.retain_mut(|routed| match check(*routed) {
        Ok(kept) => {
            *routed = kept;
            true
        }
        Err(refusal) => {
            counts.add(refusal, 1);
            false
        }
    });
}
