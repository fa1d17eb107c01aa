//! Synopses from a topic: a bounded history, then new messages. Outside any consumer group; nothing is committed.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::live::Feed;
use super::stop_flag::StopFlag;
use bernstream_kafka as kafka;
use bernstream_kafka::broker::is_group_error;
use bernstream_kafka::topic;
use bernstream_kafka::{Broker, ErrorContext};
use bernstream_synopsis::clock::{Timestamp, saturating_micros};

/// Longest time for the answer of a broker before the connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the partitions of the topic are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// At most this many older messages are read from each partition.
const MAX_HISTORY: i64 = 20_000;

#[derive(Clone, Debug)]
pub struct FeedTopicParams {
    pub broker: Broker,
    pub topic: String,
    pub history: HistoryLength,
}

/// Part of the existing messages of a topic that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryLength {
    All,
    /// By message timestamp.
    Last(Duration),
}

/// A consumer of committed messages, without a group: the caller assigns its partitions.
///
/// # Errors
///
/// If the client cannot be created from the settings of the cluster.
pub fn consumer(broker: &Broker) -> Result<BaseConsumer<ErrorContext>, KafkaError> {
    broker.consumer(&[
        // librdkafka needs a group id even for assigned partitions; it neither joins nor commits.
        ("group.id", "bernstream-reader"),
        ("enable.auto.commit", "false"),
        ("isolation.level", "read_committed"),
        ("auto.offset.reset", "error"),
        // Bounds the memory of the fetch queue while a long history is read.
        ("queued.max.messages.kbytes", "16384"),
    ])
}

/// # Errors
///
/// If the topic does not exist or the cluster cannot be asked.
pub(super) fn check_topic(params: &FeedTopicParams) -> Result<(), kafka::ClusterError> {
    topic::partitions(&params.broker, &params.open_consumer()?, &params.topic).map(drop)
}

impl FeedTopicParams {
    fn open_consumer(&self) -> Result<BaseConsumer<ErrorContext>, kafka::ClusterError> {
        self.checked_answer(consumer(&self.broker))
    }

    /// The answer of a client of the topic; an error becomes one about the topic.
    fn checked_answer<T>(&self, answer: Result<T, KafkaError>) -> Result<T, kafka::ClusterError> {
        answer.map_err(|error| self.broker.error_about(&self.topic, &error))
    }
}

/// Reads until `stop` is set or the partitions of the topic change. Then, and after an error, the caller starts again: the cache
/// drops messages that are read twice.
///
/// # Errors
///
/// If the broker is lost or refuses a request, or the topic does not exist.
pub(super) fn follow_topic(
    params: &FeedTopicParams,
    feed: &Feed,
    stop: &StopFlag,
) -> Result<(), kafka::ClusterError> {
    let FeedTopicParams { broker, topic, .. } = params;
    let consumer = params.open_consumer()?;
    let partitions = topic::partitions_within(broker, &consumer, topic, ANSWER_TIMEOUT)?;
    let starts = params.checked_answer(start_offsets(params, &consumer, &partitions))?;
    params.checked_answer(consumer.assign(&starts))?;
    feed.set_connected();
    let mut checked = Instant::now();
    while !stop.is_set() {
        let polled = consumer.poll(Duration::from_millis(100));
        if let Some(message) = polled.filter(|message| !message.as_ref().is_err_and(is_group_error))
        {
            let message = params.checked_answer(message)?;
            let partition = message.partition();
            let offset = message.offset();
            // A message without a payload is a tombstone of its key.
            if let Some(bytes) = message.payload() {
                feed.add_message(|| format!("partition {partition}, offset {offset}"), bytes);
            }
        }
        if checked.elapsed() > CHECK_INTERVAL {
            if topic::partitions_while_reading(broker, &consumer, topic, ANSWER_TIMEOUT)?
                != partitions
            {
                break;
            }
            checked = Instant::now();
        }
    }
    Ok(())
}

/// Where reading starts in each partition.
fn start_offsets(
    params: &FeedTopicParams,
    consumer: &BaseConsumer<ErrorContext>,
    partitions: &[i32],
) -> Result<TopicPartitionList, KafkaError> {
    let FeedTopicParams {
        topic,
        history,
        broker,
    } = params;
    let since = match history {
        // The mock cluster finds no offsets by time.
        HistoryLength::Last(span) if !broker.is_mock => {
            let since = Timestamp::now()
                .micros()
                .saturating_sub(saturating_micros(*span))
                / 1000;
            let mut times = TopicPartitionList::new();
            for partition in partitions {
                times.add_partition_offset(topic, *partition, Offset::Offset(since.max(0)))?;
            }
            Some(consumer.offsets_for_times(times, ANSWER_TIMEOUT)?)
        }
        _ => None,
    };
    let mut starts = TopicPartitionList::new();
    for partition in partitions {
        let (low, high) = consumer.fetch_watermarks(topic, *partition, ANSWER_TIMEOUT)?;
        let mut first = low;
        if let Some(since) = &since {
            let found = since.find_partition(topic, *partition);
            first = match found.map(|found| found.offset()) {
                Some(Offset::Offset(offset)) => offset,
                // No message is that new.
                _ => high,
            };
        }
        let first = first.max(high.saturating_sub(MAX_HISTORY)).max(low);
        starts.add_partition_offset(topic, *partition, Offset::Offset(first))?;
    }
    Ok(starts)
}
