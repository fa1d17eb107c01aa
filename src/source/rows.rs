//! The needed columns of a table as a [`Batch`].

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
    Float32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, downcast_integer_array};
use arrow_schema::{DataType, Schema, TimeUnit};
use arrow_select::concat::concat;

use crate::clock::Timestamp;
use crate::source::batch::{Batch, Columns};
use crate::source::broken::{Broken, arrow, names};
use crate::source::text::Text;
use crate::source::times::TimeFormat;

/// Where a batch comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub partition: i32,
    pub offset: i64,
    pub message_time: Option<Timestamp>,
}

/// The role of a column, which decides the types it may have.
#[derive(Clone, Copy)]
enum Role {
    Time(Option<TimeFormat>),
    Key,
    Unit,
    Value,
}

impl Role {
    fn accepts(self, kind: &DataType) -> bool {
        match self {
            Role::Time(declared) => match declared {
                _ if matches!(kind, DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64) => true,
                None => false,
                Some(TimeFormat::Rfc3339) => is_text(kind),
                Some(_) => kind.is_integer() || is_text(kind),
            },
            Role::Key | Role::Unit => is_text(kind) || kind.is_integer(),
            Role::Value => kind.is_numeric() || *kind == DataType::Boolean,
        }
    }

    fn requirement(self) -> &'static str {
        match self {
            Role::Time(None) => {
                "the event time must be a timestamp or a date, or input.time_format must say how it is written"
            }
            Role::Time(Some(TimeFormat::Rfc3339)) => {
                "the event time must be a timestamp, a date or, as input.time_format says, text"
            }
            Role::Time(Some(_)) => "the event time must be a timestamp, a date or, as input.time_format says, integers",
            Role::Key => "a key must be text, bytes or integers",
            Role::Unit => "a privacy unit must be text, bytes or integers",
            Role::Value => "a value must be a number or a boolean",
        }
    }
}

/// Text or bytes, also as a dictionary.
fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_bytes(values),
        kind => is_bytes(kind),
    }
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// The indices of the needed columns in a schema, ascending; each must occur exactly once, with a suitable type.
pub(crate) fn needed(schema: &Schema, columns: &Columns) -> Result<Vec<usize>, Broken> {
    let mut indices = BTreeSet::new();
    let values = columns.values.iter().map(|name| (name, Role::Value));
    let named =
        [Some((&columns.time, Role::Time(columns.time_format))), columns.key.as_ref().map(|name| (name, Role::Key))];
    let unit = columns.unit.as_ref().map(|name| (name, Role::Unit));
    for (name, role) in named.into_iter().flatten().chain(unit).chain(values) {
        let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let Some((index, field)) = found.next() else {
            let known = names(schema.fields().iter().map(|field| field.name().as_str()));
            return Err(Broken::new(format_args!("it has no column '{name}', only {known}")));
        };
        if found.next().is_some() {
            return Err(Broken::new(format_args!("it has two columns '{name}'")));
        }
        if !role.accepts(field.data_type()) {
            return Err(Broken::new(format_args!(
                "column '{name}' is {}, but {}",
                field.data_type(),
                role.requirement()
            )));
        }
        indices.insert(index);
    }
    Ok(indices.into_iter().collect())
}

/// The type with text as bytes, so that one row of invalid UTF-8 does not break the others.
pub(crate) fn as_bytes(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(as_bytes(values))),
        other => other.clone(),
    }
}

/// The needed columns as a batch.
pub(crate) fn batch(records: &RecordBatch, columns: &Columns, place: Place) -> Result<Batch, Broken> {
    let column = |name: &String| {
        records.column_by_name(name).ok_or_else(|| Broken::new(format_args!("it has no column '{name}'")))
    };
    let Place { partition, offset, message_time } = place;
    Ok(Batch {
        partition,
        offset,
        message_time,
        times: times(column(&columns.time)?, columns.time_format)?,
        keys: columns.key.as_ref().map(|name| Text::new(column(name)?)).transpose()?,
        units: columns.unit.as_ref().map(|name| Text::new(column(name)?)).transpose()?,
        values: columns.values.iter().map(|name| numbers(column(name)?)).collect::<Result<_, _>>()?,
    })
}

/// Concatenates the batches of one message.
pub(crate) fn join(batches: &[Batch], place: Place) -> Result<Batch, Broken> {
    fn all<'a, A: Array + 'a>(parts: impl Iterator<Item = &'a A>) -> Result<ArrayRef, Broken> {
        let parts: Vec<&dyn Array> = parts.map(|part| part as &dyn Array).collect();
        concat(&parts).map_err(arrow)
    }
    fn texts<'a>(parts: impl Iterator<Item = Option<&'a Text>>) -> Option<Text> {
        let parts: Option<Vec<&Text>> = parts.collect();
        parts.map(|parts| Text::join(parts.into_iter()))
    }
    let axes = batches.first().map_or(0, |first| first.values.len());
    let values = (0..axes).map(|axis| {
        let joined = all(batches.iter().filter_map(|b| b.values.get(axis)))?;
        Ok(joined.as_primitive().clone())
    });
    let Place { partition, offset, message_time } = place;
    Ok(Batch {
        partition,
        offset,
        message_time,
        times: all(batches.iter().map(|b| &b.times))?.as_primitive().clone(),
        keys: texts(batches.iter().map(|b| b.keys.as_ref())),
        units: texts(batches.iter().map(|b| b.units.as_ref())),
        values: values.collect::<Result<_, Broken>>()?,
    })
}

/// Microseconds, rounded down, and midnight in UTC of a date; null on overflow, and where a text is no time as declared.
pub(crate) fn times(column: &ArrayRef, declared: Option<TimeFormat>) -> Result<Int64Array, Broken> {
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            Ok(column.as_primitive::<TimestampSecondType>().unary_opt(|t| t.checked_mul(1_000_000)))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Ok(column.as_primitive::<TimestampMillisecondType>().unary_opt(|t| t.checked_mul(1_000)))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(column.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Ok(column.as_primitive::<TimestampNanosecondType>().unary(|t| t.div_euclid(1_000)))
        }
        DataType::Date32 => {
            Ok(column.as_primitive::<Date32Type>().unary_opt(|days| i64::from(days).checked_mul(86_400_000_000)))
        }
        DataType::Date64 => Ok(column.as_primitive::<Date64Type>().unary_opt(|t| t.checked_mul(1_000))),
        kind => match declared {
            Some(format) if kind.is_integer() => written(column.as_ref(), format),
            Some(format) if is_text(kind) => {
                Ok(Text::new(column)?.translated(|text| format.of_text(std::str::from_utf8(text).ok()?)).into())
            }
            _ => Err(Broken::new(format_args!("a column is {kind}, but {}", Role::Time(declared).requirement()))),
        },
    }
}

/// Integers since 1970.
fn written(column: &dyn Array, format: TimeFormat) -> Result<Int64Array, Broken> {
    Ok(downcast_integer_array! {
        column => column.iter().map(|count| format.micros(i128::from(count?))).collect(),
        other => return Err(Broken::new(format_args!("a column is {other}, but {}", Role::Time(Some(format)).requirement()))),
    })
}

/// The nearest `f64`; `true` is 1 and `false` is 0.
fn numbers(column: &ArrayRef) -> Result<Float64Array, Broken> {
    let column = column.as_ref();
    Ok(match column.data_type() {
        DataType::Float64 => column.as_primitive().clone(),
        DataType::Float32 => column.as_primitive::<Float32Type>().unary(f64::from),
        DataType::Float16 => column.as_primitive::<Float16Type>().unary(f64::from),
        DataType::Boolean => column.as_boolean().iter().map(|value| value.map(|is| f64::from(u8::from(is)))).collect(),
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(column, *scale),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(column, *scale),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(column, *scale),
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type>(column, *scale),
        _ => downcast_integer_array! {
            column => column.unary(|n| n as f64),
            other => return Err(Broken::new(format_args!("a column is {other}, but {}", Role::Value.requirement()))),
        },
    })
}

/// By way of their text, because reading one rounds once, to the nearest; a division by a power of ten may round twice.
fn decimals<D: DecimalType>(column: &dyn Array, scale: i8) -> Float64Array {
    let nearest = |n| D::format_decimal(n, u8::MAX, scale).parse().ok();
    column.as_primitive::<D>().unary_opt(nearest)
}
