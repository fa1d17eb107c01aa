//! What every sink can do.

use super::error::Error;
use crate::ledger::Paid;

/// A place that synopses are published to.
pub trait Sink {
    /// Returns once the bytes are durable there; may be called again with the same bytes.
    ///
    /// # Errors
    ///
    /// After an error it is unknown whether they are; if the error is transient, the caller repeats with the same bytes.
    fn publish(&mut self, paid: &Paid) -> Result<(), Error>;

    /// Confirms that this is still the place that was opened. What was published before is there only if it is.
    ///
    /// # Errors
    ///
    /// If the place was removed or replaced, or does not answer.
    fn confirm(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
