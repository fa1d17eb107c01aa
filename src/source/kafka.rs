//! Records from the partitions of a Kafka topic.
//!
//! Partitions are assigned by hand and nothing is committed to the broker: where to read from follows from the ledger.
//! Offsets only say how far to read; which window a record belongs to depends on the record alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::clock::Timestamp;
use crate::kafka::Broker;
use crate::kafka::ErrorContext;
use crate::kafka::topic::{self, Topic};
use crate::source::decode::decode;
use crate::source::watch::{Survey, Watch};
use crate::source::{Columns, Error, Event, Positions, Source};

/// What to read and how to judge it.
#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    /// More than the clocks and replicas of the brokers lag: end offsets are taken this long after a cutoff.
    pub clock_slack: Duration,
    /// Accept `CreateTime` topics: producers then decide what belongs to a window.
    pub trust_producer_time: bool,
    pub on_bad_message: OnBadMessage,
    /// Broken messages that the operator has accepted to lose: (partition, offset).
    pub skip: BTreeSet<(i32, i64)>,
    /// Input that the broker deleted unread and that the operator has accepted to lose.
    pub lost: Vec<Lost>,
}

/// What happens at a message that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBadMessage {
    Stop,
    Skip,
}

/// Offsets `from..to` of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub partition: i32,
    pub from: i64,
    pub to: i64,
}

/// A topic that is read from.
pub struct Kafka {
    params: Params,
    columns: Columns,
    topic: Topic,
    stamped_by_broker: bool,
    clock: fn() -> Timestamp,
    survey: Survey,
    watch: Watch,
    reading: Option<Reading>,
}

impl Kafka {
    /// Connects, and refuses a topic whose records could be bent or vanish. Reading starts with [`Source::rewind`].
    pub fn open(params: Params, columns: Columns, clock: fn() -> Timestamp) -> Result<Self, Error> {
        let topic = topic::describe(&params.broker, &params.topic)?;
        let setting = |name| topic.settings.get(name).map_or("", String::as_str);
        let stamped_by_broker = setting("message.timestamp.type") == "LogAppendTime";
        if !stamped_by_broker && !params.trust_producer_time {
            return Err(Error::ProducerTime { topic: params.topic });
        }
        if setting("cleanup.policy").contains("compact") {
            return Err(Error::Compacted { topic: params.topic });
        }
        let watcher = Survey::new(&params.broker, &params.topic)?;
        let watch = Watch::start(watcher, &topic, params.clock_slack, stamped_by_broker, clock)?;
        let survey = Survey::new(&params.broker, &params.topic)?;
        Ok(Kafka { params, columns, topic, stamped_by_broker, clock, survey, watch, reading: None })
    }

    /// The topic as it was when it was opened.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Where to start in a partition that keeps `low..high`, given the first message with a timestamp of at least `since`.
    fn start(
        &self,
        partition: i32,
        (low, high): (i64, i64),
        since: Timestamp,
        first: Option<i64>,
    ) -> Result<i64, Error> {
        // Stamped by the broker, nothing that is there or was deleted can be from later than its clock.
        let is_ahead = self.stamped_by_broker && since > (self.clock)().plus(self.params.clock_slack);
        // A message that is too old to matter is still kept: nothing that matters was deleted before it.
        let is_whole = match first {
            Some(first) => first > low,
            None => low < high || is_ahead,
        };
        let from = self.accepted(partition);
        if low == 0 || is_whole || low <= from {
            return Ok(first.unwrap_or(low).max(low));
        }
        Err(Error::Deleted { topic: self.params.topic.clone(), partition, from, to: low })
    }

    /// The offset up to which the operator has accepted the loss of everything.
    fn accepted(&self, partition: i32) -> i64 {
        let mut lost: Vec<_> = self.params.lost.iter().filter(|lost| lost.partition == partition).collect();
        lost.sort_unstable_by_key(|lost| lost.from);
        lost.iter().fold(0, |to, lost| if lost.from <= to { to.max(lost.to) } else { to })
    }

    fn recreated(&self, why: String) -> Error {
        Error::Recreated { topic: self.params.topic.clone(), why }
    }
}

impl Source for Kafka {
    fn rewind(&mut self, since: Timestamp, recorded: &Positions) -> Result<(), Error> {
        // A new client each time: nothing that the old one has fetched can turn up again.
        if let Some(Reading { consumer, .. }) = self.reading.take() {
            // Closing may wait for the broker.
            std::thread::spawn(move || drop(consumer));
        }
        let numbers = self.survey.partitions(&self.topic.id)?;
        if let Some(gone) = recorded.0.keys().find(|partition| !numbers.contains(partition)) {
            return Err(self.recreated(format!("partition {gone} is gone")));
        }
        let first = self.survey.first_since(since, &numbers)?;
        let mut partitions = BTreeMap::new();
        for &partition in &numbers {
            let (low, high) = self.survey.watermarks(partition)?;
            if let Some(end) = recorded.0.get(&partition).filter(|end| **end > high) {
                return Err(self.recreated(format!("partition {partition} ends at {high}, and was read up to {end}")));
            }
            let start = self.start(partition, (low, high), since, first.get(&partition).copied().flatten())?;
            partitions.insert(partition, Partition { start, next: start, is_held: false, stuck: None });
        }
        self.reading = Some(Reading::start(&self.params, partitions)?);
        self.watch.reads(numbers);
        Ok(())
    }

    fn next(&mut self, until: Option<&Positions>, patience: Duration) -> Result<Event, Error> {
        if let Some(why) = self.watch.alarm()? {
            return Ok(Event::Reset { why });
        }
        match &mut self.reading {
            Some(reading) => reading.next(&self.params, &self.columns, until, patience),
            None => Ok(Event::Reset { why: "reading has not started".to_owned() }),
        }
    }

    fn ends(&mut self, cutoff: Timestamp) -> Result<Option<Positions>, Error> {
        Ok(self.watch.ends(cutoff))
    }

    fn reached(&self, ends: &Positions) -> Result<bool, Error> {
        let Some(reading) = &self.reading else { return Ok(false) };
        let is_past =
            |(partition, end): (&i32, &i64)| reading.partitions.get(partition).is_some_and(|p| p.at() >= *end);
        // The client is asked only where nothing comes any more: what is left may be marks of transactions.
        if !reading.is_idle || ends.0.iter().all(is_past) {
            return Ok(ends.0.iter().all(is_past));
        }
        let positions = reading.positions().map_err(|e| self.params.broker.failed(&self.params.topic, &e))?;
        Ok(ends.0.iter().all(|(partition, end)| positions.0.get(partition).is_some_and(|at| at >= end)))
    }

    fn is_connected(&self) -> bool {
        self.watch.connected()
    }
}

/// A consumer of all partitions, from a start.
struct Reading {
    consumer: BaseConsumer<ErrorContext>,
    partitions: BTreeMap<i32, Partition>,
    /// Nothing came when it was last asked for.
    is_idle: bool,
}

struct Partition {
    start: i64,
    /// The offset after the last message.
    next: i64,
    /// Whether it is paused.
    is_held: bool,
    /// The broken message at which reading has stopped, and why.
    stuck: Option<(i64, String)>,
}

impl Reading {
    fn start(params: &Params, partitions: BTreeMap<i32, Partition>) -> Result<Self, Error> {
        let failed = |e| params.broker.failed(&params.topic, &e);
        let settings = [
            // A consumer needs a group to be given partitions by hand, but it neither joins it nor commits to it.
            ("group.id", "bernstream"),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "error"),
            ("isolation.level", "read_committed"),
            ("check.crcs", "true"),
            ("fetch.wait.max.ms", "100"),
            // The default waits a second whenever the queue is full.
            ("fetch.queue.backoff.ms", "10"),
        ];
        let consumer = params.broker.consumer(&settings).map_err(failed)?;
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for (number, partition) in &partitions {
            list.add_partition_offset(&params.topic, *number, Offset::Offset(partition.start)).map_err(failed)?;
        }
        consumer.assign(&list).map_err(failed)?;
        Ok(Reading { consumer, partitions, is_idle: false })
    }

    fn next(
        &mut self,
        params: &Params,
        columns: &Columns,
        until: Option<&Positions>,
        patience: Duration,
    ) -> Result<Event, Error> {
        self.hold(&params.topic, until).map_err(|e| params.broker.failed(&params.topic, &e))?;
        let deadline = Instant::now() + patience;
        loop {
            let Reading { consumer, partitions, is_idle } = self;
            let polled = consumer.poll(deadline.saturating_duration_since(Instant::now()));
            *is_idle = polled.is_none();
            let event = match polled {
                None => Some(partitions.values().find_map(Partition::is_stuck).unwrap_or(Event::Idle)),
                Some(Ok(message)) => match partitions.get_mut(&message.partition()) {
                    Some(partition) => partition.take(&message, params, columns)?,
                    None => None,
                },
                Some(Err(error)) => interpret(&error, params)?,
            };
            match event {
                Some(event) => {
                    if matches!(event, Event::Stuck { .. }) {
                        self.hold(&params.topic, until).map_err(|e| params.broker.failed(&params.topic, &e))?;
                    }
                    return Ok(event);
                }
                None => continue,
            }
        }
    }

    /// Pauses the partitions that have been read far enough, or not at all any more, and resumes the others.
    fn hold(&mut self, topic: &str, until: Option<&Positions>) -> Result<(), KafkaError> {
        let (mut pause, mut resume) = (TopicPartitionList::new(), TopicPartitionList::new());
        for (number, partition) in &mut self.partitions {
            let end = until.and_then(|until| until.0.get(number));
            let hold = partition.stuck.is_some() || end.is_some_and(|end| partition.next >= *end);
            if hold != partition.is_held {
                partition.is_held = hold;
                let list = if hold { &mut pause } else { &mut resume };
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

    /// Where reading is. The client's own position passes the marks of transactions, which are never handed out.
    fn positions(&self) -> Result<Positions, KafkaError> {
        let mut positions: BTreeMap<i32, i64> = self.partitions.iter().map(|(number, p)| (*number, p.next)).collect();
        for at in self.consumer.position()?.elements() {
            if let (Offset::Offset(offset), Some(position)) = (at.offset(), positions.get_mut(&at.partition())) {
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
    /// The offset before which everything was handed out.
    fn at(&self) -> i64 {
        self.stuck.as_ref().map_or(self.next, |(offset, _)| *offset)
    }

    fn take(
        &mut self,
        message: &BorrowedMessage<'_>,
        params: &Params,
        columns: &Columns,
    ) -> Result<Option<Event>, Error> {
        let (number, offset) = (message.partition(), message.offset());
        if self.stuck.is_some() {
            return Ok(None);
        }
        if offset < self.next {
            let why = format!("partition {number} went back to offset {offset} from {}", self.next);
            return Ok(Some(Event::Reset { why }));
        }
        self.next = offset + 1;
        let time = match message.timestamp() {
            rdkafka::Timestamp::LogAppendTime(millis) => Some(millis),
            rdkafka::Timestamp::CreateTime(millis) if params.trust_producer_time => Some(millis),
            rdkafka::Timestamp::CreateTime(_) => return Err(Error::ProducerTime { topic: params.topic.clone() }),
            rdkafka::Timestamp::NotAvailable => None,
        };
        if params.skip.contains(&(number, offset)) {
            return Ok(None);
        }
        let batch = match (time, message.payload()) {
            (None, _) => Err("it has no timestamp".to_owned()),
            (_, None) => Err("it is empty".to_owned()),
            (Some(millis), Some(payload)) => {
                let time = Timestamp::from_micros(millis.saturating_mul(1000));
                decode(payload, columns, number, offset, Some(time)).map_err(|broken| broken.to_string())
            }
        };
        match batch {
            Ok(batch) => Ok(Some(Event::Batch(batch))),
            Err(why) if params.on_bad_message == OnBadMessage::Skip => {
                let why = format!("the message at offset {offset} of partition {number} is broken: {why}");
                Ok(Some(Event::Skipped { why }))
            }
            Err(why) => {
                let topic = &params.topic;
                let why = format!(
                    "the message at offset {offset} of partition {number} of topic '{topic}' is broken: {why}; to go on \
                     without it, add {{ partition = {number}, offset = {offset} }} to 'skip'"
                );
                self.stuck = Some((offset, why));
                Ok(self.is_stuck())
            }
        }
    }

    fn is_stuck(&self) -> Option<Event> {
        self.stuck.as_ref().map(|(_, why)| Event::Stuck { why: why.clone() })
    }
}

/// What an error of the client means: most pass by themselves, some mean that messages were missed.
fn interpret(error: &KafkaError, params: &Params) -> Result<Option<Event>, Error> {
    let code = match error {
        KafkaError::MessageConsumption(code) => code,
        KafkaError::MessageConsumptionFatal(_) => {
            return Ok(Some(Event::Reset { why: format!("the Kafka client has failed: {error}") }));
        }
        _ => return Ok(None),
    };
    match code {
        RDKafkaErrorCode::AutoOffsetReset
        | RDKafkaErrorCode::OffsetOutOfRange
        | RDKafkaErrorCode::LogTruncation
        | RDKafkaErrorCode::InvalidMessage
        | RDKafkaErrorCode::BadMessage
        | RDKafkaErrorCode::BadCompression => {
            Ok(Some(Event::Reset { why: format!("messages of topic '{}' were missed: {error}", params.topic) }))
        }
        RDKafkaErrorCode::TopicAuthorizationFailed => Err(params.broker.failed(&params.topic, error).into()),
        _ => Ok(None),
    }
}
