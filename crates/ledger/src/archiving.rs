//! `ledger archive`: moves the rows that no worker needs any more.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};

use super::archive::Archive;
use super::chain::{Head, Link};
use super::error::LedgerError;
use super::open::Ledger;
use crate::{checkpoint, pages, private, store};

/// Number of rows that are removed in one transaction.
const PORTION_ROWS: i64 = 1000;

/// The pause between two of them, for the worker's.
const PORTION_PAUSE: Duration = Duration::from_millis(20);

/// A step of archiving, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveStep {
    /// So many rows were written to a draft, of those that are moved.
    Written { rows: u64, of: u64 },
    /// The file is durable, and was read back.
    Durable,
    /// The ledger knows the file.
    Recorded,
    /// So many rows of a file were removed from the ledger, of those that it has.
    Removed { rows: u64, of: u64 },
}

impl Ledger {
    /// Moves old rows to a file beside the ledger: all that no worker needs, up to `accepted`, the head of the witness. Returns
    /// the first and the last of them; `None` if there are none yet. `progress` hears of every step.
    ///
    /// It can run beside the worker, in transactions of milliseconds.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Archiving`] if another process does, or if the ledger is damaged, or cannot be read or written. Nothing is lost
    /// at any point, and the next call goes on.
    pub fn archive_rows(
        &self,
        accepted: &Head,
        progress: &mut dyn FnMut(ArchiveStep),
    ) -> Result<Option<(u64, u64)>, LedgerError> {
        let file = &self.file;
        let _alone = lock_archives(file)?;
        let mut connection = store::open_database(file, true)?;
        remove_archived_rows(&mut connection, progress).map_err(LedgerError::sqlite(file))?;
        let genesis = self.state.genesis.first_sequence();
        let genesis = i64::try_from(genesis).unwrap_or(i64::MAX);
        // What comes before a gap is the first row alone.
        let begin = match &self.state.gap {
            Some(gap) => i64::try_from(gap.sequence).unwrap_or(i64::MAX),
            None => genesis,
        };
        let newest = Archive::read_newest(&connection).map_err(LedgerError::sqlite(file))?;
        let before = newest.map_or(begin, |archive| archive.last);
        let accepted = i64::try_from(accepted.sequence).unwrap_or(i64::MAX);
        // A start looks for the row of its checkpoint.
        let spare = checkpoint::spare_checkpoint(&connection)
            .map_err(LedgerError::sqlite(file))?
            .unwrap_or(0);
        let last = spare.min(accepted) - 1;
        if last <= before {
            return Ok(None);
        }
        let mut link = None;
        pages::each_entry(&connection, file, before - 1, before, |entry| {
            link = Some(entry.link_after());
            Ok::<(), LedgerError>(())
        })?;
        let archive = Archive {
            first: before + 1,
            last,
        };
        write_archive(&connection, file, archive, link, progress)?;
        record_archive(&mut connection, archive).map_err(LedgerError::sqlite(file))?;
        progress(ArchiveStep::Recorded);
        remove_archived_rows(&mut connection, progress).map_err(LedgerError::sqlite(file))?;
        Ok(u64::try_from(before + 1).ok().zip(u64::try_from(last).ok()))
    }
}

/// Locks the archives of `ledger` until the returned file is dropped.
///
/// # Errors
///
/// [`LedgerError::Archiving`] if another process archives its rows.
fn lock_archives(ledger: &Path) -> Result<File, LedgerError> {
    let path = ledger.with_file_name("archive.lock");
    let open = private::private_options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = open.map_err(LedgerError::disk(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(LedgerError::Archiving {
            path: ledger.into(),
        }),
    }
}

/// Writes the rows of `archive`, the first of which follows `before`, to a file that is durable when this returns.
///
/// # Errors
///
/// If the file cannot be written, or is not what was written when it is read back.
fn write_archive(
    connection: &Connection,
    ledger: &Path,
    archive: Archive,
    mut before: Option<Link>,
    progress: &mut dyn FnMut(ArchiveStep),
) -> Result<(), LedgerError> {
    let path = archive.path(ledger);
    let draft = ledger.with_file_name("archive.new");
    let mut out = zstd::Encoder::new(
        BufWriter::new(private::create_private(&draft).map_err(LedgerError::disk(&draft))?),
        0,
    )
    .map_err(LedgerError::disk(&draft))?;
    let mut written = 0;
    let of = archive.row_count();
    pages::each_entry(
        connection,
        ledger,
        archive.first - 1,
        archive.last,
        |entry| {
            writeln!(out, "{}", entry.secret_line()).map_err(LedgerError::disk(&draft))?;
            written += 1;
            if written % PORTION_ROWS == 0 {
                progress(ArchiveStep::Written {
                    rows: written.unsigned_abs(),
                    of,
                });
            }
            Ok::<(), LedgerError>(())
        },
    )?;
    let file = out
        .finish()
        .and_then(|out| out.into_inner().map_err(|error| error.into_error()))
        .map_err(LedgerError::disk(&draft))?;
    progress(ArchiveStep::Written { rows: of, of });
    file.sync_all().map_err(LedgerError::disk(&draft))?;
    fs::rename(&draft, &path).map_err(LedgerError::disk(&draft))?;
    if let Some(folder) = ledger.parent() {
        private::sync_folder(folder).map_err(LedgerError::disk(&draft))?;
    }
    // What will be removed is what the file has.
    archive.each_entry(ledger, |entry| {
        if !entry.is_successor_of(before) {
            let what = format!("row {} was changed", entry.head.sequence);
            return Err(LedgerError::damaged(&path, what));
        }
        before = Some(entry.link_after());
        Ok(())
    })?;
    progress(ArchiveStep::Durable);
    Ok(())
}

/// Records an archive in the ledger.
///
/// # Errors
///
/// If the ledger cannot be written.
fn record_archive(connection: &mut Connection, archive: Archive) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT INTO archives VALUES (?1, ?2)",
        params![archive.first, archive.last],
    )?;
    transaction.commit()
}

/// Removes the rows of all archives from the ledger, a few at a time.
///
/// # Errors
///
/// If the ledger cannot be written.
fn remove_archived_rows(
    connection: &mut Connection,
    progress: &mut dyn FnMut(ArchiveStep),
) -> rusqlite::Result<()> {
    for archive in Archive::read_all(connection)? {
        let Archive { first, last } = archive;
        let mut rows = 0;
        loop {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let some = "DELETE FROM rows WHERE sequence IN
                        (SELECT sequence FROM rows WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence LIMIT ?3)";
            let removed = transaction.execute(some, params![first, last, PORTION_ROWS])?;
            transaction.commit()?;
            if removed == 0 {
                break;
            }
            rows += removed as u64;
            progress(ArchiveStep::Removed {
                rows,
                of: archive.row_count(),
            });
            thread::sleep(PORTION_PAUSE);
        }
    }
    Ok(())
}
