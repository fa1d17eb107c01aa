//! The messages of a ledger: which may be published, which have been, and which bytes are still kept.

use rusqlite::{OptionalExtension, Transaction, params};

use super::chain::Head;
use super::error::Error;
use super::open::Ledger;
use super::outgoing::Outgoing;
use super::store;
use crate::clock::Timestamp;
use crate::synopsis::Sealed;
use crate::window::grid::Span;

const NEXT_UNPUBLISHED: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place LIMIT 1";

/// The first row of the next ones that has a message to keep.
const FIRST_KEPT: &str = "
    SELECT sequence FROM outbox
    WHERE sequence > ?1 AND sequence <= ?2 AND (published_at IS NULL OR published_at >= ?3)
    ORDER BY sequence LIMIT 1";

/// The most rows whose messages are dropped at once.
const DROPPED: i64 = 256;

const NEXT_KEPT: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NOT NULL AND bytes IS NOT NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place LIMIT 1";

/// A message that was paid for and that the witness has accepted. Only this module creates one.
#[derive(Clone, Debug)]
pub struct Paid {
    sequence: i64,
    place: u32,
    window: Span,
    sealed: Sealed,
}

impl Paid {
    pub fn sealed(&self) -> &Sealed {
        &self.sealed
    }

    pub fn window(&self) -> Span {
        self.window
    }
}

impl Ledger {
    /// The first unpublished message after `after`, if it is due; in the order of windows and keys.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if the message is not the one that was paid for.
    pub fn deliverable(&self, accepted: &Head, after: Option<&Paid>, now: Timestamp) -> Result<Option<Paid>, Error> {
        let next = self.message(NEXT_UNPUBLISHED, accepted, after)?;
        Ok(next.filter(|(_, publish_at)| *publish_at <= now).map(|(paid, _)| paid))
    }

    /// When the first unpublished message is due.
    ///
    /// # Errors
    ///
    /// As for [`deliverable`](Self::deliverable).
    pub fn next_due(&self, accepted: &Head) -> Result<Option<Timestamp>, Error> {
        Ok(self.message(NEXT_UNPUBLISHED, accepted, None)?.map(|(_, publish_at)| publish_at))
    }

    /// The first published message after `after` whose bytes are still kept.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// As for [`deliverable`](Self::deliverable).
    pub fn next_kept(&self, accepted: &Head, after: Option<&Paid>) -> Result<Option<Paid>, Error> {
        Ok(self.message(NEXT_KEPT, accepted, after)?.map(|(paid, _)| paid))
    }

    /// How many messages are not known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn unpublished(&self) -> Result<u64, Error> {
        let count = "SELECT count(*) FROM outbox WHERE published_at IS NULL";
        let count: i64 =
            self.connection.query_row(count, [], |row| row.get(0)).map_err(|e| Error::sqlite(&self.file, e))?;
        Ok(count.unsigned_abs())
    }

    /// Whether any message is known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn has_published(&self) -> Result<bool, Error> {
        let any = "SELECT EXISTS (SELECT 1 FROM outbox WHERE published_at IS NOT NULL)";
        self.connection.query_row(any, [], |row| row.get(0)).map_err(|e| Error::sqlite(&self.file, e))
    }

    /// Records that all of `paid` is durable at the sink, and drops messages whose retention is over, in the order of their rows.
    /// Their digests stay.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be written; it then accepts no more writes.
    pub fn mark_published(&mut self, paid: &[Paid], now: Timestamp) -> Result<(), Error> {
        let keep_from = now.minus(self.keep_published);
        let head = i64::try_from(self.state.head.sequence).unwrap_or(i64::MAX);
        self.write(|transaction| {
            drop_old(transaction, head, keep_from)?;
            let mark = "UPDATE outbox SET published_at = ?3 WHERE sequence = ?1 AND place = ?2";
            let mut mark = transaction.prepare(mark)?;
            for (sequence, place) in paid.iter().map(Paid::slot) {
                match mark.execute(params![sequence, place, now.micros()])? {
                    1 => {}
                    count => return Err(rusqlite::Error::StatementChangedRows(count)),
                }
            }
            Ok(())
        })
    }

    /// The message that the query `choice` finds after `after`, and when it is due.
    fn message(&self, choice: &str, accepted: &Head, after: Option<&Paid>) -> Result<Option<(Paid, Timestamp)>, Error> {
        // A foreign head covers none of our rows; the head that a new ledger follows is older than all of them.
        if !self.contains(accepted)? {
            return Ok(None);
        }
        let sqlite = |error| Error::sqlite(&self.file, error);
        let (sequence, place) = after.map_or((-1, -1), Paid::slot);
        let accepted = i64::try_from(accepted.sequence).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare(choice).map_err(sqlite)?;
        let found = statement.query_row(params![accepted, sequence, place], |row| {
            let (sequence, place): (i64, u32) = (row.get(0)?, row.get(1)?);
            let (key, headers, bytes): (String, String, Vec<u8>) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((sequence, place, key, headers, bytes))
        });
        let Some((sequence, place, key, headers, bytes)) = found.optional().map_err(sqlite)? else { return Ok(None) };
        // The row was verified when the file was opened; the file may have been edited since.
        let edited = || Error::damaged(&self.file, format!("row {sequence}: its message {place} was changed"));
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.as_ref().is_none_or(|row| row.sequence != sequence) {
            *outgoing = Outgoing::read(&self.connection, sequence).map_err(sqlite)?;
        }
        let row = outgoing.as_ref().ok_or_else(edited)?;
        let paid_for = usize::try_from(place).ok().and_then(|place| row.messages.get(place)).ok_or_else(edited)?;
        if !paid_for.is(&key, &headers, Some(&bytes)) {
            return Err(edited());
        }
        let headers = serde_json::from_str(&headers).map_err(|_| edited())?;
        let paid = Paid { sequence, place, window: row.window, sealed: Sealed { key, headers, bytes } };
        Ok(Some((paid, row.publish_at)))
    }
}

/// Drops messages that were published before `keep_from`, in the order of their rows, of which `head` is the newest.
pub(super) fn drop_old(transaction: &Transaction<'_>, head: i64, keep_from: Timestamp) -> rusqlite::Result<()> {
    let pruned = store::pruned(transaction)?;
    let last = head.min(pruned.saturating_add(DROPPED));
    let kept = transaction.query_row(FIRST_KEPT, [pruned, last, keep_from.micros()], |row| row.get::<_, i64>(0));
    let last = kept.optional()?.map_or(last, |kept| kept - 1);
    if last > pruned {
        transaction.execute("DELETE FROM outbox WHERE sequence <= ?1", [last])?;
        transaction.execute("UPDATE kept SET pruned = ?1", [last])?;
    }
    Ok(())
}

impl Paid {
    fn slot(&self) -> (i64, i64) {
        (self.sequence, i64::from(self.place))
    }
}
