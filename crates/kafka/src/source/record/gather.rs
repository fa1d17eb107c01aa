//! Records gathered into batches: windows work through one batch far faster than through many of one row.

use arrow_array::builder::{BinaryBuilder, Float64Builder, Int64Builder};

use super::fields::Row;
use bernstream_release::source::batch::Batch;
use bernstream_release::source::columns::Columns;
use bernstream_release::source::text::Text;
use bernstream_synopsis::clock::Timestamp;

/// The most rows of a batch.
const MOST_ROWS: usize = 8192;
/// The most bytes of its keys and users, but for those of the last row.
const MOST_BYTES: usize = 4 << 20;

/// Where a record was: its partition, its offset and its message timestamp.
type Place = (i32, i64, Option<Timestamp>);

/// Rows for one batch: consecutive records of one partition (or lines of one file) with one message timestamp.
///
/// Where one batch ends and the next begins depends on when records were fetched, and changes nothing: the order of two records
/// of a partition, by the offset of the batch and then by the row in it, is that of their own offsets.
pub struct Gather {
    /// Of the first row.
    place: Option<Place>,
    rows: usize,
    bytes: usize,
    times: Int64Builder,
    keys: Option<BinaryBuilder>,
    units: Option<BinaryBuilder>,
    values: Vec<Float64Builder>,
}

impl Gather {
    pub fn new(columns: &Columns) -> Self {
        Gather {
            place: None,
            rows: 0,
            bytes: 0,
            times: Int64Builder::with_capacity(0),
            keys: columns
                .key
                .as_ref()
                .map(|_| BinaryBuilder::with_capacity(0, 0)),
            units: columns
                .unit
                .as_ref()
                .map(|_| BinaryBuilder::with_capacity(0, 0)),
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
    pub fn push(
        &mut self,
        partition: i32,
        offset: i64,
        message_time: Option<Timestamp>,
        row: Option<&Row>,
    ) -> Option<Batch> {
        let is_full = self.rows >= MOST_ROWS || self.bytes >= MOST_BYTES;
        let goes_on =
            |(first, _, time): Place| !is_full && first == partition && time == message_time;
        let before = if self.place.is_some_and(goes_on) {
            None
        } else {
            self.take()
        };
        self.place.get_or_insert((partition, offset, message_time));
        self.rows += 1;
        self.times.append_option(row.and_then(|row| row.time));
        let mut id = |builder: &mut Option<BinaryBuilder>, id: Option<&[u8]>| {
            self.bytes += id.map_or(0, <[u8]>::len);
            if let Some(builder) = builder {
                builder.append_option(id);
            }
        };
        id(&mut self.keys, row.and_then(|row| row.key.get()));
        id(&mut self.units, row.and_then(|row| row.unit.get()));
        for (at, values) in self.values.iter_mut().enumerate() {
            values.append_option(row.and_then(|row| row.values.get(at).copied().flatten()));
        }
        before
    }

    /// The rows so far as a batch, if there are any.
    pub fn take(&mut self) -> Option<Batch> {
        let (partition, offset, message_time) = self.place.take()?;
        (self.rows, self.bytes) = (0, 0);
        let text = |builder: &mut Option<BinaryBuilder>| {
            builder.as_mut().map(|builder| Text::from(builder.finish()))
        };
        Some(Batch {
            partition,
            offset,
            message_time,
            times: self.times.finish(),
            keys: text(&mut self.keys),
            units: text(&mut self.units),
            values: self.values.iter_mut().map(Float64Builder::finish).collect(),
            found: None,
        })
    }
}
