//! The states that later windows continue: the noise of a running sum, and the list of announced keys.
//!
//! A state is written with the charge of its window, so no step is published in two versions. That of noise is secret: whoever knows
//! it can subtract it from what was published, and has exact sums of records. A list is what was published. Both stay in the ledger file, no
//! command prints noise, and what a later state replaces, or its release leaves behind, is overwritten in the file (`secure_delete`). The file
//! system may keep what was overwritten all the same.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::account::Account;
use super::chain::{Digest, StateDigest, random_bytes};
use super::error::LedgerError;

/// A state to be written: salted, with what its row says about it.
pub(super) struct FreshState {
    pub state: StateDigest,
    pub salt: [u8; 32],
    pub bytes: Vec<u8>,
}

impl FreshState {
    /// Salts a state.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Randomness`] if the operating system provides no randomness.
    pub fn new(slot: &str, bytes: Vec<u8>) -> Result<Self, LedgerError> {
        let salt = random_bytes().ok_or(LedgerError::Randomness)?;
        Ok(FreshState {
            state: StateDigest::from_bytes(slot, &salt, &bytes),
            salt,
            bytes,
        })
    }

    pub fn write_state(
        &self,
        transaction: &Transaction<'_>,
        sequence: i64,
    ) -> rusqlite::Result<()> {
        let set = "INSERT INTO states VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (slot) DO UPDATE SET sequence = ?2, salt = ?3, bytes = ?4";
        let values = params![self.state.slot, sequence, self.salt.as_slice(), self.bytes];
        transaction.execute(set, values).map(drop)
    }
}

/// Deletes a state that nothing continues.
pub(super) fn delete_state(transaction: &Transaction<'_>, slot: &str) -> rusqlite::Result<()> {
    transaction
        .execute("DELETE FROM states WHERE slot = ?1", [slot])
        .map(drop)
}

/// A state as it is stored.
pub(super) struct StoredState {
    slot: String,
    sequence: i64,
    salt: [u8; 32],
    bytes: Vec<u8>,
}

impl StoredState {
    /// Reads the columns `slot, sequence, salt, bytes`.
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(StoredState {
            slot: row.get(0)?,
            sequence: row.get(1)?,
            salt: row.get(2)?,
            bytes: row.get(3)?,
        })
    }

    fn is(&self, written: u64, digest: Digest) -> bool {
        let state = StateDigest::from_bytes(&self.slot, &self.salt, &self.bytes);
        u64::try_from(self.sequence) == Ok(written) && state.digest == digest
    }
}

/// Every state.
///
/// # Errors
///
/// If the ledger cannot be read.
pub(super) fn read_states(connection: &Connection) -> rusqlite::Result<Vec<StoredState>> {
    let all = "SELECT slot, sequence, salt, bytes FROM states ORDER BY slot";
    connection
        .prepare(all)?
        .query_map([], StoredState::read)?
        .collect()
}

/// Checks that every slot has the state that its newest row wrote, and that there is no other.
///
/// # Errors
///
/// [`LedgerError::Damaged`] if not.
pub(super) fn check_states(
    stored: &[StoredState],
    file: &Path,
    account: &Account,
) -> Result<(), LedgerError> {
    for (slot, (written, digest)) in &account.states {
        let found = stored.iter().find(|state| state.slot == *slot);
        if !found.is_some_and(|state| state.is(*written, *digest)) {
            return Err(other_state_error(file, slot, *written));
        }
    }
    if stored.len() == account.states.len() {
        return Ok(());
    }
    Err(LedgerError::damaged(
        file,
        "it holds a state of noise that no row wrote",
    ))
}

/// The newest state of `slot`, verified.
///
/// # Errors
///
/// As for [`check_states`], or if the ledger cannot be read.
pub(super) fn read_state(
    connection: &Connection,
    file: &Path,
    account: &Account,
    slot: &str,
) -> Result<Option<Vec<u8>>, LedgerError> {
    let Some((written, digest)) = account.states.get(slot) else {
        return Ok(None);
    };
    let found = "SELECT slot, sequence, salt, bytes FROM states WHERE slot = ?1";
    let found = connection
        .query_row(found, [slot], StoredState::read)
        .optional();
    match found.map_err(LedgerError::sqlite(file))? {
        Some(state) if state.is(*written, *digest) => Ok(Some(state.bytes)),
        _ => Err(other_state_error(file, slot, *written)),
    }
}

fn other_state_error(file: &Path, slot: &str, written: u64) -> LedgerError {
    LedgerError::damaged(
        file,
        format!(
            "the state {slot}, which later windows continue, is not the one that row {written} wrote"
        ),
    )
}
