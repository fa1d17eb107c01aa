//! Messages of a topic, tried against a configuration: the oldest and the newest for whoever asks whether the worker could read them, and
//! what follows a broken one for operators, who then skip all that are broken at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::params::Params;
use super::partition_consumer::{SETTINGS, is_unreadable};
use super::topic_inspector::TopicInspector;
use crate::broker::close_client;
use crate::source::Error;
use crate::source::record::{Format, Gather, RecordReader};
use crate::topic;
use bernstream_release::source::decode::ArrowDecoder;
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::clock::Timestamp;

/// How many broken messages are listed.
const SHOWN: usize = 20;
/// How long nothing may arrive before the rest is given up.
const IDLE: Duration = Duration::from_secs(5);

/// What was found in some messages of a topic. Counts and offsets, without noise.
#[derive(Debug, Default)]
pub struct Sample {
    /// Those that were tried: what is given up is not.
    pub messages: u64,
    /// Messages that the worker could not read: partition, offset, why.
    pub broken: Vec<(i32, i64, String)>,
    /// Where the brokers' time counts, the last message of each partition that has its producer's.
    pub by_producers: BTreeMap<i32, i64>,
    /// Why a batch of messages could not be unpacked, and nothing after it was looked at.
    pub unpacked: Option<String>,
    /// The partitions of which not all arrived in time.
    pub silent: BTreeSet<i32>,
}

/// Reads `most` messages of each partition as the worker would, half of them the oldest and half the newest, and hands their records to
/// `take`. Of an odd number the one in the middle is new. `told` hears how many are read, of how many at most.
///
/// # Errors
///
/// If a type that records need is not declared, or the cluster does not answer or refuses.
pub fn sample(
    params: &Params,
    columns: &Columns,
    most: u32,
    take: &mut dyn FnMut(&Batch),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Sample, Error> {
    let topic = topic::describe(&params.broker, &params.topic)?;
    let inspector = TopicInspector::new(&params.broker, &params.topic)?;
    let mut oldest = BTreeMap::new();
    let mut newest = BTreeMap::new();
    for partition in inspector.partitions(&topic.id, topic.partitions.iter().copied())? {
        let (low, high) = inspector.watermarks(partition)?;
        let from = low.max(high - i64::from(most.div_ceil(2)));
        oldest.insert(partition, low..from.min(low + i64::from(most / 2)));
        newest.insert(partition, from..high);
    }
    let all = oldest
        .values()
        .chain(newest.values())
        .map(|range| range.end.abs_diff(range.start))
        .sum();
    let mut told = |read| told(read, all);
    let mut trial = Trial::new(params, columns, take, &mut told)?;
    trial.read(&oldest)?;
    trial.read(&newest)?;
    Ok(trial.found)
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
    let mut take = |_: &Batch| {};
    let mut told = |_: u64| {};
    let mut trial = Trial::new(params, columns, &mut take, &mut told)?;
    trial.read(&wanted)?;
    Ok(trial.found)
}

impl Sample {
    /// Those that are broken, each with the reason: the first of them, if there are many.
    pub fn reasons(&self) -> String {
        format!(
            "{} of {} cannot: {}",
            self.broken.len(),
            self.messages,
            self.listed()
        )
    }

    /// The same, without how many there are.
    pub fn listed(&self) -> String {
        let one = |(partition, offset, why): &(i32, i64, String)| {
            format!("offset {offset} of partition {partition}: {why}")
        };
        let listed: Vec<String> = self.broken.iter().take(SHOWN).map(one).collect();
        let more = self.broken.len().saturating_sub(SHOWN);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        format!("{}{more}", listed.join("; "))
    }

    /// What to do about them, where messages have many records. Where none of several messages can be read, it is not they that are wrong.
    pub fn remedy(&self) -> String {
        if self.broken.len() as u64 == self.messages {
            return "correct `format` first: no message fits it".to_owned();
        }
        let one = |(partition, offset, _): &(i32, i64, String)| {
            format!("{{ partition = {partition}, offset = {offset} }}")
        };
        let listed: Vec<String> = self.broken.iter().take(SHOWN).map(one).collect();
        format!(
            "to continue without them, add to 'skip' in [input.kafka]: {}",
            listed.join(", ")
        )
    }
}

struct Trial<'a> {
    params: &'a Params,
    columns: &'a Columns,
    arrow: ArrowDecoder,
    /// Where messages are single records.
    reader: Option<RecordReader>,
    take: &'a mut dyn FnMut(&Batch),
    /// Hears how many messages are read.
    told: &'a mut dyn FnMut(u64),
    found: Sample,
}

impl<'a> Trial<'a> {
    fn new(
        params: &'a Params,
        columns: &'a Columns,
        take: &'a mut dyn FnMut(&Batch),
        told: &'a mut dyn FnMut(u64),
    ) -> Result<Self, Error> {
        let reader = match &params.format {
            Format::Records { form, declared } => Some(RecordReader::new(form, columns, declared)?),
            Format::Arrow => None,
        };
        let arrow = ArrowDecoder::new(columns.clone());
        Ok(Trial {
            params,
            columns,
            arrow,
            reader,
            take,
            told,
            found: Sample::default(),
        })
    }

    /// Reads these offsets of each partition.
    fn read(&mut self, wanted: &BTreeMap<i32, Range<i64>>) -> Result<(), Error> {
        let params = self.params;
        let failed = |error: KafkaError| Error::from(params.broker.failed(&params.topic, &error));
        let mut list = TopicPartitionList::new();
        let mut ends = BTreeMap::new();
        for (&partition, range) in wanted.iter().filter(|(_, range)| !range.is_empty()) {
            list.add_partition_offset(&params.topic, partition, Offset::Offset(range.start))
                .map_err(failed)?;
            ends.insert(partition, range.end);
        }
        if ends.is_empty() || self.found.unpacked.is_some() {
            return Ok(());
        }
        let consumer = params.broker.consumer(&SETTINGS).map_err(failed)?;
        consumer.assign(&list).map_err(failed)?;
        let mut heard = Instant::now();
        while !ends.is_empty() && heard.elapsed() < IDLE {
            match consumer.poll(Duration::from_millis(100)) {
                None => {
                    // The client moves past what is never returned: the markers of transactions, and what was aborted.
                    for at in consumer.position().map_err(failed)?.elements() {
                        let is_done =
                            |end: &i64| matches!(at.offset(), Offset::Offset(next) if next >= *end);
                        if ends.get(&at.partition()).is_some_and(is_done) {
                            ends.remove(&at.partition());
                        }
                    }
                    continue;
                }
                Some(Ok(message)) => {
                    let partition = message.partition();
                    let offset = message.offset();
                    if let Some(end) = ends.get(&partition).copied() {
                        if offset < end {
                            self.try_one(&message);
                        }
                        if offset + 1 >= end {
                            ends.remove(&partition);
                        }
                    }
                }
                Some(Err(error)) if is_unreadable(&error) => {
                    self.found.unpacked = Some(error.to_string());
                    break;
                }
                Some(Err(_)) => continue,
            }
            heard = Instant::now();
        }
        self.found.silent.extend(ends.into_keys());
        close_client(consumer);
        Ok(())
    }

    fn try_one(&mut self, message: &impl Message) {
        let partition = message.partition();
        let offset = message.offset();
        if self.params.skip.contains(&(partition, offset))
            || self.params.lost_until(partition, offset).is_some()
        {
            return;
        }
        self.found.messages += 1;
        (self.told)(self.found.messages);
        if matches!(message.timestamp(), rdkafka::Timestamp::CreateTime(_))
            && !self.params.trust_producer_time
        {
            self.found.by_producers.insert(partition, offset);
        }
        let time = message
            .timestamp()
            .to_millis()
            .map(|millis| Timestamp::from_micros(millis.saturating_mul(1000)));
        let read = match (time, message.payload()) {
            (None, _) => Err("it has no timestamp".to_owned()),
            (_, None) => Err("it is empty".to_owned()),
            (Some(_), Some(payload)) => match &mut self.reader {
                Some(reader) => reader
                    .read(payload)
                    .map_err(|broken| broken.to_string())
                    .map(|row| {
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
            Ok(batch) => batch.iter().for_each(&mut *self.take),
            Err(why) => self.found.broken.push((partition, offset, why)),
        }
    }
}
