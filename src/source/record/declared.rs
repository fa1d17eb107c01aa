//! What a configuration declares of fields that carry no type of their own, or one of several.

use serde::{Deserialize, Serialize};

use super::fields::{Scalar, time};

/// How an event time is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeFormat {
    /// Text with an offset, such as `2013-01-01T05:00:00Z`.
    #[default]
    Rfc3339,
    /// The integers are since 1970-01-01T00:00:00 UTC.
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl TimeFormat {
    /// The microseconds of an integer in this unit, rounded down; `None` on overflow, and where times are text.
    pub(in crate::source) fn micros(self, count: i128) -> Option<i64> {
        let micros = match self {
            TimeFormat::Rfc3339 => return None,
            TimeFormat::Seconds => count.checked_mul(1_000_000)?,
            TimeFormat::Milliseconds => count.checked_mul(1_000)?,
            TimeFormat::Microseconds => count,
            TimeFormat::Nanoseconds => count.div_euclid(1_000),
        };
        i64::try_from(micros).ok()
    }
}

impl TimeFormat {
    /// The microseconds of a text, by the same law wherever it stands; `None` where it is no time as declared.
    pub(in crate::source) fn read(self, text: &[u8]) -> Option<i64> {
        time(self, Scalar::Text(std::str::from_utf8(text).ok()?))
    }
}

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
