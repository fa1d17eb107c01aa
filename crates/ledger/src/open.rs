//! An open ledger: its file, its lock, and what its rows add up to.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;

use super::archive::Archive;
use super::chain::{Digest, Genesis, Head, LedgerRow, random_bytes};
use super::entry::LedgerEntry;
use super::error::LedgerError;
use super::instance::{ClaimMaker, Instance, WaitingRows};
use super::log::LedgerLog;
use super::missing_rows::MissingRows;
use super::outgoing::OutgoingRow;
use super::replay::LedgerState;
use super::standby::Leadership;
use crate::replay;
use crate::store;
use crate::verify;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Place of a ledger, and the time for which it keeps published bytes.
#[derive(Clone, Debug)]
pub struct LedgerParams {
    /// A folder on local block storage.
    pub path: PathBuf,
    /// Time for which published bytes are kept, for `ledger republish`.
    pub keep_published: Duration,
}

/// An open ledger. What a worker needs of it was verified when it was opened.
#[derive(Debug)]
pub struct Ledger {
    pub(super) connection: Connection,
    pub(super) file: PathBuf,
    /// Held as long as the ledger is open; without it the ledger is read-only.
    pub(super) lock: Option<File>,
    pub(super) keep_published: Duration,
    pub(super) state: LedgerState,
    /// Maker of its claims; a read-only ledger makes none.
    pub(super) maker: Option<ClaimMaker>,
    pub(super) waiting: Option<WaitingRows>,
    /// The row whose messages are being published.
    pub(super) outgoing: RefCell<Option<OutgoingRow>>,
    /// A write has failed.
    pub(super) is_broken: bool,
    /// Log that holds every row before it is claimed, if there is one.
    pub(super) log: Option<LedgerLog>,
    /// Knowledge of whose turn it is, where several workers share a log.
    pub(super) leadership: Option<Leadership>,
}

/// Returns true if there is a ledger, valid or damaged.
///
/// # Errors
///
/// If the disk does not say: a ledger that cannot be seen is none that is missing.
pub fn ledger_exists(params: &LedgerParams) -> Result<bool, LedgerError> {
    let file = store::file_in(&params.path);
    match fs::symlink_metadata(&file) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(LedgerError::from_disk(&file, &error)),
    }
}

/// A random name for a new ledger.
///
/// # Errors
///
/// [`LedgerError::Randomness`] if the operating system provides no randomness.
pub fn new_id() -> Result<String, LedgerError> {
    let bytes = random_bytes().ok_or(LedgerError::Randomness)?;
    Ok(Digest::from(bytes).to_string().chars().take(32).collect())
}

/// Changes that must be written to a ledger before it can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingWrite {
    /// It has the format before this one.
    Older { format: i64 },
    /// A crash has left it in the middle of a write.
    Unfinished,
}

impl Ledger {
    /// Returns true if a ledger could be created: makes its folder, and locks it for a moment.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Locked`], or if the folder cannot be created or written.
    pub fn prepare(params: &LedgerParams) -> Result<(), LedgerError> {
        store::make_folder(&params.path)?;
        store::lock_folder(&params.path).map(drop)
    }

    /// Creates a ledger in a folder that has none, all or nothing.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Exists`] or [`LedgerError::Locked`], or if the folder cannot be written.
    pub fn create(params: &LedgerParams, genesis: Genesis) -> Result<Ledger, LedgerError> {
        store::make_folder(&params.path)?;
        let lock = store::lock_folder(&params.path)?;
        if ledger_exists(params)? {
            return Err(LedgerError::Exists {
                path: params.path.clone(),
            });
        }
        let sequence = genesis.first_sequence();
        let row = LedgerEntry::new(None, sequence, &LedgerRow::Genesis(genesis), None)?;
        store::create_database(&params.path, |transaction| row.insert(transaction))?;
        Ledger::load_locked(params, lock)
    }

    /// Locks the ledger and verifies what a worker will act on: the blocks that can still be charged, the states of the noise,
    /// the unpublished messages and all rows since the first of them. The time does not depend on the number of rows. A ledger of the
    /// format before is brought to this one.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Missing`], [`LedgerError::Locked`], [`LedgerError::Older`] or [`LedgerError::Newer`], or if the ledger is damaged or cannot be read.
    pub fn open(params: &LedgerParams) -> Result<Ledger, LedgerError> {
        if !ledger_exists(params)? {
            return Err(LedgerError::Missing {
                path: params.path.clone(),
            });
        }
        let lock = store::lock_folder(&params.path)?;
        Ledger::load_locked(params, lock)
    }

    /// The newest settings of a ledger, whoever holds its lock; only what says them is verified.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Missing`], [`LedgerError::Older`] or [`LedgerError::Newer`], or if the ledger is damaged or cannot be read.
    pub fn newest_settings(params: &LedgerParams) -> Result<String, LedgerError> {
        let connection = Ledger::connect_read_only(params)?;
        let file = store::file_in(&params.path);
        Ok(replay::replay_rows(&connection, &file)?.account.settings)
    }

    /// A ledger as [`open`](Self::open) would find it, whoever holds its lock; `None` for the format before, which only `open` rewrites.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), but for its lock.
    pub fn open_unlocked(params: &LedgerParams) -> Result<Option<Ledger>, LedgerError> {
        let mut connection = Ledger::connect_read_only(params)?;
        let file = store::file_in(&params.path);
        if store::file_format(&connection, &file)? < store::FORMAT {
            return Ok(None);
        }
        let state = replay::replay_newest(&mut connection, &file)?;
        Ok(Some(Ledger::read_only(params, connection, file, state)))
    }

    /// Reason why [`inspect`](Self::inspect) would write to a ledger, if it would. Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Missing`], or if the ledger is damaged or cannot be read.
    pub fn pending_write(params: &LedgerParams) -> Result<Option<PendingWrite>, LedgerError> {
        if !ledger_exists(params)? {
            return Err(LedgerError::Missing {
                path: params.path.clone(),
            });
        }
        let file = store::file_in(&params.path);
        let connection = match store::open_database(&file, false) {
            Err(LedgerError::Unfinished { .. }) => return Ok(Some(PendingWrite::Unfinished)),
            other => other?,
        };
        let format = store::file_format(&connection, &file)?;
        Ok((format < store::FORMAT).then_some(PendingWrite::Older { format }))
    }

    /// Verifies a whole ledger, also beside its worker, which is neither delayed nor kept from starting: the lock is not taken,
    /// except for a moment to bring a ledger of the format before to this one.
    ///
    /// The rows that are written meanwhile are not part of the result.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn inspect(params: &LedgerParams) -> Result<Ledger, LedgerError> {
        Ledger::inspect_with_progress(params, &mut |_, _| {})
    }

    /// Verifies a ledger like [`inspect`](Self::inspect); `progress` is called with how many rows are verified, of how many.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn inspect_with_progress(
        params: &LedgerParams,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Ledger, LedgerError> {
        let file = store::file_in(&params.path);
        let mut connection = Ledger::connect_read_only(params)?;
        if store::file_format(&connection, &file)? < store::FORMAT {
            drop(connection);
            drop(Ledger::open(params)?);
            connection = Ledger::connect_read_only(params)?;
        }
        let state = verify::verify_all_rows(&connection, &file, progress)?;
        Ok(Ledger::read_only(params, connection, file, state))
    }

    /// Verifies the whole ledger, from the first row.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`], and [`LedgerError::Replaced`] if the file was changed since it was opened.
    pub fn verify_all(&mut self) -> Result<(), LedgerError> {
        self.check_usable()?;
        let state = verify::verify_all_rows(&self.connection, &self.file, &mut |_, _| {})?;
        // Without the lock a worker may append rows in the meantime.
        if self.lock.is_some() && state.head != self.state.head {
            return Err(LedgerError::Replaced {
                path: self.file.clone(),
            });
        }
        self.state = state;
        Ok(())
    }

    fn load_locked(params: &LedgerParams, lock: File) -> Result<Ledger, LedgerError> {
        let file = store::file_in(&params.path);
        let mut connection = store::open_database(&file, true)?;
        if store::file_format(&connection, &file)? < store::FORMAT {
            verify::migrate_from_4(&mut connection).map_err(LedgerError::sqlite(&file))?;
        }
        let state = replay::replay_newest(&mut connection, &file)?;
        let maker = ClaimMaker::for_folder(&params.path)?;
        let mut ledger = Ledger::read_only(params, connection, file, state);
        ledger.lock = Some(lock);
        ledger.maker = Some(maker);
        Ok(ledger)
    }

    /// A ledger without its lock, which writes and claims nothing.
    fn read_only(
        params: &LedgerParams,
        connection: Connection,
        file: PathBuf,
        state: LedgerState,
    ) -> Ledger {
        Ledger {
            connection,
            file,
            lock: None,
            keep_published: params.keep_published,
            state,
            maker: None,
            waiting: None,
            outgoing: RefCell::default(),
            is_broken: false,
            log: None,
            leadership: None,
        }
    }

    /// A connection that cannot write.
    pub(super) fn connect_read_only(params: &LedgerParams) -> Result<Connection, LedgerError> {
        if !ledger_exists(params)? {
            return Err(LedgerError::Missing {
                path: params.path.clone(),
            });
        }
        let file = store::file_in(&params.path);
        match store::open_database(&file, false) {
            // A crash has left a transaction in the middle, which only a writer can roll back.
            Err(LedgerError::Unfinished { .. }) => {
                let lock = store::lock_folder(&params.path)?;
                drop(store::open_database(&file, true)?);
                drop(lock);
                store::open_database(&file, false)
            }
            other => other,
        }
    }

    /// Has `pause` called whenever another program holds the file, with how often it was called before, and tries again for as
    /// long as that says `true`. Without it a write waits a minute, and fails.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be used.
    pub fn wait_with(
        &mut self,
        pause: impl FnMut(i32) -> bool + Send + 'static,
    ) -> Result<(), LedgerError> {
        self.connection
            .busy_handler(Some(pause))
            .map_err(LedgerError::sqlite(&self.file))
    }

    pub fn genesis(&self) -> &Genesis {
        &self.state.genesis
    }

    /// The rows after the first that it does not have, because it was built from a checkpoint of its log.
    pub fn missing(&self) -> Option<MissingRows> {
        self.state.missing()
    }

    /// The row from which on it has all rows, and where the window after that one starts.
    pub fn complete_from(&self) -> (u64, Timestamp) {
        match &self.state.gap {
            Some(gap) => (gap.sequence, gap.account.next_window),
            None => {
                let genesis = &self.state.genesis;
                (genesis.first_sequence(), genesis.first)
            }
        }
    }

    /// The row that follows the missing ones, and the settings after it.
    pub fn settings_after_missing(&self) -> Option<(u64, &str)> {
        let gap = self.state.gap.as_ref()?;
        Some((gap.sequence, &gap.account.settings))
    }

    /// The newest block that was charged by the missing rows and the one after them.
    pub fn charged_by_missing(&self) -> Option<Span> {
        let newest = self.state.gap.as_ref()?.account.newest;
        newest.map(|(block, _)| block)
    }

    pub fn head(&self) -> &Head {
        &self.state.head
    }

    /// The name under which this process claims; `None` if it is read-only.
    pub fn instance(&self) -> Option<Instance> {
        self.maker.as_ref().map(ClaimMaker::own)
    }

    /// The number that the next row will have.
    pub fn next_sequence(&self) -> u64 {
        self.state.head.sequence.saturating_add(1)
    }

    /// Start of the next window: the end of the last closed window, or the first start.
    pub fn next_window(&self) -> Timestamp {
        self.state.account.next_window
    }

    /// The newest settings: those of the first row, or of the last change.
    pub fn settings(&self) -> &str {
        &self.state.account.settings
    }

    /// Sum of the charges to `block` so far; the whole total if no row can charge it again.
    pub fn spent(&self, block: Span) -> Price {
        self.state.account.spent_by(block)
    }

    /// Blocks that end here or earlier are closed: no row can charge them.
    pub fn live_from(&self) -> Timestamp {
        self.state.account.live_from
    }

    /// The time from which on no block is charged, because the share of the input's budget ends; `None` without an end.
    pub fn until(&self) -> Option<Timestamp> {
        self.state.account.until
    }

    /// The end of the last block that was charged, here or by the ledgers that this one follows.
    pub fn last_block_end(&self) -> Timestamp {
        self.state.account.last_block_end
    }

    /// The newest block that was charged, and what it has spent.
    pub fn newest_block(&self) -> Option<(Span, Price)> {
        self.state.account.newest
    }

    /// The end of the input of the last closed window.
    pub fn ends(&self) -> &Positions {
        &self.state.account.ends
    }

    /// Checks that no write has failed.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Broken`] if one has.
    pub(super) fn check_usable(&self) -> Result<(), LedgerError> {
        if self.is_broken {
            Err(LedgerError::Broken {
                path: self.file.clone(),
            })
        } else {
            Ok(())
        }
    }

    /// Returns true if `head` is one of this ledger's rows.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read, or an earlier write failed.
    pub fn contains(&self, head: &Head) -> Result<bool, LedgerError> {
        self.check_usable()?;
        let Ok(sequence) = i64::try_from(head.sequence) else {
            return Ok(false);
        };
        let found = store::digest_at(&self.connection, sequence)
            .map_err(LedgerError::sqlite(&self.file))?;
        if let Some(found) = found {
            return Ok(found == head.digest);
        }
        // A witness says what it has accepted of late, and that is not in an archive; only one that is read from afar may not.
        let mut is_archived = false;
        if let Some(archive) = Archive::with_row_after(&self.connection, sequence.saturating_sub(1))
            .map_err(LedgerError::sqlite(&self.file))?
        {
            archive.each_entry(&self.file, |entry| {
                is_archived |= entry.head == *head;
                Ok::<(), LedgerError>(())
            })?;
        }
        Ok(is_archived)
    }
}
