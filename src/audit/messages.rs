//! Rows and messages as a producer sends them.

use crate::clock::Timestamp;

/// One row of a message. Anything can be missing or wrong in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub time: Option<Timestamp>,
    pub key: Option<Vec<u8>>,
    pub unit: Option<Vec<u8>>,
    /// One a column of values, in the order of [`Columns::values`](crate::source::Columns::values).
    pub values: Vec<Option<f64>>,
}

/// A message in its place on the topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub partition: i32,
    /// The message timestamp.
    pub stamp: Timestamp,
    pub body: Body,
}

/// What a message holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Record batches of rows.
    Rows { batches: Vec<Vec<Row>>, texts: Texts },
    /// Bytes as they are.
    Raw(Vec<u8>),
}

/// How keys and units are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    #[default]
    Plain,
    /// Each value once, and an index for each row.
    Dictionary,
    /// Each value by its place in a buffer.
    Views,
    /// With offsets of 64 bits.
    Large,
}

impl Message {
    /// One batch of rows, plainly encoded.
    pub fn of(partition: i32, stamp: Timestamp, rows: Vec<Row>) -> Self {
        Message { partition, stamp, body: Body::Rows { batches: vec![rows], texts: Texts::Plain } }
    }

    /// Its rows, of all batches; none of raw bytes.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        let batches = if let Body::Rows { batches, .. } = &self.body { batches.as_slice() } else { &[] };
        batches.iter().flatten()
    }
}
