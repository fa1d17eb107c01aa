//! Verifying a whole ledger, page by page, also beside the worker that writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::chain::{Closed, Outcome, Row};
use super::entry::Entry;
use super::error::Error;
use super::pages::{Page, Rest, StoredMessage};
use super::replay::{LedgerState, damaged};
use super::spent::{price_as_json, same_as_spent};
use super::states::check_states;
use crate::checkpoint;
use crate::pages;
use crate::replay;
use crate::store;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// About how many blocks are compared in one transaction.
const BLOCKS: usize = 4096;

/// Verifies the chain, the order and price of every window, what every block has spent, every message, the states of the noise
/// and every checkpoint, up to the row that is the newest when all others have been read. `told` hears how many rows are verified, of
/// how many there were in the beginning.
///
/// # Errors
///
/// If the ledger cannot be read, or if anything in it is damaged.
pub(super) fn all(
    connection: &Connection,
    file: &Path,
    told: &mut dyn FnMut(u64, u64),
) -> Result<LedgerState, Error> {
    let sqlite = |error| Error::sqlite(file, error);
    replay::check_format(connection, file)?;
    let mut checkpoints = checkpoint::sequences(connection).map_err(sqlite)?;
    let mut walk = Walk::begin(connection, file)?;
    let newest: Option<i64> = connection
        .query_row("SELECT max(sequence) FROM rows", [], |row| row.get(0))
        .map_err(sqlite)?;
    let rest = loop {
        let mut take = |walk: &mut Walk<'_>, entry: &Entry, messages: Option<&[StoredMessage]>| {
            walk.take(entry, messages)?;
            told(walk.count(walk.last()), walk.count(newest.unwrap_or(0)));
            if walk.spent.len() > BLOCKS + 2 * walk.state.account.live.len() {
                walk.compare_closed_blocks(connection)?;
            }
            match checkpoints.remove(&entry.sequence().map_err(sqlite)?) {
                true => check_checkpoint(connection, file, &walk.state),
                false => Ok(()),
            }
        };
        match walk.page(connection).map_err(sqlite)? {
            Page::Archived(archive) => archive.each_entry(file, |entry| {
                // Rows that were still in the ledger when they were verified may have been archived since.
                let is_new = entry.sequence().map_err(sqlite)? > walk.last();
                if is_new {
                    take(&mut walk, &entry, None)
                } else {
                    Ok(())
                }
            })?,
            Page::Rows { rows, pruned } => {
                for (entry, messages) in rows {
                    let is_kept =
                        entry.sequence().map_err(sqlite)? > pruned || !messages.is_empty();
                    take(&mut walk, &entry, is_kept.then_some(&messages))?;
                }
            }
            Page::End(rest) => break rest,
        }
    };
    let now = checkpoint::sequences(connection).map_err(sqlite)?;
    // The worker has removed the others.
    if let Some(at) = checkpoints.intersection(&now).next() {
        return Err(Error::damaged(
            file,
            format!("row {at}: there is a checkpoint of it, and no such row"),
        ));
    }
    walk.check_outbox(connection, &rest)?;
    let account = &walk.state.account;
    same_as_spent(
        file,
        rest.live,
        account
            .live
            .iter()
            .map(|(block, price)| (*block, price_as_json(*price))),
    )?;
    check_states(&rest.states, file, account)?;
    walk.compare_closed_blocks(connection)?;
    walk.count_closed_blocks(connection)?;
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
struct Walk<'a> {
    file: &'a Path,
    state: LedgerState,
    first: i64,
    /// What the blocks have spent that were not compared yet.
    spent: BTreeMap<Span, Price>,
    /// How many closed blocks were compared.
    compared: usize,
    /// The messages that were not known to be published when their row was read, by row and place.
    unpublished: BTreeSet<(i64, i64)>,
}

impl<'a> Walk<'a> {
    fn begin(connection: &Connection, file: &'a Path) -> Result<Self, Error> {
        let state = replay::first(connection, file)?;
        let first = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
        Ok(Walk {
            file,
            state,
            first,
            spent: BTreeMap::new(),
            compared: 0,
            unpublished: BTreeSet::new(),
        })
    }

    fn last(&self) -> i64 {
        i64::try_from(self.state.head.sequence).unwrap_or(i64::MAX)
    }

    /// How many rows there are from the first to number `last`.
    fn count(&self, last: i64) -> u64 {
        // Of those before a gap only the first is there.
        let gap = self
            .state
            .gap
            .as_ref()
            .and_then(|gap| i64::try_from(gap.sequence).ok());
        let first = gap.map_or(self.first, |gap| gap.saturating_sub(1));
        last.max(first).abs_diff(first).saturating_add(1)
    }

    fn page(&self, connection: &Connection) -> rusqlite::Result<Page> {
        pages::next(connection, self.last(), self.state.account.live_from)
    }

    /// Verifies the next row, and its messages unless they were dropped.
    fn take(&mut self, entry: &Entry, stored: Option<&[StoredMessage]>) -> Result<(), Error> {
        let damaged = |what: &str| damaged(self.file, entry, what);
        let (row, charged) = self.state.take(entry, |what| damaged(&what))?;
        self.spent.extend(charged);
        let Some(stored) = stored else { return Ok(()) };
        let messages = match &row {
            Row::Window(Closed {
                outcome: Outcome::Released { messages, .. },
                ..
            }) => messages.as_slice(),
            _ => &[],
        };
        if stored.len() > messages.len() {
            return Err(damaged("the outbox holds messages that it did not pay for"));
        }
        let sequence = entry
            .sequence()
            .map_err(|error| Error::sqlite(self.file, error))?;
        for (place, message) in (0..).zip(messages) {
            let found = usize::try_from(place)
                .ok()
                .and_then(|place| stored.get(place));
            let Some(found) = found.filter(|found| found.place == place && found.is_of(message))
            else {
                return Err(damaged(&format!(
                    "its message {place} was changed or is missing"
                )));
            };
            if !found.is_published {
                self.unpublished.insert((sequence, place));
            }
        }
        Ok(())
    }

    /// Checks that no message is without its row, and that the worker finds every message that is unpublished.
    fn check_outbox(&self, connection: &Connection, rest: &Rest) -> Result<(), Error> {
        if rest
            .outbox
            .is_some_and(|(from, to)| from <= rest.pruned || to > self.last())
        {
            return Err(Error::damaged(
                self.file,
                "the outbox holds messages that no row paid for",
            ));
        }
        if rest.pruned < self.first || rest.pruned > self.last() {
            return Err(Error::damaged(
                self.file,
                "it says that messages were dropped that were not",
            ));
        }
        let is_unpublished = |&(sequence, place): &(i64, i64)| {
            let stored =
                "SELECT published_at IS NULL FROM outbox WHERE sequence = ?1 AND place = ?2";
            let stored = connection.query_row(stored, params![sequence, place], |row| {
                row.get::<_, bool>(0)
            });
            stored
                .optional()
                .map_err(|error| Error::sqlite(self.file, error))
                .map(|stored| stored == Some(true))
        };
        let mut is_whole = rest.unpublished.is_subset(&self.unpublished);
        // The others were published since their row was read.
        for message in self.unpublished.difference(&rest.unpublished) {
            is_whole = is_whole && !is_unpublished(message)?;
        }
        if is_whole {
            return Ok(());
        }
        Err(Error::damaged(
            self.file,
            "the index of the unpublished messages is not that of the outbox",
        ))
    }

    /// Compares what the closed blocks have spent, and forgets them: no row can change it.
    fn compare_closed_blocks(&mut self, connection: &Connection) -> Result<(), Error> {
        let from = self.state.account.live_from;
        let closed: BTreeMap<Span, Price> = self
            .spent
            .extract_if(.., |block, _| block.end <= from)
            .collect();
        let stored = pages::at_once(connection, || {
            let stored = "SELECT price FROM spent WHERE block_start = ?1 AND block_end = ?2";
            let mut stored = connection.prepare(stored)?;
            let mut spent = |block: &Span| {
                let at = [block.start.micros(), block.end.micros()];
                stored
                    .query_row(at, |row| Ok((*block, row.get(0)?)))
                    .optional()
            };
            closed
                .keys()
                .filter_map(|block| spent(block).transpose())
                .collect::<rusqlite::Result<Vec<_>>>()
        });
        self.compared += closed.len();
        let stored = stored.map_err(|error| Error::sqlite(self.file, error))?;
        same_as_spent(
            self.file,
            stored,
            closed
                .into_iter()
                .map(|(block, price)| (block, price_as_json(price))),
        )
    }

    /// Checks that there is no closed block that no row has charged.
    fn count_closed_blocks(&self, connection: &Connection) -> Result<(), Error> {
        let count = "SELECT count(*) FROM spent WHERE block_end <= ?1";
        let count = connection.query_row(count, [self.state.account.live_from.micros()], |row| {
            row.get::<_, i64>(0)
        });
        if usize::try_from(count.map_err(|error| Error::sqlite(self.file, error))?)
            == Ok(self.compared)
        {
            return Ok(());
        }
        Err(Error::damaged(
            self.file,
            "it says of blocks that they have spent something, and no row says so",
        ))
    }
}

fn check_checkpoint(
    connection: &Connection,
    file: &Path,
    state: &LedgerState,
) -> Result<(), Error> {
    let contradicts = state
        .checkpoint(&state.account, state.head)
        .contradicts(connection);
    if !contradicts.map_err(|error| Error::sqlite(file, error))? {
        return Ok(());
    }
    let at = state.head.sequence;
    Err(Error::damaged(
        file,
        format!("row {at}: its checkpoint is not what the rows add up to"),
    ))
}
