//! Open windows: the public rules alone assign each record to one window, once.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::accumulator::{Accumulator, AccumulatorSpec, Record};
use super::counts::{RecordCounts, Refusal};
use super::grid::Span;
use super::router::{Assignment, RecordRouter};
use super::rules::{Cap, Form, Rules};
use crate::clock::Timestamp;
use crate::source::Batch;

/// All windows that are open, from the first that is not closed yet.
///
/// A record's membership is a predicate of the record alone: its event time lies in the window, its message timestamp is
/// before the window's cutoff, its event time is not further ahead of the message timestamp than the allowance, its key is
/// declared and its values are numbers. One record more changes no other record's assignment, except that a unit's own earlier
/// rows may take the place of its later ones under the cap, and that one record may push one other out where a window
/// keeps a bounded number of records ([`AccumulatorSpec::Records`]).
pub struct Windows {
    rules: Rules,
    forms: Vec<Form>,
    /// Declared keys in order, each with its place in `Rules::keys`.
    keys: Option<Vec<(Vec<u8>, usize)>>,
    backfill_until: Option<Timestamp>,
    /// No record from before here is taken: the start of the first window of the ledger.
    first: Timestamp,
    next: Span,
    /// Windows that were closed since here take no records; those before take theirs again, for the windows that overlap
    /// them, as long as those need them.
    refilled: Timestamp,
    /// One a form, of each window.
    open: BTreeMap<Timestamp, Vec<Open>>,
}

/// What one open window holds for one form.
#[derive(Clone, Default)]
struct Open {
    /// One a declared key, in the order of `Rules::keys`.
    groups: Vec<Held>,
    /// Records under a cap wait here until the window closes, so that an earlier row that comes later can take a place.
    waiting: HashMap<Unit, Vec<Waiting>>,
}

/// What an open window holds of one key.
#[derive(Clone)]
enum Held {
    /// The first records so far, where a bounded number is kept; the last of them on top.
    First(BinaryHeap<Waiting>),
    Sum(Accumulator),
}

/// A user within a period.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Unit {
    period: Timestamp,
    user: Vec<u8>,
}

/// A record that may still lose its place under a cap. The derived order is the public order of survival: event time, then place in the input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: Timestamp,
    partition: i32,
    offset: i64,
    row: usize,
    group: usize,
    record: Record,
}

/// A closed window, for each form the groups: one a declared key, in the declared order, empty ones too.
#[derive(Debug)]
pub struct Window {
    pub span: Span,
    pub forms: Vec<Vec<Group>>,
}

/// What a window holds of one key.
#[derive(Debug)]
pub struct Group {
    pub key: Option<String>,
    pub accumulator: Accumulator,
}

impl Windows {
    /// `first` is where the ledger begins, `next` the first window that may be closed; `backfill_until` is from the ledger.
    pub fn new(
        rules: Rules,
        forms: Vec<Form>,
        first: Timestamp,
        next: Span,
        backfill_until: Option<Timestamp>,
    ) -> Self {
        let keys = rules.keys.as_ref().map(|keys| {
            let mut sorted: Vec<_> = keys.iter().enumerate().map(|(at, key)| (key.clone().into_bytes(), at)).collect();
            sorted.sort_unstable();
            sorted
        });
        let refilled = next.start;
        Windows { rules, forms, keys, backfill_until, first, next, refilled, open: BTreeMap::new() }
    }

    /// The window to close next; `None` after the last of the grid.
    pub fn next(&self) -> Option<Span> {
        (self.rules.end.is_none_or(|end| self.next.end <= end)).then_some(self.next)
    }

    /// When the next window stops taking records.
    pub fn cutoff(&self) -> Timestamp {
        self.rules.cutoff(self.next, self.backfill_until)
    }

    /// The oldest message timestamp that any open window can need.
    pub fn oldest_message(&self) -> Timestamp {
        self.rules.oldest_message(self.rules.grid.span_of(self.oldest(self.next)))
    }

    /// The start of the first window that a release of `window` can be evaluated on.
    fn oldest(&self, window: Span) -> Timestamp {
        let panes = self.forms.iter().map(|form| form.panes).max().unwrap_or(1);
        self.rules.grid.before(window, panes - 1).max(self.first)
    }

    /// Drops everything that was absorbed; the source must seek back to [`Windows::oldest_message`].
    pub fn clear(&mut self) {
        self.open.clear();
        self.refilled = self.next.start;
    }

    /// Adds each row of `batch` to its window, or drops it; the counts say why.
    pub fn absorb(&mut self, batch: &Batch) -> RecordCounts {
        let oldest = self.oldest(self.next);
        let Windows { rules, forms, keys, backfill_until, next, refilled, open, .. } = self;
        let router = RecordRouter {
            rules,
            keys: keys.as_deref(),
            backfill_until: *backfill_until,
            oldest,
            closed: *refilled..next.start,
            message: batch.message_time,
            // Without message timestamps no event time is too far ahead.
            latest: batch
                .message_time
                .map_or(Timestamp::from_micros(i64::MAX), |message| message.plus(rules.max_future_skew)),
        };
        let mut counts = RecordCounts::default();
        let mut at = router.destination(next.start);
        // The window that the row before went to: most often this one's too.
        let mut current: Option<(Timestamp, &mut Vec<Open>)> = None;
        for row in 0..batch.times.len() {
            let assignment = match router.assign(batch, row, &mut at) {
                Ok(assignment) => assignment,
                Err(refusal) => {
                    counts.count(Err(refusal));
                    continue;
                }
            };
            let window = match current {
                Some((start, window)) if start == at.span.start => window,
                _ => open
                    .entry(at.span.start)
                    .or_insert_with(|| forms.iter().map(|form| Open::new(rules, &form.accumulator)).collect()),
            };
            // Each form checks a row's values by itself: one may take what another drops.
            let mut fate = Err(Refusal::Missing);
            for (form, open) in forms.iter().zip(window.iter_mut()) {
                match form.record(batch, row) {
                    Ok(record) => {
                        let waiting = || Waiting::new(batch, row, &assignment, record);
                        match (&rules.cap, assignment.user) {
                            (Some(cap), Some(user)) => open.wait(cap, user, waiting()),
                            _ => open.add(&form.accumulator, assignment.group, record, waiting),
                        }
                        fate = Ok(());
                    }
                    Err(refusal) if fate.is_err() => fate = Err(refusal),
                    Err(_) => {}
                }
            }
            current = Some((at.span.start, window));
            counts.count(fate);
        }
        counts
    }

    /// How many rows of `batch`, which lies behind the ends of all closed windows, were sent before the cutoff of a closed one:
    /// it would have taken them if they had turned up in time.
    pub fn behind(&self, batch: &Batch) -> u64 {
        let Some(message) = batch.message_time else { return 0 };
        let next = self.next.start;
        let router = RecordRouter {
            rules: &self.rules,
            keys: self.keys.as_deref(),
            backfill_until: self.backfill_until,
            oldest: self.first,
            closed: next..next,
            message: Some(message),
            latest: message.plus(self.rules.max_future_skew),
        };
        let mut at = router.destination(next);
        let is_behind = |row: &usize| router.assign(batch, *row, &mut at).is_ok_and(|found| found.time < next);
        (0..batch.times.len()).filter(is_behind).count() as u64
    }

    /// Closes the next window and moves on to the one after it.
    pub fn close(&mut self) -> Window {
        let span = self.next;
        let next = self.rules.grid.after(span);
        let oldest = self.oldest(next);
        let mut closing = self.open.remove(&span.start).unwrap_or_default().into_iter();
        let mut kept = Vec::new();
        let mut forms = Vec::with_capacity(self.forms.len());
        for (at, form) in self.forms.iter().enumerate() {
            let open = closing.next().unwrap_or_else(|| Open::new(&self.rules, &form.accumulator));
            let groups = if form.panes == 1 {
                open.settled(&form.accumulator).groups
            } else {
                let from = self.rules.grid.before(span, form.panes - 1).max(self.first);
                let mut all = Open::new(&self.rules, &form.accumulator);
                let before = self.open.range(from..span.start).filter_map(|(_, window)| window.get(at));
                for pane in before.cloned().chain([open.clone()]) {
                    all.join(&form.accumulator, self.rules.cap.as_ref(), pane);
                }
                kept.push((at, open));
                // A unit's cap holds for all of them together: who may stay is decided here, not pane by pane.
                all.settled(&form.accumulator).groups
            };
            let keys = match &self.rules.keys {
                Some(keys) => keys.iter().cloned().map(Some).collect(),
                None => vec![None],
            };
            forms.push(
                keys.into_iter()
                    .zip(groups)
                    .map(|(key, held)| Group { key, accumulator: held.accumulator(&form.accumulator) }),
            );
        }
        let forms = forms.into_iter().map(Iterator::collect).collect();
        // What later windows overlap stays; a form without panes has nothing there.
        if !kept.is_empty() {
            let mut window: Vec<Open> = self.forms.iter().map(|_| Open::default()).collect();
            for (at, open) in kept {
                if let Some(place) = window.get_mut(at) {
                    *place = open;
                }
            }
            self.open.insert(span.start, window);
        }
        self.open = self.open.split_off(&oldest);
        self.next = next;
        Window { span, forms }
    }
}

impl Open {
    fn new(rules: &Rules, spec: &AccumulatorSpec) -> Self {
        let groups = rules.keys.as_ref().map_or(1, Vec::len);
        let held = || match spec {
            AccumulatorSpec::Records { .. } => Held::First(BinaryHeap::new()),
            sum => Held::Sum(sum.empty()),
        };
        Open { groups: (0..groups).map(|_| held()).collect(), waiting: HashMap::new() }
    }

    /// With every waiting record added: the cap is decided now.
    fn settled(mut self, spec: &AccumulatorSpec) -> Open {
        // Integer sums, and the first of several records, do not depend on the order of the map.
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.add(spec, waiting.group, waiting.record, || waiting);
        }
        self
    }

    /// Adds what another window holds; what waits in either waits for the cap of both together.
    fn join(&mut self, spec: &AccumulatorSpec, cap: Option<&Cap>, other: Open) {
        for (unit, waiting) in other.waiting {
            for waiting in waiting {
                if let Some(cap) = cap {
                    self.wait_as(cap, unit.clone(), waiting);
                }
            }
        }
        for (group, held) in other.groups.into_iter().enumerate() {
            match (held, self.groups.get_mut(group)) {
                (Held::Sum(theirs), Some(Held::Sum(ours))) => ours.join(theirs),
                (Held::First(records), _) => {
                    for waiting in records {
                        self.add(spec, group, waiting.record, || waiting);
                    }
                }
                _ => {}
            }
        }
    }

    /// Queues a record among the earliest of its unit.
    fn wait(&mut self, cap: &Cap, user: &[u8], waiting: Waiting) {
        let unit = Unit { period: cap.period.span_of(waiting.time).start, user: user.to_vec() };
        self.wait_as(cap, unit, waiting);
    }

    fn wait_as(&mut self, cap: &Cap, unit: Unit, waiting: Waiting) {
        let kept = self.waiting.entry(unit).or_default();
        kept.insert(kept.partition_point(|other| *other < waiting), waiting);
        kept.truncate(usize::try_from(cap.records).unwrap_or(usize::MAX));
    }

    /// Adds a record to its group; `waiting` is the same record with its place in the order of survival.
    #[inline]
    fn add(&mut self, spec: &AccumulatorSpec, group: usize, record: Record, waiting: impl FnOnce() -> Waiting) {
        match (spec, self.groups.get_mut(group)) {
            (AccumulatorSpec::Records { most }, Some(Held::First(first))) => {
                first.push(waiting());
                if first.len() as u64 > u64::from(*most) {
                    first.pop();
                }
            }
            (_, Some(Held::Sum(state))) => spec.add(state, record),
            _ => {}
        }
    }
}

impl Held {
    fn accumulator(self, spec: &AccumulatorSpec) -> Accumulator {
        match self {
            Held::Sum(accumulator) => accumulator,
            Held::First(records) => spec.filled(records.into_iter().map(|waiting| waiting.record)),
        }
    }
}

impl Waiting {
    fn new(batch: &Batch, row: usize, assignment: &Assignment<'_>, record: Record) -> Self {
        let Assignment { time, group, .. } = *assignment;
        Waiting { time, partition: batch.partition, offset: batch.offset, row, group, record }
    }
}
