//! Whose time messages have: a topic that is set to `LogAppendTime` keeps what producers stamped before.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::params::Params;
use super::partition_consumer::is_unreadable;
use super::topic_inspector::TopicInspector;
use crate::clock::Timestamp;
use crate::kafka::{self, Broker, ErrorContext, topic};
use crate::source::Error;

/// How long a message is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The settings of a client that looks at single messages: it fetches little, and says where nothing follows.
const SETTINGS: [(&str, &str); 8] = [
    // librdkafka needs a group id even for assigned partitions; it neither joins nor commits.
    ("group.id", "bernstream"),
    ("enable.auto.commit", "false"),
    ("auto.offset.reset", "error"),
    ("isolation.level", "read_uncommitted"),
    ("enable.partition.eof", "true"),
    ("fetch.wait.max.ms", "10"),
    ("queued.min.messages", "1"),
    // By default a full queue delays the next fetch by a second, of another offset too.
    ("fetch.queue.backoff.ms", "1"),
];

/// When a message was sent, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub partition: i32,
    pub offset: i64,
    pub time: Option<Timestamp>,
    pub is_of_broker: bool,
}

impl Stamp {
    pub fn of(message: &BorrowedMessage<'_>) -> Self {
        let time = message.timestamp().to_millis().map(|millis| Timestamp::from_micros(millis.saturating_mul(1000)));
        let is_of_broker = matches!(message.timestamp(), rdkafka::Timestamp::LogAppendTime(_));
        Stamp { partition: message.partition(), offset: message.offset(), time, is_of_broker }
    }

    /// Whether its time may decide to which window its records belong, or there is none.
    pub fn counts(&self, params: &Params) -> bool {
        self.time.is_none() || self.is_of_broker || params.trust_producer_time
    }
}

/// Looks at single messages of a topic.
pub(super) struct StampReader {
    broker: Broker,
    topic: String,
    client: BaseConsumer<ErrorContext>,
    /// The offset of each partition that was last found to be of a broker.
    of_brokers: BTreeMap<i32, i64>,
}

impl StampReader {
    /// # Errors
    ///
    /// If the client cannot be created.
    pub fn new(broker: &Broker, topic: &str) -> Result<Self, kafka::Error> {
        let client = broker.consumer(&SETTINGS).map_err(|e| broker.failed(topic, &e))?;
        Ok(StampReader { broker: broker.clone(), topic: topic.to_owned(), client, of_brokers: BTreeMap::new() })
    }

    /// The first message at or behind an offset of each partition, if there is one. One that cannot be unpacked has nobody's time.
    ///
    /// # Errors
    ///
    /// If a partition does not answer.
    fn at(&self, offsets: &BTreeMap<i32, i64>) -> Result<BTreeMap<i32, Stamp>, kafka::Error> {
        let failed = |error: KafkaError| self.broker.failed(&self.topic, &error);
        let (mut list, mut left, mut found) = (TopicPartitionList::new(), offsets.clone(), BTreeMap::new());
        for (partition, offset) in offsets {
            list.add_partition_offset(&self.topic, *partition, Offset::Offset(*offset)).map_err(failed)?;
        }
        self.client.assign(&list).map_err(failed)?;
        let deadline = Instant::now() + PATIENCE;
        while !left.is_empty() && Instant::now() < deadline {
            match self.client.poll(deadline.saturating_duration_since(Instant::now())) {
                Some(Ok(message)) => {
                    if left.remove(&message.partition()).is_some() {
                        found.insert(message.partition(), Stamp::of(&message));
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => drop(left.remove(&partition)),
                // Of which partition it is the client does not say.
                Some(Err(error)) if is_unreadable(&error) => {
                    let nobodys =
                        |(partition, offset)| (partition, Stamp { partition, offset, time: None, is_of_broker: false });
                    found.extend(std::mem::take(&mut left).into_iter().map(nobodys));
                }
                Some(Err(_)) | None => {}
            }
        }
        self.client.unassign().map_err(failed)?;
        match left.keys().next() {
            None => Ok(found),
            Some(partition) => {
                let why = format!("partition {partition} of topic '{}' could not be read", self.topic);
                Err(kafka::Error::Unavailable { servers: self.broker.servers.clone(), why })
            }
        }
    }

    /// The first message in `from..end` of a partition of which `is_behind` is true, if it is false of all before that one and of none after:
    /// its offset, and what it says; otherwise `end`.
    fn first(
        &self,
        partition: i32,
        (from, end): (i64, i64),
        is_behind: impl Fn(&Stamp) -> bool,
    ) -> Result<(i64, Option<Stamp>), kafka::Error> {
        let (mut from, mut found) = (from, (end, None));
        while from < found.0 {
            let middle = from + (found.0 - from) / 2;
            match self.at(&[(partition, middle)].into())?.remove(&partition) {
                Some(stamp) if stamp.offset < found.0 && !is_behind(&stamp) => from = stamp.offset + 1,
                stamp => found = (middle, stamp),
            }
        }
        Ok(found)
    }

    /// The offsets that were looked up of the first messages since `time` in partitions that end at `ends`, where brokers stamp messages.
    ///
    /// A topic can have been altered, and a message from before then has the time that its producer gave it. Where such a message was found
    /// it decides nothing: with any other time it would move the end of a window for all who come behind it.
    ///
    /// # Errors
    ///
    /// If a partition does not answer.
    pub fn of_brokers(
        &mut self,
        time: Timestamp,
        found: BTreeMap<i32, i64>,
        ends: &BTreeMap<i32, i64>,
    ) -> Result<BTreeMap<i32, i64>, kafka::Error> {
        let mut unknown = found.clone();
        unknown.retain(|partition, offset| self.of_brokers.get(partition) != Some(offset));
        let stamps = if unknown.is_empty() { BTreeMap::new() } else { self.at(&unknown)? };
        let mut of_brokers = found;
        for (partition, offset) in unknown {
            if stamps.get(&partition).is_some_and(|stamp| stamp.is_of_broker) {
                self.of_brokers.insert(partition, offset);
                continue;
            }
            let end = ends.get(&partition).copied().unwrap_or(offset);
            let is_since = |stamp: &Stamp| stamp.is_of_broker && stamp.time.is_some_and(|stamped| stamped >= time);
            of_brokers.insert(partition, self.first(partition, (offset, end), is_since)?.0);
        }
        Ok(of_brokers)
    }
}

/// Messages of a partition with times of their producers, where the brokers' time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderStamps {
    pub partition: i32,
    /// The first that a reader comes to.
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
pub fn older_stamps(params: &Params, since: Timestamp) -> Result<Vec<OlderStamps>, Error> {
    if params.trust_producer_time || params.broker.is_mock {
        return Ok(Vec::new());
    }
    let topic = topic::describe(&params.broker, &params.topic)?;
    let inspector = TopicInspector::new(&params.broker, &params.topic)?;
    let numbers = inspector.partitions(&topic.id, topic.partitions.iter().copied())?;
    let mut first = BTreeMap::new();
    for (partition, offset) in inspector.first_since(since, &numbers)? {
        first.extend(offset.map(|offset| (partition, params.passed_from(partition, offset))));
    }
    let reader = StampReader::new(&params.broker, &params.topic)?;
    let mut older = Vec::new();
    for (partition, stamp) in reader.at(&first)? {
        if !stamp.is_of_broker && stamp.time.is_some_and(|time| time >= since) {
            let within = (stamp.offset, inspector.watermarks(partition)?.1);
            let (to, next) = reader.first(partition, within, |stamp| stamp.is_of_broker)?;
            older.push(OlderStamps { partition, from: stamp.offset, to, next: next.and_then(|stamp| stamp.time) });
        }
    }
    // Closing may wait for the broker.
    std::thread::spawn(move || drop(reader));
    Ok(older)
}
