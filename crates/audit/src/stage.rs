//! The records of others: a stream that is full in its first windows, sparse in the last but one, and empty in the last.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use super::found_crowd::rows_of_crowd;
use super::found_names::{FoundKeyRelease, key_bytes};
use super::messages::{InputMessage, InputRow};
use super::movers::{RecordValues, axis_point};
use super::subject::AuditSubject;
use bernstream_release::window::RecordLabel;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_worker::pipeline::PlannedRelease;

/// Messages of a full window.
const MESSAGES: usize = 4;
/// The least rows of a message.
const ROWS: usize = 6;
/// The most: windows that keep more records are not filled.
const MOST_ROWS: usize = 60;
/// The units that send the records of others.
const UNITS: [&str; 3] = ["anna", "bela", "cleo"];

/// A subject, and the records of others.
pub(super) struct BackgroundStream<'a> {
    pub subject: &'a AuditSubject<'a>,
    pub windows: Vec<Span>,
    /// The ends of each column of values.
    pub ends: Vec<[f64; 2]>,
    /// Values in the middle of each column.
    pub middle: Vec<Option<f64>>,
    pub others: Arc<Vec<InputMessage>>,
}

impl<'a> BackgroundStream<'a> {
    pub fn new(subject: &'a AuditSubject<'a>) -> Self {
        let ends: Vec<[f64; 2]> = (0..subject.columns.values.len())
            .map(|column| column_ends(subject, column))
            .collect();
        let middle = ends
            .iter()
            .map(|[min, max]| Some(min.midpoint(*max)))
            .collect();
        let mut stage = BackgroundStream {
            subject,
            windows: subject.replayed_windows(),
            ends,
            middle,
            others: Arc::default(),
        };
        stage.others = Arc::new(stage.messages_of_others());
        stage
    }

    /// The declared keys, those that are made up where nobody lists them, or none.
    pub fn keys(&self) -> Vec<Option<Arc<[u8]>>> {
        if let Some(found) = FoundKeyRelease::of_subject(self.subject) {
            let mut keys = found.popular_keys(self.subject);
            keys.extend(found.near_keys(self.subject));
            keys.extend(found.rare_keys(self.subject));
            if !keys.is_empty() {
                return keys.iter().map(|key| key_bytes(key)).collect();
            }
        }
        match &self.subject.plan.rules.keys {
            Some(keys) => keys.iter().map(|key| Some(key.as_bytes().into())).collect(),
            None => vec![None],
        }
    }

    /// Keys that are not declared, where they count under a name: more of them than such a name is.
    pub fn unlisted_keys(&self) -> Vec<Option<Arc<[u8]>>> {
        if self.subject.plan.rules.other.is_empty() {
            return Vec::new();
        }
        let keys: [&[u8]; 2] = [b"not listed", b"not listed either"];
        keys.map(|key| Some(key.into())).to_vec()
    }

    /// The first window, whose records are many.
    pub fn full_window(&self) -> Span {
        self.windows.first().copied().unwrap_or(Span::ALL)
    }

    /// The last window but one: two records of the first key.
    pub fn sparse_window(&self) -> Span {
        self.windows
            .iter()
            .rev()
            .nth(1)
            .copied()
            .unwrap_or(self.empty_window())
    }

    /// The last window: no records.
    pub fn empty_window(&self) -> Span {
        self.windows.last().copied().unwrap_or(Span::ALL)
    }

    /// A time within a window, from 0 to 1.
    pub fn time_in_window(window: Span, part: f64) -> Timestamp {
        window.start.plus(Duration::from_micros(
            (window.end.since(window.start).as_micros() as f64 * part) as u64,
        ))
    }

    /// A row of the neighbour.
    pub fn neighbour_row(
        &self,
        time: Timestamp,
        key: Option<Arc<[u8]>>,
        values: Vec<Option<f64>>,
    ) -> InputRow {
        InputRow {
            time: Some(time),
            key,
            unit: Some(b"neighbour".as_slice().into()),
            values,
        }
    }

    /// A row in the middle of the full window, with the values of `like`, or those in the middle of each column.
    pub fn plain_row(&self, like: Option<&InputRow>) -> InputRow {
        let values = like.map_or(&self.middle, |row| &row.values).clone();
        self.neighbour_row(
            BackgroundStream::time_in_window(self.full_window(), 0.4),
            self.keys().first().cloned().flatten(),
            values,
        )
    }

    /// The rows of others.
    pub fn rows_of_others(&self) -> impl Iterator<Item = &InputRow> {
        self.others.iter().flat_map(InputMessage::rows)
    }

    /// All columns, with those of a release as given.
    pub fn all_columns(&self, release: &PlannedRelease, values: &RecordValues) -> Vec<Option<f64>> {
        let mut all = self.middle.clone();
        for (column, value) in release.form.columns.iter().zip(values) {
            if let Some(place) = all.get_mut(*column) {
                *place = Some(*value);
            }
        }
        all
    }

    /// The records of others in a window and key, with which functions are asked what moves them.
    pub fn others_in(
        &self,
        release: &PlannedRelease,
        window: Span,
        key: &Option<Arc<[u8]>>,
    ) -> Vec<RecordValues> {
        let here = self
            .rows_of_others()
            .filter(|row| row.time.is_some_and(|time| window.contains(time)) && row.key == *key);
        let columns = &release.form.columns;
        here.map(|row| {
            columns
                .iter()
                .filter_map(|column| row.values.get(*column).copied().flatten())
                .collect()
        })
        .collect()
    }

    fn messages_of_others(&self) -> Vec<InputMessage> {
        let mut random = ChaCha20Rng::seed_from_u64(18);
        let rows = self.rows_of_a_message();
        let keys = self.keys();
        let crowd = rows_of_crowd(self.subject);
        let mut all = Vec::new();
        for window in &self.windows {
            let is_sparse = *window != self.full_window() && *window == self.sparse_window();
            if *window != self.full_window() && *window == self.empty_window() {
                continue;
            }
            let messages = if is_sparse { 1 } else { MESSAGES };
            let count = if is_sparse { 2 } else { rows };
            for number in 0..messages {
                let mut rows = Vec::new();
                for row in 0..count {
                    let part =
                        (number as f64 + (row as f64 + 0.5) / count as f64) / MESSAGES as f64;
                    let key = keys.get(if is_sparse { 0 } else { row % keys.len() });
                    let unit = UNITS.get((row + number) % UNITS.len());
                    rows.push(InputRow {
                        time: Some(BackgroundStream::time_in_window(*window, part)),
                        key: key.cloned().flatten(),
                        unit: unit.map(|unit| unit.as_bytes().into()),
                        values: self.random_values(&mut random),
                    });
                }
                if *window == self.full_window() {
                    let time = BackgroundStream::time_in_window(
                        *window,
                        (number as f64 + 0.25) / MESSAGES as f64,
                    );
                    let share = crowd.iter().skip(number).step_by(MESSAGES);
                    rows.extend(share.map(|row| InputRow {
                        time: Some(time),
                        values: self.middle.clone(),
                        ..row.clone()
                    }));
                }
                let stamp = BackgroundStream::time_in_window(
                    *window,
                    (number + 1) as f64 / MESSAGES as f64,
                );
                all.push(InputMessage::from_rows((number % 2) as i32, stamp, rows));
            }
            if !is_sparse {
                all.push(self.late_message(*window, &mut random));
            }
        }
        all.sort_by_key(|message| message.stamp);
        all
    }

    /// Records that come after the end of their window, and just in time. They are its earliest ones, each of another unit: whatever
    /// is bounded keeps them.
    fn late_message(&self, window: Span, random: &mut ChaCha20Rng) -> InputMessage {
        let keys = self.keys();
        let mut rows = Vec::new();
        for place in 0..ROWS {
            rows.push(InputRow {
                time: Some(BackgroundStream::time_in_window(
                    window,
                    0.002 * (place + 1) as f64,
                )),
                key: keys.get(place % keys.len()).cloned().flatten(),
                unit: Some(format!("late {place}").into_bytes().into()),
                values: self.random_values(random),
            });
        }
        InputMessage::from_rows(0, self.late_stamp(window), rows)
    }

    /// A value between the ends of each column.
    fn random_values(&self, random: &mut ChaCha20Rng) -> Vec<Option<f64>> {
        let columns = self.ends.iter();
        columns
            .map(|[min, max]| Some(random.random_range(*min..=*max)))
            .collect()
    }

    /// The time at which the late records of others are sent.
    pub fn late_stamp(&self, window: Span) -> Timestamp {
        self.window_cutoff(window).minus(TICK)
    }

    /// Enough to fill windows that keep a bounded number of records, where that is not much.
    fn rows_of_a_message(&self) -> usize {
        let kept = self.subject.plan.releases.iter().filter_map(|release| {
            match release.form.accumulator {
                AccumulatorSpec::Records { most } => Some(most as usize),
                _ => None,
            }
        });
        let cap = self
            .subject
            .plan
            .rules
            .cap
            .as_ref()
            .map_or(0, |cap| cap.records as usize * UNITS.len());
        let most = kept
            .max()
            .unwrap_or(0)
            .saturating_mul(self.keys().len())
            .max(cap);
        let rows = (most * 3 / 2).div_ceil(MESSAGES);
        if rows <= MOST_ROWS {
            rows.max(ROWS)
        } else {
            ROWS
        }
    }

    /// The messages of others with `rows` in place: each beside the record of others that comes just before it.
    pub fn with_rows(&self, rows: &[InputRow]) -> Vec<InputMessage> {
        let mut all = self.others.to_vec();
        for row in rows {
            self.insert_row(&mut all, row.clone());
        }
        all
    }

    /// Puts a row into the first message that is stamped after it. Behind the last message it gets one of its own, and behind the last
    /// window a place in the last message.
    fn insert_row(&self, messages: &mut Vec<InputMessage>, row: InputRow) {
        let time = row.time.unwrap_or(Timestamp::EARLIEST);
        let last = messages.len().saturating_sub(1);
        let at = messages.iter().position(|message| message.stamp >= time);
        if at.is_none() && time < self.subject.end_of_replay() {
            messages.push(InputMessage::from_rows(0, time, vec![row]));
        } else if let Some(batch) = messages
            .get_mut(at.unwrap_or(last))
            .and_then(|message| message.batches.last_mut())
        {
            batch.insert(batch.len() / 2, row);
        }
    }

    /// The messages of others with one more, in its place by its timestamp.
    pub fn with_message(&self, message: InputMessage) -> Vec<InputMessage> {
        self.with_messages([message])
    }

    /// The messages of others with more, each in its place by its timestamp.
    pub fn with_messages(
        &self,
        messages: impl IntoIterator<Item = InputMessage>,
    ) -> Vec<InputMessage> {
        let mut all = self.others.to_vec();
        for message in messages {
            let at = all
                .iter()
                .position(|other| other.stamp > message.stamp)
                .unwrap_or(all.len());
            all.insert(at, message);
        }
        all
    }

    /// The time from which on records of a window can no longer be sent.
    pub fn window_cutoff(&self, window: Span) -> Timestamp {
        self.subject
            .plan
            .rules
            .window_cutoff(window, self.subject.backfill_until)
    }
}

/// The ends of a column, by the first release that reads it.
fn column_ends(subject: &AuditSubject<'_>, column: usize) -> [f64; 2] {
    let mut releases = subject.plan.releases.iter();
    releases
        .find_map(|release| ends_in(release, column))
        .unwrap_or([0.0, 1.0])
}

/// The ends of a column that a release reads.
fn ends_in(release: &PlannedRelease, column: usize) -> Option<[f64; 2]> {
    let columns = &release.form.columns;
    let place = columns.iter().position(|other| *other == column)?;
    if let Some(axis) = release.form.axes.get(place) {
        return Some([axis_point(axis, 0.0), axis_point(axis, 1.0)]);
    }
    match release.form.label.as_ref()? {
        RecordLabel::Number(axis) => Some([axis_point(axis, 0.0), axis_point(axis, 1.0)]),
        RecordLabel::Above(threshold) => Some([threshold - 1.0, threshold + 1.0]),
        RecordLabel::Classes(values) => Some([*values.first()?, *values.last()?]),
    }
}

/// A microsecond.
pub(super) const TICK: Duration = Duration::from_micros(1);
