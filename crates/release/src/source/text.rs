//! A column of keys or privacy units.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, Int64Array,
    LargeBinaryArray, downcast_integer_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::source::broken::Broken;
use bernstream_synopsis::scalar::integer_part;

/// A column of text as bytes, or of integers in decimal; invalid UTF-8 is kept where text is. `Debug` shows none of it.
///
/// Dictionaries and views stay as they came: unfolded, a short message would take gigabytes, and with a limit on that, one row
/// more could make the whole message unreadable.
#[derive(Clone, Default)]
pub struct Text {
    /// The record batches of one message, each with the row after its last.
    parts: Vec<(usize, Part)>,
}

#[derive(Clone)]
enum Part {
    Short(BinaryArray),
    Long(LargeBinaryArray),
    Views(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
    /// Indices into the values; what lies outside them is null.
    Dictionary(Int64Array, Box<Part>),
    /// Text of which only integers count, each in its one form.
    Integers(Box<Part>),
}

impl Text {
    /// # Errors
    ///
    /// If the column is neither text nor bytes.
    pub(crate) fn new(column: &ArrayRef) -> Result<Self, Broken> {
        Ok(Text {
            parts: vec![(column.len(), Part::new(column.as_ref())?)],
        })
    }

    /// The integers that are written in it; all other text is null.
    pub(crate) fn of_integers(self) -> Self {
        let of_integers = |(end, part)| (end, Part::Integers(Box::new(part)));
        Text {
            parts: self.parts.into_iter().map(of_integers).collect(),
        }
    }

    /// The columns one after another.
    pub(crate) fn join<'a>(columns: impl Iterator<Item = &'a Text>) -> Self {
        let mut parts = Vec::new();
        let mut end = 0;
        for column in columns {
            parts.extend(
                column
                    .parts
                    .iter()
                    .map(|(rows, part)| (end + rows, part.clone())),
            );
            end += column.len();
        }
        Text { parts }
    }

    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |(end, _)| *end)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a row; `None` if it is null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let at = self.parts.partition_point(|(end, _)| *end <= row);
        let start = at
            .checked_sub(1)
            .and_then(|before| self.parts.get(before))
            .map_or(0, |(end, _)| *end);
        self.parts.get(at)?.1.get(row - start)
    }
}

impl Text {
    /// What `of` makes of each row; null stays null. An entry of a dictionary is looked at once, unless it has more entries than rows.
    pub(crate) fn translated<T: Copy>(&self, of: impl Fn(&[u8]) -> Option<T>) -> Vec<Option<T>> {
        let mut all = Vec::with_capacity(self.len());
        for (_, part) in &self.parts {
            all.extend(part.translated(&of));
        }
        all
    }
}

impl From<BinaryArray> for Text {
    fn from(rows: BinaryArray) -> Self {
        Text {
            parts: vec![(rows.len(), Part::Short(rows))],
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} rows)", self.len())
    }
}

impl Part {
    fn translated<T: Copy>(&self, of: &dyn Fn(&[u8]) -> Option<T>) -> Vec<Option<T>> {
        match self {
            Part::Dictionary(keys, values) if values.len() <= keys.len() => {
                let entries: Vec<_> = (0..values.len())
                    .map(|at| values.get(at).and_then(of))
                    .collect();
                let entry = |at: i64| {
                    usize::try_from(at)
                        .ok()
                        .and_then(|at| entries.get(at).copied().flatten())
                };
                keys.iter().map(|at| at.and_then(entry)).collect()
            }
            Part::Integers(rows) => rows.translated(&|text| of(integer_digits(text)?)),
            part => (0..part.len())
                .map(|row| part.get(row).and_then(of))
                .collect(),
        }
    }

    fn new(column: &dyn Array) -> Result<Self, Broken> {
        Ok(match column.data_type() {
            DataType::Binary => Part::Short(column.as_binary().clone()),
            DataType::LargeBinary => Part::Long(column.as_binary().clone()),
            DataType::BinaryView => Part::Views(column.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => Part::Fixed(column.as_fixed_size_binary().clone()),
            DataType::Dictionary(_, _) => {
                let dictionary = column.as_any_dictionary();
                let keys = dictionary.keys();
                let keys: Int64Array = downcast_integer_array! {
                    keys => keys.unary_opt(|key| key.to_i64()),
                    other => return Err(Broken::new(format_args!("a dictionary has keys of {other}"))),
                };
                Part::Dictionary(keys, Box::new(Part::new(dictionary.values().as_ref())?))
            }
            other => {
                return Err(Broken::new(format_args!(
                    "a column is {other}, but it must be text or bytes"
                )));
            }
        })
    }

    fn len(&self) -> usize {
        match self {
            Part::Short(rows) => rows.len(),
            Part::Long(rows) => rows.len(),
            Part::Views(rows) => rows.len(),
            Part::Fixed(rows) => rows.len(),
            Part::Dictionary(keys, _) => keys.len(),
            Part::Integers(rows) => rows.len(),
        }
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        fn valid(array: &dyn Array, row: usize) -> bool {
            row < array.len() && array.is_valid(row)
        }
        match self {
            Part::Short(rows) => valid(rows, row).then(|| rows.value(row)),
            Part::Long(rows) => valid(rows, row).then(|| rows.value(row)),
            Part::Views(rows) => valid(rows, row).then(|| rows.value(row)),
            Part::Fixed(rows) => valid(rows, row).then(|| rows.value(row)),
            Part::Dictionary(keys, values) => valid(keys, row)
                .then(|| usize::try_from(keys.value(row)).ok())
                .flatten()
                .and_then(|at| values.get(at)),
            Part::Integers(rows) => rows.get(row).and_then(integer_digits),
        }
    }
}

/// The integer that is written in a text, in its one form.
fn integer_digits(text: &[u8]) -> Option<&[u8]> {
    integer_part(short(text)?).map(str::as_bytes)
}

/// The longest text of a table that is read as a number or a time, in bytes: views of a message can have many rows of one long text.
const LONGEST_READ: usize = 1024;

/// A text that is read as a number or a time.
pub(super) fn short(text: &[u8]) -> Option<&str> {
    (text.len() <= LONGEST_READ).then(|| std::str::from_utf8(text).ok())?
}
