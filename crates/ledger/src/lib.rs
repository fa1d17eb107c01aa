//! The durable outbox: what was paid for, and the bytes that it paid for.
//!
//! One row for each window, hash-chained ([`chain`]), in one `SQLite` file (`store`). A window is one transaction: its
//! charges, the end of its input, the sealed bytes of all its keys, and the noise that later windows continue. After a crash
//! before the commit nothing has left, and the noise is drawn again; after a crash behind it the same bytes are published.
//! The [`witness`] decides which of several copies of a ledger may publish.
//!
//! Beside a [`log`] the file is a copy, which can be built again, from a checkpoint in it on: then rows are missing (`gap`).
//!
//! Whoever only looks at a ledger holds no lock, and copies it in short transactions (`pages`), which the worker waits out.
//!
//! Opening a ledger takes no longer for a million rows than for a thousand (`replay`). A worker verifies what bears on its
//! work; [`Ledger::verify_all`] also finds damage in old rows.
//!
//! After a failed write the ledger refuses everything: only the disk knows whether the write succeeded, so the worker must
//! stop and read the file again.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod account;
mod append;
mod archive;
mod archiving;
pub mod audit;
pub mod bootstrap;
pub mod budget;
pub mod chain;
mod checkpoint;
mod claim;
mod entry;
pub mod error;
mod evidence;
pub mod fault;
#[cfg(test)]
mod fixtures;
mod follow;
mod instance;
mod ledger_log;
pub mod log;
mod missing_rows;
mod open;
mod outbox;
mod outgoing;
mod pages;
pub mod private;
mod read;
mod replay;
mod reread;
pub mod sealing;
mod spent;
mod standby;
mod states;
mod store;
mod summary;
mod verify;
pub mod witness;

pub use self::append::ClosingWindow;
pub use self::archiving::ArchiveStep;
pub use self::chain::{
    BudgetHolding, ClosedWindow, Configuration, Digest, Genesis, Head, LedgerRow, MessageDigests,
    ReleaseOutcome, StateDigest,
};
pub use self::error::LedgerError;
pub use self::evidence::{AcceptedEvidence, Evidence, WitnessStanding};
pub use self::instance::Instance;
pub use self::missing_rows::MissingRows;
pub use self::open::{Ledger, LedgerParams, PendingWrite, ledger_exists, new_id};
pub use self::outbox::{OutboxSlot, Paid, PublishedMessage};
pub use self::outgoing::OutputMessage;
pub use self::read::StoredRow;
pub use self::standby::{DesiredSettings, StandbyRule};
pub use self::summary::LedgerSummary;
