//! The keys of `[input]` as written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::text::Spanned;

/// `values` of `key`.
#[derive(Clone, Debug)]
pub enum WrittenKeys {
    /// Every key.
    Listed(Vec<Spanned<WrittenKey>>),
    /// The values of each column: every combination is a key.
    Combined(Vec<WrittenPartValues>),
}

/// A key of one column, or the parts of a key of several.
#[derive(Clone, Debug)]
pub enum WrittenKey {
    Text(String),
    Parts(Vec<Spanned<String>>),
}

/// The values of one column of the key.
#[derive(Clone, Debug)]
pub struct WrittenPartValues {
    pub column: String,
    pub values: Spanned<Vec<Spanned<String>>>,
}

/// `other` of `key`.
#[derive(Clone, Debug)]
pub enum WrittenOther {
    /// One name, for each column.
    Text(String),
    /// The names of some columns.
    OfColumns(Vec<WrittenOtherName>),
}

/// The name of everything that is not listed of one column of the key.
#[derive(Clone, Debug)]
pub struct WrittenOtherName {
    pub column: String,
    pub name: Spanned<String>,
}

/// Written by hand, because an untagged enum would lose the positions of everything inside.
impl<'de> Deserialize<'de> for WrittenKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = WrittenKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of keys, or a table of the values of each column")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WrittenKeys, A::Error> {
        let mut keys = Vec::new();
        while let Some(key) = seq.next_element()? {
            keys.push(key);
        }
        Ok(WrittenKeys::Listed(keys))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenKeys, A::Error> {
        let mut columns = Vec::new();
        while let Some(column) = map.next_key()? {
            let values = map.next_value()?;
            columns.push(WrittenPartValues { column, values });
        }
        Ok(WrittenKeys::Combined(columns))
    }
}

impl<'de> Deserialize<'de> for WrittenOther {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OtherVisitor)
    }
}

struct OtherVisitor;

impl<'de> Visitor<'de> for OtherVisitor {
    type Value = WrittenOther;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name in quotes, such as \"other\", or a table of names of columns")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenOther, E> {
        Ok(WrittenOther::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenOther, A::Error> {
        let mut columns = Vec::new();
        while let Some(column) = map.next_key()? {
            let name = map.next_value()?;
            columns.push(WrittenOtherName { column, name });
        }
        Ok(WrittenOther::OfColumns(columns))
    }
}

impl<'de> Deserialize<'de> for WrittenKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = WrittenKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key in quotes, or a list of its parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenKey, E> {
        Ok(WrittenKey::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<WrittenKey, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(WrittenKey::Parts(parts))
    }
}

impl JsonSchema for WrittenKeys {
    fn schema_name() -> Cow<'static, str> {
        "WrittenKeys".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "array", "items": {
                "description": "a key in quotes, such as \"EWR\", or of several columns a list such as [\"DE\", \"phone\"]",
                "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" } },
                ],
            } },
            { "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } } },
        ] })
    }
}

impl JsonSchema for WrittenOther {
    fn schema_name() -> Cow<'static, str> {
        "WrittenOther".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "additionalProperties": { "type": "string" } },
        ] })
    }
}
