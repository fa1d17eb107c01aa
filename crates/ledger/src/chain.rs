//! The rows of a ledger, and how they are chained. Pure.
//!
//! A row has a public and a secret part, each canonical JSON: one object, its fields in the order of the types below. Whoever has the
//! public parts and the commitments to the secret ones can compute every digest:
//!
//! ```text
//! commitment = SHA-256( "bernstream ledger secret 1\n" | salt | secret part )
//! digest     = SHA-256( "bernstream ledger row 2\n" | form of the row before, 1 byte | digest of the row before
//!                       | sequence, 8 bytes big-endian | commitment | public part )
//! ```
//!
//! with a salt of 32 random bytes for each row. Digests are sent to the witness and commitments are exported, and the secret part of a
//! window has offsets, which are exact counts: without a salt they could be guessed. Each 256th row also has the digest of the account
//! after it there ([`Account::digest_after`](super::account::Account::digest_after)), so that the chain covers a checkpoint. The form is 2, or 1 for a row of an older program,
//! or 0 and 32 zero bytes before the first row; `docs/proofs/ledger.md` says why. Older programs wrote a row as one text, and
//!
//! ```text
//! digest = SHA-256( "bernstream ledger row 1\n" | digest of the row before | sequence, 8 bytes big-endian | salt | text )
//! ```

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::budget::entry::ShareHolder;
use bernstream_synopsis::Encoded;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// SHA-256, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub(super) const ZERO: Digest = Digest([0; 32]);

    pub fn of_bytes(bytes: &[u8]) -> Self {
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
        if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(not_a_digest(&text));
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = text
                .get(2 * place..2 * place + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(|| not_a_digest(&text))?;
        }
        Ok(Digest(bytes))
    }
}

fn not_a_digest(text: &str) -> String {
    format!("'{text}' is not 64 lower-case hexadecimal digits")
}

/// The newest row of a ledger, as a witness remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Head {
    pub sequence: u64,
    /// The salted digest of the row, chained to the previous row.
    pub digest: Digest,
}

/// 32 random bytes of the operating system; `None` if it provides none.
pub(super) fn random_bytes() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    SysRng.try_fill_bytes(&mut bytes).ok()?;
    Some(bytes)
}

/// Form in which a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowForm {
    /// One text, by older programs.
    Whole = 1,
    /// A public and a secret part.
    Split = 2,
}

/// Link of a row to the one that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub form: RowForm,
    pub digest: Digest,
}

/// Commitment that stands for the secret part of a row in its digest.
pub(super) fn secret_commitment(salt: &[u8; 32], secret: &str) -> Digest {
    let hash = Sha256::new()
        .chain_update(b"bernstream ledger secret 1\n")
        .chain_update(salt)
        .chain_update(secret);
    Digest(hash.finalize().into())
}

/// The digest of a row that follows the row `before`.
pub(super) fn split_digest(
    before: Option<Link>,
    sequence: u64,
    commitment: &Digest,
    public: &str,
) -> Digest {
    let form = before.map_or(0, |before| before.form as u8);
    let hash = Sha256::new()
        .chain_update(b"bernstream ledger row 2\n")
        .chain_update([form])
        .chain_update(before.map_or(Digest::ZERO, |before| before.digest))
        .chain_update(sequence.to_be_bytes())
        .chain_update(commitment)
        .chain_update(public);
    Digest(hash.finalize().into())
}

/// The digest of a row of an older program.
pub(super) fn whole_digest(
    before: Option<Link>,
    sequence: u64,
    salt: &[u8; 32],
    text: &str,
) -> Digest {
    let hash = Sha256::new()
        .chain_update(b"bernstream ledger row 1\n")
        .chain_update(before.map_or(Digest::ZERO, |before| before.digest))
        .chain_update(sequence.to_be_bytes())
        .chain_update(salt)
        .chain_update(text);
    Digest(hash.finalize().into())
}

/// The public and the secret part of a row, in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowParts {
    pub public: String,
    pub secret: String,
}

/// One row. Its JSON is the text that older programs wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LedgerRow {
    Genesis(Genesis),
    Window(ClosedWindow),
    Configuration(Configuration),
}

/// Public part of a row, which anyone may see. Its text has the same length for the same keys, charges and states, whatever the records are.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum PublicPart<'a> {
    Genesis(Cow<'a, Genesis>),
    Window(PublicWindow<'a>),
    Configuration(Cow<'a, Configuration>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublicWindow<'a> {
    window: Span,
    outcome: Cow<'a, ReleaseOutcome>,
}

/// The rest of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretPart<'a> {
    /// End of the input of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<Cow<'a, Positions>>,
    /// Digest of the account after a row that a checkpoint can stand at. Secret, because an account has exact counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Digest>,
}

impl LedgerRow {
    /// Its public and its secret part, with the digest of the account after it where there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn to_parts(&self, account: Option<Digest>) -> serde_json::Result<RowParts> {
        let mut ends = None;
        let public = match self {
            LedgerRow::Genesis(genesis) => PublicPart::Genesis(Cow::Borrowed(genesis)),
            LedgerRow::Configuration(configuration) => {
                PublicPart::Configuration(Cow::Borrowed(configuration))
            }
            LedgerRow::Window(closed) => {
                ends = Some(Cow::Borrowed(&closed.ends));
                PublicPart::Window(PublicWindow {
                    window: closed.window,
                    outcome: Cow::Borrowed(&closed.outcome),
                })
            }
        };
        Ok(RowParts {
            public: serde_json::to_string(&public)?,
            secret: serde_json::to_string(&SecretPart { ends, account })?,
        })
    }

    /// The row with these parts.
    ///
    /// # Errors
    ///
    /// If they are not those of one row.
    pub(super) fn from_parts(public: &str, secret: &str) -> serde_json::Result<LedgerRow> {
        let SecretPart { ends, .. } = serde_json::from_str(secret)?;
        match (serde_json::from_str(public)?, ends) {
            (PublicPart::Genesis(genesis), None) => Ok(LedgerRow::Genesis(genesis.into_owned())),
            (PublicPart::Configuration(configuration), None) => {
                Ok(LedgerRow::Configuration(configuration.into_owned()))
            }
            (PublicPart::Window(PublicWindow { window, outcome }), Some(ends)) => {
                Ok(LedgerRow::Window(ClosedWindow {
                    window,
                    ends: ends.into_owned(),
                    outcome: outcome.into_owned(),
                }))
            }
            _ => Err(serde::de::Error::custom(
                "its secret part is that of another kind of row",
            )),
        }
    }
}

/// Digest of the account after a row that its secret part has, if it has one.
///
/// # Errors
///
/// If it is no secret part.
pub(super) fn account_of(secret: &str) -> serde_json::Result<Option<Digest>> {
    serde_json::from_str::<SecretPart<'_>>(secret).map(|secret| secret.account)
}

/// The first row: what this ledger accounts for. Everything here is public or random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    /// Random, in hexadecimal.
    pub ledger: String,
    pub created: Timestamp,
    /// The canonical privacy settings; a worker with another guarantee must not use this ledger.
    pub settings: String,
    /// The privacy budget of a block. Every price of the ledger is of the same kind.
    pub total: Price,
    /// The start of the first window that this ledger may release.
    pub first: Timestamp,
    /// Windows with an earlier cutoff accept records until this message timestamp.
    pub backfill_until: Option<Timestamp>,
    /// The input: its topic id, or `files`.
    pub input: String,
    /// The witness that orders this ledger's claims.
    pub witness: String,
    /// The head of the witness that this ledger follows. Sequence numbers continue from it.
    pub previous: Option<Head>,
    /// Time before its start in which a window may charge blocks. Omitted if zero, as in older ledgers.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "reach")]
    pub reach: Duration,
    /// The share of its input's budget that the total is; omitted by a ledger that shares with nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetHolding>,
}

impl Genesis {
    /// Number of the first row: it continues from the ledger before.
    pub(super) fn first_sequence(&self) -> u64 {
        self.previous
            .map_or(0, |head| head.sequence.saturating_add(1))
    }

    /// Holder of the share of the input's budget, if the total is one.
    pub fn holder(&self) -> Option<ShareHolder> {
        let generation = self.budget.as_ref()?.generation;
        Some(ShareHolder {
            owner: self.witness.clone(),
            generation,
        })
    }
}

/// The share that a ledger was created for. Its owner is the witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetHolding {
    /// The id of the budget topic.
    pub topic: String,
    pub generation: u64,
}

/// Changed settings, from a window that is not closed yet. What was spent stays spent, and the total is that of the genesis.
///
/// The ledger does not decide which changes are allowed; it keeps their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The canonical privacy settings.
    pub settings: String,
    /// The start of the first window that they apply to; earlier windows that are still open are never closed.
    pub first: Timestamp,
    /// Reach as in the [`Genesis`]. A block that can no longer be charged stays closed, even if this reaches back to it.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "reach")]
    pub reach: Duration,
    /// The slots of noise that is never continued, because its release or key is gone: their states are deleted. Omitted if there
    /// are none, as in older ledgers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<String>,
    /// The share of the input's budget ends: no block that ends after this time is ever charged. Omitted where it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A reach in microseconds.
mod reach {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use bernstream_synopsis::clock::saturating_micros;

    pub fn serialize<S: Serializer>(reach: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(saturating_micros(*reach))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

/// A closed window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedWindow {
    pub window: Span,
    /// The end of its records in the input.
    pub ends: Positions,
    pub outcome: ReleaseOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReleaseOutcome {
    Released {
        publish_at: Timestamp,
        /// The charge to each block that the window overlaps.
        charges: Vec<(Span, Price)>,
        /// One for each release and group key.
        messages: Vec<MessageDigests>,
        /// The states of noise that later windows continue.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        states: Vec<StateDigest>,
    },
    /// Withheld: nothing was drawn, published or charged.
    Withheld,
}

/// A sealed message, by digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageDigests {
    pub key: String,
    /// The digest of the headers, as a JSON list of pairs.
    pub headers: Digest,
    pub bytes: Digest,
}

/// A state of noise, by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateDigest {
    pub slot: String,
    /// Salted, and the salt stays with the secret state: rows may be shown, and whoever knows the noise can subtract it.
    pub digest: Digest,
}

impl StateDigest {
    pub(super) fn from_bytes(slot: &str, salt: &[u8; 32], bytes: &[u8]) -> Self {
        let hash = Sha256::new()
            .chain_update(b"bernstream ledger state 1\n")
            .chain_update(salt)
            .chain_update(bytes);
        StateDigest {
            slot: slot.to_owned(),
            digest: Digest(hash.finalize().into()),
        }
    }
}

impl MessageDigests {
    pub fn from_encoded(encoded: &Encoded) -> Self {
        let headers = Digest::of_bytes(headers_as_json(&encoded.headers).as_bytes());
        MessageDigests {
            key: encoded.key.clone(),
            headers,
            bytes: Digest::of_bytes(&encoded.bytes),
        }
    }

    /// Returns true if a stored message is this one; its bytes may have been dropped.
    pub(super) fn has_content(&self, key: &str, headers: &str, bytes: Option<&[u8]>) -> bool {
        self.key == key
            && self.headers == Digest::of_bytes(headers.as_bytes())
            && bytes.is_none_or(|bytes| self.bytes == Digest::of_bytes(bytes))
    }
}

pub(super) fn headers_as_json(headers: &[(String, String)]) -> String {
    serde_json::json!(headers).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{genesis, price, released, span};

    const FIRST: Option<Link> = None;

    fn after(form: RowForm) -> Option<Link> {
        Some(Link {
            form,
            digest: Digest::of_bytes(b"before"),
        })
    }

    #[test]
    fn a_digest_depends_on_every_part_of_its_row() {
        let secret = secret_commitment(&[7; 32], "{}");
        let base = split_digest(after(RowForm::Split), 1, &secret, "{}");
        assert_ne!(base, split_digest(FIRST, 1, &secret, "{}"));
        assert_ne!(base, split_digest(after(RowForm::Whole), 1, &secret, "{}"));
        assert_ne!(
            base,
            split_digest(
                Some(Link {
                    form: RowForm::Split,
                    digest: Digest::of_bytes(b"other")
                }),
                1,
                &secret,
                "{}"
            )
        );
        assert_ne!(base, split_digest(after(RowForm::Split), 2, &secret, "{}"));
        assert_ne!(
            base,
            split_digest(
                after(RowForm::Split),
                1,
                &secret_commitment(&[8; 32], "{}"),
                "{}"
            )
        );
        assert_ne!(
            base,
            split_digest(
                after(RowForm::Split),
                1,
                &secret_commitment(&[7; 32], "{ }"),
                "{}"
            )
        );
        assert_ne!(base, split_digest(after(RowForm::Split), 1, &secret, "{ }"));
        assert_ne!(base, whole_digest(after(RowForm::Split), 1, &[7; 32], "{}"));
        // By an independent program (Python hashlib).
        assert_eq!(
            secret.to_string(),
            "e58333b818bdae794dd553cb00cc545db3663cd2418c92b197edf9348e1d91c5"
        );
        assert_eq!(
            base.to_string(),
            "5b64f197425407480df9ac9035e72cac7883014797a4dd5e97092a7e6ed01b82"
        );
        assert_eq!(
            split_digest(FIRST, 0, &secret, "{}").to_string(),
            "24926c08a23b78a7f9224db795367ca47e834ac06785b08dbfe581fdcd8f9494"
        );
    }

    #[test]
    fn a_digest_of_an_older_row_depends_on_every_part_of_it() {
        let base = whole_digest(FIRST, 1, &[7; 32], "{}");
        assert_ne!(base, whole_digest(after(RowForm::Whole), 1, &[7; 32], "{}"));
        assert_ne!(base, whole_digest(FIRST, 2, &[7; 32], "{}"));
        assert_ne!(base, whole_digest(FIRST, 1, &[8; 32], "{}"));
        assert_ne!(base, whole_digest(FIRST, 1, &[7; 32], "{ }"));
        // By an independent program (Python hashlib).
        assert_eq!(
            base.to_string(),
            "abc0b6ec0e9d0dbeacf7a40fcc0a374140e1cf9aea9f2fa56b3b2098e2bce315"
        );
    }

    #[test]
    fn digests_are_read_as_they_are_written_and_nothing_else_is() {
        let digest = Digest::of_bytes(b"x");
        assert_eq!(Digest::try_from(digest.to_string()), Ok(digest));
        for wrong in [
            "",
            "0g",
            &"a".repeat(63),
            &"A".repeat(64),
            &"+1".repeat(32),
            &"\u{e9}".repeat(32),
        ] {
            assert!(Digest::try_from(wrong.to_string()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_read_as_they_are_written() {
        let mut row = released(span(0, 10), &[(span(0, 10), price(5))]);
        row.ends.0.insert(3, 17);
        let mut with_state = row.clone();
        if let ReleaseOutcome::Released { states, .. } = &mut with_state.outcome {
            states.push(StateDigest::from_bytes("r/k", &[0; 32], b"secret"));
        }
        let configuration = Configuration {
            settings: "{}".into(),
            first: Timestamp::from_micros(0),
            reach: Duration::from_secs(3600),
            ended: vec![],
            until: None,
        };
        let until = Configuration {
            until: Some(Timestamp::from_micros(7)),
            ..configuration.clone()
        };
        let ended = Configuration {
            ended: vec!["r/k".into()],
            ..configuration.clone()
        };
        let rows = [
            LedgerRow::Genesis(genesis(0)),
            LedgerRow::Genesis(genesis(3_600_000_000)),
            LedgerRow::Genesis(Genesis {
                budget: Some(BudgetHolding {
                    topic: "t".into(),
                    generation: 1,
                }),
                ..genesis(0)
            }),
            LedgerRow::Window(row),
            LedgerRow::Window(with_state),
            LedgerRow::Configuration(configuration),
            LedgerRow::Configuration(ended),
            LedgerRow::Configuration(until),
        ];
        for row in rows {
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<LedgerRow>(&text).unwrap(), row);
            let account = Digest::of_bytes(b"account");
            let with_account = row.to_parts(Some(account)).unwrap();
            assert_eq!(
                LedgerRow::from_parts(&with_account.public, &with_account.secret).unwrap(),
                row
            );
            assert_eq!(account_of(&with_account.secret).unwrap(), Some(account));
            assert!(!with_account.public.contains("account"));
            let RowParts { public, secret } = row.to_parts(None).unwrap();
            assert_eq!(LedgerRow::from_parts(&public, &secret).unwrap(), row);
            assert_eq!(account_of(&secret).unwrap(), None);
            let is_window = matches!(row, LedgerRow::Window(_));
            assert!(
                !public.contains("ends") && (secret == "{}") != is_window,
                "{public} {secret}"
            );
            // What is public of a row without a secret is all of it.
            assert_eq!(public == text, !is_window);
        }
    }

    #[test]
    fn parts_that_do_not_belong_together_are_no_row() {
        let window = LedgerRow::Window(released(span(0, 10), &[(span(0, 10), price(5))]));
        let RowParts { public, secret } = window.to_parts(None).unwrap();
        let first = LedgerRow::Genesis(genesis(0)).to_parts(None).unwrap();
        let whole = serde_json::to_string(&window).unwrap();
        for (public, secret) in [
            (&public, &first.secret),
            (&first.public, &secret),
            (&whole, &secret),
            (&public, &public),
        ] {
            assert!(
                LedgerRow::from_parts(public, secret).is_err(),
                "{public} {secret}"
            );
        }
    }

    #[test]
    fn a_state_cannot_be_guessed_from_its_row() {
        let [one, other] =
            [1, 2].map(|salt| StateDigest::from_bytes("r/k", &[salt; 32], b"secret").digest);
        assert!(one != other && one != Digest::of_bytes(b"secret"));
    }
}
