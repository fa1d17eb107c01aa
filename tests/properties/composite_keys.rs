//! Keys of several columns: every form of records has the same parts, and no two keys are taken for one, from the record to the window.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use bernstream_kafka::source::record::{
    BatchBuilder, CsvReader, DeclaredTypes, IdType, MessageType, RecordForm, RecordReader,
    TimeFormat,
};
use bernstream_release::source::decode::decode_message;
use bernstream_release::source::{Batch, Columns, KeyRows, TextColumn};
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{KeyCounting, RankKey, ReleaseInput, WindowRules, WindowStore};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::key_parts::join_parts;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};

use crate::batches::{rules, seconds};

/// A merchant, and a status in numbers; a part that is null or no number takes the key from its own record alone.
const ROWS: [(Option<&str>, Option<&str>); 6] = [
    (Some("DE"), Some("7")),
    (Some("a/b"), Some("-1")),
    (None, Some("7")),
    (Some("DE"), None),
    (Some("50%"), Some("0")),
    (Some("x,\"y"), Some("12")),
];
const KEYS: [Option<&str>; 6] = [
    Some("DE/7"),
    Some("a%2Fb/-1"),
    None,
    None,
    Some("50%25/0"),
    Some("x,\"y/12"),
];

fn columns() -> Columns {
    Columns {
        time: "at".to_owned(),
        key: ["merchant", "status"].map(str::to_owned).to_vec(),
        key_types: [Some(IdType::Text), Some(IdType::Integer), None],
        ..Columns::default()
    }
}

fn declared() -> DeclaredTypes {
    DeclaredTypes {
        time: TimeFormat::Milliseconds,
        key: columns().key_types,
        unit: None,
    }
}

fn keys_of(batch: &Batch) -> Vec<Option<String>> {
    let keys = batch.keys.as_ref().expect("keys");
    let mut all = Vec::new();
    for row in 0..batch.times.len() {
        let key = keys.get(row);
        all.push(key.map(|key| String::from_utf8_lossy(&key).into_owned()));
    }
    all
}

/// The keys of messages of one record each.
fn read(form: &RecordForm, payloads: &[Vec<u8>]) -> Vec<Option<String>> {
    let mut reader = RecordReader::new(form, &columns(), &declared()).expect("all is declared");
    let mut gather = BatchBuilder::new(&columns());
    for (offset, payload) in payloads.iter().enumerate() {
        let row = reader.read(payload).expect("a record");
        gather.push_row(0, offset as i64, None, Some(row));
    }
    keys_of(&gather.take_batch().expect("rows"))
}

fn json(row: (Option<&str>, Option<&str>)) -> Vec<u8> {
    let (merchant, status) = row;
    let status: Option<i64> = status.map(|status| status.parse().expect("a number"));
    let record = serde_json::json!({ "at": 1000, "merchant": merchant, "status": status });
    record.to_string().into_bytes()
}

fn long(number: i64) -> Vec<u8> {
    let zigzag = u8::try_from((number << 1) ^ (number >> 63)).expect("a small number");
    assert!(zigzag < 0x80, "one byte");
    vec![zigzag]
}

fn avro_form() -> RecordForm {
    let schema = r#"{"type": "record", "name": "Order", "fields": [{"name": "status", "type": ["null", "long"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "merchant", "type": ["null", "string"]}]}"#;
    let schema = RecordSchema::parse(schema).expect("a schema");
    RecordForm::Avro(Arc::new(RegistrySchemas(BTreeMap::from([(7, schema)]))))
}

fn avro((merchant, status): (Option<&str>, Option<&str>)) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 7];
    match status {
        None => bytes.extend(long(0)),
        Some(status) => {
            bytes.extend([long(1), long(status.parse().expect("a number"))].concat());
        }
    }
    bytes.extend(long(1));
    match merchant {
        None => bytes.extend(long(0)),
        Some(merchant) => {
            bytes.extend([long(1), long(merchant.len() as i64)].concat());
            bytes.extend(merchant.as_bytes());
        }
    }
    bytes
}

fn protobuf_form() -> RecordForm {
    let field = |name: &str, number, kind: Type| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("order.proto".to_owned()),
        syntax: Some("proto2".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("Order".to_owned()),
            field: vec![
                field("at", 1, Type::Int64),
                field("merchant", 2, Type::String),
                field("status", 3, Type::Sint64),
            ],
            ..DescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    let files = FileDescriptorSet { file: vec![file] };
    let kind = MessageType::parse(files.encode_to_vec(), "Order").expect("a message type");
    RecordForm::Protobuf(Arc::new(kind))
}

fn protobuf((merchant, status): (Option<&str>, Option<&str>)) -> Vec<u8> {
    let mut bytes = vec![1 << 3, 1];
    if let Some(merchant) = merchant {
        bytes.extend([
            2 << 3 | 2,
            u8::try_from(merchant.len()).expect("a short text"),
        ]);
        bytes.extend(merchant.as_bytes());
    }
    if let Some(status) = status {
        bytes.push(3 << 3);
        bytes.extend(long(status.parse().expect("a number")));
    }
    bytes
}

fn expected() -> Vec<Option<String>> {
    KEYS.map(|key| key.map(str::to_owned)).to_vec()
}

#[test]
fn every_form_of_a_record_has_the_same_parts() {
    assert_eq!(read(&RecordForm::Json, &ROWS.map(json)), expected());
    assert_eq!(read(&avro_form(), &ROWS.map(avro)), expected());
    assert_eq!(read(&protobuf_form(), &ROWS.map(protobuf)), expected());
    let header = ["status", "at", "other", "merchant"].map(str::to_owned);
    let mut reader = CsvReader::new(&header, &columns(), &declared()).expect("its columns");
    let mut gather = BatchBuilder::new(&columns());
    for (offset, (merchant, status)) in ROWS.iter().enumerate() {
        let merchant = merchant.unwrap_or_default().replace('"', "\"\"");
        let line = format!("{},1000,,\"{merchant}\"", status.unwrap_or_default());
        let row = reader.read(line.as_bytes()).expect("a line");
        gather.push_row(0, offset as i64, None, Some(row));
    }
    assert_eq!(keys_of(&gather.take_batch().expect("rows")), expected());
}

#[test]
fn a_part_of_another_type_takes_its_own_record_alone() {
    let payloads = [
        r#"{"at": 1, "merchant": "DE", "status": "seven"}"#,
        r#"{"at": 1, "merchant": 7, "status": 7}"#,
        r#"{"at": 1, "merchant": "DE", "status": "07"}"#,
        r#"{"at": 1, "merchant": "DE", "status": "7"}"#,
        r#"{"at": 1, "status": 7}"#,
        r#"{"at": 1, "merchant": "DE", "status": 7.0}"#,
    ]
    .map(|payload| payload.as_bytes().to_vec());
    let found = read(&RecordForm::Json, &payloads);
    let key = Some("DE/7".to_owned());
    assert_eq!(found, [None, None, None, key.clone(), None, key]);
}

fn message(merchants: &ArrayRef, statuses: &ArrayRef, batches: usize) -> Vec<u8> {
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![0; merchants.len()]));
    let columns = [
        ("status", statuses.clone()),
        ("at", times),
        ("merchant", merchants.clone()),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a stream");
    for _ in 0..batches {
        writer.write(&batch).expect("written");
    }
    writer.into_inner().expect("a stream")
}

#[test]
fn every_type_of_an_arrow_column_has_the_same_parts() {
    let texts = ROWS.map(|(merchant, _)| merchant);
    let merchants: [ArrayRef; 3] = [
        Arc::new(StringArray::from(texts.to_vec())),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(DictionaryArray::<Int32Type>::from_iter(texts)),
    ];
    let numbers = ROWS.map(|(_, status)| status.map(|status| status.parse::<i64>().expect("one")));
    let statuses: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(numbers.to_vec())),
        Arc::new(StringArray::from(ROWS.map(|(_, status)| status).to_vec())),
    ];
    for merchants in &merchants {
        for statuses in &statuses {
            for batches in [1, 2] {
                let bytes = message(merchants, statuses, batches);
                let batch = decode_message(&bytes, &columns(), 0, 0, None).expect("a message");
                let all = vec![expected(); batches].concat();
                assert_eq!(keys_of(&batch), all);
            }
        }
    }
    let without: ArrayRef = Arc::new(Int64Array::from(vec![7; ROWS.len()]));
    let named = Columns {
        key: ["merchant", "missing"].map(str::to_owned).to_vec(),
        ..columns()
    };
    let bytes = message(&merchants[0], &without, 1);
    let batch = decode_message(&bytes, &named, 0, 0, None).expect("a message");
    assert_eq!(keys_of(&batch), vec![None; ROWS.len()]);
}

/// Pairs that are one text where parts are joined without lengths or escapes.
const ALIKE: [[&str; 2]; 7] = [
    ["a", "bc"],
    ["ab", "c"],
    ["a/b", "c"],
    ["a", "b/c"],
    ["a%2Fb", "c"],
    ["a", "b%2Fc"],
    ["a%", "2Fb/c"],
];

fn text_column(texts: Vec<Option<&[u8]>>) -> TextColumn {
    TextColumn::from(arrow_array::BinaryArray::from(texts))
}

/// One record for the first key, two for the second, and so on, and records whose keys are not listed or have no parts.
fn records_of_alike() -> Batch {
    let mut parts: [Vec<Option<&[u8]>>; 2] = Default::default();
    for (times, pair) in (1..).zip(ALIKE) {
        for (column, part) in parts.iter_mut().zip(pair) {
            column.extend(vec![Some(part.as_bytes()); times]);
        }
    }
    let long = [b'a'; 4096];
    let odd: [[Option<&[u8]>; 2]; 5] = [
        [Some(b"abc"), Some(b"")],
        [Some(b"a"), None],
        [Some(&b"a\xff"[..]), Some(b"bc")],
        [Some(&long[..]), Some(b"bc")],
        [Some(b"a"), Some(b"b%252Fc")],
    ];
    for row in odd {
        for (column, part) in parts.iter_mut().zip(row) {
            column.push(part);
        }
    }
    let rows = parts[0].len();
    Batch {
        partition: 0,
        offset: 0,
        message_time: Some(seconds(2)),
        times: Int64Array::from(vec![1_000_000; rows]),
        keys: KeyRows::of_parts(parts.map(text_column).to_vec()),
        units: None,
        values: Vec::new(),
        found: None,
    }
}

/// Records of a form that counts all keys alone, by key; `other` are the names of what is not listed.
fn counted_records(keys: &[String], other: Vec<Option<String>>, batch: &Batch) -> Vec<i128> {
    let counting = KeyCounting {
        keys: keys.to_vec(),
        max_keys: 1,
        max_records: 1,
        sum: None,
        keeps_squares: false,
        grid: None,
        unit_bins: Vec::new(),
        ranks: RankKey::for_pipeline("alike"),
    };
    let form = ReleaseInput {
        axes: Vec::new(),
        label: None,
        columns: Vec::new(),
        accumulator: AccumulatorSpec::Keys(counting.into()),
        panes: 1,
    };
    let rules = WindowRules {
        keys: Some(keys.to_vec()),
        other,
        ..rules()
    };
    let first = rules.grid.span_of(Timestamp::from_micros(0));
    let mut store = WindowStore::new(rules, vec![form], first.start, first, None);
    store.absorb_batch(batch);
    let window = store.close_next();
    let [group] = &window.forms[0][..] else {
        panic!("one accumulator for all keys")
    };
    let totals = group.accumulator.key_totals();
    totals.iter().map(|totals| totals.records).collect()
}

#[test]
fn keys_whose_parts_run_together_alike_are_counted_apart() {
    let keys: Vec<String> = ALIKE.iter().map(|pair| join_parts(pair)).collect();
    let records = counted_records(&keys, Vec::new(), &records_of_alike());
    assert_eq!(records, (1..=ALIKE.len() as i128).collect::<Vec<_>>());
}

/// Every pair of these parts, the first once, the second twice, and so on; the last is no text, and longer than what is listed.
fn records_of_pairs(written: &[Option<&[u8]>]) -> Batch {
    let mut parts: [Vec<Option<&[u8]>>; 2] = Default::default();
    let mut times = 0;
    for first in written {
        for second in written {
            times += 1;
            parts[0].extend(vec![*first; times]);
            parts[1].extend(vec![*second; times]);
        }
    }
    Batch {
        times: Int64Array::from(vec![1_000_000; parts[0].len()]),
        keys: KeyRows::of_parts(parts.map(text_column).to_vec()),
        ..records_of_alike()
    }
}

#[test]
fn a_part_that_is_not_listed_counts_under_the_name_of_its_column() {
    let long = [0xff; 4096];
    let written: [Option<&[u8]>; 7] = [
        Some(b"a/b"),
        Some(b"c"),
        Some(b"rest/%"),
        Some(b""),
        Some(b"a%2Fb"),
        None,
        Some(&long),
    ];
    let batch = records_of_pairs(&written);
    let names = [None, Some("rest/%")];
    for first_name in names {
        for second_name in names {
            let lists = [first_name, second_name].map(|name| {
                let listed = [Some("a/b"), Some("c"), name];
                listed.into_iter().flatten().collect::<Vec<&str>>()
            });
            let mut expected: BTreeMap<String, i128> = BTreeMap::new();
            let mut keys = Vec::new();
            for first in &lists[0] {
                for second in &lists[1] {
                    keys.push(join_parts(&[first, second]));
                }
            }
            let mut times = 0;
            for first in written {
                for second in written {
                    times += 1;
                    let first = named(first, &lists[0], first_name);
                    let second = named(second, &lists[1], second_name);
                    if let (Some(first), Some(second)) = (first, second) {
                        *expected.entry(join_parts(&[first, second])).or_default() += times;
                    }
                }
            }
            let other = [first_name, second_name].map(|name| name.map(str::to_owned));
            let other = match other {
                [None, None] => Vec::new(),
                named => named.to_vec(),
            };
            let found = counted_records(&keys, other, &batch);
            let found: BTreeMap<String, i128> = keys.into_iter().zip(found).collect();
            assert_eq!(found, expected, "{first_name:?}, {second_name:?}");
        }
    }
}

/// The name that a part counts under; `None` where its record is dropped.
fn named<'a>(
    written: Option<&'a [u8]>,
    listed: &[&'a str],
    other: Option<&'a str>,
) -> Option<&'a str> {
    let written = written?;
    let own = listed.iter().find(|text| text.as_bytes() == written);
    own.copied().or(other)
}
