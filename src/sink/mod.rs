//! Where synopses go: accepts only what was paid for.

pub mod files;
pub mod kafka;

use crate::ledger::Paid;

/// A place that synopses are published to.
pub trait Sink {
    /// Returns once the bytes are durable there; may be called again with the same bytes.
    fn publish(&mut self, paid: &Paid) -> Result<(), Error>;
}

/// Why publishing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("placeholder {0}")]
    Placeholder(String),
}
