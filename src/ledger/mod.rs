//! The durable outbox: what was paid for, and the bytes that it paid for.
//!
//! One row a window, hash-chained ([`chain`]), in one `SQLite` file ([`store`]). A window is one transaction: its charges, the
//! end of its input, the sealed bytes of all its keys and the noise that later windows go on with. A crash before the
//! commit: nothing left, draw again. After it: the same bytes are published. Which of several copies of a ledger may publish
//! is decided by the [`witness`].
//!
//! Opening a ledger takes no longer for a million rows than for a thousand ([`replay`]): damage of an old row is found by
//! [`Ledger::verify_all`], and stops the worker where it bears on what the worker will do.
//!
//! After any error of a write the ledger refuses everything: whether the write is on the disk is known only to the disk, so
//! the worker must stop and read the file again.

mod account;
pub mod audit;
pub mod bootstrap;
pub mod chain;
mod checkpoint;
mod error;
mod outbox;
mod replay;
mod states;
mod store;
pub mod witness;

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;

pub use self::chain::{Closed, Configuration, Digest, Genesis, Head, Message, Outcome, Row, State};
use self::chain::{headers_as_json, random};
use self::checkpoint::Checkpoint;
pub use self::error::Error;
use self::replay::LedgerState;
use self::states::Fresh;
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
    /// The price, for each block that the window touches, in order: end to end, they cover the window and may begin before it.
    pub charges: Vec<(Span, Price)>,
    /// Where its records ended in the input.
    pub ends: Positions,
    /// One message a release and key.
    pub sealed: Vec<Sealed>,
    /// The noise that later windows go on with, by slot. It is secret. What is not named here stays as it is.
    pub states: Vec<(String, Vec<u8>)>,
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

/// An open ledger; what a worker needs of it was whole when it was opened.
#[derive(Debug)]
pub struct Ledger {
    connection: Connection,
    file: PathBuf,
    /// Held for life; without it the ledger is only looked at.
    lock: Option<File>,
    keep_published: Duration,
    books: LedgerState,
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

    /// Takes the ledger and verifies what a worker will act on: what can still be charged, the states of the noise, the
    /// messages that have not left and all rows since them. The time does not depend on the number of rows, but for a ledger
    /// of an older format, which is verified and rewritten once.
    pub fn open(params: &Params) -> Result<Ledger, Error> {
        if !exists(params) {
            return Err(Error::Missing { path: params.path.clone() });
        }
        let lock = store::lock(&params.path)?;
        Ledger::load(params, Some(lock))
    }

    /// Verifies all of a ledger that a worker may be using meanwhile. Then it cannot be written.
    pub fn look(params: &Params) -> Result<Ledger, Error> {
        let mut ledger = match Ledger::open(params) {
            Err(Error::Locked { .. }) => Ledger::load(params, None)?,
            other => other?,
        };
        ledger.verify_all()?;
        Ok(ledger)
    }

    /// Verifies all of it, from the first row on.
    pub fn verify_all(&mut self) -> Result<(), Error> {
        self.whole()?;
        let books = replay::all(&mut self.connection, &self.file)?;
        // A ledger that is only looked at goes on meanwhile.
        if self.lock.is_some() && books.head != self.books.head {
            return Err(Error::Replaced { path: self.file.clone() });
        }
        self.books = books;
        Ok(())
    }

    fn load(params: &Params, lock: Option<File>) -> Result<Ledger, Error> {
        let file = store::file_in(&params.path);
        let mut connection = store::connect(&file, lock.is_some())?;
        if store::format(&connection).map_err(|error| Error::sqlite(&file, error))? == 1 {
            // Whoever holds it writes this format, and stops before another one can.
            if lock.is_none() {
                return Err(Error::Locked { path: params.path.clone() });
            }
            replay::migrate(&mut connection, &file)?;
        }
        let books = replay::newest(&mut connection, &file)?;
        Ok(Ledger { connection, file, lock, keep_published: params.keep_published, books, is_broken: false })
    }

    pub fn genesis(&self) -> &Genesis {
        &self.books.genesis
    }

    pub fn head(&self) -> &Head {
        &self.books.head
    }

    /// The number that the next row will have.
    pub fn next_sequence(&self) -> u64 {
        self.books.head.sequence.saturating_add(1)
    }

    /// Where the next window starts: the end of the last closed one, or the first.
    pub fn next_window(&self) -> Timestamp {
        self.books.account.next_window
    }

    /// The newest settings: those of the first row, or of the last change.
    pub fn settings(&self) -> &str {
        &self.books.account.settings
    }

    /// What `block` was charged so far; the whole total where no row can charge it again.
    pub fn spent(&self, block: Span) -> Price {
        self.books.account.spent(block)
    }

    /// Blocks that end here or earlier are over: no row can charge them.
    pub fn live_from(&self) -> Timestamp {
        self.books.account.live_from
    }

    /// The last block that was charged, and what it has spent.
    pub fn newest_block(&self) -> Option<(Span, Price)> {
        self.books.account.newest
    }

    /// The last `most` of the blocks that were charged, the newest first, and what they have spent.
    pub fn blocks(&self, most: usize) -> Result<Vec<(Span, Price)>, Error> {
        let newest =
            "SELECT block_start, block_end, price FROM spent ORDER BY block_start DESC, block_end DESC LIMIT ?1";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let stored = replay::read_spent(&self.connection, newest, &[most]);
        let stored = stored.map_err(|error| Error::sqlite(&self.file, error))?.into_iter();
        let read = |(block, price): (Span, String)| {
            let price = serde_json::from_str(&price).map_err(|error| Error::damaged(&self.file, error.to_string()))?;
            Ok((block, price))
        };
        stored.map(read).collect()
    }

    /// Hands out every row, in sequence.
    pub fn each_row<E: From<Error>>(&self, mut each: impl FnMut(Stored) -> Result<(), E>) -> Result<(), E> {
        replay::each_entry(&self.connection, &self.file, i64::MIN, |entry| {
            let row = serde_json::from_str(&entry.body).map_err(|e| Error::damaged(&self.file, e.to_string()))?;
            each(Stored { head: entry.head, salt: entry.salt(), row })
        })
    }

    /// Every row, in sequence.
    pub fn rows(&self) -> Result<Vec<Stored>, Error> {
        let mut rows = Vec::new();
        self.each_row(|row| {
            rows.push(row);
            Ok::<(), Error>(())
        })?;
        Ok(rows)
    }

    /// Closed windows and the numbers of their rows, the newest first: as many as `more` asks for, and the one for which it
    /// no longer does.
    pub fn newest(&self, mut more: impl FnMut(&Closed) -> bool) -> Result<Vec<(u64, Closed)>, Error> {
        let sqlite = |error| Error::sqlite(&self.file, error);
        let all = "SELECT sequence, salt, body, digest FROM rows ORDER BY sequence DESC";
        let mut statement = self.connection.prepare(all).map_err(sqlite)?;
        let mut newest = Vec::new();
        for entry in statement.query_map([], Entry::read).map_err(sqlite)? {
            let entry = entry.map_err(sqlite)?;
            let row = serde_json::from_str(&entry.body).map_err(|e| Error::damaged(&self.file, e.to_string()))?;
            let closed = match row {
                Row::Window(closed) => closed,
                Row::Configuration(_) => continue,
                Row::Genesis(_) => break,
            };
            let is_last = !more(&closed);
            newest.push((entry.head.sequence, closed));
            if is_last {
                break;
            }
        }
        Ok(newest)
    }

    /// Where the input of the last closed window ended.
    pub fn ends(&self) -> &Positions {
        &self.books.account.ends
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
        let Closing { window, publish_at, charges, ends, sealed, states } = closing;
        let messages = sealed.iter().map(Message::of).collect();
        let fresh = states.into_iter().map(|(slot, bytes)| Fresh::new(&slot, bytes)).collect::<Result<Vec<_>, _>>()?;
        let states = fresh.iter().map(|fresh| fresh.state.clone()).collect();
        let outcome = Outcome::Released { publish_at, charges, messages, states };
        self.append(&Row::Window(Closed { window, ends, outcome }), &sealed, &fresh)
    }

    /// Closes a window that the budget does not pay for: no charge, no message, and the noise stays as it is.
    ///
    /// # Errors
    ///
    /// As [`pay`](Self::pay).
    pub fn withhold(&mut self, window: Span, ends: Positions) -> Result<(), Error> {
        self.append(&Row::Window(Closed { window, ends, outcome: Outcome::Withheld }), &[], &[])
    }

    /// Other settings from a window on, which is then the next one. What was spent stays spent.
    ///
    /// Which changes are allowed is for the caller to say; that no closed window is reopened is checked here.
    ///
    /// # Errors
    ///
    /// As [`pay`](Self::pay).
    pub fn reconfigure(&mut self, configuration: Configuration) -> Result<(), Error> {
        self.append(&Row::Configuration(configuration), &[], &[])
    }

    fn append(&mut self, row: &Row, sealed: &[Sealed], states: &[Fresh]) -> Result<(), Error> {
        let mut account = self.books.account.clone();
        let spent = account.take(self.next_sequence(), row).map_err(|why| Error::Refused { why })?;
        let entry = Entry::new(&self.books.head.digest, self.next_sequence(), row)?;
        let is_due = Checkpoint::is_due(entry.head.sequence);
        let checkpoint = is_due.then(|| self.books.checkpoint(&account, entry.head));
        self.write(|transaction| {
            entry.insert(transaction)?;
            replay::set_spent(transaction, spent.iter().copied())?;
            states.iter().try_for_each(|state| state.write(transaction, entry.sequence()?))?;
            let mut outbox = transaction.prepare("INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, NULL)")?;
            for (place, message) in (0_u32..).zip(sealed) {
                let headers = headers_as_json(&message.headers);
                outbox.execute(params![entry.sequence()?, place, message.key, headers, message.bytes])?;
            }
            checkpoint.map_or(Ok(()), |checkpoint| checkpoint.insert(transaction))
        })?;
        (self.books.head, self.books.account) = (entry.head, account);
        Ok(())
    }

    /// One transaction, after the stored head was compared with ours.
    fn write(&mut self, work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), Error> {
        if self.lock.is_none() {
            return Err(Error::Locked { path: self.file.clone() });
        }
        self.whole()?;
        let (file, head) = (&self.file, self.books.head);
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
        if identity != self.books.genesis.witness {
            let (expected, found) = (self.books.genesis.witness.clone(), identity.to_string());
            return Err(Error::ForeignWitness { path: self.file.clone(), expected, found });
        }
        let is_ours = match accepted {
            None => self.books.genesis.previous.is_none(),
            Some(head) => self.books.genesis.previous == Some(*head) || self.contains(head)?,
        };
        if is_ours {
            return Ok(());
        }
        let found = accepted.map_or_else(|| "no row at all".to_string(), |head| format!("row {}", head.sequence));
        Err(Error::ForeignHead { path: self.file.clone(), found, newest: self.books.head.sequence })
    }

    /// What to claim at the witness whose head is `accepted`: all rows since, or nothing.
    pub fn claim(&self, accepted: Option<&Head>) -> Result<Option<Claim>, Error> {
        if accepted == Some(&self.books.head) {
            return Ok(None);
        }
        self.whole()?;
        let stored = store::stored_head(&self.connection).map_err(|error| Error::sqlite(&self.file, error))?;
        if stored != Some(self.books.head) {
            return Err(Error::Replaced { path: self.file.clone() });
        }
        let last_block_end = self.books.account.last_block_end;
        Ok(Some(Claim { previous: accepted.copied(), head: self.books.head, last_block_end }))
    }
}
