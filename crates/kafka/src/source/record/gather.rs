//! Records gathered into batches: windows work through one batch far faster than through many of one row.

use arrow_array::builder::{BinaryBuilder, Float64Builder, Int64Builder};

use super::fields::RecordRow;
use bernstream_release::source::batch::Batch;
use bernstream_release::source::columns::Columns;
use bernstream_release::source::key_rows::KeyRows;
use bernstream_release::source::rows::BatchOrigin;
use bernstream_release::source::text::TextColumn;
use bernstream_synopsis::clock::Timestamp;

/// The most rows of a batch.
const MOST_ROWS: usize = 8192;
/// The most bytes of its keys and users, but for those of the last row.
const MOST_BYTES: usize = 4 << 20;

/// Rows for one batch: consecutive records of one partition (or lines of one file) with one message timestamp.
///
/// Where one batch ends and the next begins depends on when records were fetched, and changes nothing: the order of two records
/// of a partition, by the offset of the batch and then by the row in it, is that of their own offsets.
pub struct BatchBuilder {
    /// Where the first row was.
    origin: Option<BatchOrigin>,
    rows: usize,
    bytes: usize,
    times: Int64Builder,
    /// A column for each part of the key.
    keys: Vec<BinaryBuilder>,
    units: Option<BinaryBuilder>,
    values: Vec<Float64Builder>,
}

impl BatchBuilder {
    pub fn new(columns: &Columns) -> Self {
        BatchBuilder {
            origin: None,
            rows: 0,
            bytes: 0,
            times: Int64Builder::with_capacity(0),
            keys: columns.key.iter().map(|_| empty_ids()).collect(),
            units: columns.unit.as_ref().map(|_| empty_ids()),
            values: columns
                .values
                .iter()
                .map(|_| Float64Builder::with_capacity(0))
                .collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds the row of the record at an offset, `None` for a record that could not be read: it stands in its place without a time, so that it is dropped.
    /// Returns the batch before it where it does not belong to that.
    pub fn push_row(
        &mut self,
        partition: i32,
        offset: i64,
        message_time: Option<Timestamp>,
        row: Option<&RecordRow>,
    ) -> Option<Batch> {
        let is_full = self.rows >= MOST_ROWS || self.bytes >= MOST_BYTES;
        let goes_on = !is_full
            && self.origin.is_some_and(|first| {
                first.partition == partition && first.message_time == message_time
            });
        let before = if goes_on { None } else { self.take_batch() };
        self.origin.get_or_insert(BatchOrigin {
            partition,
            offset,
            message_time,
        });
        self.rows += 1;
        self.times.append_option(row.and_then(|row| row.time));
        for (part, column) in self.keys.iter_mut().enumerate() {
            let text = row.and_then(|row| row.key.get(part)?.get());
            self.bytes += append_id(column, text);
        }
        if let Some(column) = &mut self.units {
            self.bytes += append_id(column, row.and_then(|row| row.unit.get()));
        }
        for (at, values) in self.values.iter_mut().enumerate() {
            values.append_option(row.and_then(|row| row.values.get(at).copied().flatten()));
        }
        before
    }

    /// The rows so far as a batch, if there are any.
    pub fn take_batch(&mut self) -> Option<Batch> {
        let origin = self.origin.take()?;
        self.rows = 0;
        self.bytes = 0;
        Some(Batch {
            partition: origin.partition,
            offset: origin.offset,
            message_time: origin.message_time,
            times: self.times.finish(),
            keys: KeyRows::of_parts(self.keys.iter_mut().map(finish_ids).collect()),
            units: self.units.as_mut().map(finish_ids),
            values: self.values.iter_mut().map(Float64Builder::finish).collect(),
            found: None,
        })
    }
}

fn empty_ids() -> BinaryBuilder {
    BinaryBuilder::with_capacity(0, 0)
}

/// Appends a part of a key, or a user; returns its length in bytes.
fn append_id(column: &mut BinaryBuilder, id: Option<&[u8]>) -> usize {
    column.append_option(id);
    id.map_or(0, <[u8]>::len)
}

fn finish_ids(column: &mut BinaryBuilder) -> TextColumn {
    TextColumn::from(column.finish())
}
