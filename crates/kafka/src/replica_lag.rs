//! How far the brokers let a replica lag: a record is shown to consumers only when every replica that keeps up has it.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::admin::ResourceSpecifier;

use crate::broker::{Broker, REQUEST_TIMEOUT};
use crate::error::ClusterError;
use crate::topic::{admin_request, topic_metadata};

/// The setting of a broker.
pub const SETTING: &str = "replica.lag.time.max.ms";

/// The longest [`SETTING`] of the brokers that hold a topic; `None` where none of them tells, as for want of a right.
///
/// # Errors
///
/// If the topic does not exist, or the cluster does not answer.
pub fn longest_lag(broker: &Broker, topic: &str) -> Result<Option<Duration>, ClusterError> {
    if broker.is_mock {
        return Ok(None);
    }
    let client = broker.client_for(topic)?;
    let found = topic_metadata(broker, &client, topic, REQUEST_TIMEOUT)?;
    let partitions = found.topics().iter().flat_map(|topic| topic.partitions());
    let holders: BTreeSet<i32> = partitions
        .flat_map(|partition| partition.replicas())
        .copied()
        .collect();
    let mut longest = None;
    for holder in holders {
        // A request to describe brokers goes to the broker itself, so there is one for each.
        let resource = ResourceSpecifier::Broker(holder);
        let told = admin_request(broker, topic, async |admin, options| {
            admin.describe_configs([&resource], &options).await
        });
        let entries = match told {
            Ok(resources) => resources
                .into_iter()
                .filter_map(Result::ok)
                .flat_map(|resource| resource.entries),
            Err(ClusterError::Refused { .. }) => continue,
            Err(error) => return Err(error),
        };
        let told = entries
            .filter(|entry| entry.name == SETTING)
            .filter_map(|entry| entry.value?.parse().ok());
        longest = longest.max(told.map(Duration::from_millis).max());
    }
    Ok(longest)
}
