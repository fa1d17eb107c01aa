//! The file: its tables and its lock.
//!
//! `ledger.sqlite` holds `rows` (the chain; without a `secret` a row is whole in its `body`, as older programs wrote it), `spent` (what each block has spent, prices in JSON), `outbox` (the messages and
//! whether they are known to be published; those of old rows are dropped, and `kept` says up to which), `states` (the noise that
//! later windows continue; secret, because whoever knows the noise can subtract it), `checkpoints` (the account after some rows)
//! `archives` (which rows were moved to which file) and `gap` (which rows it does not have). It must be on local block storage with a reliable `fsync`.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::chain::{Digest, Head};
use super::error::LedgerError;
use crate::private;

pub(super) const FORMAT: i64 = 5;

/// The oldest format of a ledger that this program goes on with.
const OLDEST_FORMAT: i64 = 4;

const CREATE_TABLES: &str = "
    CREATE TABLE rows (
        sequence INTEGER PRIMARY KEY, salt BLOB NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL, secret TEXT
    ) STRICT;
    CREATE TABLE outbox (
        sequence INTEGER NOT NULL, place INTEGER NOT NULL,
        key TEXT NOT NULL, headers TEXT NOT NULL, bytes BLOB, published_at INTEGER,
        PRIMARY KEY (sequence, place)
    ) STRICT;
    CREATE INDEX unpublished ON outbox (sequence, place) WHERE published_at IS NULL;
    CREATE TABLE spent (
        block_start INTEGER NOT NULL, block_end INTEGER NOT NULL, price TEXT NOT NULL,
        PRIMARY KEY (block_start, block_end)
    ) STRICT;
    CREATE INDEX live ON spent (block_end);
    CREATE TABLE states (
        slot TEXT PRIMARY KEY, sequence INTEGER NOT NULL, salt BLOB NOT NULL, bytes BLOB NOT NULL
    ) STRICT;
    CREATE TABLE checkpoints (
        sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, digest BLOB NOT NULL
    ) STRICT;
    CREATE TABLE kept (pruned INTEGER NOT NULL) STRICT;
    CREATE TABLE archives (first INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
";

/// Time for which a writer waits for those who read the file, and they for it, unless [`wait_with`](super::Ledger::wait_with) says
/// otherwise. The commands of this program read for milliseconds.
const READER_TIMEOUT: Duration = Duration::from_secs(60);

/// Says that the messages of all rows but the first are kept, unless something else was said.
const INSERT_KEPT: &str = "INSERT INTO kept SELECT sequence FROM rows WHERE NOT EXISTS (SELECT * FROM kept) ORDER BY sequence LIMIT 1";

/// The table that format 4 lacked. Its one row, if it has one, is the row that the rows go on with after the first, the form and the
/// digest of the row before that, and the account after it ([`RowGap`](super::missing_rows::RowGap)). Rows of format 5 may say what the account is.
pub(super) const TABLE_OF_5: &str = "
    CREATE TABLE gap (sequence INTEGER PRIMARY KEY, form INTEGER NOT NULL, digest BLOB NOT NULL, account TEXT NOT NULL) STRICT;
";

/// The columns of a row.
pub(super) const COLUMNS: &str = "sequence, salt, body, digest, secret";

pub(super) fn file_in(folder: &Path) -> PathBuf {
    folder.join("ledger.sqlite")
}

/// Creates the folder, durably, if it is missing, or closes it to everyone else.
///
/// # Errors
///
/// If the folder cannot be created.
pub(super) fn make_folder(folder: &Path) -> Result<(), LedgerError> {
    private::make_folder(folder).map_err(LedgerError::disk(folder))
}

/// Locks the folder until the returned file is dropped.
///
/// `SQLite`'s own lock would be lost when the process closes any other handle on the database file.
///
/// # Errors
///
/// [`LedgerError::Locked`] if another process holds the lock, or if the folder cannot be written.
pub(super) fn lock_folder(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join("lock");
    let open = private::private_options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = open.map_err(LedgerError::disk(&path))?;
    // A child process that is being started holds the files of its parent for an instant, and whoever looks at a ledger after a
    // crash holds it until what was half written is rolled back.
    for _ in 0..100 {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(error)) => return Err(LedgerError::from_disk(&path, &error)),
        }
    }
    Err(LedgerError::Locked {
        path: folder.into(),
    })
}

/// Opens the existing database `file`.
///
/// # Errors
///
/// If it cannot be opened, or if it was left in another journal mode.
pub(super) fn open_database(file: &Path, is_writer: bool) -> Result<Connection, LedgerError> {
    let access = if is_writer {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let connection = connect_as(file, access).map_err(LedgerError::sqlite(file))?;
    let mode: String = connection
        .query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))
        .map_err(LedgerError::sqlite(file))?;
    if mode == "delete" {
        return Ok(connection);
    }
    Err(LedgerError::damaged(
        file,
        format!("its journal mode is {mode}, which this program never sets"),
    ))
}

fn connect_as(file: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(READER_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    // What is deleted or replaced must not stay in unused pages: states of noise are secret.
    connection.execute_batch("PRAGMA secure_delete = ON")?;
    Ok(connection)
}

/// Creates a database in `folder` with the content of `fill`, all or nothing.
///
/// # Errors
///
/// If the folder cannot be written.
pub(super) fn create_database(
    folder: &Path,
    fill: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), LedgerError> {
    let draft = folder.join("ledger.sqlite.new");
    let file = file_in(folder);
    for leftover in [draft.clone(), folder.join("ledger.sqlite.new-journal")] {
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LedgerError::from_disk(&leftover, &error));
            }
            _ => {}
        }
    }
    private::create_new(&draft).map_err(LedgerError::disk(&draft))?;
    let connection = open_database(&draft, true)?;
    write_tables(connection, fill).map_err(LedgerError::sqlite(&draft))?;
    fs::rename(&draft, &file).map_err(LedgerError::disk(&file))?;
    private::sync_folder(folder).map_err(LedgerError::disk(&file))
}

fn write_tables(
    mut connection: Connection,
    fill: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", FORMAT)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(CREATE_TABLES)?;
    transaction.execute_batch(TABLE_OF_5)?;
    fill(&transaction)?;
    transaction.execute_batch(INSERT_KEPT)?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)
}

/// The newest row that is stored.
pub(super) fn stored_head(connection: &Connection) -> rusqlite::Result<Option<Head>> {
    let newest = "SELECT sequence, digest FROM rows ORDER BY sequence DESC LIMIT 1";
    connection.query_row(newest, [], read_head).optional()
}

/// The row `sequence`, if it is stored.
pub(super) fn head_at(connection: &Connection, sequence: i64) -> rusqlite::Result<Option<Head>> {
    let row = "SELECT sequence, digest FROM rows WHERE sequence = ?1";
    connection.query_row(row, [sequence], read_head).optional()
}

/// The digest of the row `sequence`, if it is stored.
pub(super) fn digest_at(
    connection: &Connection,
    sequence: i64,
) -> rusqlite::Result<Option<Digest>> {
    let digest = "SELECT digest FROM rows WHERE sequence = ?1";
    connection
        .query_row(digest, [sequence], |row| digest_of(row, 0))
        .optional()
}

/// Reads the columns `sequence, digest`.
fn read_head(row: &rusqlite::Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        sequence: sequence_of(row, 0)?,
        digest: digest_of(row, 1)?,
    })
}

pub(super) fn sequence_of(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

pub(super) fn digest_of(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    row.get::<_, [u8; 32]>(column).map(Digest::from)
}

/// The messages of this row, and of all before it, were dropped.
pub(super) fn pruned_to(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT pruned FROM kept", [], |row| row.get(0))
}

/// The format of the file, which is that of this program or the one before.
///
/// # Errors
///
/// [`LedgerError::Older`] or [`LedgerError::Newer`] for another one, or if the ledger is damaged or cannot be read.
pub(super) fn file_format(connection: &Connection, file: &Path) -> Result<i64, LedgerError> {
    let format = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    match format.map_err(LedgerError::sqlite(file))? {
        ..1 => Err(LedgerError::damaged(file, "it has no format")),
        format @ 1..OLDEST_FORMAT => Err(LedgerError::Older {
            path: file.into(),
            format,
        }),
        format @ OLDEST_FORMAT..=FORMAT => Ok(format),
        format => Err(LedgerError::Newer {
            path: file.into(),
            format,
        }),
    }
}
