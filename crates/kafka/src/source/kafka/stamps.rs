//! Whose time messages have: a topic that is set to `LogAppendTime` keeps what producers stamped before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};

use super::params::KafkaSourceParams;
use super::partition_consumer::{is_unreadable, stamped_by_producer, timestamp_of_millis};
use super::topic_inspector::{TopicInspector, Watermarks};
use crate::broker::close_client;
use crate::offsets::assign_partitions;
use crate::source::SourceError;
use crate::{ErrorContext, topic};
use bernstream_synopsis::clock::Timestamp;

/// Longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// The settings of a client that looks at single messages: it fetches little, and says where nothing follows.
const SETTINGS: [(&str, &str); 8] = [
    // librdkafka needs a group id even for assigned partitions; it neither joins nor commits.
    ("group.id", "bernstream"),
    ("enable.auto.commit", "false"),
    ("auto.offset.reset", "error"),
    // A transaction that is open would hide everything behind it.
    ("isolation.level", "read_uncommitted"),
    ("enable.partition.eof", "true"),
    ("fetch.wait.max.ms", "10"),
    // The partitions share a queue: one that is full must not hold up another.
    ("fetch.queue.backoff.ms", "1"),
    // A broker sends a batch at least.
    ("max.partition.fetch.bytes", "1024"),
];

/// Messages of a partition with times of their producers, where the brokers' time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderStamps {
    pub partition: i32,
    /// The first that a reader comes to; 0 if retention may have deleted some before it.
    pub from: i64,
    /// The offset behind the last of them, if the topic was altered once.
    pub to: i64,
    /// The broker's time of the message there, if there is one.
    pub next: Option<Timestamp>,
}

/// The messages with producers' times to which a reader comes that begins at those of `since`. One message of each partition is looked at,
/// and more only where there are any.
///
/// # Errors
///
/// If the cluster does not answer or refuses.
pub fn older_stamps(
    params: &KafkaSourceParams,
    since: Timestamp,
) -> Result<Vec<OlderStamps>, SourceError> {
    if params.trust_producer_time || params.broker.is_mock {
        return Ok(Vec::new());
    }
    let topic = topic::describe_topic(&params.broker, &params.topic)?;
    let inspector = TopicInspector::new(&params.broker, &params.topic)?;
    let numbers = inspector.partitions(&topic.id, topic.partitions.iter().copied())?;
    let mut first = BTreeMap::new();
    for (partition, offset) in inspector.first_since(since, &numbers)? {
        if let Some(offset) = offset {
            first.insert(partition, params.passed_from(partition, offset));
        }
    }
    let reader = StampReader::start(params)?;
    let mut older = Vec::new();
    for (partition, stamp) in reader.read_stamps(&first)? {
        if stamp.is_of_producer() {
            let Watermarks { low, high } = inspector.watermarks(partition)?;
            let brokers = reader.first_of_brokers(partition, stamp.offset + 1, high)?;
            older.push(OlderStamps {
                partition,
                from: if stamp.offset <= low { 0 } else { stamp.offset },
                to: brokers.offset,
                next: brokers.time,
            });
        }
    }
    reader.close();
    Ok(older)
}

/// Refuses to begin at these offsets, which were looked up by time, if one of the messages there has its producer's time.
///
/// Before anything is read: the look-up of where a window ends finds the same message, and would end the window there, without those behind it.
/// In a topic that was altered once, no message that a producer stamped is both late enough to be found later and behind one of a broker.
///
/// # Errors
///
/// If it has, or if the cluster does not answer or refuses.
pub(super) fn refuse_producer_stamps(
    params: &KafkaSourceParams,
    first: &BTreeMap<i32, Option<i64>>,
) -> Result<(), SourceError> {
    if params.trust_producer_time {
        return Ok(());
    }
    let mut offsets = BTreeMap::new();
    for (&partition, offset) in first {
        if let Some(offset) = offset {
            offsets.insert(partition, params.passed_from(partition, *offset));
        }
    }
    if offsets.is_empty() {
        return Ok(());
    }
    let reader = StampReader::start(params)?;
    let found = reader.read_stamps(&offsets);
    reader.close();
    for (partition, stamp) in found? {
        if stamp.is_of_producer() {
            return Err(stamped_by_producer(params, partition, stamp.offset));
        }
    }
    Ok(())
}

/// When a message was sent.
#[derive(Clone, Copy)]
struct MessageStamp {
    offset: i64,
    /// Unknown of a message that cannot be unpacked.
    time: rdkafka::Timestamp,
}

impl MessageStamp {
    fn of(message: &BorrowedMessage<'_>) -> Self {
        MessageStamp {
            offset: message.offset(),
            time: message.timestamp(),
        }
    }

    fn is_of_producer(&self) -> bool {
        matches!(self.time, rdkafka::Timestamp::CreateTime(_))
    }
}

/// The first message that a broker has stamped, behind those that producers have.
struct FirstOfBrokers {
    offset: i64,
    /// `None` where there is no such message yet.
    time: Option<Timestamp>,
}

/// Looks at single messages of a topic.
struct StampReader<'a> {
    params: &'a KafkaSourceParams,
    client: BaseConsumer<ErrorContext>,
}

impl<'a> StampReader<'a> {
    /// # Errors
    ///
    /// If the client cannot be created.
    fn start(params: &'a KafkaSourceParams) -> Result<Self, crate::ClusterError> {
        Ok(StampReader {
            params,
            client: params.checked(params.broker.consumer(&SETTINGS))?,
        })
    }

    fn close(self) {
        close_client(self.client);
    }

    /// The first message at or behind an offset of each partition, if there is one.
    ///
    /// # Errors
    ///
    /// If a partition does not answer.
    fn read_stamps(
        &self,
        offsets: &BTreeMap<i32, i64>,
    ) -> Result<BTreeMap<i32, MessageStamp>, crate::ClusterError> {
        let KafkaSourceParams { broker, topic, .. } = self.params;
        let mut left = offsets.clone();
        let mut found = BTreeMap::new();
        self.params
            .checked(assign_partitions(topic, &self.client, offsets))?;
        let mut deadline = Instant::now() + PATIENCE;
        while !left.is_empty() && Instant::now() < deadline {
            match self
                .client
                .poll(deadline.saturating_duration_since(Instant::now()))
            {
                Some(Ok(message)) if left.remove(&message.partition()).is_some() => {
                    found.insert(message.partition(), MessageStamp::of(&message));
                    deadline = Instant::now() + PATIENCE;
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(left.remove(&partition)),
                // Of which partition it is the client does not say.
                Some(Err(error)) if is_unreadable(&error) => left.clear(),
                Some(Err(error)) => {
                    let error = broker.error_about(topic, &error);
                    if !error.is_transient() {
                        return Err(error);
                    }
                }
                Some(Ok(_)) | None => {}
            }
        }
        self.params.checked(self.client.unassign())?;
        match left.keys().next() {
            None => Ok(found),
            Some(partition) => Err(crate::ClusterError::Unavailable {
                servers: broker.servers.clone(),
                why: format!("partition {partition} of topic '{topic}' could not be read"),
            }),
        }
    }

    /// The first message in `from..end` of a partition that a broker has stamped, if there are none behind it that a producer has: its offset
    /// and its time; otherwise `end`. In each step half of what is left.
    ///
    /// # Errors
    ///
    /// If the partition does not answer.
    fn first_of_brokers(
        &self,
        partition: i32,
        from: i64,
        end: i64,
    ) -> Result<FirstOfBrokers, crate::ClusterError> {
        let mut from = from;
        let mut end = end;
        let mut time = None;
        while from < end {
            let middle = from + (end - from) / 2;
            let start = BTreeMap::from([(partition, middle)]);
            match self.read_stamps(&start)?.remove(&partition) {
                Some(stamp) if stamp.offset < end && stamp.is_of_producer() => {
                    from = stamp.offset + 1
                }
                Some(stamp) => {
                    end = middle;
                    time = stamp.time.to_millis().map(timestamp_of_millis);
                }
                None => end = middle,
            }
        }
        Ok(FirstOfBrokers { offset: end, time })
    }
}
