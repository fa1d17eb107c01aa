//! Where records come from: Kafka, or a folder of files. Bytes in, [`Batch`] out, and how far to read.

#[cfg(feature = "worker")]
pub mod broker;
pub mod decode;
#[cfg(feature = "worker")]
pub mod files;
#[cfg(feature = "worker")]
pub mod kafka;
pub(crate) mod rows;
#[cfg(feature = "worker")]
pub mod topic;
#[cfg(feature = "worker")]
mod refusal;
#[cfg(feature = "worker")]
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use arrow::array::{Float64Array, Int64Array};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::source::decode::Text;

/// The columns that the configuration names; all others are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Event time; any Arrow timestamp.
    pub time: String,
    /// Group key; text or integers.
    pub key: Option<String>,
    /// Privacy unit; text or integers.
    pub unit: Option<String>,
    /// The values, in the order of the domain's axes; any number.
    pub values: Vec<String>,
}

/// The rows of one message (or of one run of rows of a file), in our own types. `Debug` shows none of them.
#[derive(Clone)]
pub struct Batch {
    /// Kafka partition, or the number of the file.
    pub partition: i32,
    /// Kafka offset, or the number of the batch in the file.
    pub offset: i64,
    /// The message timestamp; files have none.
    pub message_time: Option<Timestamp>,
    /// Event times, microseconds since 1970 UTC; null where missing or not representable.
    pub times: Int64Array,
    pub keys: Option<Text>,
    pub units: Option<Text>,
    /// One array an axis, of the length of `times`; null where missing. NaN and infinities are left as they are.
    pub values: Vec<Float64Array>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} rows, partition {}, offset {})", self.times.len(), self.partition, self.offset)
    }
}

/// One offset a partition: the next offset to read, or the one before which a window's records lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(pub BTreeMap<i32, i64>);

/// What a source has to say.
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

/// Why reading failed.
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
        matches!(self, Error::Unavailable { .. })
    }
}
