//! Reading a ledger in pages, beside a worker that writes it.
//!
//! A page is copied in one short transaction, and used after it: `SQLite` lets nobody commit while somebody reads, so whoever
//! computes or prints in a transaction stops the worker. Rows are only ever appended, and each names the digest of the one
//! before, so pages that were read at different times fit together.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::archive::Archive;
use super::chain::MessageDigests;
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::outbox::OutboxSlot;
use super::spent::{LIVE, StoredBlock, read_spent};
use super::states::StoredState;
use super::store::COLUMNS;
use crate::states;
use crate::store;
use bernstream_synopsis::clock::Timestamp;

/// The most rows of a page.
const PAGE_ROWS: usize = 256;

/// A page ends with the row that reaches so many bytes.
const PAGE_BYTES: usize = 4 << 20;

/// A message as it is stored.
pub(super) struct StoredMessage {
    pub place: i64,
    key: String,
    headers: String,
    bytes: Option<Vec<u8>>,
    pub is_published: bool,
}

impl StoredMessage {
    /// Reads the columns `place, key, headers, bytes, published_at`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let is_published = row.get::<_, Option<i64>>(4)?.is_some();
        Ok(StoredMessage {
            place: row.get(0)?,
            key: row.get(1)?,
            headers: row.get(2)?,
            bytes: row.get(3)?,
            is_published,
        })
    }

    /// Returns true if it is the one that was paid for; only of a published one the bytes may have been dropped.
    pub fn is_of(&self, message: &MessageDigests) -> bool {
        message.has_content(&self.key, &self.headers, self.bytes.as_deref())
            && (self.bytes.is_some() || self.is_published)
    }
}

/// Rows with their messages, the file that they were moved to, or all that comes after the newest row.
pub(super) enum LedgerPage {
    /// The messages of the rows up to `pruned` were dropped.
    Rows {
        rows: Vec<RowMessages>,
        pruned: i64,
    },
    Archived(Archive),
    End(NewestTables),
}

/// A row, and the stored messages of it.
pub(super) struct RowMessages {
    pub entry: LedgerEntry,
    pub messages: Vec<StoredMessage>,
}

/// First and last row that have a message.
pub(super) struct OutboxRange {
    pub first: i64,
    pub last: i64,
}

/// Tables that a row changes, as they are after the newest one.
pub(super) struct NewestTables {
    /// `None` without a message.
    pub outbox: Option<OutboxRange>,
    /// The unpublished messages, as their index names them.
    pub unpublished: BTreeSet<OutboxSlot>,
    /// The live blocks.
    pub live: Vec<StoredBlock>,
    /// The messages of this row, and of all before it, were dropped.
    pub pruned: i64,
    pub states: Vec<StoredState>,
}

/// Place of the rows after some row.
enum RowSource {
    Archived(Archive),
    /// Those that fit on a page; none if there are no more.
    Here(Vec<LedgerEntry>),
}

/// Copies the rows after number `after`, or says where they are. Ends where archived rows follow.
fn copy_entries(connection: &Connection, after: i64) -> rusqlite::Result<RowSource> {
    if let Some(archive) = Archive::with_row_after(connection, after)? {
        return Ok(RowSource::Archived(archive));
    }
    let all = format!("SELECT {COLUMNS} FROM rows WHERE sequence > ?1 ORDER BY sequence");
    let mut statement = connection.prepare(&all)?;
    let mut stored = statement.query([after])?;
    let mut entries = Vec::new();
    let mut bytes = 0;
    let mut next = None;
    while entries.len() < PAGE_ROWS
        && bytes < PAGE_BYTES
        && let Some(row) = stored.next()?
    {
        let entry = LedgerEntry::read(row)?;
        if next.is_some_and(|next| next != entry.head.sequence) {
            break;
        }
        next = entry.head.sequence.checked_add(1);
        bytes += entry.text_size();
        entries.push(entry);
    }
    Ok(RowSource::Here(entries))
}

/// Reads in one short transaction, unless one is open.
pub(super) fn in_one_read<T>(
    connection: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    if !connection.is_autocommit() {
        return read();
    }
    let transaction = connection.unchecked_transaction()?;
    let found = read();
    drop(transaction);
    found
}

/// Passes every row after number `after`, and up to `last`, to `each`, in sequence, wherever it is.
///
/// # Errors
///
/// The first error of `each`, or if the ledger cannot be read.
pub(super) fn each_entry<E: From<LedgerError>>(
    connection: &Connection,
    file: &Path,
    mut after: i64,
    last: i64,
    mut each: impl FnMut(LedgerEntry) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        match in_one_read(connection, || copy_entries(connection, after))
            .map_err(LedgerError::sqlite(file))?
        {
            RowSource::Archived(archive) => {
                archive.each_entry(file, |entry| {
                    if is_between(&entry, after, last) {
                        each(entry)
                    } else {
                        Ok(())
                    }
                })?;
                after = archive.last;
            }
            RowSource::Here(page) => {
                let Some(end) = page.last().map(LedgerEntry::sequence) else {
                    return Ok(());
                };
                let end = end.map_err(LedgerError::sqlite(file))?;
                for entry in page {
                    if is_between(&entry, after, last) {
                        each(entry)?;
                    }
                }
                after = end;
            }
        }
        if after >= last {
            return Ok(());
        }
    }
}

/// Returns true if `entry` is a row after number `after`, and up to `last`.
fn is_between(entry: &LedgerEntry, after: i64, last: i64) -> bool {
    i64::try_from(entry.head.sequence).is_ok_and(|sequence| after < sequence && sequence <= last)
}

/// Returns the page after row number `after`. `live_from` is where the live blocks begin if there are no more rows.
///
/// # Errors
///
/// If the ledger cannot be read.
pub(super) fn next_page(
    connection: &Connection,
    after: i64,
    live_from: Timestamp,
) -> rusqlite::Result<LedgerPage> {
    in_one_read(connection, || read_page(connection, after, live_from))
}

fn read_page(
    connection: &Connection,
    after: i64,
    live_from: Timestamp,
) -> rusqlite::Result<LedgerPage> {
    let pruned = store::pruned_to(connection)?;
    let entries = match copy_entries(connection, after)? {
        RowSource::Archived(archive) => return Ok(LedgerPage::Archived(archive)),
        RowSource::Here(entries) if entries.is_empty() => {
            return Ok(LedgerPage::End(NewestTables::read(connection, live_from)?));
        }
        RowSource::Here(entries) => entries,
    };
    let messages = "SELECT place, key, headers, bytes, published_at FROM outbox WHERE sequence = ?1 ORDER BY place";
    let mut messages = connection.prepare(messages)?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    for entry in entries {
        let mut stored = Vec::new();
        for message in messages.query_map([entry.sequence()?], StoredMessage::read)? {
            let message = message?;
            bytes += message.bytes.as_ref().map_or(0, Vec::len);
            stored.push(message);
        }
        rows.push(RowMessages {
            entry,
            messages: stored,
        });
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(LedgerPage::Rows { rows, pruned })
}

impl NewestTables {
    fn read(connection: &Connection, live_from: Timestamp) -> rusqlite::Result<Self> {
        let first = "SELECT sequence FROM outbox ORDER BY sequence ASC, place ASC LIMIT 1";
        let first: Option<i64> = connection
            .query_row(first, [], |row| row.get(0))
            .optional()?;
        let last = "SELECT sequence FROM outbox ORDER BY sequence DESC, place DESC LIMIT 1";
        let last: Option<i64> = connection
            .query_row(last, [], |row| row.get(0))
            .optional()?;
        let outbox = match (first, last) {
            (Some(first), Some(last)) => Some(OutboxRange { first, last }),
            _ => None,
        };
        let unpublished =
            "SELECT sequence, place FROM outbox INDEXED BY unpublished WHERE published_at IS NULL";
        let mut unpublished = connection.prepare(unpublished)?;
        let unpublished = unpublished.query_map([], |row| {
            Ok(OutboxSlot {
                sequence: row.get(0)?,
                place: row.get(1)?,
            })
        })?;
        Ok(NewestTables {
            outbox,
            unpublished: unpublished.collect::<rusqlite::Result<_>>()?,
            pruned: store::pruned_to(connection)?,
            live: read_spent(connection, LIVE, &[live_from.micros()])?,
            states: states::read_states(connection)?,
        })
    }
}
