//! Offsets of a topic of one partition: where a consumer is, and which of those without a record are transaction markers.
//!
//! Whoever writes to a topic in a transaction leaves a marker behind, which has an offset and is never shown. Compaction, and a
//! damaged disk, leave offsets without records too. The client passes over both, but differently: its position stands behind a marker once
//! the marker has come, without a message, and jumps over what is gone only together with the message behind it. So each offset counts as
//! a marker only if a client that fetches one batch at a time has been seen to stop right behind it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use super::broker::{Broker, REQUEST_TIMEOUT, close_client};
use super::error_context::ErrorContext;

const PARTITION: i32 = 0;

/// One batch a fetch, and none fetched ahead of one that was not looked at: a marker is a batch of its own.
const SETTINGS: [(&str, &str); 7] = [
    ("group.id", "bernstream-markers"),
    ("enable.auto.commit", "false"),
    ("auto.offset.reset", "error"),
    ("isolation.level", "read_uncommitted"),
    ("max.partition.fetch.bytes", "1"),
    ("queued.min.messages", "1"),
    ("fetch.queue.backoff.ms", "20"),
];

/// Number of times that a marker is looked for: the batch behind it may come while the client passes it.
const MOST_TRIES: usize = 5;
const TRY_PAUSE: Duration = Duration::from_millis(1);

/// Contents of offsets that came without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OffsetContents {
    /// Nothing but transaction markers.
    Markers,
    /// A record after all.
    Record,
    /// The records that were there are gone.
    Gone,
    /// It did not answer in time.
    Unanswered,
}

/// Has `consumer` read `topic` from `offset` on.
///
/// # Errors
///
/// If the topic cannot be asked for.
pub fn assign_from(
    topic: &str,
    consumer: &BaseConsumer<ErrorContext>,
    offset: i64,
) -> Result<(), KafkaError> {
    // The client looks for the leader of an assigned partition once a second, unless it knows it.
    consumer.fetch_metadata(Some(topic), REQUEST_TIMEOUT)?;
    assign_partitions(topic, consumer, &BTreeMap::from([(PARTITION, offset)]))
}

/// Has `consumer` read each of these partitions of `topic` from its offset on.
///
/// # Errors
///
/// If the client refuses.
pub(crate) fn assign_partitions(
    topic: &str,
    consumer: &BaseConsumer<ErrorContext>,
    starts: &BTreeMap<i32, i64>,
) -> Result<(), KafkaError> {
    let mut list = TopicPartitionList::with_capacity(starts.len());
    for (partition, offset) in starts {
        list.add_partition_offset(topic, *partition, Offset::Offset(*offset))?;
    }
    consumer.assign(&list)
}

/// The offset behind everything that `consumer` has been given or has passed over: transaction markers are passed over. `None` before
/// the first.
///
/// # Errors
///
/// If the client has no positions.
pub fn passed_offset(
    topic: &str,
    consumer: &BaseConsumer<ErrorContext>,
) -> Result<Option<i64>, KafkaError> {
    let positions = consumer.position()?;
    let Some(partition) = positions.find_partition(topic, PARTITION) else {
        return Ok(None);
    };
    Ok(known_offset(partition.offset()))
}

/// The number of an offset; `None` of one that is only described, such as the end.
pub(crate) fn known_offset(offset: Offset) -> Option<i64> {
    match offset {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}

/// Looks at what the offsets `from..to` of `topic` have.
///
/// # Errors
///
/// If the topic cannot be read.
pub(super) fn look_at_offsets(
    broker: &Broker,
    topic: &str,
    from: i64,
    to: i64,
) -> Result<OffsetContents, KafkaError> {
    let consumer = broker.consumer(&SETTINGS)?;
    let found = pass_offsets(broker, topic, &consumer, from, to);
    close_client(consumer);
    found
}

fn pass_offsets(
    broker: &Broker,
    topic: &str,
    consumer: &BaseConsumer<ErrorContext>,
    from: i64,
    to: i64,
) -> Result<OffsetContents, KafkaError> {
    let mut at = from;
    for _ in 0..MOST_TRIES {
        assign_from(topic, consumer, at)?;
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        loop {
            // Without waiting: then at most one batch is passed.
            if let Some(message) = broker.poll_message(consumer, Duration::ZERO) {
                if message?.offset() < to {
                    return Ok(OffsetContents::Record);
                }
                break;
            }
            let passed = passed_offset(topic, consumer)?.unwrap_or(at);
            match passed - at {
                1 => at = passed,
                2.. => break,
                _ if Instant::now() > deadline => return Ok(OffsetContents::Unanswered),
                _ => thread::sleep(TRY_PAUSE),
            }
            if at >= to {
                return Ok(OffsetContents::Markers);
            }
        }
    }
    Ok(OffsetContents::Gone)
}
