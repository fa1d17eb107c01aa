//! Ways in which rows get onto the topic: beside rows of others, in messages of their own, early and late, in every form that text
//! has.

use std::slice::from_ref;
use std::sync::Arc;

use super::messages::{ColumnTypes, InputMessage, InputRow, NamedRow, TextForm};
use super::pair::NeighbouringPair;
use super::stage::{BackgroundStream, TICK};
use super::subject::StampSource;
use bernstream_synopsis::clock::Timestamp;

/// Writes rows among the messages of others.
type RowWriting<'s> = dyn Fn(&[InputRow]) -> Vec<InputMessage> + 's;

/// A way to write the rows of a unit.
pub(super) struct InjectionStrategy<'s> {
    name: String,
    /// The stream without them.
    without: Arc<Vec<InputMessage>>,
    with: Box<RowWriting<'s>>,
}

impl<'s> InjectionStrategy<'s> {
    pub fn new(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        with: impl Fn(&[InputRow]) -> Vec<InputMessage> + 's,
    ) -> Self {
        InjectionStrategy {
            name: name.into(),
            without: stage.others.clone(),
            with: Box::new(with),
        }
    }

    /// The whole stream as `with` makes it, without the rows too.
    pub fn from_whole_stream(
        name: impl Into<String>,
        with: impl Fn(&[InputRow]) -> Vec<InputMessage> + 's,
    ) -> Self {
        InjectionStrategy {
            name: name.into(),
            without: Arc::new(with(&[])),
            with: Box::new(with),
        }
    }

    /// Each row beside the rows of others that come just before it.
    pub fn beside_others(stage: &'s BackgroundStream<'_>) -> Self {
        InjectionStrategy::new("", stage, |rows| stage.with_rows(rows))
    }

    /// All rows in one message.
    pub fn in_one_message(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        partition: i32,
        stamp: Timestamp,
    ) -> Self {
        InjectionStrategy::new(name, stage, move |rows| {
            stage.with_message(InputMessage::from_rows(partition, stamp, rows.to_vec()))
        })
    }

    /// A message for each row, one partition after the other.
    pub fn one_message_each(
        name: impl Into<String>,
        stage: &'s BackgroundStream<'_>,
        partitions: &'static [i32],
        stamp: Timestamp,
    ) -> Self {
        InjectionStrategy::new(name, stage, move |rows| {
            let placed = rows.iter().zip(partitions.iter().cycle());
            stage.with_messages(placed.map(|(row, partition)| {
                InputMessage::from_rows(*partition, stamp, vec![row.clone()])
            }))
        })
    }

    /// With these rows and without them.
    pub fn pair_added(&self, name: &str, rows: &[InputRow]) -> NeighbouringPair {
        let times = rows.iter().filter_map(|row| row.time).collect();
        NeighbouringPair {
            name: self.pair_name(name),
            with: Arc::new((self.with)(rows)),
            without: self.without.clone(),
            times,
        }
    }

    /// With `from`, and with each of the other rows in its place.
    pub fn pairs_replaced(
        &self,
        from: &InputRow,
        others: impl IntoIterator<Item = NamedRow>,
    ) -> Vec<NeighbouringPair> {
        let without = Arc::new((self.with)(from_ref(from)));
        let mut pairs = Vec::new();
        for NamedRow { name, row: to } in others {
            pairs.push(NeighbouringPair {
                name: self.pair_name(&name),
                times: to.time.into_iter().collect(),
                with: Arc::new((self.with)(&[to])),
                without: without.clone(),
            });
        }
        pairs
    }

    fn pair_name(&self, name: &str) -> String {
        let parts = [name, self.name.as_str()];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// In a message with others and in ones of their own, before and after all others.
pub(super) fn placement_strategies<'s>(
    stage: &'s BackgroundStream<'_>,
) -> Vec<InjectionStrategy<'s>> {
    let stamp = BackgroundStream::time_in_window(stage.full_window(), 0.6);
    let mut all = vec![
        InjectionStrategy::one_message_each(
            "each in a message of its own, over partitions",
            stage,
            &[0, 1, 7],
            stamp,
        ),
        InjectionStrategy::new(
            "the last row first, in a message of its own",
            stage,
            move |rows| {
                stage.with_message(InputMessage::from_rows(
                    1,
                    stamp,
                    rows.iter().rev().cloned().collect(),
                ))
            },
        ),
    ];
    for partition in [0, 1, 7] {
        all.push(InjectionStrategy::in_one_message(
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
            with_batches_changed(stage, |batches| {
                batches.extend(rows.chunks(1).map(<[InputRow]>::to_vec))
            })
        },
    ));
    all.push(InjectionStrategy::new(
        "in a batch of its own before others",
        stage,
        |rows| with_batches_changed(stage, |batches| batches.insert(0, rows.to_vec())),
    ));
    for (name, is_first) in [
        ("last in a message of others", false),
        ("first in a message of others", true),
    ] {
        all.push(InjectionStrategy::new(name, stage, move |rows| {
            with_batches_changed(stage, |batches| {
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
fn with_batches_changed(
    stage: &BackgroundStream<'_>,
    change: impl FnOnce(&mut Vec<Vec<InputRow>>),
) -> Vec<InputMessage> {
    let mut all = stage.others.to_vec();
    if let Some(message) = all.get_mut(1) {
        change(&mut message.batches);
    }
    all
}

/// Message timestamps of every kind that the input can have.
pub(super) fn stamp_strategies<'s>(stage: &'s BackgroundStream<'_>) -> Vec<InjectionStrategy<'s>> {
    let window = stage.full_window();
    let cutoff = stage.window_cutoff(window);
    let mut stamps = vec![
        ("sent just before the cutoff", cutoff.minus(TICK)),
        ("sent at the cutoff", cutoff),
        (
            "sent long after the cutoff",
            cutoff.plus(window.end.since(window.start)),
        ),
    ];
    if stage.subject.stamps == StampSource::Producers {
        stamps.push(("stamped in 1970", Timestamp::from_micros(0)));
        stamps.push(("stamped in 9999", Timestamp::LATEST));
    }
    let mut all: Vec<InjectionStrategy<'s>> = stamps
        .into_iter()
        .map(|(name, stamp)| InjectionStrategy::in_one_message(name, stage, 0, stamp))
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
                messages.push(InputMessage::from_rows(0, stamp, vec![row.clone()]));
            }
            stage.with_messages(messages)
        },
    ));
    all
}

/// In every form in which text can be written, among so many batches of others. `row` says where those are.
pub(super) fn text_form_strategies<'s>(
    stage: &'s BackgroundStream<'_>,
    row: &'s InputRow,
    batches: usize,
) -> Vec<InjectionStrategy<'s>> {
    let mut all = Vec::new();
    for texts in [
        TextForm::Dictionary,
        TextForm::Views,
        TextForm::Large,
        TextForm::Plain,
    ] {
        let name = format!("{texts:?}, among {batches} batches of others");
        all.push(InjectionStrategy::from_whole_stream(name, move |rows| {
            stage.with_message(among_many_rows(stage, row, texts, batches, rows))
        }));
    }
    all
}

/// Among others, by producers that let the rows of a message decide which types its columns have: beside rows that have nothing but
/// their time, so that the row itself decides, beside whole numbers, and alone.
pub(super) fn inferred_type_strategies<'s>(
    stage: &'s BackgroundStream<'_>,
) -> Vec<InjectionStrategy<'s>> {
    let time = Some(BackgroundStream::time_in_window(stage.full_window(), 0.3));
    let empty = InputRow {
        time,
        key: None,
        unit: None,
        values: vec![None; stage.middle.len()],
    };
    let whole = InputRow {
        unit: Some(b"other".as_slice().into()),
        values: stage.ends.iter().map(|[min, _]| Some(min.ceil())).collect(),
        ..stage.plain_row(None)
    };
    let others = [
        ("beside empty rows", vec![empty; 2]),
        ("beside whole numbers", vec![whole; 2]),
        ("alone", vec![]),
    ];
    let encoders = [
        ("pyarrow", TextForm::Plain, ColumnTypes::Inferred),
        ("Polars", TextForm::Views, ColumnTypes::Inferred),
        ("pandas", TextForm::Plain, ColumnTypes::InferredByPandas),
    ];
    let mut all = Vec::new();
    for (place, rows) in others {
        for (library, texts, types) in encoders {
            let rows = rows.clone();
            let stamp = BackgroundStream::time_in_window(stage.full_window(), 0.6);
            all.push(InjectionStrategy::from_whole_stream(
                format!("{place}, in types that {library} infers"),
                move |more| {
                    let batches = vec![[rows.as_slice(), more].concat()];
                    stage.with_message(InputMessage {
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
fn among_many_rows(
    stage: &BackgroundStream<'_>,
    row: &InputRow,
    texts: TextForm,
    batches: usize,
    more: &[InputRow],
) -> InputMessage {
    const ROWS: usize = 480;
    let each = ROWS / batches;
    let mut all = Vec::new();
    for batch in 0..batches {
        let mut rows = Vec::new();
        for number in batch * each..(batch + 1) * each {
            // Few of them count, so that windows that keep few records are not solved for all.
            let counts = number.is_multiple_of(60);
            rows.push(InputRow {
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
    InputMessage {
        partition: 1,
        stamp: BackgroundStream::time_in_window(stage.full_window(), 0.6),
        batches: all,
        texts,
        types: ColumnTypes::Declared,
    }
}
