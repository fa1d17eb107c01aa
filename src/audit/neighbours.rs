//! Pairs of neighbouring streams, from the words of the promise.
//!
//! "One record more or less": any row, however odd, in a message with others, in one of its own, before or after others, in every
//! form that a producer can write it in (forms, places and times are tried for one record more; pairs of other promises have the
//! plain form, and users many places). "Other values in one record. They may also make it invalid, or valid". "All records of one
//! user (in one period) more or less": any number of rows, wherever they are. Every other row keeps its message timestamp and its
//! place relative to the others. How the program keeps the promise is not looked at, but for the values that move a function
//! most: those are found by trying.

use std::sync::Arc;

use super::messages::{Body, Message, Row, Texts};
use super::odd;
use super::pair::Pair;
use super::stage::{Stage, TICK};
use super::subject::{Stamps, Subject};
use crate::clock::Timestamp;
use crate::targets::Adjacency;
use crate::window::grid::Span;

/// All pairs for a subject; those that move most come first.
pub fn pairs(subject: &Subject<'_>) -> Vec<Pair> {
    let stage = Stage::new(subject);
    let others = Arc::new(stage.others.clone());
    let mut all = Pairs { stage: &stage, others, found: Vec::new() };
    match (&subject.plan.rules.cap, subject.adjacency) {
        (Some(cap), _) => {
            let records = cap.records as usize;
            all.users(records);
        }
        (None, Adjacency::AddRemove) => all.records(),
        (None, Adjacency::ReplaceOne) => all.replaced(),
    }
    all.found
}

struct Pairs<'s, 'a> {
    stage: &'s Stage<'a>,
    others: Arc<Vec<Message>>,
    found: Vec<Pair>,
}

/// How many of the records that move a function most are tried, in each place.
const MOVERS: usize = 2;

impl Pairs<'_, '_> {
    fn add(&mut self, name: impl Into<String>, with: Vec<Message>, times: &[Row]) {
        let without = self.others.clone();
        self.between(name, with, without, times);
    }

    fn between(&mut self, name: impl Into<String>, with: Vec<Message>, without: Arc<Vec<Message>>, rows: &[Row]) {
        let times = rows.iter().filter_map(|row| row.time).collect();
        self.found.push(Pair { name: name.into(), with: Arc::new(with), without, times });
    }

    /// Rows that move a release most when they are added, in the full and in the sparse window, under the first and the last key.
    fn movers(&self) -> Vec<(String, Row)> {
        let stage = self.stage;
        let keys = stage.keys();
        let (first, last) = (keys.first().cloned().flatten(), keys.last().cloned().flatten());
        let mut all = Vec::new();
        for release in &stage.subject.plan.releases {
            let name = &release.description().release;
            for (where_to, window, key) in
                [("full", stage.full(), &first), ("sparse", stage.sparse(), &first), ("empty", stage.sparse(), &last)]
            {
                let others = stage.others_in(release, window, key);
                for values in Stage::context(release, &others).added(MOVERS) {
                    let row = stage.row(Stage::time(window, 0.02), key.clone(), stage.spread(release, &values));
                    all.push((format!("{name}: {values:?} in a {where_to} window"), row));
                }
            }
        }
        all
    }

    /// A row in the middle of the full window.
    fn plain(&self) -> Row {
        let stage = self.stage;
        stage.row(Stage::time(stage.full(), 0.4), stage.keys().first().cloned().flatten(), stage.middle.clone())
    }

    fn odd(&self, row: &Row) -> Vec<(String, Row)> {
        let mut all = odd::values(row, &self.stage.ends);
        if self.stage.subject.plan.rules.keys.is_some() {
            all.extend(odd::keys(row));
        }
        if self.stage.subject.columns.unit.is_some() {
            all.extend(odd::units(row));
        }
        all
    }

    /// One record more or less.
    fn records(&mut self) {
        for (name, row) in self.movers() {
            self.add(name, self.stage.with_rows(std::slice::from_ref(&row)), &[row]);
        }
        for (name, row) in self.odd(&self.plain()) {
            self.add(name, self.stage.with_rows(std::slice::from_ref(&row)), &[row]);
        }
        self.places();
        self.times();
        self.forms();
        self.removed();
    }

    /// In a message with others and in one of its own, before and after all others.
    fn places(&mut self) {
        let stage = self.stage;
        let (row, window) = (self.plain(), stage.full());
        let placed = |part: f64| Row { time: Some(Stage::time(window, part)), ..row.clone() };
        for (name, row) in [("first of its window", placed(0.0)), ("last of its window", placed(1.0 - 1e-5))] {
            self.add(name, stage.with_rows(std::slice::from_ref(&row)), &[row]);
        }
        let stamp = Stage::time(window, 0.6);
        for partition in [0, 1, 7] {
            let name = format!("a message of its own in partition {partition}");
            self.add(
                name,
                stage.with_message(Message::of(partition, stamp, vec![row.clone()])),
                std::slice::from_ref(&row),
            );
        }
        for (name, is_first) in [("a batch more behind others", false), ("a batch more before others", true)] {
            let mut with = stage.others.clone();
            if let Some(Message { body: Body::Rows { batches, .. }, .. }) = with.get_mut(1) {
                batches.insert(if is_first { 0 } else { batches.len() }, vec![row.clone()]);
            }
            self.add(name, with, std::slice::from_ref(&row));
        }
        for (name, is_first) in [("the last row of a message", false), ("the first row of a message", true)] {
            let mut with = stage.others.clone();
            if let Some(Message { body: Body::Rows { batches, .. }, .. }) = with.get_mut(1)
                && let Some(rows) = batches.first_mut()
            {
                rows.insert(if is_first { 0 } else { rows.len() }, row.clone());
            }
            self.add(name, with, std::slice::from_ref(&row));
        }
    }

    /// Event times and message timestamps of every kind, each in a message of its own.
    fn times(&mut self) {
        let stage = self.stage;
        let (plain, window, rules) = (self.plain(), stage.full(), &stage.subject.plan.rules);
        let stamp = Stage::time(window, 0.6);
        let year = std::time::Duration::from_secs(31_556_952);
        let events = [
            ("no event time", None),
            ("the start of its window", Some(window.start)),
            ("the end of its window", Some(window.end)),
            ("just before the end of its window", Some(window.end.minus(TICK))),
            ("before the first window", Some(window.start.minus(TICK))),
            ("far in the past", Some(window.start.minus(year * 100))),
            ("far in the future", Some(window.start.plus(year * 100))),
            ("the first time there is", Some(Timestamp::from_micros(i64::MIN))),
            ("the last time there is", Some(Timestamp::from_micros(i64::MAX))),
            ("as far ahead as allowed", Some(stamp.plus(rules.max_future_skew))),
            ("a bit further ahead", Some(stamp.plus(rules.max_future_skew).plus(TICK))),
            ("after the last window", Some(stage.subject.end().plus(TICK))),
        ];
        for (name, time) in events {
            let row = Row { time, ..plain.clone() };
            self.add(name, stage.with_rows(std::slice::from_ref(&row)), std::slice::from_ref(&row));
            let with = stage.with_message(Message::of(1, stamp, vec![row.clone()]));
            self.add(format!("{name}, in a message of its own"), with, &[row]);
        }
        let cutoff = stage.cutoff(window);
        let mut stamps = vec![
            ("sent just before the cutoff", cutoff.minus(TICK)),
            ("sent at the cutoff", cutoff),
            ("sent long after the cutoff", cutoff.plus(window.end.since(window.start))),
        ];
        if stage.subject.stamps == Stamps::Producers {
            stamps.push(("stamped in 1970", Timestamp::from_micros(0)));
            stamps.push(("stamped in 9999", Timestamp::LATEST));
        }
        for (name, stamp) in stamps {
            self.add(
                name,
                stage.with_message(Message::of(0, stamp, vec![plain.clone()])),
                std::slice::from_ref(&plain),
            );
        }
    }

    /// In every form in which text can be written, among many rows of others.
    fn forms(&mut self) {
        let stage = self.stage;
        let (row, stamp) = (self.plain(), Stage::time(stage.full(), 0.6));
        for texts in [Texts::Plain, Texts::Dictionary, Texts::Views, Texts::Large] {
            let many = Forms { stage, row: &row, stamp, texts };
            for (name, odd) in
                [("plain", row.clone())].map(|(name, row)| (name.to_owned(), row)).into_iter().chain(many.texts_of())
            {
                for batches in [1, 24] {
                    let without = Arc::new(many.message(batches, None));
                    let with = many.message(batches, Some(&odd));
                    let name = format!("{name}, {texts:?}, among {batches} batches of others");
                    self.between(name, with, without, std::slice::from_ref(&odd));
                }
            }
        }
    }

    /// A record of others less: the first of a window, one in the middle, the last, and a copy of it.
    fn removed(&mut self) {
        let rows: Vec<Row> = self.others.iter().flat_map(Message::rows).cloned().collect();
        let full = self.stage.full();
        let here: Vec<&Row> = rows.iter().filter(|row| row.time.is_some_and(|time| full.contains(time))).collect();
        for (name, row) in
            [("the first", here.first()), ("a middle one", here.get(here.len() / 2)), ("the last", here.last())]
        {
            let Some(row) = row else { continue };
            let without = Arc::new(without(&self.others, |other| other == *row));
            self.between(format!("{name} of others less"), self.stage.others.clone(), without, &[(*row).clone()]);
            self.add(format!("{name} of others twice"), self.stage.with_rows(&[(*row).clone()]), &[(*row).clone()]);
        }
    }

    /// Other values in one record.
    fn replaced(&mut self) {
        let stage = self.stage;
        let keys = stage.keys();
        let (first, last) = (keys.first().cloned().flatten(), keys.last().cloned().flatten());
        let mut movers = Vec::new();
        for release in &stage.subject.plan.releases {
            let about = &release.description().release;
            for (where_to, window, key) in
                [("full", stage.full(), &first), ("sparse", stage.sparse(), &first), ("empty", stage.sparse(), &last)]
            {
                let others = stage.others_in(release, window, key);
                let context = Stage::context(release, &others);
                let row = |values: &Vec<f64>| {
                    stage.row(Stage::time(window, 0.02), key.clone(), stage.spread(release, values))
                };
                for [from, to] in context.replaced(MOVERS) {
                    let name = format!("{about}: {from:?} becomes {to:?} in a {where_to} window");
                    movers.push((name, row(&from), row(&to)));
                }
                for values in context.added(MOVERS) {
                    for (name, odd) in odd::values(&row(&values), &stage.ends)
                        .into_iter()
                        .take(if where_to == "empty" { usize::MAX } else { 1 })
                    {
                        movers.push((
                            format!("{about}: {values:?} becomes {name} in a {where_to} window"),
                            row(&values),
                            odd,
                        ));
                    }
                }
            }
        }
        let odd = odd::values(&self.plain(), &stage.ends);
        for pair in odd.windows(2) {
            if let [(name, from), (other, to)] = pair {
                movers.push((format!("{name} becomes {other}"), from.clone(), to.clone()));
            }
        }
        for (name, from, to) in movers {
            let without = Arc::new(stage.with_rows(std::slice::from_ref(&from)));
            let with = stage.with_rows(std::slice::from_ref(&to));
            self.between(name, with, without, &[to]);
        }
    }

    /// All records of one user in one period.
    fn users(&mut self, cap: usize) {
        let stage = self.stage;
        let block =
            stage.subject.plan.rules.cap.as_ref().map(|cap| cap.period.span_of(Stage::time(stage.full(), 0.02)));
        let is_in_block = |row: &Row| row.time.is_some_and(|time| block.is_some_and(|block| block.contains(time)));
        for (name, row) in self.movers() {
            if !is_in_block(&row) {
                continue;
            }
            for (how, count) in [("one", 1), ("as many as count", cap), ("more than count", 3 * cap + 2)] {
                let rows: Vec<Row> = (0..count).map(|at| later(&row, at)).collect();
                self.add(format!("{how}, {name}"), stage.with_rows(&rows), &rows);
            }
        }
        self.users_everywhere(cap, &is_in_block);
        self.users_many();
        self.users_odd(&is_in_block);
        self.users_of_others(&is_in_block);
    }

    /// Over keys, partitions, messages, batches and all windows of the period.
    fn users_everywhere(&mut self, cap: usize, is_in_block: &dyn Fn(&Row) -> bool) {
        let stage = self.stage;
        let keys = stage.keys();
        let corner = |at: usize| -> Vec<Option<f64>> {
            stage
                .ends
                .iter()
                .enumerate()
                .map(|(column, [min, max])| Some(if (at >> column) & 1 == 0 { *min } else { *max }))
                .collect()
        };
        let rows = |window: Span| -> Vec<Row> {
            let row = |at: usize| {
                let part = (at as f64 + 0.3) / (2 * cap + 3) as f64;
                stage.row(
                    Stage::time(window, part),
                    keys.get(at % keys.len()).cloned().flatten(),
                    corner(at / keys.len()),
                )
            };
            (0..2 * cap + 3).map(row).collect()
        };
        let all: Vec<Row> = stage.windows.iter().flat_map(|window| rows(*window)).filter(is_in_block).collect();
        self.add("over all keys and windows", stage.with_rows(&all), &all);
        let here = rows(stage.full()).into_iter().filter(is_in_block).collect::<Vec<_>>();
        let mut messages = stage.others.clone();
        for (at, row) in here.iter().enumerate() {
            let stamp = row.time.unwrap_or(stage.full().start);
            let place = messages.iter().position(|other| other.stamp > stamp).unwrap_or(messages.len());
            messages.insert(place, Message::of((at % 3) as i32, stamp, vec![row.clone()]));
        }
        self.add("each in a message of its own, over partitions", messages, &here);
        let late: Vec<Row> = here.iter().rev().cloned().collect();
        let stamp = stage.full().end;
        self.add("all in one message, the last first", stage.with_message(Message::of(1, stamp, late)), &here);
    }

    /// Thousands of rows in one message, each with the same long text.
    fn users_many(&mut self) {
        let stage = self.stage;
        let plain = self.plain();
        let long = if stage.subject.plan.rules.keys.is_some() { odd::keys(&plain) } else { odd::units(&plain) };
        for (name, row) in long.into_iter().filter(|(name, _)| name.contains("64 KiB")) {
            let batches = vec![vec![row.clone(); 500]; 24];
            let body = Body::Rows { batches, texts: Texts::Dictionary };
            let message = Message { partition: 1, stamp: Stage::time(stage.full(), 0.6), body };
            let name = format!("500 rows with a {name} in 24 batches");
            self.add(name, stage.with_message(message), std::slice::from_ref(&row));
        }
    }

    /// Odd rows, alone and before many good ones.
    fn users_odd(&mut self, is_in_block: &dyn Fn(&Row) -> bool) {
        let stage = self.stage;
        let plain = self.plain();
        let mut odd = odd::values(&plain, &stage.ends);
        if stage.subject.plan.rules.keys.is_some() {
            odd.extend(odd::keys(&plain));
        }
        for (name, row) in &odd {
            let rows = [row.clone(), later(&plain, 1)];
            self.add(format!("{name}, and a good one"), stage.with_rows(&rows), &rows);
        }
        let all: Vec<Row> = odd.into_iter().enumerate().map(|(at, (_, row))| later(&row, at)).collect();
        self.add("odd in every way", stage.with_rows(&all), &all);
        for (name, row) in odd::units(&plain) {
            // Each of these is a unit of its own.
            let rows: Vec<Row> = (0..3).map(|at| later(&row, at)).filter(is_in_block).collect();
            self.add(format!("a user with {name}"), stage.with_rows(&rows), &rows);
        }
        let window = stage.full();
        for (name, time, stamp) in [
            ("too late", Stage::time(window, 0.5), stage.cutoff(window)),
            (
                "too early",
                Stage::time(window, 0.9),
                Stage::time(window, 0.1).minus(stage.subject.plan.rules.max_future_skew),
            ),
        ] {
            let row = Row { time: Some(time), ..plain.clone() };
            self.add(name, stage.with_message(Message::of(0, stamp, vec![row.clone()])), &[row]);
        }
    }

    /// A user of others less, in one period: what that user sent in other periods stays.
    fn users_of_others(&mut self, is_in_block: &dyn Fn(&Row) -> bool) {
        let units: std::collections::BTreeSet<_> =
            self.others.iter().flat_map(Message::rows).map(|row| row.unit.clone()).collect();
        for unit in units {
            let is_theirs = |row: &Row| row.unit == unit && is_in_block(row);
            let rows: Vec<Row> =
                self.others.iter().flat_map(Message::rows).filter(|row| is_theirs(row)).cloned().collect();
            let without = Arc::new(without(&self.others, is_theirs));
            self.between("a user of others less", self.stage.others.clone(), without, &rows);
        }
    }
}

/// Many rows of others in one message, with or without one more.
struct Forms<'s, 'a> {
    stage: &'s Stage<'a>,
    row: &'s Row,
    stamp: Timestamp,
    texts: Texts,
}

impl Forms<'_, '_> {
    /// How many rows others have in the message.
    const ROWS: usize = 480;

    /// Odd in their texts.
    fn texts_of(&self) -> Vec<(String, Row)> {
        let columns = self.stage.subject.columns;
        let mut all = Vec::new();
        if columns.key.is_some() {
            all.extend(odd::keys(self.row));
        }
        if columns.unit.is_some() {
            all.extend(odd::units(self.row));
        }
        all.retain(|(name, _)| ["not text", "64 KiB", "null"].iter().any(|kind| name.contains(kind)));
        all
    }

    fn message(&self, batches: usize, more: Option<&Row>) -> Vec<Message> {
        // Few of them count, so that windows that keep few records are not solved for all.
        let other = |at: usize| Row {
            unit: Some(format!("other {}", at % 7).into_bytes()),
            key: if at.is_multiple_of(60) { self.row.key.clone() } else { Some(b"another".to_vec()) },
            time: if at.is_multiple_of(60) { self.row.time } else { None },
            values: self.stage.middle.clone(),
        };
        let each = Forms::ROWS / batches;
        let mut rows: Vec<Vec<Row>> =
            (0..batches).map(|batch| (0..each).map(|at| other(batch * each + at)).collect()).collect();
        if let (Some(row), Some(last)) = (more, rows.last_mut()) {
            last.push(row.clone());
        }
        let body = Body::Rows { batches: rows, texts: self.texts };
        self.stage.with_message(Message { partition: 1, stamp: self.stamp, body })
    }
}

/// The row a bit later, so that the order of many is plain.
fn later(row: &Row, at: usize) -> Row {
    let time = row.time.map(|time| time.plus(TICK * u32::try_from(at).unwrap_or(u32::MAX)));
    Row { time, ..row.clone() }
}

/// The messages without some rows; a message that loses all of them stays, for another may have been in it.
fn without(messages: &[Message], is_gone: impl Fn(&Row) -> bool) -> Vec<Message> {
    let mut all = messages.to_vec();
    for message in &mut all {
        if let Body::Rows { batches, .. } = &mut message.body {
            batches.iter_mut().for_each(|rows| rows.retain(|row| !is_gone(row)));
        }
    }
    all
}
