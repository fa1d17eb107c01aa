//! The table of what each block has spent.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::error::LedgerError;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Query of the blocks that end later than a time. Without `INDEXED BY` `SQLite` prefers the primary key, and reads the
/// whole table.
pub(super) const LIVE: &str =
    "SELECT block_start, block_end, price FROM spent INDEXED BY live WHERE block_end > ?1";

/// A block, and all that it has spent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpentBlock {
    pub block: Span,
    pub spent: Price,
}

/// A row of the table: a block, and all that it has spent, in JSON.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredBlock {
    pub block: Span,
    pub spent: String,
}

/// Compares the stored blocks with those that the rows add up to.
///
/// # Errors
///
/// [`LedgerError::Damaged`] if they differ.
pub(super) fn same_as_spent(
    file: &Path,
    mut stored: Vec<StoredBlock>,
    expected: &BTreeMap<Span, Price>,
) -> Result<(), LedgerError> {
    stored.sort_unstable();
    let expected = expected.iter().map(|(block, spent)| StoredBlock {
        block: *block,
        spent: price_as_json(*spent),
    });
    if stored.into_iter().eq(expected) {
        return Ok(());
    }
    Err(LedgerError::damaged(
        file,
        "the table of what was spent is not what the rows add up to",
    ))
}

/// Reads the columns start, end and price.
///
/// # Errors
///
/// If the ledger cannot be read.
pub(super) fn read_spent(
    connection: &Connection,
    query: &str,
    parameters: &[i64],
) -> rusqlite::Result<Vec<StoredBlock>> {
    let mut statement = connection.prepare(query)?;
    let stored = statement.query_map(rusqlite::params_from_iter(parameters), |row| {
        let start = Timestamp::from_micros(row.get(0)?);
        let end = Timestamp::from_micros(row.get(1)?);
        Ok(StoredBlock {
            block: Span { start, end },
            spent: row.get(2)?,
        })
    });
    stored?.collect()
}

/// Stores the blocks with all that they have spent by now.
pub(super) fn set_spent(
    transaction: &Transaction<'_>,
    blocks: &[SpentBlock],
) -> rusqlite::Result<()> {
    let set = "INSERT INTO spent VALUES (?1, ?2, ?3) ON CONFLICT (block_start, block_end) DO UPDATE SET price = ?3";
    let mut set = transaction.prepare(set)?;
    for SpentBlock { block, spent } in blocks {
        let price = price_as_json(*spent);
        set.execute(params![block.start.micros(), block.end.micros(), price])?;
    }
    Ok(())
}

fn price_as_json(price: Price) -> String {
    serde_json::json!(price).to_string()
}
