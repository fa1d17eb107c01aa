//! Which topic is read, and how.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::error::KafkaResult;

use crate::Broker;
use crate::check::topic_setting;
use crate::source::SourceError;
use crate::source::record::TopicFormat;
use crate::topic::TopicMetadata;

/// Which topic is read, and how.
#[derive(Clone, Debug)]
pub struct KafkaSourceParams {
    pub broker: Broker,
    pub topic: String,
    /// A small topic of the same cluster that tells the brokers' time; not used where producers are trusted.
    pub clock: String,
    /// Time after a cutoff, by the brokers' clock, at which the end offsets are taken: longer than replication lags and the brokers'
    /// clocks differ, together.
    pub clock_slack: Duration,
    /// Accept topics with `CreateTime`: producers then decide which window a record belongs to.
    pub trust_producer_time: bool,
    pub format: TopicFormat,
    /// Rule for Arrow messages; a record that cannot be read is dropped by itself.
    pub on_bad_message: BadMessageRule,
    /// Broken messages that the operator chose to skip: (partition, offset).
    pub skip: BTreeSet<(i32, i64)>,
    /// Number of threads that read, each its share of the partitions; by default one for each processor.
    pub readers: Option<u32>,
    /// Input that was deleted unread or cannot be read, and whose loss the operator accepted. It is passed even if it is there.
    pub lost: Vec<LostOffsets>,
}

impl KafkaSourceParams {
    /// Largest number of threads that read: no more than there are partitions.
    pub fn most_readers(&self) -> u32 {
        self.readers.unwrap_or_else(processors).max(1)
    }

    /// The answer of a client of the topic; an error becomes one about the topic.
    pub(super) fn checked<T>(&self, answer: KafkaResult<T>) -> Result<T, crate::ClusterError> {
        answer.map_err(|error| self.broker.error_about(&self.topic, &error))
    }

    /// Number of threads that read a topic of so many partitions.
    pub(super) fn readers_of(&self, partitions: usize) -> u32 {
        self.most_readers()
            .min(u32::try_from(partitions).unwrap_or(u32::MAX).max(1))
    }

    /// Up to where everything from `at` on is given up as lost; `None` if `at` is not.
    pub fn lost_until(&self, partition: i32, at: i64) -> Option<i64> {
        let mut to = at;
        while let Some(lost) = self
            .lost
            .iter()
            .find(|lost| lost.partition == partition && lost.from <= to && to < lost.to)
        {
            to = lost.to;
        }
        (to > at).then_some(to)
    }

    /// Where reading goes on that has come to `at`, behind what is given up or skipped there.
    pub(super) fn passed_from(&self, partition: i32, at: i64) -> i64 {
        let mut next = at;
        loop {
            next = match self.lost_until(partition, next) {
                Some(to) => to,
                None if self.skip.contains(&(partition, next)) => next + 1,
                None => return next,
            };
        }
    }
}

fn processors() -> u32 {
    match std::thread::available_parallelism() {
        Ok(count) => u32::try_from(count.get()).unwrap_or(u32::MAX),
        Err(_) => 1,
    }
}

pub(super) fn is_stamped_by_broker(topic: &TopicMetadata) -> bool {
    topic_setting(topic, "message.timestamp.type") == "LogAppendTime"
}

/// Checks that the topic can be an input.
///
/// # Errors
///
/// If it is compacted, or its timestamps are not trusted.
pub fn check_topic(params: &KafkaSourceParams, topic: &TopicMetadata) -> Result<(), SourceError> {
    if !is_stamped_by_broker(topic) && !params.trust_producer_time {
        return Err(SourceError::ProducerTime {
            topic: params.topic.clone(),
        });
    }
    if topic_setting(topic, "cleanup.policy").contains("compact") {
        return Err(SourceError::Compacted {
            topic: params.topic.clone(),
        });
    }
    Ok(())
}

/// Rule for a message that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadMessageRule {
    Stop,
    Skip,
}

/// The offsets `from..to` of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostOffsets {
    pub partition: i32,
    pub from: i64,
    pub to: i64,
}
