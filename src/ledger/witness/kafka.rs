//! The witness as a topic of one partition.

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::{Claim, Error, Witness, fold};
use crate::kafka;
use crate::kafka::broker::REQUEST_TIMEOUT;
use crate::kafka::producer::{Producer, Record};
use crate::kafka::topic::{self, Topic};
use crate::kafka::{Broker, ErrorContext};

const PARTITION: i32 = 0;

/// The settings with which the topic never loses a record.
pub const SETTINGS: [(&str, &str); 4] = [
    ("cleanup.policy", "delete"),
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
];

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    /// The lowest allowed `min.insync.replicas` of the topic.
    pub min_insync_replicas: u32,
}

/// A witness topic, read by an assigned consumer from offset 0.
pub struct KafkaWitness {
    params: Params,
    consumer: BaseConsumer<ErrorContext>,
    producer: Producer,
    /// The next offset to read; everything before it is folded.
    next: i64,
    accepted: Option<Claim>,
}

impl KafkaWitness {
    /// Checks the settings of the topic and starts to read it.
    ///
    /// # Errors
    ///
    /// If the topic is missing, cannot be a witness, or cannot be reached.
    pub fn open(params: &Params) -> Result<Self, Error> {
        let topic = topic::describe(&params.broker, &params.topic).map_err(|error| explain_source(params, error))?;
        check(params, &topic)?;
        let failed = |error| explain(params, &error);
        let settings = [
            ("group.id", "bernstream-witness"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "error"),
            ("isolation.level", "read_uncommitted"),
            ("fetch.wait.max.ms", "100"),
        ];
        let consumer = params.broker.consumer(&settings).map_err(failed)?;
        let mut start = TopicPartitionList::new();
        start.add_partition_offset(&params.topic, PARTITION, Offset::Offset(0)).map_err(failed)?;
        consumer.assign(&start).map_err(failed)?;
        let producer = Producer::new(params.broker.clone(), params.topic.clone());
        Ok(KafkaWitness { params: params.clone(), consumer, producer, next: 0, accepted: None })
    }

    /// Creates the topic with the settings of a witness.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &Params, replication: i32) -> Result<(), Error> {
        let replicas = params.min_insync_replicas.to_string();
        let settings = [SETTINGS.as_slice(), &[("min.insync.replicas", &replicas)]].concat();
        let made = topic::create(&params.broker, &params.topic, 1, replication, &settings);
        made.map_err(|error| explain_source(params, error))
    }

    fn damaged(&self, what: impl Into<String>) -> Error {
        Error::Damaged { name: self.params.topic.clone(), what: what.into() }
    }
}

impl Witness for KafkaWitness {
    fn read(&mut self) -> Result<Option<Claim>, Error> {
        let name = &self.params.topic;
        let watermarks = self.consumer.fetch_watermarks(name, PARTITION, REQUEST_TIMEOUT);
        let (low, high) = watermarks.map_err(|error| explain(&self.params, &error))?;
        if low != 0 {
            return Err(self.damaged(format!("the records before offset {low} are gone")));
        }
        while self.next < high {
            let message = match self.consumer.poll(REQUEST_TIMEOUT) {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Err(explain(&self.params, &error)),
                None => {
                    let why = format!("offset {} did not come", self.next);
                    return Err(Error::Unavailable { name: name.clone(), why });
                }
            };
            if message.offset() != self.next {
                return Err(self.damaged(format!("offset {} follows {}", message.offset(), self.next - 1)));
            }
            let claim = message.payload().and_then(Claim::decode);
            let claim = claim.ok_or_else(|| self.damaged(format!("the record at offset {} is no claim", self.next)))?;
            self.accepted = fold(self.accepted, claim);
            self.next += 1;
        }
        Ok(self.accepted)
    }

    fn identity(&mut self) -> Result<String, Error> {
        let Params { broker, topic, .. } = &self.params;
        let found = topic::id_and_partitions(broker, self.consumer.client(), topic);
        let (id, partitions) = found.map_err(|error| explain_source(&self.params, error))?;
        one_partition(&self.params, partitions)?;
        Ok(id)
    }

    fn append(&mut self, claim: &Claim) -> Result<(), Error> {
        let payload = claim.encode();
        let record = Record { partition: Some(PARTITION), payload: payload.as_bytes(), ..Record::default() };
        self.producer.send(record).map_err(|error| explain(&self.params, &error))
    }
}

fn one_partition(params: &Params, partitions: usize) -> Result<(), Error> {
    match partitions {
        1 => Ok(()),
        partitions => Err(Error::Partitions { name: params.topic.clone(), partitions }),
    }
}

/// Checks that the topic can be a witness.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a witness.
pub fn check(params: &Params, topic: &Topic) -> Result<(), Error> {
    let wrong = |setting: &str, found: String, needed: String| {
        Err(Error::Setting { name: params.topic.clone(), setting: setting.into(), found, needed })
    };
    one_partition(params, topic.partitions.len())?;
    if params.broker.is_mock {
        return Ok(());
    }
    let found = |setting: &str| topic.settings.get(setting).cloned().unwrap_or_default();
    for (setting, needed) in SETTINGS {
        if found(setting) != needed {
            return wrong(setting, found(setting), needed.into());
        }
    }
    let replicas = found("min.insync.replicas");
    if replicas.parse::<u32>().is_ok_and(|replicas| replicas >= params.min_insync_replicas) {
        return Ok(());
    }
    wrong("min.insync.replicas", replicas, format!("at least {}", params.min_insync_replicas))
}

fn explain(params: &Params, error: &KafkaError) -> Error {
    use rdkafka::error::RDKafkaErrorCode::{AutoOffsetReset, OffsetOutOfRange};
    match error.rdkafka_error_code() {
        Some(AutoOffsetReset | OffsetOutOfRange) => {
            Error::Damaged { name: params.topic.clone(), what: "records that were not read yet are gone".into() }
        }
        _ => explain_source(params, params.broker.failed(&params.topic, error)),
    }
}

fn explain_source(params: &Params, error: kafka::Error) -> Error {
    let name = params.topic.clone();
    match error {
        kafka::Error::NoTopic { .. } => Error::Missing { name },
        error if error.is_transient() => Error::Unavailable { name, why: error.to_string() },
        error => Error::Refused { name, why: error.to_string() },
    }
}
