//! Records that come one by one, each in a form of its own: JSON, Avro, Protobuf, or a line of a file.
//!
//! `docs/reference/records.md` is the specification. What becomes of a record is a pure function of its bytes, its message
//! timestamp and the
//! configuration: it never depends on another record, and nothing that is wrong with one stops the stream.

pub mod avro;
mod csv;
mod declared;
mod fields;
mod form;
mod gather;
mod json;
mod protobuf;
mod reader;
mod tree;

pub use self::csv::{CsvReader, split_line};
pub use self::declared::{DeclaredTypes, IdType, TimeFormat};
pub use self::fields::is_integer;
pub use self::form::{ImpossibleField, RecordForm, TopicFormat};
pub use self::gather::BatchBuilder;
pub use self::protobuf::{MessageType, WireField};
pub use self::reader::{LARGEST_RECORD, RecordReader};
pub use self::tree::UndeclaredType;
