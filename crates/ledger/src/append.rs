//! Appending a row: a window that is paid for or withheld, or a change of the settings.

use rusqlite::{Transaction, TransactionBehavior, params};

use super::chain::{Closed, Configuration, Message, Outcome, Row, headers_as_json};
use super::checkpoint::Checkpoint;
use super::entry::Entry;
use super::error::Error;
use super::open::Ledger;
use super::spent::set_spent;
use super::states::{Fresh, delete_state};
use crate::outbox;
use crate::store;
use bernstream_release::Sealed;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// A window to be paid for.
#[derive(Clone, Debug)]
pub struct Closing {
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
    /// # fn unsealed(found: bernstream_synopsis::Encoded, closing: &mut bernstream_ledger::Closing) {
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
    /// [`Error::Refused`] if it does not: a fault of the caller, and nothing has changed; nor has it after [`Error::Locked`] and
    /// [`Error::Randomness`]. After any other error the ledger accepts no more writes.
    pub fn pay(&mut self, closing: Closing) -> Result<(), Error> {
        let Closing {
            window,
            publish_at,
            charges,
            ends,
            sealed,
            states,
        } = closing;
        let messages = sealed
            .iter()
            .map(Sealed::encoded)
            .map(Message::of)
            .collect();
        let fresh = states
            .into_iter()
            .map(|(slot, bytes)| Fresh::new(&slot, bytes))
            .collect::<Result<Vec<_>, _>>()?;
        let states = fresh.iter().map(|fresh| fresh.state.clone()).collect();
        let outcome = Outcome::Released {
            publish_at,
            charges,
            messages,
            states,
        };
        self.append(
            &Row::Window(Closed {
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
    /// As for [`pay`](Self::pay).
    pub fn withhold(&mut self, window: Span, ends: Positions) -> Result<(), Error> {
        self.append(
            &Row::Window(Closed {
                window,
                ends,
                outcome: Outcome::Withheld,
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
    /// As for [`pay`](Self::pay).
    pub fn reconfigure(&mut self, configuration: Configuration) -> Result<(), Error> {
        self.append(&Row::Configuration(configuration), &[], &[])
    }

    /// Records that no block that ends after `until` is ever charged, whatever the settings are.
    ///
    /// # Errors
    ///
    /// As for [`pay`](Self::pay); [`Error::Refused`] if such a block was charged already.
    pub fn end_share(&mut self, until: Timestamp) -> Result<(), Error> {
        let account = &self.state.account;
        let settings = account.settings.clone();
        let first = account.next_window;
        let reach = account.reach();
        self.reconfigure(Configuration {
            settings,
            first,
            reach,
            ended: Vec::new(),
            until: Some(until),
        })
    }

    fn append(&mut self, row: &Row, sealed: &[Sealed], states: &[Fresh]) -> Result<(), Error> {
        let mut account = self.state.account.clone();
        let spent = account
            .take(self.next_sequence(), row)
            .map_err(|why| Error::Refused { why })?;
        let is_due = Checkpoint::is_due(self.next_sequence());
        let digest = is_due.then(|| account.digest(self.state.origin)).flatten();
        let entry = Entry::new(Some(self.state.link()), self.next_sequence(), row, digest)?;
        let checkpoint = is_due.then(|| self.state.checkpoint(&account, entry.head));
        let keep_published = self.keep_published;
        self.write(|transaction| {
            entry.insert(transaction)?;
            set_spent(transaction, spent.iter().copied())?;
            states
                .iter()
                .try_for_each(|state| state.write(transaction, entry.sequence()?))?;
            if let Row::Configuration(Configuration { ended, .. }) = row {
                ended
                    .iter()
                    .try_for_each(|slot| delete_state(transaction, slot))?;
            }
            let mut insert =
                transaction.prepare("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, NULL)")?;
            for (place, message) in (0_u32..).zip(sealed.iter().map(Sealed::encoded)) {
                let headers = headers_as_json(&message.headers);
                insert.execute(params![
                    entry.sequence()?,
                    place,
                    message.key,
                    headers,
                    message.bytes
                ])?;
            }
            if let Row::Window(Closed {
                window,
                outcome: Outcome::Withheld,
                ..
            }) = row
            {
                // While nothing is published, nothing else drops what is too old to keep.
                outbox::drop_old(
                    transaction,
                    entry.sequence()?,
                    window.end.minus(keep_published),
                )?;
            }
            if let Some(checkpoint) = checkpoint {
                checkpoint.insert(transaction)?;
            }
            Ok(())
        })?;
        self.state.head = entry.head;
        self.state.form = entry.link().form;
        self.state.account = account;
        Ok(())
    }

    /// Runs `work` in one transaction, if the stored head is still ours.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] without the lock, [`Error::Replaced`] if the stored head differs. After any error of the database the ledger
    /// accepts no more writes.
    pub(super) fn write(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(Error::Locked {
                path: self.file.clone(),
            });
        }
        self.check_usable()?;
        let head = self.state.head;
        let connection = &mut self.connection;
        let attempt = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if store::stored_head(&transaction)? != Some(head) {
                return Ok(false);
            }
            work(&transaction)?;
            transaction.commit().map(|()| true)
        };
        // What the error means is asked when the transaction is over: the file is then read again.
        let outcome = match attempt() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Replaced {
                path: self.file.clone(),
            }),
            Err(error) => Err(Error::sqlite(&self.file, error)),
        };
        self.is_broken = outcome.is_err();
        outcome
    }
}
