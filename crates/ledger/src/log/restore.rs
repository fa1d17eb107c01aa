//! Building a ledger from its log: a new file with the rows up to the one that the witness has accepted, from the newest checkpoint on, or
//! from the first row.
//!
//! The rows are those of the chain that ends there; every one is verified as one that is appended, and the whole file again when it is
//! opened. It takes the place of an older one by a rename, and nothing is taken out of a file in place: until the rename the old file
//! is whole, and after it the new one.

use std::collections::BTreeMap;
use std::fs;

use rusqlite::{Transaction, params};

use super::body::Body;
use super::contents::{Chain, Known, Point, Whole};
use super::error::Error;
use super::fields::Noise;
use super::foreign::{Messages, RemoteRows, write_row};
use super::snapshot::Snapshot;
use super::upkeep::LedgerLog;
use bernstream_synopsis::clock::Timestamp;

use crate::chain::{Digest, Head};
use crate::checkpoint::Checkpoint;
use crate::open;
use crate::open::Params;
use crate::replay::LedgerState;
use crate::states;
use crate::states::check_states;
use crate::store;

/// What can be built, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    pub rows: usize,
    /// The row of the checkpoint that it begins with after the first, if it does.
    pub checkpoint: Option<u64>,
    pub newest: u64,
    /// How many rows have messages that are not known to be published.
    pub unpublished: usize,
    /// What was read of the log.
    pub bytes: u64,
}

/// What is to be built.
struct Plan {
    chain: Chain,
    /// The messages of rows up to this number were published, and are dropped.
    pruned: u64,
    /// The messages of rows up to this number were published.
    published: u64,
}

impl LedgerLog {
    /// What a ledger would be that is built now. Nothing is changed.
    ///
    /// # Errors
    ///
    /// As for [`restore`](Self::restore).
    pub fn restorable(
        &mut self,
        params: &Params,
        accepted: &Head,
        now: Timestamp,
    ) -> Result<Restored, Error> {
        self.restorable_telling(params, accepted, now, &mut |_, _| {})
    }

    /// The same; `told` hears how many records of the log are read, of how many.
    ///
    /// # Errors
    ///
    /// As for [`restore`](Self::restore).
    pub fn restorable_telling(
        &mut self,
        params: &Params,
        accepted: &Head,
        now: Timestamp,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<Restored, Error> {
        self.foreign = RemoteRows::default();
        self.read_all_telling(|_| {}, told)?;
        Ok(self.restored(&self.plan(params, accepted, now)?))
    }

    /// Builds the ledger with the rows up to `accepted`, the head of the witness, in the place of the one that is in the folder.
    /// Messages that are not marked as published are to be published; the others are kept as long as the ledger would have.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] while a row is not there, [`crate::Error::Locked`], or if the log contradicts itself or cannot be read, or the
    /// folder cannot be written. The ledger that is there is unchanged.
    pub fn restore(
        &mut self,
        params: &Params,
        accepted: &Head,
        now: Timestamp,
    ) -> Result<Restored, crate::Error> {
        self.restore_telling(params, accepted, now, &mut |_, _| {})
    }

    /// The same; `told` hears how many records of the log are done, of how many: each is read twice.
    ///
    /// # Errors
    ///
    /// As for [`restore`](Self::restore).
    pub fn restore_telling(
        &mut self,
        params: &Params,
        accepted: &Head,
        now: Timestamp,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<Restored, crate::Error> {
        store::make_folder(&params.path)?;
        let _lock = store::lock(&params.path)?;
        // What is read is for the new file.
        self.foreign = RemoteRows::default();
        self.read_all_telling(|_| {}, &mut |read, all| told(read / 2, all))?;
        let plan = self.plan(params, accepted, now)?;
        settle_old_file(params)?;
        let mut outcome = Ok(());
        let mut read = Ok(());
        let created = store::create(&params.path, |transaction| {
            transaction.execute(
                "INSERT INTO kept VALUES (?1)",
                [i64::try_from(plan.pruned).unwrap_or(i64::MAX)],
            )?;
            let mut builder = Builder::new(transaction, params, &plan, now);
            let mut again = |read: u64, all: u64| told(all.saturating_add(read) / 2, all);
            read = self.read_all_telling(|whole| builder.take(whole), &mut again);
            outcome = builder.finish(&self.name());
            // Otherwise nothing is committed.
            if outcome.is_ok() && read.is_ok() {
                Ok(())
            } else {
                Err(rusqlite::Error::ExecuteReturnedResults)
            }
        });
        read?;
        outcome?;
        created?;
        Ok(self.restored(&plan))
    }

    fn restored(&self, plan: &Plan) -> Restored {
        let is_unpublished =
            |(head, known): &&(Head, Known)| head.sequence > plan.published && known.due.is_some();
        let Chain { base, rows } = &plan.chain;
        let base = base.map(|base| base.row.sequence);
        Restored {
            // The first one, and that of the checkpoint.
            rows: rows.len() + base.map_or(0, |_| 2),
            checkpoint: base,
            newest: rows
                .last()
                .map(|(head, _)| head.sequence)
                .or(base)
                .unwrap_or(0),
            unpublished: rows.iter().filter(is_unpublished).count(),
            bytes: self.contents().bytes,
        }
    }

    fn plan(&self, params: &Params, accepted: &Head, now: Timestamp) -> Result<Plan, Error> {
        let contents = self.contents();
        let name = self.name();
        let chain =
            contents
                .chain(*accepted)
                .map_err(
                    |Head { sequence, digest }| match contents.is_closed(&digest) {
                        true => Error::OtherKey { name, sequence },
                        false => Error::Absent {
                            name,
                            sequence,
                            digest,
                        },
                    },
                )?;
        let Chain { base, rows } = &chain;
        // Up to its row everything was published when a checkpoint was written.
        let base = base.map(|base| base.row.sequence);
        let first = base
            .or(rows.first().map(|(head, _)| head.sequence))
            .unwrap_or(0);
        let marked = rows
            .iter()
            .rev()
            .find(|(head, _)| contents.is_marked(head))
            .map(|(head, _)| head.sequence);
        // Whoever dropped the messages of a row had published them, and those of all rows before.
        let dropped = rows
            .iter()
            .rev()
            .find(|(_, known)| !known.has_messages)
            .map(|(head, _)| head.sequence);
        let published = marked.max(dropped).unwrap_or(first);
        let keep_from = now.minus(params.keep_published);
        let is_old = |(head, known): &&(Head, Known)| {
            Some(head.sequence) <= dropped
                || head.sequence <= published && known.due.is_none_or(|due| due < keep_from)
        };
        let pruned = rows
            .iter()
            .take_while(is_old)
            .last()
            .map_or(first, |(head, _)| head.sequence);
        Ok(Plan {
            chain,
            pruned,
            published,
        })
    }
}

/// Lets a write that a crash has cut short be rolled back before its file is replaced: what is left of it belongs to that file.
fn settle_old_file(params: &Params) -> Result<(), crate::Error> {
    let file = store::file_in(&params.path);
    if open::exists(params)? {
        let connection = store::connect(&file, true)?;
        let read = connection.pragma_query_value(None, "user_version", |_| Ok(()));
        return read.map_err(|error| crate::Error::sqlite(&file, error));
    }
    let journal = params.path.join("ledger.sqlite-journal");
    match fs::remove_file(&journal) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::Error::disk(&journal, &error))
        }
        _ => Ok(()),
    }
}

/// Fills a new file with the checkpoint and the bodies of the chain, in sequence, however they come.
struct Builder<'b> {
    transaction: &'b Transaction<'b>,
    params: &'b Params,
    plan: &'b Plan,
    now: Timestamp,
    /// Where each row is in the chain.
    places: BTreeMap<Digest, usize>,
    /// Bodies that wait for those before them or for other copies of them, and how many copies were read.
    waiting: BTreeMap<usize, (Box<Body>, u64)>,
    /// How many rows are written.
    written: usize,
    state: Option<LedgerState>,
    failure: Option<crate::Error>,
}

impl<'b> Builder<'b> {
    fn new(
        transaction: &'b Transaction<'b>,
        params: &'b Params,
        plan: &'b Plan,
        now: Timestamp,
    ) -> Self {
        let places = plan
            .chain
            .rows
            .iter()
            .enumerate()
            .map(|(place, (head, _))| (head.digest, place))
            .collect();
        let waiting = BTreeMap::new();
        let failure = None;
        Builder {
            transaction,
            params,
            plan,
            now,
            places,
            waiting,
            written: 0,
            state: None,
            failure,
        }
    }

    fn take(&mut self, whole: Whole) {
        match whole {
            Whole::Row(body) => self.take_row(body),
            Whole::Checkpoint(snapshot) => {
                let is_base =
                    |base: &Point| base.row == snapshot.row.head && base.from == snapshot.from;
                if self.state.is_none()
                    && self.failure.is_none()
                    && self.plan.chain.base.as_ref().is_some_and(is_base)
                {
                    self.failure = self.begin(*snapshot).err();
                }
            }
            Whole::Other => return,
        }
        self.write_next();
    }

    fn take_row(&mut self, body: Box<Body>) {
        let Some(&place) = self.places.get(&body.entry.head.digest) else {
            return;
        };
        if place < self.written || self.failure.is_some() {
            return;
        }
        match self.waiting.entry(place) {
            std::collections::btree_map::Entry::Vacant(vacant) => drop(vacant.insert((body, 1))),
            std::collections::btree_map::Entry::Occupied(mut occupied) => {
                let (known, copies) = occupied.get_mut();
                known.merge(*body);
                *copies += 1;
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
            let copies = self
                .plan
                .chain
                .rows
                .get(self.written)
                .map_or(0, |(_, known)| known.copies);
            let (body, read) = next.get();
            if *read < copies && !body.is_full() {
                break;
            }
            let (body, _) = next.remove();
            if let Err(error) = self.write(&body) {
                self.failure = Some(error);
                return;
            }
            self.written += 1;
        }
    }

    /// Writes the first row, the gap, and the row of a checkpoint with what is after it.
    fn begin(&mut self, snapshot: Snapshot) -> Result<(), crate::Error> {
        let file = store::file_in(&self.params.path);
        let sqlite = |error| crate::Error::sqlite(&file, error);
        let Snapshot {
            genesis,
            row,
            gap,
            states,
            ..
        } = snapshot;
        self.write(&Body {
            entry: genesis,
            messages: None,
            states: Vec::new(),
        })?;
        gap.insert(self.transaction).map_err(sqlite)?;
        if let Some(state) = &mut self.state {
            state.gap = Some(gap);
        }
        self.write(&Body {
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
            .map_err(sqlite)?;
        for Noise { slot, salt, bytes } in &states {
            let written = state
                .account
                .states
                .get(slot)
                .map_or(0, |(written, _)| *written);
            let written = i64::try_from(written).unwrap_or(i64::MAX);
            insert
                .execute(params![slot, written, salt.as_slice(), bytes])
                .map_err(sqlite)?;
        }
        Ok(())
    }

    /// Verifies a row as one that is appended, and writes it.
    fn write(&mut self, body: &Body) -> Result<(), crate::Error> {
        let entry = &body.entry;
        let file = store::file_in(&self.params.path);
        let sqlite = |error| crate::Error::sqlite(&file, error);
        let damaged = |what: String| {
            crate::Error::damaged(
                &file,
                format!("row {} of its log: {what}", entry.head.sequence),
            )
        };
        let (row, spent) = match &mut self.state {
            None => {
                self.state = Some(LedgerState::begin(entry, damaged)?);
                (None, vec![])
            }
            Some(state) => state
                .take(entry, damaged)
                .map(|(row, spent)| (Some(row), spent))?,
        };
        let messages = match entry.head.sequence {
            sequence if sequence <= self.plan.pruned => Messages::Dropped,
            sequence if sequence <= self.plan.published => Messages::PublishedAt(self.now),
            _ => Messages::Unpublished,
        };
        let write = || {
            write_row(self.transaction, body, row.as_ref(), &spent, messages)?;
            match &self.state {
                // The first row has none.
                Some(state) if row.is_some() && Checkpoint::is_due(entry.head.sequence) => state
                    .checkpoint(&state.account, entry.head)
                    .insert(self.transaction),
                _ => Ok(()),
            }
        };
        write().map_err(sqlite)
    }

    /// Checks that nothing is missing.
    fn finish(self, name: &str) -> Result<(), crate::Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let absent = |Head { sequence, digest }: Head| Error::Absent {
            name: name.to_owned(),
            sequence,
            digest,
        };
        if let Some((head, _)) = self.plan.chain.rows.get(self.written) {
            return Err(absent(*head).into());
        }
        let Some(state) = self.state else {
            return self
                .plan
                .chain
                .base
                .map_or(Ok(()), |base| Err(absent(base.row).into()));
        };
        let file = store::file_in(&self.params.path);
        let stored =
            states::all(self.transaction).map_err(|error| crate::Error::sqlite(&file, error))?;
        // Of a row whose disk had replaced its states already, only a later row has them, if that is there.
        check_states(&stored, &file, &state.account).map_err(|error| {
            let of = |(written, _): &(u64, Digest)| {
                self.plan
                    .chain
                    .rows
                    .iter()
                    .find(|(head, _)| head.sequence == *written)
            };
            let first = state
                .account
                .states
                .values()
                .filter_map(of)
                .map(|(head, _)| *head)
                .next();
            first.map_or(error, |head| absent(head).into())
        })
    }
}
