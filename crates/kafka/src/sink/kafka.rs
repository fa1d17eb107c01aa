//! Publishing to a Kafka topic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::iter;

use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};

use super::error::SinkError;
use super::publish::{Sink, Unpublished};
use super::published::FoundMessage;
use super::tail::{OutputTail, SeenSynopsis, TailPart};

use crate::broker::REQUEST_TIMEOUT;
use crate::offsets::assign_partitions;
use crate::producer::{Producer, ProducerRecord, UndeliveredRecords};
use crate::topic;
use crate::topic::TopicMetadata;
use crate::{Broker, MetadataClient};
use bernstream_ledger::{Digest, Paid, PublishedMessage};
use bernstream_synopsis::Encoded;

/// The most bytes of a batch of messages.
const LARGEST_BATCH: usize = 1_000_000;
/// Number of messages of each partition that are its end. Messages that were sent again may lie behind newer ones.
const END: i64 = 1024;
/// Number of messages of each partition that are read at once further back, and how often at most: a key that is nowhere must not make a worker
/// read all that was ever published.
const FURTHER: i64 = 16 * END;
const STRETCHES: usize = 4;

#[derive(Clone, Debug)]
pub struct KafkaSinkParams {
    pub broker: Broker,
    pub topic: String,
}

/// The output topic: `acks=all`, idempotent, several messages of a window in flight, partitions by key.
pub struct KafkaSink {
    params: KafkaSinkParams,
    producer: Producer,
    /// The id of the topic when it was opened.
    id: String,
    inspector: MetadataClient,
}

impl KafkaSink {
    /// Checks that the topic exists and keeps every message.
    ///
    /// # Errors
    ///
    /// If the topic is missing, is compacted, or cannot be reached.
    pub fn open(params: &KafkaSinkParams) -> Result<Self, SinkError> {
        let inspector = MetadataClient::new(&params.broker, &params.topic)?;
        inspector.ask(|client, timeout| {
            topic::partitions_within(&params.broker, client, &params.topic, timeout)
        })?;
        let id = topic_id(params, &inspector)?;
        // A batch counts as one message. Where the limit is not told, every message goes by itself.
        let settings = topic::topic_settings(&params.broker, &params.topic).unwrap_or_default();
        check_cleanup(params, &settings)?;
        let limit = settings
            .get("max.message.bytes")
            .and_then(|limit| limit.parse().ok())
            .unwrap_or(1);
        let batch = usize::clamp(limit, 1, LARGEST_BATCH);
        let producer = Producer::with_batches(params.broker.clone(), params.topic.clone(), batch);
        Ok(KafkaSink {
            params: params.clone(),
            producer,
            id,
            inspector,
        })
    }
}

/// Checks that the topic keeps the messages of all windows.
///
/// # Errors
///
/// If it is compacted.
pub fn check_topic(params: &KafkaSinkParams, topic: &TopicMetadata) -> Result<(), SinkError> {
    check_cleanup(params, &topic.settings)
}

fn topic_id(
    params: &KafkaSinkParams,
    inspector: &MetadataClient,
) -> Result<String, crate::ClusterError> {
    let KafkaSinkParams { broker, topic } = params;
    let found = inspector.ask(|client, timeout| {
        topic::describe_partitions(broker, client.client(), topic, timeout)
    })?;
    Ok(found.id)
}

fn check_cleanup(
    params: &KafkaSinkParams,
    settings: &BTreeMap<String, String>,
) -> Result<(), SinkError> {
    match settings.get("cleanup.policy") {
        Some(policy) if is_compacted(policy) => Err(SinkError::Compacted {
            topic: params.topic.clone(),
            found: policy.clone(),
            servers: params.broker.servers.clone(),
        }),
        _ => Ok(()),
    }
}

/// Returns whether brokers keep the newest message of each key only.
pub(super) fn is_compacted(policy: &str) -> bool {
    policy.split(',').any(|policy| policy.trim() == "compact")
}

impl Sink for KafkaSink {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), Unpublished> {
        let records = paid.iter().map(|paid| {
            let message = paid.encoded();
            ProducerRecord {
                partition: None,
                key: Some(&message.key),
                headers: &message.headers,
                payload: &message.bytes,
            }
        });
        match self.producer.send_all(records) {
            Ok(()) => Ok(()),
            Err(UndeliveredRecords { delivered, error }) => Err(Unpublished {
                durable: delivered,
                error: self.publish_error(paid, &error),
            }),
        }
    }

    fn confirm_place(&mut self) -> Result<(), SinkError> {
        let topic = &self.params.topic;
        match topic_id(&self.params, &self.inspector) {
            Ok(id) if id == self.id => Ok(()),
            Ok(_) => Err(SinkError::Recreated {
                topic: topic.clone(),
            }),
            Err(crate::ClusterError::NoTopic { .. }) => Err(SinkError::Deleted {
                topic: topic.clone(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    fn read_tail(&mut self, newest: &[PublishedMessage]) -> Result<Option<OutputTail>, SinkError> {
        // A topic that was made anew is another one: it does not get what the old one had.
        self.confirm_place()?;
        let topic = &self.params.topic;
        let mut unmet: BTreeMap<Digest, &str> = BTreeMap::new();
        for message in newest {
            unmet.insert(message.digest, &message.key);
        }
        let mut rest = read_extent(&self.params)?;
        let mut parts: BTreeMap<i32, TailPart> = BTreeMap::new();
        for extent in &rest {
            parts.insert(extent.partition, TailPart::default());
        }
        for most in iter::once(END).chain([FURTHER; STRETCHES]) {
            let is_end = most == END;
            if rest.iter().all(|extent| extent.low == extent.high) || !is_end && unmet.is_empty() {
                break;
            }
            let keys: BTreeSet<&str> = unmet.values().copied().collect();
            let stretches: Vec<PartitionExtent> = rest
                .iter()
                .map(|extent| PartitionExtent {
                    low: extent.low.max(extent.high - most),
                    ..*extent
                })
                .collect();
            let read = each_message(&self.params, &stretches, |place, message| {
                let name = format!("partition {} of topic '{topic}'", place.partition);
                let seen = SeenSynopsis::from_published(
                    place.offset,
                    &FoundMessage::of_message(name, message),
                );
                if let Some(seen) = seen
                    && let Some(part) = parts.get_mut(&place.partition)
                {
                    unmet.remove(&seen.digest());
                    // Further back only keys whose newest message was not met are of use, which bounds what is held.
                    let is_of_use = is_end || keys.contains(seen.key());
                    part.add_message(seen, is_of_use);
                }
            });
            match read {
                // A worker may lack the right to read what it writes.
                Err(SinkError::Broker(crate::ClusterError::Refused { .. })) => return Ok(None),
                read => read?,
            }
            for (rest, read) in rest.iter_mut().zip(&stretches) {
                rest.high = read.low;
            }
        }
        for unread in &rest {
            if let Some(part) = parts.get_mut(&unread.partition) {
                part.is_whole = unread.is_untouched();
            }
        }
        Ok(Some(OutputTail {
            parts: parts.into_values().collect(),
            has_keys: true,
        }))
    }
}

impl KafkaSink {
    fn publish_error(&self, paid: &[Paid], error: &KafkaError) -> SinkError {
        let KafkaSinkParams { broker, topic } = &self.params;
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
                let sizes = paid.iter().map(|paid| paid.encoded().bytes.len());
                SinkError::TooLarge {
                    topic: topic.clone(),
                    bytes: sizes.max().unwrap_or_default(),
                }
            }
            _ => broker.error_about(topic, error).into(),
        }
    }
}

/// A place in the topic.
#[derive(Clone, Copy, Debug)]
pub struct PartitionOffset {
    pub partition: i32,
    pub offset: i64,
}

impl fmt::Display for PartitionOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.partition, self.offset)
    }
}

/// Where a partition of the topic begins and ends: offsets, without the end.
#[derive(Clone, Copy, Debug)]
pub struct PartitionExtent {
    partition: i32,
    low: i64,
    high: i64,
}

impl PartitionExtent {
    /// Largest number of messages that it has.
    pub fn most_messages(&self) -> u64 {
        u64::try_from(self.high.saturating_sub(self.low)).unwrap_or(0)
    }

    /// Returns whether nothing was ever written to the partition.
    fn is_untouched(&self) -> bool {
        self.low == 0 && self.high == 0
    }
}

/// The partitions of the topic, and where each begins and ends now.
///
/// # Errors
///
/// If the topic cannot be reached.
pub fn read_extent(params: &KafkaSinkParams) -> Result<Vec<PartitionExtent>, crate::ClusterError> {
    let KafkaSinkParams { broker, topic } = params;
    let client = broker.client_for(topic)?;
    let mut extents = Vec::new();
    for partition in topic::partitions(broker, &client, topic)? {
        let (low, high) = client
            .fetch_watermarks(topic, partition, REQUEST_TIMEOUT)
            .map_err(|error| broker.error_about(topic, &error))?;
        extents.push(PartitionExtent {
            partition,
            low,
            high,
        });
    }
    Ok(extents)
}

/// The newest message of each partition, as an extent of its own.
///
/// # Errors
///
/// If the topic cannot be reached.
pub fn newest_extents(
    params: &KafkaSinkParams,
) -> Result<Vec<PartitionExtent>, crate::ClusterError> {
    let mut extents = read_extent(params)?;
    for extent in &mut extents {
        extent.low = extent.low.max(extent.high - 1);
    }
    Ok(extents)
}

/// Passes the place and the content of every message of `extents` to `each`.
///
/// # Errors
///
/// If the topic cannot be read to where it ended.
pub fn each_message(
    params: &KafkaSinkParams,
    extents: &[PartitionExtent],
    mut each: impl FnMut(PartitionOffset, Encoded),
) -> Result<(), SinkError> {
    read_extents(params, extents, &mut each)
        .map_err(|error| params.broker.error_about(&params.topic, &error))?;
    Ok(())
}

fn read_extents(
    params: &KafkaSinkParams,
    extents: &[PartitionExtent],
    each: &mut dyn FnMut(PartitionOffset, Encoded),
) -> KafkaResult<()> {
    let client = params.broker.consumer(&[
        ("group.id", "bernstream-verify"),
        ("enable.auto.commit", "false"),
        ("enable.partition.eof", "true"),
        // What was removed meanwhile is left out.
        ("auto.offset.reset", "earliest"),
        ("fetch.wait.max.ms", "100"),
        ("isolation.level", "read_uncommitted"),
    ])?;
    for extent in extents.iter().filter(|extent| extent.low < extent.high) {
        let start = BTreeMap::from([(extent.partition, extent.low)]);
        assign_partitions(&params.topic, &client, &start)?;
        loop {
            match params.broker.poll_message(&client, REQUEST_TIMEOUT) {
                // What came later is not asked for.
                Some(Ok(message)) if message.offset() >= extent.high => break,
                Some(Ok(message)) => {
                    let place = PartitionOffset {
                        partition: extent.partition,
                        offset: message.offset(),
                    };
                    each(place, encoded_message(&message));
                    if message.offset() + 1 == extent.high {
                        break;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(_))) => break,
                Some(Err(error)) => return Err(error),
                None => {
                    return Err(KafkaError::MessageConsumption(
                        RDKafkaErrorCode::OperationTimedOut,
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The message as it was found. Keys and headers that are not text were never sealed, and match nothing.
fn encoded_message(message: &BorrowedMessage<'_>) -> Encoded {
    let mut headers = Vec::new();
    for header in message.headers().iter().flat_map(|headers| headers.iter()) {
        headers.push((header.key.to_string(), lossy_text(header.value)));
    }
    Encoded {
        key: lossy_text(message.key()),
        headers,
        bytes: message.payload().unwrap_or_default().to_vec(),
    }
}

fn lossy_text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// Returns whether nothing was ever written to the topic: every partition begins and ends at offset 0.
///
/// # Errors
///
/// If the topic cannot be reached.
pub fn is_untouched(params: &KafkaSinkParams) -> Result<bool, crate::ClusterError> {
    Ok(read_extent(params)?
        .iter()
        .all(PartitionExtent::is_untouched))
}
