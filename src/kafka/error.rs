//! Why a cluster did not do what it was asked to.

/// Why a request to a cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("kafka at {servers} does not answer: {why}")]
    Unavailable { servers: String, why: String },

    #[error("kafka at {servers} cannot be asked: {why}")]
    Setup { servers: String, why: String },

    #[error("kafka at {servers} and this program cannot work together: {why}")]
    Denied { servers: String, why: String },

    #[error("kafka at {servers} refused a request about topic '{topic}': {why}")]
    Refused { topic: String, servers: String, why: String },

    #[error(
        "there is no topic '{topic}' at {servers}: create an input topic with message.timestamp.type=LogAppendTime, as \
         `bernstream produce --create` does; `bernstream ledger init` makes the output and the witness"
    )]
    NoTopic { topic: String, servers: String },
}

impl Error {
    /// Whether trying again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unavailable { .. })
    }
}
