//! Bytes to [`Batch`](super::Batch): one Arrow IPC stream a message, from outside and so hostile.

use arrow::array::BinaryArray;

/// A column of text (or of integers, written in decimal) as bytes; what is not UTF-8 is kept as it is.
#[derive(Clone, Debug)]
pub struct Text(pub BinaryArray);
