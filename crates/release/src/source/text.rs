//! A column of keys or privacy units.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, Int64Array,
    LargeBinaryArray, downcast_integer_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::source::broken::DecodeError;
use bernstream_synopsis::scalar::integer_part;

/// A column of text as bytes, or of integers in decimal; invalid UTF-8 is kept where text is. `Debug` shows none of it.
///
/// Dictionaries and views stay as they came: unfolded, a short message would take gigabytes, and with a limit on that, one row
/// more could make the whole message unreadable.
#[derive(Clone, Default)]
pub struct TextColumn {
    /// The record batches of one message.
    parts: Vec<BatchPart>,
}

#[derive(Clone)]
struct BatchPart {
    /// The row after its last, in the whole column.
    end: usize,
    rows: BatchRows,
}

#[derive(Clone)]
enum BatchRows {
    Short(BinaryArray),
    Long(LargeBinaryArray),
    Views(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
    /// Indices into the values; what lies outside them is null.
    Dictionary(Int64Array, Box<BatchRows>),
    /// Text of which only integers count, each in its one form.
    Integers(Box<BatchRows>),
}

impl TextColumn {
    /// # Errors
    ///
    /// If the column is neither text nor bytes.
    pub(crate) fn new(column: &ArrayRef) -> Result<Self, DecodeError> {
        let rows = BatchRows::new(column.as_ref())?;
        let end = column.len();
        Ok(TextColumn {
            parts: vec![BatchPart { end, rows }],
        })
    }

    /// The integers that are written in it; all other text is null.
    pub(crate) fn integers_only(self) -> Self {
        let mut parts = Vec::with_capacity(self.parts.len());
        for BatchPart { end, rows } in self.parts {
            let rows = BatchRows::Integers(Box::new(rows));
            parts.push(BatchPart { end, rows });
        }
        TextColumn { parts }
    }

    /// The columns one after another.
    pub(crate) fn join_columns<'a>(columns: impl Iterator<Item = &'a TextColumn>) -> Self {
        let mut parts = Vec::new();
        let mut end = 0;
        for column in columns {
            for part in &column.parts {
                parts.push(BatchPart {
                    end: end + part.end,
                    rows: part.rows.clone(),
                });
            }
            end += column.len();
        }
        TextColumn { parts }
    }

    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a row; `None` if it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let index = self.parts.partition_point(|part| part.end <= row);
        let start = match index.checked_sub(1) {
            Some(before) => self.parts.get(before).map_or(0, |part| part.end),
            None => 0,
        };
        self.parts.get(index)?.rows.get(row - start)
    }
}

impl TextColumn {
    /// Values that `convert` makes of each row; null stays null. An entry of a dictionary is looked at once, unless it has more entries than rows.
    pub(crate) fn map_rows<T: Copy>(&self, convert: impl Fn(&[u8]) -> Option<T>) -> Vec<Option<T>> {
        let mut all = Vec::with_capacity(self.len());
        for part in &self.parts {
            all.extend(part.rows.map_rows(&convert));
        }
        all
    }
}

impl From<BinaryArray> for TextColumn {
    fn from(rows: BinaryArray) -> Self {
        TextColumn {
            parts: vec![BatchPart {
                end: rows.len(),
                rows: BatchRows::Short(rows),
            }],
        }
    }
}

impl fmt::Debug for TextColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} rows)", self.len())
    }
}

impl BatchRows {
    fn map_rows<T: Copy>(&self, convert: &dyn Fn(&[u8]) -> Option<T>) -> Vec<Option<T>> {
        match self {
            BatchRows::Dictionary(keys, values) if values.len() <= keys.len() => {
                let entries: Vec<_> = (0..values.len())
                    .map(|entry| values.get(entry).and_then(convert))
                    .collect();
                keys.iter()
                    .map(|key| *entries.get(usize::try_from(key?).ok()?)?)
                    .collect()
            }
            BatchRows::Integers(rows) => rows.map_rows(&|text| convert(integer_digits(text)?)),
            part => (0..part.len())
                .map(|row| part.get(row).and_then(convert))
                .collect(),
        }
    }

    fn new(column: &dyn Array) -> Result<Self, DecodeError> {
        Ok(match column.data_type() {
            DataType::Binary => BatchRows::Short(column.as_binary().clone()),
            DataType::LargeBinary => BatchRows::Long(column.as_binary().clone()),
            DataType::BinaryView => BatchRows::Views(column.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => BatchRows::Fixed(column.as_fixed_size_binary().clone()),
            DataType::Dictionary(_, _) => {
                let dictionary = column.as_any_dictionary();
                let keys = dictionary.keys();
                let keys: Int64Array = downcast_integer_array! {
                    keys => keys.unary_opt(|key| key.to_i64()),
                    other => return Err(DecodeError::new(format_args!("a dictionary has keys of {other}"))),
                };
                BatchRows::Dictionary(
                    keys,
                    Box::new(BatchRows::new(dictionary.values().as_ref())?),
                )
            }
            other => {
                return Err(DecodeError::new(format_args!(
                    "a column is {other}, but it must be text or bytes"
                )));
            }
        })
    }

    fn len(&self) -> usize {
        match self {
            BatchRows::Short(rows) => rows.len(),
            BatchRows::Long(rows) => rows.len(),
            BatchRows::Views(rows) => rows.len(),
            BatchRows::Fixed(rows) => rows.len(),
            BatchRows::Dictionary(keys, _) => keys.len(),
            BatchRows::Integers(rows) => rows.len(),
        }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            BatchRows::Short(rows) => is_valid(rows, row).then(|| rows.value(row)),
            BatchRows::Long(rows) => is_valid(rows, row).then(|| rows.value(row)),
            BatchRows::Views(rows) => is_valid(rows, row).then(|| rows.value(row)),
            BatchRows::Fixed(rows) => is_valid(rows, row).then(|| rows.value(row)),
            BatchRows::Dictionary(keys, values) if is_valid(keys, row) => {
                values.get(usize::try_from(keys.value(row)).ok()?)
            }
            BatchRows::Dictionary(..) => None,
            BatchRows::Integers(rows) => rows.get(row).and_then(integer_digits),
        }
    }
}

fn is_valid(array: &dyn Array, row: usize) -> bool {
    row < array.len() && array.is_valid(row)
}

/// The integer that is written in a text, in its one form.
fn integer_digits(text: &[u8]) -> Option<&[u8]> {
    integer_part(short_text(text)?).map(str::as_bytes)
}

/// The longest text of a table that is read as a number or a time, in bytes: views of a message can have many rows of one long text.
const LONGEST_READ: usize = 1024;

/// A text that is read as a number or a time.
pub(super) fn short_text(text: &[u8]) -> Option<&str> {
    (text.len() <= LONGEST_READ).then(|| std::str::from_utf8(text).ok())?
}
