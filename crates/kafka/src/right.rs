//! What brokers let the user of a connection do with a topic.

use std::collections::BTreeSet;
use std::fmt;

use rdkafka::bindings::rd_kafka_AclOperation_t as Operation;

/// An operation on a topic, by its name at Kafka. Without `Describe` brokers say that there is no such topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicRight {
    Read,
    Write,
    Delete,
    DescribeConfigs,
}

impl TopicRight {
    pub const ALL: [TopicRight; 4] = [
        TopicRight::Read,
        TopicRight::Write,
        TopicRight::Delete,
        TopicRight::DescribeConfigs,
    ];

    fn operation(self) -> Operation {
        match self {
            TopicRight::Read => Operation::RD_KAFKA_ACL_OPERATION_READ,
            TopicRight::Write => Operation::RD_KAFKA_ACL_OPERATION_WRITE,
            TopicRight::Delete => Operation::RD_KAFKA_ACL_OPERATION_DELETE,
            TopicRight::DescribeConfigs => Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS,
        }
    }

    /// The rights in a list of operations; all of them for an empty one, which comes from brokers that do not say (before Apache Kafka 2.3).
    pub(super) fn from_operations(operations: &[u32]) -> BTreeSet<TopicRight> {
        if operations.is_empty() {
            return TopicRight::ALL.into();
        }
        TopicRight::ALL
            .into_iter()
            .filter(|right| operations.contains(&(right.operation() as u32)))
            .collect()
    }
}

impl fmt::Display for TopicRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
