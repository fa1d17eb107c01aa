//! Reasons why a ledger cannot be used, and what to do about it.

use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use super::reread::RereadOutcome;
use crate::log;
use crate::reread;

/// Reasons why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(
        "there is no ledger in {path}: a new pipeline gets one from `bernstream run`; otherwise the volume is missing, or the wrong \
         one is mounted"
    )]
    Missing { path: PathBuf },
    #[error("there is a ledger in {path} already; a new one needs an empty folder")]
    Exists { path: PathBuf },
    #[error(
        "another worker uses the ledger in {path}; one ledger has one worker, stop the other one first"
    )]
    Locked { path: PathBuf },
    #[error(
        "another program holds {path} and does not let go of it; no command of bernstream does that: look for a backup or a \
         database tool (`fuser {path}` lists who has the file open), end it and try again, nothing is lost"
    )]
    Busy { path: PathBuf },
    #[error("another process archives the rows of the ledger in {path}; wait until it is done")]
    Archiving { path: PathBuf },
    #[error(
        "a crash has left {path} in the middle of a write; start the worker, which rolls it back"
    )]
    Unfinished { path: PathBuf },
    #[error(
        "the ledger {path} is damaged: {what}; do not repair it, do not restore an older copy, and keep it"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "the ledger {path} has format {format}, of a program before the first release, and this one goes on with no such ledger"
    )]
    Older { path: PathBuf, format: i64 },
    #[error(
        "the ledger {path} has format {format}, of a newer program; use that one, nothing is lost"
    )]
    Newer { path: PathBuf, format: i64 },
    #[error(
        "the ledger {path} was changed or replaced under the running worker; find out by whom, then start the worker again"
    )]
    Replaced { path: PathBuf },
    #[error(
        "a read of {path} failed, and a second one found nothing wrong with the file: the disk fails, not the ledger. Start the worker \
         again, nothing is lost; look for errors of the disk in the kernel's log (`dmesg`), and replace it if they come again"
    )]
    ReadFailed { path: PathBuf },
    #[error("the disk of {path} is full; make room and start the worker again, nothing is lost")]
    Full { path: PathBuf },
    #[error(
        "{path} cannot be read or written: {why}; that is a fault of the volume and says nothing about the ledger: check the volume and \
         start the worker again"
    )]
    Disk { path: PathBuf, why: String },
    #[error(
        "an earlier write of {path} failed, so its content must be read again; start the worker again"
    )]
    Broken { path: PathBuf },
    #[error("the ledger refuses the row: {why}")]
    Refused { why: String },
    #[error(
        "the ledger {path} belongs to the witness {expected}, and this one is {found}; use the witness it was created with"
    )]
    ForeignWitness {
        path: PathBuf,
        expected: String,
        found: String,
    },
    #[error(
        "the witness has accepted {found}, which is not in the ledger {path} (newest row: {newest}): this is a copy or an older \
         state of a ledger, or a copy of it was started and has taken its place. Start neither again before you know which one the \
         witness follows: `bernstream ledger verify` succeeds with that one and fails with every other. Go on with that one, and \
         move the others away"
    )]
    ForeignHead {
        path: PathBuf,
        found: String,
        newest: u64,
    },
    #[error(
        "another worker has recorded other settings, in row {row} of the ledger, and this one stops: two workers with different settings \
         would overrule each other. Start it again with the configuration of the other one; or, if this one is the newer, stop the other \
         one, and start both with this"
    )]
    OtherSettings { row: u64 },
    #[error(
        "the witness has lost claims, and nobody here has their rows: row {row} of this ledger was published{shown}, and the newest row that the \
         witness has accepted is {accepted}. Nothing is drawn, or windows that were published would leave again with other noise. Start \
         the worker whose disk has row {row}: it claims it again; if there is none, or if somebody else has written to the output, \
         docs/how-to/recover.md says how to go on"
    )]
    LostClaims {
        row: u64,
        accepted: String,
        shown: String,
    },
    #[error(
        "row {row}, which was published or accepted, is not a row of the ledger that the witness follows now: the witness has lost claims, \
         and other rows were claimed in their place. Windows may have left in two versions. Nothing more is drawn; \
         docs/how-to/recover.md says how to go on"
    )]
    TwoBranches { row: u64 },
    #[error("the operating system provides no randomness")]
    Randomness,
    #[error(transparent)]
    Log(#[from] log::LedgerLogError),
}

impl LedgerError {
    /// Returns true if this ledger can never be used again, unless another one is found.
    pub fn is_final(&self) -> bool {
        use LedgerError::{Damaged, ForeignHead, ForeignWitness, Missing};
        matches!(
            self,
            Missing { .. } | Damaged { .. } | ForeignWitness { .. } | ForeignHead { .. }
        )
    }

    /// Returns true if it is worth trying again.
    pub fn is_transient(&self) -> bool {
        match self {
            LedgerError::Busy { .. } => true,
            LedgerError::Log(error) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns true if its log is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, LedgerError::Log(log::LedgerLogError::Missing { .. }))
    }

    /// The conversion of errors of the disk at `path`.
    pub(super) fn disk(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |error| LedgerError::from_disk(path, &error)
    }

    pub(super) fn from_disk(path: &Path, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return LedgerError::Full { path: path.into() };
        }
        LedgerError::Disk {
            path: path.into(),
            why: error.to_string(),
        }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        LedgerError::Damaged {
            path: path.into(),
            what: what.into(),
        }
    }

    /// The conversion of errors of `SQLite` in the ledger `path`.
    pub(super) fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Self {
        move |error| LedgerError::from_sqlite(path, error)
    }

    /// Meaning of an error of `SQLite` for the ledger `path`. What it says of the pages of the file is confirmed by a second reading.
    pub(super) fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let (code, extended) = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => (failure.code, failure.extended_code),
            // A column of the wrong type or length, a missing row, or other tables.
            _ => return LedgerError::damaged(path, error.to_string()),
        };
        match code {
            _ if extended == ffi::SQLITE_READONLY_DBMOVED => LedgerError::moved(path),
            _ if reread::is_of_the_pages(&error) => LedgerError::of_pages(path, error.to_string()),
            ErrorCode::DiskFull => LedgerError::Full { path: path.into() },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LedgerError::Busy { path: path.into() },
            _ if extended == ffi::SQLITE_READONLY_ROLLBACK => LedgerError::Unfinished { path: path.into() },
            ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::OutOfMemory
            | ErrorCode::NoLargeFileSupport
            // Another statement has failed, or a lock of the file system has.
            | ErrorCode::OperationAborted
            | ErrorCode::FileLockingProtocolFailed => LedgerError::Disk { path: path.into(), why: error.to_string() },
            _ => LedgerError::damaged(path, error.to_string()),
        }
    }

    /// Error that `SQLite` names in the pages of `path`, if a second reading finds it too.
    pub(super) fn of_pages(path: &Path, what: String) -> Self {
        match reread::reread_file(path) {
            RereadOutcome::Sound => LedgerError::ReadFailed { path: path.into() },
            RereadOutcome::Damaged => LedgerError::damaged(path, what),
            RereadOutcome::Refused { why } => LedgerError::Disk {
                path: path.into(),
                why,
            },
        }
    }

    /// `SQLite` says that another file has this name, also where it was not told which.
    fn moved(path: &Path) -> Self {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                LedgerError::from_disk(path, &error)
            }
            _ => LedgerError::Replaced { path: path.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_the_file_is_not_taken_for_a_worker() {
        let error = |code| {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            LedgerError::from_sqlite(Path::new("ledger/ledger.sqlite"), failure)
        };
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED] {
            let text = error(code).to_string();
            assert!(
                text.contains("another program holds ledger/ledger.sqlite"),
                "{text}"
            );
            assert!(!text.contains("worker uses"), "{text}");
        }
        assert!(matches!(
            error(ffi::SQLITE_READONLY_ROLLBACK),
            LedgerError::Unfinished { .. }
        ));
    }
}
