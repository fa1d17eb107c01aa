//! A record as one JSON object (RFC 8259).
//!
//! What is not needed is passed over without recursion and without a copy, so depth is no danger; its syntax is checked.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::fields::{RecordRow, Scalar};
use super::tree::FieldTree;
use bernstream_release::source::broken::DecodeError;

/// Reads the needed fields.
///
/// # Errors
///
/// If it is not one JSON object in UTF-8, or has a needed name twice.
pub(super) fn read_object(
    payload: &[u8],
    tree: &FieldTree,
    row: &mut RecordRow,
) -> Result<(), DecodeError> {
    let text = std::str::from_utf8(payload).map_err(|_| DecodeError::new("it is not UTF-8"))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(DecodeError::new("it is not a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    JsonValue { tree, node: 0, row }
        .deserialize(&mut json)
        .map_err(DecodeError::new)?;
    json.end().map_err(DecodeError::new)
}

/// The value at a node of the tree.
struct JsonValue<'t> {
    tree: &'t FieldTree,
    node: usize,
    row: &'t mut RecordRow,
}

impl JsonValue<'_> {
    fn set(self, scalar: Scalar<'_>) {
        self.row.set_all(self.tree.roles(self.node), scalar);
    }
}

impl<'de> DeserializeSeed<'de> for JsonValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.set(Scalar::Text(text));
        Ok(())
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<(), E> {
        self.set(Scalar::Integer(integer.into()));
        Ok(())
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<(), E> {
        self.set(Scalar::Integer(integer.into()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.set(Scalar::Float(number));
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let JsonValue { tree, node, row } = self;
        while let Some(child) = fields.next_key_seed(JsonName { tree, node })? {
            match child {
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
                Some(child) if row.meet_node(child) => {
                    return Err(A::Error::custom("a needed name is there twice"));
                }
                Some(node) => fields.next_value_seed(JsonValue { tree, node, row })?,
            }
        }
        Ok(())
    }
}

/// The name of a field of the object at a node: its own node, if it is needed.
struct JsonName<'t> {
    tree: &'t FieldTree,
    node: usize,
}

impl<'de> DeserializeSeed<'de> for JsonName<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for JsonName<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.tree.child(self.node, name))
    }
}
