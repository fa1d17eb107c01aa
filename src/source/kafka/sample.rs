//! Messages of a topic, tried against a configuration: the newest for whoever asks whether the worker could read them, and what follows
//! a broken one for operators, who then skip all that are broken at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use arrow_array::Array;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::params::Params;
use super::partition_consumer::{SETTINGS, is_unreadable};
use super::topic_inspector::TopicInspector;
use crate::clock::Timestamp;
use crate::kafka::topic;
use crate::source::decode::ArrowDecoder;
use crate::source::record::{Format, Gather, RecordReader};
use crate::source::{Batch, Columns, Error, FoundColumn, FoundColumns};

/// How many broken messages are listed.
const SHOWN: usize = 20;
/// How long nothing may arrive before the rest is given up.
const IDLE: Duration = Duration::from_secs(5);

/// What was found in the newest messages of a topic. Counts of records, without noise.
#[derive(Debug, Default)]
pub struct Sample {
    /// Those that were tried: what is given up is not.
    pub messages: u64,
    /// Messages that the worker could not read: partition, offset, why.
    pub broken: Vec<(i32, i64, String)>,
    pub records: u64,
    /// The first and the last event time, and the last timestamp of a message with records.
    pub times: Option<(Timestamp, Timestamp)>,
    pub stamped: Option<Timestamp>,
    /// How many records lack a column that is read: the event time, the key, the user, the values.
    pub lacking: BTreeMap<String, u64>,
    /// In how many messages each column is of which kind, for messages that say it.
    pub kinds: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// In how many messages a column is missing or has a type that it may not have, and why in the first of them.
    pub unread: BTreeMap<String, (u64, String)>,
    /// Why a batch of messages could not be unpacked, and nothing after it was looked at.
    pub unpacked: Option<String>,
    /// The partitions of which not all arrived in time.
    pub silent: Vec<i32>,
}

/// Reads the newest `most` messages of each partition as the worker would.
///
/// # Errors
///
/// If a type that records need is not declared, or the cluster does not answer or refuses.
pub fn sample(params: &Params, columns: &Columns, most: u32) -> Result<Sample, Error> {
    let topic = topic::describe(&params.broker, &params.topic)?;
    let inspector = TopicInspector::new(&params.broker, &params.topic)?;
    let mut wanted = BTreeMap::new();
    for partition in inspector.partitions(&topic.id, topic.partitions.iter().copied())? {
        let (low, high) = inspector.watermarks(partition)?;
        wanted.insert(partition, low.max(high - i64::from(most))..high);
    }
    try_all(params, columns, &wanted)
}

/// Reads at most `most` messages of each partition from these offsets on, as far as they are there.
///
/// # Errors
///
/// As [`sample`].
pub(super) fn following(
    params: &Params,
    columns: &Columns,
    inspector: &TopicInspector,
    (from, most): (&BTreeMap<i32, i64>, i64),
) -> Result<Sample, Error> {
    let mut wanted = BTreeMap::new();
    for (&partition, &from) in from {
        let (low, high) = inspector.watermarks(partition)?;
        let from = low.max(from);
        wanted.insert(partition, from..high.min(from.saturating_add(most)));
    }
    try_all(params, columns, &wanted)
}

/// Reads these offsets of each partition.
fn try_all(params: &Params, columns: &Columns, wanted: &BTreeMap<i32, Range<i64>>) -> Result<Sample, Error> {
    let failed = |error: KafkaError| Error::from(params.broker.failed(&params.topic, &error));
    let (mut list, mut ends) = (TopicPartitionList::new(), BTreeMap::new());
    for (&partition, range) in wanted.iter().filter(|(_, range)| !range.is_empty()) {
        list.add_partition_offset(&params.topic, partition, Offset::Offset(range.start)).map_err(failed)?;
        ends.insert(partition, range.end);
    }
    let mut trial = Trial::new(params, columns)?;
    if ends.is_empty() {
        return Ok(trial.found);
    }
    let consumer = params.broker.consumer(&SETTINGS).map_err(failed)?;
    consumer.assign(&list).map_err(failed)?;
    let mut heard = Instant::now();
    while !ends.is_empty() && heard.elapsed() < IDLE {
        match consumer.poll(Duration::from_millis(100)) {
            None => {
                // The client moves past what is never returned: the markers of transactions, and what was aborted.
                for at in consumer.position().map_err(failed)?.elements() {
                    let is_done = |end: &i64| matches!(at.offset(), Offset::Offset(next) if next >= *end);
                    if ends.get(&at.partition()).is_some_and(is_done) {
                        ends.remove(&at.partition());
                    }
                }
                continue;
            }
            Some(Ok(message)) => {
                let (partition, offset) = (message.partition(), message.offset());
                if let Some(end) = ends.get(&partition).copied() {
                    if offset < end {
                        trial.take(&message);
                    }
                    if offset + 1 >= end {
                        ends.remove(&partition);
                    }
                }
            }
            Some(Err(error)) if is_unreadable(&error) => {
                trial.found.unpacked = Some(error.to_string());
                break;
            }
            Some(Err(_)) => continue,
        }
        heard = Instant::now();
    }
    trial.found.silent = ends.into_keys().collect();
    // Closing may wait for the broker.
    std::thread::spawn(move || drop(consumer));
    Ok(trial.found)
}

impl Sample {
    /// Those that are broken, each with the reason: the first of them, if there are many.
    pub fn reasons(&self) -> String {
        let one =
            |(partition, offset, why): &(i32, i64, String)| format!("offset {offset} of partition {partition}: {why}");
        let listed: Vec<String> = self.broken.iter().take(SHOWN).map(one).collect();
        let more = self.broken.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("{} of {} cannot: {}{more}", self.broken.len(), self.messages, listed.join("; "))
    }

    /// What to do about them. Where none of several messages can be read, it is not they that are wrong.
    pub fn remedy(&self, format: &Format) -> String {
        if self.broken.len() as u64 == self.messages {
            return "correct `format` first: no message fits it".to_owned();
        }
        if !matches!(format, Format::Arrow) {
            return "nothing has to be done: each is one record, and is dropped by itself".to_owned();
        }
        let one =
            |(partition, offset, _): &(i32, i64, String)| format!("{{ partition = {partition}, offset = {offset} }}");
        let listed: Vec<String> = self.broken.iter().take(SHOWN).map(one).collect();
        format!("to continue without them, add to 'skip' in [input.kafka]: {}", listed.join(", "))
    }
}

struct Trial<'a> {
    params: &'a Params,
    columns: &'a Columns,
    arrow: ArrowDecoder,
    /// Where messages are single records.
    reader: Option<RecordReader>,
    found: Sample,
}

impl<'a> Trial<'a> {
    fn new(params: &'a Params, columns: &'a Columns) -> Result<Self, Error> {
        let reader = match &params.format {
            Format::Records { form, declared } => Some(RecordReader::new(form, columns, declared)?),
            Format::Arrow => None,
        };
        Ok(Trial { params, columns, arrow: ArrowDecoder::new(columns.clone()), reader, found: Sample::default() })
    }

    fn take(&mut self, message: &impl Message) {
        let (partition, offset) = (message.partition(), message.offset());
        if self.params.skip.contains(&(partition, offset)) || self.params.lost_until(partition, offset).is_some() {
            return;
        }
        self.found.messages += 1;
        let time = message.timestamp().to_millis().map(|millis| Timestamp::from_micros(millis.saturating_mul(1000)));
        let read = match (time, message.payload()) {
            (None, _) => Err("it has no timestamp".to_owned()),
            (_, None) => Err("it is empty".to_owned()),
            (Some(_), Some(payload)) => match &mut self.reader {
                Some(reader) => reader.read(payload).map_err(|broken| broken.to_string()).map(|row| {
                    let mut gather = Gather::new(self.columns);
                    gather.push(partition, offset, time, Some(row));
                    gather.take()
                }),
                None => {
                    let batch = self.arrow.decode(payload, partition, offset, time);
                    batch.map(Some).map_err(|broken| broken.to_string())
                }
            },
        };
        match read {
            Ok(batch) => batch.iter().for_each(|batch| self.count(batch)),
            Err(why) => self.found.broken.push((partition, offset, why)),
        }
    }

    /// Notes how a message has the columns.
    fn note_columns(&mut self, found: &FoundColumns) {
        // One that is needed for two things is one column.
        let columns: BTreeMap<&str, &FoundColumn> =
            found.columns().iter().map(|column| (column.name(), column)).collect();
        for (name, column) in columns {
            *self.found.kinds.entry(name.to_owned()).or_default().entry(column.cells()).or_default() += 1;
        }
        let unread: BTreeMap<&str, &FoundColumn> = found.unread().map(|column| (column.name(), column)).collect();
        for (name, column) in unread {
            let why = || (0, found.fault(column).to_string());
            self.found.unread.entry(name.to_owned()).or_insert_with(why).0 += 1;
        }
    }

    fn count(&mut self, batch: &Batch) {
        if let Some(found) = &batch.found {
            self.note_columns(found);
        }
        let Columns { time, key, unit, values, .. } = self.columns;
        let mut lacking = |column: &str, nulls: usize| {
            *self.found.lacking.entry(column.to_owned()).or_default() += nulls as u64;
        };
        self.found.records += batch.times.len() as u64;
        let times = || batch.times.iter().flatten().map(Timestamp::from_micros);
        if let (Some(first), Some(last)) = (times().min(), times().max()) {
            let (before, after) = self.found.times.unwrap_or((first, last));
            self.found.times = Some((before.min(first), after.max(last)));
            self.found.stamped = self.found.stamped.max(batch.message_time);
        }
        lacking(time, batch.times.null_count());
        for (name, ids) in [(key, &batch.keys), (unit, &batch.units)] {
            if let (Some(name), Some(ids)) = (name, ids) {
                lacking(name, (0..batch.times.len()).filter(|row| ids.get(*row).is_none()).count());
            }
        }
        for (name, column) in values.iter().zip(&batch.values) {
            lacking(name, column.null_count());
        }
    }
}
