//! Which partitions an absorber reads: Kafka's consumer group says, and nothing but the load depends on it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::kafka::{Broker, Error, ErrorContext};

/// For how long a member whose partitions were revoked goes on reading them: most come back with the next assignment, and what was
/// read of them would have to be read again.
const DEALT: Duration = Duration::from_secs(10);

/// A member of the group. It reads nothing: what is assigned is paused at once.
pub(super) struct Membership {
    broker: Broker,
    topic: String,
    consumer: BaseConsumer<ErrorContext>,
    assigned: BTreeSet<i32>,
    /// Since when the group assigns nothing, while it deals the partitions out anew.
    empty_since: Option<Instant>,
}

impl Membership {
    /// Joins `group`; as `member`, if it has a name that it keeps over a restart: then nobody takes its partitions meanwhile.
    ///
    /// # Errors
    ///
    /// If the client cannot be created.
    pub fn join(broker: &Broker, topic: &str, group: &str, member: Option<&str>) -> Result<Self, Error> {
        let mut settings = vec![
            ("group.id", group),
            ("group.protocol", "classic"),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "latest"),
            // Little is fetched before partitions are paused.
            ("queued.min.messages", "1"),
            ("queued.max.messages.kbytes", "64"),
            ("max.partition.fetch.bytes", "1024"),
        ];
        settings.extend(member.map(|member| ("group.instance.id", member)));
        let failed = |error| broker.failed(topic, &error);
        let consumer = broker.consumer(&settings).map_err(failed)?;
        consumer.subscribe(&[topic]).map_err(failed)?;
        Ok(Membership {
            broker: broker.clone(),
            topic: topic.to_owned(),
            consumer,
            assigned: BTreeSet::new(),
            empty_since: None,
        })
    }

    /// The partitions of this member, if they have changed.
    ///
    /// # Errors
    ///
    /// If the group refuses the member, or another process has joined under its name.
    pub fn changed(&mut self) -> Result<Option<&BTreeSet<i32>>, Error> {
        while let Some(polled) = self.consumer.poll(Duration::ZERO) {
            match polled {
                Err(error @ KafkaError::MessageConsumptionFatal(_)) => {
                    let why =
                        format!("the group does not take this absorber ({error}); give each one a --member of its own");
                    return Err(self.broker.refused(&self.topic, &why));
                }
                Err(
                    error @ KafkaError::MessageConsumption(
                        RDKafkaErrorCode::GroupAuthorizationFailed | RDKafkaErrorCode::TopicAuthorizationFailed,
                    ),
                ) => return Err(self.broker.failed(&self.topic, &error)),
                _ => {}
            }
        }
        let assignment = self.consumer.assignment().map_err(|error| self.broker.failed(&self.topic, &error))?;
        let now: BTreeSet<i32> = assignment.elements().iter().map(|element| element.partition()).collect();
        if now == self.assigned && self.empty_since.is_none() {
            return Ok(None);
        }
        if now.is_empty() && self.empty_since.get_or_insert_with(Instant::now).elapsed() < DEALT {
            return Ok(None);
        }
        self.empty_since = None;
        self.consumer.pause(&assignment).map_err(|error| self.broker.failed(&self.topic, &error))?;
        let has_changed = self.assigned != now;
        self.assigned = now;
        Ok(has_changed.then_some(&self.assigned))
    }
}
