//! Rows in one form, whatever they were read from.

use std::fmt;

use arrow_array::{Float64Array, Int64Array};

use crate::clock::Timestamp;
use crate::source::text::Text;
use crate::source::times::TimeFormat;

/// The columns named by the configuration; all others are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Event time; any Arrow timestamp or date.
    pub time: String,
    /// How a column of event times is written that has no type of its own for them, if that is declared; of records that are not
    /// Arrow it stands with what else is declared of them.
    pub time_format: Option<TimeFormat>,
    /// Group key; text or integers.
    pub key: Option<String>,
    /// Privacy unit; text or integers.
    pub unit: Option<String>,
    /// The values, in the order of the axes of the domain; any number type.
    pub values: Vec<String>,
}

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
    pub keys: Option<Text>,
    pub units: Option<Text>,
    /// One array for each axis, as long as `times`; null if missing. NaN and infinities are kept.
    pub values: Vec<Float64Array>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} rows, partition {}, offset {})", self.times.len(), self.partition, self.offset)
    }
}
