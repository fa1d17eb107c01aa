//! The ledger log: a topic beside the witness that holds the bodies of all rows, so that a ledger outlives its disk.
//!
//! The witness orders claims, which are digests; the log has what the digests are of. A worker appends the body of a row before it
//! claims it, and claims only what it has read back. So whatever was accepted can be built again from the two topics, and the ledger's
//! file is a copy. The protocol is that of `ledger-log.md`, and what each file here does of it:
//!
//! - [`key`]: bodies are encrypted and authenticated (XChaCha20-Poly1305), each with a random nonce of 192 bits: two copies of a disk
//!   would repeat a counter.
//! - [`body`]: what a body says; [`pieces`]: bodies in records that a broker takes, put together in any order.
//! - [`contents`]: which bodies are there, derived from reading the whole log and from nothing else. Nobody remembers that something
//!   "is in the log": a log that was made anew, or has lost records, would never get it again.
//! - [`snapshot`]: a checkpoint each 256 rows, from which a ledger is built instead of the rows up to it.
//! - [`place`]: what a log needs of the place where it is; the topic that is one stands in the crate of Kafka. [`upkeep`]: appending what is
//!   missing. [`retention`]: checkpoints, and deleting what no ledger is built from any more. [`restore`]: a new file of what is there. [`following`]: the rows of another worker,
//!   for one that follows it.
//!
//! # What a reader of the topic without the key can see
//!
//! In the clear stand the number of a row, its digest and the digest before it, and of a checkpoint its row and the one that was the newest
//! then: what the witness shows too. Message digests are not
//! there: that of a draw that was never published could be tested by guessing. Sizes and times can be seen. The offsets of a row, which
//! count records, are written as wide as they can be, so that no size depends on their digits. The rest of a body is what was
//! published of its window and the states of its noise, whose sizes follow from the configuration, but for numbers that are written in
//! decimals, for a private choice between functions of different sizes, and for the keys that a window found. So every body is filled up to a size of which there are
//! eight from one power of two to the next. What is published shows its size anyway; of a draw that lost a race a reader learns this
//! coarse size at most. A body is appended when its window was drawn, and so shows how long that took.

mod body;
mod contents;
pub mod error;
mod fields;
mod following;
mod foreign;
pub mod key;
mod pieces;
pub mod place;
mod restore;
mod retention;
mod snapshot;
pub mod upkeep;

pub(super) use self::body::RowBody;
pub use self::error::LedgerLogError;
pub(super) use self::following::NextRows;
pub use self::following::{AppendOutcome, CannotAppend};
pub(super) use self::foreign::{MessageFate, write_row};
pub use self::key::LogKey;
pub use self::place::{Log, LogReader};
pub use self::restore::RestoredLedger;

pub use self::upkeep::LedgerLog;
