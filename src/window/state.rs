//! Open windows: every record goes where the public rules say, once, and nothing else decides.

use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::Range;

use arrow::array::{Array, Float64Array};

use crate::clock::Timestamp;
use crate::source::Batch;
use crate::window::accumulator::{Accumulator, AccumulatorSpec, LABEL, Record, whole_label};
use crate::window::grid::Span;
use crate::window::{Cap, Form, Label, Rules};

/// All windows that are open, from the first that is not closed yet.
///
/// A record's membership is a predicate of the record alone: its event time lies in the window, its message timestamp is
/// before the window's cutoff, its event time is not further ahead of the message timestamp than the allowance, its key is
/// declared and its values are numbers. One record more changes no other record's fate, except that a unit's own earlier
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

/// A record whose turn is not certain yet. The derived order is the public order of survival: event time, then place in the input.
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
    pub state: Accumulator,
}

/// What became of records: exact counts, for the `operator` level of detail only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Taken into a window, by one form at least (under a cap they may still lose their place to the unit's own earlier rows).
    pub taken: u64,
    /// For a window that is closed already, or before the first or after the last.
    pub closed: u64,
    /// The message came at or after the window's cutoff.
    pub late: u64,
    /// Event time too far ahead of the message timestamp.
    pub ahead: u64,
    /// The key is missing or not declared.
    pub unknown_key: u64,
    /// Null or not-a-number where a time, a unit or a value is needed.
    pub missing: u64,
    /// Outside a domain that drops.
    pub outside: u64,
}

impl RecordCounts {
    fn count(&mut self, fate: Result<(), Refusal>) {
        let count = match fate {
            Ok(()) => &mut self.taken,
            Err(Refusal::Closed) => &mut self.closed,
            Err(Refusal::Late) => &mut self.late,
            Err(Refusal::Ahead) => &mut self.ahead,
            Err(Refusal::UnknownKey) => &mut self.unknown_key,
            Err(Refusal::Missing) => &mut self.missing,
            Err(Refusal::Outside) => &mut self.outside,
        };
        *count += 1;
    }

    /// Every count with its name in the metrics.
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        [
            ("taken", self.taken),
            ("closed", self.closed),
            ("late", self.late),
            ("ahead", self.ahead),
            ("unknown_key", self.unknown_key),
            ("missing", self.missing),
            ("outside", self.outside),
        ]
    }
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

    /// Forgets everything that was absorbed; the source must go back to [`Windows::oldest_message`].
    pub fn clear(&mut self) {
        self.open.clear();
        self.refilled = self.next.start;
    }

    /// Takes each row of `batch` to its window, or drops it for a reason of its own.
    pub fn absorb(&mut self, batch: &Batch) -> RecordCounts {
        let oldest = self.oldest(self.next);
        let Windows { rules, forms, keys, backfill_until, next, refilled, open, .. } = self;
        let judge = RecordRouter {
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
        let mut fates = RecordCounts::default();
        let mut at = judge.at(next.start);
        // The window that the row before went to: most often this one's too.
        let mut current: Option<(Timestamp, &mut Vec<Open>)> = None;
        for row in 0..batch.times.len() {
            let deposit = match judge.place(batch, row, &mut at) {
                Ok(deposit) => deposit,
                Err(refusal) => {
                    fates.count(Err(refusal));
                    continue;
                }
            };
            let window = match current {
                Some((start, window)) if start == at.span.start => window,
                _ => open
                    .entry(at.span.start)
                    .or_insert_with(|| forms.iter().map(|form| Open::new(rules, &form.keep)).collect()),
            };
            // The forms judge a row's values apart: what one has no use for another may take.
            let mut fate = Err(Refusal::Missing);
            for (form, open) in forms.iter().zip(window.iter_mut()) {
                match form.record(batch, row) {
                    Ok(record) => {
                        let waiting = || Waiting::new(batch, row, &deposit, record);
                        match (&rules.cap, deposit.user) {
                            (Some(cap), Some(user)) => open.wait(cap, user, waiting()),
                            _ => open.add(&form.keep, deposit.group, record, waiting),
                        }
                        fate = Ok(());
                    }
                    Err(refusal) if fate.is_err() => fate = Err(refusal),
                    Err(_) => {}
                }
            }
            current = Some((at.span.start, window));
            fates.count(fate);
        }
        fates
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
            let open = closing.next().unwrap_or_else(|| Open::new(&self.rules, &form.keep));
            let groups = if form.panes == 1 {
                open.settled(&form.keep).groups
            } else {
                let from = self.rules.grid.before(span, form.panes - 1).max(self.first);
                let mut all = Open::new(&self.rules, &form.keep);
                let before = self.open.range(from..span.start).filter_map(|(_, window)| window.get(at));
                for pane in before.cloned().chain([open.clone()]) {
                    all.join(&form.keep, self.rules.cap.as_ref(), pane);
                }
                kept.push((at, open));
                // A unit's cap holds for all of them together: who may stay is decided here, not pane by pane.
                all.settled(&form.keep).groups
            };
            let keys = match &self.rules.keys {
                Some(keys) => keys.iter().cloned().map(Some).collect(),
                None => vec![None],
            };
            forms.push(keys.into_iter().zip(groups).map(|(key, held)| Group { key, state: held.state(&form.keep) }));
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
    fn new(rules: &Rules, kept: &AccumulatorSpec) -> Self {
        let groups = rules.keys.as_ref().map_or(1, Vec::len);
        let held = || match kept {
            AccumulatorSpec::Records { .. } => Held::First(BinaryHeap::new()),
            sum => Held::Sum(sum.empty()),
        };
        Open { groups: (0..groups).map(|_| held()).collect(), waiting: HashMap::new() }
    }

    /// With every record in its place: who may stay under a cap is certain now.
    fn settled(mut self, kept: &AccumulatorSpec) -> Open {
        // Integer sums, and the first of several records, do not depend on the order of the map.
        for waiting in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.add(kept, waiting.group, waiting.record, || waiting);
        }
        self
    }

    /// Adds what another window holds; what waits in either waits for the cap of both together.
    fn join(&mut self, kept: &AccumulatorSpec, cap: Option<&Cap>, other: Open) {
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
                        self.add(kept, group, waiting.record, || waiting);
                    }
                }
                _ => {}
            }
        }
    }

    /// Lets a record wait among its unit's earliest.
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
    fn add(&mut self, kept: &AccumulatorSpec, group: usize, record: Record, waiting: impl FnOnce() -> Waiting) {
        match (kept, self.groups.get_mut(group)) {
            (AccumulatorSpec::Records { most }, Some(Held::First(first))) => {
                first.push(waiting());
                if first.len() as u64 > u64::from(*most) {
                    first.pop();
                }
            }
            (_, Some(Held::Sum(state))) => kept.add(state, record),
            _ => {}
        }
    }
}

impl Held {
    fn state(self, kept: &AccumulatorSpec) -> Accumulator {
        match self {
            Held::Sum(state) => state,
            Held::First(records) => kept.state(records.into_iter().map(|waiting| waiting.record)),
        }
    }
}

impl Waiting {
    fn new(batch: &Batch, row: usize, deposit: &Assignment<'_>, record: Record) -> Self {
        let Assignment { time, group, .. } = *deposit;
        Waiting { time, partition: batch.partition, offset: batch.offset, row, group, record }
    }
}

/// Where a row belongs in its window, and the user whose cap it falls under.
struct Assignment<'a> {
    time: Timestamp,
    group: usize,
    user: Option<&'a [u8]>,
}

/// The public rules, ready to judge rows; it knows nothing of any other row.
struct RecordRouter<'a> {
    rules: &'a Rules,
    keys: Option<&'a [(Vec<u8>, usize)]>,
    backfill_until: Option<Timestamp>,
    /// The start of the first window that is of use.
    oldest: Timestamp,
    /// The starts of the windows that are closed for good.
    closed: Range<Timestamp>,
    /// The message timestamp of the rows, and the latest event time that it allows.
    message: Option<Timestamp>,
    latest: Timestamp,
}

/// A window, and what it means for all rows of the message that is being judged.
struct At {
    span: Span,
    is_closed: bool,
    is_late: bool,
}

impl RecordRouter<'_> {
    fn at(&self, time: Timestamp) -> At {
        let span = self.rules.grid.span_of(time);
        let cutoff = self.rules.cutoff(span, self.backfill_until);
        At {
            span,
            is_closed: span.start < self.oldest
                || self.closed.contains(&span.start)
                || self.rules.end.is_some_and(|end| span.end > end),
            is_late: self.message.is_some_and(|message| message >= cutoff),
        }
    }

    /// Where a row belongs. `at` is the last row's window, and becomes this one's.
    #[inline]
    fn place<'a>(&self, batch: &'a Batch, row: usize, at: &mut At) -> Result<Assignment<'a>, Refusal> {
        if batch.times.is_null(row) {
            return Err(Refusal::Missing);
        }
        let time = Timestamp::from_micros(batch.times.value(row));
        if !at.span.contains(time) {
            *at = self.at(time);
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

impl Form {
    /// The row as this form keeps it.
    #[inline]
    fn record(&self, batch: &Batch, row: usize) -> Result<Record, Refusal> {
        let mut point = [0.0; 3];
        let mut columns = self.columns.iter().filter_map(|column| batch.values.get(*column));
        for (axis, unit) in self.axes.iter().zip(&mut point) {
            let values = columns.next().ok_or(Refusal::Missing)?;
            *unit = axis.unit(number(values, row)?).ok_or(Refusal::Outside)?;
        }
        let label = match &self.label {
            None => 0,
            Some(label) => {
                let values = columns.next().ok_or(Refusal::Missing)?;
                label.whole(number(values, row)?).ok_or(Refusal::Outside)?
            }
        };
        Ok(Record { place: self.keep.place(&point), label })
    }
}

/// A value that is there and is a number.
#[inline]
fn number(values: &Float64Array, row: usize) -> Result<f64, Refusal> {
    match values.is_null(row) || values.value(row).is_nan() {
        true => Err(Refusal::Missing),
        false => Ok(values.value(row)),
    }
}

impl Label {
    /// The label as a record keeps it; `None` where the record is dropped.
    #[inline]
    fn whole(&self, value: f64) -> Option<i32> {
        match self {
            Label::Number(axis) => axis.unit(value).map(|unit| whole_label(2.0 * unit - 1.0)),
            Label::Above(threshold) => Some(if value > *threshold { LABEL } else { -LABEL }),
        }
    }
}

/// Why a row is in no window.
enum Refusal {
    Closed,
    Late,
    Ahead,
    UnknownKey,
    Missing,
    Outside,
}
