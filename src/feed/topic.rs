//! Synopses from a topic: a bounded history, then whatever comes. Outside any consumer group; nothing is written.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::{End, Feed};
use crate::clock::{Timestamp, micros};
use crate::kafka;
use crate::kafka::topic;
use crate::kafka::{Broker, ErrorContext};

/// How long a broker may take to answer before it counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a topic that is silent is asked whether it is there.
const LOOK: Duration = Duration::from_secs(2);
/// Messages of a partition that are read at most of what was there before.
const MOST: i64 = 20_000;

#[derive(Clone, Debug)]
pub struct Params {
    pub broker: Broker,
    pub topic: String,
    pub history: History,
}

/// How much of what a topic holds already is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    All,
    /// By the time of the messages.
    Last(Duration),
}

/// A consumer that reads what is committed and leaves no trace: the caller assigns partitions by hand.
pub fn consumer(broker: &Broker) -> Result<BaseConsumer<ErrorContext>, KafkaError> {
    broker.consumer(&[
        // librdkafka wants a name to assign partitions by hand; nothing joins or commits.
        ("group.id", "bernstream-reader"),
        ("enable.auto.commit", "false"),
        ("isolation.level", "read_committed"),
        ("auto.offset.reset", "error"),
        // What waits to be looked at; a history is read no faster than that.
        ("queued.max.messages.kbytes", "16384"),
    ])
}

/// Whether the topic is there.
pub(super) fn check(params: &Params) -> Result<(), kafka::Error> {
    let consumer = consumer(&params.broker).map_err(|error| params.broker.failed(&params.topic, &error))?;
    topic::partitions(&params.broker, &consumer, &params.topic).map(drop)
}

/// Reads until the end is asked for, or the topic has other partitions than before. After an error, and then, begin anew: what
/// is read twice is kept once.
pub(super) fn follow(params: &Params, feed: &Feed, end: &End) -> Result<(), kafka::Error> {
    let Params { broker, topic, .. } = params;
    let failed = |error| broker.failed(topic, &error);
    let consumer = consumer(broker).map_err(failed)?;
    let partitions = topic::partitions_within(broker, &consumer, topic, ANSWER_TIMEOUT)?;
    consumer.assign(&start(params, &consumer, &partitions).map_err(failed)?).map_err(failed)?;
    feed.found();
    let mut looked = Instant::now();
    while !end.is_asked() {
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            let message = message.map_err(failed)?;
            // One without a value deletes older ones of its key.
            if let Some(bytes) = message.payload() {
                feed.put(|| format!("partition {}, offset {}", message.partition(), message.offset()), bytes);
            }
        }
        if looked.elapsed() > LOOK {
            if topic::partitions_while_reading(broker, &consumer, topic, ANSWER_TIMEOUT)? != partitions {
                break;
            }
            looked = Instant::now();
        }
    }
    Ok(())
}

/// Where reading starts in each partition.
fn start(
    params: &Params,
    consumer: &BaseConsumer<ErrorContext>,
    partitions: &[i32],
) -> Result<TopicPartitionList, KafkaError> {
    let Params { topic, history, broker } = params;
    let since = match history {
        // The mock cluster finds no offsets by time.
        History::Last(span) if !broker.is_mock => {
            let since = Timestamp::now().micros().saturating_sub(micros(*span)) / 1000;
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
        let first = match since.as_ref().map(|since| since.find_partition(topic, *partition).map(|at| at.offset())) {
            None => low,
            Some(Some(Offset::Offset(offset))) => offset,
            // Nothing is so new.
            Some(_) => high,
        };
        let first = first.max(high.saturating_sub(MOST)).max(low);
        starts.add_partition_offset(topic, *partition, Offset::Offset(first))?;
    }
    Ok(starts)
}
