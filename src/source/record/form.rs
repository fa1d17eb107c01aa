//! How the messages of a topic are written.

use super::declared::Declared;

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
}

impl RecordForm {
    /// Its name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            RecordForm::Json => "json",
        }
    }
}
