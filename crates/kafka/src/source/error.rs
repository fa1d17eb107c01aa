//! Why the input cannot be read.

use super::told::{HOW, RedactedReason};

/// Why the input cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    Kafka(#[from] crate::ClusterError),

    #[error(
        "topic '{topic}' has timestamps set by producers (CreateTime), which they can falsify: set \
         message.timestamp.type=LogAppendTime on the topic, or trust_producer_time = true to let the producers decide which \
         window a record belongs to"
    )]
    ProducerTime { topic: String },

    #[error(
        "topic '{topic}' has messages with times that their producers set (partition {partition}): they were sent while it had \
         message.timestamp.type=CreateTime, and no restart helps. Give them up by adding their offsets to 'lost' (`bernstream check` names \
         those that come first, and the log with serve.detail = \"operator\" where this one is), or begin a new ledger behind them"
    )]
    OlderStamp {
        topic: String,
        partition: i32,
        offset: i64,
    },

    #[error(
        "topic '{topic}' is compacted, so the broker removes records: set cleanup.policy=delete"
    )]
    Compacted { topic: String },

    #[error(
        "the broker has deleted input that may be needed: topic '{topic}', partition {partition}; to continue without it, add its offsets \
         to 'lost' ({HOW})"
    )]
    Deleted {
        topic: String,
        partition: i32,
        from: i64,
        to: i64,
    },

    #[error("topic '{topic}' was deleted and created again since it was last read: {why}")]
    Recreated { topic: String, why: RedactedReason },

    #[error(
        "partition {partition} of topic '{topic}' ends before what was read of it, and it is the same topic: its newest messages are gone, as \
         after a loss of power of its brokers or an unclean election of a leader, or the broker that answers lags. What was published stays. \
         Reading goes on by itself once the partition is as long again"
    )]
    Cut {
        topic: String,
        partition: i32,
        end: i64,
        read: i64,
    },

    #[error(
        "a client of {servers} that asks for the ends of topic '{topic}' hangs: for minutes it has told neither an answer nor an error; the input \
         is opened again with another one"
    )]
    Hanging { topic: String, servers: String },

    #[error(transparent)]
    Undeclared(#[from] crate::source::record::UndeclaredType),

    #[error("file {path}: {why}")]
    File { path: String, why: RedactedReason },

    #[error("the disk does not give file {path}: {why}; start again once it does")]
    Disk { path: String, why: String },
}

impl SourceError {
    /// This error in words with the numbers that follow from records; `None` if there are none in it.
    pub fn in_full(&self) -> Option<String> {
        match self {
            SourceError::Deleted {
                topic,
                partition,
                from,
                to,
            } => Some(format!(
                "topic '{topic}', partition {partition}: offsets {from} to {to} were deleted; to continue without them, add \
                 {{ partition = {partition}, from = {from}, to = {to} }} to 'lost'"
            )),
            SourceError::OlderStamp {
                topic,
                partition,
                offset,
            } => Some(format!(
                "topic '{topic}', partition {partition}: it is at offset {offset}"
            )),
            SourceError::Cut {
                topic,
                partition,
                end,
                read,
            } => Some(format!(
                "topic '{topic}', partition {partition} ends at offset {end}, but was read up to {read}"
            )),
            SourceError::Recreated { topic, why } => {
                Some(format!("topic '{topic}': {}", why.in_full()))
            }
            SourceError::File { path, why } => (why.in_full() != why.to_string())
                .then(|| format!("file {path}: {}", why.in_full())),
            _ => None,
        }
    }

    /// Returns whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, SourceError::Kafka(error) if error.is_transient())
            || matches!(self, SourceError::Cut { .. })
    }

    /// Returns whether a topic is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, SourceError::Kafka(error) if error.is_missing())
    }
}
