//! A consumer of partitions of a topic, each from a given offset.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::params::{BadMessageRule, KafkaSourceParams, check_topic};
use super::records::MessageRecords;
use crate::broker::REQUEST_TIMEOUT;
use crate::lost_client::LostClientWatch;
use crate::offsets::{assign_partitions, known_offset};
use crate::right::TopicRight;
use crate::source::told::{HOW, RedactedReason, without_numbers};
use crate::source::{SourceError, SourceEvent};
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

/// Room for what waits to be decoded, in all readers together, and in one of them at least.
const QUEUED_KBYTES: u32 = 65_536;
const LEAST_QUEUED_KBYTES: u32 = 8192;

/// Outcome of reading.
pub(super) enum ReadOutcome {
    Event(SourceEvent),
    /// One of the partitions has a batch that the client cannot unpack; which one it does not say.
    Unreadable(KafkaError),
}

/// A consumer of the partitions of a reader, each from its start offset.
pub(super) struct PartitionConsumer {
    consumer: BaseConsumer<ErrorContext>,
    watch: LostClientWatch,
    pub partitions: BTreeMap<i32, PartitionProgress>,
    /// Where messages are single records.
    records: Option<MessageRecords>,
    /// Where they are not.
    arrow: ArrowDecoder,
    /// The last poll returned nothing.
    pub is_idle: bool,
    /// The partition that the last event says has stopped, if it had not before.
    has_just_stopped: Option<i32>,
}

pub(super) struct PartitionProgress {
    start: i64,
    /// Messages with an earlier time are not needed.
    since: Timestamp,
    /// The offset after the last message.
    next: i64,
    is_paused: bool,
    /// The broken message at which reading stopped.
    stuck: Option<PartitionStop>,
}

/// A message at which reading a partition stops.
struct PartitionStop {
    offset: i64,
    why: RedactedReason,
}

/// A partition that has just stopped at a broken message.
pub(super) struct JustStopped {
    pub partition: i32,
    /// Offset of the message.
    pub offset: i64,
    /// Where this partition goes on, and the others do that have not stopped.
    pub going_on: BTreeMap<i32, i64>,
}

impl PartitionConsumer {
    /// # Errors
    ///
    /// If the client cannot be created, or a type that records need is not declared.
    pub fn start(
        params: &KafkaSourceParams,
        columns: &Columns,
        readers: u32,
        partitions: BTreeMap<i32, PartitionProgress>,
    ) -> Result<Self, SourceError> {
        let records = MessageRecords::new(&params.format, columns)?;
        // The queues of all readers together hold what that of one would, or a fetch of each partition.
        let queue = (QUEUED_KBYTES / readers)
            .max(LEAST_QUEUED_KBYTES)
            .to_string();
        let settings = [
            SETTINGS.as_slice(),
            &[("queued.max.messages.kbytes", &queue)],
        ]
        .concat();
        let consumer = params.checked(params.broker.consumer(&settings))?;
        let mut starts = BTreeMap::new();
        for (number, partition) in &partitions {
            starts.insert(*number, partition.start);
        }
        params.checked(assign_partitions(&params.topic, &consumer, &starts))?;
        Ok(PartitionConsumer {
            consumer,
            watch: LostClientWatch::start(),
            partitions,
            records,
            arrow: ArrowDecoder::new(columns.clone()),
            is_idle: false,
            has_just_stopped: None,
        })
    }

    /// Returns whether there are records that have been read and not returned.
    pub fn has_gathered(&self) -> bool {
        self.records
            .as_ref()
            .is_some_and(|records| !records.is_empty())
    }

    /// The records that have been read and not returned, if there are any.
    pub fn flush(&mut self) -> Option<Batch> {
        self.records.as_mut().and_then(MessageRecords::flush)
    }

    /// # Errors
    ///
    /// If reading the topic is not allowed, or its messages have untrusted timestamps.
    pub fn next_event(
        &mut self,
        params: &KafkaSourceParams,
        until: Option<&Positions>,
        timeout: Duration,
    ) -> Result<ReadOutcome, SourceError> {
        params.checked(self.pause_and_resume(&params.topic, until))?;
        let deadline = Instant::now() + timeout;
        loop {
            params.checked(self.pass_lost(params))?;
            let Some(found) = self.poll_once(params, until, deadline)? else {
                continue;
            };
            if matches!(found, ReadOutcome::Event(SourceEvent::Stuck { .. })) {
                params.checked(self.pause_and_resume(&params.topic, until))?;
            }
            return Ok(found);
        }
    }

    /// Polls the client once; `None` where nothing is to be returned yet.
    fn poll_once(
        &mut self,
        params: &KafkaSourceParams,
        until: Option<&Positions>,
        deadline: Instant,
    ) -> Result<Option<ReadOutcome>, SourceError> {
        self.has_just_stopped = None;
        // What was gathered waits for no more than is there already.
        let wait = if self.has_gathered() {
            Duration::ZERO
        } else {
            deadline.saturating_duration_since(Instant::now())
        };
        let polled = self.consumer.poll(wait);
        self.is_idle = polled.is_none();
        let message = match polled {
            Some(Ok(message)) => message,
            Some(Err(error)) if is_unreadable(&error) => {
                return Ok(Some(ReadOutcome::Unreadable(error)));
            }
            Some(Err(error)) => return Ok(interpret_error(&error, params)?.map(ReadOutcome::Event)),
            None => {
                let records = &mut self.records;
                let event = if let Some(batch) = records.as_mut().and_then(MessageRecords::flush) {
                    SourceEvent::Batch(batch)
                } else if self
                    .watch
                    .check_lost(&params.broker, &self.consumer, &params.topic)
                {
                    lost_client_event(&params.topic)
                } else {
                    let mut partitions = self.partitions.values();
                    let stuck = partitions.find_map(PartitionProgress::stuck_event);
                    stuck.unwrap_or(SourceEvent::Idle)
                };
                return Ok(Some(ReadOutcome::Event(event)));
            }
        };
        self.watch.note_message();
        let number = message.partition();
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(None);
        };
        let records = &mut self.records;
        let mut event =
            partition.take_message(&message, params, &mut self.arrow, records.as_mut())?;
        if partition.has_stopped() {
            self.has_just_stopped = Some(number);
        }
        // No batch reaches beyond the end of a window.
        if event.is_none()
            && let Some(records) = records
            && until
                .and_then(|until| until.0.get(&number))
                .is_some_and(|end| partition.next >= *end)
        {
            event = records.flush().map(SourceEvent::Batch);
        }
        Ok(event.map(ReadOutcome::Event))
    }

    /// Seeks past what the configuration gives up as lost, where a partition has come to it.
    fn pass_lost(&mut self, params: &KafkaSourceParams) -> Result<(), KafkaError> {
        for (number, partition) in &mut self.partitions {
            let Some(to) = params.lost_until(*number, partition.next) else {
                continue;
            };
            // Nothing can be read from behind the end.
            let (_, end) =
                self.consumer
                    .fetch_watermarks(&params.topic, *number, REQUEST_TIMEOUT)?;
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
        let mut offsets = BTreeMap::new();
        for (number, partition) in &self.partitions {
            if !partition.is_paused {
                offsets.insert(*number, partition.next);
            }
        }
        offsets
    }

    /// The partition that has just stopped at a broken message, if one has.
    pub fn just_stopped(&self) -> Option<JustStopped> {
        let stopped = self.has_just_stopped?;
        let stop = self.partitions.get(&stopped)?.stuck.as_ref()?;
        let mut going_on = BTreeMap::new();
        for (number, partition) in &self.partitions {
            if *number == stopped || !partition.has_stopped() {
                going_on.insert(*number, partition.next_offset());
            }
        }
        Some(JustStopped {
            partition: stopped,
            offset: stop.offset,
            going_on,
        })
    }

    /// Stops reading a partition at `offset`, for good.
    pub fn stop(&mut self, partition: i32, offset: i64, why: RedactedReason) {
        if let Some(partition) = self.partitions.get_mut(&partition) {
            partition.stuck = Some(PartitionStop { offset, why });
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
        let mut positions: BTreeMap<i32, i64> = BTreeMap::new();
        for (number, partition) in &self.partitions {
            positions.insert(*number, partition.next);
        }
        for at in self.consumer.position()?.elements() {
            if let Some(offset) = known_offset(at.offset())
                && let Some(position) = positions.get_mut(&at.partition())
            {
                *position = offset.max(*position);
            }
        }
        for (number, partition) in &self.partitions {
            if let Some(stop) = &partition.stuck {
                positions.insert(*number, stop.offset);
            }
        }
        Ok(Positions(positions))
    }
}

impl PartitionProgress {
    /// Begins at the offset `start` with messages of `since`.
    pub fn new(start: i64, since: Timestamp) -> Self {
        PartitionProgress {
            start,
            since,
            next: start,
            is_paused: false,
            stuck: None,
        }
    }

    /// This partition for a new client, which begins behind everything that was returned.
    pub fn again(&self) -> Self {
        PartitionProgress::new(self.next_offset(), self.since)
    }

    /// The offset before which everything was returned.
    pub fn next_offset(&self) -> i64 {
        self.stuck.as_ref().map_or(self.next, |stop| stop.offset)
    }

    /// Returns whether it has stopped at a broken message.
    pub fn has_stopped(&self) -> bool {
        self.stuck.is_some()
    }

    fn take_message(
        &mut self,
        message: &BorrowedMessage<'_>,
        params: &KafkaSourceParams,
        arrow: &mut ArrowDecoder,
        records: Option<&mut MessageRecords>,
    ) -> Result<Option<SourceEvent>, SourceError> {
        let number = message.partition();
        let offset = message.offset();
        if self.stuck.is_some() {
            return Ok(None);
        }
        if offset < self.next {
            let why = format!("partition {number} went back");
            let in_full = format!("{why} to offset {offset} from {}", self.next);
            return Ok(Some(SourceEvent::Reset {
                why: RedactedReason::new(why, in_full),
            }));
        }
        self.next = offset + 1;
        // What is lost is passed, but not in what was fetched already.
        if params.passed_from(number, offset) > offset {
            return Ok(None);
        }
        let time = match message.timestamp() {
            rdkafka::Timestamp::LogAppendTime(millis) => Some(timestamp_of_millis(millis)),
            rdkafka::Timestamp::CreateTime(millis) if params.trust_producer_time => {
                Some(timestamp_of_millis(millis))
            }
            // As the look-up of where to begin passes it, where any message is late enough for one.
            rdkafka::Timestamp::CreateTime(millis) if timestamp_of_millis(millis) < self.since => {
                return Ok(None);
            }
            rdkafka::Timestamp::CreateTime(_) => {
                return Err(stamped_by_producer(params, number, offset));
            }
            rdkafka::Timestamp::NotAvailable => None,
        };
        if let Some(records) = records {
            let before = records.take(number, offset, time, message.payload());
            return Ok(before.map(SourceEvent::Batch));
        }
        let batch = stamped_payload(message, time).and_then(|payload| {
            arrow
                .decode_message(payload, number, offset, time)
                .map_err(|broken| broken.to_string())
        });
        match batch {
            Ok(batch) => Ok(Some(SourceEvent::Batch(batch))),
            Err(why) if params.on_bad_message == BadMessageRule::Skip => {
                let words = format!(
                    "a message of partition {number} is broken: {}",
                    without_numbers(&why)
                );
                let in_full = format!(
                    "the message at offset {offset} of partition {number} is broken: {why}"
                );
                Ok(Some(SourceEvent::Skipped {
                    why: RedactedReason::new(words, in_full),
                }))
            }
            Err(broken) => {
                let why = broken_message(&params.topic, number, offset, &broken);
                self.stuck = Some(PartitionStop { offset, why });
                Ok(self.stuck_event())
            }
        }
    }

    fn stuck_event(&self) -> Option<SourceEvent> {
        let stop = self.stuck.as_ref()?;
        Some(SourceEvent::Stuck {
            why: stop.why.clone(),
        })
    }
}

/// The time that Kafka writes as `millis` since 1970.
pub(super) fn timestamp_of_millis(millis: i64) -> Timestamp {
    Timestamp::from_micros(millis.saturating_mul(1000))
}

/// The payload of a message that is to be decoded as a whole.
///
/// # Errors
///
/// If it has none, or no timestamp.
pub(super) fn stamped_payload(
    message: &impl Message,
    time: Option<Timestamp>,
) -> Result<&[u8], String> {
    if time.is_none() {
        return Err("it has no timestamp".to_owned());
    }
    message.payload().ok_or_else(|| "it is empty".to_owned())
}

fn broken_message(topic: &str, partition: i32, offset: i64, broken: &str) -> RedactedReason {
    let words = format!(
        "a message of partition {partition} of topic '{topic}' is broken: {}; to continue without it, add it to 'skip' ({HOW})",
        without_numbers(broken)
    );
    let in_full = format!(
        "the message at offset {offset} of partition {partition} of topic '{topic}' is broken: {broken}; to \
         continue without it, add {{ partition = {partition}, offset = {offset} }} to 'skip'"
    );
    RedactedReason::new(words, in_full)
}

/// Reading starts again: a client that began where the lost one stood could not tell whether the log had been cut there meanwhile.
fn lost_client_event(topic: &str) -> SourceEvent {
    SourceEvent::Reset {
        why: format!("a client of topic '{topic}' has lost the brokers, which answer others")
            .into(),
    }
}

/// Why reading ends at such a message: the topic may have been set back since it was opened.
pub(super) fn stamped_by_producer(
    params: &KafkaSourceParams,
    partition: i32,
    offset: i64,
) -> SourceError {
    let now = topic::describe_topic(&params.broker, &params.topic)
        .ok()
        .and_then(|topic| check_topic(params, &topic).err());
    now.unwrap_or_else(|| SourceError::OlderStamp {
        topic: params.topic.clone(),
        partition,
        offset,
    })
}

/// Returns whether `error` means that a batch was fetched and cannot be unpacked.
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
fn interpret_error(
    error: &KafkaError,
    params: &KafkaSourceParams,
) -> Result<Option<SourceEvent>, SourceError> {
    let code = match error {
        KafkaError::MessageConsumption(code) => code,
        KafkaError::MessageConsumptionFatal(_) => {
            return Ok(Some(SourceEvent::Reset {
                why: format!("the Kafka client has failed: {error}").into(),
            }));
        }
        _ => return Ok(None),
    };
    match code {
        RDKafkaErrorCode::AutoOffsetReset
        | RDKafkaErrorCode::OffsetOutOfRange
        | RDKafkaErrorCode::LogTruncation => Ok(Some(SourceEvent::Reset {
            why: format!("messages of topic '{}' were missed: {error}", params.topic).into(),
        })),
        RDKafkaErrorCode::TopicAuthorizationFailed => {
            Err(SourceError::Kafka(crate::ClusterError::NoRight {
                topic: params.topic.clone(),
                servers: params.broker.servers.clone(),
                right: TopicRight::Read,
            }))
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
    use crate::source::record::TopicFormat;

    fn params(broker: Broker) -> KafkaSourceParams {
        KafkaSourceParams {
            broker,
            topic: "in".to_owned(),
            clock: String::new(),
            clock_slack: Duration::ZERO,
            readers: None,
            trust_producer_time: false,
            format: TopicFormat::Arrow,
            on_bad_message: BadMessageRule::Stop,
            skip: BTreeSet::new(),
            lost: vec![],
        }
    }

    #[test]
    fn reading_starts_again_where_the_client_is_lost_and_others_are_answered() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("in", 1, 1).unwrap();
        let params = params(Broker::mock_cluster(cluster.bootstrap_servers()));
        let partitions = [(0, PartitionProgress::new(0, Timestamp::EARLIEST))].into();
        let mut reader =
            PartitionConsumer::start(&params, &Columns::default(), 1, partitions).unwrap();
        reader.consumer = Broker::mock_cluster("127.0.0.1:1")
            .consumer(&SETTINGS)
            .unwrap();
        let begun = Instant::now();
        while !matches!(
            reader
                .next_event(&params, None, Duration::from_millis(100))
                .unwrap(),
            ReadOutcome::Event(SourceEvent::Reset { .. })
        ) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing but waiting"
            );
        }
    }

    #[test]
    fn a_right_that_was_taken_away_is_named() {
        let params = params(Broker::without_security("a:1"));
        let error = KafkaError::MessageConsumption(RDKafkaErrorCode::TopicAuthorizationFailed);
        let told = interpret_error(&error, &params).unwrap_err();
        assert!(
            !told.is_transient()
                && told
                    .to_string()
                    .contains("does not give this user the right Read on topic 'in'")
        );
    }
}
