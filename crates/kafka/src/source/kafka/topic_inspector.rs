//! Partitions and offsets of a topic, by a client that does not read it.

use std::collections::BTreeMap;

use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use crate::offsets::known_offset;
use crate::source::SourceError;
use crate::topic::TopicDescription;
use crate::{Broker, MetadataClient, topic};
use bernstream_synopsis::clock::Timestamp;

/// A client for metadata and offsets of a topic. It also sees messages of transactions that are not committed yet.
pub(super) struct TopicInspector {
    pub broker: Broker,
    pub topic: String,
    inspector: MetadataClient,
}

/// Where a partition begins and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermarks {
    /// The first offset.
    pub low: i64,
    /// The offset after the last.
    pub high: i64,
}

impl TopicInspector {
    /// # Errors
    ///
    /// If the client cannot be created.
    pub fn new(broker: &Broker, topic: &str) -> Result<Self, SourceError> {
        Ok(TopicInspector {
            broker: broker.clone(),
            topic: topic.to_owned(),
            inspector: MetadataClient::new(broker, topic)?,
        })
    }

    /// The partitions of the topic, and among them those that were `seen` before: without one that the answering broker does not know yet, a
    /// window would close and its records be lost.
    ///
    /// # Errors
    ///
    /// If the topic does not have this id any more, if a partition is missing, or if the cluster does not answer or refuses.
    pub fn partitions(
        &self,
        id: &str,
        seen: impl IntoIterator<Item = i32>,
    ) -> Result<Vec<i32>, SourceError> {
        // This request first: it finds out why no broker answers.
        let partitions = self.inspector.ask(|client, timeout| {
            topic::partitions_within(&self.broker, client, &self.topic, timeout)
        })?;
        let TopicDescription {
            id: found,
            partitions: count,
            ..
        } = self.inspector.ask(|client, timeout| {
            topic::describe_partitions(&self.broker, client.client(), &self.topic, timeout)
        })?;
        if found != id {
            let why = format!("its id was {id} and is {found}");
            return Err(SourceError::Recreated {
                topic: self.topic.clone(),
                why: why.into(),
            });
        }
        // Each may have been answered by another broker.
        let why = if count != partitions.len() && !self.broker.is_mock {
            format!(
                "one broker has {} partitions and another one {count}",
                partitions.len()
            )
        } else if let Some(missing) = seen.into_iter().find(|number| !partitions.contains(number)) {
            format!("partition {missing} is missing")
        } else {
            return Ok(partitions);
        };
        Err(SourceError::Kafka(crate::ClusterError::Lagging {
            topic: self.topic.clone(),
            servers: self.broker.servers.clone(),
            why,
        }))
    }

    /// The first offset, and the one after the last.
    ///
    /// # Errors
    ///
    /// If the cluster does not answer or refuses.
    pub fn watermarks(&self, partition: i32) -> Result<Watermarks, crate::ClusterError> {
        let answer = self
            .inspector
            .ask(|client, timeout| client.fetch_watermarks(&self.topic, partition, timeout));
        let (low, high) = self.checked(answer)?;
        Ok(Watermarks { low, high })
    }

    fn checked<T>(&self, answer: KafkaResult<T>) -> Result<T, crate::ClusterError> {
        answer.map_err(|error| self.broker.error_about(&self.topic, &error))
    }

    /// The offset after the last of each partition.
    ///
    /// # Errors
    ///
    /// If the cluster does not answer or refuses.
    pub fn end_offsets(
        &self,
        partitions: &[i32],
    ) -> Result<BTreeMap<i32, i64>, crate::ClusterError> {
        let mut ends = BTreeMap::new();
        for partition in partitions {
            ends.insert(*partition, self.watermarks(*partition)?.high);
        }
        Ok(ends)
    }

    /// The first offset of each partition whose message has a timestamp of at least `time`, if there is one.
    ///
    /// # Errors
    ///
    /// If the cluster does not answer or refuses.
    pub fn first_since(
        &self,
        time: Timestamp,
        partitions: &[i32],
    ) -> Result<BTreeMap<i32, Option<i64>>, crate::ClusterError> {
        let mut request = TopicPartitionList::with_capacity(partitions.len());
        // Negative timestamps have special meanings in this request.
        let millis = time.micros().div_euclid(1000).max(0);
        for partition in partitions {
            let time = Offset::Offset(millis);
            self.checked(request.add_partition_offset(&self.topic, *partition, time))?;
        }
        let answer = self
            .inspector
            .ask(|client, timeout| client.offsets_for_times(request.clone(), timeout));
        let mut offsets = BTreeMap::new();
        for found in self.checked(answer)?.elements() {
            self.checked(found.error())?;
            offsets.insert(found.partition(), known_offset(found.offset()));
        }
        Ok(offsets)
    }
}
