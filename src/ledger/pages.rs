//! Reading a ledger in pages, beside a worker that writes it.
//!
//! A page is copied in one short transaction, and used after it: `SQLite` lets nobody commit while somebody reads, so whoever
//! computes or prints in a transaction stops the worker. Rows are only ever appended, and each names the digest of the one
//! before, so pages that were read at different times fit together.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::chain::Message;
use super::error::Error;
use super::spent::{LIVE, read_spent};
use super::states::{self, StoredState};
use super::store::Entry;
use crate::clock::Timestamp;
use crate::window::grid::Span;

/// The most rows of a page.
const ROWS: usize = 256;

/// A page ends with the row that reaches so many bytes.
const BYTES: usize = 4 << 20;

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

    /// Whether it is the one that was paid for; only of a published one the bytes may have been dropped.
    pub fn is_of(&self, message: &Message) -> bool {
        message.is(&self.key, &self.headers, self.bytes.as_deref()) && (self.bytes.is_some() || self.is_published)
    }
}

/// Rows with their messages, or what there is behind the newest row.
pub(super) enum Page {
    Rows(Vec<(Entry, Vec<StoredMessage>)>),
    End(Rest),
}

/// What a row changes, as it is after the newest one.
pub(super) struct Rest {
    /// The first and the last row that have a message.
    pub outbox: Option<(i64, i64)>,
    /// The unpublished messages by row and place, as their index names them.
    pub unpublished: BTreeSet<(i64, i64)>,
    /// What the live blocks have spent, with prices in JSON.
    pub live: Vec<(Span, String)>,
    pub states: Vec<StoredState>,
}

/// Copies the rows after number `after` that fit on a page.
///
/// # Errors
///
/// If the ledger cannot be read.
pub(super) fn entries(connection: &Connection, after: i64) -> rusqlite::Result<Vec<Entry>> {
    let all = "SELECT sequence, salt, body, digest FROM rows WHERE sequence > ?1 ORDER BY sequence";
    let mut statement = connection.prepare(all)?;
    let mut stored = statement.query([after])?;
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while entries.len() < ROWS
        && bytes < BYTES
        && let Some(row) = stored.next()?
    {
        let entry = Entry::read(row)?;
        bytes += entry.body.len();
        entries.push(entry);
    }
    Ok(entries)
}

/// Passes every row after number `after`, and up to `last`, to `each`, in sequence.
///
/// # Errors
///
/// The first error of `each`, or if the ledger cannot be read.
pub(super) fn each_entry<E: From<Error>>(
    connection: &Connection,
    file: &Path,
    mut after: i64,
    last: i64,
    mut each: impl FnMut(Entry) -> Result<(), E>,
) -> Result<(), E> {
    let sqlite = |error| Error::sqlite(file, error);
    loop {
        let page = entries(connection, after).map_err(sqlite)?;
        if page.is_empty() {
            return Ok(());
        }
        for entry in page {
            after = entry.sequence().map_err(sqlite)?;
            if after > last {
                return Ok(());
            }
            each(entry)?;
        }
    }
}

/// The page after row number `after`. `live_from` is where the live blocks begin if there are no more rows.
///
/// # Errors
///
/// If the ledger cannot be read.
pub(super) fn next(connection: &Connection, after: i64, live_from: Timestamp) -> rusqlite::Result<Page> {
    let entries = entries(connection, after)?;
    if entries.is_empty() {
        return Ok(Page::End(Rest::read(connection, live_from)?));
    }
    let messages = "SELECT place, key, headers, bytes, published_at FROM outbox WHERE sequence = ?1 ORDER BY place";
    let mut messages = connection.prepare(messages)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        let stored = messages.query_map([entry.sequence()?], StoredMessage::read)?;
        let stored: Vec<StoredMessage> = stored.collect::<rusqlite::Result<_>>()?;
        bytes += stored.iter().map(|message| message.bytes.as_ref().map_or(0, Vec::len)).sum::<usize>();
        rows.push((entry, stored));
        if bytes >= BYTES {
            break;
        }
    }
    Ok(Page::Rows(rows))
}

impl Rest {
    fn read(connection: &Connection, live_from: Timestamp) -> rusqlite::Result<Self> {
        let end = |order: &str| {
            let query = format!("SELECT sequence FROM outbox ORDER BY sequence {order}, place {order} LIMIT 1");
            connection.query_row(&query, [], |row| row.get::<_, i64>(0)).optional()
        };
        let unpublished = "SELECT sequence, place FROM outbox INDEXED BY unpublished WHERE published_at IS NULL";
        let mut unpublished = connection.prepare(unpublished)?;
        let unpublished = unpublished.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Rest {
            outbox: end("ASC")?.zip(end("DESC")?),
            unpublished: unpublished.collect::<rusqlite::Result<_>>()?,
            live: read_spent(connection, LIVE, &[live_from.micros()])?,
            states: states::all(connection)?,
        })
    }
}
