//! The command line.

pub mod produce;

/// Why a command failed, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Configuration(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Ledger(String),
    #[error("{0}")]
    Other(String),
}
