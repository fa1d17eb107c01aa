//! Open windows: the public rules alone assign each record to one window, once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::{CHUNK, ChunkRecords};
use super::counts::{DropReason, RecordCounts};
use super::encoding;
use super::keys::KeyGroups;
use super::open::{ChunkRows, OpenWindow};
use super::part::{self, Window, WindowPart};
use super::router::{RecordRouter, RoutedRow};
use super::rules::{ReleaseInput, WindowRules};
use crate::source::Batch;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// All windows that are open, from the first that is not closed yet.
///
/// A record's membership is a predicate of the record alone: its event time lies in the window, its message timestamp is
/// before the window's cutoff, its event time is not further ahead of the message timestamp than the allowance, its key is
/// declared, or one that can be found, and its values are numbers. One record more changes no other record's assignment, except that a unit's own earlier
/// rows may take the place of its later ones under the cap, and that one record may push one other out where a window
/// keeps a bounded number of records ([`AccumulatorSpec::Records`](super::accumulator::AccumulatorSpec::Records)).
pub struct WindowStore {
    rules: Arc<WindowRules>,
    forms: Arc<[ReleaseInput]>,
    keys: Option<KeyGroups>,
    backfill_until: Option<Timestamp>,
    /// No record from before here is taken: the start of the first window of the ledger.
    first: Timestamp,
    next: Span,
    /// Windows that were closed since here take no records; those before take theirs again, for the windows that overlap
    /// them, as long as those need them.
    refilled: Timestamp,
    /// Open windows by their starts, one a form; `None` where it holds nothing.
    open: BTreeMap<Timestamp, Vec<Option<OpenWindow>>>,
    /// Room for the chunk that is being worked on, and what each form makes of it.
    routed: Vec<RoutedRow>,
    records: Vec<ChunkRecords>,
}

impl WindowStore {
    /// `first` is where the ledger begins, `next` the first window that may be closed; `backfill_until` is from the ledger.
    pub fn new(
        rules: WindowRules,
        forms: Vec<ReleaseInput>,
        first: Timestamp,
        next: Span,
        backfill_until: Option<Timestamp>,
    ) -> Self {
        let keys = KeyGroups::of_rules(&rules);
        let records = forms.iter().map(|_| ChunkRecords::default()).collect();
        let refilled = next.start;
        WindowStore {
            rules: Arc::new(rules),
            forms: forms.into(),
            keys,
            backfill_until,
            first,
            next,
            refilled,
            open: BTreeMap::new(),
            routed: Vec::new(),
            records,
        }
    }

    /// The window to close next; `None` after the last of the grid.
    pub fn next(&self) -> Option<Span> {
        (self.rules.end.is_none_or(|end| self.next.end <= end)).then_some(self.next)
    }

    /// Time when the next window stops taking records.
    pub fn next_cutoff(&self) -> Timestamp {
        self.rules.window_cutoff(self.next, self.backfill_until)
    }

    /// The oldest message timestamp that any open window can need.
    pub fn oldest_message(&self) -> Timestamp {
        self.rules
            .oldest_message(self.rules.grid.span_of(self.oldest_needed(self.next)))
    }

    /// The start of the first window that a release of `window` can be evaluated on.
    fn oldest_needed(&self, window: Span) -> Timestamp {
        let panes = self.forms.iter().map(|form| form.panes).max().unwrap_or(1);
        self.rules
            .grid
            .start_before(window, panes - 1)
            .max(self.first)
    }

    /// Drops everything that was absorbed; the source must seek back to [`WindowStore::oldest_message`].
    pub fn clear_records(&mut self) {
        self.open.clear();
        self.refilled = self.next.start;
    }

    /// Adds each row of `batch` to its window, or drops it; the counts say why.
    pub fn absorb_batch(&mut self, batch: &Batch) -> RecordCounts {
        let oldest = self.oldest_needed(self.next);
        let WindowStore {
            rules,
            forms,
            keys,
            backfill_until,
            next,
            refilled,
            open,
            routed,
            records,
            ..
        } = self;
        let router = RecordRouter {
            rules,
            keys: keys.as_ref(),
            backfill_until: *backfill_until,
            oldest,
            closed: *refilled..next.start,
            message: batch.message_time,
            // Without message timestamps no event time is too far ahead.
            latest: batch
                .message_time
                .map_or(Timestamp::from_micros(i64::MAX), |message| {
                    message.plus(rules.max_future_skew)
                }),
        };
        let mut counts = RecordCounts::default();
        let mut memory = router.memory();
        for rows in chunks(batch) {
            router.route_rows(batch, &rows, &mut memory, routed, &mut counts);
            if routed.is_empty() {
                continue;
            }
            for (form, records) in forms.iter().zip(records.iter_mut()) {
                records.read_rows(form, batch, &rows);
            }
            for together in routed.chunk_by(|one, other| one.window == other.window) {
                let Some(start) = together.first().map(|routed| routed.window) else {
                    continue;
                };
                let window = open
                    .entry(start)
                    .or_insert_with(|| forms.iter().map(|_| None).collect());
                for ((form, open), records) in forms.iter().zip(window).zip(&*records) {
                    let open =
                        open.get_or_insert_with(|| OpenWindow::new(rules, &form.accumulator));
                    let chunk = ChunkRows {
                        batch,
                        start: rows.start,
                        rows: together,
                        records,
                    };
                    open.take_rows(form, rules.cap.as_ref(), &chunk);
                }
            }
            count_rows(routed, rows.start, records, &mut counts);
        }
        counts
    }

    /// Number of rows of `batch`, which lies behind the ends of all closed windows, were sent before the cutoff of a closed one:
    /// it would have taken them if they had turned up in time.
    pub fn count_behind(&self, batch: &Batch) -> u64 {
        let Some(message) = batch.message_time else {
            return 0;
        };
        let next = self.next.start;
        let router = RecordRouter {
            rules: &self.rules,
            keys: self.keys.as_ref(),
            backfill_until: self.backfill_until,
            oldest: self.first,
            closed: next..next,
            message: Some(message),
            latest: message.plus(self.rules.max_future_skew),
        };
        let mut memory = router.memory();
        let mut routed = Vec::new();
        let mut behind = 0;
        for rows in chunks(batch) {
            router.route_rows(
                batch,
                &rows,
                &mut memory,
                &mut routed,
                &mut RecordCounts::default(),
            );
            behind += routed.iter().filter(|routed| routed.window < next).count() as u64;
        }
        behind
    }

    /// Closes the next window and moves on to the one after it.
    pub fn close_next(&mut self) -> Window {
        self.close_part().into_window()
    }

    /// The windows whose records the next one needs and that are not closed by [`WindowStore::close_part`] any more: those before it that a release
    /// overlaps, and itself, in order.
    pub fn needed(&self) -> Vec<Span> {
        let mut at = self.rules.grid.span_of(self.oldest_needed(self.next));
        let mut needed = Vec::new();
        while at.start <= self.next.start {
            needed.push(at);
            at = self.rules.grid.span_after(at);
        }
        needed
    }

    /// Drops what was taken for `window`.
    pub fn forget_window(&mut self, window: Span) {
        self.open.remove(&window.start);
    }

    /// Time when a window stops taking records.
    pub fn cutoff_of(&self, window: Span) -> Timestamp {
        self.rules.window_cutoff(window, self.backfill_until)
    }

    /// The oldest message timestamp that a record of `window` can have.
    pub fn oldest_message_of(&self, window: Span) -> Timestamp {
        self.rules.oldest_message(window)
    }

    /// Adds what another process has of `window`, which is as if its records had been absorbed: `bytes` are those of
    /// [`WindowPart::canonical_bytes`], of the same rules and forms. Returns whether they are.
    pub fn take_part(&mut self, window: Span, bytes: &[u8]) -> bool {
        let WindowStore {
            rules, forms, open, ..
        } = self;
        let Some(theirs) = encoding::decode_windows(rules, forms, window, bytes) else {
            return false;
        };
        let ours = open
            .entry(window.start)
            .or_insert_with(|| forms.iter().map(|_| None).collect());
        for ((form, ours), theirs) in forms.iter().zip(ours).zip(theirs) {
            part::join_open(rules, form, ours, theirs);
        }
        true
    }

    /// Closes the next window of a reader that has read some of the input: what the others have is still to be joined.
    pub fn close_part(&mut self) -> WindowPart {
        let span = self.next;
        let next = self.rules.grid.span_after(span);
        let oldest = self.oldest_needed(next);
        let mut closing = self
            .open
            .remove(&span.start)
            .unwrap_or_default()
            .into_iter();
        let mut forms = Vec::with_capacity(self.forms.len());
        let mut kept = Vec::with_capacity(self.forms.len());
        for (index, form) in self.forms.iter().enumerate() {
            let mut open: Option<OpenWindow> = closing.next().flatten();
            let later = if form.panes > 1 { open.clone() } else { None };
            if form.panes > 1 {
                let from = self
                    .rules
                    .grid
                    .start_before(span, form.panes - 1)
                    .max(self.first);
                for (_, window) in self.open.range(from..span.start) {
                    // A unit's cap holds for all of them together: who may stay is decided later, not pane by pane.
                    if let Some(pane) = window.get(index) {
                        part::join_open(&self.rules, form, &mut open, pane.clone());
                    }
                }
            }
            kept.push(later);
            forms.push(open);
        }
        // What later windows overlap stays; a form without panes has nothing there.
        if self.forms.iter().any(|form| form.panes > 1) {
            self.open.insert(span.start, kept);
        }
        self.open = self.open.split_off(&oldest);
        self.next = next;
        WindowPart {
            rules: Arc::clone(&self.rules),
            all: Arc::clone(&self.forms),
            span,
            forms,
        }
    }
}

/// The rows of a batch, those that are worked on together.
fn chunks(batch: &Batch) -> impl Iterator<Item = Range<usize>> {
    let rows = batch.times.len();
    (0..rows)
        .step_by(CHUNK)
        .map(move |start| start..rows.min(start + CHUNK))
}

/// Counts the rows of a chunk that begins at `start`. Each form checks a row's values by itself: one may take what another drops.
fn count_rows(
    routed: &[RoutedRow],
    start: usize,
    records: &[ChunkRecords],
    counts: &mut RecordCounts,
) {
    if records.iter().any(ChunkRecords::are_all_sound) {
        counts.taken += routed.len() as u64;
        return;
    }
    for row in routed {
        let refusals = records
            .iter()
            .map(|records| records.refusal_of(row.row - start));
        match refusals.reduce(|before, next| before.and(next)) {
            Some(None) => counts.taken += 1,
            Some(Some(why)) => counts.add(why, 1),
            None => counts.add(DropReason::Missing, 1),
        }
    }
}
