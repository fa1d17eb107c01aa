//! The checkpoints of a log: which are of use to this ledger, the next one, and what is deleted before them.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::body::seal_checkpoint;
use super::contents::LoggedCheckpoint;
use super::error::LedgerLogError;
use super::pieces::split_body;
use super::snapshot::Snapshot;
use super::upkeep::LedgerLog;

use crate::chain::Head;
use crate::store;

impl LedgerLog {
    /// Looks for the checkpoints that are those of this ledger, and of use where its rows up to number `newest` are accepted.
    pub(super) fn choose_base(
        &mut self,
        connection: &Connection,
        file: &Path,
        newest: u64,
    ) -> Result<(), crate::LedgerError> {
        let mut usable: BTreeMap<u64, LoggedCheckpoint> = BTreeMap::new();
        // What comes before the base was not looked at, or is deleted already.
        let least = self.base.map_or(0, |base| base.row.sequence);
        for point in self.contents.points() {
            if point.row.sequence < least || point.from.sequence > newest {
                continue;
            }
            if is_row(connection, file, &point.row)? && is_row(connection, file, &point.from)? {
                usable.entry(point.row.sequence).or_insert(*point);
            }
        }
        let mut newest = usable.into_values().rev();
        let newer = newest.next();
        let older = newest.next();
        // Two of one row would not be two: where the row before is lost, there is none behind them.
        let base = older.or(newer);
        self.newer = newer.filter(|_| older.is_some());
        if base.map(|base| base.row) != self.base.map(|base| base.row) {
            self.settled = match (self.settled, base) {
                (Some(settled), Some(base)) if settled.sequence > base.row.sequence => {
                    Some(settled)
                }
                _ => base.map(|base| base.row),
            };
        }
        self.base = base;
        if let Some(base) = base {
            self.contents.forget_points_before(base.row.sequence);
            self.held = self.held.split_off(&base.row.sequence.saturating_add(1));
        }
        Ok(())
    }

    /// Appends the newest checkpoint that the ledger can give, if it is not there.
    pub(super) fn add_checkpoint(
        &mut self,
        connection: &Connection,
        file: &Path,
        head: Head,
    ) -> Result<(), crate::LedgerError> {
        let newest = self.newer.or(self.base);
        if !is_older(connection, file, newest)? {
            return Ok(());
        }
        let Some(snapshot) = Snapshot::newest_of(connection, file, head)? else {
            return Ok(());
        };
        if newest.is_some_and(|newest| newest.row.sequence >= snapshot.row.head.sequence) {
            return Ok(());
        }
        let whole = seal_checkpoint(&self.key, &snapshot).ok_or(crate::LedgerError::Randomness)?;
        self.topic
            .append(&split_body(&whole, self.topic.largest()))?;
        self.read()?;
        self.choose_base(connection, file, head.sequence)
    }

    /// Deletes what no ledger is built from any more: what is before the older one of two checkpoints and all rows after it. `accepted`
    /// is the head of `witness`, a row of the ledger.
    ///
    /// # Errors
    ///
    /// If the log cannot be reached. What it refuses to delete stays, which does no harm; [`take_refusal`](Self::take_refusal) says so.
    pub(crate) fn trim_log(&mut self, accepted: Head, witness: &str) -> Result<(), LedgerLogError> {
        let (Some(older), Some(newer), Some(settled)) = (self.base, self.newer, self.settled)
        else {
            return Ok(());
        };
        if self.trimmed == Some(older.row)
            || settled.sequence < accepted.sequence
            || older.from.sequence > accepted.sequence
            || newer.from.sequence > accepted.sequence
        {
            return Ok(());
        }
        if self.contents.is_shared(witness) {
            self.refusal = Some(LedgerLogError::Shared { name: self.name() });
            self.trimmed = Some(older.row);
            return Ok(());
        }
        // The rows of other workers after it too: one that was read may be accepted, though this worker does not know it yet.
        let mut first = older.first;
        for &held in self.held.values() {
            first = first.min(held);
        }
        if let Some(unknown) = self.contents.first_offset() {
            first = first.min(unknown);
        }
        match self.topic.delete_before(first) {
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => self.refusal = Some(error),
            Ok(()) => {}
        }
        self.trimmed = Some(older.row);
        Ok(())
    }

    /// Reason why it did not delete what nobody needs any more, once.
    pub(crate) fn take_refusal(&mut self) -> Option<LedgerLogError> {
        self.refusal.take()
    }

    /// The row up to which a checkpoint takes the place of the rows.
    pub fn base_row(&self) -> Option<u64> {
        self.base.map(|base| base.row.sequence)
    }
}

/// Returns true if the ledger has this row.
fn is_row(connection: &Connection, file: &Path, head: &Head) -> Result<bool, crate::LedgerError> {
    let Ok(sequence) = i64::try_from(head.sequence) else {
        return Ok(false);
    };
    let found = store::digest_at(connection, sequence).map_err(crate::LedgerError::sqlite(file))?;
    Ok(found == Some(head.digest))
}

/// Returns true if the ledger may have a newer checkpoint than this.
fn is_older(
    connection: &Connection,
    file: &Path,
    point: Option<LoggedCheckpoint>,
) -> Result<bool, crate::LedgerError> {
    let newest = "SELECT max(sequence) FROM checkpoints";
    let newest: Option<i64> = connection
        .query_row(newest, [], |row| row.get(0))
        .map_err(crate::LedgerError::sqlite(file))?;
    let known = point.and_then(|point| i64::try_from(point.row.sequence).ok());
    Ok(newest.is_some() && known < newest)
}
