//! The partitions that an absorber reads: Kafka's consumer group says, and nothing but the load depends on it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use bernstream_kafka::broker::close_client;
use bernstream_kafka::lost_client::LostClientWatch;
use bernstream_kafka::{Broker, ClusterError, ErrorContext};

/// For how long a member whose partitions were revoked goes on reading them: most come back with the next assignment, and what was
/// read of them would have to be read again.
const REASSIGNMENT_GRACE: Duration = Duration::from_secs(10);

/// The settings of a member, beside its group and its name.
const CLIENT_SETTINGS: [(&str, &str); 6] = [
    ("group.protocol", "classic"),
    ("enable.auto.commit", "false"),
    ("auto.offset.reset", "latest"),
    // Little is fetched before partitions are paused.
    ("queued.min.messages", "1"),
    ("queued.max.messages.kbytes", "64"),
    ("max.partition.fetch.bytes", "1024"),
];

/// A member of the group. It reads nothing: what is assigned is paused at once.
pub(super) struct GroupMembership {
    broker: Broker,
    topic: String,
    /// The settings of every client that joins.
    settings: Vec<(&'static str, String)>,
    consumer: BaseConsumer<ErrorContext>,
    watch: LostClientWatch,
    assigned: BTreeSet<i32>,
    /// Since when the group assigns nothing, while it deals the partitions out anew.
    empty_since: Option<Instant>,
}

impl GroupMembership {
    /// Joins `group`; as `member`, if it has a name that it keeps over a restart: then nobody takes its partitions meanwhile.
    ///
    /// # Errors
    ///
    /// If the client cannot be created.
    pub fn join_group(
        broker: &Broker,
        topic: &str,
        group: &str,
        member: Option<&str>,
    ) -> Result<Self, ClusterError> {
        let mut settings = vec![("group.id", group.to_owned())];
        settings.extend(member.map(|member| ("group.instance.id", member.to_owned())));
        Ok(GroupMembership {
            broker: broker.clone(),
            topic: topic.to_owned(),
            consumer: joined_consumer(broker, topic, &settings)
                .map_err(|error| broker.error_about(topic, &error))?,
            settings,
            watch: LostClientWatch::start(),
            assigned: BTreeSet::new(),
            empty_since: None,
        })
    }

    /// The partitions of this member, if they have changed.
    ///
    /// # Errors
    ///
    /// If the group refuses the member, or another process has joined under its name.
    pub fn changed_partitions(&mut self) -> Result<Option<&BTreeSet<i32>>, ClusterError> {
        while let Some(polled) = self.consumer.poll(Duration::ZERO) {
            match polled {
                Err(error @ KafkaError::MessageConsumptionFatal(_)) => {
                    let why = format!(
                        "the group does not take this absorber ({error}); give each one a --member of its own"
                    );
                    return Err(self.broker.refused_request(&self.topic, &why));
                }
                Err(
                    error @ KafkaError::MessageConsumption(
                        RDKafkaErrorCode::GroupAuthorizationFailed
                        | RDKafkaErrorCode::TopicAuthorizationFailed,
                    ),
                ) => return Err(self.broker.error_about(&self.topic, &error)),
                _ => {}
            }
        }
        if self
            .watch
            .check_lost(&self.broker, &self.consumer, &self.topic)
            && let Ok(new) = joined_consumer(&self.broker, &self.topic, &self.settings)
        {
            close_client(std::mem::replace(&mut self.consumer, new));
            self.watch = LostClientWatch::start();
        }
        let assignment = self
            .consumer
            .assignment()
            .map_err(|error| self.broker.error_about(&self.topic, &error))?;
        let now: BTreeSet<i32> = assignment
            .elements()
            .iter()
            .map(|element| element.partition())
            .collect();
        if now == self.assigned && self.empty_since.is_none() {
            return Ok(None);
        }
        if now.is_empty()
            && self.empty_since.get_or_insert_with(Instant::now).elapsed() < REASSIGNMENT_GRACE
        {
            return Ok(None);
        }
        self.empty_since = None;
        self.consumer
            .pause(&assignment)
            .map_err(|error| self.broker.error_about(&self.topic, &error))?;
        let has_changed = self.assigned != now;
        self.assigned = now;
        Ok(has_changed.then_some(&self.assigned))
    }
}

/// A client that has joined.
fn joined_consumer(
    broker: &Broker,
    topic: &str,
    settings: &[(&'static str, String)],
) -> Result<BaseConsumer<ErrorContext>, KafkaError> {
    let own: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let consumer = broker.consumer(&[&CLIENT_SETTINGS, own.as_slice()].concat())?;
    consumer.subscribe(&[topic])?;
    Ok(consumer)
}
