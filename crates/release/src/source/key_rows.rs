//! The key of each row, whatever number of columns it has.

use std::borrow::Cow;

use arrow_array::BinaryArray;

use super::text::TextColumn;
use bernstream_synopsis::key_parts;

/// A column of text for each part of the key. A row with a part that is null has no key. `Debug` shows none of it.
///
/// Parts are not joined before a row is looked at: joined for all rows, texts that a message has once would take gigabytes.
#[derive(Clone, Debug)]
pub struct KeyRows {
    /// One or more, equally long.
    parts: Vec<TextColumn>,
}

impl KeyRows {
    /// `None` without a part.
    pub fn of_parts(parts: Vec<TextColumn>) -> Option<Self> {
        (!parts.is_empty()).then_some(KeyRows { parts })
    }

    /// The rows of several batches, one after another; `None` where one has no keys.
    pub(crate) fn join_rows<'a>(
        batches: impl Iterator<Item = Option<&'a KeyRows>>,
    ) -> Option<Self> {
        let batches: Vec<&KeyRows> = batches.collect::<Option<_>>()?;
        let mut parts = Vec::new();
        for part in 0..batches.first()?.parts.len() {
            let columns = batches.iter().filter_map(|rows| rows.parts.get(part));
            parts.push(TextColumn::join_columns(columns));
        }
        KeyRows::of_parts(parts)
    }

    /// The columns of the parts, in the order of the configuration.
    pub fn parts(&self) -> &[TextColumn] {
        &self.parts
    }

    /// The key of a row, its parts joined as [`key_parts::join_parts`] does; `None` if one is null.
    pub fn get(&self, row: usize) -> Option<Cow<'_, [u8]>> {
        if let [only] = self.parts.as_slice() {
            return only.get(row).map(Cow::Borrowed);
        }
        let mut joined = Vec::new();
        self.join_row(row, usize::MAX, own_part, &mut joined)?;
        Some(Cow::Owned(joined))
    }

    /// The key of a row as text; `None` where a part is null, or the key is empty, longer than `longest` bytes or no UTF-8. Several parts
    /// are joined in `joined`, and nothing longer is joined or read.
    pub(crate) fn text_of_row<'r>(
        &'r self,
        row: usize,
        longest: usize,
        joined: &'r mut Vec<u8>,
    ) -> Option<&'r str> {
        let key = match self.parts.as_slice() {
            [only] => only.get(row)?,
            _ => {
                self.join_row(row, longest, own_part, joined)?;
                joined.as_slice()
            }
        };
        if key.is_empty() || key.len() > longest {
            return None;
        }
        std::str::from_utf8(key).ok()
    }

    /// Values that `convert` makes of the key of each row; `None` where a part is null, or the key is longer than `longest` bytes.
    /// Nothing longer is joined.
    pub(crate) fn map_keys<T: Copy>(
        &self,
        longest: usize,
        convert: impl Fn(&[u8]) -> Option<T>,
    ) -> Vec<Option<T>> {
        match self.parts.as_slice() {
            [only] => only.map_rows(convert),
            _ => self.map_renamed_keys(longest, own_part, convert),
        }
    }

    /// [`KeyRows::map_keys`], of keys whose parts have the names that `rename` gives them, by their places.
    pub(crate) fn map_renamed_keys<'r, T: Copy>(
        &'r self,
        longest: usize,
        rename: impl Fn(usize, &'r [u8]) -> &'r [u8],
        convert: impl Fn(&[u8]) -> Option<T>,
    ) -> Vec<Option<T>> {
        let rows = self.parts.first().map_or(0, TextColumn::len);
        let mut joined = Vec::with_capacity(longest);
        let mut all = Vec::with_capacity(rows);
        for row in 0..rows {
            let key = self.join_row(row, longest, &rename, &mut joined);
            all.push(key.and_then(|()| convert(&joined)));
        }
        all
    }

    /// Writes the key of a row to `joined`, its parts renamed; `None` where a part is null, or the parts are longer than `longest` bytes.
    fn join_row<'r>(
        &'r self,
        row: usize,
        longest: usize,
        rename: impl Fn(usize, &'r [u8]) -> &'r [u8],
        joined: &mut Vec<u8>,
    ) -> Option<()> {
        joined.clear();
        let mut left = longest;
        for (place, part) in self.parts.iter().enumerate() {
            let part = rename(place, part.get(row)?);
            left = left.checked_sub(part.len())?;
            key_parts::append_part(joined, part, place == 0);
        }
        Some(())
    }
}

/// A part as it stands in the record.
fn own_part(_place: usize, part: &[u8]) -> &[u8] {
    part
}

impl From<BinaryArray> for KeyRows {
    fn from(only: BinaryArray) -> Self {
        KeyRows::from(TextColumn::from(only))
    }
}

impl From<TextColumn> for KeyRows {
    fn from(only: TextColumn) -> Self {
        KeyRows { parts: vec![only] }
    }
}
