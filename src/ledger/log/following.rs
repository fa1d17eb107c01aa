//! What a worker that follows another one asks of the log.

use super::body::Body;
use super::error::Error;
use super::upkeep::LedgerLog;
use crate::clock::Timestamp;
use crate::ledger::chain::Head;

impl LedgerLog {
    /// From now on what rows after number `own` say is kept when they are read.
    pub(in crate::ledger) fn follow(&mut self, own: u64) {
        self.foreign.follow(own);
    }

    /// The rows after `head`, that of the ledger, up to `accepted`, that of the witness, of what was read; `None` if only a new ledger can be
    /// built, because `accepted` does not follow `head`, or the log does not have all of them any more.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] while one is not there, or if the log cannot be read.
    pub(in crate::ledger) fn between(&mut self, head: Head, accepted: Head) -> Result<Option<Vec<Body>>, Error> {
        let Some(rows) = self.path(head, accepted)? else { return Ok(None) };
        if !rows.iter().all(|row| self.foreign.has(row)) {
            // They were read before anybody asked for them, or were too many.
            self.read_all(|_| {})?;
        }
        if !rows.iter().all(|row| self.foreign.has(row)) {
            return Ok(None);
        }
        let body = |row: &Head| self.foreign.bodies.remove(&(row.sequence, row.digest)).map(|body| *body);
        Ok(Some(rows.iter().filter_map(body).collect()))
    }

    /// The rows after `head` up to `accepted`, in sequence.
    fn path(&self, head: Head, accepted: Head) -> Result<Option<Vec<Head>>, Error> {
        let (mut rows, mut next) = (Vec::new(), accepted);
        while next.sequence > head.sequence {
            let known = self.contents().row(&next.digest).filter(|known| known.sequence == next.sequence);
            let Some(known) = known else {
                let Head { sequence, digest } = next;
                return match self.contents().chain(accepted) {
                    Ok(_) => Ok(None),
                    Err(_) if self.contents().is_closed(&digest) => {
                        Err(Error::OtherKey { name: self.name(), sequence })
                    }
                    Err(_) => Err(Error::Absent { name: self.name(), sequence, digest }),
                };
            };
            rows.push(next);
            let Some(previous) = known.previous else { return Ok(None) };
            next = Head { sequence: next.sequence - 1, digest: previous };
        }
        rows.reverse();
        Ok((next == head).then_some(rows))
    }

    /// When the maker of the claim on `accepted` has handed over, by what was read.
    pub(in crate::ledger) fn handed_over(&self, accepted: &Head) -> Option<Timestamp> {
        self.contents().handed_over(accepted)
    }

    /// The newest row that `is_row` knows, from number `first` on, up to which everything was published, by what was read.
    pub(in crate::ledger) fn published(
        &self,
        first: u64,
        is_row: impl FnMut(&Head) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<Option<u64>> {
        let mut is_row = is_row;
        for head in self.contents().marked_from(first) {
            if is_row(&head)? {
                return Ok(Some(head.sequence));
            }
        }
        Ok(None)
    }
}
