//! Ways in which rows get onto the topic: beside rows of others, in messages of their own, early and late, in every form that text
//! has.

use std::slice::from_ref;
use std::sync::Arc;

use super::messages::{Message, NamedRow, Row, Texts, Types};
use super::pair::Pair;
use super::stage::{BackgroundStream, TICK};
use super::subject::Stamps;
use bernstream_synopsis::clock::Timestamp;

/// Writes rows among the messages of others.
type Writing<'s> = dyn Fn(&[Row]) -> Vec<Message> + 's;

/// A way to write the rows of a unit.
pub(super) struct InjectionStrategy<'s> {
    name: String,
    /// The stream without them.
    without: Arc<Vec<Message>>,
    with: Box<Writing<'s>>,
}

impl<'s> InjectionStrategy<'s> {
    pub fn new(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        with: impl Fn(&[Row]) -> Vec<Message> + 's,
    ) -> Self {
        InjectionStrategy {
            name: name.into(),
            without: stage.others.clone(),
            with: Box::new(with),
        }
    }

    /// The whole stream as `with` makes it, without the rows too.
    pub fn anew(name: impl Into<String>, with: impl Fn(&[Row]) -> Vec<Message> + 's) -> Self {
        InjectionStrategy {
            name: name.into(),
            without: Arc::new(with(&[])),
            with: Box::new(with),
        }
    }

    /// Each row beside the rows of others that come just before it.
    pub fn beside(stage: &'s BackgroundStream<'_>) -> Self {
        InjectionStrategy::new("", stage, |rows| stage.with_rows(rows))
    }

    /// All rows in one message.
    pub fn message(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        partition: i32,
        stamp: Timestamp,
    ) -> Self {
        InjectionStrategy::new(name, stage, move |rows| {
            stage.with_message(Message::of(partition, stamp, rows.to_vec()))
        })
    }

    /// A message for each row, one partition after the other.
    pub fn messages(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        partitions: &'static [i32],
        stamp: Timestamp,
    ) -> Self {
        InjectionStrategy::new(name, stage, move |rows| {
            let placed = rows.iter().zip(partitions.iter().cycle());
            stage.with_messages(
                placed.map(|(row, partition)| Message::of(*partition, stamp, vec![row.clone()])),
            )
        })
    }

    /// With these rows and without them.
    pub fn added(&self, name: &str, rows: &[Row]) -> Pair {
        let times = rows.iter().filter_map(|row| row.time).collect();
        Pair {
            name: self.named(name),
            with: Arc::new((self.with)(rows)),
            without: self.without.clone(),
            times,
        }
    }

    /// With `from`, and with each of the other rows in its place.
    pub fn replaced(&self, from: &Row, others: impl IntoIterator<Item = NamedRow>) -> Vec<Pair> {
        let without = Arc::new((self.with)(from_ref(from)));
        let mut pairs = Vec::new();
        for NamedRow { name, row: to } in others {
            pairs.push(Pair {
                name: self.named(&name),
                times: to.time.into_iter().collect(),
                with: Arc::new((self.with)(&[to])),
                without: without.clone(),
            });
        }
        pairs
    }

    fn named(&self, name: &str) -> String {
        let parts = [name, self.name.as_str()];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// In a message with others and in ones of their own, before and after all others.
pub(super) fn places<'s>(stage: &'s BackgroundStream<'_>) -> Vec<InjectionStrategy<'s>> {
    let stamp = BackgroundStream::time(stage.full(), 0.6);
    let mut all = vec![
        InjectionStrategy::messages(
            "each in a message of its own, over partitions",
            stage,
            &[0, 1, 7],
            stamp,
        ),
        InjectionStrategy::new(
            "the last row first, in a message of its own",
            stage,
            move |rows| {
                stage.with_message(Message::of(1, stamp, rows.iter().rev().cloned().collect()))
            },
        ),
    ];
    for partition in [0, 1, 7] {
        all.push(InjectionStrategy::message(
            format!("in a message of its own in partition {partition}"),
            stage,
            partition,
            stamp,
        ));
    }
    all.push(InjectionStrategy::new(
        "in batches of its own behind others",
        stage,
        |rows| {
            within(stage, |batches| {
                batches.extend(rows.chunks(1).map(<[Row]>::to_vec))
            })
        },
    ));
    all.push(InjectionStrategy::new(
        "in a batch of its own before others",
        stage,
        |rows| within(stage, |batches| batches.insert(0, rows.to_vec())),
    ));
    for (name, is_first) in [
        ("last in a message of others", false),
        ("first in a message of others", true),
    ] {
        all.push(InjectionStrategy::new(name, stage, move |rows| {
            within(stage, |batches| {
                if let Some(batch) = batches.first_mut() {
                    let at = if is_first { 0 } else { batch.len() };
                    batch.splice(at..at, rows.iter().cloned());
                }
            })
        }));
    }
    all
}

/// The messages of others, one of them changed.
fn within(stage: &BackgroundStream<'_>, change: impl FnOnce(&mut Vec<Vec<Row>>)) -> Vec<Message> {
    let mut all = stage.others.to_vec();
    if let Some(message) = all.get_mut(1) {
        change(&mut message.batches);
    }
    all
}

/// Message timestamps of every kind that the input can have.
pub(super) fn stamps<'s>(stage: &'s BackgroundStream<'_>) -> Vec<InjectionStrategy<'s>> {
    let window = stage.full();
    let cutoff = stage.cutoff(window);
    let mut stamps = vec![
        ("sent just before the cutoff", cutoff.minus(TICK)),
        ("sent at the cutoff", cutoff),
        (
            "sent long after the cutoff",
            cutoff.plus(window.end.since(window.start)),
        ),
    ];
    if stage.subject.stamps == Stamps::Producers {
        stamps.push(("stamped in 1970", Timestamp::from_micros(0)));
        stamps.push(("stamped in 9999", Timestamp::LATEST));
    }
    let mut all: Vec<InjectionStrategy<'s>> = stamps
        .into_iter()
        .map(|(name, stamp)| InjectionStrategy::message(name, stage, 0, stamp))
        .collect();
    all.push(InjectionStrategy::new(
        "every other one at the cutoff",
        stage,
        move |rows| {
            let mut messages = Vec::new();
            for (index, row) in rows.iter().enumerate() {
                let stamp = if index.is_multiple_of(2) {
                    cutoff.minus(TICK)
                } else {
                    cutoff
                };
                messages.push(Message::of(0, stamp, vec![row.clone()]));
            }
            stage.with_messages(messages)
        },
    ));
    all
}

/// In every form in which text can be written, among so many batches of others. `row` says where those are.
pub(super) fn forms<'s>(
    stage: &'s BackgroundStream<'_>,
    row: &'s Row,
    batches: usize,
) -> Vec<InjectionStrategy<'s>> {
    let mut all = Vec::new();
    for texts in [Texts::Dictionary, Texts::Views, Texts::Large, Texts::Plain] {
        let name = format!("{texts:?}, among {batches} batches of others");
        all.push(InjectionStrategy::anew(name, move |rows| {
            stage.with_message(among(stage, row, texts, batches, rows))
        }));
    }
    all
}

/// Among others, by producers that let the rows of a message decide which types its columns have: beside rows that have nothing but
/// their time, so that the row itself decides, beside whole numbers, and alone.
pub(super) fn types<'s>(stage: &'s BackgroundStream<'_>) -> Vec<InjectionStrategy<'s>> {
    let time = Some(BackgroundStream::time(stage.full(), 0.3));
    let empty = Row {
        time,
        key: None,
        unit: None,
        values: vec![None; stage.middle.len()],
    };
    let whole = Row {
        unit: Some(b"other".as_slice().into()),
        values: stage.ends.iter().map(|[min, _]| Some(min.ceil())).collect(),
        ..stage.plain(None)
    };
    let others = [
        ("beside empty rows", vec![empty; 2]),
        ("beside whole numbers", vec![whole; 2]),
        ("alone", vec![]),
    ];
    let encoders = [
        ("pyarrow", Texts::Plain, Types::Inferred),
        ("Polars", Texts::Views, Types::Inferred),
        ("pandas", Texts::Plain, Types::InferredByPandas),
    ];
    let mut all = Vec::new();
    for (place, rows) in others {
        for (library, texts, types) in encoders {
            let rows = rows.clone();
            let stamp = BackgroundStream::time(stage.full(), 0.6);
            all.push(InjectionStrategy::anew(
                format!("{place}, in types that {library} infers"),
                move |more| {
                    let batches = vec![[rows.as_slice(), more].concat()];
                    stage.with_message(Message {
                        partition: 1,
                        stamp,
                        batches,
                        texts,
                        types,
                    })
                },
            ));
        }
    }
    all
}

/// Many rows of others in one message, and more.
fn among(
    stage: &BackgroundStream<'_>,
    row: &Row,
    texts: Texts,
    batches: usize,
    more: &[Row],
) -> Message {
    const ROWS: usize = 480;
    let each = ROWS / batches;
    let mut all = Vec::new();
    for batch in 0..batches {
        let mut rows = Vec::new();
        for number in batch * each..(batch + 1) * each {
            // Few of them count, so that windows that keep few records are not solved for all.
            let counts = number.is_multiple_of(60);
            rows.push(Row {
                unit: Some(format!("other {}", number % 7).into_bytes().into()),
                key: if counts {
                    row.key.clone()
                } else {
                    Some(b"another".as_slice().into())
                },
                time: row.time.filter(|_| counts),
                values: stage.middle.clone(),
            });
        }
        all.push(rows);
    }
    if let Some(last) = all.last_mut() {
        last.extend_from_slice(more);
    }
    Message {
        partition: 1,
        stamp: BackgroundStream::time(stage.full(), 0.6),
        batches: all,
        texts,
        types: Types::Declared,
    }
}
