//! A producer that sends one record at a time and waits for its delivery report.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, ProducerContext, ThreadedProducer};

use crate::clock::Timestamp;
use crate::kafka::broker::Broker;
use crate::kafka::error_context::ErrorContext;

/// How long a delivery may take before its outcome counts as unknown.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// A record to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// If absent, chosen by the key with the partitioner of Java producers.
    pub partition: Option<i32>,
    pub key: Option<&'a str>,
    pub headers: &'a [(String, String)],
    pub payload: &'a [u8],
}

/// One topic's producer: `acks=all`, idempotent, one record in flight.
pub struct Producer {
    broker: Broker,
    topic: String,
    client: Option<ThreadedProducer<Reports>>,
}

impl Producer {
    /// Starts to connect at once if it can: an idempotent producer gets its id only after half a second.
    pub fn new(broker: Broker, topic: String) -> Self {
        let mut producer = Producer { broker, topic, client: None };
        producer.client = producer.connect().ok();
        producer
    }

    /// Returns once all in-sync replicas have the record.
    ///
    /// # Errors
    ///
    /// If the delivery failed, or its outcome is unknown: the record may still be written later.
    pub fn send(&mut self, record: Record<'_>) -> Result<(), KafkaError> {
        self.send_for_time(record).map(drop)
    }

    /// The same; gives the append time, if the topic has it and the broker tells it.
    ///
    /// # Errors
    ///
    /// As for [`Producer::send`].
    pub fn send_for_time(&mut self, record: Record<'_>) -> Result<Option<Timestamp>, KafkaError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let (report, outcome) = sync_channel(1);
        let mut message = BaseRecord::with_opaque_to(&self.topic, Box::new(report)).payload(record.payload);
        message.partition = record.partition;
        message.key = record.key;
        if !record.headers.is_empty() {
            let headers = record
                .headers
                .iter()
                .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(value) }));
            message = message.headers(headers);
        }
        client.send(message).map_err(|(error, _)| error)?;
        let time = match outcome.recv_timeout(DELIVERY_TIMEOUT + Duration::from_secs(5)) {
            Ok(outcome) => outcome?,
            Err(_) => return Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut)),
        };
        // A client is kept only without a failure: a new one has an empty queue and no fatal error.
        self.client = Some(client);
        Ok(time)
    }

    fn connect(&self) -> Result<ThreadedProducer<Reports>, KafkaError> {
        let mut config = self.broker.client_config()?;
        config
            .set("acks", "all")
            .set("enable.idempotence", "true")
            .set("max.in.flight.requests.per.connection", "1")
            .set("linger.ms", "0")
            .set("partitioner", "murmur2_random")
            // The limit of the topic decides.
            .set("message.max.bytes", "1000000000")
            .set("message.timeout.ms", DELIVERY_TIMEOUT.as_millis().to_string());
        config.create_with_context(Reports(self.broker.error_context()))
    }
}

/// Passes every delivery report to the waiting sender.
struct Reports(ErrorContext);

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<SyncSender<Result<Option<Timestamp>, KafkaError>>>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Self::DeliveryOpaque) {
        let outcome = result.as_ref().map(append_time).map_err(|(error, _)| error.clone());
        // After a timeout nothing receives the report.
        let _ = report.try_send(outcome);
    }
}

/// A topic without append times, and a broker that does not tell them, leave the time of sending.
fn append_time(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    match message.timestamp() {
        rdkafka::Timestamp::LogAppendTime(millis) => Some(Timestamp::from_micros(millis.saturating_mul(1000))),
        rdkafka::Timestamp::CreateTime(_) | rdkafka::Timestamp::NotAvailable => None,
    }
}
