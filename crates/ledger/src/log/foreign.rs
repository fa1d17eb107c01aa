//! The rows that another worker has appended to the log, for one that follows it with a ledger of its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Transaction, params};

use super::body::RowBody;
use super::fields::RowNoise;
use crate::chain::{ClosedWindow, Configuration, Digest, Head, LedgerRow, ReleaseOutcome};
use crate::outgoing::OutputMessage;
use crate::spent::{SpentBlock, set_spent};
use crate::states::delete_state;
use bernstream_synopsis::clock::Timestamp;

/// So many bytes of messages and noise are kept of rows that the ledger does not have. A worker that is further behind takes them in portions,
/// and reads the log again for each.
const MOST_BYTES: usize = 64 << 20;

/// Rows that the ledger does not have.
#[derive(Default)]
pub(super) struct RemoteRows {
    /// The ledger has the rows up to this number, or others in their place; `None` while nobody follows.
    own: Option<u64>,
    bodies: BTreeMap<Head, Box<RowBody>>,
    bytes: usize,
}

impl RemoteRows {
    pub fn wants(&self, body: &RowBody) -> bool {
        self.own.is_some_and(|own| body.entry.head.sequence > own)
    }

    pub fn keep(&mut self, body: Box<RowBody>) {
        let head = body.entry.head;
        let before = self.bodies.get(&head).map_or(0, |known| body_size(known));
        let kept = match self.bodies.entry(head) {
            Entry::Vacant(vacant) => vacant.insert(body),
            Entry::Occupied(known) => {
                let known = known.into_mut();
                known.merge(*body);
                known
            }
        };
        self.bytes = self
            .bytes
            .saturating_sub(before)
            .saturating_add(body_size(kept));
        // The next rows are needed first. One of them there always is.
        while self.bytes > MOST_BYTES && self.bodies.len() > 1 {
            if let Some((_, newest)) = self.bodies.pop_last() {
                self.bytes = self.bytes.saturating_sub(body_size(&newest));
            }
        }
    }

    pub fn forget_all(&mut self) {
        self.bodies.clear();
        self.bytes = 0;
    }

    /// The ledger has rows up to number `own`.
    pub fn follow(&mut self, own: u64) {
        self.own = Some(own);
        self.bodies.retain(|head, _| head.sequence > own);
        self.bytes = self.bodies.values().map(|body| body_size(body)).sum();
    }

    /// Returns true if a row is there with its messages. Of its noise a later row may have replaced some.
    pub fn has_row(&self, head: &Head) -> bool {
        self.bodies
            .get(head)
            .is_some_and(|body| body.has_messages())
    }

    /// The row that has paid for a message on the output.
    pub fn row_that_paid(&self, message: &OutputMessage) -> Option<Head> {
        let first = Head {
            sequence: message.sequence,
            digest: Digest::from([0; 32]),
        };
        let last = Head {
            sequence: message.sequence,
            digest: Digest::from([u8::MAX; 32]),
        };
        for (head, body) in self.bodies.range(first..=last) {
            if let Ok(LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { messages, .. },
                ..
            })) = body.entry.row()
                && message.is_one_of(&messages)
            {
                return Some(*head);
            }
        }
        None
    }

    /// The row with its messages, if it is there.
    pub fn take_row(&mut self, head: &Head) -> Option<RowBody> {
        let body = self
            .bodies
            .remove(head)
            .filter(|body| body.has_messages())?;
        self.bytes = self.bytes.saturating_sub(body_size(&body));
        Some(*body)
    }
}

/// Number of bytes that a body takes.
fn body_size(body: &RowBody) -> usize {
    let mut size = body.entry.text_size();
    for sent in body.messages.iter().flatten() {
        size = size.saturating_add(sent.bytes.len() + sent.headers.len() + sent.key.len());
    }
    for state in &body.states {
        size = size.saturating_add(state.bytes.len());
    }
    size
}

/// Fate of the messages of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageFate {
    Dropped,
    Unpublished,
    PublishedAt(Timestamp),
}

/// Writes a row that was verified, with the blocks that it charged, the noise that it left, and its messages.
pub(crate) fn write_row(
    transaction: &Transaction<'_>,
    body: &RowBody,
    row: Option<&LedgerRow>,
    spent: &[SpentBlock],
    messages: MessageFate,
) -> rusqlite::Result<()> {
    let sequence = body.entry.sequence()?;
    body.entry.insert(transaction)?;
    set_spent(transaction, spent)?;
    for RowNoise { slot, salt, bytes } in &body.states {
        let set = "INSERT INTO states VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (slot) DO UPDATE SET sequence = ?2, salt = ?3, bytes = ?4";
        transaction.execute(set, params![slot, sequence, salt.as_slice(), bytes])?;
    }
    if let Some(LedgerRow::Configuration(Configuration { ended, .. })) = row {
        for slot in ended {
            delete_state(transaction, slot)?;
        }
    }
    let published_at = match messages {
        MessageFate::Dropped => return Ok(()),
        MessageFate::Unpublished => None,
        MessageFate::PublishedAt(time) => Some(time.micros()),
    };
    let mut insert = transaction.prepare("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (place, sent) in (0_i64..).zip(body.messages.iter().flatten()) {
        insert.execute(params![
            sequence,
            place,
            sent.key,
            sent.headers,
            sent.bytes,
            published_at
        ])?;
    }
    Ok(())
}
