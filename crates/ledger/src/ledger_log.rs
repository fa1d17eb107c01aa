//! Work of a ledger with its log, where it has one.

use super::chain::Head;
use super::error::LedgerError;
use super::log::LedgerLog;
use super::open::Ledger;
use crate::log;
use crate::outbox;
use crate::store;

impl Ledger {
    /// Attaches `log`: from now on a row is claimed only when it holds it.
    pub fn attach_log(&mut self, log: LedgerLog) {
        self.log = Some(log);
    }

    /// Returns once the log holds every row, or if there is none.
    ///
    /// # Errors
    ///
    /// If the log cannot be read or written, or takes long to be filled; or if the ledger cannot be read.
    pub fn fill_log(&mut self) -> Result<(), LedgerError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        if self.leadership.is_some() {
            log.follow(self.state.head.sequence);
        }
        log.hold_rows(&self.connection, &self.file, self.state.head)
    }

    /// Has the log read now and then where nothing is claimed: if it has lost records, this disk may be the only one that has them.
    ///
    /// # Errors
    ///
    /// As [`fill_log`](Self::fill_log).
    pub(super) fn watch_log(&mut self) -> Result<(), LedgerError> {
        if self.log.as_ref().is_some_and(LedgerLog::is_unwatched) {
            self.fill_log()
        } else {
            Ok(())
        }
    }

    /// Appends to `log` the rows of this ledger that it lacks, before the one that has the row `accepted` takes its place, unless that can
    /// be built of what is there: this disk may be the only one that still has them.
    ///
    /// # Errors
    ///
    /// As [`fill_log`](Self::fill_log).
    pub fn fill_other_log(&self, log: &mut LedgerLog, accepted: &Head) -> Result<(), LedgerError> {
        log.read()?;
        if log.can_build(accepted) {
            return Ok(());
        }
        let has_gap = self.state.gap.is_some();
        log.fill_with(&self.connection, &self.file, self.state.head, has_gap)
    }

    /// Tells the log up to which row everything was published, of those up to `accepted`, the head of the witness, which was recognised; and
    /// deletes from it what no ledger is built from any more.
    ///
    /// # Errors
    ///
    /// If the log cannot be written, which delays nothing and may be ignored; or if the ledger cannot be read.
    pub fn mark_in_log(&mut self, accepted: &Head) -> Result<(), LedgerError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let unpublished =
            outbox::first_unpublished(&self.connection).map_err(LedgerError::sqlite(&self.file))?;
        let newest = i64::try_from(accepted.sequence).unwrap_or(i64::MAX);
        let newest = unpublished.map_or(newest, |first| newest.min(first - 1));
        let published =
            store::head_at(&self.connection, newest).map_err(LedgerError::sqlite(&self.file))?;
        let Some(published) = published else {
            return Ok(());
        };
        log.mark_published(published)?;
        Ok(log.trim_log(*accepted, &self.state.genesis.witness)?)
    }

    /// Reason why the log did not delete the records from which no ledger is built any more, once after it has refused.
    pub fn log_refusal(&mut self) -> Option<String> {
        self.log
            .as_mut()
            .and_then(LedgerLog::take_refusal)
            .map(|refusal| refusal.to_string())
    }

    /// The first rows up to `accepted` that `log`, which was read, does not hold, and how many rows and bytes it has.
    ///
    /// # Errors
    ///
    /// If the log or the ledger cannot be read.
    pub fn compare_with_log(
        &self,
        log: &mut LedgerLog,
        accepted: Head,
    ) -> Result<(Vec<Head>, (usize, u64)), LedgerError> {
        log.read()?;
        let extent = log.extent();
        Ok((
            log.missing_rows(&self.connection, &self.file, accepted)?,
            extent,
        ))
    }
}

impl LedgerError {
    /// Returns true if a log is what cannot be used, for now.
    pub fn is_log_unavailable(&self) -> bool {
        matches!(self, LedgerError::Log(error) if log::LedgerLogError::is_transient(error))
    }
}
