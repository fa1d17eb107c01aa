//! Replaying a ledger: everything that is acted on is verified first.
//!
//! There are two ways. [`newest`] is for a worker, and takes no longer for a million rows than for a thousand: it starts from
//! the newest valid checkpoint before the first unpublished message. It verifies all later rows, by the rules of an appended
//! row, with their messages; the blocks in `spent` that can still be charged; and every state of noise. [`all`] verifies
//! everything from the first row. So damage in an old row always stops `ledger verify`, and a worker only if it bears on what
//! the worker will do.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params};

use super::account::Account;
use super::chain::{Closed, Digest, Genesis, Head, Message, Outcome, Row};
use super::checkpoint::{self, Checkpoint};
use super::error::Error;
use super::states::check_states;
use super::store::{self, Entry};
use crate::clock::Timestamp;
use crate::mechanism::price::Price;
use crate::window::grid::Span;

/// The rows so far.
#[derive(Debug)]
pub(super) struct LedgerState {
    pub genesis: Genesis,
    /// The digest of the first row.
    pub origin: Digest,
    pub head: Head,
    pub account: Account,
}

impl LedgerState {
    fn begin(entry: &Entry, damaged: impl Fn(String) -> Error) -> Result<Self, Error> {
        if !entry.follows(&Digest::ZERO) {
            return Err(damaged("it was changed, or a row before it was changed or is missing".into()));
        }
        match serde_json::from_str(&entry.body) {
            Ok(Row::Genesis(genesis)) => {
                if entry.head.sequence != genesis.previous.map_or(0, |head| head.sequence.saturating_add(1)) {
                    return Err(damaged("it is not numbered as a first row".into()));
                }
                let account = Account::new(&genesis);
                Ok(LedgerState { genesis, origin: entry.head.digest, head: entry.head, account })
            }
            Ok(_) => Err(damaged("a genesis row must be the first row, and no other".into())),
            Err(error) => Err(damaged(format!("it cannot be read: {error}"))),
        }
    }

    /// Applies the next row; returns it, and what the charged blocks have spent.
    fn take(&mut self, entry: &Entry, damaged: impl Fn(String) -> Error) -> Result<(Row, Vec<(Span, Price)>), Error> {
        let sequence = entry.head.sequence;
        if !entry.follows(&self.head.digest) {
            return Err(damaged("it was changed, or a row before it was changed or is missing".into()));
        }
        let row: Row =
            serde_json::from_str(&entry.body).map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        if self.head.sequence.checked_add(1) != Some(sequence) {
            return Err(damaged("the row before it is missing".into()));
        }
        let spent = self.account.take(sequence, &row).map_err(damaged)?;
        self.head = entry.head;
        Ok((row, spent))
    }

    pub fn checkpoint(&self, account: &Account, head: Head) -> Checkpoint {
        Checkpoint { origin: self.origin, head, account: account.clone() }
    }
}

/// What a worker needs to continue.
///
/// # Errors
///
/// If the ledger cannot be read, or if what a worker needs is damaged.
pub(super) fn newest(connection: &mut Connection, file: &Path) -> Result<LedgerState, Error> {
    let sqlite = |error| Error::sqlite(file, error);
    // One transaction, so that rows that a worker appends meanwhile are not mistaken for damage.
    let transaction = connection.transaction().map_err(sqlite)?;
    check_format(&transaction, file)?;
    let mut state = first(&transaction, file)?;
    if let Some(found) = checkpoint(&transaction).map_err(sqlite)? {
        let sequence = found.head.sequence;
        let at = i64::try_from(sequence).unwrap_or(i64::MAX);
        let digest = "SELECT digest FROM rows WHERE sequence = ?1";
        let digest = transaction.query_row(digest, [at], |row| store::digest_of(row, 0)).optional().map_err(sqlite)?;
        if found.origin != state.origin || digest != Some(found.head.digest) {
            return Err(Error::damaged(
                file,
                format!("row {sequence}: it, or the first row, is not the one of its checkpoint"),
            ));
        }
        (state.head, state.account) = (found.head, found.account);
    }
    let begin = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
    let mut messages = 0;
    let mut outbox = transaction.prepare(OUTBOX).map_err(sqlite)?;
    each_entry(&transaction, file, begin, |entry| {
        let (row, _) = state.take(&entry, |what| damaged(file, &entry, &what))?;
        messages += check_outbox(&mut outbox, file, &entry, &row)?;
        Ok::<(), Error>(())
    })?;
    drop(outbox);
    let stored = "SELECT count(*) FROM outbox WHERE sequence > ?1";
    count(file, transaction.query_row(stored, [begin], |row| row.get(0)).map_err(sqlite)?, messages)?;
    // Without `INDEXED BY` SQLite prefers the primary key, and reads the whole table.
    let live = "SELECT block_start, block_end, price FROM spent INDEXED BY live WHERE block_end > ?1";
    check_spent(&transaction, file, live, state.account.live_from, &state.account.live)?;
    check_states(&transaction, file, &state.account)?;
    Ok(state)
}

/// Verifies the pages, the chain, the order and price of every window, the spent table, the outbox, the states and every
/// checkpoint.
///
/// # Errors
///
/// If the ledger cannot be read, or if anything in it is damaged.
pub(super) fn all(connection: &mut Connection, file: &Path) -> Result<LedgerState, Error> {
    let transaction = connection.transaction().map_err(|error| Error::sqlite(file, error))?;
    check_format(&transaction, file)?;
    let mut checkpoints = checkpoint::sequences(&transaction).map_err(|error| Error::sqlite(file, error))?;
    // The checkpoints that remain do not match the rows.
    let (state, spent) = rows(&transaction, file, |state| {
        let at = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
        if checkpoints.contains(&at) && state.checkpoint(&state.account, state.head).is_stored(&transaction)? {
            checkpoints.remove(&at);
        }
        Ok(())
    })?;
    if let Some(at) = checkpoints.first() {
        return Err(Error::damaged(file, format!("row {at}: its checkpoint is not what the rows add up to")));
    }
    let whole = "SELECT block_start, block_end, price FROM spent WHERE block_end >= ?1";
    check_spent(&transaction, file, whole, Timestamp::from_micros(i64::MIN), &spent)?;
    check_states(&transaction, file, &state.account)?;
    Ok(state)
}

/// Migrates a ledger of format 1, all or nothing, after verifying all of it.
///
/// # Errors
///
/// If the ledger is damaged or cannot be written; it is then unchanged.
pub(super) fn migrate(connection: &mut Connection, file: &Path) -> Result<(), Error> {
    let sqlite = |error| Error::sqlite(file, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    transaction.execute_batch("ALTER TABLE spent RENAME TO spent_1").map_err(sqlite)?;
    transaction.execute_batch(store::TABLES_OF_2).map_err(sqlite)?;
    let (_, spent) = rows(&transaction, file, |state| match Checkpoint::is_due(state.head.sequence) {
        true => state.checkpoint(&state.account, state.head).insert(&transaction),
        false => Ok(()),
    })?;
    // Format 1 stored prices as text, whatever the name of the column.
    let old = "SELECT block_start, block_end, epsilon FROM spent_1";
    let expected = spent.iter().map(|(block, price)| (*block, price.to_string()));
    same_as_spent(file, read_spent(&transaction, old, &[]).map_err(sqlite)?, expected)?;
    set_spent(&transaction, spent.into_iter()).map_err(sqlite)?;
    transaction.execute_batch("DROP TABLE spent_1").map_err(sqlite)?;
    transaction.pragma_update(None, "user_version", store::FORMAT).map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

fn check_format(connection: &Connection, file: &Path) -> Result<(), Error> {
    match store::format(connection).map_err(|error| Error::sqlite(file, error))? {
        store::FORMAT => Ok(()),
        format if format > store::FORMAT => Err(Error::Newer { path: file.into(), format }),
        format => {
            Err(Error::damaged(file, format!("its format is {format}, but this program writes {}", store::FORMAT)))
        }
    }
}

fn damaged(file: &Path, entry: &Entry, what: &str) -> Error {
    Error::damaged(file, format!("row {}: {what}", entry.head.sequence))
}

fn first(connection: &Connection, file: &Path) -> Result<LedgerState, Error> {
    let first = "SELECT sequence, salt, body, digest FROM rows ORDER BY sequence LIMIT 1";
    let entry = connection.query_row(first, [], Entry::read).optional().map_err(|error| Error::sqlite(file, error))?;
    let entry = entry.ok_or_else(|| Error::damaged(file, "it has no rows"))?;
    LedgerState::begin(&entry, |what| damaged(file, &entry, &what))
}

/// The newest valid checkpoint before the first unpublished message, so that everything that may be published is verified.
fn checkpoint(connection: &Connection) -> rusqlite::Result<Option<Checkpoint>> {
    let waiting = "SELECT sequence FROM outbox WHERE published_at IS NULL ORDER BY sequence, place LIMIT 1";
    let waiting: Option<i64> = connection.query_row(waiting, [], |row| row.get(0)).optional()?;
    Checkpoint::newest(connection, waiting.unwrap_or(i64::MAX))
}

/// Verifies the pages, every row and the outbox; returns what every block has spent. `each` is called after every row.
fn rows(
    transaction: &Transaction<'_>,
    file: &Path,
    mut each: impl FnMut(&LedgerState) -> rusqlite::Result<()>,
) -> Result<(LedgerState, BTreeMap<Span, Price>), Error> {
    let sqlite = |error| Error::sqlite(file, error);
    if let Some(what) = store::check_pages(transaction).map_err(sqlite)? {
        return Err(Error::damaged(file, what));
    }
    let mut state = first(transaction, file)?;
    each(&state).map_err(sqlite)?;
    let (mut spent, mut messages) = (BTreeMap::new(), 0);
    let begin = i64::try_from(state.head.sequence).unwrap_or(i64::MAX);
    let mut outbox = transaction.prepare(OUTBOX).map_err(sqlite)?;
    each_entry(transaction, file, begin, |entry| {
        let (row, charged) = state.take(&entry, |what| damaged(file, &entry, &what))?;
        messages += check_outbox(&mut outbox, file, &entry, &row)?;
        spent.extend(charged);
        each(&state).map_err(sqlite)
    })?;
    let stored = transaction.query_row("SELECT count(*) FROM outbox", [], |row| row.get(0)).map_err(sqlite)?;
    count(file, stored, messages)?;
    Ok((state, spent))
}

/// Passes every stored row after number `after` to `each`, in sequence.
///
/// # Errors
///
/// The first error of `each`, or if the ledger cannot be read.
pub(super) fn each_entry<E: From<Error>>(
    connection: &Connection,
    file: &Path,
    after: i64,
    mut each: impl FnMut(Entry) -> Result<(), E>,
) -> Result<(), E> {
    let sqlite = |error| Error::sqlite(file, error);
    let all = "SELECT sequence, salt, body, digest FROM rows WHERE sequence > ?1 ORDER BY sequence";
    let mut statement = connection.prepare(all).map_err(sqlite)?;
    for entry in statement.query_map([after], Entry::read).map_err(sqlite)? {
        each(entry.map_err(sqlite)?)?;
    }
    Ok(())
}

const OUTBOX: &str = "SELECT key, headers, bytes, published_at FROM outbox WHERE sequence = ?1 AND place = ?2";

/// Compares the outbox with what `row` paid for; returns the number of messages.
fn check_outbox(outbox: &mut Statement<'_>, file: &Path, entry: &Entry, row: &Row) -> Result<i64, Error> {
    let Row::Window(Closed { outcome: Outcome::Released { messages, .. }, .. }) = row else { return Ok(0) };
    let sqlite = |error| Error::sqlite(file, error);
    let mut count = 0;
    for message in messages {
        let is_whole = outbox
            .query_row(params![entry.sequence().map_err(sqlite)?, count], |row| {
                let (key, headers, bytes): (String, String, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let published_at: Option<i64> = row.get(3)?;
                Ok(is_message(message, &key, &headers, bytes.as_deref()) && (bytes.is_some() || published_at.is_some()))
            })
            .optional()
            .map_err(sqlite)?;
        if is_whole != Some(true) {
            return Err(damaged(file, entry, &format!("its message {count} was changed or is missing")));
        }
        count += 1;
    }
    Ok(count)
}

fn count(file: &Path, stored: i64, messages: i64) -> Result<(), Error> {
    if stored == messages {
        return Ok(());
    }
    Err(Error::damaged(file, "the outbox holds messages that no row paid for"))
}

/// Whether a stored message is the one that was paid for; its bytes may have been dropped already.
pub(super) fn is_message(message: &Message, key: &str, headers: &str, bytes: Option<&[u8]>) -> bool {
    message.key == key
        && message.headers == Digest::of(headers.as_bytes())
        && bytes.is_none_or(|bytes| message.bytes == Digest::of(bytes))
}

/// Compares the result of `query`, from a time on, with what the rows add up to.
fn check_spent(
    transaction: &Transaction<'_>,
    file: &Path,
    query: &str,
    from: Timestamp,
    spent: &BTreeMap<Span, Price>,
) -> Result<(), Error> {
    let stored = read_spent(transaction, query, &[from.micros()]).map_err(|error| Error::sqlite(file, error))?;
    same_as_spent(file, stored, spent.iter().map(|(block, price)| (*block, price_as_json(*price))))
}

fn same_as_spent(
    file: &Path,
    mut stored: Vec<(Span, String)>,
    expected: impl Iterator<Item = (Span, String)>,
) -> Result<(), Error> {
    stored.sort_unstable();
    if stored.into_iter().eq(expected) {
        return Ok(());
    }
    Err(Error::damaged(file, "the table of what was spent is not what the rows add up to"))
}

/// Reads the columns start, end and price.
pub(super) fn read_spent(
    connection: &Connection,
    query: &str,
    parameters: &[i64],
) -> rusqlite::Result<Vec<(Span, String)>> {
    let mut statement = connection.prepare(query)?;
    let stored = statement.query_map(rusqlite::params_from_iter(parameters), |row| {
        let (start, end) = (Timestamp::from_micros(row.get(0)?), Timestamp::from_micros(row.get(1)?));
        Ok((Span { start, end }, row.get::<_, String>(2)?))
    });
    stored?.collect()
}

/// Stores what blocks have spent by now.
pub(super) fn set_spent(
    transaction: &Transaction<'_>,
    mut spent: impl Iterator<Item = (Span, Price)>,
) -> rusqlite::Result<()> {
    let set = "INSERT INTO spent VALUES (?1, ?2, ?3) ON CONFLICT (block_start, block_end) DO UPDATE SET price = ?3";
    let mut set = transaction.prepare(set)?;
    spent.try_for_each(|(block, price)| {
        set.execute(params![block.start.micros(), block.end.micros(), price_as_json(price)]).map(drop)
    })
}

fn price_as_json(price: Price) -> String {
    serde_json::json!(price).to_string()
}
