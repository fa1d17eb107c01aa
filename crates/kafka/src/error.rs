//! Why a request to a cluster failed.

use super::right::TopicRight;

/// The error of every request to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("kafka at {servers} does not answer: {why}")]
    Unavailable { servers: String, why: String },

    #[error(
        "kafka at {servers} does not know all of topic '{topic}' yet: {why}; if that does not end, the topic was made anew with fewer \
         partitions, and the pipeline needs a new ledger"
    )]
    Lagging {
        topic: String,
        servers: String,
        why: String,
    },

    #[error(
        "kafka at {servers} does not give this user the right {right} on topic '{topic}': whoever administers the brokers has to \
         (kafka-acls, or what your cluster has instead)"
    )]
    NoRight {
        topic: String,
        servers: String,
        right: TopicRight,
    },

    #[error("the client for kafka at {servers} cannot be created: {why}")]
    Setup { servers: String, why: String },

    #[error("cannot connect to kafka at {servers}: {why}")]
    Denied { servers: String, why: String },

    #[error("kafka at {servers} refused a request about topic '{topic}': {why}")]
    Refused {
        topic: String,
        servers: String,
        why: String,
    },

    #[error(
        "topic '{topic}' cannot tell the brokers' time: it has {found} and needs {needed}; set it, or name another topic as \
         input.kafka.clock"
    )]
    NoClock {
        topic: String,
        found: String,
        needed: String,
    },

    #[error(
        "topic '{topic}' at {servers}, which tells the brokers' time, was deleted; start the worker again, which creates it, and \
         nothing is lost"
    )]
    ClockGone { topic: String, servers: String },

    #[error(
        "there is no topic '{topic}' at {servers}: if it is the input, create it with message.timestamp.type=LogAppendTime, as \
         `bernstream produce --create` does; `bernstream ledger init` creates the output and witness topics"
    )]
    NoTopic { topic: String, servers: String },
}

impl ClusterError {
    /// Returns whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            ClusterError::Unavailable { .. } | ClusterError::Lagging { .. }
        )
    }

    /// Returns whether a topic is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, ClusterError::NoTopic { .. })
    }
}
