//! Protobuf records: one message of a type that a descriptor file describes.

use std::collections::BTreeMap;
use std::fmt;

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, ReflectMessage, Value,
};
use serde::Serialize;

use super::fields::{FieldContent, FieldRole, FieldType, RecordRow, Scalar};
use super::tree::{FieldTree, path_steps};
use bernstream_release::source::broken::DecodeError;
use bernstream_release::source::decode::catch_panic;
use bernstream_synopsis::clock::Timestamp;

/// Seconds and nanoseconds.
const TIMESTAMP: &str = "google.protobuf.Timestamp";

const TIMESTAMP_PARTS: [&str; 2] = ["seconds", "nanos"];

/// The type of the messages of a topic.
#[derive(Clone)]
pub struct MessageType {
    descriptor: MessageDescriptor,
    /// The descriptor file.
    pub file: Vec<u8>,
}

/// A field as it is written in a message: by number and type. Its name is only in the descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WireField {
    /// Its number, behind those of the fields that it lies in.
    numbers: Vec<u32>,
    #[serde(rename = "type")]
    kind: String,
    /// For an enum, the name that each number is read as.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    symbols: BTreeMap<i32, String>,
    /// For a timestamp, its seconds and nanoseconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, WireField>,
}

impl WireField {
    fn new(around: &[u32], field: &FieldDescriptor) -> Self {
        let numbers = [around, &[field.number()]].concat();
        let mut symbols = BTreeMap::new();
        let mut parts = BTreeMap::new();
        match field.kind() {
            Kind::Enum(kind) => symbols = symbols_of(&kind),
            Kind::Message(message) if message.full_name() == TIMESTAMP => {
                for name in TIMESTAMP_PARTS {
                    if let Some(part) = message.get_field_by_name(name) {
                        parts.insert(name, WireField::new(&numbers, &part));
                    }
                }
            }
            _ => {}
        }
        let list = if field.is_list() { "repeated " } else { "" };
        WireField {
            kind: format!("{list}{}", type_name(&field.kind())),
            numbers,
            symbols,
            parts,
        }
    }
}

/// The names that values of an enum are read as, by number.
fn symbols_of(kind: &EnumDescriptor) -> BTreeMap<i32, String> {
    let mut symbols = BTreeMap::new();
    for number in kind.values().map(|symbol| symbol.number()) {
        // Of several names of a number, one is read.
        if let Some(symbol) = kind.get_value(number) {
            symbols.insert(number, symbol.name().to_owned());
        }
    }
    symbols
}

/// The name of a type in the language of descriptors. Ledgers keep it.
fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double => "double",
        Kind::Float => "float",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Uint32 => "uint32",
        Kind::Uint64 => "uint64",
        Kind::Sint32 => "sint32",
        Kind::Sint64 => "sint64",
        Kind::Fixed32 => "fixed32",
        Kind::Fixed64 => "fixed64",
        Kind::Sfixed32 => "sfixed32",
        Kind::Sfixed64 => "sfixed64",
        Kind::Bool => "bool",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "enum",
        Kind::Message(message) if message.full_name() == TIMESTAMP => TIMESTAMP,
        Kind::Message(_) => "message",
    }
}

/// Content of a field of this type, unless there are several of it.
fn content(kind: &Kind) -> FieldContent {
    match kind {
        Kind::Bool => FieldContent::Nothing,
        Kind::String | Kind::Enum(_) => FieldContent::Text,
        Kind::Bytes => FieldContent::Bytes,
        Kind::Message(message) if message.full_name() == TIMESTAMP => FieldContent::Timestamps,
        Kind::Message(_) => FieldContent::Nothing,
        _ => FieldContent::Numbers,
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageType({})", self.name())
    }
}

impl MessageType {
    /// `file` is a `FileDescriptorSet` with all imports, as `protoc --include_imports --descriptor_set_out` writes it.
    ///
    /// # Errors
    ///
    /// If it is not one, or has no message of this name.
    pub fn parse(file: Vec<u8>, name: &str) -> Result<Self, DecodeError> {
        catch_panic(|| {
            let pool = DescriptorPool::decode(file.as_slice());
            let pool = pool
                .map_err(|e| DecodeError::new(format_args!("it is not a descriptor file: {e}")))?;
            let descriptor = pool.get_message_by_name(name);
            let descriptor = descriptor
                .ok_or_else(|| DecodeError::new(format_args!("it has no message '{name}'")))?;
            Ok(MessageType {
                descriptor,
                file: file.clone(),
            })
        })
    }

    /// The name, with its package.
    pub fn name(&self) -> &str {
        self.descriptor.full_name()
    }

    /// The field at a path such as `after.amount`; `None` if there is none.
    pub fn field(&self, path: &str) -> Option<WireField> {
        let fields = self.fields_along(path)?;
        let (last, before) = fields.split_last()?;
        let around: Vec<u32> = before.iter().map(FieldDescriptor::number).collect();
        Some(WireField::new(&around, last))
    }

    /// The type of the field at a path; `None` if there is none.
    pub(super) fn field_type(&self, path: &str) -> Option<FieldType> {
        let fields = self.fields_along(path)?;
        let field = fields.last()?;
        let is_one = fields
            .iter()
            .all(|field| field.cardinality() != Cardinality::Repeated);
        let content = if is_one {
            content(&field.kind())
        } else {
            FieldContent::Nothing
        };
        let list = if is_one { "" } else { "repeated " };
        Some(FieldType {
            content,
            name: format!("{list}{}", type_name(&field.kind())),
        })
    }

    /// The fields that a path leads through.
    fn fields_along(&self, path: &str) -> Option<Vec<FieldDescriptor>> {
        let mut message = Some(self.descriptor.clone());
        let mut found = Vec::new();
        for step in path_steps(path) {
            let field = message.take()?.get_field_by_name(step)?;
            message = field.kind().as_message().cloned();
            found.push(field);
        }
        Some(found)
    }

    /// Reads the needed fields.
    ///
    /// # Errors
    ///
    /// If it is not a message of this type.
    pub(super) fn read(
        &self,
        payload: &[u8],
        tree: &FieldTree,
        row: &mut RecordRow,
    ) -> Result<(), DecodeError> {
        catch_panic(|| {
            let message = DynamicMessage::decode(self.descriptor.clone(), payload)
                .map_err(DecodeError::new)?;
            read_fields(&message, 0, tree, row);
            Ok(())
        })
    }
}

/// Reads the needed fields of the message at a node. The recursion is that of the tree.
fn read_fields(message: &DynamicMessage, node: usize, tree: &FieldTree, row: &mut RecordRow) {
    for child in tree.children(node) {
        let Some(field) = message.descriptor().get_field_by_name(tree.name(child)) else {
            continue;
        };
        // A field without presence has its default where it is not written.
        if field.supports_presence() && !message.has_field(&field) {
            continue;
        }
        let value = message.get_field(&field);
        let roles = tree.roles(child);
        match value.as_ref() {
            Value::I32(integer) => row.set_all(roles, Scalar::Integer((*integer).into())),
            Value::I64(integer) => row.set_all(roles, Scalar::Integer((*integer).into())),
            Value::U32(integer) => row.set_all(roles, Scalar::Integer((*integer).into())),
            Value::U64(integer) => row.set_all(roles, Scalar::Integer((*integer).into())),
            Value::F32(number) => row.set_all(roles, Scalar::Single(*number)),
            Value::F64(number) => row.set_all(roles, Scalar::Float(*number)),
            Value::String(text) => row.set_all(roles, Scalar::Text(text)),
            Value::Bytes(bytes) => row.set_all(roles, Scalar::Bytes(bytes)),
            Value::EnumNumber(number) => {
                if let Kind::Enum(kind) = field.kind()
                    && let Some(symbol) = kind.get_value(*number)
                {
                    row.set_all(roles, Scalar::Text(symbol.name()));
                }
            }
            Value::Message(inner) => {
                if let Some(time) = timestamp(inner) {
                    for role in roles {
                        if matches!(role, FieldRole::Time(_)) {
                            row.set_role(*role, Scalar::Text(&time));
                        }
                    }
                }
                read_fields(inner, child, tree, row);
            }
            Value::Bool(_) | Value::List(_) | Value::Map(_) => {}
        }
    }
}

/// A timestamp of Protobuf in RFC 3339.
fn timestamp(message: &DynamicMessage) -> Option<String> {
    if message.descriptor().full_name() != TIMESTAMP {
        return None;
    }
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    if !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let micros = seconds
        .checked_mul(1_000_000)?
        .checked_add(i64::from(nanos / 1_000))?;
    Some(Timestamp::from_micros(micros).to_string())
}
