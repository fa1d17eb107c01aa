//! Formats of event times that have no type of their own.

use serde::{Deserialize, Serialize};

use super::scalar::{integer_part, parse_integer};
use crate::clock::Timestamp;

/// Format of an event time.
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
    pub fn micros(self, count: i128) -> Option<i64> {
        let micros = match self {
            TimeFormat::Rfc3339 => return None,
            TimeFormat::Seconds => count.checked_mul(1_000_000)?,
            TimeFormat::Milliseconds => count.checked_mul(1_000)?,
            TimeFormat::Microseconds => count,
            TimeFormat::Nanoseconds => count.div_euclid(1_000),
        };
        i64::try_from(micros).ok()
    }

    /// The microseconds of a text, by the same law wherever it stands; `None` where it is no time as declared.
    pub fn parse_micros(self, text: &str) -> Option<i64> {
        match self {
            TimeFormat::Rfc3339 => Timestamp::parse(text).map(Timestamp::micros),
            _ => self.micros(parse_integer(integer_part(text)?)?),
        }
    }
}
