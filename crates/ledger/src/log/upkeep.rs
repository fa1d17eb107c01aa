//! Keeping a log: whatever the ledger claims is in it before.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::body::{BodyMessage, RowBody, seal_handover, seal_mark, seal_row};
use super::contents::{CompletedBody, KnownRow, LogContents, LoggedCheckpoint};
use super::error::LedgerLogError;
use super::fields::RowNoise;
use super::foreign::RemoteRows;
use super::key::LogKey;
use super::pieces::split_body;
use super::place::{Log, LogReader};
use bernstream_synopsis::clock::Timestamp;

use crate::chain::{ClosedWindow, Head, LedgerRow, ReleaseOutcome};
use crate::entry::LedgerEntry;
use crate::missing_rows::RowGap;
use crate::pages;

/// So many bytes of bodies are appended at once.
const PORTION_BYTES: usize = 8 << 20;
/// So many rows are appended at once.
const PORTION_ROWS: usize = 1024;
/// Time for which missing rows are appended before the caller does something else.
const LONGEST_FILL: Duration = Duration::from_secs(20);
/// Interval at which a log is read where nothing is claimed: one that has lost records gets them again.
const WATCH_INTERVAL: Duration = Duration::from_secs(20);

/// A log and what is in it.
pub struct LedgerLog {
    pub(super) topic: Box<dyn Log>,
    pub(super) key: LogKey,
    pub(super) contents: LogContents,
    /// This row of the ledger, and all before it since `base`, were seen in the log.
    pub(super) settled: Option<Head>,
    /// The rows of the ledger up to this one need not be there: of two usable checkpoints the older one, or the only one.
    pub(super) base: Option<LoggedCheckpoint>,
    /// Of two usable checkpoints the newer one.
    pub(super) newer: Option<LoggedCheckpoint>,
    /// Offset of the first piece of each row after the base, up to the one that is settled.
    pub(super) held: BTreeMap<u64, i64>,
    /// Deleted, or not to be asked for again: everything before the rows after this one.
    pub(super) trimmed: Option<Head>,
    /// Reason why records were not deleted.
    pub(super) refusal: Option<LedgerLogError>,
    /// Time at which it was last seen to hold all rows.
    seen: Option<Instant>,
    /// The newest mark that was appended.
    marked: Option<Head>,
    /// Rows that the ledger does not have.
    pub(super) remote_rows: RemoteRows,
}

impl fmt::Debug for LedgerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LedgerLog({})", self.topic.name())
    }
}

/// Takes records: each body that they make whole is passed to `each`, and `progress` is called with how many were taken, of how many.
struct LogFold<'l, F> {
    key: &'l LogKey,
    contents: &'l mut LogContents,
    remote_rows: &'l mut RemoteRows,
    has_begun: bool,
    each: F,
    taken: u64,
    expected: u64,
    progress: &'l mut dyn FnMut(u64, u64),
}

impl<F: FnMut(CompletedBody)> LogReader for LogFold<'_, F> {
    fn begin(&mut self) {
        *self.contents = LogContents::default();
        self.remote_rows.forget_all();
        self.has_begun = true;
    }

    fn expect(&mut self, records: u64) {
        self.expected = records;
    }

    fn take(&mut self, offset: i64, record: &[u8]) {
        self.taken += 1;
        (self.progress)(self.taken, self.expected);
        match self.contents.take_record(self.key, offset, record) {
            Some(CompletedBody::Row(body)) if self.remote_rows.wants(&body) => {
                self.remote_rows.keep(body)
            }
            Some(whole) => (self.each)(whole),
            None => {}
        }
    }
}

impl LedgerLog {
    /// A log of which nothing was read yet.
    pub fn new(topic: Box<dyn Log>, key: LogKey) -> Self {
        LedgerLog {
            topic,
            key,
            contents: LogContents::default(),
            settled: None,
            base: None,
            newer: None,
            held: BTreeMap::new(),
            trimmed: None,
            refusal: None,
            seen: None,
            marked: None,
            remote_rows: RemoteRows::default(),
        }
    }

    pub(super) fn name(&self) -> String {
        self.topic.name().to_owned()
    }

    pub(super) fn contents(&self) -> &LogContents {
        &self.contents
    }

    /// Returns true if the bodies that were read are enough to build the ledger with the newest row `accepted`.
    pub(crate) fn can_build(&self, accepted: &Head) -> bool {
        self.contents.chain_to(*accepted).is_ok()
    }

    /// Reads what was added.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(&mut self) -> Result<(), LedgerLogError> {
        self.read_each(|_| {}, &mut |_, _| {})
    }

    /// Reads everything again.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn read_all(
        &mut self,
        each: impl FnMut(CompletedBody),
    ) -> Result<(), LedgerLogError> {
        self.read_all_with_progress(each, &mut |_, _| {})
    }

    /// Reads everything again; `progress` is called with how many records are read, of how many at most.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn read_all_with_progress(
        &mut self,
        each: impl FnMut(CompletedBody),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), LedgerLogError> {
        self.topic.rewind();
        self.read_each(each, progress)
    }

    fn read_each(
        &mut self,
        each: impl FnMut(CompletedBody),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), LedgerLogError> {
        let mut fold = LogFold {
            key: &self.key,
            contents: &mut self.contents,
            remote_rows: &mut self.remote_rows,
            has_begun: false,
            each,
            taken: 0,
            expected: 0,
            progress,
        };
        let read = self.topic.read(&mut fold);
        if fold.has_begun {
            self.settled = None;
            self.base = None;
            self.newer = None;
            self.marked = None;
            self.trimmed = None;
            self.seen = None;
            self.held.clear();
        }
        read
    }

    /// Returns true if it says that anything was published.
    pub fn has_marks(&self) -> bool {
        self.contents.has_marks()
    }

    /// Returns once all rows of the ledger from a checkpoint up to `head`, its newest, were read in the log: what is missing is appended,
    /// a checkpoint too.
    ///
    /// # Errors
    ///
    /// If the log or the ledger cannot be read, or if that takes long: then the next call goes on.
    pub(crate) fn hold_rows(
        &mut self,
        connection: &Connection,
        file: &Path,
        head: Head,
    ) -> Result<(), crate::LedgerError> {
        self.read()?;
        self.choose_base(connection, file, head.sequence)?;
        if self.base.is_none() {
            self.add_checkpoint(connection, file, head)?;
        }
        if self.base.is_none()
            && RowGap::read(connection)
                .map_err(crate::LedgerError::sqlite(file))?
                .is_some()
        {
            return Err(crate::LedgerError::damaged(
                file,
                "it has no checkpoint after the rows that are missing in it",
            ));
        }
        self.append_missing(connection, file, head)?;
        self.add_checkpoint(connection, file, head)?;
        self.seen = Some(Instant::now());
        Ok(())
    }

    /// Appends every row of a ledger that is replaced, and that may be the last one to have it.
    ///
    /// # Errors
    ///
    /// As for [`hold_rows`](Self::hold_rows).
    pub(crate) fn fill_with(
        &mut self,
        connection: &Connection,
        file: &Path,
        head: Head,
        has_gap: bool,
    ) -> Result<(), crate::LedgerError> {
        self.read()?;
        // Of the rows in the gap only a checkpoint can take the place. Elsewhere it might be of no use: its states of noise may be those of
        // rows that were not accepted.
        if has_gap {
            self.hold_rows(connection, file, head)
        } else {
            self.append_missing(connection, file, head)
        }
    }

    /// Appends the rows after the base that are not there.
    fn append_missing(
        &mut self,
        connection: &Connection,
        file: &Path,
        head: Head,
    ) -> Result<(), crate::LedgerError> {
        let begun = Instant::now();
        loop {
            let missing = self.find_missing(connection, file)?;
            let (Some(first), Some(last)) = (missing.first(), missing.last()) else {
                // What comes after the base may be accepted, whoever's it is, and is not to be deleted.
                if let Some(base) = self.base {
                    self.contents.forget_to(base.row.sequence);
                }
                return Ok(());
            };
            let first = first.head;
            let last = last.head;
            let mut records = Vec::new();
            for row in missing {
                records.extend(split_body(&row.sealed, self.topic.largest()));
            }
            self.topic.append(&records)?;
            // Whatever was acknowledged: what was read is there.
            self.read()?;
            if self.settled != Some(first) && self.contents.row(&first.digest).is_none() {
                return Err(LedgerLogError::Unseen {
                    name: self.name(),
                    sequence: first.sequence,
                }
                .into());
            }
            if begun.elapsed() > LONGEST_FILL && last != head {
                return Err(LedgerLogError::Filling {
                    name: self.name(),
                    row: last.sequence,
                    newest: head.sequence,
                }
                .into());
            }
        }
    }

    /// Returns true if it is to be read again, although nothing is claimed.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.seen.is_none_or(|seen| seen.elapsed() > WATCH_INTERVAL)
    }

    /// The first rows that are not in the log, encrypted.
    fn find_missing(
        &mut self,
        connection: &Connection,
        file: &Path,
    ) -> Result<Vec<MissingRow>, crate::LedgerError> {
        let mut missing = Vec::new();
        let mut bytes = 0;
        let mut previous = self.settled;
        let after = previous.map_or(i64::MIN, |head| {
            i64::try_from(head.sequence).unwrap_or(i64::MAX)
        });
        let walked = pages::each_entry(connection, file, after, i64::MAX, |entry| {
            let head = entry.head;
            let body = stored_body(connection, entry).map_err(crate::LedgerError::sqlite(file))?;
            let known = self
                .contents
                .row(&head.digest)
                .filter(|known| has_all_of(known, &body))
                .copied();
            let is_there = known.is_some();
            if let Some(known) = known
                && missing.is_empty()
            {
                self.settled = Some(head);
                self.held.insert(head.sequence, known.first);
                self.contents.forget_row(&head.digest);
            } else if !is_there {
                let sealed = seal_row(&self.key, &body, previous.map(|head| head.digest))
                    .ok_or(crate::LedgerError::Randomness)?;
                bytes += sealed.len();
                missing.push(MissingRow { head, sealed });
            }
            previous = Some(head);
            if bytes > PORTION_BYTES || missing.len() >= PORTION_ROWS {
                Err(WalkEnd::Enough)
            } else {
                Ok(())
            }
        });
        match walked {
            Err(WalkEnd::Failed(error)) => Err(error),
            Ok(()) | Err(WalkEnd::Enough) => Ok(missing),
        }
    }

    /// The rows of the ledger up to `head` that are not in the log and should be, at most some hundred of them.
    pub(crate) fn missing_rows(
        &mut self,
        connection: &Connection,
        file: &Path,
        head: Head,
    ) -> Result<Vec<Head>, crate::LedgerError> {
        self.choose_base(connection, file, head.sequence)?;
        let mut rows = Vec::new();
        for row in self.find_missing(connection, file)? {
            if row.head.sequence <= head.sequence {
                rows.push(row.head);
            }
        }
        Ok(rows)
    }

    /// Says in the log that everything up to the row `published` was published, once.
    ///
    /// # Errors
    ///
    /// If that may not have been written. Nothing rests on it: whoever does not know it publishes the same bytes again.
    pub(crate) fn mark_published(&mut self, published: Head) -> Result<(), LedgerLogError> {
        if self.marked == Some(published) || self.contents.is_marked(&published) {
            return Ok(());
        }
        if let Some(whole) = seal_mark(&self.key, published) {
            self.topic
                .append(&split_body(&whole, self.topic.largest()))?;
            self.marked = Some(published);
        }
        Ok(())
    }

    /// Says in the log that whoever claimed `accepted` hands over.
    ///
    /// # Errors
    ///
    /// If that may not have been written. Nothing rests on it: whoever does not know it waits longer.
    pub(crate) fn resign_leadership(
        &mut self,
        accepted: Head,
        at: Timestamp,
    ) -> Result<(), LedgerLogError> {
        match seal_handover(&self.key, accepted, at) {
            Some(whole) => self.topic.append(&split_body(&whole, self.topic.largest())),
            None => Ok(()),
        }
    }

    /// Numbers of rows and of bytes that were read.
    pub fn extent(&self) -> (usize, u64) {
        (self.contents.row_count(), self.contents.bytes)
    }
}

/// A row that the log does not have.
struct MissingRow {
    head: Head,
    /// Its body, encrypted.
    sealed: Vec<u8>,
}

/// Reason why a walk over the rows ends early.
enum WalkEnd {
    Enough,
    Failed(crate::LedgerError),
}

impl From<crate::LedgerError> for WalkEnd {
    fn from(error: crate::LedgerError) -> Self {
        WalkEnd::Failed(error)
    }
}

/// Returns true if the log has all of a row that the disk has.
fn has_all_of(known: &KnownRow, body: &RowBody) -> bool {
    known.states >= body.states.len() && (known.has_messages || body.messages.is_none())
}

/// Reads all that the disk has of a row.
fn stored_body(connection: &Connection, entry: LedgerEntry) -> rusqlite::Result<RowBody> {
    let sequence = entry.sequence()?;
    let messages = "SELECT key, headers, bytes FROM outbox WHERE sequence = ?1 ORDER BY place";
    let mut messages = connection.prepare(messages)?;
    let messages = messages.query_map(params![sequence], |row| {
        let bytes: Option<Vec<u8>> = row.get(2)?;
        Ok(bytes.map(|bytes| {
            Ok(BodyMessage {
                key: row.get(0)?,
                headers: row.get(1)?,
                bytes,
            })
        }))
    })?;
    // One without its bytes was published by an older program.
    let messages: Option<Vec<BodyMessage>> = messages
        .map(|sent| sent.and_then(Option::transpose))
        .collect::<rusqlite::Result<Option<_>>>()?;
    let states = "SELECT slot, salt, bytes FROM states WHERE sequence = ?1 ORDER BY slot";
    let mut states = connection.prepare(states)?;
    let states = states
        .query_map(params![sequence], RowNoise::read)?
        .collect::<rusqlite::Result<_>>()?;
    let is_dropped = messages.as_ref().is_some_and(Vec::is_empty) && pays_for_messages(&entry);
    Ok(RowBody {
        entry,
        messages: messages.filter(|_| !is_dropped),
        states,
    })
}

/// Returns true if a row has paid for messages.
fn pays_for_messages(entry: &LedgerEntry) -> bool {
    matches!(
        entry.row(),
        Ok(LedgerRow::Window(ClosedWindow {
            outcome: ReleaseOutcome::Released { .. },
            ..
        }))
    )
}
