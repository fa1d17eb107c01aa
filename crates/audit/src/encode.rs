//! Messages as Arrow IPC streams, with the column names of the configuration: the real decoder reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Float64Array, Int32Array,
    Int64Array, LargeBinaryArray, NullArray, RecordBatch, RecordBatchOptions,
    TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::messages::{ColumnTypes, InputMessage, InputRow, TextForm};
use bernstream_kafka::source::record::is_integer;
use bernstream_release::source::Columns;
use bernstream_synopsis::IdType;
use bernstream_synopsis::key_parts::split_key;

/// The value under a null, for something always lies there: a value like any other. Under a time lies the message timestamp.
const UNDER_A_NULL: f64 = 1.0;
/// The longest unit that counts as the name of a user.
const LONGEST_NAME: usize = 64;

/// The bytes of a message.
///
/// # Errors
///
/// If Arrow cannot write it.
pub(super) fn encode_message(
    message: &InputMessage,
    columns: &Columns,
) -> Result<Vec<u8>, ArrowError> {
    let encoded = message
        .batches
        .iter()
        .map(|rows| record_batch(rows, columns, message));
    let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = encoded.first() else {
        return Ok(Vec::new());
    };
    // Text is declared as text, as producers do, also where it is not valid.
    let mut fields = Vec::new();
    for field in first.schema().fields() {
        let declared = as_text(field.data_type());
        fields.push(Field::clone(field).with_data_type(declared));
    }
    let mut writer = StreamWriter::try_new(Vec::new(), &Schema::new(fields))?;
    for batch in &encoded {
        writer.write(batch)?;
    }
    writer.into_inner()
}

fn record_batch(
    rows: &[InputRow],
    columns: &Columns,
    message: &InputMessage,
) -> Result<RecordBatch, ArrowError> {
    let mut batch = BatchColumns::default();
    let times = rows
        .iter()
        .map(|row| row.time.unwrap_or(message.stamp).micros())
        .collect();
    let nulls = NullBuffer::from_iter(rows.iter().map(|row| row.time.is_some()));
    let times = TimestampMicrosecondArray::try_new(times, Some(nulls))?.with_timezone("UTC");
    let times = typed_or_null(message, |row| row.time.is_some(), Arc::new(times));
    batch.add(&columns.time, times);
    for (part, name) in columns.key.iter().enumerate() {
        let mut texts = Vec::new();
        for row in rows {
            texts.push(
                row.key
                    .as_deref()
                    .map(|key| part_of_key(key, part, columns)),
            );
        }
        let texts = text_array(texts.iter().map(Option::as_deref), message.texts)?;
        batch.add(name, typed_or_null(message, |row| row.key.is_some(), texts));
    }
    if let Some(name) = &columns.unit {
        let mut units = Vec::new();
        for row in rows {
            units.push(match &row.unit {
                Some(unit) if columns.unit_type == Some(IdType::Integer) => {
                    Some(name_as_integer(unit))
                }
                unit => unit.as_deref().map(<[u8]>::to_vec),
            });
        }
        let units = text_array(units.iter().map(Option::as_deref), message.texts)?;
        batch.add(
            name,
            typed_or_null(message, |row| row.unit.is_some(), units),
        );
    }
    for (column, name) in columns.values.iter().enumerate() {
        let values = rows
            .iter()
            .map(|row| value_at(row, column).unwrap_or(UNDER_A_NULL))
            .collect();
        let nulls = NullBuffer::from_iter(rows.iter().map(|row| value_at(row, column).is_some()));
        let floats = Float64Array::try_new(values, Some(nulls))?;
        let numbers: ArrayRef = if is_whole(message, column) {
            Arc::new(as_integers(&floats))
        } else {
            Arc::new(floats)
        };
        let numbers = typed_or_null(message, |row| value_at(row, column).is_some(), numbers);
        batch.add(name, numbers);
    }
    let BatchColumns { fields, arrays } = batch;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
}

/// The columns of a record batch, each with its field.
#[derive(Default)]
struct BatchColumns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl BatchColumns {
    /// Adds a column, unless there is one of this name: one column can have two parts to play.
    fn add(&mut self, name: &str, array: ArrayRef) {
        if self.fields.iter().all(|field| field.name() != name) {
            self.fields
                .push(Field::new(name, array.data_type().clone(), true));
            self.arrays.push(array);
        }
    }
}

/// The part of a key that stands in a column of its own; of what is the text of no such key each part is all of it. Where only integers are
/// parts, a name such as that of what is not listed is one that is hardly listed.
fn part_of_key(key: &[u8], part: usize, columns: &Columns) -> Vec<u8> {
    let parts = std::str::from_utf8(key)
        .ok()
        .and_then(|key| split_key(key, columns.key.len()));
    let own = match parts.as_ref().and_then(|parts| parts.get(part)) {
        Some(part) => part.as_bytes().to_vec(),
        None => key.to_vec(),
    };
    let is_typed = columns.key_types.get(part) == Some(&Some(IdType::Integer));
    match std::str::from_utf8(&own) {
        Ok(text) if is_typed && !is_integer(text) => name_as_integer(&own),
        _ => own,
    }
}

/// A name as an integer, where only integers are users or keys; what is no name stays as it is. Two of the few names have two integers.
fn name_as_integer(name: &[u8]) -> Vec<u8> {
    if !(1..LONGEST_NAME).contains(&name.len()) || !name.is_ascii() {
        return name.to_vec();
    }
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.to_string().into_bytes()
}

fn value_at(row: &InputRow, column: usize) -> Option<f64> {
    row.values.get(column).copied().flatten()
}

/// `array`, or one without a type, where types are inferred and no row of the message has anything in this column.
fn typed_or_null(
    message: &InputMessage,
    is_there: impl Fn(&InputRow) -> bool,
    array: ArrayRef,
) -> ArrayRef {
    let has_type = message.types == ColumnTypes::Declared || message.rows().any(is_there);
    if has_type {
        array
    } else {
        Arc::new(NullArray::new(array.len()))
    }
}

/// Returns whether the types of the message are inferred and this column of values is one of integers.
fn is_whole(message: &InputMessage, column: usize) -> bool {
    const WHOLE: f64 = (1_i64 << 53) as f64;
    let has_null = message.rows().any(|row| value_at(row, column).is_none());
    let is_inferred = match message.types {
        ColumnTypes::Declared => false,
        ColumnTypes::Inferred => true,
        ColumnTypes::InferredByPandas => !has_null,
    };
    let mut values = message.rows().filter_map(|row| value_at(row, column));
    is_inferred && values.all(|value| value.fract() == 0.0 && value.abs() <= WHOLE)
}

fn as_integers(floats: &Float64Array) -> Int64Array {
    floats
        .iter()
        .map(|value| value.map(|value| value as i64))
        .collect()
}

fn text_array<'a>(
    rows: impl Iterator<Item = Option<&'a [u8]>>,
    form: TextForm,
) -> Result<ArrayRef, ArrowError> {
    Ok(match form {
        TextForm::Plain => Arc::new(rows.collect::<BinaryArray>()),
        TextForm::Large => Arc::new(rows.collect::<LargeBinaryArray>()),
        TextForm::Views => Arc::new(rows.collect::<BinaryViewArray>()),
        TextForm::Dictionary => {
            let rows: Vec<Option<&[u8]>> = rows.collect();
            let values: Vec<&[u8]> = rows
                .iter()
                .copied()
                .flatten()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
            let indices: Int32Array = rows
                .iter()
                .map(|row| i32::try_from(values.binary_search(&(*row)?).ok()?).ok())
                .collect();
            let values = Arc::new(BinaryArray::from_iter_values(&values));
            Arc::new(DictionaryArray::<Int32Type>::try_new(indices, values)?)
        }
    })
}

fn as_text(kind: &DataType) -> DataType {
    match kind {
        DataType::Binary => DataType::Utf8,
        DataType::LargeBinary => DataType::LargeUtf8,
        DataType::BinaryView => DataType::Utf8View,
        DataType::Dictionary(key, values) => {
            DataType::Dictionary(key.clone(), Box::new(as_text(values)))
        }
        other => other.clone(),
    }
}
