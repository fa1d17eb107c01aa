//! The topic of a ledger log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;

use crate::broker;
use crate::broker::{REQUEST_TIMEOUT, close_client};
use crate::producer::{Producer, ProducerRecord};
use crate::topic;
use crate::topic::TopicMetadata;
use crate::{ErrorContext, MetadataClient, offsets, ordered};
use bernstream_ledger::log::error::LedgerLogError;
use bernstream_ledger::log::key::LogKey;
use bernstream_ledger::log::place::{Log, LogReader};
use bernstream_ledger::log::upkeep::LedgerLog;
use bernstream_ledger::sealing;

const PARTITION: i32 = 0;
/// The most bytes of a record, where the topic takes more.
const LARGEST: usize = 1_000_000;
/// Bytes that a batch of one record has around it.
const BATCH: usize = 512;
/// Time to wait for a record before it is asked whether there is one.
const WAIT: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct KafkaLogParams {
    /// The topic, which loses no record, as a witness.
    pub records: ordered::OrderedTopicParams,
    pub key_file: PathBuf,
}

impl KafkaLogParams {
    /// A warning where everyone can read the key.
    pub fn key_warning(&self) -> Option<String> {
        sealing::key_file_warning(&self.key_file, "the ledger log")
    }
}

/// A topic, read by an assigned consumer.
pub struct KafkaLog {
    records: ordered::OrderedTopicParams,
    /// Asks about the topic on a connection of its own: on that of the consumer, requests wait for new records.
    inspector: MetadataClient,
    producer: Producer,
    largest: usize,
    /// The id of the topic that is read; a topic of the same name that was made anew has another.
    id: String,
    /// `None` before the first record, and after a failure.
    reading: Option<LogPosition>,
}

/// Position to which a log was read.
struct LogPosition {
    /// Made anew wherever reading begins: a client may never find its brokers again.
    consumer: BaseConsumer<ErrorContext>,
    /// The next offset to read.
    next: i64,
    /// Longest time that it may wait for a record.
    patience: Duration,
}

impl KafkaLog {
    /// Checks the settings of the topic.
    ///
    /// # Errors
    ///
    /// If the topic is missing, cannot be a log, or cannot be reached.
    pub fn open(params: &KafkaLogParams) -> Result<Self, LedgerLogError> {
        let records = params.records.clone();
        let ordered::OrderedTopicParams { broker, topic, .. } = &params.records;
        let found = topic::describe_topic(broker, topic)
            .map_err(|error| LedgerLogError::from_fault(topic, error.into()))?;
        check_topic(params, &found)?;
        let inspector = MetadataClient::new(broker, topic)
            .map_err(|error| LedgerLogError::from_fault(topic, error.into()))?;
        let limit = found
            .settings
            .get("max.message.bytes")
            .and_then(|limit| limit.parse().ok());
        let largest = usize::clamp(limit.unwrap_or(LARGEST), 2 * BATCH, LARGEST);
        let producer = Producer::with_batches(broker.clone(), topic.clone(), largest);
        Ok(KafkaLog {
            records,
            inspector,
            producer,
            largest: largest - BATCH,
            id: found.id,
            reading: None,
        })
    }

    /// Creates the topic with the settings of a log.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &KafkaLogParams) -> Result<(), LedgerLogError> {
        let made = ordered::create_topic(&params.records, params.records.new_replicas());
        made.map_err(|fault| LedgerLogError::from_fault(&params.records.topic, fault))
    }

    fn failed(&self, error: &KafkaError) -> LedgerLogError {
        failed(&self.records, error)
    }

    /// Begins anew, because another topic is read than before.
    fn rewind_remade(&mut self) -> LedgerLogError {
        self.rewind();
        LedgerLogError::Anew {
            name: self.records.topic.clone(),
        }
    }

    /// The id that the topic has now.
    fn topic_id(&self) -> Result<String, LedgerLogError> {
        let id = ordered::topic_id(&self.records, &self.inspector);
        id.map_err(|fault| LedgerLogError::from_fault(&self.records.topic, fault))
    }

    /// Reads on to `end`.
    fn read_to(&mut self, end: i64, reader: &mut dyn LogReader) -> Result<(), LedgerLogError> {
        let Some(LogPosition {
            consumer,
            next,
            patience,
        }) = &mut self.reading
        else {
            return Ok(());
        };
        let records = &self.records;
        let topic = &records.topic;
        let mut asked = Instant::now();
        while *next < end {
            match records.broker.poll_message(consumer, WAIT) {
                Some(Ok(message)) => {
                    *next = message.offset() + 1;
                    *patience = broker::patience_after(asked.elapsed());
                    reader.take(message.offset(), message.payload().unwrap_or_default());
                    asked = Instant::now();
                }
                Some(Err(error)) => {
                    return Err(LedgerLogError::from_fault(topic, records.fault_of(&error)));
                }
                None => {
                    // The client passes over transaction markers.
                    let passed = offsets::passed_offset(topic, consumer)
                        .map_err(|error| failed(records, &error))?;
                    *next = passed.unwrap_or(*next).max(*next);
                    if *next < end && asked.elapsed() > *patience {
                        return Err(LedgerLogError::Unavailable {
                            name: topic.clone(),
                            why: ordered::NO_RECORD.to_owned(),
                        });
                    }
                }
            }
        }
        // Asked after reading: what was read is of this topic.
        if self.topic_id()? == self.id {
            Ok(())
        } else {
            Err(LedgerLogError::Anew {
                name: topic.clone(),
            })
        }
    }
}

impl Log for KafkaLog {
    fn name(&self) -> &str {
        &self.records.topic
    }

    fn largest(&self) -> usize {
        self.largest
    }

    fn read(&mut self, reader: &mut dyn LogReader) -> Result<(), LedgerLogError> {
        let topic = &self.records.topic;
        let watermarks = self
            .inspector
            .ask(|client, timeout| client.fetch_watermarks(topic, PARTITION, timeout));
        let (low, high) = watermarks.map_err(|error| self.failed(&error))?;
        if self
            .reading
            .as_ref()
            .is_some_and(|reading| reading.next > high || reading.next < low)
        {
            return Err(self.rewind_remade());
        }
        if self.reading.is_none() {
            self.id = self.topic_id()?;
            reader.begin();
            let consumer = self
                .records
                .consumer_from("bernstream-ledger-log", low)
                .map_err(|error| self.failed(&error))?;
            self.reading = Some(LogPosition {
                consumer,
                next: low,
                patience: REQUEST_TIMEOUT,
            });
        }
        let next = self.reading.as_ref().map_or(high, |reading| reading.next);
        reader.expect(u64::try_from(high.saturating_sub(next)).unwrap_or(0));
        // Until everything was read, the next call begins anew.
        self.read_to(high, reader).inspect_err(|_| self.rewind())
    }

    fn rewind(&mut self) {
        let reading = self.reading.take();
        close_client(reading);
    }

    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), LedgerLogError> {
        let records = records.iter().map(|payload| ProducerRecord {
            partition: Some(PARTITION),
            payload,
            ..ProducerRecord::default()
        });
        let sent = self.producer.send_all(records);
        sent.map_err(|undelivered| self.failed(&undelivered.error))
    }

    fn delete_before(&mut self, offset: i64) -> Result<(), LedgerLogError> {
        let broker = &self.records.broker;
        let name = &self.records.topic;
        // What was read is of the topic with this id, and offsets of another one say nothing.
        if self.topic_id()? != self.id {
            return Err(self.rewind_remade());
        }
        topic::delete_before(broker, name, &BTreeMap::from([(PARTITION, offset)]))
            .map_err(|error| LedgerLogError::from_fault(name, error.into()))
    }
}

fn failed(records: &ordered::OrderedTopicParams, error: &KafkaError) -> LedgerLogError {
    LedgerLogError::from_fault(
        &records.topic,
        records.broker.error_about(&records.topic, error).into(),
    )
}

/// Checks that the topic can be a log.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a log.
pub fn check_topic(params: &KafkaLogParams, topic: &TopicMetadata) -> Result<(), LedgerLogError> {
    ordered::check_topic(&params.records, topic)
        .map_err(|fault| LedgerLogError::from_fault(&params.records.topic, fault))
}

/// Reads the key, and checks the topic.
///
/// # Errors
///
/// If the key or the topic cannot be used, or the topic cannot be reached.
pub fn open_log(params: &KafkaLogParams) -> Result<LedgerLog, LedgerLogError> {
    let key = LogKey::load(&params.key_file)?;
    Ok(LedgerLog::new(Box::new(KafkaLog::open(params)?), key))
}
