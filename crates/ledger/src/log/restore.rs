//! Building a ledger from its log: a new file with the rows up to the one that the witness has accepted, from the newest checkpoint on, or
//! from the first row.
//!
//! The rows are those of the chain that ends there; every one is verified as one that is appended, and the whole file again when it is
//! opened. It takes the place of an older one by a rename, and nothing is taken out of a file in place: until the rename the old file
//! is whole, and after it the new one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

use rusqlite::{Transaction, params};

use super::body::RowBody;
use super::contents::{Chain, ChainRow, CompletedBody};
use super::error::LedgerLogError;
use super::fields::RowNoise;
use super::foreign::{MessageFate, RemoteRows, write_row};
use super::snapshot::Snapshot;
use super::upkeep::LedgerLog;
use bernstream_synopsis::clock::Timestamp;

use crate::chain::{Digest, Head};
use crate::checkpoint::Checkpoint;
use crate::open;
use crate::open::LedgerParams;
use crate::replay::LedgerState;
use crate::states;
use crate::states::check_states;
use crate::store;

/// A ledger that can be built, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredLedger {
    pub rows: usize,
    /// The row of the checkpoint that it begins with after the first, if it does.
    pub checkpoint: Option<u64>,
    pub newest: u64,
    /// Number of rows that have messages that are not known to be published.
    pub unpublished: usize,
    /// Number of bytes that were read of the log.
    pub bytes: u64,
}

/// A ledger that is to be built.
struct RestorePlan {
    chain: Chain,
    /// The messages of rows up to this number were published, and are dropped.
    pruned: u64,
    /// The messages of rows up to this number were published.
    published: u64,
}

impl LedgerLog {
    /// The ledger that would be built now. Nothing is changed.
    ///
    /// # Errors
    ///
    /// As for [`restore_ledger`](Self::restore_ledger).
    pub fn restorable(
        &mut self,
        params: &LedgerParams,
        accepted: &Head,
        now: Timestamp,
    ) -> Result<RestoredLedger, LedgerLogError> {
        self.restorable_with_progress(params, accepted, now, &mut |_, _| {})
    }

    /// The ledger that [`restorable`](Self::restorable) finds; `progress` is called with how many records of the log are read, of how many.
    ///
    /// # Errors
    ///
    /// As for [`restore_ledger`](Self::restore_ledger).
    pub fn restorable_with_progress(
        &mut self,
        params: &LedgerParams,
        accepted: &Head,
        now: Timestamp,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<RestoredLedger, LedgerLogError> {
        self.remote_rows = RemoteRows::default();
        self.read_all_with_progress(|_| {}, progress)?;
        Ok(self.describe_plan(&self.plan_restore(params, accepted, now)?))
    }

    /// Builds the ledger with the rows up to `accepted`, the head of the witness, in the place of the one that is in the folder.
    /// Messages that are not marked as published are to be published; the others are kept as long as the ledger would have.
    ///
    /// # Errors
    ///
    /// [`LedgerLogError::Absent`] while a row is not there, [`crate::LedgerError::Locked`], or if the log contradicts itself or cannot be read, or the
    /// folder cannot be written. The ledger that is there is unchanged.
    pub fn restore_ledger(
        &mut self,
        params: &LedgerParams,
        accepted: &Head,
        now: Timestamp,
    ) -> Result<RestoredLedger, crate::LedgerError> {
        self.restore_with_progress(params, accepted, now, &mut |_, _| {})
    }

    /// Builds the ledger like [`restore_ledger`](Self::restore_ledger); `progress` is called with how many records of the log are done, of how many: each is read twice.
    ///
    /// # Errors
    ///
    /// As for [`restore_ledger`](Self::restore_ledger).
    pub fn restore_with_progress(
        &mut self,
        params: &LedgerParams,
        accepted: &Head,
        now: Timestamp,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<RestoredLedger, crate::LedgerError> {
        store::make_folder(&params.path)?;
        let _lock = store::lock_folder(&params.path)?;
        // What is read is for the new file.
        self.remote_rows = RemoteRows::default();
        self.read_all_with_progress(|_| {}, &mut |read, all| progress(read / 2, all))?;
        let plan = self.plan_restore(params, accepted, now)?;
        settle_old_file(params)?;
        let mut built = Ok(());
        let mut read = Ok(());
        let created = store::create_database(&params.path, |transaction| {
            transaction.execute(
                "INSERT INTO kept VALUES (?1)",
                [i64::try_from(plan.pruned).unwrap_or(i64::MAX)],
            )?;
            let mut builder = LedgerBuilder::new(transaction, params, &plan, now);
            read = self
                .read_all_with_progress(|whole| builder.take_body(whole), &mut |read, all| {
                    progress(all.saturating_add(read) / 2, all)
                });
            built = builder.check_complete(&self.name());
            // Otherwise nothing is committed.
            if built.is_ok() && read.is_ok() {
                Ok(())
            } else {
                Err(rusqlite::Error::ExecuteReturnedResults)
            }
        });
        read?;
        built?;
        created?;
        Ok(self.describe_plan(&plan))
    }

    fn describe_plan(&self, plan: &RestorePlan) -> RestoredLedger {
        let Chain { base, rows } = &plan.chain;
        let base = base.map(|base| base.row.sequence);
        let newest = rows.last().map(|row| row.head.sequence).or(base);
        // The first row, and that of the checkpoint.
        let before = if base.is_some() { 2 } else { 0 };
        let unpublished = rows
            .iter()
            .filter(|row| row.head.sequence > plan.published && row.known.due.is_some())
            .count();
        RestoredLedger {
            rows: rows.len() + before,
            checkpoint: base,
            newest: newest.unwrap_or(0),
            unpublished,
            bytes: self.contents().bytes,
        }
    }

    fn plan_restore(
        &self,
        params: &LedgerParams,
        accepted: &Head,
        now: Timestamp,
    ) -> Result<RestorePlan, LedgerLogError> {
        let contents = self.contents();
        let chain = match contents.chain_to(*accepted) {
            Ok(chain) => chain,
            Err(Head { sequence, digest }) if contents.is_closed(&digest) => {
                return Err(LedgerLogError::OtherKey {
                    name: self.name(),
                    sequence,
                });
            }
            Err(missing) => return Err(absent_row(&self.name(), missing)),
        };
        let Chain { base, rows } = &chain;
        // Up to its row everything was published when a checkpoint was written.
        let base = base.map(|base| base.row.sequence);
        let first = base
            .or(rows.first().map(|row| row.head.sequence))
            .unwrap_or(0);
        let mut marked = None;
        let mut dropped = None;
        for ChainRow { head, known } in rows {
            if contents.is_marked(head) {
                marked = Some(head.sequence);
            }
            // Whoever dropped the messages of a row had published them, and those of all rows before.
            if !known.has_messages {
                dropped = Some(head.sequence);
            }
        }
        let published = marked.max(dropped).unwrap_or(first);
        let keep_from = now.minus(params.keep_published);
        let mut pruned = first;
        for ChainRow { head, known } in rows {
            let is_dropped = Some(head.sequence) <= dropped;
            let is_old = known.due.is_none_or(|due| due < keep_from);
            if !(is_dropped || head.sequence <= published && is_old) {
                break;
            }
            pruned = head.sequence;
        }
        Ok(RestorePlan {
            chain,
            pruned,
            published,
        })
    }
}

/// Error of a row that is not in the log `name`.
fn absent_row(name: &str, Head { sequence, digest }: Head) -> LedgerLogError {
    LedgerLogError::Absent {
        name: name.to_owned(),
        sequence,
        digest,
    }
}

/// Lets a write that a crash has cut short be rolled back before its file is replaced: what is left of it belongs to that file.
fn settle_old_file(params: &LedgerParams) -> Result<(), crate::LedgerError> {
    let file = store::file_in(&params.path);
    if open::ledger_exists(params)? {
        let connection = store::open_database(&file, true)?;
        let read = connection.pragma_query_value(None, "user_version", |_| Ok(()));
        return read.map_err(crate::LedgerError::sqlite(&file));
    }
    let journal = params.path.join("ledger.sqlite-journal");
    match fs::remove_file(&journal) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::LedgerError::from_disk(&journal, &error))
        }
        _ => Ok(()),
    }
}

/// Fills a new file with the checkpoint and the bodies of the chain, in sequence, however they come.
struct LedgerBuilder<'b> {
    transaction: &'b Transaction<'b>,
    params: &'b LedgerParams,
    plan: &'b RestorePlan,
    now: Timestamp,
    /// Place of each row in the chain.
    places: BTreeMap<Digest, usize>,
    /// Bodies that wait for those before them or for other copies of them, by their place in the chain.
    waiting: BTreeMap<usize, WaitingBody>,
    /// Number of rows that are written.
    written: usize,
    state: Option<LedgerState>,
    failure: Option<crate::LedgerError>,
}

/// A body that cannot be written yet.
struct WaitingBody {
    body: Box<RowBody>,
    /// Number of its copies that were read.
    copies: u64,
}

impl<'b> LedgerBuilder<'b> {
    fn new(
        transaction: &'b Transaction<'b>,
        params: &'b LedgerParams,
        plan: &'b RestorePlan,
        now: Timestamp,
    ) -> Self {
        let mut places = BTreeMap::new();
        for (place, row) in plan.chain.rows.iter().enumerate() {
            places.insert(row.head.digest, place);
        }
        LedgerBuilder {
            transaction,
            params,
            plan,
            now,
            places,
            waiting: BTreeMap::new(),
            written: 0,
            state: None,
            failure: None,
        }
    }

    fn take_body(&mut self, whole: CompletedBody) {
        match whole {
            CompletedBody::Row(body) => self.take_row(body),
            CompletedBody::Checkpoint(snapshot) => {
                if self.state.is_none()
                    && self.failure.is_none()
                    && let Some(base) = &self.plan.chain.base
                    && base.row == snapshot.row.head
                    && base.from == snapshot.from
                {
                    self.failure = self.begin_with_checkpoint(*snapshot).err();
                }
            }
            CompletedBody::Other => return,
        }
        self.write_next();
    }

    fn take_row(&mut self, body: Box<RowBody>) {
        let Some(&place) = self.places.get(&body.entry.head.digest) else {
            return;
        };
        if place < self.written || self.failure.is_some() {
            return;
        }
        match self.waiting.entry(place) {
            Entry::Vacant(vacant) => {
                vacant.insert(WaitingBody { body, copies: 1 });
            }
            Entry::Occupied(mut occupied) => {
                let waiting = occupied.get_mut();
                waiting.body.merge(*body);
                waiting.copies += 1;
            }
        }
    }

    /// Writes the rows that can follow, once the checkpoint is there.
    fn write_next(&mut self) {
        if self.failure.is_some() || (self.state.is_none() && self.plan.chain.base.is_some()) {
            return;
        }
        while let Some(next) = self
            .waiting
            .first_entry()
            .filter(|next| *next.key() == self.written)
        {
            let row = self.plan.chain.rows.get(self.written);
            let copies = row.map_or(0, |row| row.known.copies);
            if next.get().copies < copies && !next.get().body.is_full() {
                break;
            }
            let WaitingBody { body, .. } = next.remove();
            if let Err(error) = self.write_body(&body) {
                self.failure = Some(error);
                return;
            }
            self.written += 1;
        }
    }

    /// Writes the first row, the gap, and the row of a checkpoint with what is after it.
    fn begin_with_checkpoint(&mut self, snapshot: Snapshot) -> Result<(), crate::LedgerError> {
        let file = store::file_in(&self.params.path);
        let Snapshot {
            genesis,
            row,
            gap,
            states,
            ..
        } = snapshot;
        self.write_body(&RowBody {
            entry: genesis,
            messages: None,
            states: Vec::new(),
        })?;
        gap.insert(self.transaction)
            .map_err(crate::LedgerError::sqlite(&file))?;
        if let Some(state) = &mut self.state {
            state.gap = Some(gap);
        }
        self.write_body(&RowBody {
            entry: row,
            messages: None,
            states: Vec::new(),
        })?;
        let Some(state) = &self.state else {
            return Ok(());
        };
        let mut insert = self
            .transaction
            .prepare("INSERT INTO states VALUES (?1, ?2, ?3, ?4)")
            .map_err(crate::LedgerError::sqlite(&file))?;
        for RowNoise { slot, salt, bytes } in &states {
            let written = match state.account.states.get(slot) {
                Some((written, _)) => i64::try_from(*written).unwrap_or(i64::MAX),
                None => 0,
            };
            insert
                .execute(params![slot, written, salt.as_slice(), bytes])
                .map_err(crate::LedgerError::sqlite(&file))?;
        }
        Ok(())
    }

    /// Verifies a row as one that is appended, and writes it.
    fn write_body(&mut self, body: &RowBody) -> Result<(), crate::LedgerError> {
        let entry = &body.entry;
        let file = store::file_in(&self.params.path);
        let sequence = entry.head.sequence;
        let damaged = damaged_row(&file, sequence);
        let applied = match &mut self.state {
            None => {
                self.state = Some(LedgerState::from_first_row(entry, damaged)?);
                None
            }
            Some(state) => Some(state.apply_entry(entry, damaged)?),
        };
        let messages = if sequence <= self.plan.pruned {
            MessageFate::Dropped
        } else if sequence <= self.plan.published {
            MessageFate::PublishedAt(self.now)
        } else {
            MessageFate::Unpublished
        };
        let row = applied.as_ref().map(|applied| &applied.row);
        let spent = applied.as_ref().map_or(&[][..], |applied| &applied.spent);
        write_row(self.transaction, body, row, spent, messages)
            .map_err(crate::LedgerError::sqlite(&file))?;
        // The first row has no checkpoint.
        if let Some(state) = &self.state
            && applied.is_some()
            && Checkpoint::is_due(sequence)
        {
            state
                .checkpoint(&state.account, entry.head)
                .insert(self.transaction)
                .map_err(crate::LedgerError::sqlite(&file))?;
        }
        Ok(())
    }

    /// Checks that nothing is missing.
    fn check_complete(self, name: &str) -> Result<(), crate::LedgerError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let Chain { base, rows } = &self.plan.chain;
        if let Some(row) = rows.get(self.written) {
            return Err(absent_row(name, row.head).into());
        }
        let Some(state) = self.state else {
            return match base {
                Some(base) => Err(absent_row(name, base.row).into()),
                None => Ok(()),
            };
        };
        let file = store::file_in(&self.params.path);
        let stored =
            states::read_states(self.transaction).map_err(crate::LedgerError::sqlite(&file))?;
        let Err(error) = check_states(&stored, &file, &state.account) else {
            return Ok(());
        };
        // Of a row whose disk had replaced its states already, only a later row has them, if that is there.
        for (written, _) in state.account.states.values() {
            if let Some(row) = rows.iter().find(|row| row.head.sequence == *written) {
                return Err(absent_row(name, row.head).into());
            }
        }
        Err(error)
    }
}

/// The conversion of the reasons why a row of the log is damaged.
fn damaged_row(file: &Path, sequence: u64) -> impl Fn(String) -> crate::LedgerError {
    move |what| crate::LedgerError::damaged(file, format!("row {sequence} of its log: {what}"))
}
