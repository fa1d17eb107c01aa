//! Avro schemas (specification 1.11, "Schema Declaration").

use std::collections::BTreeMap;

use serde_json::Value;

use crate::source::record::fields::{FieldContent, FieldType};
use bernstream_release::source::broken::DecodeError;
use bernstream_synopsis::times::TimeFormat;

/// The schema of a record.
#[derive(Clone, Debug)]
pub struct RecordSchema {
    /// As JSON without spaces, its keys in order.
    pub canonical: String,
    types: Vec<AvroType>,
    /// The logical types of integers and bytes, by the places of these: nothing that is read depends on them.
    notes: BTreeMap<usize, String>,
    root: usize,
}

/// A type; others within it by their places in the schema.
#[derive(Clone, Debug)]
pub(super) enum AvroType {
    Null,
    Boolean,
    /// `int` and `long`, which are written alike.
    Integer,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<RecordField>),
}

/// A field of a record.
#[derive(Clone, Debug)]
pub(super) struct RecordField {
    pub name: String,
    /// The place of its type in the schema.
    pub kind: usize,
}

impl RecordSchema {
    /// # Errors
    ///
    /// If the text is not the schema of a record.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| DecodeError::new(format_args!("it is not JSON: {e}")))?;
        let mut parser = SchemaParser {
            types: Vec::new(),
            notes: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        let root = parser.parse(&value, "")?;
        let SchemaParser { types, notes, .. } = parser;
        let schema = RecordSchema {
            canonical: value.to_string(),
            types,
            notes,
            root,
        };
        match schema.kind(root) {
            Some(AvroType::Record(_)) => Ok(schema),
            _ => Err(DecodeError::new("it is not the schema of a record")),
        }
    }

    pub(super) fn root(&self) -> usize {
        self.root
    }

    pub(super) fn kind(&self, at: usize) -> Option<&AvroType> {
        self.types.get(at)
    }

    /// The types that the field at this path can have; none if there is no such field.
    pub(super) fn field_types(&self, path: &[&str]) -> Vec<FieldType> {
        let mut types = Vec::new();
        self.add_field_types(self.root, path, &mut types);
        types
    }

    /// Adds the types to which a path leads from one: a union has the paths of all of its types. Unions are in no unions, so every step of
    /// the recursion but those takes one off the path.
    fn add_field_types(&self, at: usize, path: &[&str], types: &mut Vec<FieldType>) {
        if let Some(AvroType::Union(kinds)) = self.kind(at) {
            for kind in kinds {
                self.add_field_types(*kind, path, types);
            }
            return;
        }
        let Some((step, rest)) = path.split_first() else {
            types.push(self.field_type(at));
            return;
        };
        if let Some(AvroType::Record(fields)) = self.kind(at) {
            for field in fields.iter().filter(|field| field.name == *step) {
                self.add_field_types(field.kind, rest, types);
            }
        }
    }

    fn field_type(&self, at: usize) -> FieldType {
        let note = self.notes.get(&at).map(String::as_str);
        let content = match self.kind(at) {
            Some(AvroType::Integer) => note
                .and_then(time_format)
                .map_or(FieldContent::Numbers, FieldContent::Times),
            Some(AvroType::Float | AvroType::Double) => FieldContent::Numbers,
            Some(AvroType::Bytes | AvroType::Fixed(_)) => FieldContent::Bytes,
            Some(AvroType::Text | AvroType::Enum(_)) => FieldContent::Text,
            _ => FieldContent::Nothing,
        };
        let name = match self.kind(at) {
            Some(AvroType::Boolean) => "boolean",
            Some(AvroType::Integer) => "an integer",
            Some(AvroType::Float | AvroType::Double) => "a floating-point number",
            Some(AvroType::Bytes | AvroType::Fixed(_)) => "bytes",
            Some(AvroType::Text | AvroType::Enum(_)) => "text",
            Some(AvroType::Array(_)) => "an array",
            Some(AvroType::Map(_)) => "a map",
            Some(AvroType::Record(_)) => "a record",
            Some(AvroType::Null | AvroType::Union(_)) | None => "null",
        };
        FieldType {
            content,
            name: note.unwrap_or(name).to_owned(),
        }
    }
}

/// Format of times with this logical type; `None` for another one.
fn time_format(logical: &str) -> Option<TimeFormat> {
    match logical {
        "timestamp-millis" | "local-timestamp-millis" => Some(TimeFormat::Milliseconds),
        "timestamp-micros" | "local-timestamp-micros" => Some(TimeFormat::Microseconds),
        "timestamp-nanos" | "local-timestamp-nanos" => Some(TimeFormat::Nanoseconds),
        _ => None,
    }
}

struct SchemaParser {
    types: Vec<AvroType>,
    notes: BTreeMap<usize, String>,
    /// Named types by their full names.
    names: BTreeMap<String, usize>,
}

impl SchemaParser {
    fn add(&mut self, kind: AvroType) -> usize {
        self.types.push(kind);
        self.types.len() - 1
    }

    /// The type that a schema declares; `space` is the namespace around it.
    fn parse(&mut self, value: &Value, space: &str) -> Result<usize, DecodeError> {
        match value {
            Value::String(name) => self.parse_name(name, space),
            Value::Array(branches) => {
                let mut kinds = Vec::with_capacity(branches.len());
                for branch in branches {
                    kinds.push(self.parse(branch, space)?);
                }
                if kinds
                    .iter()
                    .any(|kind| matches!(self.types.get(*kind), Some(AvroType::Union(_))))
                {
                    return Err(DecodeError::new("it has a union in a union"));
                }
                Ok(self.add(AvroType::Union(kinds)))
            }
            Value::Object(_) => self.parse_object(value, space),
            other => Err(DecodeError::new(format_args!("{other} is not a type"))),
        }
    }

    fn parse_name(&mut self, name: &str, space: &str) -> Result<usize, DecodeError> {
        let primitive = match name {
            "null" => AvroType::Null,
            "boolean" => AvroType::Boolean,
            "int" | "long" => AvroType::Integer,
            "float" => AvroType::Float,
            "double" => AvroType::Double,
            "bytes" => AvroType::Bytes,
            "string" => AvroType::Text,
            _ => {
                let known = self.names.get(&full_name(name, space)).copied();
                return known
                    .ok_or_else(|| DecodeError::new(format_args!("it has no type '{name}'")));
            }
        };
        Ok(self.add(primitive))
    }

    fn parse_object(&mut self, value: &Value, space: &str) -> Result<usize, DecodeError> {
        let Value::String(kind) = attribute(value, "type")? else {
            return self.parse(attribute(value, "type")?, space);
        };
        match kind.as_str() {
            "array" => {
                let items = self.parse(attribute(value, "items")?, space)?;
                Ok(self.add(AvroType::Array(items)))
            }
            "map" => {
                let values = self.parse(attribute(value, "values")?, space)?;
                Ok(self.add(AvroType::Map(values)))
            }
            "record" | "error" | "enum" | "fixed" => self.parse_named(kind, value, space),
            // With a logical type, or another note that changes nothing of what is written.
            primitive => {
                let at = self.parse_name(primitive, space)?;
                if let Some(logical) = text_attribute(value, "logicalType")
                    && let Some(AvroType::Integer | AvroType::Bytes) = self.types.get(at)
                {
                    self.notes.insert(at, logical.to_owned());
                }
                Ok(at)
            }
        }
    }

    /// The type that the schema of a record, an enum or a fixed declares.
    fn parse_named(
        &mut self,
        kind: &str,
        value: &Value,
        space: &str,
    ) -> Result<usize, DecodeError> {
        let name = text_attribute(value, "name")
            .ok_or_else(|| DecodeError::new(format_args!("a {kind} has no name")))?;
        let name = full_name(name, text_attribute(value, "namespace").unwrap_or(space));
        let space = name.rsplit_once('.').map_or("", |(space, _)| space);
        // A record may have itself in it, so it is known before its fields are.
        let at = self.add(AvroType::Null);
        if self.names.insert(name.clone(), at).is_some() {
            return Err(DecodeError::new(format_args!("it declares '{name}' twice")));
        }
        let declared = match kind {
            "enum" => AvroType::Enum(parse_symbols(attribute(value, "symbols")?)?),
            "fixed" => AvroType::Fixed(parse_size(attribute(value, "size")?)?),
            _ => AvroType::Record(self.parse_fields(attribute(value, "fields")?, space)?),
        };
        if let Some(kind) = self.types.get_mut(at) {
            *kind = declared;
        }
        Ok(at)
    }

    fn parse_fields(
        &mut self,
        value: &Value,
        space: &str,
    ) -> Result<Vec<RecordField>, DecodeError> {
        let all = value
            .as_array()
            .ok_or_else(|| DecodeError::new("the fields of a record are not a list"))?;
        let mut fields: Vec<RecordField> = Vec::with_capacity(all.len());
        for field in all {
            let name = text_attribute(field, "name")
                .ok_or_else(|| DecodeError::new("a field has no name"))?;
            let kind = field
                .get("type")
                .ok_or_else(|| DecodeError::new(format_args!("field '{name}' has no type")))?;
            if fields.iter().any(|known| known.name == name) {
                return Err(DecodeError::new(format_args!(
                    "it has two fields '{name}' in one record"
                )));
            }
            fields.push(RecordField {
                name: name.to_owned(),
                kind: self.parse(kind, space)?,
            });
        }
        Ok(fields)
    }
}

fn attribute<'v>(value: &'v Value, key: &str) -> Result<&'v Value, DecodeError> {
    value
        .get(key)
        .ok_or_else(|| DecodeError::new(format_args!("a type has no '{key}'")))
}

fn text_attribute<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// A full name: a name without a dot lies in the namespace around it.
fn full_name(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    }
}

fn parse_symbols(value: &Value) -> Result<Vec<String>, DecodeError> {
    const WRONG: &str = "the symbols of an enum are not a list of texts";
    let mut symbols = Vec::new();
    for symbol in value.as_array().ok_or_else(|| DecodeError::new(WRONG))? {
        let symbol = symbol.as_str().ok_or_else(|| DecodeError::new(WRONG))?;
        symbols.push(symbol.to_owned());
    }
    Ok(symbols)
}

fn parse_size(value: &Value) -> Result<usize, DecodeError> {
    let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| DecodeError::new("the size of a fixed is not a whole number"))
}
