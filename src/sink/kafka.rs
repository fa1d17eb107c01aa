//! Publishing to a Kafka topic.

use rdkafka::consumer::BaseConsumer;
use rdkafka::consumer::Consumer;
use rdkafka::error::RDKafkaErrorCode;

use super::{Error, Sink};
use crate::ledger::Paid;
use crate::ledger::producer::{Producer, Record};
use crate::source;
use crate::source::topic::{self, Broker};

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
}

/// The output topic: `acks=all`, idempotent, one message in flight, partitions by key.
pub struct KafkaSink {
    params: Params,
    producer: Producer,
}

impl KafkaSink {
    /// Checks that the topic is there.
    pub fn open(params: &Params) -> Result<Self, Error> {
        topic::describe(&params.broker, &params.topic)?;
        let producer = Producer::new(params.broker.clone(), params.topic.clone());
        Ok(KafkaSink { params: params.clone(), producer })
    }
}

impl Sink for KafkaSink {
    fn publish(&mut self, paid: &Paid) -> Result<(), Error> {
        let sealed = paid.sealed();
        let record =
            Record { partition: None, key: Some(&sealed.key), headers: &sealed.headers, payload: &sealed.bytes };
        self.producer.send(record).map_err(|error| match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::InvalidMessageSize) => {
                Error::TooLarge { topic: self.params.topic.clone(), bytes: sealed.bytes.len() }
            }
            _ => self.params.broker.failed(&self.params.topic, &error).into(),
        })
    }
}

/// Whether nothing was ever written to the topic: every partition begins and ends at offset 0.
pub fn is_untouched(params: &Params) -> Result<bool, source::Error> {
    let failed = |error| params.broker.failed(&params.topic, &error);
    let client: BaseConsumer = params.broker.client_config().create().map_err(failed)?;
    for partition in topic::partitions(&params.broker, &client, &params.topic)? {
        let watermarks = client.fetch_watermarks(&params.topic, partition, topic::PATIENCE).map_err(failed)?;
        if watermarks != (0, 0) {
            return Ok(false);
        }
    }
    Ok(true)
}
