//! The row whose messages are being published: it is read once, and not once for each of them.

use rusqlite::{Connection, OptionalExtension};

use super::chain::{Message, Outcome, Row};
use super::entry::Entry;
use super::store;
use crate::clock::Timestamp;
use crate::window::grid::Span;

/// What one row has paid for.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub sequence: i64,
    pub window: Span,
    pub publish_at: Timestamp,
    pub messages: Vec<Message>,
}

impl Outgoing {
    /// Reads a row; `None` if there is none with messages.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn read(connection: &Connection, sequence: i64) -> rusqlite::Result<Option<Self>> {
        let entry = format!("SELECT {} FROM rows WHERE sequence = ?1", store::columns(store::FORMAT));
        let entry = connection.query_row(&entry, [sequence], Entry::read).optional()?;
        let Some(Ok(Row::Window(row))) = entry.map(|entry| entry.row()) else { return Ok(None) };
        let Outcome::Released { publish_at, messages, .. } = row.outcome else { return Ok(None) };
        Ok(Some(Outgoing { sequence, window: row.window, publish_at, messages }))
    }
}
