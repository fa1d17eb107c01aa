//! The durable outbox: what was paid for, and the bytes that it paid for.
//!
//! One row a window, hash-chained ([`chain`]), in one `SQLite` file ([`store`]). A window is one transaction: its charges, the
//! end of its input and the sealed bytes of all its keys. A crash before the commit: nothing left, draw again. After it:
//! the same bytes are published. Which of several copies of a ledger may publish is decided by the [`witness`].
//!
//! After any error of a write the ledger refuses everything: whether the write is on the disk is known only to the disk, so
//! the worker must stop and read the file again.

pub mod beginning;
pub mod chain;
mod outbox;
pub mod producer;
mod replay;
mod store;
pub mod witness;

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;

use self::chain::{Account, headers_as_json, random};
pub use self::chain::{Closed, Digest, Genesis, Head, Message, Outcome, Row};
use self::store::Entry;
use self::witness::Claim;
use crate::clock::Timestamp;
use crate::mechanism::price::Price;
use crate::source::Positions;
use crate::synopsis::Sealed;
use crate::window::grid::Span;

/// Where the ledger is.
#[derive(Clone, Debug)]
pub struct Params {
    /// A folder on local block storage.
    pub path: PathBuf,
    /// How long published bytes are kept, for `ledger republish`.
    pub keep_published: Duration,
}

/// A window to be paid for.
#[derive(Clone, Debug)]
pub struct Closing {
    pub window: Span,
    pub publish_at: Timestamp,
    /// The price, for each block that the window touches, in order.
    pub charges: Vec<(Span, Price)>,
    /// Where its records ended in the input.
    pub ends: Positions,
    /// One message a key.
    pub sealed: Vec<Sealed>,
}

/// A message that was paid for and that the witness has accepted. Only the ledger makes one.
#[derive(Clone, Debug)]
pub struct Paid {
    sequence: i64,
    place: u32,
    window: Span,
    sealed: Sealed,
}

impl Paid {
    pub fn sealed(&self) -> &Sealed {
        &self.sealed
    }

    pub fn window(&self) -> Span {
        self.window
    }
}

/// A row with what its digest was made of: enough for anybody to verify the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    #[serde(flatten)]
    pub head: Head,
    pub salt: Digest,
    pub row: Row,
}

/// An open ledger, whole when it was opened.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    file: PathBuf,
    /// Held for life; without it the ledger is only looked at.
    lock: Option<File>,
    keep_published: Duration,
    genesis: Genesis,
    head: Head,
    account: Account,
    is_broken: bool,
}

/// Whether there is a ledger, whole or not.
pub fn exists(params: &Params) -> bool {
    fs::symlink_metadata(store::file_in(&params.path)).is_ok()
}

/// A name for a new ledger.
pub fn new_id() -> Result<String, Error> {
    let bytes = random().ok_or(Error::Randomness)?;
    Ok(Digest::from(bytes).to_string().chars().take(32).collect())
}

impl Ledger {
    /// Makes a ledger in a folder that has none, all or nothing.
    pub fn create(params: &Params, genesis: Genesis) -> Result<Ledger, Error> {
        store::make_folder(&params.path)?;
        let lock = store::lock(&params.path)?;
        if exists(params) {
            return Err(Error::Exists { path: params.path.clone() });
        }
        let sequence = genesis.previous.map_or(0, |previous| previous.sequence.saturating_add(1));
        let row = Entry::new(&Digest::ZERO, sequence, &Row::Genesis(genesis))?;
        store::create(&params.path, |transaction| row.insert(transaction))?;
        Ledger::load(params, Some(lock))
    }

    /// Takes the ledger and verifies all of it.
    pub fn open(params: &Params) -> Result<Ledger, Error> {
        if !exists(params) {
            return Err(Error::Missing { path: params.path.clone() });
        }
        let lock = store::lock(&params.path)?;
        Ledger::load(params, Some(lock))
    }

    /// Verifies all of a ledger that a worker may be using meanwhile. It cannot be written.
    pub fn look(params: &Params) -> Result<Ledger, Error> {
        match Ledger::open(params) {
            Err(Error::Locked { .. }) => Ledger::load(params, None),
            other => other,
        }
    }

    fn load(params: &Params, lock: Option<File>) -> Result<Ledger, Error> {
        let file = store::file_in(&params.path);
        let mut connection = store::connect(&file, lock.is_some())?;
        let replayed = replay::replay(&mut connection, &file)?;
        let (genesis, head, account) = (replayed.genesis, replayed.head, replayed.account);
        let keep_published = params.keep_published;
        Ok(Ledger { connection, file, lock, keep_published, genesis, head, account, is_broken: false })
    }

    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The number that the next row will have.
    pub fn next_sequence(&self) -> u64 {
        self.head.sequence.saturating_add(1)
    }

    /// Where the next window starts: the end of the last closed one, or the first.
    pub fn next_window(&self) -> Timestamp {
        self.account.next_window
    }

    /// What `block` was charged so far.
    pub fn spent(&self, block: Span) -> Price {
        self.account.spent(block)
    }

    /// Every block that was charged, in order, and what it has spent.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (Span, Price)> {
        self.account.spent.iter().map(|(block, spent)| (*block, *spent))
    }

    /// Every row, in sequence.
    pub fn rows(&self) -> Result<Vec<Stored>, Error> {
        let mut rows = Vec::new();
        replay::each_entry(&self.connection, &self.file, |entry| {
            let row = serde_json::from_str(&entry.body).map_err(|e| Error::damaged(&self.file, e.to_string()))?;
            rows.push(Stored { head: entry.head, salt: entry.salt(), row });
            Ok(())
        })?;
        Ok(rows)
    }

    /// Closed windows, the newest first: as many as `more` asks for, and the one for which it no longer does.
    pub fn newest(&self, mut more: impl FnMut(&Closed) -> bool) -> Result<Vec<Closed>, Error> {
        let sqlite = |error| Error::sqlite(&self.file, error);
        let all = "SELECT sequence, salt, body, digest FROM rows ORDER BY sequence DESC";
        let mut statement = self.connection.prepare(all).map_err(sqlite)?;
        let mut newest = Vec::new();
        for entry in statement.query_map([], Entry::read).map_err(sqlite)? {
            let row = serde_json::from_str(&entry.map_err(sqlite)?.body);
            let Row::Window(closed) = row.map_err(|e| Error::damaged(&self.file, e.to_string()))? else { break };
            let is_last = !more(&closed);
            newest.push(closed);
            if is_last {
                break;
            }
        }
        Ok(newest)
    }

    /// Where the input of the last closed window ended.
    pub fn ends(&self) -> &Positions {
        &self.account.ends
    }

    /// Pays for a window, durably: charges, end offsets and the bytes of all keys, or nothing of it.
    ///
    /// The accountant quotes before anything is drawn and withholds what does not fit. That the price fits, covers the
    /// window and closes it for the first time is checked here once more, before anything is written.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] where it does not: a fault of the caller, nothing has changed. After any other error the ledger
    /// takes no more writes.
    pub fn pay(&mut self, closing: Closing) -> Result<(), Error> {
        let Closing { window, publish_at, charges, ends, sealed } = closing;
        let messages = sealed.iter().map(Message::of).collect();
        let outcome = Outcome::Released { publish_at, charges, messages };
        self.append(Closed { window, ends, outcome }, &sealed)
    }

    /// Closes a window that the budget does not pay for: no charge, no message.
    ///
    /// # Errors
    ///
    /// As [`pay`](Self::pay).
    pub fn withhold(&mut self, window: Span, ends: Positions) -> Result<(), Error> {
        self.append(Closed { window, ends, outcome: Outcome::Withheld }, &[])
    }

    fn append(&mut self, row: Closed, sealed: &[Sealed]) -> Result<(), Error> {
        let spent = self.account.quote(&row).map_err(|why| Error::Refused { why })?;
        let row = Row::Window(row);
        let entry = Entry::new(&self.head.digest, self.next_sequence(), &row)?;
        self.write(|transaction| {
            entry.insert(transaction)?;
            for (block, sum) in &spent {
                let set = "INSERT INTO spent VALUES (?1, ?2, ?3)
                           ON CONFLICT (block_start, block_end) DO UPDATE SET epsilon = ?3";
                transaction.execute(set, params![block.start.micros(), block.end.micros(), sum.to_string()])?;
            }
            let mut outbox = transaction.prepare("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, NULL)")?;
            for (place, message) in (0_u32..).zip(sealed) {
                let headers = headers_as_json(&message.headers);
                outbox.execute(params![entry.sequence()?, place, message.key, headers, message.bytes])?;
            }
            Ok(())
        })?;
        self.head = entry.head;
        if let Row::Window(row) = &row {
            self.account.close(row, spent);
        }
        Ok(())
    }

    /// One transaction, after the stored head was compared with ours.
    fn write(&mut self, work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(Error::Locked { path: self.file.clone() });
        }
        self.whole()?;
        let (file, head) = (&self.file, self.head);
        let sqlite = |error| Error::sqlite(file, error);
        let connection = &mut self.connection;
        let attempt = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
            if store::stored_head(&transaction).map_err(sqlite)? != Some(head) {
                return Err(Error::Replaced { path: file.clone() });
            }
            work(&transaction).map_err(sqlite)?;
            transaction.commit().map_err(sqlite)
        };
        let outcome = attempt();
        self.is_broken = outcome.is_err();
        outcome
    }

    fn whole(&self) -> Result<(), Error> {
        if self.is_broken { Err(Error::Broken { path: self.file.clone() }) } else { Ok(()) }
    }

    /// Whether `head` is one of this ledger's rows.
    pub fn contains(&self, head: &Head) -> Result<bool, Error> {
        self.whole()?;
        let Ok(sequence) = i64::try_from(head.sequence) else { return Ok(false) };
        let digest = "SELECT digest FROM rows WHERE sequence = ?1";
        let found = self.connection.query_row(digest, [sequence], |row| store::digest_of(row, 0)).optional();
        Ok(found.map_err(|error| Error::sqlite(&self.file, error))? == Some(head.digest))
    }

    /// Whether this ledger may go on where the witness called `identity` has accepted `accepted`.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignWitness`] and [`Error::ForeignHead`]: for good, this ledger has lost.
    pub fn recognise(&self, identity: &str, accepted: Option<&Head>) -> Result<(), Error> {
        if identity != self.genesis.witness {
            let (expected, found) = (self.genesis.witness.clone(), identity.to_string());
            return Err(Error::ForeignWitness { path: self.file.clone(), expected, found });
        }
        let is_ours = match accepted {
            None => self.genesis.previous.is_none(),
            Some(head) => self.genesis.previous == Some(*head) || self.contains(head)?,
        };
        if is_ours {
            return Ok(());
        }
        let found = accepted.map_or_else(|| "no row at all".to_string(), |head| format!("row {}", head.sequence));
        Err(Error::ForeignHead { path: self.file.clone(), found, newest: self.head.sequence })
    }

    /// What to claim at the witness whose head is `accepted`: all rows since, or nothing.
    pub fn claim(&self, accepted: Option<&Head>) -> Result<Option<Claim>, Error> {
        if accepted == Some(&self.head) {
            return Ok(None);
        }
        self.whole()?;
        let stored = store::stored_head(&self.connection).map_err(|error| Error::sqlite(&self.file, error))?;
        if stored != Some(self.head) {
            return Err(Error::Replaced { path: self.file.clone() });
        }
        let last_block_end = self.account.last_block_end;
        Ok(Some(Claim { previous: accepted.copied(), head: self.head, last_block_end }))
    }
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no ledger in {path}; for a new pipeline, or where the volume was lost, run `bernstream ledger init`"
    )]
    Missing { path: PathBuf },
    #[error("there is a ledger in {path} already; a new one needs an empty folder")]
    Exists { path: PathBuf },
    #[error("another worker uses the ledger in {path}; one ledger has one worker, stop the other one first")]
    Locked { path: PathBuf },
    #[error(
        "the ledger {path} is damaged: {what}; do not repair it and do not restore an older copy: move it away and run \
         `bernstream ledger init`, which starts a new one at the next block"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "the ledger {path} was changed or replaced under the running worker; find out by whom, then start the worker again"
    )]
    Replaced { path: PathBuf },
    #[error("the disk of {path} is full; make room and start the worker again, nothing is lost")]
    Full { path: PathBuf },
    #[error("{path} cannot be read or written: {why}; check the volume and start the worker again")]
    Disk { path: PathBuf, why: String },
    #[error("an earlier write of {path} failed, and only reading it again shows what is in it; start the worker again")]
    Broken { path: PathBuf },
    #[error("the ledger refuses the window: {why}")]
    Refused { why: String },
    #[error(
        "the ledger {path} belongs to the witness {expected}, and this one is {found}; use the witness it was made with, or \
         start a new ledger with `bernstream ledger init`"
    )]
    ForeignWitness { path: PathBuf, expected: String, found: String },
    #[error(
        "the witness has accepted {found}, which is not in the ledger {path} (newest row: {newest}): this is an older copy, or \
         another ledger took its place; move it away, and start the newest copy, or a new one with `bernstream ledger init`"
    )]
    ForeignHead { path: PathBuf, found: String, newest: u64 },
    #[error("the operating system gave no randomness")]
    Randomness,
}
