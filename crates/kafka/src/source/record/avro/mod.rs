//! Avro records in the framing of Confluent: a zero, the id of a schema in four bytes, and the record in Avro's binary encoding.
//!
//! Schemas are pinned by their ids: a registry would answer differently at another time, and a record's fate with it. Our own reader,
//! because it has to be bounded for each record. The released versions of `apache-avro` have one bound for a whole process, 512 MB for
//! each array, so that arrays in arrays multiply it, and none on depth: a recursive schema overflows the stack, which ends the
//! process and cannot be caught. And a record is needed only in a few of its fields, which this reader takes on the way past them.

mod binary;
mod schema;

use std::collections::BTreeMap;

use self::binary::AvroInput;
pub use self::schema::RecordSchema;
use super::fields::{FieldType, RecordRow};
use super::tree::FieldTree;
use bernstream_release::source::broken::DecodeError;

/// The schemas of a topic by their ids in the registry.
#[derive(Clone, Debug, Default)]
pub struct RegistrySchemas(pub BTreeMap<u32, RecordSchema>);

impl RegistrySchemas {
    /// The types that the field at this path has in some schema; none if no schema has it.
    pub(super) fn field_types(&self, path: &[&str]) -> Vec<FieldType> {
        let schemas = self.0.values();
        schemas
            .flat_map(|schema| schema.field_types(path))
            .collect()
    }

    /// Reads the needed fields.
    ///
    /// # Errors
    ///
    /// If it is not one record of one of these schemas.
    pub(super) fn read(
        &self,
        payload: &[u8],
        tree: &FieldTree,
        row: &mut RecordRow,
    ) -> Result<(), DecodeError> {
        let [0, i0, i1, i2, i3, record @ ..] = payload else {
            return Err(DecodeError::new(
                "it does not begin with a zero and the id of a schema",
            ));
        };
        let id = u32::from_be_bytes([*i0, *i1, *i2, *i3]);
        let schema = self.0.get(&id).ok_or_else(|| {
            DecodeError::new(format_args!("no schema with id {id} is configured"))
        })?;
        AvroInput::new(record).read_record(schema, tree, row)
    }
}
