//! Protobuf records: one message of a type that a descriptor file describes.

use std::fmt;

use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, ReflectMessage, Value};

use super::fields::{Role, Row, Scalar};
use super::tree::Tree;
use crate::clock::Timestamp;
use crate::source::broken::Broken;
use crate::source::decode::catch_panic;

/// Seconds and nanoseconds.
const TIMESTAMP: &str = "google.protobuf.Timestamp";

/// The type of the messages of a topic.
#[derive(Clone)]
pub struct MessageType {
    descriptor: MessageDescriptor,
    /// The descriptor file.
    pub file: Vec<u8>,
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
    pub fn parse(file: Vec<u8>, name: &str) -> Result<Self, Broken> {
        catch_panic(|| {
            let pool = DescriptorPool::decode(file.as_slice());
            let pool = pool.map_err(|e| Broken::new(format_args!("it is not a descriptor file: {e}")))?;
            let descriptor = pool.get_message_by_name(name);
            let descriptor = descriptor.ok_or_else(|| Broken::new(format_args!("it has no message '{name}'")))?;
            Ok(MessageType { descriptor, file: file.clone() })
        })
    }

    /// With its package.
    pub fn name(&self) -> &str {
        self.descriptor.full_name()
    }

    /// Whether there is a field at this path.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        let mut at = Some(self.descriptor.clone());
        path.iter().all(|step| {
            let field = at.take().and_then(|message| message.get_field_by_name(step));
            at = field.as_ref().and_then(|field| field.kind().as_message().cloned());
            field.is_some()
        })
    }

    /// Reads the needed fields.
    ///
    /// # Errors
    ///
    /// If it is not a message of this type.
    pub(super) fn read(&self, payload: &[u8], tree: &Tree, row: &mut Row) -> Result<(), Broken> {
        catch_panic(|| {
            let message = DynamicMessage::decode(self.descriptor.clone(), payload).map_err(Broken::new)?;
            fields(&message, 0, tree, row);
            Ok(())
        })
    }
}

/// The needed fields of the message at a node. The recursion is that of the tree.
fn fields(message: &DynamicMessage, node: usize, tree: &Tree, row: &mut Row) {
    for child in tree.children(node) {
        let Some(field) = message.descriptor().get_field_by_name(tree.name(child)) else { continue };
        // A field without presence has its default where it is not written.
        if field.supports_presence() && !message.has_field(&field) {
            continue;
        }
        let value = message.get_field(&field);
        let mut set = |scalar: Scalar<'_>| tree.roles(child).iter().for_each(|role| row.set(*role, scalar));
        match value.as_ref() {
            Value::I32(integer) => set(Scalar::Integer((*integer).into())),
            Value::I64(integer) => set(Scalar::Integer((*integer).into())),
            Value::U32(integer) => set(Scalar::Integer((*integer).into())),
            Value::U64(integer) => set(Scalar::Integer((*integer).into())),
            Value::F32(number) => set(Scalar::Float((*number).into())),
            Value::F64(number) => set(Scalar::Float(*number)),
            Value::String(text) => set(Scalar::Text(text)),
            Value::Bytes(bytes) => set(Scalar::Bytes(bytes)),
            Value::EnumNumber(number) => {
                let symbol = match field.kind() {
                    Kind::Enum(kind) => kind.get_value(*number),
                    _ => None,
                };
                symbol.iter().for_each(|symbol| set(Scalar::Text(symbol.name())));
            }
            Value::Message(inner) => {
                if let Some(time) = timestamp(inner) {
                    let roles = tree.roles(child).iter().filter(|role| matches!(role, Role::Time(_)));
                    roles.for_each(|role| row.set(*role, Scalar::Text(&time)));
                }
                fields(inner, child, tree, row);
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
    let part = |name| message.get_field_by_name(name).map(std::borrow::Cow::into_owned);
    let (seconds, nanos) = (part("seconds")?.as_i64()?, part("nanos")?.as_i32()?);
    let micros = seconds
        .checked_mul(1_000_000)?
        .checked_add((0..1_000_000_000).contains(&nanos).then_some(i64::from(nanos / 1_000))?)?;
    Some(Timestamp::from_micros(micros).to_string())
}
