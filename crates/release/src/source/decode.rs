//! Decodes messages, each one Arrow IPC stream, into a [`Batch`]. Messages come from outside and may be hostile.
//!
//! A message is a schema, dictionaries if columns use them, any number of record batches, and the end-of-stream marker, which may
//! be missing. The schema of the message is adapted before it is used: the needed columns by name and kind of type, text as bytes,
//! everything nullable, other columns not at all; a needed column that is not there, or has a type that it may not have, is a column of
//! nulls. So a null, invalid UTF-8 or a record that decides the type of its column affects no other record, and a message is
//! rejected only if it cannot be read as a whole.
//!
//! The Arrow reader panics on some corrupt messages, and aborts the process on compressed buffers that claim a false length. So
//! framing and buffer extents are checked first, and panics are caught. Compressed buffers are rejected in messages; in files, whose
//! reader is the same, what they claim is bounded.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::source::batch::Batch;
use crate::source::broken::{DecodeError, arrow_error, truncated_input};
use crate::source::columns::Columns;
use crate::source::found::FoundColumns;
use crate::source::rows::{BatchOrigin, join_batches, needed_batch, text_as_bytes};
use bernstream_synopsis::clock::Timestamp;

/// Decodes one message; [`ArrowDecoder`] is for several. Never panics; uses memory in proportion to the message, whatever its
/// dictionaries and views unfold to.
///
/// # Errors
///
/// If the message is not one complete Arrow stream, or has a needed column twice.
pub fn decode_message(
    payload: &[u8],
    columns: &Columns,
    partition: i32,
    offset: i64,
    message_time: Option<Timestamp>,
) -> Result<Batch, DecodeError> {
    ArrowDecoder::new(columns.clone()).decode_message(payload, partition, offset, message_time)
}

/// The longest metadata of a schema that is kept from one message to the next, in bytes. It takes some 5 MB once it is read, if it was
/// written to take as much as it can.
const LONGEST_KEPT: usize = 1 << 14;

/// Decodes one message after another. What it returns for a message is a function of that message alone.
///
/// Most messages of a topic have the same schema, which takes longer to read than a small message. So the last one is kept, and
/// known by its bytes: a message with another schema takes its place, so that nothing grows whatever is sent.
pub struct ArrowDecoder {
    columns: Columns,
    kept: Option<KeptSchema>,
}

/// A schema that has been read.
struct KeptSchema {
    /// The metadata of its message, all of it.
    metadata: Vec<u8>,
    /// The length of the body that follows it, which is not used.
    body: usize,
    shape: Arc<AdaptedSchema>,
}

impl ArrowDecoder {
    pub fn new(columns: Columns) -> Self {
        ArrowDecoder {
            columns,
            kept: None,
        }
    }

    /// Decodes one message, like [`decode_message`].
    ///
    /// # Errors
    ///
    /// If the message is not one complete Arrow stream, or has a needed column twice.
    pub fn decode_message(
        &mut self,
        payload: &[u8],
        partition: i32,
        offset: i64,
        message_time: Option<Timestamp>,
    ) -> Result<Batch, DecodeError> {
        let place = BatchOrigin {
            partition,
            offset,
            message_time,
        };
        // The schema is kept in one step, once it has been read: a panic leaves nothing half done.
        catch_panic(|| self.read_stream(payload, place))
    }

    fn read_stream(&mut self, payload: &[u8], place: BatchOrigin) -> Result<Batch, DecodeError> {
        let mut decoder = Decoder::default();
        let mut batches = Vec::with_capacity(1);
        let mut rest = Buffer::from(payload);
        while !rest.is_empty() {
            let head = rest
                .first_chunk()
                .ok_or_else(|| truncated_input("the head of an Arrow message"))?;
            let Some(length) = metadata_length(*head)? else {
                if rest.len() > head.len() {
                    return Err(DecodeError::new(
                        "there are bytes after the end of the Arrow stream",
                    ));
                }
                break;
            };
            let metadata = take_slice(&rest, head.len(), length)
                .ok_or_else(|| truncated_input("the metadata of an Arrow message"))?;
            rest = rest.slice(head.len() + length);
            let body = self.read_message(&mut decoder, &metadata, &rest, place, &mut batches)?;
            rest = rest.slice(body);
        }
        match batches.len() {
            1 => batches
                .pop()
                .ok_or_else(|| truncated_input("its record batch")),
            0 => {
                let shape = decoder.adapted_schema()?;
                needed_batch(
                    &RecordBatch::new_empty(shape.needed.clone()),
                    &self.columns,
                    &shape.found,
                    place,
                )
            }
            _ => join_batches(&batches, place),
        }
    }

    /// Reads the message with these metadata, whose body begins `rest`; returns the length of the body.
    fn read_message(
        &mut self,
        decoder: &mut Decoder,
        metadata: &[u8],
        rest: &Buffer,
        place: BatchOrigin,
        batches: &mut Vec<Batch>,
    ) -> Result<usize, DecodeError> {
        if decoder.shape.is_none()
            && let Some(kept) = &self.kept
            && kept.metadata == metadata
        {
            decoder.shape = Some(Arc::clone(&kept.shape));
            return Ok(take_body(rest, kept.body)?.len());
        }
        let message = ArrowMessage::parse(metadata)?;
        let body = take_body(rest, message.body)?;
        let had_shape = decoder.shape.is_some();
        if let Some(records) = decoder.read_batch(&message, &body, &self.columns)? {
            let found = &decoder.adapted_schema()?.found;
            batches.push(needed_batch(&records, &self.columns, found, place)?);
        }
        if !had_shape
            && metadata.len() <= LONGEST_KEPT
            && let Some(shape) = &decoder.shape
        {
            self.kept = Some(KeptSchema {
                metadata: metadata.to_vec(),
                body: body.len(),
                shape: Arc::clone(shape),
            });
        }
        Ok(body.len())
    }
}

fn take_body(rest: &Buffer, length: usize) -> Result<Buffer, DecodeError> {
    take_slice(rest, 0, length).ok_or_else(|| truncated_input("the body of an Arrow message"))
}

/// Parses the eight bytes before every message of a stream: the continuation marker, then the length of the metadata, or `None`
/// for the end of the stream.
///
/// # Errors
///
/// If there is no marker, or the length is negative.
pub fn metadata_length(head: [u8; 8]) -> Result<Option<usize>, DecodeError> {
    let [m0, m1, m2, m3, l0, l1, l2, l3] = head;
    if [m0, m1, m2, m3] != [0xff; 4] {
        return Err(DecodeError::new(
            "it is not an Arrow IPC stream (no continuation marker)",
        ));
    }
    match i32::from_le_bytes([l0, l1, l2, l3]) {
        0 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(DecodeError::new(format_args!(
                "an Arrow message has {length} bytes of metadata"
            ))),
        },
    }
}

fn take_slice(buffer: &Buffer, start: usize, length: usize) -> Option<Buffer> {
    (start.checked_add(length)? <= buffer.len()).then(|| buffer.slice_with_length(start, length))
}

/// Runs `work` and returns a panic as an error, without printing it.
///
/// # Errors
///
/// Those of `work`, and one for a panic.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T, DecodeError>) -> Result<T, DecodeError> {
    thread_local!(static CATCHING: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CATCHING.get() {
                default(info);
            }
        }));
    });
    CATCHING.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(false);
    result.unwrap_or_else(|_| {
        Err(DecodeError::new(
            "the library that reads its format cannot read it",
        ))
    })
}

/// The verified metadata of one Arrow message.
pub struct ArrowMessage<'a> {
    message: arrow_ipc::Message<'a>,
    bytes: usize,
    /// The length of the body that follows.
    pub body: usize,
}

impl<'a> ArrowMessage<'a> {
    /// Verifies the metadata of one message.
    ///
    /// # Errors
    ///
    /// If they are corrupt, or name a body of negative length.
    pub fn parse(metadata: &'a [u8]) -> Result<Self, DecodeError> {
        let message = root_as_message(metadata)
            .map_err(|_| DecodeError::new("an Arrow message has corrupt metadata"))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| {
            DecodeError::new(format_args!(
                "an Arrow message has a body of {} bytes",
                message.bodyLength()
            ))
        })?;
        Ok(ArrowMessage {
            message,
            bytes: metadata.len(),
            body,
        })
    }
}

/// Largest size that compressed buffers of one record batch may unfold to, in bytes, whatever their size.
const LARGEST_UNFOLDED: u64 = 1 << 30;
/// Times their size that they may unfold to where that is more.
const LARGEST_RATIO: u64 = 64;

/// The state of a stream: its schema, and its dictionaries so far.
#[derive(Default)]
pub struct Decoder {
    /// True if buffers may be compressed.
    unfolds: bool,
    shape: Option<Arc<AdaptedSchema>>,
    dictionaries: HashMap<i64, ArrayRef>,
}

/// The adapted schema: text as bytes, everything nullable.
pub struct AdaptedSchema {
    all: SchemaRef,
    needed: SchemaRef,
    pub found: Arc<FoundColumns>,
}

impl Decoder {
    /// A decoder that reads compressed buffers too, for files: whoever may write them is trusted with the memory that they take.
    pub fn with_compression() -> Self {
        Decoder {
            unfolds: true,
            ..Decoder::default()
        }
    }

    /// The schema of the stream.
    ///
    /// # Errors
    ///
    /// If none was read yet.
    pub fn adapted_schema(&self) -> Result<&AdaptedSchema, DecodeError> {
        self.shape
            .as_deref()
            .ok_or_else(|| DecodeError::new("it has no Arrow schema"))
    }

    /// Reads one message of the stream; returns the needed columns of a record batch.
    ///
    /// # Errors
    ///
    /// If the message or its body is broken, or of a kind that is not read.
    pub fn read_batch(
        &mut self,
        message: &ArrowMessage<'_>,
        body: &Buffer,
        columns: &Columns,
    ) -> Result<Option<RecordBatch>, DecodeError> {
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
                let shape = self.adapted_schema()?;
                let header = message.message.header_as_record_batch();
                let header =
                    header.ok_or_else(|| arrow_error("a record batch without a header"))?;
                check_extents(&header, body, self.unfolds)?;
                let projection = Some(shape.found.projection.as_slice());
                read_record_batch(
                    body,
                    header,
                    shape.all.clone(),
                    &self.dictionaries,
                    projection,
                    &version,
                )
                .map(Some)
                .map_err(arrow_error)
            }
            other => Err(DecodeError::new(format_args!(
                "it contains an Arrow message of an unknown kind ({})",
                other.0
            ))),
        }
    }

    fn read_schema(
        &mut self,
        message: &ArrowMessage<'_>,
        columns: &Columns,
    ) -> Result<(), DecodeError> {
        if self.shape.is_some() {
            return Err(DecodeError::new("it has two Arrow schemas"));
        }
        let header = message
            .message
            .header_as_schema()
            .ok_or_else(|| arrow_error("a schema without a header"))?;
        if header.endianness() != arrow_ipc::Endianness::Little {
            return Err(DecodeError::new("it is big-endian"));
        }
        // Flatbuffer tables can be shared, so a small schema could expand into gigabytes.
        let mut allowance = 16 * message.bytes;
        for field in header.fields().into_iter().flatten() {
            check_size(&field, &mut allowance)?;
        }
        let schema = try_fb_to_schema(header).map_err(arrow_error)?;
        self.shape = Some(Arc::new(AdaptedSchema::new(&schema, columns)?));
        Ok(())
    }

    fn read_dictionary(
        &mut self,
        message: &ArrowMessage<'_>,
        body: &Buffer,
        version: MetadataVersion,
    ) -> Result<(), DecodeError> {
        let header = message.message.header_as_dictionary_batch();
        let header = header.ok_or_else(|| arrow_error("a dictionary without a header"))?;
        let needed = self.adapted_schema()?.needed.clone();
        #[expect(
            deprecated,
            reason = "arrow has no other way yet to say which dictionary a column uses"
        )]
        if !needed
            .fields()
            .iter()
            .any(|field| field.dict_id() == Some(header.id()))
        {
            return Ok(());
        }
        // Every delta copies the dictionary so far.
        if header.isDelta() {
            return Err(DecodeError::new(
                "it has a delta dictionary; send each dictionary in one piece",
            ));
        }
        check_extents(
            &header
                .data()
                .ok_or_else(|| arrow_error("a dictionary without data"))?,
            body,
            self.unfolds,
        )?;
        read_dictionary(body, header, &needed, &mut self.dictionaries, &version)
            .map_err(arrow_error)
    }
}

impl AdaptedSchema {
    fn new(schema: &Schema, columns: &Columns) -> Result<Self, DecodeError> {
        let found = FoundColumns::from_schema(schema, columns)?;
        let mut fields = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let kind = text_as_bytes(field.data_type());
            let field = Field::clone(field);
            fields.push(field.with_data_type(kind).with_nullable(true));
        }
        let all = Arc::new(Schema::new(fields));
        let needed = all.project(&found.projection).map_err(arrow_error)?;
        Ok(AdaptedSchema {
            all,
            needed: Arc::new(needed),
            found: Arc::new(found),
        })
    }
}

/// Subtracts the expanded size of a field from the allowance.
fn check_size(field: &arrow_ipc::Field<'_>, allowance: &mut usize) -> Result<(), DecodeError> {
    let metadata = field.custom_metadata().into_iter().flatten();
    let metadata: usize = metadata
        .map(|m| m.key().map_or(0, str::len) + m.value().map_or(0, str::len))
        .sum();
    let size = 8 + field.name().map_or(0, str::len) + metadata;
    *allowance = allowance
        .checked_sub(size)
        .ok_or_else(|| DecodeError::new("its Arrow schema is too large when expanded"))?;
    field
        .children()
        .into_iter()
        .flatten()
        .try_for_each(|child| check_size(&child, allowance))
}

/// Rejects buffers outside the body, and compressed ones that may not be there or claim to be too large.
fn check_extents(
    batch: &arrow_ipc::RecordBatch<'_>,
    body: &Buffer,
    unfolds: bool,
) -> Result<(), DecodeError> {
    if batch.compression().is_some() && !unfolds {
        return Err(DecodeError::new(
            "its Arrow buffers are compressed; send them uncompressed and let Kafka compress (compression.type)",
        ));
    }
    let fits = batch.length() >= 0
        && batch
            .buffers()
            .into_iter()
            .flatten()
            .all(|buffer| is_inside(buffer, body))
        && batch
            .nodes()
            .into_iter()
            .flatten()
            .all(|node| (0..=node.length()).contains(&node.null_count()));
    if !fits {
        return Err(DecodeError::new("an Arrow buffer lies outside its message"));
    }
    let most = LARGEST_UNFOLDED.max(LARGEST_RATIO.saturating_mul(body.len() as u64));
    if batch.compression().is_some() && unfolded_size(batch, body) > most {
        return Err(DecodeError::new(format_args!(
            "its Arrow buffers unfold to more than {most} bytes in one record batch; write smaller batches"
        )));
    }
    Ok(())
}

fn is_inside(buffer: &arrow_ipc::Buffer, body: &Buffer) -> bool {
    let Ok(offset) = usize::try_from(buffer.offset()) else {
        return false;
    };
    let Ok(length) = usize::try_from(buffer.length()) else {
        return false;
    };
    offset
        .checked_add(length)
        .is_some_and(|end| end <= body.len())
}

/// Bytes that the compressed buffers of a record batch say that they unfold to: each begins with that, or with -1 if it is
/// not compressed. The Arrow reader takes as much memory before it looks at what follows.
fn unfolded_size(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer) -> u64 {
    let buffers = batch
        .buffers()
        .into_iter()
        .flatten()
        .filter(|buffer| buffer.length() > 0);
    buffers
        .filter_map(|buffer| claimed_size(buffer, body))
        .fold(0, u64::saturating_add)
}

fn claimed_size(buffer: &arrow_ipc::Buffer, body: &Buffer) -> Option<u64> {
    let start = usize::try_from(buffer.offset()).ok()?;
    let head: &[u8; 8] = body.get(start..)?.first_chunk()?;
    u64::try_from(i64::from_le_bytes(*head)).ok()
}
