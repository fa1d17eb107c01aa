//! Reading a ledger again: everything is verified, nothing is believed.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Error;
use super::chain::{Account, Closed, Digest, Genesis, Head, Message, Outcome, Row};
use super::store::{self, Entry};
use crate::clock::Timestamp;
use crate::mechanism::price::Price;
use crate::window::grid::Span;

/// What the rows add up to.
pub(super) struct Replayed {
    pub genesis: Genesis,
    pub head: Head,
    pub account: Account,
}

/// Verifies the pages, the chain, the order and price of every window, the spent table and the outbox.
pub(super) fn replay(connection: &mut Connection, file: &Path) -> Result<Replayed, Error> {
    let sqlite = |error| Error::sqlite(file, error);
    // One transaction, so that a worker that goes on meanwhile is not mistaken for damage.
    let transaction = connection.transaction().map_err(sqlite)?;
    store::check_pages(&transaction).map_err(sqlite)?.map_err(|what| Error::damaged(file, what))?;
    let mut state = None;
    let mut messages = 0;
    each_entry(&transaction, file, |entry| {
        let sequence = entry.head.sequence;
        let damaged = |what: String| Error::damaged(file, format!("row {sequence}: {what}"));
        let before = state.as_ref().map_or(Digest::ZERO, |state: &Replayed| state.head.digest);
        if !entry.follows(&before) {
            return Err(damaged("it was changed, or a row before it was changed or is missing".into()));
        }
        match (serde_json::from_str(&entry.body), &mut state) {
            (Ok(Row::Genesis(genesis)), None) => {
                if sequence != genesis.previous.map_or(0, |head| head.sequence.saturating_add(1)) {
                    return Err(damaged("it is not numbered as a first row".into()));
                }
                let account = Account::new(&genesis);
                state = Some(Replayed { genesis, head: entry.head, account });
            }
            (Ok(Row::Window(row)), Some(state)) => {
                if state.head.sequence.checked_add(1) != Some(sequence) {
                    return Err(damaged("the row before it is missing".into()));
                }
                let spent = state.account.quote(&row).map_err(damaged)?;
                state.account.close(&row, spent);
                state.head = entry.head;
                messages += check_outbox(&transaction, file, &entry, &row)?;
            }
            (Ok(_), _) => return Err(damaged("the first row, and no other, says what the ledger is about".into())),
            (Err(error), _) => return Err(damaged(format!("it cannot be read: {error}"))),
        }
        Ok(())
    })?;
    let state = state.ok_or_else(|| Error::damaged(file, "it has no rows"))?;
    check_spent(&transaction, file, &state.account)?;
    let stored: i64 = transaction.query_row("SELECT count(*) FROM outbox", [], |row| row.get(0)).map_err(sqlite)?;
    if stored != messages {
        return Err(Error::damaged(file, "the outbox holds messages that no row paid for"));
    }
    Ok(state)
}

/// Hands out every stored row in sequence.
pub(super) fn each_entry(
    connection: &Connection,
    file: &Path,
    mut each: impl FnMut(Entry) -> Result<(), Error>,
) -> Result<(), Error> {
    let sqlite = |error| Error::sqlite(file, error);
    let all = "SELECT sequence, salt, body, digest FROM rows ORDER BY sequence";
    let mut statement = connection.prepare(all).map_err(sqlite)?;
    for entry in statement.query_map([], Entry::read).map_err(sqlite)? {
        each(entry.map_err(sqlite)?)?;
    }
    Ok(())
}

/// Compares the outbox with what `row` paid for; says how many messages that are.
fn check_outbox(transaction: &Transaction<'_>, file: &Path, entry: &Entry, row: &Closed) -> Result<i64, Error> {
    let Outcome::Released { messages, .. } = &row.outcome else { return Ok(0) };
    let sqlite = |error| Error::sqlite(file, error);
    let stored = "SELECT key, headers, bytes, published_at FROM outbox WHERE sequence = ?1 AND place = ?2";
    let mut stored = transaction.prepare(stored).map_err(sqlite)?;
    let mut count = 0;
    for message in messages {
        let is_whole = stored
            .query_row(params![entry.sequence().map_err(sqlite)?, count], |row| {
                let (key, headers, bytes): (String, String, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let published_at: Option<i64> = row.get(3)?;
                Ok(is_message(message, &key, &headers, bytes.as_deref()) && (bytes.is_some() || published_at.is_some()))
            })
            .optional()
            .map_err(sqlite)?;
        if is_whole != Some(true) {
            let what = format!("row {}: its message {count} was changed or is missing", entry.head.sequence);
            return Err(Error::damaged(file, what));
        }
        count += 1;
    }
    Ok(count)
}

/// Whether the parts of a stored message are the ones that were paid for; bytes may be dropped already.
pub(super) fn is_message(message: &Message, key: &str, headers: &str, bytes: Option<&[u8]>) -> bool {
    message.key == key
        && message.headers == Digest::of(headers.as_bytes())
        && bytes.is_none_or(|bytes| message.bytes == Digest::of(bytes))
}

fn check_spent(transaction: &Transaction<'_>, file: &Path, account: &Account) -> Result<(), Error> {
    let sqlite = |error| Error::sqlite(file, error);
    let all = "SELECT block_start, block_end, epsilon FROM spent ORDER BY block_start, block_end";
    let mut statement = transaction.prepare(all).map_err(sqlite)?;
    let stored = statement.query_map([], |row| {
        let (start, end) = (Timestamp::from_micros(row.get(0)?), Timestamp::from_micros(row.get(1)?));
        Ok((Span { start, end }, row.get::<_, String>(2)?))
    });
    let stored: Vec<_> = stored.map_err(sqlite)?.collect::<Result<_, _>>().map_err(sqlite)?;
    let expected = account.spent.iter().map(|(block, spent): (&Span, &Price)| (*block, spent.to_string()));
    if stored.into_iter().eq(expected) {
        return Ok(());
    }
    Err(Error::damaged(file, "the table of what was spent is not what the rows add up to"))
}
