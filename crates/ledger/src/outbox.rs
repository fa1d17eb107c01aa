//! The messages of a ledger: which may be published, which have been, and which bytes are still kept.
//!
//! The life of a message: [`Ledger::pay_window`] stores it with its row. The witness accepts the row's claim; then [`Ledger::due_messages`] gives
//! it out once it is due. When the sink has it durably, [`Ledger::mark_published`] notes the time. Its bytes are kept for a while, to be
//! published again ([`Ledger::kept_messages`]), and dropped in the order of their rows: one that is not published holds up all behind it.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::chain::{Digest, Head};
use super::error::LedgerError;
use super::open::Ledger;
use super::outgoing::OutgoingRow;
use crate::store;
use bernstream_synopsis::Encoded;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

const SELECT_UNPUBLISHED: &str = "
    SELECT sequence, place, key, headers, bytes FROM outbox
    WHERE published_at IS NULL AND sequence <= ?1 AND (sequence, place) > (?2, ?3)
    ORDER BY sequence, place";

/// The first row of the next ones that has a message to keep.
const FIRST_KEPT: &str = "
    SELECT sequence FROM outbox
    WHERE sequence > ?1 AND sequence <= ?2 AND (published_at IS NULL OR published_at >= ?3)
    ORDER BY sequence LIMIT 1";

/// Number of bytes from which on no further message is taken at once.
const PORTION_BYTES: usize = 1 << 22;

/// The most rows whose messages are dropped at once.
const DROPPED_ROWS: i64 = 256;

/// The most messages that are dropped at once; one row may have more.
const DROPPED_MESSAGES: i64 = 4096;

/// The row of the first message that is one too many to be dropped at once.
const TOO_MANY: &str =
    "SELECT sequence FROM outbox WHERE sequence > ?1 ORDER BY sequence, place LIMIT 1 OFFSET ?2";

const SELECT_KEPT: &str = "
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

    /// Time from which on it is due on the output.
    pub fn publish_at(&self) -> Timestamp {
        self.publish_at
    }

    fn slot(&self) -> OutboxSlot {
        OutboxSlot {
            sequence: self.sequence,
            place: i64::from(self.place),
        }
    }
}

/// Place of a message in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutboxSlot {
    pub(super) sequence: i64,
    pub(super) place: i64,
}

impl OutboxSlot {
    /// A slot that no message has, before all others.
    const BEFORE_ALL: OutboxSlot = OutboxSlot {
        sequence: -1,
        place: -1,
    };

    /// Returns true if both are of one row.
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
    /// Place of its bytes, if they are still kept.
    pub kept: Option<OutboxSlot>,
}

impl Ledger {
    /// The messages of the row `sequence` that are known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn published_in(&self, sequence: u64) -> Result<Vec<PublishedMessage>, LedgerError> {
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        let Some(row) = OutgoingRow::read_row(&self.connection, sequence)
            .map_err(LedgerError::sqlite(&self.file))?
        else {
            return Ok(Vec::new());
        };
        let waiting = "SELECT published_at IS NULL FROM outbox WHERE sequence = ?1 AND place = ?2";
        let mut waiting = self
            .connection
            .prepare(waiting)
            .map_err(LedgerError::sqlite(&self.file))?;
        let mut published = Vec::new();
        for (place, message) in (0..).zip(row.messages) {
            let is_waiting: Option<bool> = waiting
                .query_row([sequence, place], |row| row.get(0))
                .optional()
                .map_err(LedgerError::sqlite(&self.file))?;
            let kept = match is_waiting {
                Some(true) => continue,
                Some(false) => Some(OutboxSlot { sequence, place }),
                None => None,
            };
            published.push(PublishedMessage {
                key: message.key,
                digest: message.bytes,
                kept,
            });
        }
        Ok(published)
    }

    /// The messages of the newest row of which one is known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn newest_messages(&self) -> Result<Vec<PublishedMessage>, LedgerError> {
        match self.newest_published()? {
            Some(newest) => self.published_in(newest.sequence),
            None => Ok(Vec::new()),
        }
    }

    /// The messages in these slots, with their bytes.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if a message is not there or not the one that was paid for.
    pub fn kept_in_slots(&self, slots: &[OutboxSlot]) -> Result<Vec<Paid>, LedgerError> {
        let stored = "SELECT sequence, place, key, headers, bytes FROM outbox WHERE sequence = ?1 AND place = ?2";
        let mut messages = Vec::with_capacity(slots.len());
        for slot in slots {
            let message = self
                .connection
                .query_row(stored, [slot.sequence, slot.place], OutboxMessage::read)
                .map_err(LedgerError::sqlite(&self.file))?;
            messages.push(self.check_paid(message)?);
        }
        Ok(messages)
    }

    /// The first unpublished messages that are due, in the order of windows and keys: up to `most`, or 4 MiB.
    ///
    /// Only up to `accepted`, the head of the witness.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or if a message is not the one that was paid for.
    pub fn due_messages(
        &self,
        accepted: &Head,
        now: Timestamp,
        most: usize,
    ) -> Result<Vec<Paid>, LedgerError> {
        let mut due = MessagePortion::new(most);
        self.each_message(SELECT_UNPUBLISHED, accepted, None, |paid| {
            paid.publish_at <= now && due.add(paid)
        })?;
        Ok(due.messages)
    }

    /// Time at which the first unpublished message is due.
    ///
    /// # Errors
    ///
    /// As for [`due_messages`](Self::due_messages).
    pub fn next_due(&self, accepted: &Head) -> Result<Option<Timestamp>, LedgerError> {
        let mut next = None;
        self.each_message(SELECT_UNPUBLISHED, accepted, None, |paid| {
            next = Some(paid.publish_at);
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
    /// As for [`due_messages`](Self::due_messages).
    pub fn kept_messages(
        &self,
        accepted: &Head,
        after: Option<&Paid>,
        most: usize,
    ) -> Result<Vec<Paid>, LedgerError> {
        let mut kept = MessagePortion::new(most);
        self.each_message(SELECT_KEPT, accepted, after, |paid| kept.add(paid))?;
        Ok(kept.messages)
    }

    /// Number of messages that are not known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn unpublished_count(&self) -> Result<u64, LedgerError> {
        let count = "SELECT count(*) FROM outbox WHERE published_at IS NULL";
        let count: i64 = self
            .connection
            .query_row(count, [], |row| row.get(0))
            .map_err(LedgerError::sqlite(&self.file))?;
        Ok(count.unsigned_abs())
    }

    /// Returns true if any message is known to be published.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn has_published(&self) -> Result<bool, LedgerError> {
        let any = "SELECT EXISTS (SELECT 1 FROM outbox WHERE published_at IS NOT NULL)";
        self.connection
            .query_row(any, [], |row| row.get(0))
            .map_err(LedgerError::sqlite(&self.file))
    }

    /// Records that all of `paid` is durable at the sink, and drops messages whose retention is over, in the order of their rows.
    /// Their digests stay.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be written; it then accepts no more writes.
    pub fn mark_published(&mut self, paid: &[Paid], now: Timestamp) -> Result<(), LedgerError> {
        let keep_from = now.minus(self.keep_published);
        let head = i64::try_from(self.state.head.sequence).unwrap_or(i64::MAX);
        self.write_transaction(|transaction| {
            drop_old(transaction, head, keep_from)?;
            let mark = "UPDATE outbox SET published_at = ?3 WHERE sequence = ?1 AND place = ?2";
            let mut mark = transaction.prepare(mark)?;
            for message in paid {
                let OutboxSlot { sequence, place } = message.slot();
                match mark.execute(params![sequence, place, now.micros()])? {
                    1 => {}
                    count => return Err(rusqlite::Error::StatementChangedRows(count)),
                }
            }
            Ok(())
        })
    }

    /// Passes the messages that `query` finds after `after` to `take`, until that says `false`.
    fn each_message(
        &self,
        query: &str,
        accepted: &Head,
        after: Option<&Paid>,
        mut take: impl FnMut(Paid) -> bool,
    ) -> Result<(), LedgerError> {
        // A foreign head covers none of our rows; the head that a new ledger follows is older than all of them.
        if !self.contains(accepted)? {
            return Ok(());
        }
        let after = after.map_or(OutboxSlot::BEFORE_ALL, Paid::slot);
        let accepted = i64::try_from(accepted.sequence).unwrap_or(i64::MAX);
        let mut statement = self
            .connection
            .prepare(query)
            .map_err(LedgerError::sqlite(&self.file))?;
        let mut found = statement
            .query(params![accepted, after.sequence, after.place])
            .map_err(LedgerError::sqlite(&self.file))?;
        while let Some(row) = found.next().map_err(LedgerError::sqlite(&self.file))? {
            let message = OutboxMessage::read(row).map_err(LedgerError::sqlite(&self.file))?;
            if !take(self.check_paid(message)?) {
                break;
            }
        }
        Ok(())
    }

    /// Compares `message` with what its row has paid for.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] if they differ, or if the ledger cannot be read.
    fn check_paid(&self, message: OutboxMessage) -> Result<Paid, LedgerError> {
        let sequence = message.sequence;
        let place = message.place;
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.as_ref().is_none_or(|row| row.sequence != sequence) {
            *outgoing = OutgoingRow::read_row(&self.connection, sequence)
                .map_err(LedgerError::sqlite(&self.file))?;
        }
        // The row was verified when the file was opened; the file may have been edited since.
        let paid = outgoing.as_ref().and_then(|row| message.paid_for_by(row));
        paid.ok_or_else(|| {
            LedgerError::damaged(
                &self.file,
                format!("row {sequence}: its message {place} was changed"),
            )
        })
    }
}

/// Messages that are taken at once.
struct MessagePortion {
    messages: Vec<Paid>,
    bytes: usize,
    most: usize,
}

impl MessagePortion {
    fn new(most: usize) -> Self {
        MessagePortion {
            messages: Vec::new(),
            bytes: 0,
            most,
        }
    }

    /// Adds a message; returns true if there is room for another one.
    fn add(&mut self, paid: Paid) -> bool {
        self.bytes = self.bytes.saturating_add(paid.encoded.bytes.len());
        self.messages.push(paid);
        self.messages.len() < self.most && self.bytes < PORTION_BYTES
    }
}

/// A message as it is stored.
struct OutboxMessage {
    sequence: i64,
    place: u32,
    key: String,
    headers: String,
    bytes: Vec<u8>,
}

impl OutboxMessage {
    /// Reads the columns `sequence, place, key, headers, bytes`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let sequence = row.get(0)?;
        let place = row.get(1)?;
        Ok(OutboxMessage {
            sequence,
            place,
            key: row.get(2)?,
            headers: row.get(3)?,
            bytes: row.get(4)?,
        })
    }

    /// Returns the message, if it is what `row` has paid for.
    fn paid_for_by(self, row: &OutgoingRow) -> Option<Paid> {
        let OutboxMessage {
            sequence,
            place,
            key,
            headers,
            bytes,
        } = self;
        let message = row.messages.get(usize::try_from(place).ok()?)?;
        if !message.has_content(&key, &headers, Some(&bytes)) {
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

/// The first row with a message that is not known to be published.
pub(super) fn first_unpublished(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let first =
        "SELECT sequence FROM outbox WHERE published_at IS NULL ORDER BY sequence, place LIMIT 1";
    connection.query_row(first, [], |row| row.get(0)).optional()
}

/// Drops messages that were published before `keep_from`, in the order of their rows, of which `head` is the newest.
pub(super) fn drop_old(
    transaction: &Transaction<'_>,
    head: i64,
    keep_from: Timestamp,
) -> rusqlite::Result<()> {
    let pruned = store::pruned_to(transaction)?;
    let mut last = head.min(pruned.saturating_add(DROPPED_ROWS));
    let too_many: Option<i64> = transaction
        .query_row(TOO_MANY, [pruned, DROPPED_MESSAGES], |row| row.get(0))
        .optional()?;
    if let Some(row) = too_many {
        // One row at least, however many messages it has.
        last = last.min((row - 1).max(pruned + 1));
    }
    let first_kept: Option<i64> = transaction
        .query_row(FIRST_KEPT, [pruned, last, keep_from.micros()], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(row) = first_kept {
        last = row - 1;
    }
    if last > pruned {
        transaction.execute("DELETE FROM outbox WHERE sequence <= ?1", [last])?;
        transaction.execute("UPDATE kept SET pruned = ?1", [last])?;
    }
    Ok(())
}
