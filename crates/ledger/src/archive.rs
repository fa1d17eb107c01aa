//! Old rows, moved to files beside the ledger: the chain goes through them, and only the place is another.
//!
//! `archive-FIRST-LAST.jsonl.zst` holds those rows as `ledger export --secret` prints them, compressed. A row is removed from the ledger
//! only after the file that has it is durable and was read back, and after the ledger says which file that is. So a crash at any
//! point leaves every row in at least one of the two places, and the next run goes on.
//!
//! What is moved is nothing that a worker reads: rows that the witness has accepted, whose messages were dropped, and that come
//! before the checkpoints from which a start goes on. So it can run beside the worker, and does not need its lock.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::entry::LedgerEntry;
use super::error::LedgerError;

/// A file of old rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub first: i64,
    pub last: i64,
}

impl Archive {
    /// The file with the row after number `after`, if that was moved.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn with_row_after(connection: &Connection, after: i64) -> rusqlite::Result<Option<Self>> {
        let next = after.saturating_add(1);
        let found = "SELECT first, last FROM archives WHERE first <= ?1 AND last >= ?1";
        connection
            .query_row(found, [next], Archive::read)
            .optional()
    }

    /// The one with the newest rows.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn read_newest(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let newest = "SELECT first, last FROM archives ORDER BY first DESC LIMIT 1";
        connection.query_row(newest, [], Archive::read).optional()
    }

    /// Every archive, in order.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn read_all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        let all = "SELECT first, last FROM archives ORDER BY first";
        connection
            .prepare(all)?
            .query_map([], Archive::read)?
            .collect()
    }

    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Archive {
            first: row.get(0)?,
            last: row.get(1)?,
        })
    }

    /// Number of its rows.
    pub fn row_count(self) -> u64 {
        u64::try_from(self.last.saturating_sub(self.first).saturating_add(1)).unwrap_or(0)
    }

    pub fn path(self, ledger: &Path) -> PathBuf {
        ledger.with_file_name(format!(
            "archive-{:012}-{:012}.jsonl.zst",
            self.first, self.last
        ))
    }

    /// Passes its rows to `each`, in sequence.
    ///
    /// # Errors
    ///
    /// The first error of `each`, or if the file is missing or damaged.
    pub fn each_entry<E: From<LedgerError>>(
        self,
        ledger: &Path,
        mut each: impl FnMut(LedgerEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = self.path(ledger);
        let file = File::open(&path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                LedgerError::damaged(ledger, format!("its archive {} is missing", path.display()))
            } else {
                LedgerError::from_disk(&path, &error)
            }
        })?;
        let text = zstd::Decoder::new(file).map_err(LedgerError::disk(&path))?;
        let mut next = self.first;
        for line in BufReader::new(text).lines() {
            let line = line.map_err(|error| match error.raw_os_error() {
                Some(_) => LedgerError::from_disk(&path, &error),
                None => LedgerError::damaged(&path, "it cannot be unpacked"),
            })?;
            let Some(entry) = LedgerEntry::parse(&line) else {
                let what = format!("where row {next} should be");
                return Err(LedgerError::damaged(&path, what).into());
            };
            if i64::try_from(entry.head.sequence) != Ok(next) {
                return Err(LedgerError::damaged(&path, format!("row {next} is missing")).into());
            }
            next += 1;
            each(entry)?;
        }
        if next - 1 != self.last {
            let what = format!("it ends before row {}", self.last);
            return Err(LedgerError::damaged(&path, what).into());
        }
        Ok(())
    }
}
