//! Checkpoints: the account after some of the rows, so that opening a ledger does not read all of them.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::account::Account;
use super::chain::{Digest, Head};
use super::store::digest_of;

/// The number of rows between two checkpoints.
pub(super) const EVERY: u64 = 256;

/// The account after the row `head`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Checkpoint {
    /// The digest of the first row.
    pub origin: Digest,
    pub head: Head,
    pub account: Account,
}

/// The rows that have a checkpoint.
pub(super) fn checkpointed_rows(connection: &Connection) -> rusqlite::Result<BTreeSet<i64>> {
    connection
        .prepare("SELECT sequence FROM checkpoints")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// The older one of the two checkpoints that are kept before the rows with messages.
pub(super) fn spare_checkpoint(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let spare = "SELECT sequence FROM checkpoints WHERE sequence <= (SELECT pruned FROM kept)
                 ORDER BY sequence DESC LIMIT 1 OFFSET 1";
    connection.query_row(spare, [], |row| row.get(0)).optional()
}

impl Checkpoint {
    pub fn is_due(sequence: u64) -> bool {
        sequence.is_multiple_of(EVERY)
    }

    pub fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        // A checkpoint only saves time: without it the rows are read.
        let Ok(body) = serde_json::to_string(self) else {
            return Ok(());
        };
        let digest = body_digest(&body);
        let values = params![self.sequence()?, body, digest.as_ref()];
        connection.execute("INSERT INTO checkpoints VALUES (?1, ?2, ?3)", values)?;
        // A start goes on from the newest one before the first unpublished message, or if that is damaged from the one before.
        let older = "DELETE FROM checkpoints WHERE sequence < (SELECT sequence FROM checkpoints
                     WHERE sequence <= (SELECT pruned FROM kept) ORDER BY sequence DESC LIMIT 1 OFFSET 1)";
        connection.execute(older, []).map(drop)
    }

    /// Returns true if another checkpoint is stored of this row.
    pub fn contradicts(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let stored = "SELECT body, digest FROM checkpoints WHERE sequence = ?1";
        let stored = connection
            .query_row(stored, [self.sequence()?], StoredCheckpoint::read)
            .optional()?;
        let Some(stored) = stored else {
            return Ok(false);
        };
        let ours = serde_json::to_string(self).ok();
        let is_ours =
            ours.is_some_and(|body| stored.digest == body_digest(&body) && stored.body == body);
        Ok(!is_ours)
    }

    /// The newest valid checkpoint before the row `before`.
    pub fn newest(connection: &Connection, before: i64) -> rusqlite::Result<Option<Self>> {
        let all = "SELECT body, digest, sequence FROM checkpoints WHERE sequence < ?1 ORDER BY sequence DESC";
        let mut statement = connection.prepare(all)?;
        let mut rows = statement.query([before])?;
        while let Some(row) = rows.next()? {
            let sequence: i64 = row.get(2)?;
            // What cannot be read is passed over, as what is damaged.
            if let Ok(stored) = StoredCheckpoint::read(row)
                && let Some(found) = stored.open()
                && i64::try_from(found.head.sequence) == Ok(sequence)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn sequence(&self) -> rusqlite::Result<i64> {
        i64::try_from(self.head.sequence)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}

/// A checkpoint as it is stored.
struct StoredCheckpoint {
    body: String,
    digest: Digest,
}

impl StoredCheckpoint {
    /// Reads the columns `body, digest`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(StoredCheckpoint {
            body: row.get(0)?,
            digest: digest_of(row, 1)?,
        })
    }

    /// The checkpoint, if it is whole.
    fn open(&self) -> Option<Checkpoint> {
        if body_digest(&self.body) != self.digest {
            return None;
        }
        serde_json::from_str(&self.body).ok()
    }
}

fn body_digest(body: &str) -> Digest {
    let hash = Sha256::new()
        .chain_update(b"bernstream ledger checkpoint 1\n")
        .chain_update(body);
    Digest::from(<[u8; 32]>::from(hash.finalize()))
}
