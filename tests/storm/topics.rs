//! Topics as somebody else reads them.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Message as _};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::{PATIENCE, kafka};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub partition: i32,
    pub offset: i64,
    /// Microseconds since 1970.
    pub stamp: i64,
    pub key: Vec<u8>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub payload: Vec<u8>,
}

/// Offsets `from..to` of a partition, which were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub partition: i32,
    pub from: i64,
    pub to: i64,
}

impl Lost {
    pub fn has(&self, message: &Message) -> bool {
        self.partition == message.partition && (self.from..self.to).contains(&message.offset)
    }
}

/// All that is on a topic and can be read: partition by partition, in order.
pub fn read(servers: &str, topic: &str, isolation: &str) -> Vec<Message> {
    use RDKafkaErrorCode::{BadCompression, BadMessage, MessageSizeTooLarge};
    let consumer: BaseConsumer = kafka::at(servers)
        .client_config()
        .expect("settings")
        .set("group.id", "storm")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", isolation)
        .create()
        .expect("a consumer");
    let metadata = consumer
        .fetch_metadata(Some(topic), PATIENCE)
        .expect("metadata");
    let mut messages = Vec::new();
    for partition in metadata.topics()[0].partitions() {
        let from = |offset| {
            let mut all = TopicPartitionList::new();
            all.add_partition_offset(topic, partition.id(), offset)
                .expect("a partition");
            consumer.assign(&all).expect("assigned");
        };
        from(Offset::Beginning);
        // Behind the last message, and from where the reader was last set off.
        let mut next = 0;
        let mut tried = -1;
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(
                Instant::now() < until,
                "partition {} of {topic} does not come to its end",
                partition.id()
            );
            match consumer.poll(Duration::from_secs(1)) {
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    messages.push(Message {
                        partition: message.partition(),
                        offset: message.offset(),
                        stamp: message.timestamp().to_millis().expect("a time") * 1000,
                        key: message.key().unwrap_or_default().to_vec(),
                        headers: message.headers().map_or(vec![], |headers| {
                            headers
                                .iter()
                                .map(|h| (h.key.to_owned(), h.value.unwrap_or_default().to_vec()))
                                .collect()
                        }),
                        payload: message.payload().unwrap_or_default().to_vec(),
                    });
                }
                Some(Err(KafkaError::PartitionEOF(_))) => break,
                Some(Err(KafkaError::MessageConsumption(
                    BadCompression | BadMessage | MessageSizeTooLarge,
                ))) => {
                    // From right behind the last message nothing that can be read is passed.
                    tried = next.max(tried + 1);
                    from(Offset::Offset(tried));
                }
                // A broker that was away.
                Some(Err(_)) | None => {}
            }
        }
    }
    messages
}
