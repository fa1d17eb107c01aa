//! Reasons why a ledger log cannot be used, and what to do about it.

use std::path::PathBuf;

use crate::chain::Digest;
use crate::fault::TopicFault;

/// Reasons why a ledger log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerLogError {
    #[error("the ledger log {name} cannot be reached: {why}")]
    Unavailable { name: String, why: String },
    #[error(
        "the ledger log {name} is not the topic that it was, or has lost records; it is read again from its beginning"
    )]
    Anew { name: String },
    #[error(
        "there is no ledger log {name}: `bernstream ledger log init` creates it, and a worker that has its ledger appends \
         every row to it"
    )]
    Missing { name: String },
    #[error("the ledger log {name} cannot be used: {why}")]
    Refused { name: String, why: String },
    #[error(
        "the ledger log {name} has {partitions} partitions and needs one: name another topic (ledger.log), to which the worker \
         appends every row that its ledger has"
    )]
    Partitions { name: String, partitions: usize },
    #[error(
        "the ledger log {name} has {setting} = {found}, but needs {needed}; no row may get lost, nor be taken for another one: {remedy}"
    )]
    Setting {
        name: String,
        setting: Box<str>,
        found: Box<str>,
        needed: Box<str>,
        remedy: Box<str>,
    },
    #[error(
        "row {sequence} ({digest}), which the witness has accepted, is not whole in the ledger log {name}: a broker may be behind, or the \
         disk of another worker may still have it. Nothing is published before it is there; if it never comes, start a worker with \
         the disk that holds the ledger"
    )]
    Absent {
        name: String,
        sequence: u64,
        digest: Digest,
    },
    #[error(
        "the ledger log {name} has row {sequence}, which the witness has accepted, but this key (ledger.key_file) does not open \
         it: use the key with which it was written"
    )]
    OtherKey { name: String, sequence: u64 },
    #[error(
        "the ledger log {name} does not show row {sequence}, which was appended; nothing is claimed before it does"
    )]
    Unseen { name: String, sequence: u64 },
    #[error("the ledger log {name} is being filled: it has the rows up to {row} of {newest}")]
    Filling { name: String, row: u64, newest: u64 },
    #[error(
        "the ledger log {name} says that windows were published, and the witness has no claim at all: a broker of the witness is \
         behind, or the witness was deleted. Nothing is created or published before the claims are there again"
    )]
    NoClaims { name: String },
    #[error(
        "the ledger log {name} has rows of another pipeline, or that another key opens, and nothing is deleted from it: give every \
         pipeline, and every key, a topic of its own (ledger.log)"
    )]
    Shared { name: String },
    #[error(
        "the key of the ledger log, {path}, {why}; put the key there with which the log was written; a new log gets a new one \
         (`head -c 32 /dev/urandom`), the same for all workers"
    )]
    KeyFile { path: PathBuf, why: String },
}

impl LedgerLogError {
    pub fn from_fault(name: &str, fault: TopicFault) -> Self {
        let name = name.to_owned();
        match fault {
            TopicFault::Unavailable { why } => LedgerLogError::Unavailable { name, why },
            TopicFault::Missing => LedgerLogError::Missing { name },
            TopicFault::Refused { why } | TopicFault::Damaged { what: why } => {
                LedgerLogError::Refused { name, why }
            }
            TopicFault::Cut => LedgerLogError::Anew { name },
            TopicFault::OfAnotherVersion => LedgerLogError::Refused {
                name,
                why: "another version has written to it".to_owned(),
            },
            TopicFault::Partitions { partitions } => {
                LedgerLogError::Partitions { name, partitions }
            }
            TopicFault::Setting {
                setting,
                found,
                needed,
                remedy,
            } => LedgerLogError::Setting {
                name,
                setting,
                found,
                needed,
                remedy,
            },
        }
    }

    /// Returns true if it is worth trying again.
    pub fn is_transient(&self) -> bool {
        use LedgerLogError::{Absent, Anew, Filling, NoClaims, Unavailable, Unseen};
        matches!(
            self,
            Unavailable { .. }
                | Anew { .. }
                | Absent { .. }
                | Unseen { .. }
                | Filling { .. }
                | NoClaims { .. }
        )
    }

    /// Returns true if the settings of the topic are wrong.
    pub fn is_setting(&self) -> bool {
        matches!(
            self,
            LedgerLogError::Partitions { .. } | LedgerLogError::Setting { .. }
        )
    }
}
