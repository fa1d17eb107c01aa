//! Needed columns that a schema has, and whether their types are ones that they may have.
//!
//! A column that is missing, or has another type, is a column of nulls and spoils nothing else: programs take the type of a column
//! from the records that are in it, so one record may decide what a column is that a whole message or file brings.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};

use super::broken::{DecodeError, first_names};
use super::columns::Columns;
use bernstream_synopsis::scalar::IdType;
use bernstream_synopsis::times::TimeFormat;

/// Purpose of a needed column, which decides the types that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRole {
    Time(Option<TimeFormat>),
    Key(Option<IdType>),
    Unit(Option<IdType>),
    Value,
}

/// Kind of the rows of a column, whatever their width and encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellKind {
    Text,
    Integers,
    Floats,
    Decimals,
    Booleans,
    /// Timestamps and dates.
    Times,
}

impl CellKind {
    /// `None` for types that no needed column may have.
    pub fn of_type(kind: &DataType) -> Option<Self> {
        Some(match kind {
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(_, _)) => {
                CellKind::of_type(values)?
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => CellKind::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => CellKind::Text,
            // Rows without a byte could be any number in a message of a few.
            DataType::FixedSizeBinary(width) if *width > 0 => CellKind::Text,
            DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => CellKind::Times,
            DataType::Boolean => CellKind::Booleans,
            kind if kind.is_integer() => CellKind::Integers,
            kind if kind.is_floating() => CellKind::Floats,
            kind if kind.is_decimal() => CellKind::Decimals,
            _ => return None,
        })
    }
}

impl ColumnRole {
    pub fn accepts_type(self, kind: &DataType) -> bool {
        use CellKind::{Booleans, Decimals, Floats, Integers, Text, Times};
        let Some(cells) = CellKind::of_type(kind) else {
            return false;
        };
        let suitable: &[CellKind] = match self {
            ColumnRole::Time(None | Some(TimeFormat::Rfc3339)) => &[Times, Text],
            ColumnRole::Time(Some(_)) => &[Times, Text, Integers, Floats, Decimals],
            ColumnRole::Key(Some(IdType::Text)) | ColumnRole::Unit(Some(IdType::Text)) => &[Text],
            ColumnRole::Key(_) | ColumnRole::Unit(_) => &[Text, Integers, Floats, Decimals],
            ColumnRole::Value => &[Text, Integers, Floats, Decimals, Booleans],
        };
        suitable.contains(&cells)
    }

    pub fn type_requirement(self) -> &'static str {
        match self {
            ColumnRole::Time(None) => {
                "the event time must be a timestamp, a date or text, or input.time_format must say how it is written"
            }
            ColumnRole::Time(Some(TimeFormat::Rfc3339)) => {
                "the event time must be a timestamp, a date or, as input.time_format says, text"
            }
            ColumnRole::Time(Some(_)) => {
                "the event time must be a timestamp, a date or, as input.time_format says, integers"
            }
            ColumnRole::Key(Some(IdType::Text)) => "a key must be text or bytes, as its type says",
            ColumnRole::Key(_) => "a key must be integers, text or bytes",
            ColumnRole::Unit(Some(IdType::Text)) => {
                "a user must be text or bytes, as its type says"
            }
            ColumnRole::Unit(_) => "a user must be integers, text or bytes",
            ColumnRole::Value => "a value must be a number, a boolean, or text that holds a number",
        }
    }
}

/// A needed column as a schema has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundColumn {
    name: String,
    role: ColumnRole,
    /// `None` where the schema has no such column.
    kind: Option<DataType>,
}

impl FoundColumn {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of its rows, in a word: types of one kind differ in width and encoding only.
    pub fn cells(&self) -> &'static str {
        match &self.kind {
            None => "missing",
            Some(DataType::Null) => "only nulls",
            Some(kind) => match CellKind::of_type(kind) {
                Some(CellKind::Text) => "text",
                Some(CellKind::Integers) => "integers",
                Some(CellKind::Floats) => "floats",
                Some(CellKind::Decimals) => "decimals",
                Some(CellKind::Booleans) => "booleans",
                Some(CellKind::Times) => "times",
                None => "another type",
            },
        }
    }

    /// Returns whether its rows are read; if not, all of them count as null.
    pub fn is_read(&self) -> bool {
        self.kind
            .as_ref()
            .is_some_and(|kind| self.role.accepts_type(kind))
    }

    /// Returns whether it is missing or has a type that it may not have; what has only nulls has neither.
    pub fn is_unread(&self) -> bool {
        !self.is_read() && self.kind != Some(DataType::Null)
    }
}

/// The needed columns as a schema has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundColumns {
    /// A column that is needed for two things is there twice.
    columns: Vec<FoundColumn>,
    /// Places in the schema of those that are read, ascending.
    pub projection: Vec<usize>,
    /// The first of the names that the schema has, for people.
    known: String,
}

impl FoundColumns {
    /// # Errors
    ///
    /// If a needed column is there twice.
    pub fn from_schema(schema: &Schema, columns: &Columns) -> Result<Self, DecodeError> {
        let mut found = Vec::new();
        let mut projection = BTreeSet::new();
        let fields = schema.fields();
        for NeededColumn { name, role } in needed_columns(columns) {
            let mut named = (0..fields.len()).filter(|index| fields[*index].name() == name);
            let first = named.next();
            if named.next().is_some() {
                return Err(DecodeError::new(format_args!(
                    "it has two columns '{name}'"
                )));
            }
            let column = FoundColumn {
                name: name.to_owned(),
                role,
                kind: first.map(|index| fields[index].data_type().clone()),
            };
            if column.is_read() {
                projection.extend(first);
            }
            found.push(column);
        }
        let known = first_names(schema.fields().iter().map(|field| field.name().as_str()));
        Ok(FoundColumns {
            columns: found,
            projection: projection.into_iter().collect(),
            known,
        })
    }

    /// The columns of a file of lines, which has text in each of the columns that it names.
    pub fn from_header(header: &[String], columns: &Columns) -> Self {
        let mut found = Vec::new();
        for NeededColumn { name, role } in needed_columns(columns) {
            let is_there = header.iter().any(|known| known == name);
            let role = if let ColumnRole::Time(None) = role {
                ColumnRole::Time(Some(TimeFormat::default()))
            } else {
                role
            };
            found.push(FoundColumn {
                name: name.to_owned(),
                role,
                kind: is_there.then_some(DataType::Utf8),
            });
        }
        FoundColumns {
            columns: found,
            projection: Vec::new(),
            known: first_names(header.iter().map(String::as_str)),
        }
    }

    pub fn columns(&self) -> &[FoundColumn] {
        &self.columns
    }

    /// The columns that are missing or have a type that they may not have.
    pub fn unread_columns(&self) -> impl Iterator<Item = &FoundColumn> {
        self.columns.iter().filter(|column| column.is_unread())
    }

    /// Reason why a column is not read.
    pub fn unread_reason(&self, column: &FoundColumn) -> DecodeError {
        let FoundColumn { name, role, kind } = column;
        let known = &self.known;
        match kind {
            Some(kind) => DecodeError::new(format_args!(
                "column '{name}' is {kind}, but {}",
                role.type_requirement()
            )),
            None if known.is_empty() => {
                DecodeError::new(format_args!("it has no column '{name}', and no other"))
            }
            None => DecodeError::new(format_args!("it has no column '{name}', only {known}")),
        }
    }
}

/// Contents of a file, as it says itself.
#[derive(Clone, Debug)]
pub enum FileContents {
    /// It has no bytes, or no line of names: there are no records in it.
    Nothing,
    /// Each record says itself what it has.
    Records,
    Columns(Arc<FoundColumns>),
}

/// A column by the name that the configuration gives.
pub(super) struct NeededColumn<'a> {
    pub name: &'a str,
    pub role: ColumnRole,
}

/// The needed columns: event time, key and unit, then the values in order.
pub(super) fn needed_columns(columns: &Columns) -> Vec<NeededColumn<'_>> {
    let mut needed = vec![NeededColumn {
        name: &columns.time,
        role: ColumnRole::Time(columns.time_format),
    }];
    for (name, declared) in columns.key.iter().zip(columns.key_types) {
        let role = ColumnRole::Key(declared);
        needed.push(NeededColumn { name, role });
    }
    if let Some(name) = &columns.unit {
        let role = ColumnRole::Unit(columns.unit_type);
        needed.push(NeededColumn { name, role });
    }
    for name in &columns.values {
        let role = ColumnRole::Value;
        needed.push(NeededColumn { name, role });
    }
    needed
}
