//! Verifying a whole ledger, page by page, also beside the worker that writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::chain::{ClosedWindow, LedgerRow, ReleaseOutcome};
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::outbox::OutboxSlot;
use super::pages::{LedgerPage, NewestTables, RowMessages, StoredMessage};
use super::replay::{AppliedRow, LedgerState, damaged_row};
use super::spent::{StoredBlock, same_as_spent};
use super::states::check_states;
use crate::checkpoint;
use crate::pages;
use crate::replay;
use crate::store;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Approximate number of blocks that are compared in one transaction.
const PAGE_BLOCKS: usize = 4096;

/// Verifies the chain, the order and price of every window, what every block has spent, every message, the states of the noise
/// and every checkpoint, up to the row that is the newest when all others have been read. `progress` is called with how many rows are verified, of
/// how many there were in the beginning.
///
/// # Errors
///
/// If the ledger cannot be read, or if anything in it is damaged.
pub(super) fn verify_all_rows(
    connection: &Connection,
    file: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<LedgerState, LedgerError> {
    replay::check_format(connection, file)?;
    let mut walk = VerificationWalk::begin(connection, file)?;
    let rest = loop {
        match walk.next_page().map_err(LedgerError::sqlite(file))? {
            LedgerPage::Archived(archive) => archive.each_entry(file, |entry| {
                // Rows that were still in the ledger when they were verified may have been archived since.
                if entry.sequence().map_err(LedgerError::sqlite(file))? <= walk.last_row() {
                    return Ok(());
                }
                walk.verify_row(&entry, None, progress)
            })?,
            LedgerPage::Rows { rows, pruned } => {
                for RowMessages { entry, messages } in rows {
                    let is_kept = entry.sequence().map_err(LedgerError::sqlite(file))? > pruned
                        || !messages.is_empty();
                    walk.verify_row(&entry, is_kept.then_some(&messages), progress)?;
                }
            }
            LedgerPage::End(rest) => break rest,
        }
    };
    walk.check_rest(rest)?;
    Ok(walk.state)
}

/// Migrates a ledger of format 4, all or nothing. Its rows stay as they are; a checkpoint can stand at later ones.
///
/// # Errors
///
/// If the ledger cannot be written; it is then unchanged.
pub(super) fn migrate_from_4(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(store::TABLE_OF_5)?;
    transaction.pragma_update(None, "user_version", store::FORMAT)?;
    transaction.commit()
}

/// The rows that were verified so far.
struct VerificationWalk<'a> {
    connection: &'a Connection,
    file: &'a Path,
    state: LedgerState,
    first: i64,
    /// Number of the newest row when the walk began.
    newest: i64,
    /// Rows with a checkpoint that was not compared yet, as it was when the walk began.
    checkpoints: BTreeSet<i64>,
    /// Blocks that were not compared yet, and all that each has spent.
    spent: BTreeMap<Span, Price>,
    /// Number of closed blocks that were compared.
    compared: usize,
    /// The messages that were not known to be published when their row was read.
    unpublished: BTreeSet<OutboxSlot>,
}

impl<'a> VerificationWalk<'a> {
    fn begin(connection: &'a Connection, file: &'a Path) -> Result<Self, LedgerError> {
        let checkpoints =
            checkpoint::checkpointed_rows(connection).map_err(LedgerError::sqlite(file))?;
        let state = replay::first_state(connection, file)?;
        let first = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
        let newest: Option<i64> = connection
            .query_row("SELECT max(sequence) FROM rows", [], |row| row.get(0))
            .map_err(LedgerError::sqlite(file))?;
        Ok(VerificationWalk {
            connection,
            file,
            state,
            first,
            newest: newest.unwrap_or(0),
            checkpoints,
            spent: BTreeMap::new(),
            compared: 0,
            unpublished: BTreeSet::new(),
        })
    }

    fn last_row(&self) -> i64 {
        i64::try_from(self.state.head.sequence).unwrap_or(i64::MAX)
    }

    /// Number of rows from the first to number `last`.
    fn count_rows_to(&self, last: i64) -> u64 {
        // Of those before a gap only the first is there.
        let gap = self.state.gap.as_ref().map(|gap| gap.sequence);
        let first = match gap.map(i64::try_from) {
            Some(Ok(gap)) => gap.saturating_sub(1),
            _ => self.first,
        };
        last.max(first).abs_diff(first).saturating_add(1)
    }

    fn next_page(&self) -> rusqlite::Result<LedgerPage> {
        pages::next_page(
            self.connection,
            self.last_row(),
            self.state.account.live_from,
        )
    }

    /// Verifies the next row, its messages unless they were dropped, and its checkpoint, if it has one.
    fn verify_row(
        &mut self,
        entry: &LedgerEntry,
        messages: Option<&[StoredMessage]>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), LedgerError> {
        let AppliedRow { row, spent } = self
            .state
            .apply_entry(entry, |what| damaged_row(self.file, entry, &what))?;
        for charged in spent {
            self.spent.insert(charged.block, charged.spent);
        }
        if let Some(messages) = messages {
            self.check_messages(entry, &row, messages)?;
        }
        progress(
            self.count_rows_to(self.last_row()),
            self.count_rows_to(self.newest),
        );
        if self.spent.len() > PAGE_BLOCKS + 2 * self.state.account.live.len() {
            self.compare_closed_blocks()?;
        }
        let sequence = entry.sequence().map_err(LedgerError::sqlite(self.file))?;
        if self.checkpoints.remove(&sequence) {
            self.check_checkpoint()?;
        }
        Ok(())
    }

    /// Compares the stored messages of `row` with those that it paid for.
    fn check_messages(
        &mut self,
        entry: &LedgerEntry,
        row: &LedgerRow,
        stored: &[StoredMessage],
    ) -> Result<(), LedgerError> {
        let messages = match row {
            LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { messages, .. },
                ..
            }) => messages.as_slice(),
            _ => &[],
        };
        if stored.len() > messages.len() {
            return Err(damaged_row(
                self.file,
                entry,
                "the outbox holds messages that it did not pay for",
            ));
        }
        let sequence = entry.sequence().map_err(LedgerError::sqlite(self.file))?;
        let mut stored = stored.iter();
        for (place, message) in (0..).zip(messages) {
            let found = stored.next();
            let Some(found) = found.filter(|found| found.place == place && found.is_of(message))
            else {
                return Err(damaged_row(
                    self.file,
                    entry,
                    &format!("its message {place} was changed or is missing"),
                ));
            };
            if !found.is_published {
                self.unpublished.insert(OutboxSlot { sequence, place });
            }
        }
        Ok(())
    }

    /// Compares `rest` with the rows, when all of them were read.
    fn check_rest(&mut self, rest: NewestTables) -> Result<(), LedgerError> {
        let now = checkpoint::checkpointed_rows(self.connection)
            .map_err(LedgerError::sqlite(self.file))?;
        // The worker has removed the others.
        if let Some(row) = self.checkpoints.intersection(&now).next() {
            return Err(LedgerError::damaged(
                self.file,
                format!("row {row}: there is a checkpoint of it, and no such row"),
            ));
        }
        self.check_outbox(&rest)?;
        let account = &self.state.account;
        same_as_spent(self.file, rest.live, &account.live)?;
        check_states(&rest.states, self.file, account)?;
        self.compare_closed_blocks()?;
        self.count_closed_blocks()
    }

    /// Checks that no message is without its row, and that the worker finds every message that is unpublished.
    fn check_outbox(&self, rest: &NewestTables) -> Result<(), LedgerError> {
        if rest
            .outbox
            .as_ref()
            .is_some_and(|outbox| outbox.first <= rest.pruned || outbox.last > self.last_row())
        {
            return Err(LedgerError::damaged(
                self.file,
                "the outbox holds messages that no row paid for",
            ));
        }
        if rest.pruned < self.first || rest.pruned > self.last_row() {
            return Err(LedgerError::damaged(
                self.file,
                "it says that messages were dropped that were not",
            ));
        }
        let mut is_whole = rest.unpublished.is_subset(&self.unpublished);
        // The others were published since their row was read.
        for message in self.unpublished.difference(&rest.unpublished) {
            is_whole = is_whole && !self.is_still_unpublished(message)?;
        }
        if is_whole {
            return Ok(());
        }
        Err(LedgerError::damaged(
            self.file,
            "the index of the unpublished messages is not that of the outbox",
        ))
    }

    fn is_still_unpublished(&self, message: &OutboxSlot) -> Result<bool, LedgerError> {
        let stored = "SELECT published_at IS NULL FROM outbox WHERE sequence = ?1 AND place = ?2";
        let stored: Option<bool> = self
            .connection
            .query_row(stored, [message.sequence, message.place], |row| row.get(0))
            .optional()
            .map_err(LedgerError::sqlite(self.file))?;
        Ok(stored == Some(true))
    }

    /// Compares the closed blocks with the stored ones, and forgets them: no row can charge them again.
    fn compare_closed_blocks(&mut self) -> Result<(), LedgerError> {
        let from = self.state.account.live_from;
        let closed: BTreeMap<Span, Price> = self
            .spent
            .extract_if(.., |block, _| block.end <= from)
            .collect();
        let stored = pages::in_one_read(self.connection, || {
            let price = "SELECT price FROM spent WHERE block_start = ?1 AND block_end = ?2";
            let mut price = self.connection.prepare(price)?;
            let mut stored = Vec::with_capacity(closed.len());
            for &block in closed.keys() {
                let bounds = [block.start.micros(), block.end.micros()];
                let found: Option<String> = price.query_row(bounds, |row| row.get(0)).optional()?;
                if let Some(spent) = found {
                    stored.push(StoredBlock { block, spent });
                }
            }
            Ok(stored)
        });
        self.compared += closed.len();
        let stored = stored.map_err(LedgerError::sqlite(self.file))?;
        same_as_spent(self.file, stored, &closed)
    }

    /// Checks that there is no closed block that no row has charged.
    fn count_closed_blocks(&self) -> Result<(), LedgerError> {
        let count = "SELECT count(*) FROM spent WHERE block_end <= ?1";
        let live_from = self.state.account.live_from.micros();
        let count: i64 = self
            .connection
            .query_row(count, [live_from], |row| row.get(0))
            .map_err(LedgerError::sqlite(self.file))?;
        if usize::try_from(count) == Ok(self.compared) {
            return Ok(());
        }
        Err(LedgerError::damaged(
            self.file,
            "it says of blocks that they have spent something, and no row says so",
        ))
    }

    /// Compares the checkpoint of the newest row with the sum of the rows.
    fn check_checkpoint(&self) -> Result<(), LedgerError> {
        let state = &self.state;
        let contradicts = state
            .checkpoint(&state.account, state.head)
            .contradicts(self.connection)
            .map_err(LedgerError::sqlite(self.file))?;
        if !contradicts {
            return Ok(());
        }
        let row = state.head.sequence;
        Err(LedgerError::damaged(
            self.file,
            format!("row {row}: its checkpoint is not what the rows add up to"),
        ))
    }
}
