//! The needed fields of one record. `docs/reference/records.md` says what each role takes.

use super::declared::IdType;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::key_parts::MOST_PARTS;
use bernstream_synopsis::scalar::{
    OF_DOUBLE, OF_SINGLE, integer_of, integer_part, parse_integer, parse_number,
};
use bernstream_synopsis::times::TimeFormat;

/// Purpose of a field, which decides the types that it may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldRole {
    Time(TimeFormat),
    Key(KeyField),
    Unit(IdType),
    /// Its place in the values.
    Value(usize),
}

/// A field that is the key, or a part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyField {
    /// Its place among the parts.
    pub part: usize,
    pub kind: IdType,
}

/// Content of a field, as a schema says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldContent {
    /// Strings, and the symbols of an enum.
    Text,
    Bytes,
    Numbers,
    /// Integers that are times, in this form.
    Times(TimeFormat),
    /// Timestamps of Protobuf.
    Timestamps,
    /// Counts as null whatever it is needed for.
    Nothing,
}

/// A type that a field can have.
#[derive(Clone, Debug)]
pub(super) struct FieldType {
    pub content: FieldContent,
    /// For people.
    pub name: String,
}

impl FieldRole {
    /// Returns whether a field with this content can have what is needed.
    pub fn can_take(self, content: FieldContent) -> bool {
        match content {
            FieldContent::Nothing => false,
            FieldContent::Text => true,
            FieldContent::Bytes => self.id_type() == Some(IdType::Text),
            FieldContent::Timestamps => matches!(self, FieldRole::Time(TimeFormat::Rfc3339)),
            FieldContent::Numbers => match self {
                FieldRole::Time(declared) => declared != TimeFormat::Rfc3339,
                FieldRole::Value(_) => true,
                id => id.id_type() == Some(IdType::Integer),
            },
            FieldContent::Times(format) => match self {
                FieldRole::Time(declared) => declared == format,
                FieldRole::Value(_) => true,
                id => id.id_type() == Some(IdType::Integer),
            },
        }
    }

    /// The type of a key or a user.
    fn id_type(self) -> Option<IdType> {
        match self {
            FieldRole::Key(KeyField { kind, .. }) | FieldRole::Unit(kind) => Some(kind),
            FieldRole::Time(_) | FieldRole::Value(_) => None,
        }
    }

    pub fn requirement(self) -> &'static str {
        match self {
            FieldRole::Time(TimeFormat::Rfc3339) => {
                "the event time must be text or a Timestamp, unless input.time_format says in which unit it is"
            }
            FieldRole::Time(_) => {
                "the event time must be a number or text, in the unit that input.time_format says"
            }
            FieldRole::Key(KeyField {
                kind: IdType::Text, ..
            }) => "a key must be text or bytes, as its type says",
            FieldRole::Key(KeyField {
                kind: IdType::Integer,
                ..
            }) => "a key must be a number or text, as its type says",
            FieldRole::Unit(IdType::Text) => "a user must be text or bytes, as its type says",
            FieldRole::Unit(IdType::Integer) => "a user must be a number or text, as its type says",
            FieldRole::Value(_) => "a value must be a number, or text that holds one",
        }
    }
}

/// One value in a record. Whatever else there may be is mistyped for every role.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    /// From -2^63 to 2^64 - 1.
    Integer(i128),
    /// A number of 64 bits.
    Float(f64),
    /// A number of 32 bits.
    Single(f32),
}

impl Scalar<'_> {
    /// The integer that a number is.
    fn integer(self) -> Option<i128> {
        match self {
            Scalar::Integer(integer) => Some(integer),
            Scalar::Float(float) => integer_of(float, OF_DOUBLE),
            Scalar::Single(float) => integer_of(float.into(), OF_SINGLE),
            Scalar::Text(_) | Scalar::Bytes(_) => None,
        }
    }
}

/// The needed fields of one record, as far as they are there and have their types. `Debug` shows none of it.
#[derive(Default)]
pub struct RecordRow {
    pub(super) time: Option<i64>,
    /// The parts of the key; those that there are no columns for are never there.
    pub(super) key: [RecordId; MOST_PARTS],
    pub(super) unit: RecordId,
    pub(super) values: Vec<Option<f64>>,
    /// The nodes of the tree that have been met.
    seen: Vec<bool>,
}

/// The text of a key or a user; an integer in decimal.
#[derive(Default)]
pub(super) struct RecordId {
    bytes: Vec<u8>,
    is_there: bool,
}

impl RecordId {
    pub fn get(&self) -> Option<&[u8]> {
        self.is_there.then_some(self.bytes.as_slice())
    }

    fn set(&mut self, kind: IdType, scalar: Scalar<'_>) {
        self.bytes.clear();
        let digits;
        let bytes = match kind {
            IdType::Text => match scalar {
                Scalar::Text(text) => Some(text.as_bytes()),
                Scalar::Bytes(bytes) => Some(bytes),
                _ => None,
            },
            IdType::Integer => match scalar {
                Scalar::Text(text) => integer_part(text).map(str::as_bytes),
                number => {
                    digits = number.integer().map(|integer| integer.to_string());
                    digits.as_deref().map(str::as_bytes)
                }
            },
        };
        self.is_there = bytes.is_some();
        self.bytes.extend_from_slice(bytes.unwrap_or_default());
    }
}

impl RecordRow {
    /// The event time, if it is there.
    pub fn time(&self) -> Option<Timestamp> {
        self.time.map(Timestamp::from_micros)
    }

    /// Forgets the record before.
    pub(super) fn clear(&mut self, values: usize, nodes: usize) {
        self.time = None;
        for part in &mut self.key {
            part.is_there = false;
        }
        self.unit.is_there = false;
        self.values.clear();
        self.values.resize(values, None);
        self.seen.clear();
        self.seen.resize(nodes, false);
    }

    /// Notes that a node of the tree was met; returns whether it was before.
    pub(super) fn meet_node(&mut self, node: usize) -> bool {
        self.seen
            .get_mut(node)
            .is_none_or(|seen| std::mem::replace(seen, true))
    }

    /// Takes a value for a role; one of another type counts as missing.
    pub(super) fn set_role(&mut self, role: FieldRole, scalar: Scalar<'_>) {
        match role {
            FieldRole::Time(format) => self.time = micros_of(format, scalar),
            FieldRole::Key(KeyField { part, kind }) => {
                if let Some(part) = self.key.get_mut(part) {
                    part.set(kind, scalar);
                }
            }
            FieldRole::Unit(kind) => self.unit.set(kind, scalar),
            FieldRole::Value(at) => {
                if let Some(value) = self.values.get_mut(at) {
                    *value = value_of(scalar);
                }
            }
        }
    }

    /// Takes a value for all of these roles.
    pub(super) fn set_all(&mut self, roles: &[FieldRole], scalar: Scalar<'_>) {
        for role in roles {
            self.set_role(*role, scalar);
        }
    }
}

fn micros_of(format: TimeFormat, scalar: Scalar<'_>) -> Option<i64> {
    match scalar {
        Scalar::Text(text) => format.parse_micros(text),
        number => format.micros(number.integer()?),
    }
}

/// The nearest `f64`; text holds one number as in JSON.
fn value_of(scalar: Scalar<'_>) -> Option<f64> {
    match scalar {
        #[expect(clippy::cast_precision_loss, reason = "the nearest one is meant")]
        Scalar::Integer(integer) => Some(integer as f64),
        Scalar::Float(number) => Some(number),
        Scalar::Single(number) => Some(number.into()),
        Scalar::Text(text) => parse_number(text),
        Scalar::Bytes(_) => None,
    }
}

/// Returns whether a text is an integer in its one form, in which a key of that type is compared.
pub fn is_integer(text: &str) -> bool {
    parse_integer(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one of these values is what a role needs.
    fn takes(role: FieldRole, scalars: &[Scalar<'_>]) -> bool {
        scalars.iter().any(|scalar| {
            let mut row = RecordRow::default();
            row.clear(1, 0);
            row.set_role(role, *scalar);
            row.time.is_some()
                || row.key[0].is_there
                || row.unit.is_there
                || row.values.iter().any(Option::is_some)
        })
    }

    #[test]
    fn a_role_can_take_a_content_if_it_takes_one_of_its_values() {
        let times = [
            TimeFormat::Rfc3339,
            TimeFormat::Seconds,
            TimeFormat::Milliseconds,
            TimeFormat::Nanoseconds,
        ];
        let ids = [IdType::Text, IdType::Integer];
        let roles = times
            .map(FieldRole::Time)
            .into_iter()
            .chain(ids.map(|kind| FieldRole::Key(KeyField { part: 0, kind })))
            .chain(ids.map(FieldRole::Unit));
        let contents: [(FieldContent, &[Scalar<'_>]); 4] = [
            (
                FieldContent::Text,
                &[Scalar::Text("7"), Scalar::Text("2026-01-01T00:00:00Z")],
            ),
            (
                FieldContent::Bytes,
                &[Scalar::Bytes(b"7"), Scalar::Bytes(b"2026-01-01T00:00:00Z")],
            ),
            (
                FieldContent::Numbers,
                &[Scalar::Integer(7), Scalar::Float(7.0), Scalar::Single(7.0)],
            ),
            (FieldContent::Nothing, &[]),
        ];
        for role in roles.chain([FieldRole::Value(0)]) {
            for (content, scalars) in contents {
                assert_eq!(
                    role.can_take(content),
                    takes(role, scalars),
                    "{role:?} {content:?}"
                );
            }
        }
        let in_millis = FieldContent::Times(TimeFormat::Milliseconds);
        assert!(
            FieldRole::Time(TimeFormat::Milliseconds).can_take(in_millis)
                && FieldRole::Value(0).can_take(in_millis)
        );
        assert!(
            !FieldRole::Time(TimeFormat::Microseconds).can_take(in_millis)
                && !FieldRole::Unit(IdType::Text).can_take(in_millis)
        );
        assert!(FieldRole::Time(TimeFormat::Rfc3339).can_take(FieldContent::Timestamps));
        assert!(
            !FieldRole::Time(TimeFormat::Seconds).can_take(FieldContent::Timestamps)
                && !FieldRole::Value(0).can_take(FieldContent::Timestamps)
        );
    }

    #[test]
    fn a_time_is_of_its_declared_form_and_no_other() {
        let text = Scalar::Text("1970-01-01T01:00:00.0000019+01:00");
        assert_eq!(micros_of(TimeFormat::Rfc3339, text), Some(1));
        assert_eq!(micros_of(TimeFormat::Rfc3339, Scalar::Integer(1)), None);
        assert_eq!(
            micros_of(TimeFormat::Seconds, Scalar::Integer(-2)),
            Some(-2_000_000)
        );
        assert_eq!(
            micros_of(TimeFormat::Nanoseconds, Scalar::Text("-1")),
            Some(-1)
        );
        assert_eq!(
            micros_of(
                TimeFormat::Milliseconds,
                Scalar::Integer(i128::from(i64::MAX))
            ),
            None
        );
        for float in [Scalar::Float(1.0), Scalar::Single(1.0), Scalar::Text("1.0")] {
            assert_eq!(
                micros_of(TimeFormat::Milliseconds, float),
                Some(1_000),
                "{float:?}"
            );
        }
        assert_eq!(
            micros_of(TimeFormat::Milliseconds, Scalar::Float(1.5)),
            None
        );
        assert_eq!(micros_of(TimeFormat::Rfc3339, Scalar::Float(1.0)), None);
        assert_eq!(micros_of(TimeFormat::Milliseconds, text), None);
    }
}
