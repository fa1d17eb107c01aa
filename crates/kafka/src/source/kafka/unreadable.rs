//! Batches that the client cannot unpack: a corrupt one, and one whose records unfold beyond its bounds. The client says that there
//! is one and fetches it again for ever, but not where it is: that is found by reading each partition alone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;

use super::params::KafkaSourceParams;
use super::partition_consumer::{SETTINGS, is_unreadable};
use super::topic_inspector::{TopicInspector, Watermarks};
use crate::ErrorContext;
use crate::broker::{REQUEST_TIMEOUT, close_client};
use crate::offsets::assign_partitions;
use crate::source::SourceError;
use crate::source::told::{HOW, RedactedReason};

/// Number of fetches of a batch before it counts as unreadable: a connection can corrupt one, too.
const MOST_TRIES: u32 = 3;
/// The pause between two of them.
const TRY_PAUSE: Duration = Duration::from_millis(200);

/// Offsets `from..to` of a partition that cannot be read.
pub(super) struct UnreadableBatch {
    pub partition: i32,
    pub from: i64,
    to: i64,
    why: KafkaError,
}

impl UnreadableBatch {
    /// Explains what happened and what to do.
    pub fn explain(&self, topic: &str) -> RedactedReason {
        let UnreadableBatch {
            partition,
            from,
            to,
            why,
        } = self;
        let last = to - 1;
        let words = format!(
            "a batch of partition {partition} of topic '{topic}' cannot be read ({why}): it is corrupt, or unfolds to more than the client \
             takes; to continue without it, add its offsets to 'lost' ({HOW})"
        );
        let in_full = format!(
            "the batch at offsets {from} to {last} of partition {partition} of topic '{topic}' cannot be read ({why}): it is corrupt, \
             or unfolds to more than the client takes; to continue without it, add {{ partition = {partition}, from = {from}, \
             to = {to} }} to 'lost' (if several batches near one another are corrupt, what lies between them is in there too)"
        );
        RedactedReason::new(words, in_full)
    }
}

/// The batch that stops one of the partitions, which go on at the offsets of `next`; `None` where all of them can be read now.
///
/// # Errors
///
/// If the cluster does not answer or refuses.
pub(super) fn find_unreadable(
    params: &KafkaSourceParams,
    inspector: &TopicInspector,
    next: &BTreeMap<i32, i64>,
) -> Result<Option<UnreadableBatch>, SourceError> {
    for (&partition, &from) in next {
        let Watermarks { low, high } = inspector.watermarks(partition)?;
        // Messages that are gone are no messages that cannot be read.
        if from < low || from >= high {
            continue;
        }
        let mut found = None;
        for _ in 0..MOST_TRIES {
            found = probe_offset(params, partition, from)?;
            if found.is_none() {
                break;
            }
            std::thread::sleep(TRY_PAUSE);
        }
        if let Some(why) = found {
            let to = batch_end(params, partition, from, high)?;
            return Ok(Some(UnreadableBatch {
                partition,
                from,
                to,
                why,
            }));
        }
    }
    Ok(None)
}

/// The offset behind the unreadable batch that has offset `from`: a fetch from anywhere in it gives all of it.
fn batch_end(
    params: &KafkaSourceParams,
    partition: i32,
    from: i64,
    high: i64,
) -> Result<i64, SourceError> {
    // Batches are mostly short.
    let mut bad = from;
    let mut good = high;
    let mut step = 1;
    while bad + step < high {
        if probe_offset(params, partition, bad + step)?.is_none() {
            good = bad + step;
            break;
        }
        bad += step;
        step *= 2;
    }
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        match probe_offset(params, partition, middle)? {
            None => good = middle,
            Some(_) => bad = middle,
        }
    }
    Ok(good)
}

/// Reads a partition from `offset` on: the error if what is there cannot be read, `None` if it can or if there is nothing.
fn probe_offset(
    params: &KafkaSourceParams,
    partition: i32,
    offset: i64,
) -> Result<Option<KafkaError>, SourceError> {
    let settings = [SETTINGS.as_slice(), &[("enable.partition.eof", "true")]].concat();
    let consumer = params.checked(params.broker.consumer(&settings))?;
    let start = BTreeMap::from([(partition, offset)]);
    params.checked(assign_partitions(&params.topic, &consumer, &start))?;
    let answer = poll_first(&consumer);
    close_client(consumer);
    match answer {
        Some(unreadable) => Ok(unreadable),
        None => Err(SourceError::Kafka(crate::ClusterError::Unavailable {
            servers: params.broker.servers.clone(),
            why: format!(
                "partition {partition} of topic '{}' could not be read",
                params.topic
            ),
        })),
    }
}

/// Waits for what comes first: the error of a batch that cannot be read, or none. `None` where nothing comes.
fn poll_first(consumer: &BaseConsumer<ErrorContext>) -> Option<Option<KafkaError>> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    loop {
        match consumer.poll(deadline.saturating_duration_since(Instant::now())) {
            Some(Ok(_) | Err(KafkaError::PartitionEOF(_))) => return Some(None),
            Some(Err(error)) if is_unreadable(&error) => return Some(Some(error)),
            Some(Err(_)) if Instant::now() < deadline => {}
            Some(Err(_)) | None => return None,
        }
    }
}
