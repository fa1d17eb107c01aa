//! Why publishing fails.

use std::path::PathBuf;

/// Why publishing failed.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    #[error("a synopsis was not published: {0}")]
    Broker(#[from] crate::ClusterError),
    #[error(
        "the output topic '{topic}' takes no message of {bytes} bytes: raise its max.message.bytes, then start again"
    )]
    TooLarge { topic: String, bytes: usize },
    #[error(
        "the output topic '{topic}' was deleted while the worker ran, and the synopses in it are gone. Create it again, then \
         `bernstream ledger republish --all` sends those that the ledger still has, byte for byte, at no cost in privacy"
    )]
    Deleted { topic: String },
    #[error(
        "the output topic '{topic}' was deleted and created again while the worker ran, and the synopses in it are gone: \
         `bernstream ledger republish --all` sends those that the ledger still has (ledger.keep_published), byte for byte, at no cost \
         in privacy; a worker that is started again goes on with the next ones"
    )]
    Recreated { topic: String },
    #[error(
        "the output topic '{topic}' has cleanup.policy = {found}: a message has the key of its release, not of its window, so the \
         brokers delete windows that were published. To keep them: kafka-configs --bootstrap-server {servers} --alter \
         --entity-type topics --entity-name {topic} --add-config cleanup.policy=delete"
    )]
    Compacted {
        topic: String,
        found: String,
        servers: String,
    },
    #[error("a synopsis was not written to {path}: {why}")]
    File { path: PathBuf, why: String },
    #[error(
        "{path} exists with other contents, and a window is published once: another pipeline or ledger wrote it; \
         use another folder, or move the file away"
    )]
    Different { path: PathBuf },
    #[error("a synopsis has no header '{0}', which names its file")]
    Header(&'static str),
}

impl SinkError {
    /// Returns whether it says that the output topic is missing.
    pub fn is_missing(&self) -> bool {
        match self {
            SinkError::Broker(error) => error.is_missing(),
            SinkError::Deleted { .. } => true,
            _ => false,
        }
    }

    /// Returns whether to try again.
    pub fn is_transient(&self) -> bool {
        match self {
            SinkError::Broker(error) => error.is_transient(),
            SinkError::File { .. } => true,
            SinkError::Deleted { .. }
            | SinkError::Recreated { .. }
            | SinkError::TooLarge { .. }
            | SinkError::Compacted { .. }
            | SinkError::Different { .. }
            | SinkError::Header(_) => false,
        }
    }
}
