//! Topic metadata: id, partitions and settings.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataPartition, MetadataTopic};
use rdkafka::{Offset, TopicPartitionList};

use crate::broker::{Broker, REQUEST_TIMEOUT};
use crate::error::ClusterError;
use crate::error_context::ErrorContext;
use crate::right::TopicRight;
pub(crate) use crate::topic_id::{TopicDescription, describe_partitions};

/// The id of a topic at brokers that give topics none: Apache Kafka before 2.8, and others.
pub const NO_ID: &str = "00000000000000000000000000000000";

/// A topic as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Changes when the topic is deleted and created again; [`NO_ID`] from a broker without topic ids.
    pub id: String,
    /// The numbers of its partitions, ascending.
    pub partitions: Vec<i32>,
    /// Every setting with its effective value, defaults included; empty for a mock cluster.
    pub settings: BTreeMap<String, String>,
    /// Rights of the user of the connection.
    pub rights: BTreeSet<TopicRight>,
}

/// Looks up id, partitions and settings; never creates the topic.
///
/// # Errors
///
/// If the topic does not exist, if its settings may not be read, or if the cluster does not answer or refuses.
pub fn describe_topic(broker: &Broker, topic: &str) -> Result<TopicMetadata, ClusterError> {
    let client = broker.client_for(topic)?;
    let partitions = partitions(broker, &client, topic)?;
    let TopicDescription { id, rights, .. } =
        describe_partitions(broker, client.client(), topic, REQUEST_TIMEOUT)?;
    let settings = if broker.is_mock {
        BTreeMap::new()
    } else {
        topic_settings(broker, topic)?
    };
    // The client tells of a right that is missing by naming no setting.
    if settings.is_empty() && !broker.is_mock {
        let topic = topic.to_owned();
        let servers = broker.servers.clone();
        return Err(ClusterError::NoRight {
            topic,
            servers,
            right: TopicRight::DescribeConfigs,
        });
    }
    Ok(TopicMetadata {
        id,
        partitions,
        settings,
        rights,
    })
}

/// Creates a topic and waits until it can be used.
///
/// # Errors
///
/// If the topic already exists, or the cluster does not answer or refuses.
pub fn create_topic(
    broker: &Broker,
    topic: &str,
    partitions: i32,
    replication: i32,
    settings: &[(&str, &str)],
) -> Result<(), ClusterError> {
    let client = broker.client_for(topic)?;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    // An administration request does not report why no broker answers; and one that has just started answers before it takes replicas.
    while topic_metadata(broker, &client, topic, REQUEST_TIMEOUT)?
        .brokers()
        .is_empty()
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(replication));
    for (name, value) in settings {
        new = new.set(name, value);
    }
    let results = admin_request(broker, topic, async |admin, options| {
        admin.create_topics([&new], &options).await
    })?;
    if let Some(Err((_, code))) = results.into_iter().next() {
        return Err(match code {
            RDKafkaErrorCode::TopicAlreadyExists => broker.refused_request(topic, "it already exists"),
            RDKafkaErrorCode::InvalidReplicationFactor => broker.refused_request(
                topic,
                &format!(
                    "{replication} replicas are more than the cluster has brokers; for a trial on one broker set \
                     witness_min_insync_replicas = 1 in [output.kafka]"
                ),
            ),
            code => broker.error_about(topic, &KafkaError::AdminOp(code)),
        });
    }
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    loop {
        match check_usable(broker, &client, topic) {
            Err(ClusterError::NoTopic { .. } | ClusterError::Unavailable { .. })
                if Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            state => return state,
        }
    }
}

/// Fails where a new topic cannot be used yet.
fn check_usable(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
) -> Result<(), ClusterError> {
    let numbers = partitions(broker, client, topic)?;
    describe_partitions(broker, client.client(), topic, REQUEST_TIMEOUT)?;
    // Until a leader is elected, requests about a partition fail.
    for number in numbers {
        client
            .fetch_watermarks(topic, number, REQUEST_TIMEOUT)
            .map_err(|error| broker.error_about(topic, &error))?;
    }
    check_known_everywhere(broker, client, topic)
}

/// Fails where a broker does not know the topic yet: each learns of it by itself, and the next client may ask any of them.
fn check_known_everywhere(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
) -> Result<(), ClusterError> {
    let metadata = topic_metadata(broker, client, topic, REQUEST_TIMEOUT)?;
    if metadata.brokers().len() <= 1 {
        return Ok(());
    }
    for each in metadata.brokers() {
        let mut one = broker.clone();
        one.servers = format!("{}:{}", each.host(), each.port());
        let client = one
            .consumer(&[])
            .map_err(|error| broker.error_about(topic, &error))?;
        match partitions(&one, &client, topic) {
            // One that is down learns of it before it answers again.
            Ok(_) | Err(ClusterError::Unavailable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Metadata by a client without an assignment.
pub(super) fn topic_metadata(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
    timeout: Duration,
) -> Result<Metadata, ClusterError> {
    let metadata = broker.first_request(client, timeout, |timeout| {
        client.fetch_metadata(Some(topic), timeout)
    });
    metadata.map_err(|e| broker.error_about(topic, &e))
}

/// The partitions of a topic, ascending, by a client without an assignment.
///
/// # Errors
///
/// If the topic does not exist, or the cluster does not answer or refuses.
pub fn partitions(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
) -> Result<Vec<i32>, ClusterError> {
    partitions_within(broker, client, topic, REQUEST_TIMEOUT)
}

/// Number of replicas of each partition of a topic; the largest, where they differ.
///
/// # Errors
///
/// If the topic does not exist, or the cluster does not answer or refuses.
pub fn replica_count(broker: &Broker, topic: &str) -> Result<i32, ClusterError> {
    let client = broker.client_for(topic)?;
    let metadata = topic_metadata(broker, &client, topic, REQUEST_TIMEOUT)?;
    partition_numbers(broker, topic, &metadata)?;
    let partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
    let most = partitions
        .map(|partition| partition.replicas().len())
        .max()
        .unwrap_or(1);
    Ok(i32::try_from(most).unwrap_or(i32::MAX))
}

/// Number of brokers that a cluster has now.
///
/// # Errors
///
/// If it does not answer or refuses.
pub fn broker_count(broker: &Broker) -> Result<usize, ClusterError> {
    let client = broker.client_for("")?;
    let metadata = broker.first_request(&client, REQUEST_TIMEOUT, |timeout| {
        client.fetch_metadata(None, timeout)
    });
    match metadata {
        Ok(metadata) => Ok(metadata.brokers().len()),
        Err(error) => Err(broker.error_about("", &error)),
    }
}

/// Does what [`partitions`] does, with another timeout.
///
/// # Errors
///
/// As for [`partitions`].
pub fn partitions_within(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
    timeout: Duration,
) -> Result<Vec<i32>, ClusterError> {
    let metadata = topic_metadata(broker, client, topic, timeout)?;
    partition_numbers(broker, topic, &metadata)
}

/// Does what [`partitions`] does, by a client that is reading the topic.
///
/// # Errors
///
/// As for [`partitions`].
pub fn partitions_while_reading(
    broker: &Broker,
    client: &BaseConsumer<ErrorContext>,
    topic: &str,
    timeout: Duration,
) -> Result<Vec<i32>, ClusterError> {
    let metadata = client
        .fetch_metadata(Some(topic), timeout)
        .map_err(|error| broker.error_about(topic, &error))?;
    partition_numbers(broker, topic, &metadata)
}

fn partition_numbers(
    broker: &Broker,
    topic: &str,
    metadata: &Metadata,
) -> Result<Vec<i32>, ClusterError> {
    let mut partitions = Vec::new();
    if let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) {
        if let Some(error) = found.error() {
            return Err(broker.error_about(topic, &KafkaError::MetadataFetch(error.into())));
        }
        partitions.extend(found.partitions().iter().map(MetadataPartition::id));
    }
    partitions.sort_unstable();
    if partitions.is_empty() {
        return Err(ClusterError::NoTopic {
            topic: topic.to_owned(),
            servers: broker.servers.clone(),
        });
    }
    Ok(partitions)
}

/// Every setting of a topic with its effective value, defaults included.
///
/// # Errors
///
/// If the cluster does not answer or refuses.
pub(crate) fn topic_settings(
    broker: &Broker,
    topic: &str,
) -> Result<BTreeMap<String, String>, ClusterError> {
    let resource = ResourceSpecifier::Topic(topic);
    let found = admin_request(broker, topic, async |admin, options| {
        admin.describe_configs([&resource], &options).await
    })?;
    let mut settings = BTreeMap::new();
    for resource in found {
        let resource =
            resource.map_err(|code| broker.error_about(topic, &KafkaError::AdminOp(code)))?;
        for entry in resource.entries {
            if let Some(value) = entry.value {
                settings.insert(entry.name, value);
            }
        }
    }
    Ok(settings)
}

/// Deletes the records before these offsets of a topic, in all replicas.
///
/// # Errors
///
/// If the cluster does not answer or refuses, for one of the partitions too.
pub fn delete_before(
    broker: &Broker,
    topic: &str,
    before: &BTreeMap<i32, i64>,
) -> Result<(), ClusterError> {
    let mut list = TopicPartitionList::new();
    for (number, offset) in before {
        let added = list.add_partition_offset(topic, *number, Offset::Offset(*offset));
        added.map_err(|error| broker.error_about(topic, &error))?;
    }
    let done = admin_request(broker, topic, async |admin, options| {
        admin.delete_records(&list, &options).await
    })?;
    for partition in done.elements() {
        partition
            .error()
            .map_err(|error| broker.error_about(topic, &error))?;
    }
    Ok(())
}

/// Waits for one administration request.
pub(super) fn admin_request<T>(
    broker: &Broker,
    topic: &str,
    request: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, AdminOptions) -> Result<T, KafkaError>,
) -> Result<T, ClusterError> {
    let admin = broker.client_config().and_then(|config| config.create());
    let admin: AdminClient<_> = admin.map_err(|e| broker.error_about(topic, &e))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|e| ClusterError::Unavailable {
            servers: broker.servers.clone(),
            why: e.to_string(),
        })?;
    let options = AdminOptions::new()
        .request_timeout(Some(REQUEST_TIMEOUT))
        .operation_timeout(Some(REQUEST_TIMEOUT));
    let answer = runtime.block_on(request(&admin, options));
    // Closing takes 100 ms, so it happens in the background.
    std::thread::spawn(move || drop(admin));
    answer.map_err(|e| broker.error_about(topic, &e))
}
