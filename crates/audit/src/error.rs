//! Reasons why a replay cannot be carried out.

use bernstream_worker::pipeline;
use {bernstream_ledger as ledger, bernstream_noise as mechanism};

/// Reasons why a replay cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("a replay needs a folder for its ledger: {0}")]
    Folder(#[from] std::io::Error),
    #[error("a message of a replay cannot be written: {0}")]
    Message(#[from] arrow_schema::ArrowError),
    #[error("the metrics of a replay: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    #[error("a row of the ledger of a replay cannot be read: {0}")]
    Row(#[from] serde_json::Error),
    #[error(transparent)]
    Mechanism(#[from] mechanism::NoiseError),
    #[error("the worker of a replay stopped: {0}")]
    Worker(#[from] pipeline::PipelineError),
    #[error("a thread of a replay panicked")]
    Panicked,
}
