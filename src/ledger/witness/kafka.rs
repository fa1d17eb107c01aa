//! The witness as a topic of one partition.

use std::path::Path;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::place::{Memory, Place};
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
    /// Asks about the topic on a connection of its own: a broker answers the requests of one connection in order, and one that waits
    /// for new records would hold up the others.
    inspector: BaseConsumer<ErrorContext>,
    producer: Producer,
    /// The next offset to read; everything before it is folded.
    next: i64,
    /// Whether the consumer reads from `next` on.
    is_assigned: bool,
    accepted: Option<Claim>,
    /// The accepted record, as it is in the topic.
    place: Option<Place>,
    /// The topic that is read, by its id; a topic of the same name that was made anew has another.
    identity: String,
    memory: Option<Memory>,
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
        let inspector = params.broker.consumer(&[]).map_err(failed)?;
        let producer = Producer::new(params.broker.clone(), params.topic.clone());
        let mut witness = KafkaWitness {
            params: params.clone(),
            consumer,
            inspector,
            producer,
            next: 0,
            is_assigned: false,
            accepted: None,
            place: None,
            identity: String::new(),
            memory: None,
        };
        witness.identity = witness.identity()?;
        Ok(witness)
    }

    /// Reads from the accepted claim that the file `path` remembers, if it does, and keeps it up to date. For the one worker of a
    /// ledger.
    #[must_use]
    pub fn remembering(mut self, path: &Path) -> Self {
        let (memory, place) = Memory::load(path.into());
        self.memory = Some(memory);
        // Of another topic it says nothing.
        if let Some(place) = place.filter(|place| place.identity == self.identity)
            && let Ok(offset) = i64::try_from(place.offset)
        {
            (self.next, self.place) = (offset, Some(place));
        }
        self
    }

    fn assign(&mut self) -> Result<(), Error> {
        let failed = |error| explain(&self.params, &error);
        let mut start = TopicPartitionList::new();
        start.add_partition_offset(&self.params.topic, PARTITION, Offset::Offset(self.next)).map_err(failed)?;
        self.consumer.assign(&start).map_err(failed)?;
        self.is_assigned = true;
        Ok(())
    }

    /// Reads the record at `next`, and folds it.
    fn take(&mut self, payload: &[u8]) -> Result<(), Error> {
        let remembered = self.place.as_ref().filter(|_| self.accepted.is_none());
        if remembered.is_some_and(|place| place.record.as_bytes() != payload) {
            let what = format!("the record at offset {} is not the one that was accepted there", self.next);
            return Err(self.damaged(what));
        }
        let claim = Claim::decode(payload);
        let claim = claim.ok_or_else(|| self.damaged(format!("the record at offset {} is no claim", self.next)))?;
        let accepted = if remembered.is_some() { Some(claim) } else { fold(self.accepted, claim) };
        if accepted != self.accepted {
            let record = String::from_utf8_lossy(payload).into_owned();
            let offset = self.next.unsigned_abs();
            self.place = Some(Place { identity: self.identity.clone(), offset, record });
            self.accepted = accepted;
        }
        self.next += 1;
        Ok(())
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
        let name = self.params.topic.clone();
        let watermarks = self.inspector.fetch_watermarks(&name, PARTITION, REQUEST_TIMEOUT);
        let (low, high) = watermarks.map_err(|error| explain(&self.params, &error))?;
        if low != 0 {
            return Err(self.damaged(format!("the records before offset {low} are gone")));
        }
        // The remembered record is read, the others were.
        let read = if self.is_assigned || self.place.is_none() { self.next } else { self.next + 1 };
        if high < read {
            // Made anew, it is another witness, which the ledger refuses.
            if self.identity()? != self.identity {
                return Ok(self.accepted);
            }
            return Err(Error::Shorter { name, offset: read.unsigned_abs().saturating_sub(1) });
        }
        if !self.is_assigned {
            self.assign()?;
        }
        while self.next < high {
            let message = match self.consumer.poll(REQUEST_TIMEOUT) {
                Some(Ok(message)) => message.detach(),
                Some(Err(error)) => return Err(explain(&self.params, &error)),
                None => {
                    let why = format!("offset {} did not come", self.next);
                    return Err(Error::Unavailable { name, why });
                }
            };
            if message.offset() != self.next {
                return Err(self.damaged(format!("offset {} follows {}", message.offset(), self.next - 1)));
            }
            self.take(message.payload().unwrap_or_default())?;
        }
        if let (Some(memory), Some(place)) = (&mut self.memory, &self.place) {
            memory.save(place);
        }
        Ok(self.accepted)
    }

    fn identity(&mut self) -> Result<String, Error> {
        let Params { broker, topic, .. } = &self.params;
        let found = topic::id_and_partitions(broker, self.inspector.client(), topic);
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
