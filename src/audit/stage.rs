//! The records of others: a stream that is full in one window, and nearly empty in the last.

use std::time::Duration;

use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use super::messages::{Body, Message, Row};
use super::movers::{Context, Values, at};
use super::subject::Subject;
use crate::clock::Timestamp;
use crate::pipeline::Release;
use crate::window::Label;
use crate::window::accumulator::AccumulatorSpec;
use crate::window::grid::Span;

/// Messages of a full window.
const MESSAGES: usize = 4;
/// The least rows of a message.
const ROWS: usize = 6;
/// The most: windows that keep more records are not filled.
const MOST_ROWS: usize = 60;
/// Who sends the records of others.
const UNITS: [&str; 3] = ["anna", "bela", "cleo"];

/// A subject, and the records of others.
pub(super) struct Stage<'a> {
    pub subject: &'a Subject<'a>,
    pub windows: Vec<Span>,
    /// The ends of each column of values.
    pub ends: Vec<[f64; 2]>,
    /// Values in the middle of each column.
    pub middle: Vec<Option<f64>>,
    pub others: Vec<Message>,
}

impl<'a> Stage<'a> {
    pub fn new(subject: &'a Subject<'a>) -> Self {
        let ends: Vec<[f64; 2]> = (0..subject.columns.values.len()).map(|column| ends(subject, column)).collect();
        let middle = ends.iter().map(|[min, max]| Some(min.midpoint(*max))).collect();
        let mut stage = Stage { subject, windows: subject.windows(), ends, middle, others: Vec::new() };
        stage.others = stage.fill();
        stage
    }

    /// The declared keys, or none.
    pub fn keys(&self) -> Vec<Option<Vec<u8>>> {
        match &self.subject.plan.rules.keys {
            Some(keys) => keys.iter().map(|key| Some(key.clone().into_bytes())).collect(),
            None => vec![None],
        }
    }

    /// The window whose records are many.
    pub fn full(&self) -> Span {
        self.windows.first().copied().unwrap_or(Span::ALL)
    }

    /// The last window: two records of the first key.
    pub fn sparse(&self) -> Span {
        self.windows.last().copied().unwrap_or(Span::ALL)
    }

    /// A time within a window, from 0 to 1.
    pub fn time(window: Span, part: f64) -> Timestamp {
        window.start.plus(Duration::from_micros((window.end.since(window.start).as_micros() as f64 * part) as u64))
    }

    /// A row of the neighbour.
    pub fn row(&self, time: Timestamp, key: Option<Vec<u8>>, values: Vec<Option<f64>>) -> Row {
        Row { time: Some(time), key, unit: Some(b"neighbour".to_vec()), values }
    }

    /// All columns, with those of a release as given.
    pub fn spread(&self, release: &Release, values: &Values) -> Vec<Option<f64>> {
        let mut all = self.middle.clone();
        for (column, value) in release.form.columns.iter().zip(values) {
            if let Some(place) = all.get_mut(*column) {
                *place = Some(*value);
            }
        }
        all
    }

    /// Where functions are asked what moves them: with the records of others in a window and key.
    pub fn others_in(&self, release: &Release, window: Span, key: &Option<Vec<u8>>) -> Vec<Values> {
        let rows = self.others.iter().flat_map(Message::rows);
        let here = rows.filter(|row| row.time.is_some_and(|time| window.contains(time)) && row.key == *key);
        let columns = &release.form.columns;
        here.map(|row| columns.iter().filter_map(|column| row.values.get(*column).copied().flatten()).collect())
            .collect()
    }

    pub fn context<'c>(release: &'c Release, others: &'c [Values]) -> Context<'c> {
        Context { release, others }
    }

    fn fill(&self) -> Vec<Message> {
        let mut random = ChaCha20Rng::seed_from_u64(18);
        let rows = self.rows_of_a_message();
        let keys = self.keys();
        let last = self.sparse();
        let mut all = Vec::new();
        for window in &self.windows {
            let is_sparse = *window == last && self.windows.len() > 1;
            let (messages, rows) = if is_sparse { (1, 2) } else { (MESSAGES, rows) };
            for number in 0..messages {
                let part = |row: usize| (number as f64 + (row as f64 + 0.5) / rows as f64) / MESSAGES as f64;
                let row = |row: usize| Row {
                    time: Some(Stage::time(*window, part(row))),
                    key: keys.get(if is_sparse { 0 } else { row % keys.len() }).cloned().flatten(),
                    unit: UNITS.get((row + number) % UNITS.len()).map(|unit| unit.as_bytes().to_vec()),
                    values: self.ends.iter().map(|[min, max]| Some(random.random_range(*min..=*max))).collect(),
                };
                let stamp = Stage::time(*window, (number + 1) as f64 / MESSAGES as f64);
                all.push(Message::of((number % 2) as i32, stamp, (0..rows).map(row).collect()));
            }
        }
        all
    }

    /// Enough to fill windows that keep a bounded number of records, where that is not much.
    fn rows_of_a_message(&self) -> usize {
        let kept = self.subject.plan.releases.iter().filter_map(|release| match release.form.accumulator {
            AccumulatorSpec::Records { most } => Some(most as usize),
            _ => None,
        });
        let cap = self.subject.plan.rules.cap.as_ref().map_or(0, |cap| cap.records as usize * UNITS.len());
        let most = kept.max().unwrap_or(0).saturating_mul(self.keys().len()).max(cap);
        let rows = (most * 3 / 2).div_ceil(MESSAGES);
        if rows <= MOST_ROWS { rows.max(ROWS) } else { ROWS }
    }

    /// The messages of others with `rows` in place: each beside the record of others that comes just before it.
    pub fn with_rows(&self, rows: &[Row]) -> Vec<Message> {
        let mut all = self.others.clone();
        for row in rows {
            insert(&mut all, row.clone());
        }
        all
    }

    /// The messages of others with one more, in its place by its timestamp.
    pub fn with_message(&self, message: Message) -> Vec<Message> {
        let mut all = self.others.clone();
        let at = all.iter().position(|other| other.stamp > message.stamp).unwrap_or(all.len());
        all.insert(at, message);
        all
    }

    /// How long after its time a record may still be sent.
    pub fn cutoff(&self, window: Span) -> Timestamp {
        self.subject.plan.rules.cutoff(window, None)
    }
}

/// Puts a row into the first message that is stamped after it; at the end into the last one.
fn insert(messages: &mut [Message], row: Row) {
    let time = row.time.unwrap_or(Timestamp::EARLIEST);
    let place = messages.iter().position(|message| message.stamp >= time);
    let message = match place {
        Some(place) => messages.get_mut(place),
        None => messages.last_mut(),
    };
    if let Some(Message { body: Body::Rows { batches, .. }, .. }) = message
        && let Some(batch) = batches.last_mut()
    {
        batch.insert(batch.len() / 2, row);
    }
}

/// The ends of a column, by the first release that reads it.
fn ends(subject: &Subject<'_>, column: usize) -> [f64; 2] {
    let of = |release: &Release| {
        let place = release.form.columns.iter().position(|other| *other == column)?;
        match (release.form.axes.get(place), &release.form.label) {
            (Some(axis), _) | (None, Some(Label::Number(axis))) => Some([at(axis, 0.0), at(axis, 1.0)]),
            (None, Some(Label::Above(threshold))) => Some([threshold - 1.0, threshold + 1.0]),
            (None, None) => None,
        }
    };
    subject.plan.releases.iter().find_map(of).unwrap_or([0.0, 1.0])
}

/// A microsecond.
pub(super) const TICK: Duration = Duration::from_micros(1);
