//! Avro records.

use std::collections::BTreeMap;
use std::sync::Arc;

use bernstream_kafka::source::record::RecordForm;
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use proptest::prelude::*;

use super::{Kept, dropped, has, memory_of, plain, read};

/// With unions, a nested record under a name of its own, and fields of every type that are not needed.
const SCHEMA: &str = r#"{
  "type": "record", "name": "Event", "namespace": "rides", "fields": [
    {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 4}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "rider", "type": ["null", "long"]},
    {"name": "counts", "type": {"type": "map", "values": ["null", "double"]}},
    {"name": "ride", "type": ["null", {"type": "record", "name": "Ride", "fields": [
      {"name": "city", "type": "string"}, {"name": "km", "type": "double"}, {"name": "good", "type": "boolean"},
      {"name": "price", "type": ["null", "string", "float"]}, {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}}
    ]}]},
    {"name": "before", "type": ["null", "Ride"]},
    {"name": "inner", "type": ["null", "Event"]},
    {"name": "nothing", "type": {"type": "array", "items": "null"}}
  ]}"#;

fn form() -> RecordForm {
    let other =
        r#"{"type": "record", "name": "Other", "fields": [{"name": "at", "type": "string"}]}"#;
    let schemas = [
        (7, RecordSchema::parse(SCHEMA).expect("a schema")),
        (8, RecordSchema::parse(other).expect("a schema")),
    ];
    RecordForm::Avro(Arc::new(RegistrySchemas(BTreeMap::from(schemas))))
}

fn long(number: i64) -> Vec<u8> {
    let mut zigzag = ((number << 1) ^ (number >> 63)) as u64;
    let mut bytes = Vec::new();
    while zigzag > 0x7f {
        bytes.push((zigzag & 0x7f) as u8 | 0x80);
        zigzag >>= 7;
    }
    bytes.push(zigzag as u8);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [long(text.len() as i64), text.as_bytes().to_vec()].concat()
}

fn framed(id: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    [vec![0], id.to_be_bytes().to_vec(), parts.concat()].concat()
}

/// What `ride` holds.
fn ride() -> Vec<Vec<u8>> {
    vec![
        text("Bern"),
        7.25_f64.to_le_bytes().to_vec(),
        vec![1],
        [long(1), text("12.50")].concat(),
        long(1),
    ]
}

/// The parts of the plain record: id, time, tags, rider, counts, ride, before, inner, nothing.
fn parts() -> Vec<Vec<u8>> {
    let tags = [
        long(2),
        text("a"),
        text("b"),
        long(-1),
        long(4),
        text("abc"),
        long(0),
    ]
    .concat();
    let counts = [
        long(1),
        text("at"),
        long(1),
        5.0_f64.to_le_bytes().to_vec(),
        long(0),
    ]
    .concat();
    let nothing = [long(3), long(0)].concat();
    let ride = [long(1), ride().concat()].concat();
    vec![
        vec![9; 4],
        long(1000),
        tags,
        [long(1), long(7)].concat(),
        counts,
        ride.clone(),
        ride,
        long(0),
        nothing,
    ]
}

fn with(at: usize, part: Vec<u8>) -> Vec<u8> {
    let mut parts = parts();
    parts[at] = part;
    framed(7, &parts)
}

fn one(payload: Vec<u8>) -> Kept {
    read(&form(), &[payload]).remove(0)
}

#[test]
fn the_needed_fields_are_found_past_all_the_others() {
    assert_eq!(one(framed(7, &parts())), plain());
    assert_eq!(one(with(3, long(0))), Kept { 2: None, ..plain() });
    assert_eq!(
        one(with(5, long(0))),
        Kept {
            1: None,
            3: vec![None, None],
            ..plain()
        }
    );
    let float = [
        long(1),
        ride()[..3].concat(),
        [long(2), 12.5_f32.to_le_bytes().to_vec()].concat(),
        long(0),
    ]
    .concat();
    assert_eq!(one(with(5, float)), plain());
    // A record in the record has fields of the same names.
    let inner = [long(1), parts().concat()].concat();
    assert_eq!(one(with(7, inner)), plain());
    // A field that another schema has with another type.
    assert_eq!(
        one(framed(8, &[text("1000")])),
        Kept(Some(1_000_000), None, None, vec![None, None])
    );
    let form = form();
    let paths = [
        "at",
        "ride.km",
        "inner.inner.ride.city",
        "ride",
        "km",
        "ride.km.x",
        "tags.x",
        "counts.at",
    ];
    assert_eq!(
        paths.map(|path| has(&form, path)),
        [true, true, true, true, false, false, false, false]
    );
}

#[test]
fn what_is_no_record_of_a_pinned_schema_is_dropped() {
    let whole = framed(7, &parts());
    for end in 0..whole.len() {
        assert_eq!(one(whole[..end].to_vec()), dropped(), "cut to {end} bytes");
    }
    assert_eq!(
        one([whole.clone(), vec![0]].concat()),
        dropped(),
        "a byte more"
    );
    assert_eq!(
        one([vec![1], whole[1..].to_vec()].concat()),
        dropped(),
        "another magic byte"
    );
    assert_eq!(one(framed(9, &parts())), dropped(), "an unknown schema");
    assert_eq!(one(with(3, long(2))), dropped(), "a type that there is not");
    assert_eq!(
        one(with(3, long(-1))),
        dropped(),
        "a type that there is not"
    );
    let ride = [long(1), ride()[..4].concat(), long(2)].concat();
    assert_eq!(one(with(5, ride)), dropped(), "a symbol that there is not");
    assert_eq!(one(with(1, vec![0xff; 10])), dropped(), "more than 64 bits");
    let bent = [
        long(1),
        text("B").into_iter().map(|b| b | 0x80).collect(),
        self::ride()[1..].concat(),
    ]
    .concat();
    assert_eq!(one(with(5, bent)).0, None, "a length beyond the end");
}

#[test]
fn a_needed_text_that_is_not_utf8_is_null() {
    let bent = [long(1), vec![2, 0xff], ride()[1..].concat()].concat();
    assert_eq!(one(with(5, bent.clone())), Kept { 1: None, ..plain() });
    assert_eq!(one(with(6, bent)), plain());
}

#[test]
fn a_short_record_is_no_long_work() {
    // 2^62 nulls, and as many in negative blocks; records in records without an end.
    assert_eq!(one(with(8, [long(1 << 62), long(0)].concat())), dropped());
    assert_eq!(
        one(with(8, [long(i64::MIN), long(0), long(0)].concat())),
        plain()
    );
    assert_eq!(
        one(with(2, [long(1), long(i64::MAX), vec![0; 8]].concat())),
        dropped()
    );
    for part in [
        [long(1), vec![0xff; 8]].concat(),
        vec![0; 500_000],
        [long(i64::MAX), vec![0; 500_000]].concat(),
    ] {
        let memory = memory_of(&form(), &with(2, part));
        assert!(memory < 8.0, "{memory} bytes a byte");
    }
    let before: Vec<u8> = parts()[..7].concat();
    let deep = [
        before.clone(),
        [long(1), before.clone()].concat().repeat(5_000),
    ]
    .concat();
    assert_eq!(one(framed(7, &[deep])), dropped());
    let within = |depth: usize| {
        let end = [long(0), parts()[8].clone()].concat();
        let inner = [
            [long(1), before.clone()].concat().repeat(depth),
            end,
            parts()[8].repeat(depth),
        ]
        .concat();
        one(framed(7, &[before.clone(), inner]))
    };
    assert_eq!(within(30), plain());
    assert_eq!(within(100), dropped());
}

#[test]
fn a_schema_that_is_none_is_refused_with_its_reason() {
    for (text, why) in [
        ("{", "not JSON"),
        ("\"string\"", "not the schema of a record"),
        (
            r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": "B"}]}"#,
            "no type 'B'",
        ),
        (
            r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", ["null"]]}]}"#,
            "a union in a union",
        ),
        (
            r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}"#,
            "two fields",
        ),
        (r#"{"type": "record", "fields": []}"#, "no name"),
        (r#"{"type": "record", "name": "A"}"#, "no 'fields'"),
        (
            r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": {"type": "enum", "name": "A", "symbols": []}}]}"#,
            "twice",
        ),
    ] {
        let told = RecordSchema::parse(text).expect_err(text).to_string();
        assert!(told.contains(why), "{text}: {told}");
    }
    // Nothing can be a record of it, and nothing hangs.
    let endless = RecordSchema::parse(
        r#"{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}"#,
    )
    .expect("a schema");
    let form = RecordForm::Avro(Arc::new(RegistrySchemas(BTreeMap::from([(1, endless)]))));
    assert_eq!(read(&form, &[framed(1, &[])]), [dropped()]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each record becomes what it becomes alone, wherever it stands.
    #[test]
    fn no_record_touches_another(
        changes in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), 0..20),
    ) {
        let bent = |changes: &Vec<(prop::sample::Index, u8)>| {
            let mut bytes = framed(7, &parts());
            changes.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte; });
            bytes
        };
        let payloads: Vec<Vec<u8>> = changes.iter().map(bent).collect();
        let together = format!("{:?}", read(&form(), &payloads));
        let alone: Vec<Kept> = payloads.iter().map(|payload| one(payload.clone())).collect();
        prop_assert_eq!(together, format!("{alone:?}"));
    }
}
