//! Bytes to [`Batch`]: one Arrow IPC stream a message, from outside and so hostile.
//!
//! A message is a schema, dictionaries where columns use them, any number of record batches, and the end-of-stream mark,
//! which may be missing. It is read against our schema, not the one that it brings: the needed columns by name and kind of
//! type, text as bytes, everything nullable, other columns not at all. So what is wrong with one record is settled for
//! that record (a null, bytes that are not UTF-8), and only what is wrong with the message breaks the message.
//!
//! The Arrow reader panics on some corrupt messages, and compressed ones with a false length abort the process. So
//! framing and extents are checked first, compressed buffers are refused, and panics are contained.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, RecordBatch, downcast_integer_array,
};
use arrow::buffer::Buffer;
use arrow::compute::{cast, concat};
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow::ipc::convert::try_fb_to_schema;
use arrow::ipc::reader::{read_dictionary, read_record_batch};
use arrow::ipc::{self, MessageHeader, MetadataVersion, root_as_message};

use crate::clock::Timestamp;
use crate::source::{Batch, Columns};

/// How many bytes a dictionary-encoded column may become when it is written out: a few bytes of keys could ask for
/// gigabytes.
const EXPANDED: usize = 64 << 20;

/// A column of text (or of integers, written in decimal) as bytes; what is not UTF-8 is kept as it is.
#[derive(Clone, Debug)]
pub struct Text(pub BinaryArray);

/// Why a message cannot be read as a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl Broken {
    pub(crate) fn new(why: &dyn std::fmt::Display) -> Self {
        Broken(why.to_string())
    }
}

/// Where a batch came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub partition: i32,
    pub offset: i64,
    pub message_time: Option<Timestamp>,
}

/// Reads one message. Never panics, and uses memory in proportion to the message (dictionaries: up to 64 MiB a column).
pub fn decode(
    payload: &[u8],
    columns: &Columns,
    partition: i32,
    offset: i64,
    message_time: Option<Timestamp>,
) -> Result<Batch, Broken> {
    let place = Place { partition, offset, message_time };
    contained(|| {
        let mut decoder = Decoder::default();
        let mut batches = Vec::with_capacity(1);
        let mut rest = Buffer::from(payload);
        while !rest.is_empty() {
            let head = rest.first_chunk().ok_or_else(|| truncated("the head of an Arrow message"))?;
            let Some(length) = metadata_length(*head)? else {
                if rest.len() > head.len() {
                    return Err(Broken("there are bytes after the end of the Arrow stream".to_owned()));
                }
                break;
            };
            let metadata =
                take(&rest, head.len(), length).ok_or_else(|| truncated("the metadata of an Arrow message"))?;
            let message = Message::parse(&metadata)?;
            let start = head.len() + length;
            let body = take(&rest, start, message.body).ok_or_else(|| truncated("the body of an Arrow message"))?;
            if let Some(records) = decoder.read(&message, &body, columns)? {
                batches.push(batch(&records, columns, place)?);
            }
            rest = rest.slice(start + message.body);
        }
        match batches.len() {
            1 => batches.pop().ok_or_else(|| truncated("its record batch")),
            0 => batch(&RecordBatch::new_empty(decoder.shape()?.needed.clone()), columns, place),
            _ => join(&batches, place),
        }
    })
}

/// The eight bytes before every message of a stream: the continuation mark and the length of the metadata, or `None` at
/// the end of the stream.
pub(crate) fn metadata_length(head: [u8; 8]) -> Result<Option<usize>, Broken> {
    let [m0, m1, m2, m3, l0, l1, l2, l3] = head;
    if [m0, m1, m2, m3] != [0xff; 4] {
        return Err(Broken("it is not an Arrow IPC stream (no continuation mark)".to_owned()));
    }
    match i32::from_le_bytes([l0, l1, l2, l3]) {
        0 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(Broken(format!("an Arrow message has {length} bytes of metadata"))),
        },
    }
}

fn take(buffer: &Buffer, start: usize, length: usize) -> Option<Buffer> {
    (start.checked_add(length)? <= buffer.len()).then(|| buffer.slice_with_length(start, length))
}

pub(crate) fn truncated(what: &str) -> Broken {
    Broken(format!("it ends within {what}"))
}

fn arrow(error: impl std::fmt::Display) -> Broken {
    Broken::new(&format_args!("the Arrow reader refuses it: {error}"))
}

/// Runs `work` and takes a panic for a broken message; the panic is not printed.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T, Broken>) -> Result<T, Broken> {
    thread_local!(static CONTAINED: Cell<bool> = const { Cell::new(false) });
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                loud(info);
            }
        }));
    });
    CONTAINED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(false);
    result.unwrap_or_else(|_| Err(Broken("the Arrow reader cannot read it".to_owned())))
}

/// The verified metadata of one Arrow message.
pub(crate) struct Message<'a> {
    message: ipc::Message<'a>,
    bytes: usize,
    /// The length of the body that follows.
    pub body: usize,
}

impl<'a> Message<'a> {
    pub fn parse(metadata: &'a [u8]) -> Result<Self, Broken> {
        let message =
            root_as_message(metadata).map_err(|_| Broken("an Arrow message has corrupt metadata".to_owned()))?;
        let body = usize::try_from(message.bodyLength())
            .map_err(|_| Broken(format!("an Arrow message has a body of {} bytes", message.bodyLength())))?;
        Ok(Message { message, bytes: metadata.len(), body })
    }
}

/// The state of a stream: what its schema said, and its dictionaries so far.
#[derive(Default)]
pub(crate) struct Decoder {
    shape: Option<Shape>,
    dictionaries: HashMap<i64, ArrayRef>,
}

/// A schema as we read it: text as bytes, everything nullable.
pub(crate) struct Shape {
    all: SchemaRef,
    pub needed: SchemaRef,
    /// Where the needed columns are in `all`.
    projection: Vec<usize>,
}

impl Decoder {
    pub fn shape(&self) -> Result<&Shape, Broken> {
        self.shape.as_ref().ok_or_else(|| Broken("it has no Arrow schema".to_owned()))
    }

    /// Takes in one message; a record batch is given back, of the needed columns only.
    pub fn read(
        &mut self,
        message: &Message<'_>,
        body: &Buffer,
        columns: &Columns,
    ) -> Result<Option<RecordBatch>, Broken> {
        let version = message.message.version();
        match message.message.header_type() {
            MessageHeader::Schema => {
                self.read_schema(message, columns)?;
                Ok(None)
            }
            MessageHeader::DictionaryBatch => {
                self.read_dictionary(message, body, version)?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let shape = self.shape()?;
                let header = message.message.header_as_record_batch();
                let header = header.ok_or_else(|| arrow("a record batch without a header"))?;
                check_extents(&header, body)?;
                let projection = Some(shape.projection.as_slice());
                read_record_batch(body, header, shape.all.clone(), &self.dictionaries, projection, &version)
                    .map(Some)
                    .map_err(arrow)
            }
            other => Err(Broken(format!("it holds an Arrow message of an unknown kind ({})", other.0))),
        }
    }

    fn read_schema(&mut self, message: &Message<'_>, columns: &Columns) -> Result<(), Broken> {
        if self.shape.is_some() {
            return Err(Broken("it has two Arrow schemas".to_owned()));
        }
        let header = message.message.header_as_schema().ok_or_else(|| arrow("a schema without a header"))?;
        if header.endianness() != ipc::Endianness::Little {
            return Err(Broken("it is big-endian".to_owned()));
        }
        // Tables may be shared: a small schema could otherwise unfold into gigabytes.
        let mut allowance = 16 * message.bytes;
        for field in header.fields().into_iter().flatten() {
            check_size(&field, &mut allowance)?;
        }
        let schema = try_fb_to_schema(header).map_err(arrow)?;
        self.shape = Some(Shape::new(&schema, columns)?);
        Ok(())
    }

    fn read_dictionary(
        &mut self,
        message: &Message<'_>,
        body: &Buffer,
        version: MetadataVersion,
    ) -> Result<(), Broken> {
        let header = message.message.header_as_dictionary_batch();
        let header = header.ok_or_else(|| arrow("a dictionary without a header"))?;
        let needed = self.shape()?.needed.clone();
        #[expect(deprecated, reason = "arrow has no other way yet to say which dictionary a column uses")]
        if !needed.fields().iter().any(|field| field.dict_id() == Some(header.id())) {
            return Ok(());
        }
        // Every delta copies what came before it.
        if header.isDelta() {
            return Err(Broken("it adds to a dictionary; send each dictionary in one piece".to_owned()));
        }
        check_extents(&header.data().ok_or_else(|| arrow("a dictionary without data"))?, body)?;
        read_dictionary(body, header, &needed, &mut self.dictionaries, &version).map_err(arrow)
    }
}

impl Shape {
    fn new(schema: &Schema, columns: &Columns) -> Result<Self, Broken> {
        let needed = needed(schema, columns)?;
        let ours = |field: &Field| field.clone().with_data_type(as_bytes(field.data_type())).with_nullable(true);
        let fields: Vec<_> = schema.fields().iter().map(|field| ours(field)).collect();
        let all = Arc::new(Schema::new(fields));
        let needed_schema = all.project(&needed).map_err(arrow)?;
        Ok(Shape { all, needed: Arc::new(needed_schema), projection: needed })
    }
}

/// Counts what a field unfolds into against what is left of the allowance.
fn check_size(field: &ipc::Field<'_>, allowance: &mut usize) -> Result<(), Broken> {
    let metadata = field.custom_metadata().into_iter().flatten();
    let metadata: usize = metadata.map(|m| m.key().map_or(0, str::len) + m.value().map_or(0, str::len)).sum();
    let size = 8 + field.name().map_or(0, str::len) + metadata;
    *allowance =
        allowance.checked_sub(size).ok_or_else(|| Broken("its Arrow schema unfolds without end".to_owned()))?;
    field.children().into_iter().flatten().try_for_each(|child| check_size(&child, allowance))
}

/// Refuses compressed buffers, and buffers outside the body.
fn check_extents(batch: &ipc::RecordBatch<'_>, body: &Buffer) -> Result<(), Broken> {
    if batch.compression().is_some() {
        return Err(Broken(
            "its Arrow buffers are compressed; send them uncompressed and let Kafka compress (compression.type)"
                .to_owned(),
        ));
    }
    let inside = |buffer: &ipc::Buffer| {
        let end = usize::try_from(buffer.offset()).ok()?.checked_add(usize::try_from(buffer.length()).ok()?)?;
        (end <= body.len()).then_some(())
    };
    let counted = |node: &ipc::FieldNode| (0 <= node.null_count() && node.null_count() <= node.length()).then_some(());
    let fits = batch.length() >= 0
        && batch.buffers().into_iter().flatten().all(|buffer| inside(buffer).is_some())
        && batch.nodes().into_iter().flatten().all(|node| counted(node).is_some());
    if fits { Ok(()) } else { Err(Broken("an Arrow buffer lies outside its message".to_owned())) }
}

/// What a column is for, and so which types it may have.
#[derive(Clone, Copy)]
enum Role {
    Time,
    Key,
    Unit,
    Value,
}

impl Role {
    fn takes(self, kind: &DataType) -> bool {
        match self {
            Role::Time => matches!(kind, DataType::Timestamp(_, _)),
            Role::Key | Role::Unit => match kind {
                DataType::Dictionary(_, values) => is_bytes(values),
                kind => is_bytes(kind) || kind.is_integer(),
            },
            Role::Value => kind.is_numeric(),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Role::Time => "the event time must be a timestamp",
            Role::Key => "a key must be text, bytes or integers",
            Role::Unit => "a privacy unit must be text, bytes or integers",
            Role::Value => "a value must be a number",
        }
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

/// Where the columns that are named are in a schema, ascending; each must be there once and have a fitting type.
pub(crate) fn needed(schema: &Schema, columns: &Columns) -> Result<Vec<usize>, Broken> {
    let mut indices = BTreeSet::new();
    let values = columns.values.iter().map(|name| (name, Role::Value));
    let named = [Some((&columns.time, Role::Time)), columns.key.as_ref().map(|name| (name, Role::Key))];
    let unit = columns.unit.as_ref().map(|name| (name, Role::Unit));
    for (name, role) in named.into_iter().flatten().chain(unit).chain(values) {
        let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let Some((index, field)) = found.next() else {
            return Err(Broken(format!("it has no column '{name}'")));
        };
        if found.next().is_some() {
            return Err(Broken(format!("it has two columns '{name}'")));
        }
        if !role.takes(field.data_type()) {
            return Err(Broken(format!("column '{name}' is {}, but {}", field.data_type(), role.wanted())));
        }
        indices.insert(index);
    }
    Ok(indices.into_iter().collect())
}

/// The type with text as bytes, so that one row that is not UTF-8 does not break the others.
pub(crate) fn as_bytes(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(as_bytes(values))),
        other => other.clone(),
    }
}

/// The needed columns in our own types.
pub(crate) fn batch(records: &RecordBatch, columns: &Columns, place: Place) -> Result<Batch, Broken> {
    let column =
        |name: &String| records.column_by_name(name).ok_or_else(|| Broken(format!("it has no column '{name}'")));
    let Place { partition, offset, message_time } = place;
    Ok(Batch {
        partition,
        offset,
        message_time,
        times: times(column(&columns.time)?)?,
        keys: columns.key.as_ref().map(|name| text(column(name)?)).transpose()?,
        units: columns.unit.as_ref().map(|name| text(column(name)?)).transpose()?,
        values: columns.values.iter().map(|name| numbers(column(name)?)).collect::<Result<_, _>>()?,
    })
}

/// The batches of one message, one after the other, as one.
fn join(batches: &[Batch], place: Place) -> Result<Batch, Broken> {
    fn all<'a, A: Array + 'a>(parts: impl Iterator<Item = &'a A>) -> Result<ArrayRef, Broken> {
        let parts: Vec<&dyn Array> = parts.map(|part| part as &dyn Array).collect();
        concat(&parts).map_err(arrow)
    }
    fn texts<'a>(parts: impl Iterator<Item = Option<&'a Text>>) -> Result<Option<Text>, Broken> {
        let parts: Option<Vec<&Text>> = parts.collect();
        let parts = parts.map(|parts| all(parts.into_iter().map(|text| &text.0))).transpose()?;
        Ok(parts.map(|joined| Text(joined.as_binary::<i32>().clone())))
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
        keys: texts(batches.iter().map(|b| b.keys.as_ref()))?,
        units: texts(batches.iter().map(|b| b.units.as_ref()))?,
        values: values.collect::<Result<_, Broken>>()?,
    })
}

/// Microseconds, rounded down; null where they overflow.
pub(crate) fn times(column: &ArrayRef) -> Result<Int64Array, Broken> {
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
        other => Err(Broken(format!("a column is {other}, but {}", Role::Time.wanted()))),
    }
}

/// The nearest `f64`.
fn numbers(column: &ArrayRef) -> Result<Float64Array, Broken> {
    Ok(cast(column, &DataType::Float64).map_err(arrow)?.as_primitive().clone())
}

fn text(column: &ArrayRef) -> Result<Text, Broken> {
    let column = column.as_ref();
    let bytes = match column.data_type() {
        DataType::Binary => column.as_binary::<i32>().clone(),
        DataType::LargeBinary => column.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => column.as_binary_view().iter().collect(),
        DataType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().collect(),
        DataType::Dictionary(_, _) => expand(column)?,
        _ => downcast_integer_array! {
            column => column.iter().map(|n| n.map(|n| n.to_string().into_bytes())).collect(),
            other => return Err(Broken(format!("a column is {other}, but {}", Role::Key.wanted()))),
        },
    };
    Ok(Text(bytes))
}

/// Writes a dictionary-encoded column out.
fn expand(column: &dyn Array) -> Result<BinaryArray, Broken> {
    let dictionary = column.as_any_dictionary();
    let Text(values) = text(dictionary.values())?;
    let keys = cast(dictionary.keys(), &DataType::Int64).map_err(arrow)?;
    let value = |key: Option<i64>| {
        let index = usize::try_from(key?).ok().filter(|index| *index < values.len() && values.is_valid(*index))?;
        Some(values.value(index))
    };
    let keys = keys.as_primitive::<Int64Type>();
    let size: usize = keys.iter().map(|key| value(key).map_or(0, <[u8]>::len)).sum();
    if size > EXPANDED {
        return Err(Broken(format!("a dictionary-encoded column has {size} bytes when written out")));
    }
    Ok(keys.iter().map(value).collect())
}
