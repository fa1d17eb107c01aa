//! Messages as Arrow IPC streams, with the column names of the configuration: the real decoder reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Float64Array, Int32Array, LargeBinaryArray,
    RecordBatch, RecordBatchOptions, TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::messages::{Message, Row, Texts};
use crate::source::Columns;

/// What lies under a null, for something always does: a value like any other. Under a time lies the message timestamp.
const UNDER_A_NULL: f64 = 1.0;

/// The bytes of a message.
///
/// # Errors
///
/// If Arrow cannot write it.
pub(super) fn encode(message: &Message, columns: &Columns) -> Result<Vec<u8>, ArrowError> {
    let encoded = message.batches.iter().map(|rows| batch(rows, columns, message));
    let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = encoded.first() else { return Ok(Vec::new()) };
    // Text is declared as text, as producers do, also where it is not valid.
    let said = |field: &Field| field.clone().with_data_type(as_text(field.data_type()));
    let fields: Vec<Field> = first.schema().fields().iter().map(|field| said(field)).collect();
    let mut writer = StreamWriter::try_new(Vec::new(), &Schema::new(fields))?;
    for batch in &encoded {
        writer.write(batch)?;
    }
    writer.into_inner()
}

fn batch(rows: &[Row], columns: &Columns, message: &Message) -> Result<RecordBatch, ArrowError> {
    let nulls = |is_there: &dyn Fn(&Row) -> bool| NullBuffer::from_iter(rows.iter().map(is_there));
    let times = rows.iter().map(|row| row.time.unwrap_or(message.stamp).micros()).collect();
    let times = TimestampMicrosecondArray::try_new(times, Some(nulls(&|row| row.time.is_some())))?;
    let mut named: Vec<(&String, ArrayRef)> = vec![(&columns.time, Arc::new(times.with_timezone("UTC")))];
    if let Some(name) = &columns.key {
        named.push((name, texts(rows.iter().map(|row| row.key.as_deref()), message.texts)?));
    }
    if let Some(name) = &columns.unit {
        named.push((name, texts(rows.iter().map(|row| row.unit.as_deref()), message.texts)?));
    }
    for (at, name) in columns.values.iter().enumerate() {
        let value = |row: &Row| row.values.get(at).copied().flatten();
        let values = rows.iter().map(|row| value(row).unwrap_or(UNDER_A_NULL)).collect();
        named.push((name, Arc::new(Float64Array::try_new(values, Some(nulls(&|row| value(row).is_some())))?)));
    }
    // One column can have two parts to play.
    let mut seen = BTreeSet::new();
    named.retain(|(name, _)| seen.insert(name.as_str()));
    let field = |(name, array): &(&String, ArrayRef)| Field::new(name.as_str(), array.data_type().clone(), true);
    let schema = Schema::new(named.iter().map(field).collect::<Vec<_>>());
    let arrays = named.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options)
}

fn texts<'a>(rows: impl Iterator<Item = Option<&'a [u8]>>, form: Texts) -> Result<ArrayRef, ArrowError> {
    Ok(match form {
        Texts::Plain => Arc::new(rows.collect::<BinaryArray>()),
        Texts::Large => Arc::new(rows.collect::<LargeBinaryArray>()),
        Texts::Views => Arc::new(rows.collect::<BinaryViewArray>()),
        Texts::Dictionary => {
            let rows: Vec<Option<&[u8]>> = rows.collect();
            let values: Vec<&[u8]> = rows.iter().copied().flatten().collect::<BTreeSet<_>>().into_iter().collect();
            let place = |row: &Option<&[u8]>| row.and_then(|row| i32::try_from(values.binary_search(&row).ok()?).ok());
            let indices: Int32Array = rows.iter().map(place).collect();
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
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(as_text(values))),
        other => other.clone(),
    }
}
