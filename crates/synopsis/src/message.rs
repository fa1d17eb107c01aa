//! A synopsis as bytes: one self-contained Arrow IPC stream of one row, and CloudEvents headers in binary mode; or as JSON.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float64Array, StringArray};
use arrow_array::{TimestampMicrosecondArray, UInt64Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::description::{Basis, Definition, Description};
use crate::error::Error;
use crate::price::Price;
use crate::released::Synopsis;

/// The key of the schema metadata that holds the [`Description`] as JSON.
const METADATA_KEY: &str = "bernstream";
const CONTENT_TYPE: &str = "application/vnd.apache.arrow.stream";
const EVENT_TYPE: &str = "bernstream.synopsis.v1";

/// A synopsis as the message that carries it, on its way or as it was found: whoever has one can read it and write it.
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
    /// The message that carries it.
    ///
    /// Its length depends on the description alone: for one plan every content of `values` has the same shape and
    /// length.
    ///
    /// # Errors
    ///
    /// If Arrow cannot encode it.
    pub fn encode(&self) -> Result<Encoded, Error> {
        let about = &self.description;
        let bytes = encode(about, &self.values).map_err(Error::Encode)?;
        let key = about
            .key
            .as_ref()
            .map(|key| format!("/{key}"))
            .unwrap_or_default();
        let suffix = format!("/{}{key}", about.release);
        let mut headers = vec![
            ("content-type", CONTENT_TYPE.to_owned()),
            ("ce_specversion", "1.0".to_owned()),
            (
                "ce_id",
                format!("{}/{}{suffix}", about.ledger.id, about.ledger.sequence),
            ),
            (
                "ce_source",
                format!(
                    "/bernstream/{}/{}",
                    uri_segment(&about.pipeline),
                    uri_segment(&about.release)
                ),
            ),
            ("ce_type", EVENT_TYPE.to_owned()),
            ("ce_time", about.published.to_string()),
        ];
        headers.extend(about.key.clone().map(|key| ("ce_subject", key)));
        // Under names of their own, so that nobody takes them for pure differential privacy.
        match (about.privacy.price, &about.privacy.definition) {
            (price, Definition::Random(random)) => headers.extend([
                ("random_dp_epsilon", price.to_string()),
                ("random_dp_gamma", random.gamma.to_string()),
            ]),
            (Price::Pure(epsilon), _) => headers.push(("epsilon", epsilon.to_string())),
            (Price::Approximate { epsilon, delta }, _) => headers.extend([
                ("approximate_dp_epsilon", epsilon.to_string()),
                ("approximate_dp_delta", delta.to_string()),
            ]),
            (Price::Concentrated(rho), _) => headers.push(("zcdp_rho", rho.to_string())),
            (Price::Slots(count), _) => headers.push(("plan_windows", count.to_string())),
        }
        headers.extend([
            ("window_start", about.window.start.to_string()),
            ("window_end", about.window.end.to_string()),
        ]);
        // What overlaps has no start of its own.
        headers.extend(
            about
                .panes
                .map(|panes| ("pane_start", panes.newest.start.to_string())),
        );
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        Ok(Encoded {
            key: format!("{}{suffix}", about.pipeline),
            headers,
            bytes,
        })
    }

    /// Reads a message from anywhere. The bytes may be hostile: whatever they are, the answer is a synopsis whose
    /// numbers agree with each other, or an error.
    ///
    /// # Errors
    ///
    /// If the bytes are not a synopsis, or its numbers do not agree with each other.
    pub fn open(bytes: &[u8]) -> Result<Synopsis, Error> {
        check_framing(bytes).map_err(Error::Damaged)?;
        // arrow checks most of its input but indexes some of it; framing rules out what would abort instead of panic.
        catch_unwind(AssertUnwindSafe(|| decode(bytes))).unwrap_or_else(|_| {
            Err(Error::Damaged(
                "its Arrow stream is inconsistent".to_owned(),
            ))
        })
    }
}

/// A synopsis as one JSON document: the description, and beside its fields the values.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    about: &'a Description,
    values: &'a [f64],
}

#[derive(Deserialize)]
struct Read {
    #[serde(flatten)]
    about: Description,
    values: Vec<f64>,
}

impl Synopsis {
    /// The other form of the message: one JSON document, the fields of the [`Description`] and `values` beside them. Every
    /// number is written with as many digits as tell it apart.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, Error> {
        let written = Written {
            about: &self.description,
            values: &self.values,
        };
        serde_json::to_string(&written)
            .map_err(|e| Error::Encode(ArrowError::JsonError(e.to_string())))
    }

    /// Reads [`Synopsis::to_json`]. The text may be hostile, as in [`Synopsis::open`].
    ///
    /// # Errors
    ///
    /// As [`Synopsis::open`].
    pub fn from_json(text: &str) -> Result<Synopsis, Error> {
        let read: Read = serde_json::from_str(text)
            .map_err(|e| Error::Damaged(format!("it is not a synopsis written as JSON: {e}")))?;
        Synopsis::new(read.about, read.values)
    }
}

/// Everything that RFC 3986 reserves, as percent escapes.
fn uri_segment(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// The columns of a message with `points` values.
///
/// The tensor's extension metadata is written by hand: arrow 60 writes a key that the specification does not have.
fn schema(about: &Description, points: i32) -> Result<Schema, serde_json::Error> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let item = Field::new("item", DataType::Float64, false);
    let tensor = match &about.basis {
        Basis::Bernstein => {
            let shape = vec![u64::from(about.degree) + 1; about.domain.len()];
            let names: Vec<&str> = about
                .domain
                .iter()
                .map(|axis| axis.column.as_str())
                .collect();
            serde_json::json!({ "shape": shape, "dim_names": names }).to_string()
        }
        Basis::Cells(basis) => {
            let shape: Vec<usize> = basis.steps.iter().map(|m| basis.spline.nodes(*m)).collect();
            let names: Vec<&str> = about
                .domain
                .iter()
                .map(|axis| axis.column.as_str())
                .collect();
            serde_json::json!({ "shape": shape, "dim_names": names }).to_string()
        }
        Basis::Tables(basis) => {
            let nodes = basis.steps.iter().map(|m| basis.spline.nodes(*m));
            let shape: Vec<usize> = std::iter::once(basis.tables as usize)
                .chain(nodes)
                .collect();
            let columns = about.domain.iter().map(|axis| axis.column.as_str());
            let names: Vec<&str> = std::iter::once("table").chain(columns).collect();
            serde_json::json!({ "shape": shape, "dim_names": names }).to_string()
        }
        Basis::Cosine { frequencies } => {
            serde_json::json!({ "shape": vec![frequencies; about.domain.len()] }).to_string()
        }
        Basis::Affine | Basis::Kernel(_) => serde_json::json!({ "shape": [points] }).to_string(),
    };
    let fields = vec![
        Field::new("window_start", time.clone(), false),
        Field::new("window_end", time, false),
        Field::new("key", DataType::Utf8, true),
        Field::new("sequence", DataType::UInt64, false),
        Field::new(
            "lattice_values",
            DataType::FixedSizeList(Arc::new(item), points),
            false,
        )
        .with_metadata([
            (
                "ARROW:extension:name",
                "arrow.fixed_shape_tensor".to_owned(),
            ),
            ("ARROW:extension:metadata", tensor),
        ]),
    ];
    Ok(Schema::new(fields).with_metadata([(METADATA_KEY, serde_json::to_string(about)?)]))
}

fn encode(about: &Description, values: &[f64]) -> Result<Vec<u8>, ArrowError> {
    let json = |e: serde_json::Error| ArrowError::ExternalError(Box::new(e));
    let points =
        i32::try_from(values.len()).map_err(|e| ArrowError::InvalidArgumentError(e.to_string()))?;
    let schema = Arc::new(schema(about, points).map_err(json)?);
    let item = Arc::new(Field::new("item", DataType::Float64, false));
    let values = Arc::new(Float64Array::from(values.to_vec()));
    let time = |t: crate::clock::Timestamp| {
        TimestampMicrosecondArray::from(vec![t.micros()]).with_timezone("UTC")
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(time(about.window.start)),
        Arc::new(time(about.window.end)),
        Arc::new(StringArray::from(vec![about.key.as_deref()])),
        Arc::new(UInt64Array::from(vec![about.ledger.sequence])),
        Arc::new(FixedSizeListArray::try_new(item, points, values, None)?),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.finish()?;
    let mut bytes = writer.into_inner()?;
    // All messages of a window wait until the window is paid for.
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// Walks the encapsulated messages before arrow reads them: a schema, one uncompressed batch, the end mark, nothing
/// else.
fn check_framing(bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    for expected in [MessageHeader::Schema, MessageHeader::RecordBatch] {
        let (header, after) = frame(rest)?;
        let cut = || "it is cut short or its lengths are wrong".to_owned();
        let message =
            root_as_message(header).map_err(|e| format!("its Arrow framing is broken: {e}"))?;
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
        let body = usize::try_from(message.bodyLength()).map_err(|_| cut())?;
        rest = after.split_at_checked(body).ok_or_else(cut)?.1;
    }
    match frame(rest)? {
        ([], []) => Ok(()),
        _ => Err("its Arrow stream has more than one batch".to_owned()),
    }
}

/// Splits off one message header; the end mark is an empty one.
fn frame(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let no_stream = || "it is not an Arrow IPC stream, or cut short".to_owned();
    let (marker, rest) = bytes.split_first_chunk::<4>().ok_or_else(no_stream)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(no_stream)?;
    if *marker != [0xff; 4] {
        return Err(no_stream());
    }
    let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| no_stream())?;
    rest.split_at_checked(length).ok_or_else(no_stream)
}

fn decode(bytes: &[u8]) -> Result<Synopsis, Error> {
    let damaged = |e: ArrowError| Error::Damaged(format!("its Arrow stream cannot be read: {e}"));
    let mut reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
    let found = reader.schema();
    let no_description = || Error::Damaged(format!("its schema has no metadata '{METADATA_KEY}'"));
    let document = found
        .metadata()
        .get(METADATA_KEY)
        .ok_or_else(no_description)?;
    let about: Description = serde_json::from_str(document)
        .map_err(|e| Error::Damaged(format!("its description cannot be read: {e}")))?;
    about.check().map_err(Error::Damaged)?;
    // Before any buffer is read: the number of values follows from the description and fits into the bytes.
    let points = about.shape().values();
    let points = (points <= bytes.len() / size_of::<f64>())
        .then_some(points)
        .and_then(|n| i32::try_from(n).ok());
    let points =
        points.ok_or_else(|| Error::Damaged("it has fewer values than its lattice".to_owned()))?;
    let expected = schema(&about, points).map_err(|e| Error::Damaged(e.to_string()))?;
    let columns = |schema: &Schema| -> Vec<_> {
        schema
            .fields()
            .iter()
            .map(|f| (f.name().clone(), f.data_type().clone(), f.is_nullable()))
            .collect()
    };
    if columns(&found) != columns(&expected) {
        return Err(Error::Damaged(
            "its columns are not those of a synopsis".to_owned(),
        ));
    }
    let batch = reader
        .next()
        .ok_or_else(|| Error::Damaged("it has no row".to_owned()))?
        .map_err(damaged)?;
    let row = Row::of(&batch)
        .ok_or_else(|| Error::Damaged("it does not have exactly one row".to_owned()))?;
    let said = (
        about.window.start.micros(),
        about.window.end.micros(),
        about.ledger.sequence,
        about.key.as_deref(),
    );
    if said != (row.start, row.end, row.sequence, row.key.as_deref()) {
        return Err(Error::Damaged(
            "its columns and its description disagree".to_owned(),
        ));
    }
    Synopsis::new(about, row.values)
}

/// The only row of a batch.
struct Row {
    start: i64,
    end: i64,
    key: Option<String>,
    sequence: u64,
    values: Vec<f64>,
}

impl Row {
    /// `None` where the batch has no row or several, or a null where none belongs.
    fn of(batch: &RecordBatch) -> Option<Row> {
        let [start, end, key, sequence, values] = batch.columns() else {
            return None;
        };
        let complete = [start, end, sequence, values]
            .iter()
            .all(|column| column.null_count() == 0);
        if batch.num_rows() != 1 || !complete {
            return None;
        }
        let time = |column: &ArrayRef| {
            Some(
                column
                    .as_any()
                    .downcast_ref::<TimestampMicrosecondArray>()?
                    .value(0),
            )
        };
        let key = key.as_any().downcast_ref::<StringArray>()?;
        let values = values
            .as_any()
            .downcast_ref::<FixedSizeListArray>()?
            .value(0);
        let values = values.as_any().downcast_ref::<Float64Array>()?;
        Some(Row {
            start: time(start)?,
            end: time(end)?,
            key: (!key.is_null(0)).then(|| key.value(0).to_owned()),
            sequence: sequence.as_any().downcast_ref::<UInt64Array>()?.value(0),
            values: (values.null_count() == 0).then(|| values.values().to_vec())?,
        })
    }
}
