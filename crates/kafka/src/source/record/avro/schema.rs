//! Avro schemas (specification 1.11, "Schema Declaration").

use std::collections::BTreeMap;

use serde_json::Value;

use crate::source::record::fields::{Content, FieldType};
use bernstream_release::source::broken::Broken;
use bernstream_synopsis::times::TimeFormat;

/// The schema of a record.
#[derive(Clone, Debug)]
pub struct Schema {
    /// As JSON without spaces, its keys in order.
    pub canonical: String,
    types: Vec<Type>,
    /// The logical types of integers and bytes, by the places of these: nothing that is read depends on them.
    notes: BTreeMap<usize, String>,
    root: usize,
}

/// A type; others within it by their places in the schema.
#[derive(Clone, Debug)]
pub(super) enum Type {
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
    Record(Vec<(String, usize)>),
}

impl Schema {
    /// # Errors
    ///
    /// If the text is not the schema of a record.
    pub fn parse(text: &str) -> Result<Self, Broken> {
        let value: Value = serde_json::from_str(text)
            .map_err(|e| Broken::new(format_args!("it is not JSON: {e}")))?;
        let mut parser = Parser {
            types: Vec::new(),
            notes: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        let root = parser.parse(&value, "")?;
        let Parser { types, notes, .. } = parser;
        let schema = Schema {
            canonical: value.to_string(),
            types,
            notes,
            root,
        };
        match schema.kind(root) {
            Some(Type::Record(_)) => Ok(schema),
            _ => Err(Broken::new("it is not the schema of a record")),
        }
    }

    pub(super) fn root(&self) -> usize {
        self.root
    }

    pub(super) fn kind(&self, at: usize) -> Option<&Type> {
        self.types.get(at)
    }

    /// The types that the field at this path can have; none if there is no such field.
    pub(super) fn at(&self, path: &[&str]) -> Vec<FieldType> {
        self.leads(self.root, path)
            .into_iter()
            .map(|at| self.field_type(at))
            .collect()
    }

    /// Where a path leads from a type: a union has the paths of all of its types. Unions are in no unions, so every step of the recursion
    /// but those takes one off the path.
    fn leads(&self, at: usize, path: &[&str]) -> Vec<usize> {
        match (self.kind(at), path.split_first()) {
            (Some(Type::Union(kinds)), _) => kinds
                .iter()
                .flat_map(|kind| self.leads(*kind, path))
                .collect(),
            (_, None) => vec![at],
            (Some(Type::Record(fields)), Some((step, rest))) => {
                let named = fields.iter().filter(|(name, _)| name == step);
                named
                    .flat_map(|(_, kind)| self.leads(*kind, rest))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn field_type(&self, at: usize) -> FieldType {
        let note = self.notes.get(&at).map(String::as_str);
        let (content, name) = match self.kind(at) {
            Some(Type::Boolean) => (Content::Nothing, "boolean"),
            Some(Type::Integer) => (
                note.and_then(times)
                    .map_or(Content::Numbers, Content::Times),
                "an integer",
            ),
            Some(Type::Float | Type::Double) => (Content::Numbers, "a floating-point number"),
            Some(Type::Bytes | Type::Fixed(_)) => (Content::Bytes, "bytes"),
            Some(Type::Text | Type::Enum(_)) => (Content::Text, "text"),
            Some(Type::Array(_)) => (Content::Nothing, "an array"),
            Some(Type::Map(_)) => (Content::Nothing, "a map"),
            Some(Type::Record(_)) => (Content::Nothing, "a record"),
            Some(Type::Null | Type::Union(_)) | None => (Content::Nothing, "null"),
        };
        FieldType {
            content,
            name: note.unwrap_or(name).to_owned(),
        }
    }
}

/// How times with this logical type are written; `None` for another one.
fn times(logical: &str) -> Option<TimeFormat> {
    match logical {
        "timestamp-millis" | "local-timestamp-millis" => Some(TimeFormat::Milliseconds),
        "timestamp-micros" | "local-timestamp-micros" => Some(TimeFormat::Microseconds),
        "timestamp-nanos" | "local-timestamp-nanos" => Some(TimeFormat::Nanoseconds),
        _ => None,
    }
}

struct Parser {
    types: Vec<Type>,
    notes: BTreeMap<usize, String>,
    /// Named types by their full names.
    names: BTreeMap<String, usize>,
}

impl Parser {
    fn add(&mut self, kind: Type) -> usize {
        self.types.push(kind);
        self.types.len() - 1
    }

    /// The type that a schema declares; `space` is the namespace around it.
    fn parse(&mut self, value: &Value, space: &str) -> Result<usize, Broken> {
        match value {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) => {
                let kinds = branches
                    .iter()
                    .map(|branch| self.parse(branch, space))
                    .collect::<Result<Vec<_>, _>>()?;
                if kinds
                    .iter()
                    .any(|kind| matches!(self.types.get(*kind), Some(Type::Union(_))))
                {
                    return Err(Broken::new("it has a union in a union"));
                }
                Ok(self.add(Type::Union(kinds)))
            }
            Value::Object(_) => self.declared(value, space),
            other => Err(Broken::new(format_args!("{other} is not a type"))),
        }
    }

    fn named(&mut self, name: &str, space: &str) -> Result<usize, Broken> {
        let primitive = match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" | "long" => Type::Integer,
            "float" => Type::Float,
            "double" => Type::Double,
            "bytes" => Type::Bytes,
            "string" => Type::Text,
            _ => {
                let known = self.names.get(&full(name, space)).copied();
                return known.ok_or_else(|| Broken::new(format_args!("it has no type '{name}'")));
            }
        };
        Ok(self.add(primitive))
    }

    fn declared(&mut self, value: &Value, space: &str) -> Result<usize, Broken> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let part = |key: &str| {
            value
                .get(key)
                .ok_or_else(|| Broken::new(format_args!("a type has no '{key}'")))
        };
        match part("type")? {
            Value::String(kind) => match kind.as_str() {
                "array" => {
                    let items = self.parse(part("items")?, space)?;
                    Ok(self.add(Type::Array(items)))
                }
                "map" => {
                    let values = self.parse(part("values")?, space)?;
                    Ok(self.add(Type::Map(values)))
                }
                "record" | "error" | "enum" | "fixed" => {
                    let name = text("name")
                        .ok_or_else(|| Broken::new(format_args!("a {kind} has no name")))?;
                    let name = full(name, text("namespace").unwrap_or(space));
                    let space = name
                        .rsplit_once('.')
                        .map_or("", |(space, _)| space)
                        .to_owned();
                    // A record may have itself in it, so it is known before its fields are.
                    let at = self.add(Type::Null);
                    if self.names.insert(name.clone(), at).is_some() {
                        return Err(Broken::new(format_args!("it declares '{name}' twice")));
                    }
                    let declared = match kind.as_str() {
                        "enum" => Type::Enum(symbols(part("symbols")?)?),
                        "fixed" => Type::Fixed(size(part("size")?)?),
                        _ => Type::Record(self.fields(part("fields")?, &space)?),
                    };
                    if let Some(kind) = self.types.get_mut(at) {
                        *kind = declared;
                    }
                    Ok(at)
                }
                // With a logical type, or another note that changes nothing of what is written.
                primitive => {
                    let at = self.named(primitive, space)?;
                    if let (Some(logical), Some(Type::Integer | Type::Bytes)) =
                        (text("logicalType"), self.types.get(at))
                    {
                        self.notes.insert(at, logical.to_owned());
                    }
                    Ok(at)
                }
            },
            nested => self.parse(nested, space),
        }
    }

    fn fields(&mut self, value: &Value, space: &str) -> Result<Vec<(String, usize)>, Broken> {
        let all = value
            .as_array()
            .ok_or_else(|| Broken::new("the fields of a record are not a list"))?;
        let mut fields: Vec<(String, usize)> = Vec::with_capacity(all.len());
        for field in all {
            let name = field
                .get("name")
                .and_then(Value::as_str)
                .ok_or_else(|| Broken::new("a field has no name"))?;
            let kind = field
                .get("type")
                .ok_or_else(|| Broken::new(format_args!("field '{name}' has no type")))?;
            if fields.iter().any(|(known, _)| known == name) {
                return Err(Broken::new(format_args!(
                    "it has two fields '{name}' in one record"
                )));
            }
            fields.push((name.to_owned(), self.parse(kind, space)?));
        }
        Ok(fields)
    }
}

/// A full name: a name without a dot lies in the namespace around it.
fn full(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    }
}

fn symbols(value: &Value) -> Result<Vec<String>, Broken> {
    let all = value
        .as_array()
        .map(|all| all.iter().map(|symbol| symbol.as_str().map(str::to_owned)));
    all.and_then(Iterator::collect)
        .ok_or_else(|| Broken::new("the symbols of an enum are not a list of texts"))
}

fn size(value: &Value) -> Result<usize, Broken> {
    let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| Broken::new("the size of a fixed is not a whole number"))
}
