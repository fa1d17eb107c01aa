//! What a configuration declares of fields that carry no type of their own, or one of several.

pub use bernstream_synopsis::scalar::IdType;
pub use bernstream_synopsis::times::TimeFormat;

use bernstream_release::source::columns::PartTypes;

/// The declared types of the needed fields; the values of the domain are always numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeclaredTypes {
    pub time: TimeFormat,
    /// One is needed for each column of a key.
    pub key: PartTypes,
    /// Needed where there are users.
    pub unit: Option<IdType>,
}
