//! A consumer of partitions of a topic, each from a given offset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::params::{OnBadMessage, Params, check};
use super::records::Records;
use crate::broker::REQUEST_TIMEOUT;
use crate::lost_client::LostClientWatch;
use crate::right::Right;
use crate::source::told::{HOW, Told, without_numbers};
use crate::source::{Error, Event};
use crate::{ErrorContext, topic};
use bernstream_release::source::decode::ArrowDecoder;
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;

/// The settings of every client that reads the input.
///
/// The sizes bound what is fetched at once, compressed, and what waits to be decoded. `receive.message.max.bytes` also bounds what
/// a batch may unfold to under zstd; librdkafka has no bound for the other codecs, nor for all batches of a fetch together.
pub(super) const SETTINGS: [(&str, &str); 11] = [
    // librdkafka needs a group id even for assigned partitions; it neither joins nor commits.
    ("group.id", "bernstream"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "error"),
    ("isolation.level", "read_committed"),
    // librdkafka 2.12 goes on at a wrong place behind a batch whose checksum is wrong, and mostly aborts the process there.
    ("check.crcs", "false"),
    ("fetch.wait.max.ms", "100"),
    // By default a full queue delays the next fetch by a second.
    ("fetch.queue.backoff.ms", "10"),
    ("max.partition.fetch.bytes", "1048576"),
    ("fetch.max.bytes", "16777216"),
    ("receive.message.max.bytes", "100000000"),
];

/// What waits to be decoded, in all readers together, and in one of them at least.
const QUEUED_KBYTES: u32 = 65_536;
const LEAST_QUEUED_KBYTES: u32 = 8192;

/// What came of reading.
pub(super) enum Found {
    Event(Event),
    /// One of the partitions has a batch that the client cannot unpack; which one it does not say.
    Unreadable(KafkaError),
}

/// A consumer of the partitions of a reader, each from its start offset.
pub(super) struct PartitionConsumer {
    consumer: BaseConsumer<ErrorContext>,
    watch: LostClientWatch,
    pub partitions: BTreeMap<i32, Partition>,
    /// Where messages are single records.
    records: Option<Records>,
    /// Where they are not.
    arrow: ArrowDecoder,
    /// Whether the last poll returned nothing.
    pub is_idle: bool,
    /// The partition that the last event says has stopped, if it had not before.
    has_just_stopped: Option<i32>,
}

pub(super) struct Partition {
    start: i64,
    /// Messages with an earlier time are not needed.
    since: Timestamp,
    /// The offset after the last message.
    next: i64,
    is_paused: bool,
    /// The broken message at which reading stopped, and why.
    stuck: Option<(i64, Told)>,
}

impl PartitionConsumer {
    /// # Errors
    ///
    /// If the client cannot be created, or a type that records need is not declared.
    pub fn start(
        params: &Params,
        columns: &Columns,
        readers: u32,
        partitions: BTreeMap<i32, Partition>,
    ) -> Result<Self, Error> {
        let records = Records::new(&params.format, columns)?;
        let failed = |e| params.broker.failed(&params.topic, &e);
        // The queues of all readers together hold what that of one would, or a fetch of each partition.
        let queue = (QUEUED_KBYTES / readers)
            .max(LEAST_QUEUED_KBYTES)
            .to_string();
        let settings = [
            SETTINGS.as_slice(),
            &[("queued.max.messages.kbytes", &queue)],
        ]
        .concat();
        let consumer = params.broker.consumer(&settings).map_err(failed)?;
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for (number, partition) in &partitions {
            list.add_partition_offset(&params.topic, *number, Offset::Offset(partition.start))
                .map_err(failed)?;
        }
        consumer.assign(&list).map_err(failed)?;
        let arrow = ArrowDecoder::new(columns.clone());
        Ok(PartitionConsumer {
            consumer,
            watch: LostClientWatch::start(),
            partitions,
            records,
            arrow,
            is_idle: false,
            has_just_stopped: None,
        })
    }

    /// Whether there are records that have been read and not returned.
    pub fn has_gathered(&self) -> bool {
        self.records
            .as_ref()
            .is_some_and(|records| !records.is_empty())
    }

    /// The records that have been read and not returned, if there are any.
    pub fn flush(&mut self) -> Option<Batch> {
        self.records.as_mut().and_then(Records::flush)
    }

    /// # Errors
    ///
    /// If reading the topic is not allowed, or its messages have untrusted timestamps.
    pub fn next(
        &mut self,
        params: &Params,
        until: Option<&Positions>,
        timeout: Duration,
    ) -> Result<Found, Error> {
        self.pause_and_resume(&params.topic, until)
            .map_err(|e| params.broker.failed(&params.topic, &e))?;
        let deadline = Instant::now() + timeout;
        loop {
            self.pass_lost(params)
                .map_err(|e| params.broker.failed(&params.topic, &e))?;
            let PartitionConsumer {
                consumer,
                watch,
                partitions,
                records,
                arrow,
                is_idle,
                has_just_stopped,
            } = self;
            *has_just_stopped = None;
            // What was gathered waits for no more than is there already.
            let wait = match records.as_ref().is_none_or(Records::is_empty) {
                true => deadline.saturating_duration_since(Instant::now()),
                false => Duration::ZERO,
            };
            let polled = consumer.poll(wait);
            *is_idle = polled.is_none();
            if matches!(polled, Some(Ok(_))) {
                watch.hear();
            }
            let gathered = if polled.is_none() {
                records.as_mut().and_then(Records::flush)
            } else {
                None
            };
            let event = match polled {
                None if gathered.is_some() => gathered.map(Event::Batch),
                None if watch.is_lost(&params.broker, consumer, &params.topic) => {
                    Some(lost(&params.topic))
                }
                None => Some(
                    partitions
                        .values()
                        .find_map(Partition::is_stuck)
                        .unwrap_or(Event::Idle),
                ),
                Some(Ok(message)) => match partitions.get_mut(&message.partition()) {
                    Some(partition) => {
                        let event = partition.take(&message, params, arrow, records.as_mut())?;
                        *has_just_stopped = partition.stuck.is_some().then(|| message.partition());
                        // No batch reaches beyond the end of a window.
                        let end = until.and_then(|until| until.0.get(&message.partition()));
                        match (event, records) {
                            (None, Some(records))
                                if end.is_some_and(|end| partition.next >= *end) =>
                            {
                                records.flush().map(Event::Batch)
                            }
                            (event, _) => event,
                        }
                    }
                    None => None,
                },
                Some(Err(error)) if is_unreadable(&error) => return Ok(Found::Unreadable(error)),
                Some(Err(error)) => interpret(&error, params)?,
            };
            match event {
                Some(event) => {
                    if matches!(event, Event::Stuck { .. }) {
                        self.pause_and_resume(&params.topic, until)
                            .map_err(|e| params.broker.failed(&params.topic, &e))?;
                    }
                    return Ok(Found::Event(event));
                }
                None => continue,
            }
        }
    }

    /// Seeks past what the configuration gives up as lost, where a partition has come to it.
    fn pass_lost(&mut self, params: &Params) -> Result<(), KafkaError> {
        for (number, partition) in &mut self.partitions {
            let Some(to) = params.lost_until(*number, partition.next) else {
                continue;
            };
            // Nothing can be read from behind the end.
            let end = self
                .consumer
                .fetch_watermarks(&params.topic, *number, REQUEST_TIMEOUT)?
                .1;
            let to = to.min(end);
            if to > partition.next {
                self.consumer
                    .seek(&params.topic, *number, Offset::Offset(to), REQUEST_TIMEOUT)?;
                partition.next = to;
            }
        }
        Ok(())
    }

    /// Where the partitions go on that are being read.
    pub fn next_offsets(&self) -> BTreeMap<i32, i64> {
        let reading = self
            .partitions
            .iter()
            .filter(|(_, partition)| !partition.is_paused);
        reading
            .map(|(number, partition)| (*number, partition.next))
            .collect()
    }

    /// Where the partition goes on that has just stopped at a broken message, and where the others do that have not.
    pub fn behind_the_broken(&self) -> Option<(i32, i64, BTreeMap<i32, i64>)> {
        let number = self.has_just_stopped?;
        let (offset, _) = self.partitions.get(&number)?.stuck.as_ref()?;
        let going_on = self
            .partitions
            .iter()
            .filter(|(other, partition)| **other == number || !partition.has_stopped());
        Some((
            number,
            *offset,
            going_on
                .map(|(number, partition)| (*number, partition.at()))
                .collect(),
        ))
    }

    /// Stops reading a partition at `offset`, for good.
    pub fn stop(&mut self, partition: i32, offset: i64, why: Told) {
        if let Some(partition) = self.partitions.get_mut(&partition) {
            partition.stuck = Some((offset, why));
        }
    }

    /// Pauses the partitions that are stuck or have reached `until`, and resumes the others.
    fn pause_and_resume(
        &mut self,
        topic: &str,
        until: Option<&Positions>,
    ) -> Result<(), KafkaError> {
        let mut pause = TopicPartitionList::new();
        let mut resume = TopicPartitionList::new();
        for (number, partition) in &mut self.partitions {
            let end = until.and_then(|until| until.0.get(number));
            let is_done =
                partition.stuck.is_some() || end.is_some_and(|end| partition.next >= *end);
            if is_done != partition.is_paused {
                partition.is_paused = is_done;
                let list = if is_done { &mut pause } else { &mut resume };
                list.add_partition(topic, *number);
            }
        }
        if pause.count() > 0 {
            self.consumer.pause(&pause)?;
        }
        if resume.count() > 0 {
            self.consumer.resume(&resume)?;
        }
        Ok(())
    }

    /// The next offset of each partition. The position of the client moves past transaction markers, which are never returned.
    ///
    /// # Errors
    ///
    /// If the client has no positions.
    pub fn positions(&self) -> Result<Positions, KafkaError> {
        let mut positions: BTreeMap<i32, i64> = self
            .partitions
            .iter()
            .map(|(number, p)| (*number, p.next))
            .collect();
        for at in self.consumer.position()?.elements() {
            if let (Offset::Offset(offset), Some(position)) =
                (at.offset(), positions.get_mut(&at.partition()))
            {
                *position = offset.max(*position);
            }
        }
        for (number, partition) in &self.partitions {
            if let Some((offset, _)) = partition.stuck {
                positions.insert(*number, offset);
            }
        }
        Ok(Positions(positions))
    }
}

impl Partition {
    /// That begins at the offset `start` with messages of `since`.
    pub fn new(start: i64, since: Timestamp) -> Self {
        Partition {
            start,
            since,
            next: start,
            is_paused: false,
            stuck: None,
        }
    }

    /// The same for a new client, which begins behind everything that was returned.
    pub fn again(&self) -> Self {
        Partition::new(self.at(), self.since)
    }

    /// The offset before which everything was returned.
    pub fn at(&self) -> i64 {
        self.stuck.as_ref().map_or(self.next, |(offset, _)| *offset)
    }

    /// Whether it has stopped at a broken message.
    pub fn has_stopped(&self) -> bool {
        self.stuck.is_some()
    }

    fn take(
        &mut self,
        message: &BorrowedMessage<'_>,
        params: &Params,
        arrow: &mut ArrowDecoder,
        records: Option<&mut Records>,
    ) -> Result<Option<Event>, Error> {
        let number = message.partition();
        let offset = message.offset();
        if self.stuck.is_some() {
            return Ok(None);
        }
        if offset < self.next {
            let why = format!("partition {number} went back");
            let in_full = format!("{why} to offset {offset} from {}", self.next);
            return Ok(Some(Event::Reset {
                why: Told::new(why, in_full),
            }));
        }
        self.next = offset + 1;
        // What is lost is passed, but not in what was fetched already.
        if params.passed_from(number, offset) > offset {
            return Ok(None);
        }
        let time = match message.timestamp() {
            rdkafka::Timestamp::LogAppendTime(millis) => Some(millis),
            rdkafka::Timestamp::CreateTime(millis) if params.trust_producer_time => Some(millis),
            // As the look-up of where to begin passes it, where any message is late enough for one.
            rdkafka::Timestamp::CreateTime(millis) if is_before(millis, self.since) => {
                return Ok(None);
            }
            rdkafka::Timestamp::CreateTime(_) => {
                return Err(stamped_by_producer(params, number, offset));
            }
            rdkafka::Timestamp::NotAvailable => None,
        };
        if let Some(records) = records {
            let message_time =
                time.map(|millis| Timestamp::from_micros(millis.saturating_mul(1000)));
            return Ok(records
                .take((number, offset), message_time, message.payload())
                .map(Event::Batch));
        }
        let batch = match (time, message.payload()) {
            (None, _) => Err("it has no timestamp".to_owned()),
            (_, None) => Err("it is empty".to_owned()),
            (Some(millis), Some(payload)) => {
                let time = Timestamp::from_micros(millis.saturating_mul(1000));
                arrow
                    .decode(payload, number, offset, Some(time))
                    .map_err(|broken| broken.to_string())
            }
        };
        match batch {
            Ok(batch) => Ok(Some(Event::Batch(batch))),
            Err(why) if params.on_bad_message == OnBadMessage::Skip => {
                let words = format!(
                    "a message of partition {number} is broken: {}",
                    without_numbers(&why)
                );
                let in_full = format!(
                    "the message at offset {offset} of partition {number} is broken: {why}"
                );
                Ok(Some(Event::Skipped {
                    why: Told::new(words, in_full),
                }))
            }
            Err(why) => {
                let topic = &params.topic;
                let words = format!(
                    "a message of partition {number} of topic '{topic}' is broken: {}; to continue without it, add it to 'skip' ({HOW})",
                    without_numbers(&why)
                );
                let in_full = format!(
                    "the message at offset {offset} of partition {number} of topic '{topic}' is broken: {why}; to \
                     continue without it, add {{ partition = {number}, offset = {offset} }} to 'skip'"
                );
                self.stuck = Some((offset, Told::new(words, in_full)));
                Ok(self.is_stuck())
            }
        }
    }

    fn is_stuck(&self) -> Option<Event> {
        self.stuck
            .as_ref()
            .map(|(_, why)| Event::Stuck { why: why.clone() })
    }
}

/// Reading starts again: a client that began where the lost one stood could not tell whether the log had been cut there meanwhile.
fn lost(topic: &str) -> Event {
    Event::Reset {
        why: format!("a client of topic '{topic}' has lost the brokers, which answer others")
            .into(),
    }
}

/// Why reading ends at such a message: the topic may have been set back since it was opened.
pub(super) fn stamped_by_producer(params: &Params, partition: i32, offset: i64) -> Error {
    let now = topic::describe(&params.broker, &params.topic)
        .ok()
        .and_then(|topic| check(params, &topic).err());
    now.unwrap_or_else(|| Error::OlderStamp {
        topic: params.topic.clone(),
        partition,
        offset,
    })
}

fn is_before(millis: i64, since: Timestamp) -> bool {
    Timestamp::from_micros(millis.saturating_mul(1000)) < since
}

/// Whether `error` means that a batch was fetched and cannot be unpacked.
pub(super) fn is_unreadable(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{
        BadCompression, BadMessage, InvalidMessage, InvalidMessageSize, MessageSizeTooLarge,
        NotImplemented,
    };
    let KafkaError::MessageConsumption(code) = error else {
        return false;
    };
    [
        BadCompression,
        BadMessage,
        InvalidMessage,
        InvalidMessageSize,
        MessageSizeTooLarge,
        NotImplemented,
    ]
    .contains(code)
}

/// Interprets an error of the client: most are temporary, some mean that messages were missed.
fn interpret(error: &KafkaError, params: &Params) -> Result<Option<Event>, Error> {
    let code = match error {
        KafkaError::MessageConsumption(code) => code,
        KafkaError::MessageConsumptionFatal(_) => {
            return Ok(Some(Event::Reset {
                why: format!("the Kafka client has failed: {error}").into(),
            }));
        }
        _ => return Ok(None),
    };
    match code {
        RDKafkaErrorCode::AutoOffsetReset
        | RDKafkaErrorCode::OffsetOutOfRange
        | RDKafkaErrorCode::LogTruncation => Ok(Some(Event::Reset {
            why: format!("messages of topic '{}' were missed: {error}", params.topic).into(),
        })),
        RDKafkaErrorCode::TopicAuthorizationFailed => {
            let topic = params.topic.clone();
            let servers = params.broker.servers.clone();
            Err(crate::Error::NoRight {
                topic,
                servers,
                right: Right::Read,
            }
            .into())
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::Broker;
    use crate::source::record::Format;

    fn params(broker: Broker) -> Params {
        Params {
            broker,
            topic: "in".to_owned(),
            clock: String::new(),
            clock_slack: Duration::ZERO,
            readers: None,
            trust_producer_time: false,
            format: Format::Arrow,
            on_bad_message: OnBadMessage::Stop,
            skip: BTreeSet::new(),
            lost: vec![],
        }
    }

    #[test]
    fn reading_starts_again_where_the_client_is_lost_and_others_are_answered() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("in", 1, 1).unwrap();
        let params = params(Broker::mock(cluster.bootstrap_servers()));
        let partitions = [(0, Partition::new(0, Timestamp::EARLIEST))].into();
        let mut reader =
            PartitionConsumer::start(&params, &Columns::default(), 1, partitions).unwrap();
        reader.consumer = Broker::mock("127.0.0.1:1").consumer(&SETTINGS).unwrap();
        let begun = Instant::now();
        while !matches!(
            reader
                .next(&params, None, Duration::from_millis(100))
                .unwrap(),
            Found::Event(Event::Reset { .. })
        ) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing but waiting"
            );
        }
    }

    #[test]
    fn a_right_that_was_taken_away_is_named() {
        let params = params(Broker::plain("a:1"));
        let error = KafkaError::MessageConsumption(RDKafkaErrorCode::TopicAuthorizationFailed);
        let told = interpret(&error, &params).unwrap_err();
        assert!(
            !told.is_transient()
                && told
                    .to_string()
                    .contains("does not give this user the right Read on topic 'in'")
        );
    }
}
