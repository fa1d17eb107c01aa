//! The difference between a damaged file and a disk that has failed to read it once.
//!
//! `SQLite` calls a read that the disk refuses (`EIO`) a malformed file. A sound ledger that is taken for a damaged one is given up, so
//! whatever `SQLite` says of a file's pages holds only if a second reading, on a new connection, says so too.

use std::fs::File;
use std::path::Path;

use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
use rusqlite::{Connection, OpenFlags, ffi};

/// Result of a second reading of a file.
pub(super) enum RereadOutcome {
    /// It found nothing wrong.
    Sound,
    /// The bytes are wrong.
    Damaged,
    /// The disk does not give them.
    Refused { why: String },
}

/// Reads the whole file again, after `SQLite` could not use its pages; twice, if they cannot be used again: a disk that fails may do so
/// now and then.
pub(super) fn reread_file(file: &Path) -> RereadOutcome {
    match check_file(file) {
        RereadOutcome::Damaged => check_file(file),
        other => other,
    }
}

fn check_file(file: &Path) -> RereadOutcome {
    if let Err(error) = read_bytes(file) {
        return RereadOutcome::Refused {
            why: error.to_string(),
        };
    }
    match check_pages(file) {
        Ok(verdict) if verdict == "ok" => RereadOutcome::Sound,
        Ok(verdict) if is_of_the_disk(&verdict) => RereadOutcome::Refused {
            why: "a page of it was refused again".to_owned(),
        },
        Ok(_) => RereadOutcome::Damaged,
        Err(error) if is_of_the_pages(&error) => RereadOutcome::Damaged,
        // It is held by another program, or in the middle of a write: whoever opens it next is told so.
        Err(_) => RereadOutcome::Sound,
    }
}

/// Returns true if an error says that the pages of a file cannot be used.
pub(super) fn is_of_the_pages(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// Returns true if the verdict on a file is about a page that the disk did not give.
fn is_of_the_disk(verdict: &str) -> bool {
    verdict.contains(&format!("error code={}", ffi::SQLITE_IOERR_CORRUPTFS))
}

fn check_pages(file: &Path) -> rusqlite::Result<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(file, flags)?
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

fn read_bytes(file: &Path) -> std::io::Result<()> {
    let mut opened = File::open(file)?;
    let read = std::io::copy(&mut opened, &mut std::io::sink());
    // Never closed: that would end the locks that `SQLite` holds on this file in this process, which is about to stop.
    std::mem::forget(opened);
    read.map(drop)
}
