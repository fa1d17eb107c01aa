//! The needed fields of one record. `docs/reference/records.md` says what each role takes.

use super::declared::IdType;
use crate::clock::Timestamp;
use crate::source::times::{TimeFormat, integer};

/// What a field is needed for, which decides the types that it may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Time(TimeFormat),
    Key(IdType),
    Unit(IdType),
    /// Its place in the values.
    Value(usize),
}

/// One value in a record. Whatever else there may be is mistyped for every role.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    /// From -2^63 to 2^64 - 1.
    Integer(i128),
    Float(f64),
}

/// The needed fields of one record, as far as they are there and have their types. `Debug` shows none of it.
#[derive(Default)]
pub struct Row {
    pub(super) time: Option<i64>,
    pub(super) key: Id,
    pub(super) unit: Id,
    pub(super) values: Vec<Option<f64>>,
    /// The nodes of the tree that have been met.
    seen: Vec<bool>,
}

/// The text of a key or a user; an integer in decimal.
#[derive(Default)]
pub(super) struct Id {
    bytes: Vec<u8>,
    is_there: bool,
}

impl Id {
    pub fn get(&self) -> Option<&[u8]> {
        self.is_there.then_some(self.bytes.as_slice())
    }

    fn set(&mut self, kind: IdType, scalar: Scalar<'_>) {
        self.bytes.clear();
        self.is_there = true;
        match (kind, scalar) {
            (IdType::Text, Scalar::Text(text)) => self.bytes.extend_from_slice(text.as_bytes()),
            (IdType::Text, Scalar::Bytes(bytes)) => self.bytes.extend_from_slice(bytes),
            (IdType::Integer, Scalar::Integer(integer)) => {
                self.bytes.extend_from_slice(integer.to_string().as_bytes());
            }
            (IdType::Integer, Scalar::Text(text)) if is_integer(text) => self.bytes.extend_from_slice(text.as_bytes()),
            _ => self.is_there = false,
        }
    }
}

impl Row {
    /// The event time, if it is there.
    pub fn time(&self) -> Option<Timestamp> {
        self.time.map(Timestamp::from_micros)
    }

    /// Forgets the record before.
    pub(super) fn clear(&mut self, values: usize, nodes: usize) {
        self.time = None;
        (self.key.is_there, self.unit.is_there) = (false, false);
        self.values.clear();
        self.values.resize(values, None);
        self.seen.clear();
        self.seen.resize(nodes, false);
    }

    /// Notes that a node of the tree was met; whether it was before.
    pub(super) fn meets(&mut self, node: usize) -> bool {
        self.seen.get_mut(node).is_none_or(|seen| std::mem::replace(seen, true))
    }

    /// Takes a value for a role; one of another type counts as missing.
    pub(super) fn set(&mut self, role: Role, scalar: Scalar<'_>) {
        match role {
            Role::Time(format) => self.time = time(format, scalar),
            Role::Key(kind) => self.key.set(kind, scalar),
            Role::Unit(kind) => self.unit.set(kind, scalar),
            Role::Value(at) => {
                if let Some(value) = self.values.get_mut(at) {
                    *value = value_of(scalar);
                }
            }
        }
    }
}

fn time(format: TimeFormat, scalar: Scalar<'_>) -> Option<i64> {
    match scalar {
        Scalar::Integer(count) => format.micros(count),
        Scalar::Text(text) => format.of_text(text),
        Scalar::Bytes(_) | Scalar::Float(_) => None,
    }
}

/// The nearest `f64`; text holds one number as in JSON.
fn value_of(scalar: Scalar<'_>) -> Option<f64> {
    match scalar {
        #[expect(clippy::cast_precision_loss, reason = "the nearest one is meant")]
        Scalar::Integer(integer) => Some(integer as f64),
        Scalar::Float(number) => Some(number),
        Scalar::Text(text) if is_number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        Scalar::Text(_) | Scalar::Bytes(_) => None,
    }
}

/// Whether a field that is declared an integer can have this text.
pub fn is_integer(text: &str) -> bool {
    integer(text).is_some()
}

/// Whether text is a number by the grammar of JSON (RFC 8259, section 6).
fn is_number(text: &str) -> bool {
    fn digits(bytes: &[u8]) -> Option<&[u8]> {
        let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        bytes.get(count..).filter(|_| count > 0)
    }
    let number = || {
        let bytes = text.as_bytes();
        let mut rest = match bytes.strip_prefix(b"-").unwrap_or(bytes) {
            [b'0', rest @ ..] => rest,
            rest => digits(rest)?,
        };
        if let [b'.', after @ ..] = rest {
            rest = digits(after)?;
        }
        if let [b'e' | b'E', after @ ..] = rest {
            rest = digits(match after {
                [b'+' | b'-', after @ ..] => after,
                after => after,
            })?;
        }
        rest.is_empty().then_some(())
    };
    number().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_text_is_one_of_json() {
        for (text, expected) in [("12.50", 12.5), ("-0", -0.0), ("1e3", 1000.0), ("2.5E-1", 0.25), ("0.1", 0.1)] {
            assert_eq!(value_of(Scalar::Text(text)), Some(expected), "{text}");
        }
        let others = [
            "", "-", ".5", "5.", "01", "+1", "1e", "1e+", "NaN", "inf", "Infinity", " 1", "1 ", "1,5", "0x10", "1e999",
        ];
        for text in others {
            assert_eq!(value_of(Scalar::Text(text)), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_of_its_declared_form_and_no_other() {
        let text = Scalar::Text("1970-01-01T01:00:00.0000019+01:00");
        assert_eq!(time(TimeFormat::Rfc3339, text), Some(1));
        assert_eq!(time(TimeFormat::Rfc3339, Scalar::Integer(1)), None);
        assert_eq!(time(TimeFormat::Seconds, Scalar::Integer(-2)), Some(-2_000_000));
        assert_eq!(time(TimeFormat::Nanoseconds, Scalar::Text("-1")), Some(-1));
        assert_eq!(time(TimeFormat::Milliseconds, Scalar::Integer(i128::from(i64::MAX))), None);
        assert_eq!(time(TimeFormat::Milliseconds, Scalar::Float(1.0)), None);
        assert_eq!(time(TimeFormat::Milliseconds, text), None);
    }
}
