//! A row as it is stored, archived and exported.

use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;

use super::chain::{
    Digest, Head, LedgerRow, Link, RowForm, RowParts, account_of, random_bytes, secret_commitment,
    split_digest, whole_digest,
};
use super::error::LedgerError;
use super::store::{COLUMNS, digest_of, sequence_of};
use bernstream_synopsis::Positions;

const SECRET: &str = r#","secret":"#;
const ROW: &str = r#","row":"#;

/// The most bytes of a partition and its offset in JSON.
const WIDEST: usize = 36;

/// Number of bytes that these offsets would have more in JSON if they had as many digits as they can have, and some.
pub(super) fn hidden_width(ends: &Positions) -> usize {
    let written = serde_json::to_string(ends).map_or(0, |text| text.len());
    (ends.0.len() * WIDEST + 2).saturating_sub(written)
}

/// A row as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LedgerEntry {
    pub head: Head,
    salt: [u8; 32],
    text: RowText,
}

/// The text of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RowText {
    Whole(String),
    Split(RowParts),
}

/// A line of an archive without its last fields, the texts, which are kept as they were.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveLine {
    sequence: u64,
    digest: Digest,
    salt: Digest,
}

impl LedgerEntry {
    /// Seals `row` with a fresh salt, as the successor of the row `before`, and the digest of the `account` after it where a checkpoint
    /// may stand.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Randomness`], or [`LedgerError::Refused`] if the row could not be read again.
    pub fn new(
        before: Option<Link>,
        sequence: u64,
        row: &LedgerRow,
        account: Option<Digest>,
    ) -> Result<Self, LedgerError> {
        let salt = random_bytes().ok_or(LedgerError::Randomness)?;
        let parts = row
            .to_parts(account)
            .map_err(|error| LedgerError::Refused {
                why: error.to_string(),
            })?;
        // A row that cannot be read again, for example with a time beyond the calendar, would break the chain for good.
        if LedgerRow::from_parts(&parts.public, &parts.secret)
            .ok()
            .as_ref()
            != Some(row)
        {
            return Err(LedgerError::Refused {
                why: "the row could not be read again".to_owned(),
            });
        }
        let commitment = secret_commitment(&salt, &parts.secret);
        let digest = split_digest(before, sequence, &commitment, &parts.public);
        Ok(LedgerEntry {
            head: Head { sequence, digest },
            salt,
            text: RowText::Split(parts),
        })
    }

    /// Reads the columns `sequence, salt, body, digest, secret`.
    pub fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let head = Head {
            sequence: sequence_of(row, 0)?,
            digest: digest_of(row, 3)?,
        };
        let body = row.get(2)?;
        let secret = row.get::<_, Option<String>>(4)?;
        let text = match secret {
            None => RowText::Whole(body),
            Some(secret) => RowText::Split(RowParts {
                public: body,
                secret,
            }),
        };
        Ok(LedgerEntry {
            head,
            salt: row.get(1)?,
            text,
        })
    }

    /// The row `sequence`, if it is stored.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn of_row(connection: &Connection, sequence: i64) -> rusqlite::Result<Option<Self>> {
        let row = format!("SELECT {COLUMNS} FROM rows WHERE sequence = ?1");
        connection
            .query_row(&row, [sequence], LedgerEntry::read)
            .optional()
    }

    /// The first row, if there is one.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn of_first_row(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let first = format!("SELECT {COLUMNS} FROM rows ORDER BY sequence LIMIT 1");
        connection
            .query_row(&first, [], LedgerEntry::read)
            .optional()
    }

    pub fn insert(&self, transaction: &rusqlite::Transaction<'_>) -> rusqlite::Result<()> {
        let (body, secret) = match &self.text {
            RowText::Whole(body) => (body, None),
            RowText::Split(parts) => (&parts.public, Some(&parts.secret)),
        };
        let salt = self.salt.as_slice();
        let digest = self.head.digest.as_ref();
        let insert =
            "INSERT INTO rows (sequence, salt, body, digest, secret) VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction
            .execute(
                insert,
                rusqlite::params![self.sequence()?, salt, body, digest, secret],
            )
            .map(drop)
    }

    pub fn sequence(&self) -> rusqlite::Result<i64> {
        i64::try_from(self.head.sequence)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }

    /// Reads the row, whether it is genuine or not.
    ///
    /// # Errors
    ///
    /// If it is no row.
    pub fn row(&self) -> serde_json::Result<LedgerRow> {
        match &self.text {
            RowText::Whole(row) => serde_json::from_str(row),
            RowText::Split(parts) => LedgerRow::from_parts(&parts.public, &parts.secret),
        }
    }

    /// The digest of the account after it, if it has one.
    ///
    /// # Errors
    ///
    /// If it is no row.
    pub fn account_digest(&self) -> serde_json::Result<Option<Digest>> {
        match &self.text {
            RowText::Whole(_) => Ok(None),
            RowText::Split(parts) => account_of(&parts.secret),
        }
    }

    /// Returns true if it is genuine, and the successor of the row `before`.
    pub fn is_successor_of(&self, before: Option<Link>) -> bool {
        let sequence = self.head.sequence;
        let digest = match &self.text {
            // A program that writes split rows writes no other, so what they say of themselves cannot be evaded.
            RowText::Whole(_) if before.is_some_and(|before| before.form == RowForm::Split) => {
                return false;
            }
            RowText::Whole(row) => whole_digest(before, sequence, &self.salt, row),
            RowText::Split(RowParts { public, secret }) => split_digest(
                before,
                sequence,
                &secret_commitment(&self.salt, secret),
                public,
            ),
        };
        digest == self.head.digest
    }

    /// Link for the next row.
    pub fn link_after(&self) -> Link {
        let form = match &self.text {
            RowText::Whole(_) => RowForm::Whole,
            RowText::Split(_) => RowForm::Split,
        };
        Link {
            form,
            digest: self.head.digest,
        }
    }

    /// Number of bytes of its text.
    pub fn text_size(&self) -> usize {
        match &self.text {
            RowText::Whole(row) => row.len(),
            RowText::Split(parts) => parts.public.len() + parts.secret.len(),
        }
    }

    /// Number of bytes that its secret part would have more if the input's offsets had as many digits as they can have, and some.
    pub fn hidden_width(&self) -> usize {
        match self.row() {
            Ok(LedgerRow::Window(closed)) if self.link_after().form == RowForm::Split => {
                hidden_width(&closed.ends)
            }
            _ => 0,
        }
    }

    /// A line of JSON with everything that its digest was made of.
    pub fn secret_line(&self) -> String {
        let mut line = self.line_start();
        let salt = Digest::from(self.salt);
        let _ = write!(line, r#","salt":"{salt}""#);
        match &self.text {
            RowText::Whole(row) => line + ROW + row + "}",
            RowText::Split(parts) => line + SECRET + &parts.secret + ROW + &parts.public + "}",
        }
    }

    /// A line of JSON with what anyone may see. Of a split row that is enough to compute its digest.
    ///
    /// # Errors
    ///
    /// If it is no row.
    pub fn public_line(&self) -> serde_json::Result<String> {
        let mut line = self.line_start();
        match &self.text {
            RowText::Split(RowParts { public, secret }) => {
                let commitment = secret_commitment(&self.salt, secret);
                let _ = write!(line, r#","commitment":"{commitment}""#);
                Ok(line + ROW + public + "}")
            }
            RowText::Whole(row) => {
                let RowParts { public, .. } = self.row()?.to_parts(None)?;
                // What has no secret needs no salt either.
                if public == *row {
                    let _ = write!(line, r#","salt":"{}""#, Digest::from(self.salt));
                }
                Ok(line + ROW + &public + "}")
            }
        }
    }

    /// Returns true if anyone can compute its digest from its public line.
    pub fn is_checkable(&self) -> bool {
        match &self.text {
            RowText::Split(_) => true,
            RowText::Whole(row) => self
                .row()
                .and_then(|row| row.to_parts(None))
                .is_ok_and(|parts| parts.public == *row),
        }
    }

    fn line_start(&self) -> String {
        format!(
            r#"{{"sequence":{},"digest":"{}""#,
            self.head.sequence, self.head.digest
        )
    }

    /// Reads a [`secret_line`](Self::secret_line); whether it is genuine is what [`is_successor_of`](Self::is_successor_of) says.
    pub fn parse(line: &str) -> Option<Self> {
        let (about, row) = line.split_once(ROW)?;
        let row = row.strip_suffix('}')?.to_owned();
        let (about, text) = match about.split_once(SECRET) {
            None => (about, RowText::Whole(row)),
            Some((about, secret)) => {
                let parts = RowParts {
                    public: row,
                    secret: secret.to_owned(),
                };
                (about, RowText::Split(parts))
            }
        };
        let ArchiveLine {
            sequence,
            digest,
            salt,
        } = serde_json::from_str(&format!("{about}}}")).ok()?;
        Some(LedgerEntry {
            head: Head { sequence, digest },
            salt: salt.as_ref().try_into().ok()?,
            text,
        })
    }
}
