//! A topic of one partition, whose records have one order for everyone and are never lost: read from an offset on, appended to,
//! and checked to be set up so.
//!
//! Brokers acknowledge a record before it is on their disks, unless the topic has `flush.messages=1`. Without that all of them lose the
//! newest records if all lose power at once, however many replicas there are.
//!
//! Everything is read, what open and aborted transactions have written too (`read_uncommitted`): so all readers see the same at all
//! times, whoever writes there in a transaction holds nobody up, and the program itself uses none.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message, Timestamp};

use super::broker::{Broker, REQUEST_TIMEOUT, close_client};
use super::check::{NeededTopic, TopicCheck, topic_setting};
use super::error::ClusterError;
use super::error_context::ErrorContext;
use super::metadata_client::MetadataClient;
use super::offsets::OffsetContents;
use super::producer::{Producer, ProducerRecord};
use super::right::TopicRight;
use super::topic::TopicMetadata;
use crate::broker;
use crate::offsets;
use crate::topic;
use bernstream_ledger::fault::TopicFault;

const PARTITION: i32 = 0;
/// Time to wait for a record before it is asked whether there is one.
const WAIT: Duration = Duration::from_millis(100);

/// The settings with which the topic never loses a record, as long as not all its brokers lose power at once, and with which a record that
/// a worker or its client sends again has another time.
pub const SETTINGS: [(&str, &str); 5] = [
    ("cleanup.policy", "delete"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
    ("message.timestamp.type", "LogAppendTime"),
];

const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// With it a record is on the disks of the in-sync replicas before it is acknowledged.
pub const FLUSH: (&str, &str) = ("flush.messages", "1");

/// Way in which brokers may lose power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerLoss {
    /// All at once. The topic needs [`FLUSH`].
    #[default]
    Together,
    /// Never all at once, as the operator says.
    Separately,
}

#[derive(Clone, Debug)]
pub struct OrderedTopicParams {
    pub broker: Broker,
    pub topic: String,
    /// The lowest allowed `min.insync.replicas` of the topic.
    pub min_insync_replicas: u32,
    pub power_loss: PowerLoss,
}

impl OrderedTopicParams {
    /// The settings that the topic must have besides `min.insync.replicas`.
    pub fn needed_settings(&self) -> Vec<(&'static str, &'static str)> {
        let flush = (self.power_loss == PowerLoss::Together).then_some(FLUSH);
        SETTINGS.into_iter().chain(flush).collect()
    }

    /// A client that reads the topic from `offset` on.
    pub(crate) fn consumer_from(
        &self,
        group: &str,
        offset: i64,
    ) -> Result<BaseConsumer<ErrorContext>, KafkaError> {
        let consumer = self.broker.consumer(&[
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "error"),
            ("isolation.level", "read_uncommitted"),
            ("fetch.wait.max.ms", "100"),
        ])?;
        offsets::assign_from(&self.topic, &consumer, offset)?;
        Ok(consumer)
    }

    /// The fault that an error of a client of the topic shows.
    pub(crate) fn fault_of(&self, error: &KafkaError) -> TopicFault {
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                TopicFault::Cut
            }
            _ => self.broker.error_about(&self.topic, error).into(),
        }
    }

    /// The topic as brokers are asked about it.
    pub fn needed_topic<'a>(&'a self, origin: &'a str) -> NeededTopic<'a> {
        NeededTopic {
            broker: &self.broker,
            name: &self.topic,
            rights: &[TopicRight::Read, TopicRight::Write],
            wishes: &[],
            origin,
            replicas: self.new_replicas(),
        }
    }

    /// The command that corrects the topic where the topic lacks `setting`.
    fn remedy(&self, setting: &str, value: &str) -> String {
        let command = format!(
            "kafka-configs {} --alter --entity-type topics --entity-name {} --add-config {setting}={value}",
            self.broker.for_kafka_commands(),
            self.topic
        );
        match setting {
            _ if setting == FLUSH.0 => {
                format!(
                    "{command}, or brokers_lose_power = \"separately\" in [output.kafka] if all brokers never lose it at once"
                )
            }
            MIN_INSYNC_REPLICAS => {
                format!("{command}, or witness_min_insync_replicas = 1 for a demonstration")
            }
            _ => command,
        }
    }

    /// Number of replicas of a new topic: one more than must be in sync, so that one broker may be down.
    pub fn new_replicas(&self) -> i32 {
        let least = i32::try_from(self.min_insync_replicas).unwrap_or(i32::MAX);
        if least > 1 {
            least.saturating_add(1)
        } else {
            1
        }
    }
}

/// A record, its offset, and when the broker has appended it, in milliseconds since 1970. What a producer stamped, before the topic was
/// set up as it must be, says nothing: it has the same time when it is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    pub offset: i64,
    pub written: Option<i64>,
    pub payload: Vec<u8>,
}

/// A topic without loss, read by an assigned consumer.
pub struct OrderedTopic {
    params: OrderedTopicParams,
    group: String,
    /// Reads from `next` on. None until something is read, and none after a failure: a client may never find its brokers again.
    consumer: Option<BaseConsumer<ErrorContext>>,
    /// Longest time that it may wait for a record.
    patience: Duration,
    /// Asks about the topic on a connection of its own: a broker answers the requests of one connection in order, and one that waits
    /// for new records would hold up the others.
    inspector: MetadataClient,
    producer: Producer,
    /// The next offset to read.
    next: i64,
    is_begun: bool,
    /// Offsets that are known to have transaction markers.
    markers: BTreeSet<i64>,
}

impl OrderedTopic {
    /// Checks the settings of the topic. Reading starts at offset 0.
    ///
    /// # Errors
    ///
    /// If the topic is missing, is not set up as it must be, or cannot be reached.
    pub fn open(params: &OrderedTopicParams, group: &str) -> Result<Self, TopicFault> {
        let topic = topic::describe_topic(&params.broker, &params.topic)?;
        check_topic(params, &topic)?;
        let inspector = MetadataClient::new(&params.broker, &params.topic)?;
        let producer = Producer::new(params.broker.clone(), params.topic.clone());
        Ok(OrderedTopic {
            params: params.clone(),
            group: group.to_owned(),
            consumer: None,
            patience: REQUEST_TIMEOUT,
            inspector,
            producer,
            next: 0,
            is_begun: false,
            markers: BTreeSet::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.params.topic
    }

    /// The next offset to read.
    pub fn next_offset(&self) -> i64 {
        self.next
    }

    /// Returns whether anything was read.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Reads from `offset` on.
    pub fn start_at(&mut self, offset: i64) {
        self.next = offset;
        self.is_begun = false;
        let old = self.consumer.take();
        close_client(old);
    }

    /// The end of the topic: the offset that its next record will have.
    ///
    /// # Errors
    ///
    /// If it cannot be asked for, or if records at its beginning are gone.
    pub fn end_offset(&self) -> Result<i64, TopicFault> {
        let topic = &self.params.topic;
        let watermarks = self
            .inspector
            .ask(|client, timeout| client.fetch_watermarks(topic, PARTITION, timeout));
        let (begin, end) = watermarks.map_err(|error| self.params.fault_of(&error))?;
        if begin != 0 {
            return Err(damaged_fault("its first records are gone"));
        }
        Ok(end)
    }

    /// The next record before `end`, which is where the topic ended; `None` once everything before it was read. It may come from
    /// behind `end`, if there are only transaction markers before that.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or if an offset has neither a record nor a transaction marker.
    pub fn read_record(&mut self, end: i64) -> Result<Option<StoredRecord>, TopicFault> {
        if self.next >= end {
            return Ok(None);
        }
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => {
                self.patience = REQUEST_TIMEOUT;
                self.params
                    .consumer_from(&self.group, self.next)
                    .map_err(|error| self.params.fault_of(&error))?
            }
        };
        self.is_begun = true;
        let begun = Instant::now();
        let read = self.read_with(&consumer, end);
        self.patience = broker::patience_after(begun.elapsed());
        match &read {
            Ok(_) => self.consumer = Some(consumer),
            Err(_) => close_client(consumer),
        }
        read
    }

    fn read_with(
        &mut self,
        consumer: &BaseConsumer<ErrorContext>,
        end: i64,
    ) -> Result<Option<StoredRecord>, TopicFault> {
        let deadline = Instant::now() + self.patience;
        loop {
            match self.params.broker.poll_message(consumer, WAIT) {
                Some(Ok(message)) => {
                    let stored = StoredRecord {
                        offset: message.offset(),
                        written: append_time(message.timestamp()),
                        payload: message.payload().unwrap_or_default().to_vec(),
                    };
                    if !self.has_markers_before(stored.offset)? {
                        return Err(unavailable_fault(NO_RECORD));
                    }
                    self.next = stored.offset + 1;
                    return Ok(Some(stored));
                }
                Some(Err(error)) => return Err(self.params.fault_of(&error)),
                // The client passes over markers, behind which nothing else may be.
                None => {
                    let passed = offsets::passed_offset(self.name(), consumer)
                        .map_err(|error| self.params.fault_of(&error))?;
                    if passed.is_some_and(|passed| passed >= end) && self.has_markers_before(end)? {
                        self.next = end;
                        return Ok(None);
                    }
                }
            }
            if Instant::now() > deadline {
                return Err(unavailable_fault(NO_RECORD));
            }
        }
    }

    /// Returns whether everything from the next offset up to `to` is transaction markers; false if there is a record after all.
    fn has_markers_before(&mut self, to: i64) -> Result<bool, TopicFault> {
        if to < self.next {
            return Err(damaged_fault("an offset came again"));
        }
        if (self.next..to).all(|offset| self.markers.contains(&offset)) {
            return Ok(true);
        }
        let found = offsets::look_at_offsets(&self.params.broker, self.name(), self.next, to)
            .map_err(|error| self.params.fault_of(&error))?;
        match found {
            OffsetContents::Markers => {
                self.markers.extend(self.next..to);
                Ok(true)
            }
            OffsetContents::Record => Ok(false),
            OffsetContents::Gone => Err(damaged_fault("records are gone from between others")),
            OffsetContents::Unanswered => {
                Err(unavailable_fault("a transaction marker did not come"))
            }
        }
    }

    /// The id of the topic, which one made anew under its name does not share.
    ///
    /// # Errors
    ///
    /// If it is missing, has more partitions than one, or cannot be reached.
    pub fn topic_id(&self) -> Result<String, TopicFault> {
        topic_id(&self.params, &self.inspector)
    }

    /// Appends a record. Only reading shows whether it is there, and where, after `Ok` as well as after a transient error.
    ///
    /// # Errors
    ///
    /// If it may not have been written.
    pub fn append_record(&mut self, payload: &[u8]) -> Result<(), TopicFault> {
        let record = ProducerRecord {
            partition: Some(PARTITION),
            payload,
            ..ProducerRecord::default()
        };
        self.producer
            .send(record)
            .map_err(|error| self.params.fault_of(&error))
    }
}

/// Reason where a record is there and the client has not got it in time.
pub(crate) const NO_RECORD: &str = "a record did not come";

fn unavailable_fault(why: &str) -> TopicFault {
    TopicFault::Unavailable {
        why: why.to_owned(),
    }
}

fn damaged_fault(what: &str) -> TopicFault {
    TopicFault::Damaged {
        what: what.to_owned(),
    }
}

fn append_time(stamp: Timestamp) -> Option<i64> {
    if let Timestamp::LogAppendTime(time) = stamp {
        Some(time)
    } else {
        None
    }
}

/// Creates the topic with the settings that it must have.
///
/// # Errors
///
/// If the cluster cannot be reached or refuses.
pub fn create_topic(params: &OrderedTopicParams, replication: i32) -> Result<(), TopicFault> {
    let replicas = params.min_insync_replicas.to_string();
    let mut settings: Vec<(&str, &str)> = params.needed_settings();
    settings.push((MIN_INSYNC_REPLICAS, &replicas));
    topic::create_topic(&params.broker, &params.topic, 1, replication, &settings)?;
    Ok(())
}

/// The id of the topic, asked for by `inspector`.
///
/// # Errors
///
/// If it is missing, has more partitions than one, or cannot be reached.
pub fn topic_id(
    params: &OrderedTopicParams,
    inspector: &MetadataClient,
) -> Result<String, TopicFault> {
    let found = inspector.ask(|client, timeout| {
        topic::describe_partitions(&params.broker, client.client(), &params.topic, timeout)
    })?;
    check_one_partition(found.partitions)?;
    Ok(found.id)
}

fn check_one_partition(partitions: usize) -> Result<(), TopicFault> {
    if partitions == 1 {
        Ok(())
    } else {
        Err(TopicFault::Partitions { partitions })
    }
}

/// Checks that the records of a topic have one order, and that none is ever lost.
///
/// # Errors
///
/// If it has not the one partition or not the settings for that.
pub fn check_topic(params: &OrderedTopicParams, topic: &TopicMetadata) -> Result<(), TopicFault> {
    check_one_partition(topic.partitions.len())?;
    if params.broker.is_mock {
        return Ok(());
    }
    for (name, needed) in params.needed_settings() {
        let found = topic_setting(topic, name);
        if found != needed {
            return Err(TopicFault::Setting {
                setting: name.into(),
                found: found.into(),
                needed: needed.into(),
                remedy: params.remedy(name, needed).into(),
            });
        }
    }
    let least = params.min_insync_replicas;
    let found = topic_setting(topic, MIN_INSYNC_REPLICAS);
    if found.parse::<u32>().is_ok_and(|replicas| replicas >= least) {
        return Ok(());
    }
    Err(TopicFault::Setting {
        setting: MIN_INSYNC_REPLICAS.into(),
        found: found.into(),
        needed: format!("at least {least}").into(),
        remedy: params
            .remedy(MIN_INSYNC_REPLICAS, &least.to_string())
            .into(),
    })
}

/// Checks what [`check_topic`] does, one condition after the other, for whoever looks before anything runs.
pub fn topic_checks(params: &OrderedTopicParams, topic: &TopicMetadata) -> Vec<TopicCheck> {
    let name = &params.topic;
    let partitions = topic.partitions.len();
    let mut checks = vec![TopicCheck::new(
        format!("{name} has one partition"),
        partitions == 1,
        format!("it has {partitions}"),
        "create a topic with one partition: only there its records have one order",
    )];
    for (key, needed) in params.needed_settings() {
        let found = topic_setting(topic, key);
        checks.push(TopicCheck::new(
            format!("{name} has {key} = {needed}"),
            found == needed,
            format!("it is {found}"),
            params.remedy(key, needed),
        ));
    }
    let replicas = topic_setting(topic, MIN_INSYNC_REPLICAS);
    let needed = params.min_insync_replicas;
    checks.push(TopicCheck::new(
        format!("{name} has {MIN_INSYNC_REPLICAS} of at least {needed}"),
        replicas.parse().is_ok_and(|count: u32| count >= needed),
        format!("it is {replicas}"),
        params.remedy(MIN_INSYNC_REPLICAS, &needed.to_string()),
    ));
    checks
}

impl From<ClusterError> for TopicFault {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::NoTopic { .. } => TopicFault::Missing,
            error if error.is_transient() => TopicFault::Unavailable {
                why: error.to_string(),
            },
            error => TopicFault::Refused {
                why: error.to_string(),
            },
        }
    }
}
