//! The columns of a table as times, ids and numbers: each row by itself.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, Float16Type, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, downcast_integer_array};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;

use super::broken::{DecodeError, arrow_error};
use super::found::{CellKind, ColumnRole};
use super::text::{TextColumn, short_text};
use bernstream_synopsis::scalar::{
    IdType, OF_DOUBLE, OF_HALF, OF_SINGLE, integer_of, parse_integer, parse_number,
};
use bernstream_synopsis::times::TimeFormat;

/// Microseconds, rounded down, and midnight in UTC of a date; null on overflow, and where a row is no time as declared.
///
/// # Errors
///
/// If the column has a type that event times may not have.
pub fn column_times(
    column: &ArrayRef,
    declared: Option<TimeFormat>,
) -> Result<Int64Array, DecodeError> {
    let column = &unfolded(column)?;
    if CellKind::of_type(column.data_type()) == Some(CellKind::Text) {
        let format = declared.unwrap_or_default();
        return Ok(TextColumn::new(column)?
            .map_rows(|text| format.parse_micros(short_text(text)?))
            .into());
    }
    Ok(match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => column
            .as_primitive::<TimestampSecondType>()
            .unary_opt(|t| t.checked_mul(1_000_000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => column
            .as_primitive::<TimestampMillisecondType>()
            .unary_opt(|t| t.checked_mul(1_000)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => column
            .as_primitive::<TimestampMicrosecondType>()
            .reinterpret_cast::<Int64Type>(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column
            .as_primitive::<TimestampNanosecondType>()
            .unary(|t| t.div_euclid(1_000)),
        DataType::Date32 => column
            .as_primitive::<Date32Type>()
            .unary_opt(|days| i64::from(days).checked_mul(86_400_000_000)),
        DataType::Date64 => column
            .as_primitive::<Date64Type>()
            .unary_opt(|t| t.checked_mul(1_000)),
        kind => {
            let Some(format) = declared else {
                return Err(unsuitable_column(
                    kind,
                    ColumnRole::Time(declared).type_requirement(),
                ));
            };
            let mut times = Int64Builder::with_capacity(column.len());
            each_integer(column, |count| {
                times.append_option(count.and_then(|count| format.micros(count)))
            })?;
            times.finish()
        }
    })
}

/// Keys or users: text as it is, unless it is declared to hold integers; numbers that are integers in decimal.
pub(super) fn column_ids(
    column: &ArrayRef,
    declared: Option<IdType>,
) -> Result<TextColumn, DecodeError> {
    let column = &unfolded(column)?;
    if CellKind::of_type(column.data_type()) == Some(CellKind::Text) {
        let text = TextColumn::new(column)?;
        return Ok(if declared == Some(IdType::Integer) {
            text.integers_only()
        } else {
            text
        });
    }
    let mut ids = BinaryBuilder::with_capacity(column.len(), 0);
    each_integer(column, |id| ids.append_option(id.map(|id| id.to_string())))?;
    Ok(ids.finish().into())
}

/// The nearest `f64`; `true` is 1 and `false` is 0; text holds one number as in JSON, or one of the two: a single text makes text of a
/// column of numbers or booleans.
pub(super) fn column_numbers(column: &ArrayRef) -> Result<Float64Array, DecodeError> {
    let column = &unfolded(column)?;
    Ok(match column.data_type() {
        DataType::Float64 => column.as_primitive().clone(),
        DataType::Float32 => column.as_primitive::<Float32Type>().unary(f64::from),
        DataType::Float16 => column.as_primitive::<Float16Type>().unary(f64::from),
        DataType::Boolean => column
            .as_boolean()
            .iter()
            .map(|value| value.map(|is| f64::from(u8::from(is))))
            .collect(),
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(column, *scale),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(column, *scale),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(column, *scale),
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type>(column, *scale),
        kind if CellKind::of_type(kind) == Some(CellKind::Text) => TextColumn::new(column)?
            .map_rows(|text| short_text(text).and_then(number_or_boolean))
            .into(),
        _ => {
            let column = column.as_ref();
            downcast_integer_array! {
                column => column.unary(|n| n as f64),
                other => return Err(unsuitable_column(other, ColumnRole::Value.type_requirement())),
            }
        }
    })
}

fn number_or_boolean(text: &str) -> Option<f64> {
    match text {
        "true" | "True" => Some(1.0),
        "false" | "False" => Some(0.0),
        text => parse_number(text),
    }
}

/// A dictionary of anything but text as the column that it stands for: its rows are no longer than a number each.
fn unfolded(column: &ArrayRef) -> Result<ArrayRef, DecodeError> {
    match column.data_type() {
        DataType::Dictionary(_, values) if CellKind::of_type(values) != Some(CellKind::Text) => {
            let dictionary = column.as_any_dictionary();
            take(dictionary.values().as_ref(), dictionary.keys(), None).map_err(arrow_error)
        }
        _ => Ok(Arc::clone(column)),
    }
}

/// Hands out the integer that each row is: a float or a decimal is one where it has no fraction.
fn each_integer(column: &ArrayRef, mut take: impl FnMut(Option<i128>)) -> Result<(), DecodeError> {
    let column = column.as_ref();
    match column.data_type() {
        DataType::Float64 => column
            .as_primitive::<Float64Type>()
            .iter()
            .for_each(|float| take(float.and_then(|float| integer_of(float, OF_DOUBLE)))),
        DataType::Float32 => column
            .as_primitive::<Float32Type>()
            .iter()
            .for_each(|float| take(float.and_then(|float| integer_of(float.into(), OF_SINGLE)))),
        DataType::Float16 => column
            .as_primitive::<Float16Type>()
            .iter()
            .for_each(|float| take(float.and_then(|float| integer_of(float.into(), OF_HALF)))),
        DataType::Decimal32(_, scale) => each_decimal::<Decimal32Type>(column, *scale, take),
        DataType::Decimal64(_, scale) => each_decimal::<Decimal64Type>(column, *scale, take),
        DataType::Decimal128(_, scale) => each_decimal::<Decimal128Type>(column, *scale, take),
        DataType::Decimal256(_, scale) => each_decimal::<Decimal256Type>(column, *scale, take),
        _ => downcast_integer_array! {
            column => column.iter().for_each(|integer| take(integer.map(i128::from))),
            other => return Err(unsuitable_column(other, "integers are needed")),
        },
    }
    Ok(())
}

/// Hands out the integer that each decimal is. A decimal is exact, so its fraction says all.
fn each_decimal<D: DecimalType>(column: &dyn Array, scale: i8, mut take: impl FnMut(Option<i128>)) {
    for decimal in column.as_primitive::<D>() {
        take(decimal.and_then(|decimal| whole_decimal::<D>(decimal, scale)));
    }
}

fn whole_decimal<D: DecimalType>(decimal: D::Native, scale: i8) -> Option<i128> {
    let text = D::format_decimal(decimal, u8::MAX, scale);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.bytes().all(|digit| digit == b'0') {
        parse_integer(whole)
    } else {
        None
    }
}

/// The nearest `f64` by way of their text, because reading one rounds once, to the nearest; a division by a power of ten may round twice.
fn decimals<D: DecimalType>(column: &dyn Array, scale: i8) -> Float64Array {
    column
        .as_primitive::<D>()
        .unary_opt(|decimal| D::format_decimal(decimal, u8::MAX, scale).parse().ok())
}

fn unsuitable_column(kind: &DataType, requirement: &str) -> DecodeError {
    DecodeError::new(format_args!("a column is {kind}, but {requirement}"))
}
