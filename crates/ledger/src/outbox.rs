//! The messages of a ledger: which may be published, which have been, and which bytes are still kept.
//!
//! The life of a message: [`Ledger::pay`] stores it with its row. The witness accepts the row's claim; then [`Ledger::deliverable`] gives
//! it out once it is due. When the sink has it durably, [`Ledger::mark_published`] notes the time. Its bytes are kept for a while, to be
//! published again ([`Ledger::kept`]), and dropped in the order of their rows: one that is not published holds up all behind it.

use rusqlite::{OptionalExtension, Transaction, params};

use super::chain::{Digest, Head};
use super::error::Error;
use super::open::Ledger;
use super::outgoing::Outgoing;
use crate::store;
use bernstream_synopsis::Encoded;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

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

/// The most messages that are dropped at once; one row may have more.
const DROPPED_MESSAGES: i64 = 4096;

/// The row of the first message that is one too many to be dropped at once.
const TOO_MANY: &str =
    "SELECT sequence FROM outbox WHERE sequence > ?1 ORDER BY sequence, place LIMIT 1 OFFSET ?2";

const KEPT: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NOT NULL AND bytes IS NOT NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place";

/// A message that was paid for. Only this module creates one, from what the database holds, and gives out none whose row the witness
/// has not accepted:
///
/// ```compile_fail,E0451
/// # fn unpaid(paid: bernstream_ledger::Paid, sealed: &bernstream_release::Sealed) {
/// let other = bernstream_ledger::Paid { encoded: sealed.encoded().clone(), ..paid };
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

/// Where the outbox has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    sequence: i64,
    place: i64,
}

impl Slot {
    /// Whether both are of one row.
    pub fn is_of_row_of(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

/// A message that is known to be published.
#[derive(Clone, Debug)]
pub struct PublishedMessage {
    pub key: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Where its bytes are, if they are still kept.
    pub kept: Option<Slot>,
}

impl Ledger {
    /// The messages of the row `sequence` that are known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn published_in(&self, sequence: u64) -> Result<Vec<PublishedMessage>, Error> {
        let sqlite = |error| Error::sqlite(&self.file, error);
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        let Some(row) = Outgoing::read(&self.connection, sequence).map_err(sqlite)? else {
            return Ok(Vec::new());
        };
        let stored = "SELECT published_at IS NULL FROM outbox WHERE sequence = ?1 AND place = ?2";
        let mut stored = self.connection.prepare(stored).map_err(sqlite)?;
        let mut found = Vec::new();
        for (place, message) in (0..).zip(row.messages) {
            let is_waiting: Option<bool> = stored
                .query_row([sequence, place], |row| row.get(0))
                .optional()
                .map_err(sqlite)?;
            if is_waiting != Some(true) {
                let kept = is_waiting.map(|_| Slot { sequence, place });
                found.push(PublishedMessage {
                    key: message.key,
                    digest: message.bytes,
                    kept,
                });
            }
        }
        Ok(found)
    }

    /// The messages of the newest row of which one is known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn newest_messages(&self) -> Result<Vec<PublishedMessage>, Error> {
        self.newest_published()?
            .map_or(Ok(Vec::new()), |newest| self.published_in(newest.sequence))
    }

    /// The messages in these slots, with their bytes.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if a message is not there or not the one that was paid for.
    pub fn kept_in(&self, slots: &[Slot]) -> Result<Vec<Paid>, Error> {
        let stored = "SELECT sequence, place, key, headers, bytes FROM outbox WHERE sequence = ?1 AND place = ?2";
        let stored = |slot: &Slot| {
            let read = self
                .connection
                .query_row(stored, [slot.sequence, slot.place], Stored::read);
            self.paid(read.map_err(|error| Error::sqlite(&self.file, error))?)
        };
        slots.iter().map(stored).collect()
    }

    /// The first unpublished messages that are due, in the order of windows and keys: up to `most`, or 4 MiB.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if a message is not the one that was paid for.
    pub fn deliverable(
        &self,
        accepted: &Head,
        now: Timestamp,
        most: usize,
    ) -> Result<Vec<Paid>, Error> {
        let mut due = Portion::new(most);
        self.each_message(UNPUBLISHED, accepted, None, |paid, publish_at| {
            publish_at <= now && due.take(paid)
        })?;
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
    pub fn kept(
        &self,
        accepted: &Head,
        after: Option<&Paid>,
        most: usize,
    ) -> Result<Vec<Paid>, Error> {
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
        let count: i64 = self
            .connection
            .query_row(count, [], |row| row.get(0))
            .map_err(|e| Error::sqlite(&self.file, e))?;
        Ok(count.unsigned_abs())
    }

    /// Whether any message is known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn has_published(&self) -> Result<bool, Error> {
        let any = "SELECT EXISTS (SELECT 1 FROM outbox WHERE published_at IS NOT NULL)";
        self.connection
            .query_row(any, [], |row| row.get(0))
            .map_err(|e| Error::sqlite(&self.file, e))
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
        let mut found = statement
            .query(params![accepted, sequence, place])
            .map_err(sqlite)?;
        while let Some(row) = found.next().map_err(sqlite)? {
            let paid = self.paid(Stored::read(row).map_err(sqlite)?)?;
            let due = paid.publish_at;
            if !take(paid, due) {
                break;
            }
        }
        Ok(())
    }

    /// The message that is `stored`, which its row has paid for.
    fn paid(&self, stored: Stored) -> Result<Paid, Error> {
        let sequence = stored.sequence;
        let place = stored.place;
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.as_ref().is_none_or(|row| row.sequence != sequence) {
            *outgoing = Outgoing::read(&self.connection, sequence)
                .map_err(|error| Error::sqlite(&self.file, error))?;
        }
        // The row was verified when the file was opened; the file may have been edited since.
        let paid = outgoing.as_ref().and_then(|row| stored.paid_for_by(row));
        paid.ok_or_else(|| {
            Error::damaged(
                &self.file,
                format!("row {sequence}: its message {place} was changed"),
            )
        })
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
        Portion {
            messages: Vec::new(),
            bytes: 0,
            most,
        }
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
        let sequence = row.get(0)?;
        let place = row.get(1)?;
        Ok(Stored {
            sequence,
            place,
            key: row.get(2)?,
            headers: row.get(3)?,
            bytes: row.get(4)?,
        })
    }

    /// The message, if it is what `row` has paid for.
    fn paid_for_by(self, row: &Outgoing) -> Option<Paid> {
        let Stored {
            sequence,
            place,
            key,
            headers,
            bytes,
        } = self;
        let message = usize::try_from(place)
            .ok()
            .and_then(|place| row.messages.get(place))?;
        if !message.is(&key, &headers, Some(&bytes)) {
            return None;
        }
        let headers = serde_json::from_str(&headers).ok()?;
        let encoded = Encoded {
            key,
            headers,
            bytes,
        };
        Some(Paid {
            sequence,
            place,
            window: row.window,
            publish_at: row.publish_at,
            encoded,
        })
    }
}

/// Drops messages that were published before `keep_from`, in the order of their rows, of which `head` is the newest.
pub(super) fn drop_old(
    transaction: &Transaction<'_>,
    head: i64,
    keep_from: Timestamp,
) -> rusqlite::Result<()> {
    let pruned = store::pruned(transaction)?;
    let mut last = head.min(pruned.saturating_add(DROPPED));
    let too_many = transaction.query_row(TOO_MANY, [pruned, DROPPED_MESSAGES], |row| {
        row.get::<_, i64>(0)
    });
    if let Some(row) = too_many.optional()? {
        // One row at least, however many messages it has.
        last = last.min((row - 1).max(pruned + 1));
    }
    let first_kept = transaction.query_row(FIRST_KEPT, [pruned, last, keep_from.micros()], |row| {
        row.get::<_, i64>(0)
    });
    if let Some(row) = first_kept.optional()? {
        last = row - 1;
    }
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
