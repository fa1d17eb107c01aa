//! Rows in one form, whatever they were read from.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Float64Array, Int64Array};

use crate::source::found::FoundColumns;
use crate::source::key_rows::KeyRows;
use crate::source::text::TextColumn;
use bernstream_synopsis::clock::Timestamp;

/// The rows of one message, or of one batch of a file. `Debug` shows none of them.
#[derive(Clone)]
pub struct Batch {
    /// Kafka partition, or the number of the file.
    pub partition: i32,
    /// Kafka offset, of the first of several messages; in a file the number of the batch, or of the first of its lines.
    pub offset: i64,
    /// The message timestamp; files have none.
    pub message_time: Option<Timestamp>,
    /// Event times in microseconds since 1970-01-01 UTC; null if missing or out of range.
    pub times: Int64Array,
    pub keys: Option<KeyRows>,
    pub units: Option<TextColumn>,
    /// One array for each axis, as long as `times`; null if missing. NaN and infinities are kept.
    pub values: Vec<Float64Array>,
    /// The columns as the table has them that the rows come from; `None` where each row is a record with fields of its own.
    pub found: Option<Arc<FoundColumns>>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Batch({} rows, partition {}, offset {})",
            self.times.len(),
            self.partition,
            self.offset
        )
    }
}
