//! The needed columns of a table as a [`Batch`].

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use super::batch::Batch;
use super::broken::{DecodeError, arrow_error};
use super::cells;
use super::columns::Columns;
use super::found::{ColumnRole, FoundColumns, NeededColumn, needed_columns};
use super::key_rows::KeyRows;
use super::text::TextColumn;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::scalar::IdType;

/// Origin of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchOrigin {
    pub partition: i32,
    pub offset: i64,
    pub message_time: Option<Timestamp>,
}

/// The type with text as bytes, so that one row of invalid UTF-8 does not break the others.
pub fn text_as_bytes(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(key, values) => {
            DataType::Dictionary(key.clone(), Box::new(text_as_bytes(values)))
        }
        other => other.clone(),
    }
}

/// The needed columns as a batch; one that is missing or of a type that it may not have is a column of nulls.
///
/// Without event times no row is of use, and there is nothing that bounds how many a table says that it has: the batch has none.
///
/// # Errors
///
/// If a column that is there cannot be read.
pub fn needed_batch(
    records: &RecordBatch,
    columns: &Columns,
    found: &Arc<FoundColumns>,
    place: BatchOrigin,
) -> Result<Batch, DecodeError> {
    let time = NeededColumn {
        name: &columns.time,
        role: ColumnRole::Time(columns.time_format),
    };
    let times = match readable(records, &time) {
        Some(times) => cells::column_times(times, columns.time_format)?,
        None => Int64Array::new_null(0),
    };
    let rows = times.len();
    let BatchOrigin {
        partition,
        offset,
        message_time,
    } = place;
    let mut batch = Batch {
        partition,
        offset,
        message_time,
        times,
        keys: None,
        units: None,
        values: Vec::with_capacity(columns.values.len()),
        found: Some(Arc::clone(found)),
    };
    let mut parts = Vec::with_capacity(columns.key.len());
    for needed in needed_columns(columns) {
        let column = readable(records, &needed).filter(|column| column.len() == rows);
        match needed.role {
            ColumnRole::Time(_) => {}
            ColumnRole::Key(declared) => parts.push(ids_or_nulls(column, declared, rows)?),
            ColumnRole::Unit(declared) => batch.units = Some(ids_or_nulls(column, declared, rows)?),
            ColumnRole::Value => batch.values.push(match column {
                Some(column) => cells::column_numbers(column)?,
                None => Float64Array::new_null(rows),
            }),
        }
    }
    batch.keys = KeyRows::of_parts(parts);
    Ok(batch)
}

/// A column that is there and has a type that it may have.
fn readable<'a>(records: &'a RecordBatch, needed: &NeededColumn<'_>) -> Option<&'a ArrayRef> {
    records
        .column_by_name(needed.name)
        .filter(|column| needed.role.accepts_type(column.data_type()))
}

fn ids_or_nulls(
    column: Option<&ArrayRef>,
    declared: Option<IdType>,
    rows: usize,
) -> Result<TextColumn, DecodeError> {
    match column {
        Some(column) => cells::column_ids(column, declared),
        None => Ok(TextColumn::from(BinaryArray::new_null(rows))),
    }
}

/// Concatenates the batches of one message.
pub(crate) fn join_batches(batches: &[Batch], place: BatchOrigin) -> Result<Batch, DecodeError> {
    fn all<'a, A: Array + 'a>(parts: impl Iterator<Item = &'a A>) -> Result<ArrayRef, DecodeError> {
        let parts: Vec<&dyn Array> = parts.map(|part| part as &dyn Array).collect();
        concat(&parts).map_err(arrow_error)
    }
    let axes = batches.first().map_or(0, |first| first.values.len());
    let values = (0..axes).map(|axis| {
        let joined = all(batches.iter().filter_map(|b| b.values.get(axis)))?;
        Ok(joined.as_primitive().clone())
    });
    let units: Option<Vec<&TextColumn>> = batches.iter().map(|b| b.units.as_ref()).collect();
    let BatchOrigin {
        partition,
        offset,
        message_time,
    } = place;
    Ok(Batch {
        partition,
        offset,
        message_time,
        times: all(batches.iter().map(|b| &b.times))?
            .as_primitive()
            .clone(),
        keys: KeyRows::join_rows(batches.iter().map(|b| b.keys.as_ref())),
        units: units.map(|units| TextColumn::join_columns(units.into_iter())),
        values: values.collect::<Result<_, DecodeError>>()?,
        found: batches.first().and_then(|first| first.found.clone()),
    })
}
