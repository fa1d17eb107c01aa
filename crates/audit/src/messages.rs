//! Rows and messages as a producer sends them.

use std::sync::Arc;

use bernstream_synopsis::clock::Timestamp;

/// One row of a message. Anything can be missing or wrong in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputRow {
    pub time: Option<Timestamp>,
    pub key: Option<Arc<[u8]>>,
    pub unit: Option<Arc<[u8]>>,
    /// One a column of values, in the order of [`Columns::values`](bernstream_release::source::Columns::values).
    pub values: Vec<Option<f64>>,
}

/// A row that is tried, and its name in the report.
#[derive(Clone, Debug)]
pub(super) struct NamedRow {
    pub name: String,
    pub row: InputRow,
}

impl NamedRow {
    pub fn new(name: impl Into<String>, row: InputRow) -> Self {
        NamedRow {
            name: name.into(),
            row,
        }
    }
}

/// A message in its place on the topic.
#[derive(Clone, Debug, PartialEq)]
pub struct InputMessage {
    pub partition: i32,
    /// The message timestamp.
    pub stamp: Timestamp,
    /// Record batches of rows. A message without any has no schema either: no worker can read it.
    pub batches: Vec<Vec<InputRow>>,
    pub texts: TextForm,
    pub types: ColumnTypes,
}

/// The source of the types of a message's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnTypes {
    /// A schema: the same for every message.
    #[default]
    Declared,
    /// Its rows, as pyarrow and Polars infer them: a column of nulls has no type, and one of whole numbers is of integers.
    Inferred,
    /// Its rows, as pandas infers them: the same, but whole numbers and a null are floats.
    InferredByPandas,
}

/// The encoding of keys and units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    #[default]
    Plain,
    /// Each value once, and an index for each row.
    Dictionary,
    /// Each value by its place in a buffer.
    Views,
    /// With offsets of 64 bits.
    Large,
}

impl InputMessage {
    /// One batch of rows, plainly encoded.
    pub fn from_rows(partition: i32, stamp: Timestamp, rows: Vec<InputRow>) -> Self {
        InputMessage {
            partition,
            stamp,
            batches: vec![rows],
            texts: TextForm::Plain,
            types: ColumnTypes::Declared,
        }
    }

    /// Its rows, of all batches.
    pub fn rows(&self) -> impl Iterator<Item = &InputRow> {
        self.batches.iter().flatten()
    }
}
