//! A synopsis as it is found on an output.

use std::ops::RangeInclusive;

use sha2::{Digest as _, Sha256};

use bernstream_ledger::{Digest, MessageDigests, OutputMessage};
use bernstream_synopsis::description::PaymentRow;
use bernstream_synopsis::{Encoded, Synopsis};

/// Message that was found at one place of an output.
#[derive(Clone, Debug)]
pub struct FoundMessage {
    /// Partition, with the offset where it may be told, or the path of a file.
    pub place: String,
    message: Encoded,
}

/// Messages that a ledger paid for, and which of them were found: 17 bytes a message, of which a year has millions.
#[derive(Debug)]
pub struct PaidMessages {
    /// The output stores key and headers.
    has_envelope: bool,
    /// In order, each once.
    paid: Vec<MessageMark>,
    is_found: Vec<bool>,
}

/// A message in 128 bits, with key and headers where the output stores them: nobody finds another one with those of a given one.
type MessageMark = [u8; 16];

fn message_mark(message: &MessageDigests, has_envelope: bool) -> MessageMark {
    let mut hash = Sha256::new();
    if has_envelope {
        // The digests have one length, so that nothing can be taken for a part of the key.
        hash.update(message.headers);
        hash.update(&message.key);
    }
    hash.update(message.bytes);
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

impl FoundMessage {
    pub(super) fn of_message(place: String, message: Encoded) -> Self {
        FoundMessage { place, message }
    }

    pub(super) fn of_bytes(place: String, bytes: Vec<u8>) -> Self {
        FoundMessage {
            place,
            message: Encoded {
                key: String::new(),
                headers: Vec::new(),
                bytes,
            },
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.message.bytes
    }

    /// The pipeline that it is of; `None` for what is no synopsis.
    pub fn pipeline(&self) -> Option<String> {
        Synopsis::decode_message(self.bytes())
            .ok()
            .map(|synopsis| synopsis.description().pipeline.clone())
    }

    /// The message key; empty where none is stored.
    pub(super) fn key(&self) -> &str {
        &self.message.key
    }

    /// The row that it names; `None` for what is no synopsis.
    pub(super) fn row(&self) -> Option<OutputMessage> {
        let synopsis = Synopsis::decode_message(self.bytes()).ok()?;
        let PaymentRow { id, sequence } = synopsis.description().ledger.clone();
        Some(OutputMessage {
            ledger: id,
            sequence,
            digest: Digest::of_bytes(self.bytes()),
            place: self.place.clone(),
        })
    }

    /// Returns whether it is a synopsis of another ledger than `id`.
    pub fn is_of_another_ledger(&self, id: &str) -> bool {
        Synopsis::decode_message(self.bytes())
            .is_ok_and(|synopsis| synopsis.description().ledger.id != id)
    }

    /// Returns whether it is a synopsis that names one of these rows of the ledger `id`.
    pub fn is_of_rows(&self, id: &str, rows: RangeInclusive<u64>) -> bool {
        Synopsis::decode_message(self.bytes()).is_ok_and(|synopsis| {
            let entry = &synopsis.description().ledger;
            entry.id == id && rows.contains(&entry.sequence)
        })
    }
}

impl PaidMessages {
    /// Takes what was paid for, from the `messages` that `each` passes on.
    ///
    /// # Errors
    ///
    /// Those of `each`.
    pub fn from_messages<E>(
        has_envelope: bool,
        each: impl FnOnce(&mut dyn FnMut(&MessageDigests)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut paid = Vec::new();
        each(&mut |message| paid.push(message_mark(message, has_envelope)))?;
        paid.sort_unstable();
        paid.dedup();
        Ok(PaidMessages {
            has_envelope,
            is_found: vec![false; paid.len()],
            paid,
        })
    }

    /// Returns whether what was found was paid for, byte for byte: with key and headers where the output stores them.
    pub fn mark_found(&mut self, found: &FoundMessage) -> bool {
        let mark = message_mark(
            &MessageDigests::from_encoded(&found.message),
            self.has_envelope,
        );
        let place = self.paid.binary_search(&mark).ok();
        let Some(is_found) = place.and_then(|place| self.is_found.get_mut(place)) else {
            return false;
        };
        *is_found = true;
        true
    }

    /// Number of messages that were found.
    pub fn count_found(&self) -> usize {
        self.is_found.iter().filter(|is_found| **is_found).count()
    }

    /// Number of messages that were not found.
    pub fn count_missing(&self) -> usize {
        self.paid.len() - self.count_found()
    }
}
