//! How the messages of a topic are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::avro::RegistrySchemas;
use super::declared::DeclaredTypes;
use super::protobuf::MessageType;
use super::tree::{NeededField, UndeclaredType, needed_fields, path_steps};
use bernstream_release::source::columns::Columns;

/// Format of the messages of a topic.
#[derive(Clone, Debug)]
pub enum TopicFormat {
    /// Each message is an Arrow IPC stream of any number of records; its columns have types.
    Arrow,
    /// Each message is one record.
    Records {
        form: RecordForm,
        declared: DeclaredTypes,
    },
}

/// The form of a record.
#[derive(Clone, Debug)]
pub enum RecordForm {
    /// One JSON object.
    Json,
    /// One Avro record of one of these schemas, in the framing of Confluent.
    Avro(Arc<RegistrySchemas>),
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

    /// The needed fields that no record can have, because no schema has them, or none with a type that could hold what is needed: they
    /// would always be missing.
    ///
    /// # Errors
    ///
    /// If the type of a key or a user is not declared.
    pub fn impossible_fields(
        &self,
        columns: &Columns,
        declared: &DeclaredTypes,
    ) -> Result<Vec<ImpossibleField>, UndeclaredType> {
        let mut found = Vec::new();
        for NeededField { path, role } in needed_fields(columns, declared)? {
            let types = match self {
                RecordForm::Json => continue,
                RecordForm::Avro(schemas) => schemas.field_types(&path_steps(path)),
                RecordForm::Protobuf(kind) => kind.field_type(path).into_iter().collect(),
            };
            if !types.iter().any(|kind| role.can_take(kind.content)) {
                found.push(ImpossibleField {
                    field: path.to_owned(),
                    types: types.into_iter().map(|kind| kind.name).collect(),
                    requirement: role.requirement(),
                });
            }
        }
        Ok(found)
    }
}

/// A needed field that no record can have.
#[derive(Clone, Debug)]
pub struct ImpossibleField {
    pub field: String,
    /// The types that schemas have it with, for people; none if no schema has it.
    pub types: BTreeSet<String>,
    /// Purpose that it is needed for.
    pub requirement: &'static str,
}
