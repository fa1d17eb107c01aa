//! The brokers' clock, read from the append time of a record that is sent to ask for it.

use std::time::Instant;

use crate::broker::Broker;
use crate::error::ClusterError;
use crate::producer::{Producer, ProducerRecord};
use crate::topic;
use crate::topic::TopicMetadata;
use bernstream_synopsis::clock::Timestamp;

/// Settings of a clock topic: the broker's time on every record, and no keys.
pub const SETTINGS: [(&str, &str); 2] = [
    ("message.timestamp.type", "LogAppendTime"),
    ("cleanup.policy", "delete"),
];

/// Nothing is ever read from the topic, so little is kept.
const RETENTION: (&str, &str) = ("retention.ms", "3600000");

/// Payload of every record that is sent.
const PROBE: &[u8] = b"what time is it?";

/// A clock topic of one partition. The acknowledgement of a record has the time of the leader's clock when it took it.
pub struct BrokerClock {
    broker: Broker,
    topic: String,
    producer: Producer,
}

/// A time of the brokers' clock, and when it was told by the monotonic clock of this machine.
#[derive(Clone, Copy, Debug)]
pub struct BrokerTime {
    /// The brokers' clock has reached this.
    pub stamp: Timestamp,
    pub acknowledged: Instant,
}

impl BrokerTime {
    /// About the brokers' time now: never ahead by more than the two clocks drift apart.
    pub fn now(&self) -> Timestamp {
        self.stamp.plus(self.acknowledged.elapsed())
    }
}

impl BrokerClock {
    /// Opens the clock topic; creates it if there is none, with as many replicas as topic `like`.
    ///
    /// # Errors
    ///
    /// If the topic does not take append times, if it cannot be created, or if the cluster does not answer or refuses.
    pub fn open(broker: &Broker, topic: &str, like: &str) -> Result<Self, ClusterError> {
        create_missing(broker, topic, like)?;
        check_settings(topic, &topic::describe_topic(broker, topic)?)?;
        let producer = Producer::new(broker.clone(), topic.to_owned());
        Ok(BrokerClock {
            broker: broker.clone(),
            topic: topic.to_owned(),
            producer,
        })
    }

    /// Asks the brokers for their time.
    ///
    /// # Errors
    ///
    /// If the record was not acknowledged with an append time.
    pub fn ask_time(&mut self) -> Result<BrokerTime, ClusterError> {
        let probe = ProducerRecord {
            partition: Some(0),
            payload: PROBE,
            ..ProducerRecord::default()
        };
        match self.producer.send_for_time(probe) {
            Ok(Some(stamp)) => Ok(BrokerTime {
                stamp,
                acknowledged: Instant::now(),
            }),
            // A record that was sent twice and taken once is acknowledged without.
            Ok(None) => Err(ClusterError::Unavailable {
                servers: self.broker.servers.clone(),
                why: format!(
                    "topic '{}' took a record without telling its append time",
                    self.topic
                ),
            }),
            Err(error) => Err(self.broker.error_about(&self.topic, &error)),
        }
    }
}

/// Checks that `found`, which is named `topic`, tells the brokers' time.
///
/// # Errors
///
/// If it does not.
pub fn check_settings(topic: &str, found: &TopicMetadata) -> Result<(), ClusterError> {
    for (name, needed) in SETTINGS {
        let found = found.settings.get(name).map_or("", String::as_str);
        if found != needed {
            let topic = topic.to_owned();
            let found = format!("{name}={found}");
            return Err(ClusterError::NoClock {
                topic,
                found,
                needed: format!("{name}={needed}"),
            });
        }
    }
    Ok(())
}

/// Creates the clock topic if there is none, with as many replicas as topic `like`; returns whether it did.
///
/// # Errors
///
/// If it cannot be created, or if the cluster does not answer or refuses.
pub fn create_missing(broker: &Broker, topic: &str, like: &str) -> Result<bool, ClusterError> {
    match topic::describe_topic(broker, topic) {
        Ok(_) => return Ok(false),
        Err(ClusterError::NoTopic { .. }) => {}
        Err(error) => return Err(error),
    }
    let settings = [SETTINGS.as_slice(), &[RETENTION]].concat();
    let replicas = topic::replica_count(broker, like)?;
    match topic::create_topic(broker, topic, 1, replicas, &settings) {
        Ok(()) => Ok(true),
        // Another worker may have created it meanwhile.
        Err(_) if topic::describe_topic(broker, topic).is_ok() => Ok(false),
        Err(error) => Err(error),
    }
}
