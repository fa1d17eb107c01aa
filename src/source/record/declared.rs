//! What a configuration declares of fields that carry no type of their own, or one of several.

use serde::{Deserialize, Serialize};

pub use crate::source::times::TimeFormat;

/// The one type of a key or a user. Were both accepted, 1 and "1" would be one user in one form and two in another, with two caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdType {
    Text,
    Integer,
}

/// The declared types of the needed fields; the values of the domain are always numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub time: TimeFormat,
    /// Needed where there is a key.
    pub key: Option<IdType>,
    /// Needed where there are users.
    pub unit: Option<IdType>,
}
