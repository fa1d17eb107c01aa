//! The forms that messages may have.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use super::{NOT_TEXT, Record, origin};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Arrow,
    Json,
    Avro,
    Protobuf,
}

/// All may be null, and one field is not needed.
const SCHEMA: &str = r#"{"type": "record", "name": "Row", "fields": [
    {"name": "time", "type": ["null", "long"]}, {"name": "note", "type": "string"},
    {"name": "key", "type": ["null", "string"]}, {"name": "value", "type": ["null", "double"]}]}"#;

impl Form {
    /// What the configuration declares: the form of times, the type of the key, the form of messages.
    pub fn declared(self, folder: &Path) -> (&'static str, &'static str, String) {
        let format = match self {
            Form::Arrow => return ("", "", String::new()),
            Form::Json => "\"json\"".to_owned(),
            Form::Avro => {
                let file = folder.join("row.avsc");
                fs::write(&file, SCHEMA).expect("it is written");
                format!("{{ avro = {{ schemas = [{{ id = 7, file = {file:?} }}] }} }}")
            }
            Form::Protobuf => {
                let file = folder.join("row.binpb");
                fs::write(&file, descriptor()).expect("it is written");
                format!("{{ protobuf = {{ descriptor = {file:?}, message = \"Row\" }} }}")
            }
        };
        (
            "time_format = \"microseconds\"",
            "type = \"text\",",
            format!("format = {format}"),
        )
    }

    /// A message, or several of one record each.
    pub fn payloads(self, records: &[Record]) -> impl Iterator<Item = Vec<u8>> {
        let all: Vec<Vec<u8>> = match self {
            Form::Arrow => vec![arrow(records)],
            Form::Json => records.iter().map(json).collect(),
            Form::Avro => records.iter().map(avro).collect(),
            Form::Protobuf => records.iter().map(protobuf).collect(),
        };
        all.into_iter().map(bent)
    }

    /// In JSON and Protobuf the record cannot be read at all.
    pub fn fate_of_a_key_that_is_not_text(self) -> &'static str {
        match self {
            Form::Arrow | Form::Avro => "unknown_key",
            Form::Json | Form::Protobuf => "missing",
        }
    }

    /// Messages that are no records.
    pub fn no_records(self) -> Vec<(&'static str, Option<Vec<u8>>)> {
        let record = Record {
            time: Some(95_000_000),
            key: Some("a"),
            value: Some(50.0),
        };
        let whole = self.payloads(&[record]).next().expect("one");
        let mut all = vec![
            ("no payload", None),
            ("bytes of nothing", Some(vec![0xff; 100])),
            (
                "a record cut short",
                Some(whole[..whole.len() - 1].to_vec()),
            ),
            ("a record and a zero", Some([whole, vec![0]].concat())),
        ];
        match self {
            Form::Json => all.extend([
                ("an empty payload", Some(Vec::new())),
                ("an array", Some(b"[1]".to_vec())),
                ("depth", Some(b"[".repeat(100_000))),
                ("a name twice", Some(br#"{"time": 1, "time": 2}"#.to_vec())),
            ]),
            Form::Avro => all.extend([
                ("an empty payload", Some(Vec::new())),
                ("an unknown schema", Some(vec![0, 0, 0, 0, 8, 0, 0, 0, 0])),
                ("no time", Some(vec![0, 0, 0, 0, 7, 0, 0, 0, 0])),
            ]),
            Form::Arrow | Form::Protobuf => {}
        }
        all
    }
}

fn micros(record: &Record) -> Option<i64> {
    record.time.map(|time| origin().saturating_add(time))
}

/// With the key that is no text as bytes that are none.
fn bent(mut bytes: Vec<u8>) -> Vec<u8> {
    while let Some(at) = bytes
        .windows(NOT_TEXT.len())
        .position(|w| w == NOT_TEXT.as_bytes())
    {
        bytes[at..at + NOT_TEXT.len()].fill(0xff);
    }
    bytes
}

fn arrow(records: &[Record]) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 3] = [
        (
            "time",
            Arc::new(
                records
                    .iter()
                    .map(micros)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        (
            "key",
            Arc::new(records.iter().map(|r| r.key).collect::<StringArray>()),
        ),
        (
            "value",
            Arc::new(records.iter().map(|r| r.value).collect::<Float64Array>()),
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    );
    let batch = batch.expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

fn json(record: &Record) -> Vec<u8> {
    let time = micros(record);
    let Record { key, value, .. } = record;
    serde_json::json!({ "note": "n", "value": value, "key": key, "time": time })
        .to_string()
        .into_bytes()
}

fn avro(record: &Record) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 7];
    match micros(record) {
        None => bytes.push(0),
        Some(time) => bytes.extend(
            [
                vec![2],
                varint(((time << 1) ^ (time >> 63)).cast_unsigned()),
            ]
            .concat(),
        ),
    }
    bytes.extend([2, b'n']);
    match record.key {
        None => bytes.push(0),
        Some(key) => bytes.extend([vec![2, 2 * key.len() as u8], key.as_bytes().to_vec()].concat()),
    }
    match record.value {
        None => bytes.push(0),
        Some(value) => bytes.extend([vec![2], value.to_le_bytes().to_vec()].concat()),
    }
    bytes
}

fn protobuf(record: &Record) -> Vec<u8> {
    let mut bytes = vec![4 << 3 | 2, 1, b'n'];
    if let Some(time) = micros(record) {
        bytes.extend([vec![1 << 3], varint(time.cast_unsigned())].concat());
    }
    if let Some(key) = record.key {
        bytes.extend([vec![2 << 3 | 2, key.len() as u8], key.as_bytes().to_vec()].concat());
    }
    if let Some(value) = record.value {
        bytes.extend([vec![3 << 3 | 1], value.to_le_bytes().to_vec()].concat());
    }
    bytes
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// `message Row { optional int64 time = 1; optional string key = 2; optional double value = 3; optional string note = 4; }`, of the
/// second version, where every field knows whether it is there.
fn descriptor() -> Vec<u8> {
    let field = |(number, name, kind): (i32, &str, Type)| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    };
    let fields = [
        (1, "time", Type::Int64),
        (2, "key", Type::String),
        (3, "value", Type::Double),
        (4, "note", Type::String),
    ];
    let row = DescriptorProto {
        name: Some("Row".to_owned()),
        field: fields.map(field).to_vec(),
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("row.proto".to_owned()),
        message_type: vec![row],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}
