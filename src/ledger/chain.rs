//! The rows of a ledger, how they are chained, and what they add up to. Pure.
//!
//! A row is canonical JSON (one object, its fields in the order of the types below). Its digest is
//!
//! ```text
//! SHA-256( "bernstream ledger row 1\n" | digest of the row before | sequence, 8 bytes big-endian | salt | body )
//! ```
//!
//! with 32 zero bytes before the first row and a salt of 32 random bytes a row: digests leave for the witness, offsets are
//! exact counts, and a bare digest of them could be guessed.

use std::collections::BTreeMap;
use std::fmt;

use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;
use crate::mechanism::price::Price;
use crate::source::Positions;
use crate::synopsis::Sealed;
use crate::window::grid::Span;

/// SHA-256, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub(super) const ZERO: Digest = Digest([0; 32]);

    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not 64 lower-case hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * place..2 * place + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Digest(bytes))
    }
}

/// The newest row of a ledger: what a witness remembers of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub sequence: u64,
    /// Salted digest of the row, chained to the row before.
    pub digest: Digest,
}

/// 32 bytes of the operating system's randomness.
pub(super) fn random() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    SysRng.try_fill_bytes(&mut bytes).ok()?;
    Some(bytes)
}

/// The digest of the row that follows one with digest `before`.
pub(super) fn link(before: &Digest, sequence: u64, salt: &[u8; 32], body: &str) -> Digest {
    let hash = Sha256::new()
        .chain_update(b"bernstream ledger row 1\n")
        .chain_update(before)
        .chain_update(sequence.to_be_bytes())
        .chain_update(salt)
        .chain_update(body);
    Digest(hash.finalize().into())
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Row {
    Genesis(Genesis),
    Window(Closed),
}

/// The first row: what this ledger is about. Everything here is public or random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    /// Random, in hexadecimal.
    pub ledger: String,
    pub created: Timestamp,
    /// The normalised privacy settings; a worker with others must not use this ledger.
    pub settings: String,
    /// What a unit may cost a block, over everything. Every price of the ledger is of its kind.
    pub total: Price,
    /// The start of the first window that this ledger may release.
    pub first: Timestamp,
    /// Windows whose cut would be earlier take records up to here (message timestamps).
    pub backfill_until: Option<Timestamp>,
    /// The input: its topic id, or `files`.
    pub input: String,
    /// The witness that orders this ledger's claims.
    pub witness: String,
    /// The witness's head that this ledger follows. Sequence numbers go on from it.
    pub previous: Option<Head>,
}

/// A window that is closed for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    pub window: Span,
    /// Where its records ended in the input.
    pub ends: Positions,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    Released {
        publish_at: Timestamp,
        /// What each block that the window touches was charged.
        charges: Vec<(Span, Price)>,
        /// One a group key.
        messages: Vec<Message>,
    },
    /// The budget was spent: nothing was drawn, nothing is published, nothing is charged.
    Withheld,
}

/// A sealed message, by digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub key: String,
    /// Of the headers as a JSON list of pairs.
    pub headers: Digest,
    pub bytes: Digest,
}

impl Message {
    pub fn of(sealed: &Sealed) -> Self {
        let headers = Digest::of(headers_as_json(&sealed.headers).as_bytes());
        Message { key: sealed.key.clone(), headers, bytes: Digest::of(&sealed.bytes) }
    }
}

pub(super) fn headers_as_json(headers: &[(String, String)]) -> String {
    serde_json::json!(headers).to_string()
}

/// What the rows so far add up to. The same rules hold for a row that is appended and for one that is read again.
#[derive(Debug)]
pub(super) struct Account {
    pub next_window: Timestamp,
    pub ends: Positions,
    pub spent: BTreeMap<Span, Price>,
    /// No later block was charged, here or by the ledgers that this one follows.
    pub last_block_end: Timestamp,
    total: Price,
}

impl Account {
    pub fn new(genesis: &Genesis) -> Self {
        Account {
            next_window: genesis.first,
            ends: Positions::default(),
            spent: BTreeMap::new(),
            last_block_end: genesis.first,
            total: genesis.total,
        }
    }

    /// What `block` was charged so far.
    pub fn spent(&self, block: Span) -> Price {
        self.spent.get(&block).copied().unwrap_or(self.total.zero())
    }

    /// What the charged blocks will have spent after `row`, or why the row may not follow.
    pub fn quote(&self, row: &Closed) -> Result<Vec<(Span, Price)>, String> {
        let window = row.window;
        if window.start != self.next_window || window.end <= window.start {
            let (start, end, next) = (window.start, window.end, self.next_window);
            return Err(format!("the window {start} to {end} is not the next one, which starts at {next}"));
        }
        let Outcome::Released { charges, messages, .. } = &row.outcome else { return Ok(Vec::new()) };
        let is_joined = charges.windows(2).all(|pair| matches!(pair, [a, b] if a.0.end == b.0.start));
        let is_covered = charges.first().is_some_and(|(block, _)| block.start <= window.start)
            && charges.last().is_some_and(|(block, _)| block.end >= window.end);
        let is_paid = charges.iter().all(|(block, price)| block.start < block.end && !price.is_zero());
        if !(is_joined && is_covered && is_paid) {
            return Err("the charges are not a price for every block that the window touches".into());
        }
        if messages.is_empty() {
            return Err("a released window has no message".into());
        }
        let charge = |(block, price): &(Span, Price)| {
            let spent = self.spent(*block);
            let sum = spent.checked_add(*price).filter(|sum| sum.is_within(self.total));
            let left = || {
                let total = self.total;
                format!("the block that starts at {} has spent {spent} of {total} and cannot pay {price}", block.start)
            };
            sum.map(|sum| (*block, sum)).ok_or_else(left)
        };
        charges.iter().map(charge).collect()
    }

    /// Takes `row` into account; `spent` is what [`quote`](Self::quote) said.
    pub fn close(&mut self, row: &Closed, spent: Vec<(Span, Price)>) {
        self.next_window = row.window.end;
        self.ends = row.ends.clone();
        for (block, sum) in spent {
            self.last_block_end = self.last_block_end.max(block.end);
            self.spent.insert(block, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::calibrate::Epsilon;

    fn span(start: i64, end: i64) -> Span {
        Span { start: Timestamp::from_micros(start), end: Timestamp::from_micros(end) }
    }

    fn price(tenths: u64) -> Price {
        Price::Pure(Epsilon::from_trillionths(tenths * 100_000_000_000))
    }

    fn genesis() -> Genesis {
        Genesis {
            ledger: "00".into(),
            created: Timestamp::from_micros(0),
            settings: "{}".into(),
            total: price(10),
            first: Timestamp::from_micros(0),
            backfill_until: None,
            input: "files".into(),
            witness: "w".into(),
            previous: None,
        }
    }

    fn released(window: Span, charges: &[(Span, Price)]) -> Closed {
        let sealed = Sealed { key: "k".into(), headers: vec![], bytes: vec![1] };
        let outcome = Outcome::Released {
            publish_at: window.end,
            charges: charges.to_vec(),
            messages: vec![Message::of(&sealed)],
        };
        Closed { window, ends: Positions::default(), outcome }
    }

    #[test]
    fn a_digest_depends_on_every_part_of_its_row() {
        let base = link(&Digest::ZERO, 1, &[7; 32], "{}");
        assert_ne!(base, link(&Digest::of(b"other"), 1, &[7; 32], "{}"));
        assert_ne!(base, link(&Digest::ZERO, 2, &[7; 32], "{}"));
        assert_ne!(base, link(&Digest::ZERO, 1, &[8; 32], "{}"));
        assert_ne!(base, link(&Digest::ZERO, 1, &[7; 32], "{ }"));
        // By an independent program (Python hashlib).
        assert_eq!(base.to_string(), "abc0b6ec0e9d0dbeacf7a40fcc0a374140e1cf9aea9f2fa56b3b2098e2bce315");
    }

    #[test]
    fn digests_are_read_as_they_are_written_and_nothing_else_is() {
        let digest = Digest::of(b"x");
        assert_eq!(Digest::try_from(digest.to_string()), Ok(digest));
        for wrong in ["", "0g", &"a".repeat(63), &"A".repeat(64), &"+1".repeat(32), &"\u{e9}".repeat(32)] {
            assert!(Digest::try_from(wrong.to_string()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_read_as_they_are_written() {
        let mut row = released(span(0, 10), &[(span(0, 10), price(5))]);
        row.ends.0.insert(3, 17);
        for row in [Row::Genesis(genesis()), Row::Window(row)] {
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
        }
    }

    #[test]
    fn windows_close_in_the_order_of_the_grid_and_once_each() {
        let mut account = Account::new(&genesis());
        let first = released(span(0, 10), &[(span(0, 10), price(5))]);
        let spent = account.quote(&first).unwrap();
        account.close(&first, spent);
        for (start, end) in [(0, 10), (20, 30), (5, 15), (10, 10), (10, 5)] {
            assert!(
                account.quote(&released(span(start, end), &[(span(-100, 100), price(1))])).is_err(),
                "{start} {end}"
            );
        }
        assert!(account.quote(&released(span(10, 20), &[(span(10, 20), price(5))])).is_ok());
    }

    #[test]
    fn a_release_pays_for_every_block_that_it_touches() {
        let account = Account::new(&genesis());
        let p = price(1);
        let cases: [(&[(Span, Price)], bool); 8] = [
            (&[(span(0, 10), p)], true),
            (&[(span(-5, 5), p), (span(5, 15), p)], true),
            (&[], false),
            (&[(span(0, 9), p)], false),
            (&[(span(1, 10), p)], false),
            (&[(span(-5, 5), p), (span(6, 15), p)], false),
            (&[(span(0, 10), Price::Pure(Epsilon::ZERO))], false),
            (&[(span(0, 12), p), (span(12, 11), p)], false),
        ];
        for (charges, is_fine) in cases {
            assert_eq!(account.quote(&released(span(0, 10), charges)).is_ok(), is_fine, "{charges:?}");
        }
    }

    #[test]
    fn a_block_is_charged_up_to_its_total_and_not_beyond() {
        let mut account = Account::new(&genesis());
        let day = span(0, 100);
        for (start, tenths) in [(0, 4), (10, 6)] {
            let row = released(span(start, start + 10), &[(day, price(tenths))]);
            let spent = account.quote(&row).unwrap();
            account.close(&row, spent);
        }
        assert_eq!(account.spent[&day], price(10));
        assert!(account.quote(&released(span(20, 30), &[(day, Price::Pure(Epsilon::from_trillionths(1)))])).is_err());
        assert!(
            account.quote(&released(span(20, 30), &[(day, Price::Pure(Epsilon::from_trillionths(u64::MAX)))])).is_err()
        );
        let withheld = Closed { window: span(20, 30), ends: Positions::default(), outcome: Outcome::Withheld };
        assert_eq!(account.quote(&withheld), Ok(vec![]));
        assert_eq!(account.last_block_end, day.end);
    }
}
