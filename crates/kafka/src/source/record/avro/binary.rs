//! Avro's binary encoding (specification 1.11, "Binary Encoding"), of bytes that may be hostile.

use super::schema::{AvroType, RecordSchema};
use crate::source::record::fields::{RecordRow, Scalar};
use crate::source::record::tree::FieldTree;
use bernstream_release::source::broken::{DecodeError, truncated_input};

/// Greatest depth at which values may lie in one another: a recursive schema would let a short message fill the stack.
const DEEPEST: usize = 128;
/// Number of values that a record may have beyond four for each of its bytes: nulls take none, and 2^62 of them fit into nine bytes.
const FREE_VALUES: usize = 10_000;

/// The rest of a record.
pub(super) struct AvroInput<'a> {
    rest: &'a [u8],
    /// Number of values that may still be read.
    values: usize,
}

/// Where the value that is read belongs.
#[derive(Clone, Copy)]
struct ValuePlace<'t> {
    schema: &'t RecordSchema,
    tree: &'t FieldTree,
    /// `None` where nothing is needed.
    node: Option<usize>,
    depth: usize,
}

impl<'a> AvroInput<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        AvroInput {
            rest: bytes,
            values: FREE_VALUES.saturating_add(bytes.len().saturating_mul(4)),
        }
    }

    /// Reads all of it as one record.
    ///
    /// # Errors
    ///
    /// If it is not one, with nothing behind it.
    pub fn read_record(
        mut self,
        schema: &RecordSchema,
        tree: &FieldTree,
        row: &mut RecordRow,
    ) -> Result<(), DecodeError> {
        let place = ValuePlace {
            schema,
            tree,
            node: Some(0),
            depth: 0,
        };
        self.read_value(schema.root(), place, row)?;
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::new("there are bytes after the record"))
        }
    }

    fn read_value(
        &mut self,
        kind: usize,
        place: ValuePlace<'_>,
        row: &mut RecordRow,
    ) -> Result<(), DecodeError> {
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| DecodeError::new("it has too many values for its length"))?;
        let place = ValuePlace {
            depth: place.depth + 1,
            ..place
        };
        if place.depth > DEEPEST {
            return Err(DecodeError::new(format_args!(
                "its values lie more than {DEEPEST} deep in one another"
            )));
        }
        let ValuePlace {
            schema, tree, node, ..
        } = place;
        let kind = schema
            .kind(kind)
            .ok_or_else(|| DecodeError::new("its schema lacks a type"))?;
        let roles = node.map_or(&[][..], |node| tree.roles(node));
        let unneeded = ValuePlace {
            node: None,
            ..place
        };
        match kind {
            AvroType::Null => {}
            AvroType::Boolean => match self.take(1)? {
                [0 | 1] => {}
                _ => return Err(DecodeError::new("a boolean is neither 0 nor 1")),
            },
            AvroType::Integer => row.set_all(roles, Scalar::Integer(self.integer()?.into())),
            AvroType::Float => {
                row.set_all(roles, Scalar::Single(f32::from_le_bytes(self.array()?)))
            }
            AvroType::Double => {
                row.set_all(roles, Scalar::Float(f64::from_le_bytes(self.array()?)))
            }
            AvroType::Bytes => row.set_all(roles, Scalar::Bytes(self.bytes()?)),
            AvroType::Text => {
                let bytes = self.bytes()?;
                // What is not needed is not looked at.
                if !roles.is_empty()
                    && let Ok(text) = std::str::from_utf8(bytes)
                {
                    row.set_all(roles, Scalar::Text(text));
                }
            }
            AvroType::Fixed(size) => row.set_all(roles, Scalar::Bytes(self.take(*size)?)),
            AvroType::Enum(symbols) => match symbols.get(self.index()?) {
                Some(symbol) => row.set_all(roles, Scalar::Text(symbol)),
                None => return Err(DecodeError::new("an enum has a symbol that there is not")),
            },
            AvroType::Union(kinds) => match kinds.get(self.index()?) {
                Some(kind) => self.read_value(*kind, place, row)?,
                None => return Err(DecodeError::new("a union has a type that there is not")),
            },
            AvroType::Record(fields) => {
                for field in fields {
                    let node = node.and_then(|node| tree.child(node, &field.name));
                    self.read_value(field.kind, ValuePlace { node, ..place }, row)?;
                }
            }
            AvroType::Array(items) => {
                self.read_blocks(|input| input.read_value(*items, unneeded, row))?
            }
            AvroType::Map(values) => self.read_blocks(|input| {
                input.bytes()?;
                input.read_value(*values, unneeded, row)
            })?,
        }
        Ok(())
    }

    /// The blocks of an array or a map; what has a length in bytes is passed over as a whole.
    fn read_blocks(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        loop {
            match self.integer()? {
                0 => return Ok(()),
                ..0 => {
                    self.bytes()?;
                }
                count => {
                    for _ in 0..count {
                        element(self)?;
                    }
                }
            }
        }
    }

    /// A place in a list; one that no list has for a negative number.
    fn index(&mut self) -> Result<usize, DecodeError> {
        Ok(usize::try_from(self.integer()?).unwrap_or(usize::MAX))
    }

    /// A zigzag varint.
    fn integer(&mut self) -> Result<i64, DecodeError> {
        let mut zigzag = 0_u64;
        for place in 0..10_u32 {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if place == 9 && bits > 1 {
                break;
            }
            zigzag |= bits << (7 * place);
            if byte < 0x80 {
                return Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
            }
        }
        Err(DecodeError::new("an integer has more than 64 bits"))
    }

    /// A length and so many bytes.
    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.integer()?)
            .map_err(|_| DecodeError::new("a length is negative"))?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| truncated_input("a value"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| truncated_input("a value"))?;
        self.rest = rest;
        Ok(*taken)
    }
}
