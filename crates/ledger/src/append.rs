//! Appending a row: a window that is paid for or withheld, or a change of the settings.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::chain::{
    ClosedWindow, Configuration, Head, LedgerRow, MessageDigests, ReleaseOutcome, headers_as_json,
};
use super::checkpoint::Checkpoint;
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::open::Ledger;
use super::spent::set_spent;
use super::states::{FreshState, delete_state};
use crate::outbox;
use crate::store;
use bernstream_release::Sealed;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// A window to be paid for.
#[derive(Clone, Debug)]
pub struct ClosingWindow {
    pub window: Span,
    pub publish_at: Timestamp,
    /// The price for each block that the window overlaps, in order and without gaps. The blocks cover the window and may begin
    /// before it.
    pub charges: Vec<(Span, Price)>,
    /// The end of its records in the input.
    pub ends: Positions,
    /// One message for each release and key: what was read from somewhere, or made by hand, is no such message.
    ///
    /// ```compile_fail,E0308
    /// # fn unsealed(found: bernstream_synopsis::Encoded, closing: &mut bernstream_ledger::ClosingWindow) {
    /// closing.sealed = vec![found];
    /// # }
    /// ```
    pub sealed: Vec<Sealed>,
    /// The states of noise that later windows continue, by slot. They are secret. Slots that are not named keep their state.
    pub states: Vec<(String, Vec<u8>)>,
}

impl Ledger {
    /// Pays for a window, durably and atomically: charges, end offsets and the bytes of all keys.
    ///
    /// The accountant quotes before any noise is drawn, and withholds a window that the budget does not cover. Here it is
    /// checked again that the price fits, covers the window and closes it for the first time.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Refused`] if it does not: a fault of the caller, and nothing has changed; nor has it after [`LedgerError::Locked`] and
    /// [`LedgerError::Randomness`]. After any other error the ledger accepts no more writes.
    pub fn pay_window(&mut self, closing: ClosingWindow) -> Result<(), LedgerError> {
        let ClosingWindow {
            window,
            publish_at,
            charges,
            ends,
            sealed,
            states,
        } = closing;
        let messages = sealed
            .iter()
            .map(|sealed| MessageDigests::from_encoded(sealed.encoded()))
            .collect();
        let mut fresh = Vec::with_capacity(states.len());
        for (slot, bytes) in states {
            fresh.push(FreshState::new(&slot, bytes)?);
        }
        let states = fresh.iter().map(|fresh| fresh.state.clone()).collect();
        let outcome = ReleaseOutcome::Released {
            publish_at,
            charges,
            messages,
            states,
        };
        self.append_row(
            &LedgerRow::Window(ClosedWindow {
                window,
                ends,
                outcome,
            }),
            &sealed,
            &fresh,
        )
    }

    /// Closes a window that the budget does not cover: no charge, no message, and the noise keeps its state.
    ///
    /// # Errors
    ///
    /// As for [`pay_window`](Self::pay_window).
    pub fn withhold_window(&mut self, window: Span, ends: Positions) -> Result<(), LedgerError> {
        self.append_row(
            &LedgerRow::Window(ClosedWindow {
                window,
                ends,
                outcome: ReleaseOutcome::Withheld,
            }),
            &[],
            &[],
        )
    }

    /// Records settings that hold from a window on, which becomes the next one. What was spent stays spent.
    ///
    /// The caller decides which changes are allowed; here it is checked that no closed window is reopened.
    ///
    /// # Errors
    ///
    /// As for [`pay_window`](Self::pay_window).
    pub fn record_settings(&mut self, configuration: Configuration) -> Result<(), LedgerError> {
        self.append_row(&LedgerRow::Configuration(configuration), &[], &[])
    }

    /// Records that no block that ends after `until` is ever charged, whatever the settings are.
    ///
    /// # Errors
    ///
    /// As for [`pay_window`](Self::pay_window); [`LedgerError::Refused`] if such a block was charged already.
    pub fn end_share(&mut self, until: Timestamp) -> Result<(), LedgerError> {
        let account = &self.state.account;
        let settings = account.settings.clone();
        let first = account.next_window;
        let reach = account.reach();
        self.record_settings(Configuration {
            settings,
            first,
            reach,
            ended: Vec::new(),
            until: Some(until),
        })
    }

    /// Appends `row` as the next one, with the messages that it pays for and the states of noise that it leaves, in one transaction.
    fn append_row(
        &mut self,
        row: &LedgerRow,
        sealed: &[Sealed],
        states: &[FreshState],
    ) -> Result<(), LedgerError> {
        let sequence = self.next_sequence();
        let mut account = self.state.account.clone();
        let spent = account
            .apply_row(sequence, row)
            .map_err(|why| LedgerError::Refused { why })?;
        let is_due = Checkpoint::is_due(sequence);
        let digest = if is_due {
            account.digest_after(self.state.origin)
        } else {
            None
        };
        let entry = LedgerEntry::new(Some(self.state.link()), sequence, row, digest)?;
        let checkpoint = is_due.then(|| self.state.checkpoint(&account, entry.head));
        let keep_published = self.keep_published;
        self.write_transaction(|transaction| {
            let sequence = entry.sequence()?;
            entry.insert(transaction)?;
            set_spent(transaction, &spent)?;
            for state in states {
                state.write_state(transaction, sequence)?;
            }
            if let LedgerRow::Configuration(Configuration { ended, .. }) = row {
                for slot in ended {
                    delete_state(transaction, slot)?;
                }
            }
            insert_messages(transaction, sequence, sealed)?;
            if let LedgerRow::Window(ClosedWindow {
                window,
                outcome: ReleaseOutcome::Withheld,
                ..
            }) = row
            {
                // While nothing is published, nothing else drops what is too old to keep.
                outbox::drop_old(transaction, sequence, window.end.minus(keep_published))?;
            }
            if let Some(checkpoint) = checkpoint {
                checkpoint.insert(transaction)?;
            }
            Ok(())
        })?;
        self.state.head = entry.head;
        self.state.form = entry.link_after().form;
        self.state.account = account;
        Ok(())
    }

    /// Runs `work` in one transaction, if the stored head is still ours.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Locked`] without the lock, [`LedgerError::Replaced`] if the stored head differs. After any error of the database the ledger
    /// accepts no more writes.
    pub(super) fn write_transaction(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), LedgerError> {
        if self.lock.is_none() {
            return Err(LedgerError::Locked {
                path: self.file.clone(),
            });
        }
        self.check_usable()?;
        let head = self.state.head;
        // The meaning of an error is asked when the transaction is over: the file is then read again.
        let outcome = match commit_if_newest(&mut self.connection, head, work) {
            Ok(true) => Ok(()),
            Ok(false) => Err(LedgerError::Replaced {
                path: self.file.clone(),
            }),
            Err(error) => Err(LedgerError::from_sqlite(&self.file, error)),
        };
        self.is_broken = outcome.is_err();
        outcome
    }
}

/// Commits `work`, unless the newest row is another one than `head`; returns true if it was committed.
fn commit_if_newest(
    connection: &mut Connection,
    head: Head,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if store::stored_head(&transaction)? != Some(head) {
        return Ok(false);
    }
    work(&transaction)?;
    transaction.commit()?;
    Ok(true)
}

/// Stores the messages that the row `sequence` pays for, to be published.
fn insert_messages(
    transaction: &Transaction<'_>,
    sequence: i64,
    sealed: &[Sealed],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, NULL)")?;
    for (place, message) in (0_u32..).zip(sealed) {
        let message = message.encoded();
        let headers = headers_as_json(&message.headers);
        insert.execute(params![
            sequence,
            place,
            message.key,
            headers,
            message.bytes
        ])?;
    }
    Ok(())
}
