//! Why records cannot be read.

use crate::kafka;

/// Why reading failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kafka(#[from] kafka::Error),

    #[error(
        "topic '{topic}' carries the producers' timestamps, which they can bend: set message.timestamp.type=LogAppendTime \
         on the topic, or trust_producer_time = true to leave it to the producers which window a record belongs to"
    )]
    ProducerTime { topic: String },

    #[error("topic '{topic}' is compacted, so records vanish from it: set cleanup.policy=delete")]
    Compacted { topic: String },

    #[error(
        "the broker has deleted input that may be needed: topic '{topic}', partition {partition}, offsets {from} to {to}; \
         to go on without it, add {{ partition = {partition}, from = {from}, to = {to} }} to 'lost'"
    )]
    Deleted { topic: String, partition: i32, from: i64, to: i64 },

    #[error("topic '{topic}' is not the one that was read before, so it must have been created anew: {why}")]
    Recreated { topic: String, why: String },

    #[error("file {path}: {why}")]
    File { path: String, why: String },
}

impl Error {
    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Kafka(error) if error.is_transient())
    }
}
