//! Where records come from: Kafka, or a folder of files. Bytes in, [`Batch`] out, and how far to read.

mod error;
pub mod files;
pub mod folder;
pub mod kafka;
pub mod lines;
pub mod record;
pub mod registry;
pub mod told;

use std::time::Duration;

pub use bernstream_release::source::batch::Batch;

pub use self::error::SourceError;

pub use bernstream_synopsis::positions::{Positions, RecordedPositions};

pub use self::told::RedactedReason;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

/// Event that a source returns.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every event is a batch, and there is one at a time"
)]
pub enum SourceEvent {
    Batch(Batch),
    /// Nothing arrived within the timeout.
    Idle,
    /// A broken message was skipped, as configured.
    Skipped {
        why: RedactedReason,
    },
    /// Records that were read so far may have gaps or duplicates: drop all state and [`RecordSource::rewind`].
    Reset {
        why: RedactedReason,
    },
    /// A partition has stopped at a broken message until the configuration skips it; the other partitions are read on. Repeated
    /// whenever there is nothing else to return.
    Stuck {
        why: RedactedReason,
    },
}

/// An input that records are read from.
pub trait RecordSource {
    /// The clock by which its windows close, and by which they must be published.
    fn clock(&self) -> ScheduleClock;

    /// Goes back to before every record whose message timestamp is at least `since` (files: to the start).
    ///
    /// `recorded` is how far it was read for the windows in the ledger. An input that ends before that is not the same input.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, is not the one that was read before, or has lost records that may be needed.
    fn rewind(&mut self, since: Timestamp, recorded: &RecordedPositions)
    -> Result<(), SourceError>;

    /// The next event. Partitions that have reached `until` are paused.
    ///
    /// # Errors
    ///
    /// If the input cannot be read on.
    fn next_event(
        &mut self,
        until: Option<&Positions>,
        timeout: Duration,
    ) -> Result<SourceEvent, SourceError>;

    /// The end offsets of the records with a message timestamp before `cutoff`, once they are known. The first call requests
    /// them; they are taken some time after the cutoff, so ask for the next cutoff early.
    ///
    /// # Errors
    ///
    /// If the input cannot be asked.
    fn end_offsets(&mut self, cutoff: Timestamp) -> Result<Option<Positions>, SourceError>;

    /// Returns whether everything before `ends` has been returned.
    ///
    /// # Errors
    ///
    /// If the position of the consumer cannot be read.
    fn has_reached(&self, ends: &Positions) -> Result<bool, SourceError>;

    /// Returns whether the input answered the latest request.
    fn is_connected(&self) -> bool;
}
