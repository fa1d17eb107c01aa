//! A synopsis as bytes: one self-contained Arrow IPC stream of one row, and CloudEvents headers in binary mode; or as JSON.

use std::borrow::Cow;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float64Array, StringArray};
use arrow_array::{BooleanArray, TimestampMicrosecondArray, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::description::{Basis, Description, KeyBasis, PrivacyDefinition, PrivacyDescription};
use crate::error::SynopsisError;
use crate::found_keys::FoundRow;
use crate::histogram::Spline;
use crate::price::Price;
use crate::released::Synopsis;
use crate::told_caps::{pack_counts, unpack_counts};

/// The key of the schema metadata that holds the [`Description`] as JSON.
const METADATA_KEY: &str = "bernstream";
const CONTENT_TYPE: &str = "application/vnd.apache.arrow.stream";
const EVENT_TYPE: &str = "bernstream.synopsis.v1";
/// Columns of what a table says of each key that nobody listed.
const NEW_COLUMN: &str = "new";
const UNTIL_COLUMN: &str = "until";

/// Message of one synopsis, to be published or as it was found: whoever has one can read it and write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Kafka message key: pipeline and group key, so that the messages of one curve stay in one partition, in order.
    pub key: String,
    /// CloudEvents and our own headers, in order.
    pub headers: Vec<(String, String)>,
    /// The Arrow IPC stream.
    pub bytes: Vec<u8>,
}

impl Synopsis {
    /// Encodes the synopsis as the message that carries it.
    ///
    /// Its length depends on the description alone: for one plan every content of `values` has the same shape and
    /// length.
    ///
    /// # Errors
    ///
    /// If Arrow cannot encode it.
    pub fn encode(&self) -> Result<Encoded, SynopsisError> {
        let description = &self.description;
        let bytes = encode(description, &self.values).map_err(SynopsisError::Encode)?;
        let group = match &description.key {
            Some(key) => format!("/{key}"),
            None => String::new(),
        };
        let suffix = format!("/{}{group}", description.release);
        Ok(Encoded {
            key: format!("{}{suffix}", description.pipeline),
            headers: message_headers(description, &suffix),
            bytes,
        })
    }

    /// Reads a message from anywhere. The bytes may be hostile: whatever they are, the answer is a synopsis whose
    /// numbers agree with each other, or an error.
    ///
    /// # Errors
    ///
    /// If the bytes are not a synopsis, or its numbers do not agree with each other.
    pub fn decode_message(bytes: &[u8]) -> Result<Synopsis, SynopsisError> {
        check_framing(bytes).map_err(SynopsisError::Damaged)?;
        // arrow checks most of its input but indexes some of it; framing rules out what would abort instead of panic.
        catch_unwind(AssertUnwindSafe(|| decode_stream(bytes))).unwrap_or_else(|_| {
            Err(SynopsisError::Damaged(
                "its Arrow stream is inconsistent".to_owned(),
            ))
        })
    }
}

/// CloudEvents headers in binary mode, then our own; `suffix` ends the identity of the event.
fn message_headers(description: &Description, suffix: &str) -> Vec<(String, String)> {
    let ledger = &description.ledger;
    let pipeline = uri_segment(&description.pipeline);
    let release = uri_segment(&description.release);
    let mut headers = HeaderList(Vec::new());
    headers.append("content-type", CONTENT_TYPE);
    headers.append("ce_specversion", "1.0");
    headers.append(
        "ce_id",
        format!("{}/{}{suffix}", ledger.id, ledger.sequence),
    );
    headers.append("ce_source", format!("/bernstream/{pipeline}/{release}"));
    headers.append("ce_type", EVENT_TYPE);
    headers.append("ce_time", description.published.to_string());
    if let Some(key) = &description.key {
        headers.append("ce_subject", key.as_str());
    }
    headers.append_price(&description.privacy);
    headers.append("window_start", description.window.start.to_string());
    headers.append("window_end", description.window.end.to_string());
    // What overlaps has no start of its own.
    if let Some(panes) = description.panes {
        headers.append("pane_start", panes.newest.start.to_string());
    }
    headers.0
}

/// Headers of one message, in the order in which they were appended.
struct HeaderList(Vec<(String, String)>);

impl HeaderList {
    fn append(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Under names of their own, so that nobody takes them for pure differential privacy.
    fn append_price(&mut self, privacy: &PrivacyDescription) {
        if let PrivacyDefinition::Random(random) = &privacy.definition {
            self.append("random_dp_epsilon", privacy.price.to_string());
            self.append("random_dp_gamma", random.gamma.to_string());
            return;
        }
        match privacy.price {
            Price::Pure(epsilon) => self.append("epsilon", epsilon.to_string()),
            Price::Approximate { epsilon, delta } => {
                self.append("approximate_dp_epsilon", epsilon.to_string());
                self.append("approximate_dp_delta", delta.to_string());
            }
            Price::Concentrated(rho) => self.append("zcdp_rho", rho.to_string()),
            Price::Slots(count) => self.append("plan_windows", count.to_string()),
        }
    }
}

/// JSON document of a synopsis, to write: the description, and beside its fields the values.
#[derive(Serialize)]
struct JsonOutput<'a> {
    #[serde(flatten)]
    description: &'a Description,
    values: &'a [f64],
}

/// JSON document of a synopsis, as it was read.
#[derive(Deserialize)]
struct JsonInput {
    #[serde(flatten)]
    description: Description,
    values: Vec<f64>,
}

impl Synopsis {
    /// Writes the other form of the message: one JSON document, the fields of the [`Description`] and `values` beside them. Every
    /// number is written with as many digits as tell it apart.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, SynopsisError> {
        let output = JsonOutput {
            description: &self.description,
            values: &self.values,
        };
        serde_json::to_string(&output)
            .map_err(|e| SynopsisError::Encode(ArrowError::JsonError(e.to_string())))
    }

    /// Reads [`Synopsis::to_json`]. The text may be hostile, as in [`Synopsis::decode_message`].
    ///
    /// # Errors
    ///
    /// As [`Synopsis::decode_message`].
    pub fn from_json(text: &str) -> Result<Synopsis, SynopsisError> {
        let input: JsonInput = serde_json::from_str(text).map_err(|e| {
            SynopsisError::Damaged(format!("it is not a synopsis written as JSON: {e}"))
        })?;
        Synopsis::new(input.description, input.values)
    }
}

/// Writes everything that RFC 3986 reserves as percent escapes.
fn uri_segment(text: &str) -> String {
    let mut segment = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte));
            }
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

/// Shape of the values as JSON: the extension metadata of the tensor, with the names of its dimensions where it has any.
fn tensor_metadata(description: &Description, values: i32) -> String {
    let axes = description.domain.len();
    let mut names: Vec<&str> = description
        .domain
        .iter()
        .map(|axis| axis.column.as_str())
        .collect();
    let shape: Vec<usize> = match &description.basis {
        Basis::Bernstein => vec![description.degree as usize + 1; axes],
        Basis::Cells(basis) => node_counts(basis.spline, &basis.steps),
        Basis::Tables(basis) => {
            names.insert(0, "table");
            [
                vec![basis.tables as usize],
                node_counts(basis.spline, &basis.steps),
            ]
            .concat()
        }
        Basis::Cosine { frequencies } => {
            return serde_json::json!({ "shape": vec![frequencies; axes] }).to_string();
        }
        Basis::Affine | Basis::Kernel(_) | Basis::Keys(_) => {
            return serde_json::json!({ "shape": [values] }).to_string();
        }
    };
    serde_json::json!({ "shape": shape, "dim_names": names }).to_string()
}

/// Numbers of nodes along the axes.
fn node_counts(spline: Spline, steps: &[u32]) -> Vec<usize> {
    steps.iter().map(|steps| spline.nodes(*steps)).collect()
}

/// Columns of a message with `values` values.
///
/// The tensor's extension metadata is written by hand: arrow 60 writes a key that the specification does not have.
fn schema(description: &Description, values: i32) -> Result<Schema, serde_json::Error> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let mut fields = vec![
        Field::new("window_start", time.clone(), false),
        Field::new("window_end", time.clone(), false),
        Field::new("key", DataType::Utf8, true),
        Field::new("sequence", DataType::UInt64, false),
    ];
    let metadata = match &description.basis {
        Basis::Keys(basis) => {
            for column in &description.key_columns {
                fields.push(Field::new(column, DataType::Utf8, false));
            }
            for column in &basis.columns {
                fields.push(Field::new(
                    column.statistic.name(),
                    DataType::Float64,
                    false,
                ));
            }
            if basis.found.is_some() {
                fields.push(Field::new(NEW_COLUMN, DataType::Boolean, false));
                fields.push(Field::new(UNTIL_COLUMN, time, false));
            }
            serde_json::to_string(&without_keys(description))?
        }
        _ => {
            fields.push(lattice_field(description, values));
            serde_json::to_string(description)?
        }
    };
    Ok(Schema::new(fields).with_metadata([(METADATA_KEY, metadata)]))
}

/// Moves the numbers of units into the description, where a table by key tells them.
fn split_unit_counts<'a>(
    description: &'a Description,
    values: &'a [f64],
) -> (Cow<'a, Description>, &'a [f64]) {
    if let Basis::Keys(basis) = &description.basis
        && basis.units.is_some()
        && let Some((table, counts)) = values.split_at_checked(basis.table_values())
    {
        let mut description = description.clone();
        if let Basis::Keys(KeyBasis {
            units: Some(told), ..
        }) = &mut description.basis
        {
            told.packed = pack_counts(counts);
        }
        return (Cow::Owned(description), table);
    }
    (Cow::Borrowed(description), values)
}

fn lattice_field(description: &Description, values: i32) -> Field {
    let item = Field::new("item", DataType::Float64, false);
    Field::new(
        "lattice_values",
        DataType::FixedSizeList(Arc::new(item), values),
        false,
    )
    .with_metadata([
        (
            "ARROW:extension:name",
            "arrow.fixed_shape_tensor".to_owned(),
        ),
        (
            "ARROW:extension:metadata",
            tensor_metadata(description, values),
        ),
    ])
}

/// The description of a table by key as its message has it: the keys, and what is said of each, stand in columns, and numbers of units,
/// which have no row, in the description.
fn without_keys(description: &Description) -> Description {
    let mut description = description.clone();
    if let Basis::Keys(basis) = &mut description.basis {
        basis.keys.clear();
        if let Some(found) = &mut basis.found {
            found.rows.clear();
        }
    }
    description
}

fn encode(description: &Description, values: &[f64]) -> Result<Vec<u8>, ArrowError> {
    let (description, values) = split_unit_counts(description, values);
    let description = &*description;
    let count =
        i32::try_from(values.len()).map_err(|e| ArrowError::InvalidArgumentError(e.to_string()))?;
    let schema = schema(description, count).map_err(|e| ArrowError::ExternalError(Box::new(e)))?;
    let schema = Arc::new(schema);
    let columns = match &description.basis {
        Basis::Keys(basis) => key_columns(description, basis, values),
        _ => lattice_columns(description, values, count)?,
    };
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.finish()?;
    let mut bytes = writer.into_inner()?;
    // All messages of a window wait until the window is paid for.
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// The only row of a function.
fn lattice_columns(
    description: &Description,
    values: &[f64],
    count: i32,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let item = Arc::new(Field::new("item", DataType::Float64, false));
    let values = Arc::new(Float64Array::from(values.to_vec()));
    Ok(vec![
        timestamp_column(description.window.start, 1),
        timestamp_column(description.window.end, 1),
        Arc::new(StringArray::from(vec![description.key.as_deref()])),
        Arc::new(UInt64Array::from(vec![description.ledger.sequence])),
        Arc::new(FixedSizeListArray::try_new(item, count, values, None)?),
    ])
}

/// A row for each key.
fn key_columns(description: &Description, basis: &KeyBasis, values: &[f64]) -> Vec<ArrayRef> {
    let rows = basis.keys.len();
    let mut columns: Vec<ArrayRef> = vec![
        timestamp_column(description.window.start, rows),
        timestamp_column(description.window.end, rows),
        Arc::new(StringArray::from_iter_values(&basis.keys)),
        Arc::new(UInt64Array::from(vec![description.ledger.sequence; rows])),
    ];
    for parts in part_columns(description, basis.keys.iter().map(String::as_str)) {
        columns.push(Arc::new(StringArray::from_iter_values(parts)));
    }
    for place in 0..basis.columns.len() {
        let column = values.iter().skip(place * rows).take(rows).copied();
        columns.push(Arc::new(Float64Array::from_iter_values(column)));
    }
    if let Some(found) = &basis.found {
        let is_new = found.rows.iter().map(|row| row.is_new);
        let until = found.rows.iter().map(|row| row.until.micros());
        columns.push(Arc::new(BooleanArray::from(is_new.collect::<Vec<_>>())));
        columns.push(times_column(until.collect()));
    }
    columns
}

/// The parts of the keys, column by column; none where keys have no parts.
fn part_columns<'a>(
    description: &Description,
    keys: impl Iterator<Item = &'a str>,
) -> Vec<Vec<Cow<'a, str>>> {
    let mut columns = vec![Vec::new(); description.key_columns.len()];
    for key in keys {
        for (column, part) in columns.iter_mut().zip(description.parts_of_key(key)) {
            column.push(part);
        }
    }
    columns
}

fn timestamp_column(time: Timestamp, rows: usize) -> ArrayRef {
    times_column(vec![time.micros(); rows])
}

fn times_column(micros: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"))
}

/// Walks the encapsulated messages before arrow reads them: a schema, one uncompressed batch, the end mark, nothing
/// else.
fn check_framing(bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    for expected in [MessageHeader::Schema, MessageHeader::RecordBatch] {
        let frame = Frame::split_off(rest)?;
        let message = root_as_message(frame.header)
            .map_err(|e| format!("its Arrow framing is broken: {e}"))?;
        if message.header_type() != expected {
            let name = expected.variant_name().unwrap_or_default();
            return Err(format!(
                "its Arrow stream has something else where {name} belongs"
            ));
        }
        if message
            .header_as_record_batch()
            .is_some_and(|batch| batch.compression().is_some())
        {
            return Err("its Arrow stream is compressed, which synopses never are".to_owned());
        }
        rest = usize::try_from(message.bodyLength())
            .ok()
            .and_then(|length| frame.rest.get(length..))
            .ok_or("it is cut short or its lengths are wrong")?;
    }
    let end = Frame::split_off(rest)?;
    if !end.header.is_empty() || !end.rest.is_empty() {
        return Err("its Arrow stream has more than one batch".to_owned());
    }
    Ok(())
}

/// Header of an encapsulated message, and all bytes after it.
struct Frame<'a> {
    /// Empty at the end mark.
    header: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Frame<'a> {
    fn split_off(bytes: &'a [u8]) -> Result<Self, String> {
        Frame::parse(bytes).ok_or_else(|| "it is not an Arrow IPC stream, or cut short".to_owned())
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let [0xff, 0xff, 0xff, 0xff, bytes @ ..] = bytes else {
            return None;
        };
        let length = i32::from_le_bytes(*bytes.first_chunk()?);
        let bytes = bytes.get(size_of::<i32>()..)?;
        let length = usize::try_from(length).ok()?;
        Some(Frame {
            header: bytes.get(..length)?,
            rest: bytes.get(length..)?,
        })
    }
}

fn decode_stream(bytes: &[u8]) -> Result<Synopsis, SynopsisError> {
    let reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(unreadable_stream)?;
    let found = reader.schema();
    let Some(document) = found.metadata().get(METADATA_KEY) else {
        return Err(SynopsisError::Damaged(format!(
            "its schema has no metadata '{METADATA_KEY}'"
        )));
    };
    let description: Description = serde_json::from_str(document)
        .map_err(|e| SynopsisError::Damaged(format!("its description cannot be read: {e}")))?;
    if matches!(description.basis, Basis::Keys(_)) {
        return decode_key_table(description, reader);
    }
    description
        .check_consistency()
        .map_err(SynopsisError::Damaged)?;
    // Before any buffer is read: the number of values follows from the description and fits into the bytes.
    let count = description.shape().value_count();
    let fits = count <= bytes.len() / size_of::<f64>();
    let Some(count) = i32::try_from(count).ok().filter(|_| fits) else {
        return Err(SynopsisError::Damaged(
            "it has fewer values than its lattice".to_owned(),
        ));
    };
    let batch = only_batch(&description, count, reader)?;
    let row = MessageRow::from_batch(&batch)
        .ok_or_else(|| SynopsisError::Damaged("it does not have exactly one row".to_owned()))?;
    if description.window.start.micros() != row.start
        || description.window.end.micros() != row.end
        || description.ledger.sequence != row.sequence
        || description.key != row.key
    {
        return Err(columns_disagree());
    }
    Synopsis::new(description, row.values)
}

/// The batch of a stream, if it has the columns that the description asks for.
fn only_batch(
    description: &Description,
    values: i32,
    mut reader: StreamReader<Cursor<&[u8]>>,
) -> Result<RecordBatch, SynopsisError> {
    let expected =
        schema(description, values).map_err(|e| SynopsisError::Damaged(e.to_string()))?;
    if !has_columns(&reader.schema(), &expected) {
        return Err(SynopsisError::Damaged(
            "its columns are not those of a synopsis".to_owned(),
        ));
    }
    reader
        .next()
        .ok_or_else(|| SynopsisError::Damaged("it has no row".to_owned()))?
        .map_err(unreadable_stream)
}

fn columns_disagree() -> SynopsisError {
    SynopsisError::Damaged("its columns and its description disagree".to_owned())
}

/// Reads a table by key, whose keys are those of its rows. Where it has no rows, its window and its row of the ledger stand in the
/// description alone.
fn decode_key_table(
    mut description: Description,
    reader: StreamReader<Cursor<&[u8]>>,
) -> Result<Synopsis, SynopsisError> {
    let batch = only_batch(&description, 0, reader)?;
    let [start, end, keys, sequence, columns @ ..] = batch.columns() else {
        return Err(columns_disagree());
    };
    if batch.columns().iter().any(|column| column.null_count() > 0) {
        return Err(SynopsisError::Damaged(
            "a number or a key is missing".to_owned(),
        ));
    }
    let Description { window, ledger, .. } = &description;
    let is_of_window = is_time_everywhere(start, window.start)
        && is_time_everywhere(end, window.end)
        && is_number_everywhere(sequence, ledger.sequence);
    if !is_of_window || description.key.is_some() {
        return Err(columns_disagree());
    }
    let keys = keys.as_any().downcast_ref::<StringArray>();
    let keys = keys.ok_or_else(columns_disagree)?.iter();
    let keys: Vec<&str> = keys.flatten().collect();
    let parts = part_columns(&description, keys.iter().copied());
    let Some((told, columns)) = columns.split_at_checked(parts.len()) else {
        return Err(columns_disagree());
    };
    for (told, parts) in told.iter().zip(&parts) {
        let told = told.as_any().downcast_ref::<StringArray>();
        let told = told.ok_or_else(columns_disagree)?.iter().flatten();
        if !told.eq(parts.iter().map(|part| &**part)) {
            return Err(columns_disagree());
        }
    }
    let mut unit_counts = Vec::new();
    let mut columns = columns;
    if let Basis::Keys(basis) = &mut description.basis {
        basis.keys = keys.into_iter().map(str::to_owned).collect();
        if let Some(found) = &mut basis.found {
            let [numbers @ .., is_new, until] = columns else {
                return Err(columns_disagree());
            };
            found.rows = found_rows(is_new, until).ok_or_else(columns_disagree)?;
            columns = numbers;
        }
        if let Some(told) = &mut basis.units {
            let packed = std::mem::take(&mut told.packed);
            unit_counts = unpack_counts(&packed).ok_or_else(columns_disagree)?;
        }
    }
    let mut values = Vec::with_capacity(columns.len().saturating_mul(batch.num_rows()));
    for column in columns {
        let column = column.as_any().downcast_ref::<Float64Array>();
        values.extend_from_slice(column.ok_or_else(columns_disagree)?.values());
    }
    values.append(&mut unit_counts);
    Synopsis::new(description, values)
}

/// What two columns say of each key; `None` if they are others.
fn found_rows(is_new: &ArrayRef, until: &ArrayRef) -> Option<Vec<FoundRow>> {
    let is_new = is_new.as_any().downcast_ref::<BooleanArray>()?;
    let until = until.as_any().downcast_ref::<TimestampMicrosecondArray>()?;
    let mut rows = Vec::with_capacity(is_new.len());
    for (is_new, micros) in is_new.values().iter().zip(until.values()) {
        rows.push(FoundRow {
            is_new,
            until: Timestamp::from_micros(*micros),
        });
    }
    Some(rows)
}

fn is_time_everywhere(column: &ArrayRef, time: Timestamp) -> bool {
    let column = column.as_any().downcast_ref::<TimestampMicrosecondArray>();
    column.is_some_and(|times| times.values().iter().all(|micros| *micros == time.micros()))
}

fn is_number_everywhere(column: &ArrayRef, number: u64) -> bool {
    let column = column.as_any().downcast_ref::<UInt64Array>();
    column.is_some_and(|numbers| numbers.values().iter().all(|found| *found == number))
}

fn unreadable_stream(error: ArrowError) -> SynopsisError {
    SynopsisError::Damaged(format!("its Arrow stream cannot be read: {error}"))
}

/// Compares names, types and nullability of all columns; metadata may differ.
fn has_columns(found: &Schema, expected: &Schema) -> bool {
    found.fields().len() == expected.fields().len()
        && found
            .fields()
            .iter()
            .zip(expected.fields())
            .all(|(found, expected)| {
                found.name() == expected.name()
                    && found.data_type() == expected.data_type()
                    && found.is_nullable() == expected.is_nullable()
            })
}

/// The only row of a batch.
struct MessageRow {
    start: i64,
    end: i64,
    key: Option<String>,
    sequence: u64,
    values: Vec<f64>,
}

impl MessageRow {
    /// Reads the row; `None` where the batch has none or several, or a null where none belongs.
    fn from_batch(batch: &RecordBatch) -> Option<MessageRow> {
        let [start, end, key, sequence, values] = batch.columns() else {
            return None;
        };
        let complete = [start, end, sequence, values]
            .iter()
            .all(|column| column.null_count() == 0);
        if batch.num_rows() != 1 || !complete {
            return None;
        }
        let key = key.as_any().downcast_ref::<StringArray>()?;
        let values = values
            .as_any()
            .downcast_ref::<FixedSizeListArray>()?
            .value(0);
        let values = values.as_any().downcast_ref::<Float64Array>()?;
        if values.null_count() != 0 {
            return None;
        }
        Some(MessageRow {
            start: first_timestamp(start)?,
            end: first_timestamp(end)?,
            key: (!key.is_null(0)).then(|| key.value(0).to_owned()),
            sequence: sequence.as_any().downcast_ref::<UInt64Array>()?.value(0),
            values: values.values().to_vec(),
        })
    }
}

fn first_timestamp(column: &ArrayRef) -> Option<i64> {
    let times = column
        .as_any()
        .downcast_ref::<TimestampMicrosecondArray>()?;
    Some(times.value(0))
}
