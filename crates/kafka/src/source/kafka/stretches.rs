//! Partitions that are taken up and given back one by one, each read from a time of its own: what an absorber reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::params::{KafkaSourceParams, check_topic};
use super::partition_consumer::{PartitionConsumer, PartitionProgress, ReadOutcome};
use super::start::{PartitionFacts, start_offset};
use super::topic_inspector::TopicInspector;
use super::{stamps, unreadable};
use crate::broker::close_client;
use crate::source::{SourceError, SourceEvent};
use crate::topic;
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;

/// Partitions of a topic, read by one client.
pub struct PartitionRanges {
    params: KafkaSourceParams,
    columns: Columns,
    id: String,
    /// Serves all that share a topic.
    inspector: Arc<TopicInspector>,
    partitions: usize,
    /// Number of readers that share a topic, and the room of the queues.
    readers: u32,
    consumer: Option<PartitionConsumer>,
    /// Where reading goes on, if the client must be replaced: messages that the old one fetched cannot appear again then.
    changed: Option<BTreeMap<i32, PartitionProgress>>,
    /// Batches that the old one had read and not returned.
    left: VecDeque<Batch>,
}

impl PartitionRanges {
    /// Checks the topic. Nothing is read before [`PartitionRanges::begin_partition`].
    ///
    /// # Errors
    ///
    /// If the topic cannot be an input, or the cluster does not answer or refuses.
    pub fn open(params: KafkaSourceParams, columns: Columns) -> Result<Self, SourceError> {
        let topic = topic::describe_topic(&params.broker, &params.topic)?;
        check_topic(&params, &topic)?;
        let inspector = Arc::new(TopicInspector::new(&params.broker, &params.topic)?);
        Ok(PartitionRanges {
            params,
            columns,
            id: topic.id,
            inspector,
            partitions: topic.partitions.len(),
            readers: 1,
            consumer: None,
            changed: None,
            left: VecDeque::new(),
        })
    }

    /// This topic for as many threads as the parameters say, but no more than it has partitions now.
    pub fn shared_readers(self) -> Vec<PartitionRanges> {
        let readers = self.params.readers_of(self.partitions);
        let mut shared = Vec::new();
        for _ in 0..readers {
            shared.push(PartitionRanges {
                params: self.params.clone(),
                columns: self.columns.clone(),
                id: self.id.clone(),
                inspector: Arc::clone(&self.inspector),
                partitions: self.partitions,
                readers,
                consumer: None,
                changed: None,
                left: VecDeque::new(),
            });
        }
        shared
    }

    /// The id of the topic that was opened.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads `partition` from the first message on that has a timestamp of at least `since`, which has passed. Those before the offset `past`
    /// have earlier ones.
    ///
    /// # Errors
    ///
    /// If messages that may be needed were deleted, if the topic was created again, or if the cluster does not answer or refuses.
    pub fn begin_partition(
        &mut self,
        partition: i32,
        since: Timestamp,
        past: i64,
    ) -> Result<(), SourceError> {
        self.inspector.partitions(&self.id, [partition])?;
        // What comes before the first that is late enough is looked for is behind it, and what is deleted until then counts as deleted.
        let end = self.inspector.watermarks(partition)?.high;
        let first = self.inspector.first_since(since, &[partition])?;
        stamps::refuse_producer_stamps(&self.params, &first)?;
        let facts = PartitionFacts {
            low: self.inspector.watermarks(partition)?.low,
            first: first.get(&partition).copied().flatten(),
            end,
            is_ahead: false,
            past,
        };
        let offset = start_offset(&self.params, partition, facts)?;
        self.next_partitions()
            .insert(partition, PartitionProgress::new(offset, since));
        self.left.retain(|batch| batch.partition != partition);
        Ok(())
    }

    /// Reads `partition` no more, if it was read.
    pub fn end_partition(&mut self, partition: i32) {
        // Whatever changes ends the client, which reads others too.
        if self.partition(partition).is_some() {
            self.next_partitions().remove(&partition);
        }
        self.left.retain(|batch| batch.partition != partition);
    }

    /// A partition that is read, or will be by the next client.
    fn partition(&self, partition: i32) -> Option<&PartitionProgress> {
        let partitions = match &self.changed {
            Some(changed) => changed,
            None => &self.consumer.as_ref()?.partitions,
        };
        partitions.get(&partition)
    }

    /// The partitions that the next client reads; ends the present one.
    fn next_partitions(&mut self) -> &mut BTreeMap<i32, PartitionProgress> {
        let consumer = &mut self.consumer;
        let left = &mut self.left;
        self.changed.get_or_insert_with(|| {
            let Some(mut old) = consumer.take() else {
                return BTreeMap::new();
            };
            left.extend(old.flush());
            let next = continued(&old.partitions);
            close_client(old);
            next
        })
    }

    /// The next event; partitions that have reached `until` are paused. After [`SourceEvent::Reset`] all partitions must begin again.
    ///
    /// # Errors
    ///
    /// If the topic cannot be read on.
    pub fn next_event(
        &mut self,
        until: &Positions,
        timeout: Duration,
    ) -> Result<SourceEvent, SourceError> {
        if let Some(batch) = self.left.pop_front() {
            return Ok(SourceEvent::Batch(batch));
        }
        if let Some(changed) = &self.changed {
            self.consumer = Some(PartitionConsumer::start(
                &self.params,
                &self.columns,
                self.readers,
                continued(changed),
            )?);
            self.changed = None;
        }
        let Some(consumer) = self
            .consumer
            .as_mut()
            .filter(|consumer| !consumer.partitions.is_empty())
        else {
            std::thread::sleep(timeout);
            return Ok(SourceEvent::Idle);
        };
        let failed = match consumer.next_event(&self.params, Some(until), timeout)? {
            ReadOutcome::Event(event) => return Ok(event),
            ReadOutcome::Unreadable(error) => error,
        };
        let found =
            unreadable::find_unreadable(&self.params, &self.inspector, &consumer.next_offsets());
        if let Ok(Some(found)) = found {
            let why = found.explain(&self.params.topic);
            consumer.stop(found.partition, found.from, why.clone());
            return Ok(SourceEvent::Stuck { why });
        }
        // The client may have passed messages over: without it reading starts again.
        let old = self.consumer.take();
        close_client(old);
        match found {
            Err(error) if !error.is_transient() => Err(error),
            _ => Ok(SourceEvent::Reset {
                why: format!(
                    "messages of topic '{}' were missed: {failed}",
                    self.params.topic
                )
                .into(),
            }),
        }
    }

    /// Returns whether a partition has stopped at a broken message.
    pub fn has_stopped(&self, partition: i32) -> bool {
        self.changed.is_none()
            && self
                .partition(partition)
                .is_some_and(PartitionProgress::has_stopped)
    }

    /// An offset behind everything of a partition that was returned.
    pub fn returned_offset(&self, partition: i32) -> i64 {
        self.partition(partition)
            .map_or(0, PartitionProgress::next_offset)
    }

    /// Returns whether everything of a partition before `end` was returned.
    ///
    /// # Errors
    ///
    /// If the position of the client cannot be read.
    pub fn has_reached(&self, partition: i32, end: i64) -> Result<bool, SourceError> {
        let Some(consumer) = self.consumer.as_ref().filter(|_| self.changed.is_none()) else {
            return Ok(false);
        };
        let Some(at) = consumer
            .partitions
            .get(&partition)
            .map(PartitionProgress::next_offset)
        else {
            return Ok(false);
        };
        if consumer.has_gathered() || self.left.iter().any(|batch| batch.partition == partition) {
            return Ok(false);
        }
        // The rest may be transaction markers, which are never returned.
        if at >= end || !consumer.is_idle {
            return Ok(at >= end);
        }
        let positions = self.params.checked(consumer.positions())?;
        Ok(positions.0.get(&partition).is_some_and(|at| *at >= end))
    }
}

/// These partitions for a new client, which begins behind everything that was returned.
fn continued(partitions: &BTreeMap<i32, PartitionProgress>) -> BTreeMap<i32, PartitionProgress> {
    let mut continued = BTreeMap::new();
    for (number, partition) in partitions {
        continued.insert(*number, partition.again());
    }
    continued
}
