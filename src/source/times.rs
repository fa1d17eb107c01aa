//! How event times are written that have no type of their own.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

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
    pub(super) fn micros(self, count: i128) -> Option<i64> {
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
    pub(super) fn of_text(self, text: &str) -> Option<i64> {
        match self {
            TimeFormat::Rfc3339 => Timestamp::parse(text).map(Timestamp::micros),
            _ => self.micros(integer(text)?),
        }
    }
}

/// The integer that is written in its one form: no sign but `-`, no leading zero, no `-0`; from -2^63 to 2^64 - 1.
pub(super) fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_one_form = match digits.as_bytes() {
        [b'0'] => text == "0",
        [first, rest @ ..] => (b'1'..=b'9').contains(first) && rest.len() < 20 && rest.iter().all(u8::is_ascii_digit),
        [] => false,
    };
    let within = i128::from(i64::MIN)..=i128::from(u64::MAX);
    is_one_form.then(|| text.parse().ok()).flatten().filter(|integer| within.contains(integer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_form() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("42", Some(42)),
            ("18446744073709551615", Some(i128::from(u64::MAX))),
            ("-9223372036854775808", Some(i128::from(i64::MIN))),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
        let others =
            ["", "-", "-0", "00", "02", "+2", " 2", "2 ", "2.0", "1e3", "18446744073709551616", "0x1", "\u{661}"];
        assert_eq!(others.map(integer), [None; 13]);
        assert_eq!(integer("-9223372036854775809"), None);
        assert_eq!(integer(&"9".repeat(1_000_000)), None);
    }
}
