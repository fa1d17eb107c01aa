//! What every sink can do.

use super::error::SinkError;
use super::tail::OutputTail;
use bernstream_ledger::{Paid, PublishedMessage};

/// A place that synopses are published to.
pub trait Sink {
    /// Returns once the bytes of all messages are durable there; may be called again with the same bytes. The messages are of one
    /// window, each of another release or key, so that they may arrive in any order.
    ///
    /// # Errors
    ///
    /// [`Unpublished`] says how many are durable; if its error is transient, the caller repeats the others with the same bytes.
    fn publish(&mut self, paid: &[Paid]) -> Result<(), Unpublished>;

    /// Confirms that this is still the place that was opened. What was published before is there only if it is.
    ///
    /// # Errors
    ///
    /// If the place was removed or replaced, or does not answer.
    fn confirm_place(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// The end of what is there, back to where each key of `newest` is met, the newest row that is known to be published; `None` if it may
    /// not be read.
    ///
    /// # Errors
    ///
    /// If the place cannot be reached.
    fn read_tail(&mut self, _newest: &[PublishedMessage]) -> Result<Option<OutputTail>, SinkError> {
        Ok(None)
    }
}

/// Why messages were not published.
#[derive(Debug)]
pub struct Unpublished {
    /// Number of the first messages that are durable; of the others it is unknown.
    pub durable: usize,
    pub error: SinkError,
}
