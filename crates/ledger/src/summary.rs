//! A summary of a ledger, for whoever wants to know how it stands and will act on nothing.

use super::account::Account;
use super::error::LedgerError;
use super::open::{Ledger, LedgerParams};
use crate::replay;
use crate::store;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Summary of a ledger: the sum of its rows.
#[derive(Clone, Debug)]
pub struct LedgerSummary {
    /// The start of the first window of the ledger.
    pub first: Timestamp,
    /// Earliest time that a release can cover: records before it belong to other ledgers, or to settings that paid for no
    /// overlap.
    pub covered_from: Timestamp,
    /// Start of the next window.
    pub next_window: Timestamp,
    /// Total that every block may spend.
    pub total: Price,
    /// End of the share of an input's total that the ledger has, if it ends: no block that ends later is charged.
    pub share_ends: Option<Timestamp>,
    account: Account,
}

impl LedgerSummary {
    /// Reads a ledger, whoever holds its lock; only what says how it stands is verified.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Missing`], [`LedgerError::Older`] or [`LedgerError::Newer`], or if the ledger is damaged or cannot be read.
    pub fn read_from(params: &LedgerParams) -> Result<Self, LedgerError> {
        let connection = Ledger::connect_read_only(params)?;
        let file = store::file_in(&params.path);
        let state = replay::replay_rows(&connection, &file)?;
        Ok(LedgerSummary {
            first: state.genesis.first,
            covered_from: state.genesis.first.max(state.account.live_from),
            next_window: state.account.next_window,
            total: state.genesis.total,
            share_ends: state.account.until,
            account: state.account,
        })
    }

    /// Sum of the charges to `block` so far; the whole total if no row can charge it again.
    pub fn spent(&self, block: Span) -> Price {
        self.account.spent_by(block)
    }
}
