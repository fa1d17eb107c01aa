//! The witness: an append-only log that orders the claims of all copies of a ledger.
//!
//! Acknowledgements and timeouts decide nothing. The head follows from reading the whole log from its start, which gives
//! everyone the same result.

pub mod file;
pub mod place;
mod seal;

use serde::{Deserialize, Serialize};

use super::budget::error::BudgetError;
use super::chain::Head;
use super::instance::Instance;
use bernstream_synopsis::clock::Timestamp;

/// One record of the witness: it claims all rows after `previous`, up to `head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessClaim {
    /// The head of the witness that the claim follows; `None` in the very first.
    pub previous: Option<Head>,
    pub head: Head,
    /// The end of the last charged block.
    pub last_block_end: Timestamp,
    /// Process that made it. Whether it is accepted does not depend on it; earlier versions did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<Instance>,
}

impl WitnessClaim {
    /// One line of JSON.
    pub fn encode(&self) -> String {
        serde_json::json!(self).to_string()
    }

    pub fn decode(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }
}

/// Kind of a record of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessRecord {
    Claim(WitnessClaim),
    /// It has the fields of a claim, and not as this program writes them. Whether it is accepted cannot be known here, and a program that
    /// took it for void could follow another head than the one that wrote it.
    OfAnotherVersion,
    /// No program of any version has written it: void forever, as it is for everyone.
    Stray,
}

/// The fields that claims of all versions have.
const FIELDS: [&str; 3] = ["previous", "head", "last_block_end"];

impl WitnessRecord {
    pub fn decode(text: &[u8]) -> Self {
        if let Some(claim) = WitnessClaim::decode(text) {
            return WitnessRecord::Claim(claim);
        }
        let fields: Option<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_slice(text).ok();
        match fields.is_some_and(|fields| FIELDS.iter().all(|field| fields.contains_key(*field))) {
            true => WitnessRecord::OfAnotherVersion,
            false => WitnessRecord::Stray,
        }
    }
}

/// Numbers of records that were read, and that somebody else has written to the topics of a ledger, and that count for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrayCounts {
    pub witness: u64,
    pub budget: u64,
}

/// The accepted claim after reading `next`, where `current` was the accepted one before.
///
/// The first accepted claim has no previous head; each later one names the current head and has a higher sequence number. All
/// other claims are void forever.
pub fn fold_claim(current: Option<WitnessClaim>, next: WitnessClaim) -> Option<WitnessClaim> {
    let is_accepted = match current {
        None => next.previous.is_none(),
        Some(current) => {
            next.previous == Some(current.head) && next.head.sequence > current.head.sequence
        }
    };
    if is_accepted { Some(next) } else { current }
}

/// A place that claims are appended to and read from.
pub trait Witness {
    /// Reads everything (or what was added since the last call), and returns the accepted claim.
    ///
    /// # Errors
    ///
    /// If the witness cannot be reached, or if it has lost or changed a record.
    fn read(&mut self) -> Result<Option<WitnessClaim>, WitnessError>;

    /// The identity of this witness, which a new one in its place does not share. Call it after reading.
    ///
    /// # Errors
    ///
    /// If the witness cannot be reached.
    fn identity(&mut self) -> Result<String, WitnessError>;

    /// Appends a claim. Only reading shows whether it was accepted, after `Ok` as well as after a transient error.
    ///
    /// # Errors
    ///
    /// If the claim may not have been written.
    fn append(&mut self, claim: &WitnessClaim) -> Result<(), WitnessError>;

    /// A head that it had accepted, as this worker remembers, although the accepted record is not where it was: the witness has lost it, or
    /// a broker is behind, or another worker has claimed it again. Whoever knows the rows says whether the accepted claim covers it.
    fn remembered(&self) -> Option<Head> {
        None
    }

    /// The accepted claim covers what was remembered.
    fn settle(&mut self) {}

    /// The stray records of everything that was read.
    fn strays(&self) -> StrayCounts {
        StrayCounts::default()
    }
}

/// Reasons why a witness cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    #[error("the witness {name} cannot be reached: {why}")]
    Unavailable { name: String, why: String },
    #[error(
        "the witness {name} has a claim of another version of this program, which this one cannot read: start the newest version that \
         this pipeline has had; nothing is lost"
    )]
    OfAnotherVersion { name: String },
    #[error("the witness {name} cannot be used: {why}")]
    Refused { name: String, why: String },
    #[error(
        "the witness {name} is missing; it is never created anew for an existing ledger: restore it"
    )]
    Missing { name: String },
    #[error(
        "the witness {name} has been changed: {what}; it must never be compacted, expired, edited or replaced. If it cannot be \
         restored, a new ledger needs a new one"
    )]
    Damaged { name: String, what: String },
    #[error(
        "the witness topic {name} has {partitions} partitions, and only in one do claims have one order. Kafka removes no \
         partition, and a ledger keeps its witness, so the only way out is a new witness topic (`witness` in [output.kafka]) \
         with a new ledger in another folder (ledger.path): `bernstream ledger init` creates both, from the next block on"
    )]
    Partitions { name: String, partitions: usize },
    /// The share of the ledger, without which it claims nothing.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(
        "the witness topic {name} has {setting} = {found}, but needs {needed}; a witness must never lose a record, nor take another one for it: {remedy}"
    )]
    Setting {
        name: String,
        setting: Box<str>,
        found: Box<str>,
        needed: Box<str>,
        remedy: Box<str>,
    },
}

impl WitnessError {
    /// Returns true if it is worth trying again.
    pub fn is_transient(&self) -> bool {
        match self {
            WitnessError::Unavailable { .. } => true,
            WitnessError::Budget(error) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns true if it, or the budget topic, is not there.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            WitnessError::Missing { .. } | WitnessError::Budget(BudgetError::Missing { .. })
        )
    }

    /// Returns true if no ledger can go on with this witness, unless it is restored.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            WitnessError::Missing { .. } | WitnessError::Damaged { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Digest;

    fn head(sequence: u64) -> Head {
        Head {
            sequence,
            digest: Digest::of_bytes(&sequence.to_be_bytes()),
        }
    }

    fn claim(previous: Option<u64>, sequence: u64) -> WitnessClaim {
        WitnessClaim {
            previous: previous.map(head),
            head: head(sequence),
            last_block_end: Timestamp::from_micros(0),
            maker: None,
        }
    }

    fn newest(claims: &[WitnessClaim]) -> Option<u64> {
        claims
            .iter()
            .copied()
            .fold(None, fold_claim)
            .map(|claim| claim.head.sequence)
    }

    #[test]
    fn the_first_claim_has_no_previous_head() {
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&[claim(Some(1), 2)]), None);
        assert_eq!(newest(&[claim(Some(1), 2), claim(None, 3)]), Some(3));
    }

    #[test]
    fn each_later_claim_names_the_head_and_has_a_higher_sequence() {
        assert_eq!(
            newest(&[claim(None, 0), claim(Some(0), 3), claim(Some(3), 4)]),
            Some(4)
        );
        assert_eq!(
            newest(&[claim(None, 0), claim(Some(0), 3), claim(Some(0), 4)]),
            Some(3)
        );
        assert_eq!(newest(&[claim(None, 0), claim(None, 3)]), Some(0));
        assert_eq!(newest(&[claim(None, 5), claim(Some(5), 5)]), Some(5));
        assert_eq!(newest(&[claim(None, 5), claim(Some(5), 4)]), Some(5));
        let other = WitnessClaim {
            previous: Some(Head {
                sequence: 0,
                digest: Digest::of_bytes(b"other"),
            }),
            ..claim(None, 3)
        };
        assert_eq!(newest(&[claim(None, 0), other]), Some(0));
    }

    #[test]
    fn a_void_claim_stays_void() {
        // It names a head that comes later than it does.
        assert_eq!(
            newest(&[claim(None, 0), claim(Some(3), 4), claim(Some(0), 3)]),
            Some(3)
        );
    }

    #[test]
    fn what_is_no_claim_is_void_and_what_another_version_claims_is_not() {
        let whole = claim(Some(3), 4).encode();
        let with = |from: &str, to: &str| whole.replacen(from, to, 1).into_bytes();
        for newer in [
            with("{", r#"{"more":1,"#),
            with(r#""digest""#, r#""hash""#),
            with(r#""last_block_end":"#, r#""last_block_end":[1],"x":"#),
        ] {
            assert_eq!(
                WitnessRecord::decode(&newer),
                WitnessRecord::OfAnotherVersion,
                "{}",
                String::from_utf8_lossy(&newer)
            );
        }
        let half = &whole.as_bytes()[..whole.len() / 2];
        for stray in [
            b"".as_slice(),
            b"\x00",
            b"\xff\xfe",
            b"no claim",
            b"{}",
            b"null",
            b"[]",
            b"{\"head\":1}",
            half,
        ] {
            assert_eq!(
                WitnessRecord::decode(stray),
                WitnessRecord::Stray,
                "{}",
                String::from_utf8_lossy(stray)
            );
        }
        assert_eq!(
            WitnessRecord::decode(whole.as_bytes()),
            WitnessRecord::Claim(claim(Some(3), 4))
        );
    }

    #[test]
    fn claims_are_read_as_they_are_written() {
        for claim in [claim(None, 0), claim(Some(3), u64::MAX)] {
            assert_eq!(WitnessClaim::decode(claim.encode().as_bytes()), Some(claim));
        }
        assert_eq!(WitnessClaim::decode(b"{}"), None);
        // An earlier version did not name the maker.
        assert!(!claim(None, 0).encode().contains("maker"));
        let maker = Instance::try_from("00000000000000ff".to_owned()).ok();
        let named = WitnessClaim {
            maker,
            ..claim(Some(0), 1)
        };
        assert!(
            named.encode().contains(r#""maker":"00000000000000ff""#),
            "{}",
            named.encode()
        );
        assert_eq!(WitnessClaim::decode(named.encode().as_bytes()), Some(named));
        for wrong in [
            "",
            "ff",
            "00000000000000FF",
            "+0000000000000ff",
            "000000000000000000ff",
        ] {
            assert!(Instance::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
