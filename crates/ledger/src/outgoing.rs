//! The row whose messages are being published: it is read once, and not once for each of them; and a message that was.

use rusqlite::Connection;

use super::chain::{Digest, LedgerRow, MessageDigests, ReleaseOutcome};
use super::entry::LedgerEntry;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// A message on the output, by the row that its synopsis names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputMessage {
    pub ledger: String,
    pub sequence: u64,
    /// Digest of its bytes.
    pub digest: Digest,
    /// Its partition or file, for errors.
    pub place: String,
}

impl OutputMessage {
    /// Returns true if it has the bytes of one of these.
    pub(super) fn is_one_of(&self, messages: &[MessageDigests]) -> bool {
        messages.iter().any(|message| message.bytes == self.digest)
    }
}

/// Messages that one row has paid for.
#[derive(Debug)]
pub(super) struct OutgoingRow {
    pub sequence: i64,
    pub window: Span,
    pub publish_at: Timestamp,
    pub messages: Vec<MessageDigests>,
}

impl OutgoingRow {
    /// Reads a row; `None` if there is none with messages.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn read_row(connection: &Connection, sequence: i64) -> rusqlite::Result<Option<Self>> {
        let entry = LedgerEntry::of_row(connection, sequence)?;
        let Some(Ok(LedgerRow::Window(row))) = entry.map(|entry| entry.row()) else {
            return Ok(None);
        };
        let ReleaseOutcome::Released {
            publish_at,
            messages,
            ..
        } = row.outcome
        else {
            return Ok(None);
        };
        Ok(Some(OutgoingRow {
            sequence,
            window: row.window,
            publish_at,
            messages,
        }))
    }
}
