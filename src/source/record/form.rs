//! How the messages of a topic are written.

use std::sync::Arc;

use super::avro::Schemas;
use super::declared::Declared;
use super::protobuf::MessageType;
use super::tree::steps;

/// How the messages of a topic are written.
#[derive(Clone, Debug)]
pub enum Format {
    /// Each message is an Arrow IPC stream of any number of records; its columns have types.
    Arrow,
    /// Each message is one record.
    Records { form: RecordForm, declared: Declared },
}

/// The form of a record.
#[derive(Clone, Debug)]
pub enum RecordForm {
    /// One JSON object.
    Json,
    /// One Avro record of one of these schemas, in the framing of Confluent.
    Avro(Arc<Schemas>),
    /// One Protobuf message of this type.
    Protobuf(Arc<MessageType>),
}

impl RecordForm {
    /// Its name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            RecordForm::Json => "json",
            RecordForm::Avro(_) => "avro",
            RecordForm::Protobuf(_) => "protobuf",
        }
    }

    /// Whether a record can have a field of this name or path: what no schema has would always be missing.
    pub fn can_have(&self, path: &str) -> bool {
        match self {
            RecordForm::Json => true,
            RecordForm::Avro(schemas) => schemas.has(&steps(path)),
            RecordForm::Protobuf(kind) => kind.field(path).is_some(),
        }
    }
}
