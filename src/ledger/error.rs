//! Why a ledger cannot be used, and what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no ledger in {path}; for a new pipeline, or if the volume was lost, run `bernstream ledger init`"
    )]
    Missing { path: PathBuf },
    #[error("there is a ledger in {path} already; a new one needs an empty folder")]
    Exists { path: PathBuf },
    #[error("another worker uses the ledger in {path}; one ledger has one worker, stop the other one first")]
    Locked { path: PathBuf },
    #[error(
        "the ledger {path} is damaged: {what}; do not repair it and do not restore an older copy: move it away and run \
         `bernstream ledger init`, which starts a new one at the next block"
    )]
    Damaged { path: PathBuf, what: String },
    #[error("the ledger {path} has format {format}, of a newer program; use that one, nothing is lost")]
    Newer { path: PathBuf, format: i64 },
    #[error(
        "the ledger {path} was changed or replaced under the running worker; find out by whom, then start the worker again"
    )]
    Replaced { path: PathBuf },
    #[error("the disk of {path} is full; make room and start the worker again, nothing is lost")]
    Full { path: PathBuf },
    #[error("{path} cannot be read or written: {why}; check the volume and start the worker again")]
    Disk { path: PathBuf, why: String },
    #[error("an earlier write of {path} failed, so its content must be read again; start the worker again")]
    Broken { path: PathBuf },
    #[error("the ledger refuses the row: {why}")]
    Refused { why: String },
    #[error(
        "the ledger {path} belongs to the witness {expected}, and this one is {found}; use the witness it was created with, or \
         start a new ledger with `bernstream ledger init`"
    )]
    ForeignWitness { path: PathBuf, expected: String, found: String },
    #[error(
        "the witness has accepted {found}, which is not in the ledger {path} (newest row: {newest}): this is an older copy, or \
         another ledger took its place; move it away, and start the original, or a new one with `bernstream ledger init`"
    )]
    ForeignHead { path: PathBuf, found: String, newest: u64 },
    #[error("the operating system provides no randomness")]
    Randomness,
}

impl Error {
    pub(super) fn disk(path: &Path, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Error::Full { path: path.into() };
        }
        Error::Disk { path: path.into(), why: error.to_string() }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Error::Damaged { path: path.into(), what: what.into() }
    }

    pub(super) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let (code, extended) = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => (failure.code, failure.extended_code),
            // A column of the wrong type or length, a missing row, or other tables.
            _ => return Error::damaged(path, error.to_string()),
        };
        match code {
            _ if extended == ffi::SQLITE_READONLY_DBMOVED => Error::Replaced { path: path.into() },
            ErrorCode::DiskFull => Error::Full { path: path.into() },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked { path: path.into() },
            ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::NoLargeFileSupport => Error::Disk { path: path.into(), why: error.to_string() },
            _ => Error::damaged(path, error.to_string()),
        }
    }
}
