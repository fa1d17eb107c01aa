//! Contents of an open ledger: its rows, its newest blocks and windows, and the states of its noise.

use std::time::Duration;

use super::chain::{ClosedWindow, Head, LedgerRow};
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::open::Ledger;
use super::spent::{StoredBlock, read_spent};
use super::store::COLUMNS;
use crate::{pages, states};
use bernstream_synopsis::RecordedPositions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// A row with everything that its digest was made of. Secret: the end offsets of a window are exact counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    pub head: Head,
    pub row: LedgerRow,
    entry: LedgerEntry,
}

impl StoredRow {
    /// A line of JSON with everything that its digest was made of.
    pub fn secret_line(&self) -> String {
        self.entry.secret_line()
    }

    /// A line of JSON with all that anyone may see: without how far the input was read for a window, and without the salt with which that
    /// could be guessed from the digest. Unless an older program wrote the row, its digest can be computed from the line.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn public_line(&self) -> Result<String, serde_json::Error> {
        self.entry.public_line()
    }

    /// Returns true if its digest can be computed from its public line.
    pub fn is_checkable(&self) -> bool {
        self.entry.is_checkable()
    }
}

/// Time before the first record that is needed, by which a window must have closed for none of its records to be needed any more.
const MARGIN_AFTER_CLOSE: Duration = Duration::from_secs(300);
/// Most windows among which one is looked for at a start.
const MOST_WINDOWS: usize = 4096;

impl Ledger {
    /// The newest charged blocks, at most `most`, newest first, and what they have spent.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read or is damaged.
    pub fn newest_blocks(&self, most: usize) -> Result<Vec<(Span, Price)>, LedgerError> {
        let newest = "SELECT block_start, block_end, price FROM spent ORDER BY block_start DESC, block_end DESC LIMIT ?1";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let stored = read_spent(&self.connection, newest, &[most])
            .map_err(LedgerError::sqlite(&self.file))?;
        let mut blocks = Vec::with_capacity(stored.len());
        for StoredBlock { block, spent } in stored {
            let spent = serde_json::from_str(&spent)
                .map_err(|error| LedgerError::damaged(&self.file, error.to_string()))?;
            blocks.push((block, spent));
        }
        Ok(blocks)
    }

    /// Passes every row up to the head to `each`, in sequence. No transaction is open while `each` works.
    ///
    /// # Errors
    ///
    /// The first error of `each`, or if the ledger cannot be read or is damaged.
    pub fn each_row<E: From<LedgerError>>(
        &self,
        mut each: impl FnMut(StoredRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let last = i64::try_from(self.state.head.sequence).unwrap_or(i64::MAX);
        pages::each_entry(&self.connection, &self.file, i64::MIN, last, |entry| {
            let row = entry
                .row()
                .map_err(|e| LedgerError::damaged(&self.file, e.to_string()))?;
            each(StoredRow {
                head: entry.head,
                row,
                entry,
            })
        })
    }

    /// Number of its rows.
    pub fn row_count(&self) -> u64 {
        let first = self.state.genesis.first_sequence();
        let missing = self.missing().map_or(0, |missing| {
            missing.last.abs_diff(missing.first).saturating_add(1)
        });
        self.state
            .head
            .sequence
            .saturating_sub(first)
            .saturating_add(1)
            .saturating_sub(missing)
    }

    /// Every row, in sequence.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read or is damaged.
    pub fn rows(&self) -> Result<Vec<StoredRow>, LedgerError> {
        let mut rows = Vec::new();
        self.each_row(|row| {
            rows.push(row);
            Ok::<(), LedgerError>(())
        })?;
        Ok(rows)
    }

    /// Closed windows and the numbers of their rows, newest first, up to and including the first for which `more` is false.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read or is damaged.
    pub fn newest_windows(
        &self,
        mut more: impl FnMut(&ClosedWindow) -> bool,
    ) -> Result<Vec<(u64, ClosedWindow)>, LedgerError> {
        let mut newest = Vec::new();
        self.each_row_back(|sequence, row| {
            let LedgerRow::Window(closed) = row else {
                return matches!(row, LedgerRow::Configuration(_));
            };
            let has_more = more(&closed);
            newest.push((sequence, closed));
            has_more
        })?;
        Ok(newest)
    }

    /// Passes rows and their numbers to `each`, newest first, for as long as it wants more.
    fn each_row_back(
        &self,
        mut each: impl FnMut(u64, LedgerRow) -> bool,
    ) -> Result<(), LedgerError> {
        let all = format!("SELECT {COLUMNS} FROM rows ORDER BY sequence DESC");
        let mut statement = self
            .connection
            .prepare(&all)
            .map_err(LedgerError::sqlite(&self.file))?;
        for entry in statement
            .query_map([], LedgerEntry::read)
            .map_err(LedgerError::sqlite(&self.file))?
        {
            let entry = entry.map_err(LedgerError::sqlite(&self.file))?;
            let row = entry
                .row()
                .map_err(|e| LedgerError::damaged(&self.file, e.to_string()))?;
            if !each(entry.head.sequence, row) {
                break;
            }
        }
        Ok(())
    }

    /// Positions up to which the input was read, where the records that are needed now were sent at `since` or later, and a window closes
    /// at its `cutoff`.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read or is damaged.
    pub fn recorded_positions(
        &self,
        since: Timestamp,
        cutoff: impl Fn(Span) -> Timestamp,
    ) -> Result<RecordedPositions, LedgerError> {
        let mut windows = 0;
        let mut past = None;
        // Settings that are recorded later have no row yet at which to stop.
        if self
            .leadership
            .as_ref()
            .is_some_and(|leadership| leadership.is_postponed)
        {
            return Ok(RecordedPositions {
                ends: self.ends().clone(),
                past,
            });
        }
        self.each_row_back(|_, row| {
            // Under other settings windows may have closed later.
            let LedgerRow::Window(closed) = row else {
                return false;
            };
            let cutoff = cutoff(closed.window);
            past = (cutoff.plus(MARGIN_AFTER_CLOSE) <= since).then_some((cutoff, closed.ends));
            windows += 1;
            past.is_none() && windows < MOST_WINDOWS
        })?;
        Ok(RecordedPositions {
            ends: self.ends().clone(),
            past,
        })
    }

    /// The slots that have a state of noise.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        self.state.account.states.keys().map(String::as_str)
    }

    /// The newest state of `slot`; `None` if no row has written one.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] if it is missing, or not the one that the newest row with a state of this slot wrote.
    pub fn noise_state(&self, slot: &str) -> Result<Option<Vec<u8>>, LedgerError> {
        self.check_usable()?;
        states::read_state(&self.connection, &self.file, &self.state.account, slot)
    }
}
