//! Messages of a topic, tried against a configuration: the oldest and the newest for whoever asks whether the worker could read them, and
//! what follows a broken one for operators, who then skip all that are broken at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::consumer::Consumer;

use super::params::KafkaSourceParams;
use super::partition_consumer::{SETTINGS, is_unreadable, stamped_payload, timestamp_of_millis};
use super::topic_inspector::{TopicInspector, Watermarks};
use crate::broker::close_client;
use crate::offsets::{assign_partitions, known_offset};
use crate::source::SourceError;
use crate::source::record::{BatchBuilder, RecordReader, TopicFormat};
use crate::topic;
use bernstream_release::source::decode::ArrowDecoder;
use bernstream_release::source::{Batch, Columns};

/// Number of broken messages that are listed.
const MOST_SHOWN: usize = 20;
/// Time for which nothing may arrive before the rest is given up.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Findings in some messages of a topic. Counts and offsets, without noise.
#[derive(Debug, Default)]
pub struct TopicSample {
    /// Number of messages that were tried: what is given up is not.
    pub messages: u64,
    /// Messages that the worker could not read.
    pub broken: Vec<BrokenMessage>,
    /// Where the brokers' time counts, the last message of each partition that has its producer's.
    pub by_producers: BTreeMap<i32, i64>,
    /// Why a batch of messages could not be unpacked, and nothing after it was looked at.
    pub unpacked: Option<String>,
    /// The partitions of which not all arrived in time.
    pub silent: BTreeSet<i32>,
}

/// A message that the worker could not read.
#[derive(Debug)]
pub struct BrokenMessage {
    pub partition: i32,
    pub offset: i64,
    pub why: String,
}

/// Offsets of each partition.
type OffsetRanges = BTreeMap<i32, Range<i64>>;

/// Reads `most` messages of each partition as the worker would, half of them the oldest and half the newest, and hands their records to
/// `take`. Of an odd number the one in the middle is new. `progress` is called with how many are read, of how many at most.
///
/// # Errors
///
/// If a type that records need is not declared, or the cluster does not answer or refuses.
pub fn sample_topic(
    params: &KafkaSourceParams,
    columns: &Columns,
    most: u32,
    take: &mut dyn FnMut(&Batch),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<TopicSample, SourceError> {
    let topic = topic::describe_topic(&params.broker, &params.topic)?;
    let inspector = TopicInspector::new(&params.broker, &params.topic)?;
    let mut oldest = BTreeMap::new();
    let mut newest = BTreeMap::new();
    for partition in inspector.partitions(&topic.id, topic.partitions.iter().copied())? {
        let Watermarks { low, high } = inspector.watermarks(partition)?;
        let from = low.max(high - i64::from(most.div_ceil(2)));
        oldest.insert(partition, low..from.min(low + i64::from(most / 2)));
        newest.insert(partition, from..high);
    }
    try_ranges(params, columns, &[oldest, newest], take, progress)
}

/// Reads at most `most` messages of each partition from these offsets on, as far as they are there.
///
/// # Errors
///
/// As [`sample_topic`].
pub(super) fn sample_following(
    params: &KafkaSourceParams,
    columns: &Columns,
    inspector: &TopicInspector,
    from: &BTreeMap<i32, i64>,
    most: i64,
) -> Result<TopicSample, SourceError> {
    let mut wanted = BTreeMap::new();
    for (&partition, &from) in from {
        let Watermarks { low, high } = inspector.watermarks(partition)?;
        let from = low.max(from);
        wanted.insert(partition, from..high.min(from.saturating_add(most)));
    }
    try_ranges(params, columns, &[wanted], &mut |_| {}, &mut |_, _| {})
}

/// Reads these ranges one after the other, and hands the records to `take`. `progress` is called with how many messages are read, of how many at most.
fn try_ranges(
    params: &KafkaSourceParams,
    columns: &Columns,
    ranges: &[OffsetRanges],
    take: &mut dyn FnMut(&Batch),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<TopicSample, SourceError> {
    let mut all = 0;
    for range in ranges.iter().flat_map(BTreeMap::values) {
        all += range.end.abs_diff(range.start);
    }
    let reader = match &params.format {
        TopicFormat::Records { form, declared } => {
            Some(RecordReader::new(form, columns, declared)?)
        }
        TopicFormat::Arrow => None,
    };
    let mut trial = SampleReader {
        params,
        columns,
        arrow: ArrowDecoder::new(columns.clone()),
        reader,
        take,
        progress,
        all,
        found: TopicSample::default(),
    };
    for wanted in ranges {
        trial.read_ranges(wanted)?;
    }
    Ok(trial.found)
}

impl TopicSample {
    /// Broken messages and how many there are, each with the reason: the first of them, if there are many.
    pub fn reasons(&self) -> String {
        format!(
            "{} of {} cannot: {}",
            self.broken.len(),
            self.messages,
            self.listed()
        )
    }

    /// Broken messages, each with the reason, without how many there are.
    pub fn listed(&self) -> String {
        let mut listed = Vec::new();
        for broken in self.broken.iter().take(MOST_SHOWN) {
            listed.push(format!(
                "offset {} of partition {}: {}",
                broken.offset, broken.partition, broken.why
            ));
        }
        let more = self.broken.len().saturating_sub(MOST_SHOWN);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        format!("{}{more}", listed.join("; "))
    }

    /// Advice about them, where messages have many records. Where none of several messages can be read, it is not they that are wrong.
    pub fn remedy(&self) -> String {
        if self.broken.len() as u64 == self.messages {
            return "correct `format` first: no message fits it".to_owned();
        }
        let mut listed = Vec::new();
        for broken in self.broken.iter().take(MOST_SHOWN) {
            listed.push(format!(
                "{{ partition = {}, offset = {} }}",
                broken.partition, broken.offset
            ));
        }
        format!(
            "to continue without them, add to 'skip' in [input.kafka]: {}",
            listed.join(", ")
        )
    }
}

struct SampleReader<'a> {
    params: &'a KafkaSourceParams,
    columns: &'a Columns,
    arrow: ArrowDecoder,
    /// Where messages are single records.
    reader: Option<RecordReader>,
    take: &'a mut dyn FnMut(&Batch),
    /// Hears how many messages are read, of how many at most.
    progress: &'a mut dyn FnMut(u64, u64),
    all: u64,
    found: TopicSample,
}

impl SampleReader<'_> {
    /// Reads these offsets of each partition.
    fn read_ranges(&mut self, wanted: &OffsetRanges) -> Result<(), SourceError> {
        let params = self.params;
        let mut starts = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for (&partition, range) in wanted {
            if !range.is_empty() {
                starts.insert(partition, range.start);
                ends.insert(partition, range.end);
            }
        }
        if ends.is_empty() || self.found.unpacked.is_some() {
            return Ok(());
        }
        let consumer = params.checked(params.broker.consumer(&SETTINGS))?;
        params.checked(assign_partitions(&params.topic, &consumer, &starts))?;
        let mut heard = Instant::now();
        while !ends.is_empty() && heard.elapsed() < IDLE_TIMEOUT {
            match consumer.poll(Duration::from_millis(100)) {
                None => {
                    // The client moves past what is never returned: the markers of transactions, and what was aborted.
                    for position in params.checked(consumer.position())?.elements() {
                        let partition = position.partition();
                        if let Some(end) = ends.get(&partition)
                            && known_offset(position.offset()).is_some_and(|next| next >= *end)
                        {
                            ends.remove(&partition);
                        }
                    }
                    continue;
                }
                Some(Ok(message)) => {
                    let partition = message.partition();
                    let offset = message.offset();
                    if let Some(end) = ends.get(&partition).copied() {
                        if offset < end {
                            self.try_message(&message);
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

    fn try_message(&mut self, message: &impl Message) {
        let partition = message.partition();
        let offset = message.offset();
        if self.params.skip.contains(&(partition, offset))
            || self.params.lost_until(partition, offset).is_some()
        {
            return;
        }
        self.found.messages += 1;
        (self.progress)(self.found.messages, self.all);
        if matches!(message.timestamp(), rdkafka::Timestamp::CreateTime(_))
            && !self.params.trust_producer_time
        {
            self.found.by_producers.insert(partition, offset);
        }
        match self.decode_message(message) {
            Ok(Some(batch)) => (self.take)(&batch),
            Ok(None) => {}
            Err(why) => self.found.broken.push(BrokenMessage {
                partition,
                offset,
                why,
            }),
        }
    }

    fn decode_message(&mut self, message: &impl Message) -> Result<Option<Batch>, String> {
        let partition = message.partition();
        let offset = message.offset();
        let time = message.timestamp().to_millis().map(timestamp_of_millis);
        let payload = stamped_payload(message, time)?;
        let Some(reader) = &mut self.reader else {
            let batch = self.arrow.decode_message(payload, partition, offset, time);
            return batch.map(Some).map_err(|broken| broken.to_string());
        };
        let row = reader.read(payload).map_err(|broken| broken.to_string())?;
        let mut gather = BatchBuilder::new(self.columns);
        gather.push_row(partition, offset, time, Some(row));
        Ok(gather.take_batch())
    }
}
