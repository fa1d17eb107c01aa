//! Avro schemas (specification 1.11, "Schema Declaration").

use std::collections::BTreeMap;

use serde_json::Value;

use crate::source::broken::Broken;

/// The schema of a record.
#[derive(Clone, Debug)]
pub struct Schema {
    /// As JSON without spaces, its keys in order.
    pub canonical: String,
    types: Vec<Type>,
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
        let value: Value = serde_json::from_str(text).map_err(|e| Broken::new(format_args!("it is not JSON: {e}")))?;
        let mut parser = Parser { types: Vec::new(), names: BTreeMap::new() };
        let root = parser.parse(&value, "")?;
        let schema = Schema { canonical: value.to_string(), types: parser.types, root };
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

    /// Whether there is a field at this path.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.leads(self.root, path)
    }

    /// A union has a path where one of its types has it. Unions are in no unions, so every step of the recursion but those
    /// takes one off the path.
    fn leads(&self, at: usize, path: &[&str]) -> bool {
        let Some((step, rest)) = path.split_first() else { return true };
        match self.kind(at) {
            Some(Type::Record(fields)) => fields.iter().any(|(name, kind)| name == step && self.leads(*kind, rest)),
            Some(Type::Union(kinds)) => kinds.iter().any(|kind| self.leads(*kind, path)),
            _ => false,
        }
    }
}

struct Parser {
    types: Vec<Type>,
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
                let kinds = branches.iter().map(|branch| self.parse(branch, space)).collect::<Result<Vec<_>, _>>()?;
                if kinds.iter().any(|kind| matches!(self.types.get(*kind), Some(Type::Union(_)))) {
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
        let part = |key: &str| value.get(key).ok_or_else(|| Broken::new(format_args!("a type has no '{key}'")));
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
                    let name = text("name").ok_or_else(|| Broken::new(format_args!("a {kind} has no name")))?;
                    let name = full(name, text("namespace").unwrap_or(space));
                    let space = name.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
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
                primitive => self.named(primitive, space),
            },
            nested => self.parse(nested, space),
        }
    }

    fn fields(&mut self, value: &Value, space: &str) -> Result<Vec<(String, usize)>, Broken> {
        let all = value.as_array().ok_or_else(|| Broken::new("the fields of a record are not a list"))?;
        let mut fields: Vec<(String, usize)> = Vec::with_capacity(all.len());
        for field in all {
            let name = field.get("name").and_then(Value::as_str).ok_or_else(|| Broken::new("a field has no name"))?;
            let kind = field.get("type").ok_or_else(|| Broken::new(format_args!("field '{name}' has no type")))?;
            if fields.iter().any(|(known, _)| known == name) {
                return Err(Broken::new(format_args!("it has two fields '{name}' in one record")));
            }
            fields.push((name.to_owned(), self.parse(kind, space)?));
        }
        Ok(fields)
    }
}

/// A full name: a name without a dot lies in the namespace around it.
fn full(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() { name.to_owned() } else { format!("{space}.{name}") }
}

fn symbols(value: &Value) -> Result<Vec<String>, Broken> {
    let all = value.as_array().map(|all| all.iter().map(|symbol| symbol.as_str().map(str::to_owned)));
    all.and_then(Iterator::collect).ok_or_else(|| Broken::new("the symbols of an enum are not a list of texts"))
}

fn size(value: &Value) -> Result<usize, Broken> {
    let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| Broken::new("the size of a fixed is not a whole number"))
}
