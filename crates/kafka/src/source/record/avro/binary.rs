//! Avro's binary encoding (specification 1.11, "Binary Encoding"), of bytes that may be hostile.

use super::schema::{Schema, Type};
use crate::source::record::fields::{Row, Scalar};
use crate::source::record::tree::FieldTree;
use bernstream_release::source::broken::{Broken, truncated_input};

/// Greatest depth at which values may lie in one another: a recursive schema would let a short message fill the stack.
const DEEPEST: usize = 128;
/// Number of values that a record may have beyond four for each of its bytes: nulls take none, and 2^62 of them fit into nine bytes.
const FREE_VALUES: usize = 10_000;

/// The rest of a record.
pub(super) struct Input<'a> {
    rest: &'a [u8],
    /// Number of values that may still be read.
    values: usize,
}

/// Where the value that is read belongs.
#[derive(Clone, Copy)]
struct ValuePlace<'t> {
    schema: &'t Schema,
    tree: &'t FieldTree,
    /// `None` where nothing is needed.
    node: Option<usize>,
    depth: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Input {
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
        schema: &Schema,
        tree: &FieldTree,
        row: &mut Row,
    ) -> Result<(), Broken> {
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
            Err(Broken::new("there are bytes after the record"))
        }
    }

    fn read_value(
        &mut self,
        kind: usize,
        place: ValuePlace<'_>,
        row: &mut Row,
    ) -> Result<(), Broken> {
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| Broken::new("it has too many values for its length"))?;
        let place = ValuePlace {
            depth: place.depth + 1,
            ..place
        };
        if place.depth > DEEPEST {
            return Err(Broken::new(format_args!(
                "its values lie more than {DEEPEST} deep in one another"
            )));
        }
        let ValuePlace {
            schema, tree, node, ..
        } = place;
        let kind = schema
            .kind(kind)
            .ok_or_else(|| Broken::new("its schema lacks a type"))?;
        let roles = node.map_or(&[][..], |node| tree.roles(node));
        let unneeded = ValuePlace {
            node: None,
            ..place
        };
        match kind {
            Type::Null => {}
            Type::Boolean => match self.take(1)? {
                [0 | 1] => {}
                _ => return Err(Broken::new("a boolean is neither 0 nor 1")),
            },
            Type::Integer => row.set_all(roles, Scalar::Integer(self.integer()?.into())),
            Type::Float => row.set_all(roles, Scalar::Single(f32::from_le_bytes(self.array()?))),
            Type::Double => row.set_all(roles, Scalar::Float(f64::from_le_bytes(self.array()?))),
            Type::Bytes => row.set_all(roles, Scalar::Bytes(self.bytes()?)),
            Type::Text => {
                let bytes = self.bytes()?;
                // What is not needed is not looked at.
                if !roles.is_empty()
                    && let Ok(text) = std::str::from_utf8(bytes)
                {
                    row.set_all(roles, Scalar::Text(text));
                }
            }
            Type::Fixed(size) => row.set_all(roles, Scalar::Bytes(self.take(*size)?)),
            Type::Enum(symbols) => match symbols.get(self.index()?) {
                Some(symbol) => row.set_all(roles, Scalar::Text(symbol)),
                None => return Err(Broken::new("an enum has a symbol that there is not")),
            },
            Type::Union(kinds) => match kinds.get(self.index()?) {
                Some(kind) => self.read_value(*kind, place, row)?,
                None => return Err(Broken::new("a union has a type that there is not")),
            },
            Type::Record(fields) => {
                for field in fields {
                    let node = node.and_then(|node| tree.child(node, &field.name));
                    self.read_value(field.kind, ValuePlace { node, ..place }, row)?;
                }
            }
            Type::Array(items) => {
                self.read_blocks(|input| input.read_value(*items, unneeded, row))?
            }
            Type::Map(values) => self.read_blocks(|input| {
                input.bytes()?;
                input.read_value(*values, unneeded, row)
            })?,
        }
        Ok(())
    }

    /// The blocks of an array or a map; what has a length in bytes is passed over as a whole.
    fn read_blocks(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
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
    fn index(&mut self) -> Result<usize, Broken> {
        Ok(usize::try_from(self.integer()?).unwrap_or(usize::MAX))
    }

    /// A zigzag varint.
    fn integer(&mut self) -> Result<i64, Broken> {
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
        Err(Broken::new("an integer has more than 64 bits"))
    }

    /// A length and so many bytes.
    fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        let length =
            usize::try_from(self.integer()?).map_err(|_| Broken::new("a length is negative"))?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| truncated_input("a value"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| truncated_input("a value"))?;
        self.rest = rest;
        Ok(*taken)
    }
}
