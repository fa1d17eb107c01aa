//! Questions of a worker that follows another one to the log.

use super::body::RowBody;
use super::error::LedgerLogError;
use super::upkeep::LedgerLog;
use crate::chain::Head;
use crate::outgoing::OutputMessage;
use bernstream_synopsis::clock::Timestamp;

/// Reason why the rows of a log cannot be appended to a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotAppend {
    /// It has a row that was not accepted.
    Lost,
    /// The log does not have all the next rows any more, or not all of what they left.
    Gone,
}

/// Outcome of appending rows of a log to a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The ledger has all of them.
    Appended,
    /// Only a new ledger can be built.
    Refused(CannotAppend),
}

/// The rows of a log that follow the newest one of a ledger.
pub(crate) enum NextRows<R> {
    /// They can be appended, in sequence.
    Rows(Vec<R>),
    Refused(CannotAppend),
}

impl LedgerLog {
    /// Keeps the bodies of rows after number `own` when they are read from now on.
    pub(crate) fn follow(&mut self, own: u64) {
        self.remote_rows.follow(own);
    }

    /// The first rows after `head`, that of the ledger, of those up to `accepted`, that of the witness, by what was read: all of them, unless they
    /// are too large to be kept at once. Or why only a new ledger can be built.
    ///
    /// # Errors
    ///
    /// [`LedgerLogError::Absent`] while one is not there, or if the log cannot be read.
    pub(crate) fn take_rows_between(
        &mut self,
        head: Head,
        accepted: Head,
    ) -> Result<NextRows<RowBody>, LedgerLogError> {
        let rows = match self.rows_between(head, accepted)? {
            NextRows::Rows(rows) => rows,
            NextRows::Refused(why) => return Ok(NextRows::Refused(why)),
        };
        if !rows.iter().all(|row| self.remote_rows.has_row(row)) {
            // They were read before anybody asked for them, or were too many.
            self.read_all(|_| {})?;
        }
        let there: Vec<RowBody> = rows
            .iter()
            .map_while(|row| self.remote_rows.take_row(row))
            .collect();
        Ok(if there.is_empty() {
            NextRows::Refused(CannotAppend::Gone)
        } else {
            NextRows::Rows(there)
        })
    }

    /// The rows after `head` up to `accepted`, in sequence, by what was read; or why they cannot be appended to it.
    ///
    /// # Errors
    ///
    /// As for [`take_rows_between`](Self::take_rows_between).
    pub(crate) fn rows_between(
        &self,
        head: Head,
        accepted: Head,
    ) -> Result<NextRows<Head>, LedgerLogError> {
        let mut rows = Vec::new();
        let mut next = accepted;
        while next.sequence > head.sequence {
            let known = self
                .contents()
                .row(&next.digest)
                .filter(|known| known.sequence == next.sequence);
            let Some(known) = known else {
                let Head { sequence, digest } = next;
                return match self.contents().chain_to(accepted) {
                    Ok(_) => Ok(NextRows::Refused(CannotAppend::Gone)),
                    Err(_) if self.contents().is_closed(&digest) => Err(LedgerLogError::OtherKey {
                        name: self.name(),
                        sequence,
                    }),
                    Err(_) => Err(LedgerLogError::Absent {
                        name: self.name(),
                        sequence,
                        digest,
                    }),
                };
            };
            rows.push(next);
            let Some(previous) = known.previous else {
                return Ok(NextRows::Refused(CannotAppend::Lost));
            };
            next = Head {
                sequence: next.sequence - 1,
                digest: previous,
            };
        }
        rows.reverse();
        Ok(if next == head {
            NextRows::Rows(rows)
        } else {
            NextRows::Refused(CannotAppend::Lost)
        })
    }

    /// The rows that are marked as published, by what was read.
    pub(crate) fn marked_rows(&self) -> Vec<Head> {
        self.contents().marked_from(0).collect()
    }

    /// Reads everything again, and keeps the bodies of the rows after number `sequence`.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub(crate) fn keep_after(&mut self, sequence: u64) -> Result<(), LedgerLogError> {
        self.remote_rows.follow(sequence);
        self.read_all(|_| {})
    }

    /// The row that has paid for a message on the output, of those that are kept.
    pub(crate) fn row_of(&self, message: &OutputMessage) -> Option<Head> {
        self.remote_rows.row_that_paid(message)
    }

    /// Returns true if `row` is the row `newest` or one before it, by what was read.
    pub(crate) fn is_before(&self, row: Head, newest: Head) -> bool {
        matches!(self.rows_between(row, newest), Ok(NextRows::Rows(_)))
    }

    /// Returns true if another row is in the place of `row` among those up to `newest`, by what was read; not if their ledger begins after it.
    pub(crate) fn is_overruled(&self, row: Head, newest: Head) -> bool {
        let mut next = newest;
        while next.sequence > row.sequence {
            let known = self
                .contents()
                .row(&next.digest)
                .filter(|known| known.sequence == next.sequence);
            let Some(previous) = known.and_then(|known| known.previous) else {
                return false;
            };
            next = Head {
                sequence: next.sequence - 1,
                digest: previous,
            };
        }
        next != row && !self.is_before(newest, row)
    }

    /// The last row of the longest chain after `head` of which every row is there; of several the one with the smallest digest, so that all
    /// who read this choose the same.
    pub(crate) fn continuation(&self, head: Head) -> Option<Head> {
        let mut later = self.contents().later_than(head.sequence);
        later.sort_by_key(|row| (std::cmp::Reverse(row.sequence), row.digest));
        later.into_iter().find(|row| self.is_before(head, *row))
    }

    /// Time at which the maker of the claim on `accepted` has handed over, by what was read.
    pub(crate) fn handed_over(&self, accepted: &Head) -> Option<Timestamp> {
        self.contents().handed_over(accepted)
    }

    /// The newest row that `is_row` knows, from number `first` on, up to which everything was published, by what was read.
    pub(crate) fn newest_published(
        &self,
        first: u64,
        mut is_row: impl FnMut(&Head) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<Option<u64>> {
        for head in self.contents().marked_from(first) {
            if is_row(&head)? {
                return Ok(Some(head.sequence));
            }
        }
        Ok(None)
    }
}
