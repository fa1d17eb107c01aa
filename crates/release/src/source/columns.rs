//! The columns that are read.

use bernstream_synopsis::key_parts::MOST_PARTS;
use bernstream_synopsis::scalar::IdType;
use bernstream_synopsis::times::TimeFormat;

/// Declared types of the columns of a key, in their order.
pub type PartTypes = [Option<IdType>; MOST_PARTS];

/// The columns named by the configuration; all others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Event time; any Arrow timestamp or date.
    pub time: String,
    /// Format of a column of event times that has no type of its own for them, if that is declared; of records that are not
    /// Arrow it stands with what else is declared of them.
    pub time_format: Option<TimeFormat>,
    /// Columns of the group key, at most [`MOST_PARTS`]; text or integers. None where there is no key.
    pub key: Vec<String>,
    /// One of the two types for each of them, if that is declared.
    pub key_types: PartTypes,
    /// Privacy unit; text or integers.
    pub unit: Option<String>,
    /// One of the two types, if that is declared.
    pub unit_type: Option<IdType>,
    /// The values, in the order of the axes of the domain; numbers, or text that holds them.
    pub values: Vec<String>,
}

impl Columns {
    /// Their names, whatever they are needed for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let first = std::iter::once(&self.time)
            .chain(&self.key)
            .chain(&self.unit);
        first.chain(&self.values).map(String::as_str)
    }
}
