//! The needed fields of records, one after another.

use super::declared::DeclaredTypes;
use super::fields::RecordRow;
use super::form::RecordForm;
use super::json;
use super::tree::{FieldTree, UndeclaredType, path_steps};
use bernstream_release::source::broken::DecodeError;
use bernstream_release::source::columns::Columns;

/// The longest record that is read, in bytes. A longer one is dropped.
pub const LARGEST_RECORD: usize = 1 << 20;

/// Reads records of one form. Time and memory are in proportion to the record.
pub struct RecordReader {
    form: RecordForm,
    tree: FieldTree,
    row: RecordRow,
}

impl RecordReader {
    /// # Errors
    ///
    /// If the type of a key or a user is not declared.
    pub fn new(
        form: &RecordForm,
        columns: &Columns,
        declared: &DeclaredTypes,
    ) -> Result<Self, UndeclaredType> {
        let tree = FieldTree::new(columns, declared, path_steps)?;
        Ok(RecordReader {
            form: form.clone(),
            tree,
            row: RecordRow::default(),
        })
    }

    /// The needed fields of a record. A field that is missing or of another type than declared counts as null.
    ///
    /// # Errors
    ///
    /// If the record cannot be read. It is then to be dropped, and nothing else.
    pub fn read(&mut self, payload: &[u8]) -> Result<&RecordRow, DecodeError> {
        if payload.len() > LARGEST_RECORD {
            let length = payload.len();
            return Err(DecodeError::new(format_args!(
                "it has {length} bytes, a record has at most {LARGEST_RECORD}"
            )));
        }
        self.row.clear(self.tree.values, self.tree.len());
        match &self.form {
            RecordForm::Json => json::read_object(payload, &self.tree, &mut self.row)?,
            RecordForm::Avro(schemas) => schemas.read(payload, &self.tree, &mut self.row)?,
            RecordForm::Protobuf(kind) => kind.read(payload, &self.tree, &mut self.row)?,
        }
        Ok(&self.row)
    }
}
