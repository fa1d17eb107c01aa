//! The end of an output: what it shows of the ledger that published there, and what it has lost of that.

use std::collections::HashMap;

use super::published::Published;
use crate::ledger::{self, Head, Ledger, OutputMessage, Paid};

/// So many messages of each part of an output are its end. Messages that were sent again may lie behind newer ones.
pub const MOST: usize = 1024;

/// The newest messages of an output.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    pub(super) messages: Vec<Published>,
    /// These are all that were ever written, as far as it says.
    pub(super) is_whole: bool,
}

/// What was published and is not there.
#[derive(Debug, Default)]
pub struct Lost {
    /// What can be sent again, in the order of the rows.
    pub kept: Vec<Paid>,
    /// How many messages there are whose bytes are gone.
    pub gone: u64,
}

impl Tail {
    /// The rows that its messages name.
    pub fn rows(&self) -> Vec<OutputMessage> {
        self.messages.iter().filter_map(Published::row).collect()
    }

    /// What it lacks at its end of what `ledger` has published up to the row `newest`, which the witness has accepted: of each message key
    /// everything after the newest that is there. What is missing before that was removed.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn lost(&self, ledger: &Ledger, newest: &Head) -> Result<Lost, ledger::Error> {
        let own = &ledger.genesis().ledger;
        let mut last: HashMap<&str, u64> = HashMap::new();
        for message in &self.messages {
            if let Some(row) = message.row().filter(|row| row.ledger == *own) {
                let known = last.entry(message.key()).or_insert(row.sequence);
                *known = row.sequence.max(*known);
            }
        }
        let mut lost = Lost::default();
        for published in ledger.newest_messages(newest, MOST)? {
            let is_there = match last.get(published.key.as_str()) {
                Some(last) => published.sequence <= *last,
                // Where messages were removed, all of a key may have been.
                None => !self.is_whole || self.messages.is_empty(),
            };
            match published.paid {
                _ if is_there => {}
                Some(paid) => lost.kept.push(paid),
                None => lost.gone += 1,
            }
        }
        lost.kept.reverse();
        Ok(lost)
    }
}
