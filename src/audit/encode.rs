//! Messages as Arrow IPC streams, with the column names of the configuration: the real decoder reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Float64Array, Int32Array, LargeBinaryArray,
    RecordBatch, RecordBatchOptions, TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::messages::{Body, Message, Row, Texts};
use crate::clock::Timestamp;
use crate::source::Columns;

/// The bytes of a message.
///
/// # Errors
///
/// If Arrow cannot write it.
pub(super) fn encode(message: &Message, columns: &Columns) -> Result<Vec<u8>, ArrowError> {
    let (batches, texts) = match &message.body {
        Body::Rows { batches, texts } => (batches, *texts),
        Body::Raw(bytes) => return Ok(bytes.clone()),
    };
    let encoded = batches.iter().map(|rows| batch(rows, columns, texts)).collect::<Result<Vec<_>, _>>()?;
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

fn batch(rows: &[Row], columns: &Columns, form: Texts) -> Result<RecordBatch, ArrowError> {
    let times: TimestampMicrosecondArray = rows.iter().map(|row| row.time.map(Timestamp::micros)).collect();
    let mut named: Vec<(&String, ArrayRef)> = vec![(&columns.time, Arc::new(times.with_timezone("UTC")))];
    if let Some(name) = &columns.key {
        named.push((name, texts(rows.iter().map(|row| row.key.as_deref()), form)?));
    }
    if let Some(name) = &columns.unit {
        named.push((name, texts(rows.iter().map(|row| row.unit.as_deref()), form)?));
    }
    for (at, name) in columns.values.iter().enumerate() {
        let values: Float64Array = rows.iter().map(|row| row.values.get(at).copied().flatten()).collect();
        named.push((name, Arc::new(values)));
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
