//! A place for the records of a log, and whoever reads them.

use super::error::LedgerLogError;

/// Whoever takes the records of a log.
pub trait LogReader {
    /// Begins anew: the next record is the first that the log has, and those that were taken before are void.
    fn begin(&mut self);

    /// At most so many records follow.
    fn expect(&mut self, _records: u64) {}

    /// Takes the record at `offset`.
    fn take(&mut self, offset: i64, record: &[u8]);
}

/// A place that records are appended to and read from.
pub trait Log: Send {
    /// Name of it, for messages.
    fn name(&self) -> &str;

    /// The most bytes of a record.
    fn largest(&self) -> usize;

    /// Passes on what was added since the last call; everything on the first one, and when it is not the log that it was.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or has become another one meanwhile: the next call begins at its beginning.
    fn read(&mut self, reader: &mut dyn LogReader) -> Result<(), LedgerLogError>;

    /// Has the next [`read`](Self::read) begin at the beginning.
    fn rewind(&mut self);

    /// Appends records. Only reading shows which of them are there, after `Ok` as well as after a transient error.
    ///
    /// # Errors
    ///
    /// If some may not have been written.
    fn append(&mut self, records: &[Vec<u8>]) -> Result<(), LedgerLogError>;

    /// Deletes the records before `offset`, if there are some.
    ///
    /// # Errors
    ///
    /// If they may still be there.
    fn delete_before(&mut self, offset: i64) -> Result<(), LedgerLogError>;
}
