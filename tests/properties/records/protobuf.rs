//! Protobuf records.

use std::sync::Arc;

use bernstream_kafka::source::record::{
    BatchBuilder, DeclaredTypes, IdType, LARGEST_RECORD, MessageType, RecordForm, RecordReader,
    TimeFormat,
};
use bernstream_release::source::Columns;
use proptest::prelude::*;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet,
};

use super::{Kept, dropped, has, memory_of, plain, read};

fn field(name: &str, number: i32, kind: Type, type_name: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: type_name.map(str::to_owned),
        ..FieldDescriptorProto::default()
    }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    }
}

/// As `protoc --include_imports --descriptor_set_out` writes it.
fn descriptor() -> Vec<u8> {
    let list = FieldDescriptorProto {
        label: Some(Label::Repeated.into()),
        ..field("list", 9, Type::Int32, None)
    };
    let symbol = |(number, name): (i32, &str)| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        ..EnumValueDescriptorProto::default()
    };
    let rides = FileDescriptorProto {
        name: Some("rides.proto".to_owned()),
        package: Some("rides".to_owned()),
        dependency: vec!["google/protobuf/timestamp.proto".to_owned()],
        syntax: Some("proto3".to_owned()),
        message_type: vec![
            message(
                "Event",
                vec![
                    field("at", 1, Type::Int64, None),
                    field("rider", 2, Type::Uint64, None),
                    field("ride", 3, Type::Message, Some(".rides.Ride")),
                    field("inner", 4, Type::Message, Some(".rides.Event")),
                    field(
                        "started",
                        5,
                        Type::Message,
                        Some(".google.protobuf.Timestamp"),
                    ),
                    field("kind", 6, Type::Enum, Some(".rides.Kind")),
                    list,
                ],
            ),
            message(
                "Ride",
                vec![
                    field("city", 1, Type::String, None),
                    field("km", 2, Type::Double, None),
                    field("price", 3, Type::String, None),
                ],
            ),
        ],
        enum_type: vec![EnumDescriptorProto {
            name: Some("Kind".to_owned()),
            value: [(0, "NONE"), (1, "SHORT")].map(symbol).to_vec(),
            ..EnumDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    let timestamp = FileDescriptorProto {
        name: Some("google/protobuf/timestamp.proto".to_owned()),
        package: Some("google.protobuf".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![message(
            "Timestamp",
            vec![
                field("seconds", 1, Type::Int64, None),
                field("nanos", 2, Type::Int32, None),
            ],
        )],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet {
        file: vec![timestamp, rides],
    }
    .encode_to_vec()
}

fn kind() -> Arc<MessageType> {
    Arc::new(MessageType::parse(descriptor(), "rides.Event").expect("a message type"))
}

fn form() -> RecordForm {
    RecordForm::Protobuf(kind())
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

/// A field that is written as a varint, and one that is written as so many bytes.
fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(bytes.len() as u64),
        bytes.to_vec(),
    ]
    .concat()
}

fn ride() -> Vec<u8> {
    let km = [varint(2 << 3 | 1), 7.25_f64.to_le_bytes().to_vec()].concat();
    [bytes(1, b"Bern"), km, bytes(3, b"12.50")].concat()
}

fn whole() -> Vec<u8> {
    [number(1, 1000), number(2, 7), bytes(3, &ride())].concat()
}

fn one(payload: Vec<u8>) -> Kept {
    read(&form(), &[payload]).remove(0)
}

#[test]
fn the_needed_fields_are_found_in_any_order() {
    assert_eq!(one(whole()), plain());
    let other = [
        bytes(4, &whole()),
        bytes(9, &[1, 2, 3]),
        bytes(77, b"unknown"),
        bytes(3, &ride()),
        number(2, 7),
        number(1, 1000),
    ];
    assert_eq!(one(other.concat()), plain());
    // The last one counts, and messages are merged: so it is in Protobuf.
    assert_eq!(one([number(1, 5), whole()].concat()), plain());
    assert_eq!(
        one([whole(), bytes(3, &bytes(1, b"Thun"))].concat()),
        Kept {
            1: Some(b"Thun".to_vec()),
            ..plain()
        }
    );
    // What is not written has its default, which no one can tell from what is.
    assert_eq!(
        one(Vec::new()),
        Kept(Some(0), None, Some(b"0".to_vec()), vec![None, None])
    );
    assert_eq!(
        one(bytes(3, b"")),
        Kept(
            Some(0),
            Some(Vec::new()),
            Some(b"0".to_vec()),
            vec![Some(0.0), None]
        )
    );
    let form = form();
    let paths = [
        "at",
        "ride.km",
        "inner.inner.ride.city",
        "list",
        "km",
        "ride.km.x",
        "ride.x",
    ];
    assert_eq!(
        paths.map(|path| has(&form, path)),
        [true, true, true, true, false, false, false]
    );
}

#[test]
fn a_timestamp_of_protobuf_is_a_time_and_an_enum_is_text() {
    let columns = Columns {
        time: "started".to_owned(),
        key: vec!["kind".to_owned()],
        values: vec!["list".to_owned()],
        ..Columns::default()
    };
    let declared = DeclaredTypes {
        time: TimeFormat::Rfc3339,
        key: [Some(IdType::Text), None, None],
        unit: None,
    };
    let mut reader = RecordReader::new(&form(), &columns, &declared).expect("all is declared");
    let mut gather = BatchBuilder::new(&columns);
    let time = |seconds: i64, nanos: i64| {
        bytes(
            5,
            &[number(1, seconds as u64), number(2, nanos as u64)].concat(),
        )
    };
    for (offset, payload) in [
        [time(1, 999_999_999), number(6, 1)].concat(),
        [time(-1, 500), number(6, 9)].concat(),
        time(1, 1_000_000_000),
        time(i64::MAX, 0),
        number(6, 0),
    ]
    .into_iter()
    .enumerate()
    {
        gather.push_row(0, offset as i64, None, reader.read(&payload).ok());
    }
    let batch = gather.take_batch().expect("rows");
    let times: Vec<Option<i64>> = batch.times.iter().collect();
    assert_eq!(times, [Some(1_999_999), Some(-1_000_000), None, None, None]);
    let keys = batch.keys.expect("keys");
    let keys: Vec<Option<&[u8]>> = (0..5).map(|row| keys.parts()[0].get(row)).collect();
    assert_eq!(
        keys,
        [
            Some(&b"SHORT"[..]),
            None,
            Some(b"NONE"),
            Some(b"NONE"),
            Some(b"NONE")
        ]
    );
}

#[test]
fn what_is_no_message_is_dropped() {
    assert_eq!(one(whole()[..1].to_vec()), dropped());
    assert_eq!(one(whole()[..whole().len() - 1].to_vec()), dropped());
    assert_eq!(one([whole(), vec![0]].concat()), dropped(), "field 0");
    assert_eq!(
        one([whole(), bytes(1, b"x")].concat()),
        dropped(),
        "another wire type"
    );
    assert_eq!(
        one(bytes(3, &bytes(1, &[0xff]))),
        dropped(),
        "a text that is not UTF-8"
    );
    let mut deep = whole();
    for _ in 0..2_000 {
        deep = bytes(4, &deep);
    }
    assert_eq!(one(deep), dropped(), "messages in messages without an end");
}

/// The library keeps all of a message while it reads it: a number of a list takes a byte there, and some dozens here.
#[test]
fn a_message_takes_no_more_memory_than_some_dozens_of_times_its_bytes() {
    let most = LARGEST_RECORD - 100;
    let unknown = |field: u64| number(field, 1).repeat(most / 4);
    for payload in [
        bytes(9, &vec![1; most]),
        number(9, 1).repeat(most / 2),
        unknown(1000),
        bytes(4, &[]).repeat(most / 2),
    ] {
        let memory = memory_of(&form(), &payload);
        assert!(
            memory < 150.0,
            "{:?}...: {memory} bytes a byte",
            &payload[..8]
        );
    }
}

#[test]
fn a_descriptor_that_is_none_is_refused_with_its_reason() {
    let told =
        |file: Vec<u8>, name: &str| MessageType::parse(file, name).expect_err(name).to_string();
    assert!(told(vec![0xff; 10], "rides.Event").contains("not a descriptor file"));
    assert!(told(descriptor(), "Event").contains("no message 'Event'"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each record becomes what it becomes alone, wherever it stands.
    #[test]
    fn no_record_touches_another(
        changes in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), 0..20),
    ) {
        let bent = |changes: &Vec<(prop::sample::Index, u8)>| {
            let mut bytes = whole();
            changes.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte; });
            bytes
        };
        let payloads: Vec<Vec<u8>> = changes.iter().map(bent).collect();
        let together = format!("{:?}", read(&form(), &payloads));
        let alone: Vec<Kept> = payloads.iter().map(|payload| one(payload.clone())).collect();
        prop_assert_eq!(together, format!("{alone:?}"));
    }
}
