//! Rows in our own types, whatever they were read from.

use std::fmt;

use arrow::array::{Array, BinaryArray, Float64Array, Int64Array};

use crate::clock::Timestamp;

/// The columns that the configuration names; all others are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Event time; any Arrow timestamp.
    pub time: String,
    /// Group key; text or integers.
    pub key: Option<String>,
    /// Privacy unit; text or integers.
    pub unit: Option<String>,
    /// The values, in the order of the domain's axes; any number.
    pub values: Vec<String>,
}

/// The rows of one message (or of one run of rows of a file), in our own types. `Debug` shows none of them.
#[derive(Clone)]
pub struct Batch {
    /// Kafka partition, or the number of the file.
    pub partition: i32,
    /// Kafka offset, or the number of the batch in the file.
    pub offset: i64,
    /// The message timestamp; files have none.
    pub message_time: Option<Timestamp>,
    /// Event times, microseconds since 1970 UTC; null where missing or not representable.
    pub times: Int64Array,
    pub keys: Option<Text>,
    pub units: Option<Text>,
    /// One array an axis, of the length of `times`; null where missing. NaN and infinities are left as they are.
    pub values: Vec<Float64Array>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} rows, partition {}, offset {})", self.times.len(), self.partition, self.offset)
    }
}

/// A column of text (or of integers, written in decimal) as bytes; what is not UTF-8 is kept as it is.
#[derive(Clone, Debug)]
pub struct Text(pub BinaryArray);

impl Text {
    /// The bytes of a row; `None` where it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        (row < self.0.len() && self.0.is_valid(row)).then(|| self.0.value(row))
    }
}
