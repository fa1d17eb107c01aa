//! Where records come from: Kafka, or a folder of files. Bytes in, [`Batch`] out, and how far to read.

mod batch;
mod broken;
pub mod decode;
#[cfg(feature = "worker")]
mod error;
#[cfg(feature = "worker")]
pub mod files;
#[cfg(feature = "worker")]
pub mod kafka;
pub(crate) mod rows;

use std::collections::BTreeMap;
#[cfg(feature = "worker")]
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::batch::{Batch, Columns, Text};
pub use self::broken::Broken;
#[cfg(feature = "worker")]
pub use self::error::Error;
#[cfg(feature = "worker")]
use crate::clock::Timestamp;

/// One offset a partition: the next offset to read, or the one before which a window's records lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(pub BTreeMap<i32, i64>);

/// What a source has to say.
#[cfg(feature = "worker")]
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a batch, and there is one at a time")]
pub enum Event {
    Batch(Batch),
    /// Nothing came within the given patience.
    Idle,
    /// A broken message was passed over, as the configuration wants.
    Skipped {
        why: String,
    },
    /// What was read so far may have holes or doubles: drop all state and [`Source::rewind`].
    Reset {
        why: String,
    },
    /// A partition is not read past a broken message until the configuration says to skip it; the others are. Said again
    /// whenever there is nothing else to say.
    Stuck {
        why: String,
    },
}

/// A place that records are read from.
#[cfg(feature = "worker")]
pub trait Source {
    /// Goes back to before every record whose message timestamp is at least `since` (files: to the start).
    ///
    /// `recorded` are the end offsets of the newest window in the ledger: an input that ends before them is another one.
    fn rewind(&mut self, since: Timestamp, recorded: &Positions) -> Result<(), Error>;

    /// The next event. Partitions that have reached `until` are not read further.
    fn next(&mut self, until: Option<&Positions>, patience: Duration) -> Result<Event, Error>;

    /// Where records with a message timestamp before `cutoff` end, once that is known. The first call makes it be taken, some
    /// time after the cutoff, so ask for the next cutoff early.
    fn ends(&mut self, cutoff: Timestamp) -> Result<Option<Positions>, Error>;

    /// Whether everything before `ends` has been handed out.
    fn reached(&self, ends: &Positions) -> Result<bool, Error>;

    /// Whether the input answered when it was last asked.
    fn is_connected(&self) -> bool;
}
