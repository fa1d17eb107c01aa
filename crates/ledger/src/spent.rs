//! The table of what each block has spent.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::error::Error;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// What the blocks that end later than a time have spent. Without `INDEXED BY` `SQLite` prefers the primary key, and reads the
/// whole table.
pub(super) const LIVE: &str =
    "SELECT block_start, block_end, price FROM spent INDEXED BY live WHERE block_end > ?1";

/// Compares what is stored with what the rows add up to, block by block.
pub(super) fn same_as_spent(
    file: &Path,
    mut stored: Vec<(Span, String)>,
    expected: impl Iterator<Item = (Span, String)>,
) -> Result<(), Error> {
    stored.sort_unstable();
    if stored.into_iter().eq(expected) {
        return Ok(());
    }
    Err(Error::damaged(
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
) -> rusqlite::Result<Vec<(Span, String)>> {
    let mut statement = connection.prepare(query)?;
    let stored = statement.query_map(rusqlite::params_from_iter(parameters), |row| {
        let start = Timestamp::from_micros(row.get(0)?);
        let end = Timestamp::from_micros(row.get(1)?);
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
        set.execute(params![
            block.start.micros(),
            block.end.micros(),
            price_as_json(price)
        ])
        .map(drop)
    })
}

pub(super) fn price_as_json(price: Price) -> String {
    serde_json::json!(price).to_string()
}
