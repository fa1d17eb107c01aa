//! The states of noise that later windows continue.
//!
//! A state is written with the charge of its window, so the noise of a step is never drawn twice. It is secret: whoever knows
//! the noise can subtract it from what was published. It stays in the ledger file, and no command prints it.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::account::Account;
use super::chain::{State, random};
use super::error::Error;

/// A state to be written: salted, with what its row says about it.
pub(super) struct Fresh {
    pub state: State,
    pub salt: [u8; 32],
    pub bytes: Vec<u8>,
}

impl Fresh {
    /// Salts a state.
    ///
    /// # Errors
    ///
    /// [`Error::Randomness`] if the operating system provides no randomness.
    pub fn new(slot: &str, bytes: Vec<u8>) -> Result<Self, Error> {
        let salt = random().ok_or(Error::Randomness)?;
        Ok(Fresh { state: State::of(slot, &salt, &bytes), salt, bytes })
    }

    pub fn write(&self, transaction: &Transaction<'_>, sequence: i64) -> rusqlite::Result<()> {
        let set = "INSERT INTO states VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (slot) DO UPDATE SET sequence = ?2, salt = ?3, bytes = ?4";
        let values = params![self.state.slot, sequence, self.salt.as_slice(), self.bytes];
        transaction.execute(set, values).map(drop)
    }
}

/// Checks that every slot has the state that its newest row wrote, and that there is no other.
///
/// # Errors
///
/// [`Error::Damaged`] if not, or if the ledger cannot be read.
pub(super) fn check_states(connection: &Connection, file: &Path, account: &Account) -> Result<(), Error> {
    for slot in account.states.keys() {
        read(connection, file, account, slot)?;
    }
    let stored: i64 = connection
        .query_row("SELECT count(*) FROM states", [], |row| row.get(0))
        .map_err(|error| Error::sqlite(file, error))?;
    if usize::try_from(stored) == Ok(account.states.len()) {
        return Ok(());
    }
    Err(Error::damaged(file, "it holds a state of noise that no row wrote"))
}

/// The newest state of `slot`, verified.
///
/// # Errors
///
/// As for [`check_states`].
pub(super) fn read(
    connection: &Connection,
    file: &Path,
    account: &Account,
    slot: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let Some((written, digest)) = account.states.get(slot) else { return Ok(None) };
    let sqlite = |error| Error::sqlite(file, error);
    let found = "SELECT sequence, salt, bytes FROM states WHERE slot = ?1";
    let found = connection
        .query_row(found, [slot], |row| {
            let (sequence, salt, bytes): (i64, [u8; 32], Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((sequence, salt, bytes))
        })
        .optional()
        .map_err(sqlite)?;
    match found {
        Some((sequence, salt, bytes))
            if u64::try_from(sequence) == Ok(*written) && State::of(slot, &salt, &bytes).digest == *digest =>
        {
            Ok(Some(bytes))
        }
        _ => Err(Error::damaged(
            file,
            format!("the state of the noise of {slot} is not the one that row {written} wrote"),
        )),
    }
}
