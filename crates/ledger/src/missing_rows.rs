//! The rows that a ledger does not have, because it was built from a checkpoint of its log.
//!
//! It has the first row, and goes on with the row of the checkpoint. What that row follows, and the account after it, are here; the row
//! has the digest of the account, and the chain goes from it to the newest row. The rows between are lost to nobody's account: what they
//! charged is in it.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::account::Account;
use super::chain::{Link, RowForm};
use super::store::{digest_of, sequence_of};

/// Place at which the rows go on after the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowGap {
    /// The row that they go on with.
    pub sequence: u64,
    /// The row before that, which is not there.
    pub before: Link,
    /// The account after the row that they go on with.
    pub account: Account,
}

/// Rows that are not in a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MissingRows {
    pub first: u64,
    pub last: u64,
    #[serde(skip)]
    pub(super) before: Link,
}

impl MissingRows {
    /// A line of JSON for an export, with what the next row follows. Nothing in it is secret.
    pub fn line(&self) -> String {
        let MissingRows {
            first,
            last,
            before: Link { form, digest },
        } = self;
        format!(
            r#"{{"gap":{{"first":{first},"last":{last},"form":{},"digest":"{digest}"}}}}"#,
            *form as u8
        )
    }
}

impl RowGap {
    /// The gap of a ledger of format 5, if it has one.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let gap = "SELECT sequence, form, digest, account FROM gap";
        connection.query_row(gap, [], RowGap::from_row).optional()
    }

    /// Reads the columns `sequence, form, digest, account`.
    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let text: String = row.get(3)?;
        let account = serde_json::from_str(&text).map_err(|error| {
            let kind = rusqlite::types::Type::Text;
            rusqlite::Error::FromSqlConversionFailure(3, kind, error.into())
        })?;
        let form = match row.get::<_, i64>(1)? {
            1 => RowForm::Whole,
            2 => RowForm::Split,
            other => return Err(rusqlite::Error::IntegralValueOutOfRange(1, other)),
        };
        Ok(RowGap {
            sequence: sequence_of(row, 0)?,
            before: Link {
                form,
                digest: digest_of(row, 2)?,
            },
            account,
        })
    }

    pub fn insert(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let account = serde_json::to_string(&self.account);
        let account =
            account.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let values = params![
            i64::try_from(self.sequence).unwrap_or(i64::MAX),
            self.before.form as i64,
            self.before.digest.as_ref(),
            account
        ];
        let insert = "INSERT INTO gap VALUES (?1, ?2, ?3, ?4)";
        transaction.execute(insert, values).map(drop)
    }
}
