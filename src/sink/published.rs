//! A synopsis as it is found on an output.

use std::collections::BTreeSet;

use crate::ledger::{Digest, Message};
use crate::synopsis::{Sealed, Synopsis};

/// What was found at one place of an output.
#[derive(Clone, Debug)]
pub struct Published {
    /// Partition and offset, or the path of a file.
    pub place: String,
    sealed: Sealed,
    /// A file holds the bytes only; key and headers are not stored.
    has_envelope: bool,
}

/// The digests of everything that a ledger paid for.
#[derive(Debug, Default)]
pub struct PaidMessages {
    messages: BTreeSet<Message>,
    bytes: BTreeSet<Digest>,
}

impl Published {
    pub(super) fn of_message(place: String, sealed: Sealed) -> Self {
        Published { place, sealed, has_envelope: true }
    }

    pub(super) fn of_bytes(place: String, bytes: Vec<u8>) -> Self {
        Published { place, sealed: Sealed { key: String::new(), headers: Vec::new(), bytes }, has_envelope: false }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.sealed.bytes
    }

    /// Whether it is a synopsis of another ledger than `id`.
    pub fn is_of_another_ledger(&self, id: &str) -> bool {
        Synopsis::open(self.bytes()).is_ok_and(|synopsis| synopsis.description().ledger.id != id)
    }
}

impl PaidMessages {
    pub fn extend(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            self.bytes.insert(message.bytes);
            self.messages.insert(message);
        }
    }

    /// Whether what was found was paid for, byte for byte: with key and headers where the output stores them.
    pub fn contains(&self, found: &Published) -> bool {
        let message = Message::of(&found.sealed);
        if found.has_envelope { self.messages.contains(&message) } else { self.bytes.contains(&message.bytes) }
    }

    /// How many messages are not among the `found` bytes.
    pub fn missing(&self, found: &BTreeSet<Digest>) -> usize {
        self.messages.iter().filter(|message| !found.contains(&message.bytes)).count()
    }
}
