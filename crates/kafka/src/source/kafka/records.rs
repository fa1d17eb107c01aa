//! Messages that are one record each.

use crate::source::record::{BatchBuilder, RecordReader, TopicFormat, UndeclaredType};
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::clock::Timestamp;

/// Reads messages that are one record each, and gathers them.
pub(super) struct MessageRecords {
    reader: RecordReader,
    gather: BatchBuilder,
}

impl MessageRecords {
    /// `None` where messages are Arrow.
    ///
    /// # Errors
    ///
    /// If the type of a key or a user is not declared.
    pub fn new(format: &TopicFormat, columns: &Columns) -> Result<Option<Self>, UndeclaredType> {
        let TopicFormat::Records { form, declared } = format else {
            return Ok(None);
        };
        let reader = RecordReader::new(form, columns, declared)?;
        Ok(Some(MessageRecords {
            reader,
            gather: BatchBuilder::new(columns),
        }))
    }

    /// Returns whether all that was taken has been returned.
    pub fn is_empty(&self) -> bool {
        self.gather.is_empty()
    }

    /// Takes a message; returns the batch before it where it does not belong to that. One without a timestamp or a payload, or
    /// that cannot be read, is dropped: it is a row without a time.
    pub fn take(
        &mut self,
        partition: i32,
        offset: i64,
        time: Option<Timestamp>,
        payload: Option<&[u8]>,
    ) -> Option<Batch> {
        let payload = payload.filter(|_| time.is_some());
        let row = payload.and_then(|payload| self.reader.read(payload).ok());
        self.gather.push_row(partition, offset, time, row)
    }

    /// Returns what was gathered, if there is anything.
    pub fn flush(&mut self) -> Option<Batch> {
        self.gather.take_batch()
    }
}
