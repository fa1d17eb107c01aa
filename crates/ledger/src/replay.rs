//! Replaying a ledger: everything that is acted on is verified first.
//!
//! There are two ways. [`replay_newest`] is for a worker, and takes no longer for a million rows than for a thousand: it starts from
//! the newest valid checkpoint before the first unpublished message. It verifies all later rows, by the rules of an appended
//! row, with their messages; the blocks in `spent` that can still be charged; and every state of noise. `verify` verifies
//! everything from the first row. So damage in an old row always stops `ledger verify`, and a worker only if it bears on what
//! the worker will do.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::account::Account;
use super::chain::{ClosedWindow, Digest, Genesis, Head, LedgerRow, Link, ReleaseOutcome, RowForm};
use super::checkpoint::Checkpoint;
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::missing_rows::{MissingRows, RowGap};
use super::spent::{LIVE, SpentBlock, read_spent, same_as_spent};
use super::states::check_states;
use crate::outbox;
use crate::pages;
use crate::states;
use crate::store;

/// The rows so far.
#[derive(Clone, Debug)]
pub(super) struct LedgerState {
    pub genesis: Genesis,
    /// The digest of the first row.
    pub origin: Digest,
    pub head: Head,
    /// Form of the head.
    pub form: RowForm,
    pub account: Account,
    /// Place at which the rows go on after the first, if the next ones are not there.
    pub gap: Option<RowGap>,
}

/// A row that was verified and applied.
pub(super) struct AppliedRow {
    pub row: LedgerRow,
    /// The blocks that it has charged, with all that they have spent by now.
    pub spent: Vec<SpentBlock>,
}

impl LedgerState {
    /// Begins with the first row.
    pub fn from_first_row(
        entry: &LedgerEntry,
        damaged: impl Fn(String) -> LedgerError,
    ) -> Result<Self, LedgerError> {
        if !entry.is_successor_of(None) {
            return Err(damaged(
                "it was changed, or a row before it was changed or is missing".into(),
            ));
        }
        match entry.row() {
            Ok(LedgerRow::Genesis(genesis)) => {
                if entry.head.sequence != genesis.first_sequence() {
                    return Err(damaged("it is not numbered as a first row".into()));
                }
                let account = Account::new(&genesis);
                Ok(LedgerState {
                    genesis,
                    origin: entry.head.digest,
                    head: entry.head,
                    form: entry.link_after().form,
                    account,
                    gap: None,
                })
            }
            Ok(_) => Err(damaged(
                "a genesis row must be the first row, and no other".into(),
            )),
            Err(error) => Err(damaged(format!("it cannot be read: {error}"))),
        }
    }

    /// Verifies and applies the next row.
    pub fn apply_entry(
        &mut self,
        entry: &LedgerEntry,
        damaged: impl Fn(String) -> LedgerError,
    ) -> Result<AppliedRow, LedgerError> {
        let sequence = entry.head.sequence;
        if let Some(gap) = self.gap.as_ref().filter(|gap| gap.sequence == sequence) {
            let before = gap.before;
            let account = gap.account.clone();
            return self.pass_gap(entry, before, account, damaged);
        }
        if !entry.is_successor_of(Some(self.link())) {
            return Err(damaged(
                "it was changed, or a row before it was changed or is missing".into(),
            ));
        }
        let row = entry
            .row()
            .map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        if self.head.sequence.checked_add(1) != Some(sequence) {
            return Err(damaged("the row before it is missing".into()));
        }
        let spent = self.account.apply_row(sequence, &row).map_err(&damaged)?;
        let said = entry
            .account_digest()
            .map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        if said.is_some() && said != self.account.digest_after(self.origin) {
            return Err(damaged(
                "what it says of the account is not what the rows add up to".into(),
            ));
        }
        self.head = entry.head;
        self.form = entry.link_after().form;
        Ok(AppliedRow { row, spent })
    }

    /// Goes on with the row `entry` behind a gap, as if it had charged all live blocks. The chain ties the account to the newest row, for
    /// that row has its digest.
    fn pass_gap(
        &mut self,
        entry: &LedgerEntry,
        before: Link,
        account: Account,
        damaged: impl Fn(String) -> LedgerError,
    ) -> Result<AppliedRow, LedgerError> {
        if !entry.is_successor_of(Some(before)) {
            return Err(damaged(
                "it was changed, or does not follow the gap before it".into(),
            ));
        }
        let row = entry
            .row()
            .map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        let said = entry
            .account_digest()
            .map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        if said.is_none() || said != account.digest_after(self.origin) {
            return Err(damaged(
                "the account after it is not the one that it says".into(),
            ));
        }
        let mut spent = Vec::with_capacity(account.live.len());
        for (&block, &price) in &account.live {
            spent.push(SpentBlock {
                block,
                spent: price,
            });
        }
        self.head = entry.head;
        self.form = entry.link_after().form;
        self.account = account;
        Ok(AppliedRow { row, spent })
    }

    /// The rows that are not there.
    pub fn missing(&self) -> Option<MissingRows> {
        let gap = self.gap.as_ref()?;
        let first = self.genesis.first_sequence().saturating_add(1);
        let last = gap.sequence.checked_sub(1).filter(|last| *last >= first)?;
        Some(MissingRows {
            first,
            last,
            before: gap.before,
        })
    }

    /// Link for the next row.
    pub fn link(&self) -> Link {
        Link {
            form: self.form,
            digest: self.head.digest,
        }
    }

    /// Skips the rows up to a checkpoint.
    fn go_on_from(
        &mut self,
        found: Checkpoint,
        connection: &Connection,
        file: &Path,
    ) -> Result<(), LedgerError> {
        let sequence = found.head.sequence;
        let number = i64::try_from(sequence).unwrap_or(i64::MAX);
        let entry = LedgerEntry::of_row(connection, number).map_err(LedgerError::sqlite(file))?;
        let Some(entry) = entry
            .filter(|entry| entry.head.digest == found.head.digest && found.origin == self.origin)
        else {
            let what =
                format!("row {sequence}: it, or the first row, is not the one of its checkpoint");
            return Err(LedgerError::damaged(file, what));
        };
        self.head = found.head;
        self.form = entry.link_after().form;
        self.account = found.account;
        Ok(())
    }

    pub fn checkpoint(&self, account: &Account, head: Head) -> Checkpoint {
        Checkpoint {
            origin: self.origin,
            head,
            account: account.clone(),
        }
    }
}

/// Verifies all that a worker needs to continue.
///
/// # Errors
///
/// If the ledger cannot be read, or if what a worker needs is damaged.
pub(super) fn replay_newest(
    connection: &mut Connection,
    file: &Path,
) -> Result<LedgerState, LedgerError> {
    // One transaction, so that rows that a worker appends meanwhile are not mistaken for damage.
    let transaction = connection
        .transaction()
        .map_err(LedgerError::sqlite(file))?;
    check_format(&transaction, file)?;
    let mut state = first_state(&transaction, file)?;
    if let Some(found) = start_checkpoint(&transaction).map_err(LedgerError::sqlite(file))? {
        state.go_on_from(found, &transaction, file)?;
    }
    let begin = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
    let mut messages = 0;
    let pruned = store::pruned_to(&transaction).map_err(LedgerError::sqlite(file))?;
    let mut outbox = transaction
        .prepare(SELECT_OUTBOX)
        .map_err(LedgerError::sqlite(file))?;
    pages::each_entry(&transaction, file, begin, i64::MAX, |entry| {
        let AppliedRow { row, .. } =
            state.apply_entry(&entry, |what| damaged_row(file, &entry, &what))?;
        if entry.sequence().map_err(LedgerError::sqlite(file))? > pruned {
            messages += check_outbox(&mut outbox, file, &entry, &row)?;
        }
        Ok::<(), LedgerError>(())
    })?;
    drop(outbox);
    let stored = "SELECT count(*) FROM outbox WHERE sequence > ?1";
    let stored: i64 = transaction
        .query_row(stored, [begin], |row| row.get(0))
        .map_err(LedgerError::sqlite(file))?;
    if stored != messages {
        return Err(LedgerError::damaged(
            file,
            "the outbox holds messages that no row paid for",
        ));
    }
    let live = read_spent(&transaction, LIVE, &[state.account.live_from.micros()])
        .map_err(LedgerError::sqlite(file))?;
    same_as_spent(file, live, &state.account.live)?;
    check_states(
        &states::read_states(&transaction).map_err(LedgerError::sqlite(file))?,
        file,
        &state.account,
    )?;
    Ok(state)
}

/// Adds up the rows, without a look at messages and noise.
///
/// # Errors
///
/// If the ledger cannot be read, or if a row that counts is damaged.
pub(super) fn replay_rows(
    connection: &Connection,
    file: &Path,
) -> Result<LedgerState, LedgerError> {
    let mut state = first_state(connection, file)?;
    if let Some(found) =
        Checkpoint::newest(connection, i64::MAX).map_err(LedgerError::sqlite(file))?
    {
        state.go_on_from(found, connection, file)?;
    }
    let begin = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
    pages::each_entry(connection, file, begin, i64::MAX, |entry| {
        state
            .apply_entry(&entry, |what| damaged_row(file, &entry, &what))
            .map(drop)
    })?;
    Ok(state)
}

pub(super) fn check_format(connection: &Connection, file: &Path) -> Result<(), LedgerError> {
    match store::file_format(connection, file)? {
        store::FORMAT => Ok(()),
        format => Err(LedgerError::damaged(
            file,
            format!(
                "its format is {format}, but this program writes {}",
                store::FORMAT
            ),
        )),
    }
}

pub(super) fn damaged_row(file: &Path, entry: &LedgerEntry, what: &str) -> LedgerError {
    LedgerError::damaged(file, format!("row {}: {what}", entry.head.sequence))
}

pub(super) fn first_state(
    connection: &Connection,
    file: &Path,
) -> Result<LedgerState, LedgerError> {
    let format = store::file_format(connection, file)?;
    let entry = LedgerEntry::of_first_row(connection).map_err(LedgerError::sqlite(file))?;
    let entry = entry.ok_or_else(|| LedgerError::damaged(file, "it has no rows"))?;
    let mut state = LedgerState::from_first_row(&entry, |what| damaged_row(file, &entry, &what))?;
    // The format before has none.
    if format == store::FORMAT {
        state.gap = RowGap::read(connection).map_err(LedgerError::sqlite(file))?;
    }
    Ok(state)
}

/// The newest valid checkpoint before the first unpublished message, so that everything that may be published is verified.
pub(super) fn start_checkpoint(connection: &Connection) -> rusqlite::Result<Option<Checkpoint>> {
    let waiting = outbox::first_unpublished(connection)?;
    Checkpoint::newest(connection, waiting.unwrap_or(i64::MAX))
}

const SELECT_OUTBOX: &str =
    "SELECT key, headers, bytes, published_at FROM outbox WHERE sequence = ?1 AND place = ?2";

/// Compares the outbox with what `row` paid for; returns the number of messages.
fn check_outbox(
    outbox: &mut Statement<'_>,
    file: &Path,
    entry: &LedgerEntry,
    row: &LedgerRow,
) -> Result<i64, LedgerError> {
    let LedgerRow::Window(ClosedWindow {
        outcome: ReleaseOutcome::Released { messages, .. },
        ..
    }) = row
    else {
        return Ok(0);
    };
    let mut count = 0;
    for message in messages {
        let is_whole = outbox
            .query_row(
                params![entry.sequence().map_err(LedgerError::sqlite(file))?, count],
                |row| {
                    let key: String = row.get(0)?;
                    let headers: String = row.get(1)?;
                    let bytes: Option<Vec<u8>> = row.get(2)?;
                    let published_at: Option<i64> = row.get(3)?;
                    Ok(message.has_content(&key, &headers, bytes.as_deref())
                        && (bytes.is_some() || published_at.is_some()))
                },
            )
            .optional()
            .map_err(LedgerError::sqlite(file))?;
        if is_whole != Some(true) {
            return Err(damaged_row(
                file,
                entry,
                &format!("its message {count} was changed or is missing"),
            ));
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{genesis, price, released, span};

    #[test]
    fn a_row_that_says_something_else_of_the_account_is_damaged() {
        let refused = |why| LedgerError::Refused { why };
        let first = LedgerEntry::new(None, 0, &LedgerRow::Genesis(genesis(0)), None).unwrap();
        let row = LedgerRow::Window(released(span(0, 10), &[(span(0, 100), price(5))]));
        let mut account = Account::new(&genesis(0));
        account.apply_row(1, &row).unwrap();
        let taken = |said| {
            let next = LedgerEntry::new(Some(first.link_after()), 1, &row, said).unwrap();
            LedgerState::from_first_row(&first, refused)
                .unwrap()
                .apply_entry(&next, refused)
                .is_ok()
        };
        assert!(taken(None) && taken(account.digest_after(first.head.digest)));
        assert!(!taken(
            account.digest_after(Digest::of_bytes(b"another first row"))
        ));
    }
}
