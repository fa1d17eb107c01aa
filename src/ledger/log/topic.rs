//! The topic of a ledger log.

use std::path::PathBuf;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::error::Error;
use crate::kafka::broker::REQUEST_TIMEOUT;
use crate::kafka::producer::{Producer, Record};
use crate::kafka::topic::{self, Topic};
use crate::kafka::{self, Broker, ErrorContext};
use crate::ledger::witness::kafka::SETTINGS;

const PARTITION: i32 = 0;
/// The most bytes of a record, where the topic takes more.
const LARGEST: usize = 1_000_000;
/// What a batch of one record has around it.
const BATCH: usize = 512;

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    /// The lowest allowed `min.insync.replicas` of the topic.
    pub min_insync_replicas: u32,
    pub key_file: PathBuf,
}

impl Params {
    /// That everyone can read the key. Group access is fine, because Kubernetes mounts secrets that way.
    pub fn warning(&self) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let path = self.key_file.display();
        let is_open = std::fs::metadata(&self.key_file).is_ok_and(|about| about.mode() & 0o004 != 0);
        is_open.then(|| {
            format!("every user of this machine can read the key of the ledger log in {path}: chmod o= {path}")
        })
    }
}

/// Whoever takes the records of a log.
pub trait Reader {
    /// What follows is the first record that the log has; forget what was taken before.
    fn begin(&mut self);

    fn take(&mut self, record: &[u8]);
}

/// A place that records are appended to and read from.
pub trait Log: Send {
    /// What it is called, for messages.
    fn name(&self) -> &str;

    /// The most bytes of a record.
    fn largest(&self) -> usize;

    /// Passes on what was added since the last call; everything on the first one, and when it is not the log that it was.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or has become another one meanwhile: the next call begins at its beginning.
    fn read(&mut self, reader: &mut dyn Reader) -> Result<(), Error>;

    /// Has the next [`read`](Self::read) begin at the beginning.
    fn rewind(&mut self);

    /// Appends records. Only reading shows which of them are there, after `Ok` as well as after a transient error.
    ///
    /// # Errors
    ///
    /// If some may not have been written.
    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), Error>;
}

/// A topic, read by an assigned consumer.
pub struct KafkaLog {
    params: Params,
    consumer: BaseConsumer<ErrorContext>,
    /// Asks about the topic on a connection of its own: on that of the consumer, requests wait for new records.
    inspector: BaseConsumer<ErrorContext>,
    producer: Producer,
    largest: usize,
    /// The id of the topic that is read; a topic of the same name that was made anew has another.
    id: String,
    /// The next offset to read; `None` before the first.
    next: Option<i64>,
}

impl KafkaLog {
    /// Checks the settings of the topic.
    ///
    /// # Errors
    ///
    /// If the topic is missing, cannot be a log, or cannot be reached.
    pub fn open(params: &Params) -> Result<Self, Error> {
        let found = topic::describe(&params.broker, &params.topic).map_err(|error| explain(params, error))?;
        check(params, &found)?;
        let failed = |error| explain(params, params.broker.failed(&params.topic, &error));
        let settings = [
            ("group.id", "bernstream-ledger-log"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "error"),
            ("isolation.level", "read_uncommitted"),
            ("fetch.wait.max.ms", "100"),
        ];
        let consumer = params.broker.consumer(&settings).map_err(failed)?;
        let inspector = params.broker.consumer(&[]).map_err(failed)?;
        let limit = found.settings.get("max.message.bytes").and_then(|limit| limit.parse().ok());
        let largest = usize::clamp(limit.unwrap_or(LARGEST), 2 * BATCH, LARGEST);
        let producer = Producer::with_batches(params.broker.clone(), params.topic.clone(), largest);
        let (params, largest) = (params.clone(), largest - BATCH);
        Ok(KafkaLog { params, consumer, inspector, producer, largest, id: found.id, next: None })
    }

    /// Creates the topic with the settings of a log.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &Params) -> Result<(), Error> {
        let replicas = params.min_insync_replicas.to_string();
        // One replica more than must be in sync, so that one broker may be down.
        let least = i32::try_from(params.min_insync_replicas).unwrap_or(i32::MAX);
        let replication = if least > 1 { least.saturating_add(1) } else { 1 };
        let settings = [SETTINGS.as_slice(), &[("min.insync.replicas", &replicas)]].concat();
        let made = topic::create(&params.broker, &params.topic, 1, replication, &settings);
        made.map_err(|error| explain(params, error))
    }

    fn failed(&self, error: &KafkaError) -> Error {
        explain(&self.params, self.params.broker.failed(&self.params.topic, error))
    }

    fn anew(&mut self) -> Error {
        self.next = None;
        Error::Anew { name: self.params.topic.clone() }
    }

    fn id(&self) -> Result<String, Error> {
        let Params { broker, topic, .. } = &self.params;
        let found = topic::id_and_partitions(broker, self.inspector.client(), topic);
        let (id, partitions) = found.map_err(|error| explain(&self.params, error))?;
        one_partition(&self.params, partitions)?;
        Ok(id)
    }

    fn assign(&self, from: i64) -> Result<(), Error> {
        let failed = |error| self.failed(&error);
        let mut start = TopicPartitionList::new();
        start.add_partition_offset(&self.params.topic, PARTITION, Offset::Offset(from)).map_err(failed)?;
        self.consumer.assign(&start).map_err(failed)
    }
}

impl Log for KafkaLog {
    fn name(&self) -> &str {
        &self.params.topic
    }

    fn largest(&self) -> usize {
        self.largest
    }

    fn read(&mut self, reader: &mut dyn Reader) -> Result<(), Error> {
        let watermarks = self.inspector.fetch_watermarks(&self.params.topic, PARTITION, REQUEST_TIMEOUT);
        let (low, high) = watermarks.map_err(|error| self.failed(&error))?;
        if self.next.is_some_and(|next| next > high || next < low) {
            return Err(self.anew());
        }
        let mut next = match self.next {
            Some(next) => next,
            None => {
                self.id = self.id()?;
                reader.begin();
                self.assign(low)?;
                low
            }
        };
        // Until everything was read, the next call begins anew.
        self.next = None;
        while next < high {
            match self.consumer.poll(REQUEST_TIMEOUT) {
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    reader.take(message.payload().unwrap_or_default());
                }
                Some(Err(error)) => {
                    use RDKafkaErrorCode::{AutoOffsetReset, OffsetOutOfRange};
                    return Err(match error.rdkafka_error_code() {
                        Some(AutoOffsetReset | OffsetOutOfRange) => self.anew(),
                        _ => self.failed(&error),
                    });
                }
                None => {
                    let why = format!("offset {next} did not come");
                    return Err(Error::Unavailable { name: self.params.topic.clone(), why });
                }
            }
        }
        // Asked after reading: what was read is of this topic.
        if self.id()? != self.id {
            return Err(self.anew());
        }
        self.next = Some(next);
        Ok(())
    }

    fn rewind(&mut self) {
        self.next = None;
    }

    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), Error> {
        let record = |payload| Record { partition: Some(PARTITION), payload, ..Record::default() };
        let sent = self.producer.send_all(records.iter().map(|payload| record(payload.as_slice())));
        sent.map_err(|undelivered| self.failed(&undelivered.error))
    }
}

fn one_partition(params: &Params, partitions: usize) -> Result<(), Error> {
    match partitions {
        1 => Ok(()),
        partitions => Err(Error::Partitions { name: params.topic.clone(), partitions }),
    }
}

/// Checks that the topic can be a log.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a log.
pub fn check(params: &Params, topic: &Topic) -> Result<(), Error> {
    one_partition(params, topic.partitions.len())?;
    if params.broker.is_mock {
        return Ok(());
    }
    let found = |setting: &str| topic.settings.get(setting).cloned().unwrap_or_default();
    let wrong = |setting: &str, needed: String| {
        let (name, found) = (params.topic.clone(), found(setting));
        Err(Error::Setting { name, setting: setting.into(), found, needed })
    };
    if let Some((setting, needed)) = SETTINGS.into_iter().find(|(setting, needed)| found(setting) != *needed) {
        return wrong(setting, needed.into());
    }
    let least = params.min_insync_replicas;
    match found("min.insync.replicas").parse::<u32>() {
        Ok(replicas) if replicas >= least => Ok(()),
        _ => wrong("min.insync.replicas", format!("at least {least}")),
    }
}

fn explain(params: &Params, error: kafka::Error) -> Error {
    let name = params.topic.clone();
    match error {
        kafka::Error::NoTopic { .. } => Error::Missing { name },
        error if error.is_transient() => Error::Unavailable { name, why: error.to_string() },
        error => Error::Refused { name, why: error.to_string() },
    }
}
