//! The durable outbox: what was paid for, and the bytes that it paid for.

pub mod witness;

use std::path::PathBuf;
use std::time::Duration;

use crate::synopsis::Sealed;

/// Where the ledger is.
#[derive(Clone, Debug)]
pub struct Params {
    /// A folder on local block storage.
    pub path: PathBuf,
    /// How long published bytes are kept, for `ledger republish`.
    pub keep_published: Duration,
}

/// The newest row of a ledger: what a witness remembers of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub sequence: u64,
    /// Salted digest of the row, chained to the row before.
    pub digest: [u8; 32],
}

/// A message that was paid for and that the witness has accepted. Only the ledger makes one.
#[derive(Clone, Debug)]
pub struct Paid {
    sealed: Sealed,
}

impl Paid {
    pub fn sealed(&self) -> &Sealed {
        &self.sealed
    }
}
