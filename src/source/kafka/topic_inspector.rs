//! Questions about a topic, asked by a client that does not read it.

use std::collections::BTreeMap;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use crate::clock::Timestamp;
use crate::kafka::broker::REQUEST_TIMEOUT;
use crate::kafka::{self, Broker, ErrorContext, topic};
use crate::source::Error;

/// A client for questions about a topic: it sees what transactions have not committed yet.
pub(super) struct TopicInspector {
    pub broker: Broker,
    pub topic: String,
    client: BaseConsumer<ErrorContext>,
}

impl TopicInspector {
    pub fn new(broker: &Broker, topic: &str) -> Result<Self, Error> {
        let client = broker.consumer(&[("isolation.level", "read_uncommitted")]);
        let client = client.map_err(|e| broker.failed(topic, &e))?;
        Ok(TopicInspector { broker: broker.clone(), topic: topic.to_owned(), client })
    }

    /// The partitions, after making sure that the topic is still the one with this id.
    pub fn partitions(&self, id: &str) -> Result<Vec<i32>, Error> {
        // First what tells why nobody answers.
        let partitions = topic::partitions(&self.broker, &self.client, &self.topic)?;
        let found = topic::id(&self.broker, self.client.client(), &self.topic)?;
        if found != id {
            let why = format!("its id was {id} and is {found}");
            return Err(Error::Recreated { topic: self.topic.clone(), why });
        }
        Ok(partitions)
    }

    /// The first offset that is kept, and the one after the last.
    pub fn watermarks(&self, partition: i32) -> Result<(i64, i64), kafka::Error> {
        self.client
            .fetch_watermarks(&self.topic, partition, REQUEST_TIMEOUT)
            .map_err(|e| self.broker.failed(&self.topic, &e))
    }

    /// The first message of each partition that has a timestamp of at least `time`, if there is one.
    pub fn first_since(&self, time: Timestamp, partitions: &[i32]) -> Result<BTreeMap<i32, Option<i64>>, kafka::Error> {
        let failed = |e| self.broker.failed(&self.topic, &e);
        let mut question = TopicPartitionList::with_capacity(partitions.len());
        // Negative times have meanings of their own.
        let millis = time.micros().div_euclid(1000).max(0);
        for partition in partitions {
            question.add_partition_offset(&self.topic, *partition, Offset::Offset(millis)).map_err(failed)?;
        }
        let answer = self.client.offsets_for_times(question, REQUEST_TIMEOUT).map_err(failed)?;
        let offset = |offset| if let Offset::Offset(offset) = offset { Some(offset) } else { None };
        answer
            .elements()
            .iter()
            .map(|found| found.error().map(|()| (found.partition(), offset(found.offset()))).map_err(failed))
            .collect()
    }
}
