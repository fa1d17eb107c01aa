//! The end of an output: what it shows of the ledger that published there, and what it has lost of that.

use std::collections::HashMap;

use super::published::FoundMessage;
use bernstream_ledger as ledger;
use bernstream_ledger::{Digest, Head, Ledger, OutboxSlot, OutputMessage, PublishedMessage};

/// The newest messages of an output, without their bytes.
#[derive(Clone, Debug, Default)]
pub struct OutputTail {
    pub(super) parts: Vec<TailPart>,
    /// Messages have their keys, and an order: files have not.
    pub(super) has_keys: bool,
}

/// Newest messages of a partition, or a file.
#[derive(Clone, Debug, Default)]
pub(super) struct TailPart {
    messages: Vec<SeenSynopsis>,
    /// The one before which no other was looked at.
    first: Option<SeenSynopsis>,
    /// There was never another one before these.
    pub is_whole: bool,
}

/// A synopsis that was seen.
#[derive(Clone, Debug)]
pub(super) struct SeenSynopsis {
    offset: i64,
    key: String,
    row: OutputMessage,
}

/// Messages that were published and are not there.
#[derive(Debug, Default)]
pub struct LostMessages {
    /// Messages that can be sent again, in the order of the rows.
    pub kept: Vec<OutboxSlot>,
    /// Number of messages whose bytes are gone.
    pub gone: u64,
    /// Number of message keys of which nothing is left, so that it cannot be known whether all of it was lost or removed.
    pub unknown: usize,
}

impl SeenSynopsis {
    /// `None` for what is no synopsis.
    pub fn from_published(offset: i64, published: &FoundMessage) -> Option<Self> {
        Some(SeenSynopsis {
            offset,
            key: published.key().to_owned(),
            row: published.row()?,
        })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn digest(&self) -> Digest {
        self.row.digest
    }
}

impl TailPart {
    /// Takes a message, of which the place of the first one counts even where `is_of_use` is false.
    pub fn add_message(&mut self, seen: SeenSynopsis, is_of_use: bool) {
        if self
            .first
            .as_ref()
            .is_none_or(|first| seen.offset < first.offset)
        {
            self.first = Some(seen.clone());
        }
        if is_of_use {
            self.messages.push(seen);
        }
    }
}

/// Rows of a ledger of which an output has messages.
struct KnownRows<'t> {
    /// The newest row of each message key that is there.
    newest: HashMap<&'t str, u64>,
    /// The row after which nothing was removed, if it can be known.
    removed: Option<u64>,
}

impl KnownRows<'_> {
    /// The newest row with the key of this message that is there or was removed, if it can be known.
    fn newest_of(&self, message: &PublishedMessage) -> Option<u64> {
        self.newest
            .get(message.key.as_str())
            .copied()
            .or(self.removed)
    }
}

impl OutputTail {
    /// The rows that its messages name.
    pub fn rows(&self) -> Vec<OutputMessage> {
        self.messages().map(|seen| seen.row.clone()).collect()
    }

    fn messages(&self) -> impl Iterator<Item = &SeenSynopsis> {
        self.parts.iter().flat_map(|part| &part.messages)
    }

    /// Finds what it lacks at its end of what `ledger` has published up to the row `newest`, which the witness has accepted: of each message
    /// key everything after the newest that is there. What is missing before that was removed.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn lost_messages(
        &self,
        ledger: &Ledger,
        newest: &Head,
    ) -> Result<LostMessages, ledger::LedgerError> {
        let mut lost = LostMessages::default();
        if !self.has_keys {
            return Ok(lost);
        }
        let own = &ledger.genesis().ledger;
        let known = KnownRows {
            newest: self.newest_rows(own),
            removed: self.newest_removed(own),
        };
        let mut first = None;
        for message in ledger.published_in(newest.sequence)? {
            match known.newest_of(&message) {
                None => lost.unknown += 1,
                Some(row) => first = Some(row.min(first.unwrap_or(row))),
            }
        }
        let Some(first) = first else {
            return Ok(lost);
        };
        for sequence in first..=newest.sequence {
            for message in ledger.published_in(sequence)? {
                if known
                    .newest_of(&message)
                    .is_none_or(|newest| sequence <= newest)
                {
                    continue;
                }
                match message.kept {
                    Some(slot) => lost.kept.push(slot),
                    None => lost.gone += 1,
                }
            }
        }
        Ok(lost)
    }

    /// The newest row of each message key that is there: a row has one message of a key.
    fn newest_rows(&self, own: &str) -> HashMap<&str, u64> {
        let mut all: HashMap<&str, u64> = HashMap::new();
        for seen in self.messages().filter(|seen| seen.row.ledger == own) {
            let newest = all.entry(seen.key()).or_default();
            *newest = seen.row.sequence.max(*newest);
        }
        all
    }

    /// The row after which nothing was removed, whatever its key, if that can be known: a partition is emptied from its beginning.
    fn newest_removed(&self, own: &str) -> Option<u64> {
        let mut newest = 0;
        for part in self.parts.iter().filter(|part| !part.is_whole) {
            let first = part.first.as_ref()?;
            // Where an earlier ledger's messages are left, all of this one's are behind them.
            if first.row.ledger == own {
                newest = first.row.sequence.max(newest);
            }
        }
        Some(newest)
    }
}
