//! The row whose messages are being published: it is read once, and not once for each of them.

use rusqlite::{Connection, OptionalExtension};

use super::chain::{Message, Outcome, Row};
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
        let body = "SELECT body FROM rows WHERE sequence = ?1";
        let body = connection.query_row(body, [sequence], |row| row.get::<_, String>(0)).optional()?;
        let Some(Ok(Row::Window(row))) = body.map(|body| serde_json::from_str(&body)) else { return Ok(None) };
        let Outcome::Released { publish_at, messages, .. } = row.outcome else { return Ok(None) };
        Ok(Some(Outgoing { sequence, window: row.window, publish_at, messages }))
    }
}
