//! The messages of a ledger: which may be published, which have been, and which bytes are still kept.

use rusqlite::{OptionalExtension, Transaction, params};

use super::chain::{Head, Outcome};
use super::error::Error;
use super::open::Ledger;
use super::outgoing::Outgoing;
use super::store;
use crate::clock::Timestamp;
use crate::synopsis::Encoded;
use crate::window::grid::Span;

const UNPUBLISHED: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place";

/// The first row of the next ones that has a message to keep.
const FIRST_KEPT: &str = "
    SELECT sequence FROM outbox
    WHERE sequence > ?1 AND sequence <= ?2 AND (published_at IS NULL OR published_at >= ?3)
    ORDER BY sequence LIMIT 1";

/// With so many bytes, no further message is taken at once.
const BYTES: usize = 1 << 22;

/// The most rows whose messages are dropped at once.
const DROPPED: i64 = 256;

/// The row of the first message that is one too many to be dropped at once; one row may have more.
const TOO_MANY: &str = "SELECT sequence FROM outbox WHERE sequence > ?1 ORDER BY sequence, place LIMIT 1 OFFSET 4096";

const KEPT: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NOT NULL AND bytes IS NOT NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place";

/// A message that was paid for and that the witness has accepted. Only this module creates one, from what the database holds:
///
/// ```compile_fail,E0451
/// # fn unpaid(paid: bernstream::ledger::Paid, sealed: &bernstream::synopsis::Sealed) {
/// let other = bernstream::ledger::Paid { encoded: sealed.encoded().clone(), ..paid };
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Paid {
    sequence: i64,
    place: u32,
    window: Span,
    publish_at: Timestamp,
    encoded: Encoded,
}

impl Paid {
    pub fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    pub fn window(&self) -> Span {
        self.window
    }

    /// When it is due on the output: not before.
    pub fn publish_at(&self) -> Timestamp {
        self.publish_at
    }
}

/// A message that is known to be published.
#[derive(Clone, Debug)]
pub struct PublishedMessage {
    pub sequence: u64,
    pub key: String,
    /// With its bytes, if they are still kept.
    pub paid: Option<Paid>,
}

impl Ledger {
    /// The messages of the rows up to `newest` that are known to be published, about `most` of them, those of the newest row first.
    ///
    /// # Errors
    ///
    /// As for [`deliverable`](Self::deliverable).
    pub fn newest_messages(&self, newest: &Head, most: usize) -> Result<Vec<PublishedMessage>, Error> {
        let mut count = 0;
        let rows = self.newest(|closed| {
            if let Outcome::Released { messages, .. } = &closed.outcome {
                count += messages.len();
            }
            count < most
        })?;
        let mut found = Vec::new();
        for (sequence, _) in rows.into_iter().filter(|(sequence, _)| *sequence <= newest.sequence) {
            self.published_by(sequence, &mut found)?;
        }
        Ok(found)
    }

    /// The messages of a row that are known to be published.
    fn published_by(&self, sequence: u64, found: &mut Vec<PublishedMessage>) -> Result<(), Error> {
        let sqlite = |error| Error::sqlite(&self.file, error);
        let number = i64::try_from(sequence).unwrap_or(i64::MAX);
        let Some(row) = Outgoing::read(&self.connection, number).map_err(sqlite)? else { return Ok(()) };
        let stored = "SELECT sequence, place, key, headers, bytes FROM outbox
                      WHERE sequence = ?1 AND place = ?2 AND bytes IS NOT NULL";
        let waiting =
            "SELECT EXISTS (SELECT 1 FROM outbox WHERE sequence = ?1 AND place = ?2 AND published_at IS NULL)";
        for (place, message) in (0_i64..).zip(&row.messages) {
            if self.connection.query_row(waiting, [number, place], |row| row.get(0)).map_err(sqlite)? {
                continue;
            }
            let stored = self.connection.query_row(stored, [number, place], Stored::read).optional().map_err(sqlite)?;
            let paid = stored.and_then(|stored| stored.paid_for_by(&row));
            found.push(PublishedMessage { sequence, key: message.key.clone(), paid });
        }
        Ok(())
    }

    /// The first unpublished messages that are due, in the order of windows and keys: up to `most`, or 4 MiB.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if a message is not the one that was paid for.
    pub fn deliverable(&self, accepted: &Head, now: Timestamp, most: usize) -> Result<Vec<Paid>, Error> {
        let mut due = Portion::new(most);
        self.each_message(UNPUBLISHED, accepted, None, |paid, publish_at| publish_at <= now && due.take(paid))?;
        Ok(due.messages)
    }

    /// When the first unpublished message is due.
    ///
    /// # Errors
    ///
    /// As for [`deliverable`](Self::deliverable).
    pub fn next_due(&self, accepted: &Head) -> Result<Option<Timestamp>, Error> {
        let mut next = None;
        self.each_message(UNPUBLISHED, accepted, None, |_, publish_at| {
            next = Some(publish_at);
            false
        })?;
        Ok(next)
    }

    /// The first published messages after `after` whose bytes are still kept: up to `most`, or 4 MiB.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// As for [`deliverable`](Self::deliverable).
    pub fn kept(&self, accepted: &Head, after: Option<&Paid>, most: usize) -> Result<Vec<Paid>, Error> {
        let mut kept = Portion::new(most);
        self.each_message(KEPT, accepted, after, |paid, _| kept.take(paid))?;
        Ok(kept.messages)
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

    /// Passes the messages that the query `choice` finds after `after` to `take`, and when each is due, until that says `false`.
    fn each_message(
        &self,
        choice: &str,
        accepted: &Head,
        after: Option<&Paid>,
        mut take: impl FnMut(Paid, Timestamp) -> bool,
    ) -> Result<(), Error> {
        // A foreign head covers none of our rows; the head that a new ledger follows is older than all of them.
        if !self.contains(accepted)? {
            return Ok(());
        }
        let sqlite = |error| Error::sqlite(&self.file, error);
        let (sequence, place) = after.map_or((-1, -1), Paid::slot);
        let accepted = i64::try_from(accepted.sequence).unwrap_or(i64::MAX);
        let mut statement = self.connection.prepare(choice).map_err(sqlite)?;
        let mut found = statement.query(params![accepted, sequence, place]).map_err(sqlite)?;
        let mut outgoing = self.outgoing.borrow_mut();
        while let Some(row) = found.next().map_err(sqlite)? {
            let stored = Stored::read(row).map_err(sqlite)?;
            let (sequence, place) = (stored.sequence, stored.place);
            if outgoing.as_ref().is_none_or(|row| row.sequence != sequence) {
                *outgoing = Outgoing::read(&self.connection, sequence).map_err(sqlite)?;
            }
            // The row was verified when the file was opened; the file may have been edited since.
            let edited = || Error::damaged(&self.file, format!("row {sequence}: its message {place} was changed"));
            let row = outgoing.as_ref().ok_or_else(edited)?;
            let paid = stored.paid_for_by(row).ok_or_else(edited)?;
            if !take(paid, row.publish_at) {
                break;
            }
        }
        Ok(())
    }
}

/// As many messages as are taken at once.
struct Portion {
    messages: Vec<Paid>,
    bytes: usize,
    most: usize,
}

impl Portion {
    fn new(most: usize) -> Self {
        Portion { messages: Vec::new(), bytes: 0, most }
    }

    /// Takes a message; whether there is room for another one.
    fn take(&mut self, paid: Paid) -> bool {
        self.bytes = self.bytes.saturating_add(paid.encoded.bytes.len());
        self.messages.push(paid);
        self.messages.len() < self.most && self.bytes < BYTES
    }
}

/// A message as it is stored.
struct Stored {
    sequence: i64,
    place: u32,
    key: String,
    headers: String,
    bytes: Vec<u8>,
}

impl Stored {
    /// Reads the columns `sequence, place, key, headers, bytes`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (sequence, place) = (row.get(0)?, row.get(1)?);
        Ok(Stored { sequence, place, key: row.get(2)?, headers: row.get(3)?, bytes: row.get(4)? })
    }

    /// The message, if it is what `row` has paid for.
    fn paid_for_by(self, row: &Outgoing) -> Option<Paid> {
        let Stored { sequence, place, key, headers, bytes } = self;
        let message = usize::try_from(place).ok().and_then(|place| row.messages.get(place))?;
        if !message.is(&key, &headers, Some(&bytes)) {
            return None;
        }
        let headers = serde_json::from_str(&headers).ok()?;
        let encoded = Encoded { key, headers, bytes };
        Some(Paid { sequence, place, window: row.window, publish_at: row.publish_at, encoded })
    }
}

/// Drops messages that were published before `keep_from`, in the order of their rows, of which `head` is the newest.
pub(super) fn drop_old(transaction: &Transaction<'_>, head: i64, keep_from: Timestamp) -> rusqlite::Result<()> {
    let pruned = store::pruned(transaction)?;
    let last = head.min(pruned.saturating_add(DROPPED));
    let too_many = transaction.query_row(TOO_MANY, [pruned], |row| row.get::<_, i64>(0)).optional()?;
    let last = too_many.map_or(last, |row| last.min((row - 1).max(pruned + 1)));
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
