//! A producer that sends records, in order, and waits for their delivery reports.

use std::iter;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::metadata::MetadataTopic;
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};

use crate::broker::{Broker, REQUEST_TIMEOUT, close_client};
use crate::error_context::ErrorContext;
use bernstream_synopsis::clock::Timestamp;

/// Longest time of a delivery before its outcome counts as unknown: of what is sent again then, at first, and after failures in a row.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// A record to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProducerRecord<'a> {
    /// If absent, chosen by the key with the partitioner of Java producers.
    pub partition: Option<i32>,
    pub key: Option<&'a str>,
    pub headers: &'a [(String, String)],
    pub payload: &'a [u8],
}

/// One topic's producer: `acks=all`, idempotent. Records of a partition are written in the order in which they were sent.
pub struct Producer {
    broker: Broker,
    topic: String,
    largest_batch: usize,
    client: Option<ThreadedProducer<DeliveryReports>>,
    /// The client is to be asked who leads before it gets records.
    must_find_leader: bool,
    shortest_timeout: Duration,
    /// Timeout of the next client.
    delivery_timeout: Duration,
}

/// Why records were not delivered. Of those after the first `delivered` ones it is unknown: they may still be written later.
#[derive(Debug)]
pub struct UndeliveredRecords {
    pub delivered: usize,
    pub error: KafkaError,
}

impl From<UndeliveredRecords> for KafkaError {
    fn from(undelivered: UndeliveredRecords) -> Self {
        undelivered.error
    }
}

impl Producer {
    /// Sends every record by itself. Starts to connect at once if it can: an idempotent producer gets its id only after half a
    /// second.
    pub fn new(broker: Broker, topic: String) -> Self {
        Producer::with_batches(broker, topic, 1)
    }

    /// Makes a producer of records that nobody sends again.
    pub fn sending_once(broker: Broker, topic: String) -> Self {
        Producer::with_timeout(broker, topic, 1, LONGEST_DELIVERY_TIMEOUT)
    }

    /// Makes a producer that packs records that wait for one broker into batches of up to `bytes` bytes, which the topic must take.
    pub fn with_batches(broker: Broker, topic: String, bytes: usize) -> Self {
        Producer::with_timeout(broker, topic, bytes, DELIVERY_TIMEOUT)
    }

    fn with_timeout(
        broker: Broker,
        topic: String,
        largest_batch: usize,
        shortest_timeout: Duration,
    ) -> Self {
        let mut producer = Producer {
            broker,
            topic,
            largest_batch,
            client: None,
            must_find_leader: false,
            shortest_timeout,
            delivery_timeout: shortest_timeout,
        };
        producer.client = producer.connect().ok();
        producer
    }

    /// Returns once all in-sync replicas have the record.
    ///
    /// # Errors
    ///
    /// If the delivery failed, or its outcome is unknown: the record may still be written later.
    pub fn send(&mut self, record: ProducerRecord<'_>) -> Result<(), KafkaError> {
        self.send_for_time(record).map(drop)
    }

    /// Sends a record and returns its append time, if the topic has it and the broker tells it.
    ///
    /// # Errors
    ///
    /// As for [`Producer::send`].
    pub fn send_for_time(
        &mut self,
        record: ProducerRecord<'_>,
    ) -> Result<Option<Timestamp>, KafkaError> {
        Ok(self.deliver_all(iter::once(record))?)
    }

    /// Returns once all in-sync replicas have all records. Several are in flight.
    ///
    /// # Errors
    ///
    /// The first failure. The records of one partition are then those up to one of them, or some are missing in between, and the
    /// caller sends all again that it does not know to be delivered.
    pub fn send_all<'r>(
        &mut self,
        records: impl IntoIterator<Item = ProducerRecord<'r>>,
    ) -> Result<(), UndeliveredRecords> {
        self.deliver_all(records).map(drop)
    }

    /// Delivers all records; returns the append time of the one that was reported last.
    fn deliver_all<'r>(
        &mut self,
        records: impl IntoIterator<Item = ProducerRecord<'r>>,
    ) -> Result<Option<Timestamp>, UndeliveredRecords> {
        let mut records = records.into_iter().peekable();
        let partition = records.peek().and_then(|record| record.partition);
        let client = self
            .client_with_leader(partition)
            .map_err(|error| UndeliveredRecords {
                delivered: 0,
                error,
            })?;
        let (sender, reports) = channel();
        let mut is_delivered = Vec::new();
        let mut failure = None;
        for record in records {
            let report = ReportSender {
                place: is_delivered.len(),
                sender: sender.clone(),
            };
            if let Err((error, _)) = client.send(self.base_record(record, report)) {
                failure = Some(error);
                break;
            }
            is_delivered.push(false);
        }
        let deadline = Instant::now() + LONGEST_DELIVERY_TIMEOUT + Duration::from_secs(5);
        let mut newest = None;
        let mut left = is_delivered.len();
        while failure.is_none() && left > 0 {
            match reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(DeliveryOutcome {
                    place,
                    append_time: Ok(time),
                }) => {
                    self.broker.hear_answer();
                    newest = time;
                    left -= 1;
                    if let Some(is_delivered) = is_delivered.get_mut(place) {
                        *is_delivered = true;
                    }
                }
                Ok(DeliveryOutcome {
                    append_time: Err(error),
                    ..
                }) => failure = Some(error),
                Err(_) => {
                    failure = Some(KafkaError::MessageProduction(
                        RDKafkaErrorCode::MessageTimedOut,
                    ))
                }
            }
        }
        match failure {
            // A client is kept only without a failure: a new one has an empty queue and no fatal error.
            None => {
                self.client = Some(client);
                self.delivery_timeout = self.shortest_timeout;
                Ok(newest)
            }
            Some(error) => {
                self.must_find_leader = true;
                self.delivery_timeout = LONGEST_DELIVERY_TIMEOUT.min(2 * self.delivery_timeout);
                let delivered = is_delivered
                    .iter()
                    .take_while(|is_delivered| **is_delivered)
                    .count();
                Err(UndeliveredRecords { delivered, error })
            }
        }
    }

    fn base_record<'r>(
        &'r self,
        record: ProducerRecord<'r>,
        report: ReportSender,
    ) -> BaseRecord<'r, str, [u8], Box<ReportSender>> {
        let mut message =
            BaseRecord::with_opaque_to(&self.topic, Box::new(report)).payload(record.payload);
        message.partition = record.partition;
        message.key = record.key;
        if record.headers.is_empty() {
            return message;
        }
        let mut headers = OwnedHeaders::new();
        for (key, value) in record.headers {
            let value = Some(value);
            headers = headers.insert(Header { key, value });
        }
        message.headers(headers)
    }

    /// The client; after a failure one that finds `partition` led, or any where it is not known. One that learns while it has records to
    /// send that nobody leads may never find its brokers again, and the records would wait for their timeout.
    fn client_with_leader(
        &mut self,
        partition: Option<i32>,
    ) -> Result<ThreadedProducer<DeliveryReports>, KafkaError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        if !self.must_find_leader {
            return Ok(client);
        }
        let found = client
            .client()
            .fetch_metadata(Some(&self.topic), REQUEST_TIMEOUT)?;
        for found in found.topics().iter().flat_map(MetadataTopic::partitions) {
            if found.leader() >= 0 && partition.is_none_or(|number| number == found.id()) {
                self.must_find_leader = false;
                return Ok(client);
            }
        }
        // It has nothing to send, and is asked again; unless it was told that there are no brokers, and may have none left to ask.
        if found.brokers().is_empty() {
            close_client(client);
        } else {
            self.client = Some(client);
        }
        Err(KafkaError::MetadataFetch(
            RDKafkaErrorCode::LeaderNotAvailable,
        ))
    }

    fn connect(&self) -> Result<ThreadedProducer<DeliveryReports>, KafkaError> {
        let mut config = self.broker.client_config()?;
        config
            .set("acks", "all")
            .set("enable.idempotence", "true")
            // The most for which brokers keep the order of an idempotent producer.
            .set("max.in.flight.requests.per.connection", "5")
            .set("linger.ms", "0")
            .set("batch.size", self.largest_batch.to_string())
            .set("partitioner", "murmur2_random")
            // The limit of the topic decides.
            .set("message.max.bytes", "1000000000")
            .set(
                "message.timeout.ms",
                self.delivery_timeout.as_millis().to_string(),
            );
        config.create_with_context(DeliveryReports(self.broker.error_context()))
    }
}

/// The end of a delivery.
struct DeliveryOutcome {
    /// The number of the record in its call.
    place: usize,
    /// When the record was appended, if the broker tells it, or why it was not delivered.
    append_time: Result<Option<Timestamp>, KafkaError>,
}

/// Tells the sender of a record what became of it.
struct ReportSender {
    /// The number of the record in its call.
    place: usize,
    sender: Sender<DeliveryOutcome>,
}

/// Passes every delivery report to the waiting sender.
struct DeliveryReports(ErrorContext);

impl ClientContext for DeliveryReports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.log(level, facility, message);
    }
}

impl ProducerContext for DeliveryReports {
    type DeliveryOpaque = Box<ReportSender>;

    fn delivery(&self, result: &DeliveryResult<'_>, report: Self::DeliveryOpaque) {
        let append_time = match result {
            Ok(message) => Ok(append_time(message)),
            Err((error, _)) => Err(error.clone()),
        };
        // After a failure nothing receives the other reports.
        let _ = report.sender.send(DeliveryOutcome {
            place: report.place,
            append_time,
        });
    }
}

/// A topic without append times, and a broker that does not tell them, leave the time of sending.
fn append_time(message: &BorrowedMessage<'_>) -> Option<Timestamp> {
    match message.timestamp() {
        rdkafka::Timestamp::LogAppendTime(millis) => {
            Some(Timestamp::from_micros(millis.saturating_mul(1000)))
        }
        rdkafka::Timestamp::CreateTime(_) | rdkafka::Timestamp::NotAvailable => None,
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    #[test]
    fn a_partition_that_nobody_leads_gets_nothing_until_somebody_does() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("output", 1, 1).unwrap();
        cluster.partition_leader("output", 0, None).unwrap();
        let mut producer = Producer::new(
            Broker::mock_cluster(cluster.bootstrap_servers()),
            "output".to_owned(),
        );
        let mut send = || {
            producer.send(ProducerRecord {
                partition: Some(0),
                payload: b"synopsis",
                ..ProducerRecord::default()
            })
        };
        assert!(send().is_err());
        let begun = Instant::now();
        assert_eq!(
            send(),
            Err(KafkaError::MetadataFetch(
                RDKafkaErrorCode::LeaderNotAvailable
            ))
        );
        assert!(
            begun.elapsed() < DELIVERY_TIMEOUT,
            "nothing waits for its timeout"
        );
        cluster.partition_leader("output", 0, Some(1)).unwrap();
        assert_eq!(send(), Ok(()));
    }
}
