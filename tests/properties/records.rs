//! Records of every form: nothing that one may hold stops a program, costs more than its length, or touches another record.

mod avro;
mod protobuf;

use arrow_array::Array;
use bernstream_kafka::source::record::{
    BatchBuilder, DeclaredTypes, IdType, LARGEST_RECORD, RecordForm, RecordReader, TimeFormat,
};
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::clock::Timestamp;
use proptest::prelude::*;

use crate::memory::peak_of;

fn columns() -> Columns {
    Columns {
        time: "at".to_owned(),
        key: vec!["ride.city".to_owned()],
        unit: Some("rider".to_owned()),
        values: vec!["ride.km".to_owned(), "ride.price".to_owned()],
        ..Columns::default()
    }
}

fn declared() -> DeclaredTypes {
    DeclaredTypes {
        time: TimeFormat::Milliseconds,
        key: [Some(IdType::Text), None, None],
        unit: Some(IdType::Integer),
    }
}

/// Whether a form has a field at a path, whatever its type.
fn has(form: &RecordForm, path: &str) -> bool {
    let columns = Columns {
        time: path.to_owned(),
        ..Columns::default()
    };
    let impossible = form
        .impossible_fields(&columns, &declared())
        .expect("all is declared");
    impossible.iter().all(|field| !field.types.is_empty())
}

/// All that is kept of a record.
#[derive(Debug, PartialEq)]
struct Kept(
    Option<i64>,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Vec<Option<f64>>,
);

fn rows(batch: &Batch) -> Vec<Kept> {
    let number =
        |values: &arrow_array::Float64Array, row| values.is_valid(row).then(|| values.value(row));
    let row = |row| {
        let time = batch.times.is_valid(row).then(|| batch.times.value(row));
        let text = |column: Option<&bernstream_release::source::TextColumn>| {
            column
                .and_then(|column| column.get(row))
                .map(<[u8]>::to_vec)
        };
        Kept(
            time,
            text(batch.keys.as_ref().map(|keys| &keys.parts()[0])),
            text(batch.units.as_ref()),
            batch
                .values
                .iter()
                .map(|values| number(values, row))
                .collect(),
        )
    };
    (0..batch.times.len()).map(row).collect()
}

/// What is kept of messages, in the order of their partition, one row each.
fn read(form: &RecordForm, payloads: &[Vec<u8>]) -> Vec<Kept> {
    let mut reader = RecordReader::new(form, &columns(), &declared()).expect("all is declared");
    let mut gather = BatchBuilder::new(&columns());
    let mut kept = Vec::new();
    for (offset, payload) in payloads.iter().enumerate() {
        let time = Some(Timestamp::from_micros(1));
        let batch = gather.push_row(0, offset as i64, time, reader.read(payload).ok());
        kept.extend(batch.iter().flat_map(rows));
    }
    kept.extend(gather.take_batch().iter().flat_map(rows));
    kept
}

fn one(payload: impl Into<Vec<u8>>) -> Kept {
    let mut all = read(&RecordForm::Json, &[payload.into()]);
    assert_eq!(all.len(), 1, "a row a message");
    all.remove(0)
}

/// A record that cannot be read.
fn dropped() -> Kept {
    Kept(None, None, None, vec![None, None])
}

const PLAIN: &str =
    r#"{"at": 1000, "rider": 7, "ride": {"city": "Bern", "km": 7.25, "price": "12.50"}}"#;

fn plain() -> Kept {
    Kept(
        Some(1_000_000),
        Some(b"Bern".to_vec()),
        Some(b"7".to_vec()),
        vec![Some(7.25), Some(12.5)],
    )
}

#[test]
fn the_needed_fields_of_json_are_found_by_their_paths() {
    assert_eq!(one(PLAIN), plain());
    let other = r#" {"x": [{"at": 5}, "\ud800", 1e999], "ride": {"pr\u0069ce": 12.5, "km": "7.25", "more": {"km": 1}, "city": "B\u0065rn"},
        "rider": "7", "at": "1000", "x": null} "#;
    assert_eq!(one(other), plain());
}

#[test]
fn what_is_missing_or_mistyped_is_null_and_spoils_nothing_else() {
    let with = |old: &str, new: &str| {
        assert_eq!(PLAIN.matches(old).count(), 1);
        one(PLAIN.replace(old, new))
    };
    for time in [
        "null",
        "true",
        "1000.5",
        "1e300",
        "\"1970-01-01T00:00:01Z\"",
        "[1000]",
        "{\"at\": 1000}",
        "\"01000\"",
        "-0",
    ] {
        let expected = Kept { 0: None, ..plain() };
        assert_eq!(with("1000", time), expected, "{time}");
    }
    for rider in [
        "null",
        "7.5",
        "\"7.\"",
        "9007199254740992.0",
        "\"07\"",
        "\" 7\"",
        "[7]",
        "18446744073709551616",
        "-9223372036854775809",
        "false",
    ] {
        assert_eq!(
            with("\"rider\": 7", &format!("\"rider\": {rider}")),
            Kept { 2: None, ..plain() },
            "{rider}"
        );
    }
    // As programs write integers where one of them is missing.
    for (time, rider) in [("1000.0", "7.0"), ("1e3", "7e0"), ("\"1000.0\"", "\"7.0\"")] {
        let written = PLAIN
            .replace("1000", time)
            .replace("\"rider\": 7", &format!("\"rider\": {rider}"));
        assert_eq!(one(written.clone()), plain(), "{written}");
    }
    for city in ["1", "null", "[\"Bern\"]", "{}"] {
        assert_eq!(
            with("\"Bern\"", city),
            Kept { 1: None, ..plain() },
            "{city}"
        );
    }
    for km in [
        "null",
        "true",
        "\"7,25\"",
        "\"NaN\"",
        "\"1e999\"",
        "[]",
        "\"\"",
    ] {
        assert_eq!(
            with("7.25", km),
            Kept {
                3: vec![None, Some(12.5)],
                ..plain()
            },
            "{km}"
        );
    }
    assert_eq!(
        with("\"ride\"", "\"Ride\""),
        Kept {
            1: None,
            3: vec![None, None],
            ..plain()
        }
    );
    assert_eq!(
        one(r#"{"at": 1, "ride": "Bern"}"#),
        Kept(Some(1000), None, None, vec![None, None])
    );
}

#[test]
fn numbers_are_the_nearest_that_there_are() {
    for (written, expected) in [
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("18446744073709551615", 18_446_744_073_709_551_616.0),
        ("123456789012345678901234567890", 1.234_567_890_123_456_8e29),
        (
            "0.1000000000000000055511151231257827021181583404541015625",
            0.1,
        ),
        ("2.2250738585072011e-308", 2.225_073_858_507_201e-308),
        ("-0", -0.0),
    ] {
        for text in [written.to_owned(), format!("{written:?}")] {
            let km = one(PLAIN.replace("7.25", &text)).3[0].expect("a number");
            assert_eq!(km.to_bits(), f64::to_bits(expected), "{text}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_dropped_whole() {
    let twice = [
        PLAIN.replace("\"rider\": 7", "\"rider\": 7, \"rider\": 7"),
        PLAIN.replace("\"km\"", "\"price\""),
        PLAIN.replace("}}", "}, \"ride\": {}}"),
        PLAIN.replace("}}", "}, \"\\u0061t\": 1}"),
    ];
    let syntax = [
        "",
        " ",
        "null",
        "7",
        "[]",
        "\"at\"",
        "{",
        "{\"at\": 1000",
        "{\"at\": 1000,}",
        "{'at': 1000}",
        "{\"at\": NaN}",
        "{\"at\": 1000} {}",
        "{\"at\": 01000}",
        "\u{feff}{\"at\": 1000}",
        "{\"at\": 1000, \"x\": \"\t\"}",
        "{\"at\": 1000, \"x\": tru}",
    ];
    for text in twice.into_iter().chain(syntax.map(str::to_owned)) {
        assert_eq!(one(text.clone()), dropped(), "{text}");
    }
    let not_utf8 = [
        PLAIN.replace("}}", ", \"x\": \"").into_bytes(),
        vec![0xff],
        b"\"}}".to_vec(),
    ]
    .concat();
    assert_eq!(one(not_utf8), dropped());
    let large = PLAIN.replace(
        "}}",
        &format!("}}, \"x\": {}}}", " ".repeat(LARGEST_RECORD)),
    );
    assert_eq!(one(large), dropped());
}

#[test]
fn depth_is_no_danger() {
    for (open, close) in [("[", "]"), ("{\"x\":", "}"), ("{\"ride\":", "}")] {
        let depth = LARGEST_RECORD / 16;
        let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert_eq!(
            one(PLAIN.replace("}}", &format!("}}, \"x\": {deep}}}"))),
            plain(),
            "{open}"
        );
        assert_eq!(
            one(PLAIN.replace("7.25", &deep)),
            Kept {
                3: vec![None, Some(12.5)],
                ..plain()
            },
            "{open}"
        );
        assert_eq!(one(format!("{}1", open.repeat(depth))), dropped(), "{open}");
    }
}

/// What a hostile record of the largest size takes, in bytes for each of its bytes, beyond what the reader keeps anyway.
pub fn memory_of(form: &RecordForm, payload: &[u8]) -> f64 {
    assert!(payload.len() <= LARGEST_RECORD);
    let mut reader = RecordReader::new(form, &columns(), &declared()).expect("all is declared");
    let (_, bytes) = peak_of(|| reader.read(payload).is_ok());
    bytes as f64 / payload.len() as f64
}

#[test]
fn a_record_takes_no_more_memory_than_a_few_times_its_bytes() {
    let fill = |start: &str, piece: &str| {
        let count = (LARGEST_RECORD - start.len()) / piece.len();
        format!("{start}{}", piece.repeat(count)).into_bytes()
    };
    for payload in [
        fill("", "["),
        fill("{\"x\":", "{\"a\":"),
        fill("{", "\"x\":1,"),
        fill("{\"x\":\"", "\\u0061"),
        fill("{\"rider\":\"", "\\u0061"),
        fill("{\"at\":", "1"),
        fill("{\"ride\":{\"km\":0.", "1"),
    ] {
        let memory = memory_of(&RecordForm::Json, &payload);
        assert!(
            memory < 8.0,
            "{}...: {memory} bytes a byte",
            String::from_utf8_lossy(&payload[..20])
        );
    }
}

/// Pieces that make records by chance, and nearly records.
fn json() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u00",
        "\"at\"",
        "\"rider\"",
        "\"ride\"",
        "\"km\"",
        "\"city\"",
        "1000",
        "-",
        "0",
        "1e9",
        "true",
        "null",
        " ",
        "\"x\"",
        "\"at\":1000,",
        "\"rider\":7",
        "\u{e4}",
        "\u{0}",
    ]);
    let made = prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat().into_bytes());
    let bent = (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| {
        let mut bytes = PLAIN.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    let cut = any::<prop::sample::Index>()
        .prop_map(|at| PLAIN.as_bytes()[..at.index(PLAIN.len())].to_vec());
    prop_oneof![
        made,
        bent,
        cut,
        prop::collection::vec(any::<u8>(), 0..60),
        Just(PLAIN.as_bytes().to_vec())
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each record becomes what it becomes alone, wherever it stands.
    #[test]
    fn no_record_touches_another(payloads in prop::collection::vec(json(), 0..30)) {
        let together = read(&RecordForm::Json, &payloads);
        let alone: Vec<Kept> = payloads.iter().map(|payload| one(payload.clone())).collect();
        // Not equal where a value is not a number, which JSON cannot say.
        prop_assert_eq!(together, alone);
    }
}

/// The most rows and bytes of a batch are limits on where it ends, and no row is lost there.
#[test]
fn batches_end_and_no_row_is_lost() {
    let mut reader =
        RecordReader::new(&RecordForm::Json, &columns(), &declared()).expect("all is declared");
    let mut gather = BatchBuilder::new(&columns());
    let long = PLAIN.replace("Bern", &"x".repeat(100_000));
    let mut batches = Vec::new();
    for offset in 0..20_000 {
        let payload = if offset < 100 { &long } else { PLAIN };
        let partition = i32::from(offset >= 15_000);
        let time = Timestamp::from_micros(offset / 18_000);
        batches.extend(gather.push_row(
            partition,
            offset,
            Some(time),
            reader.read(payload.as_bytes()).ok(),
        ));
    }
    batches.extend(gather.take_batch());
    assert!(gather.take_batch().is_none());
    let sizes: Vec<usize> = batches.iter().map(|batch| batch.times.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 20_000);
    assert!(
        sizes[0] < 50 && sizes.iter().all(|size| *size <= 8192),
        "{sizes:?}"
    );
    let mut next = 0;
    for batch in &batches {
        assert_eq!(batch.offset, next);
        next += batch.times.len() as i64;
        let last = next - 1;
        assert_eq!(
            batch.partition,
            i32::from(last >= 15_000),
            "a batch is of one partition"
        );
        assert_eq!(
            batch.message_time,
            Some(Timestamp::from_micros(last / 18_000)),
            "and of one message timestamp"
        );
        assert_eq!(batch.offset / 18_000, last / 18_000);
    }
}

#[test]
fn a_type_that_is_needed_must_be_declared() {
    for declared in [
        DeclaredTypes {
            key: [None; 3],
            ..declared()
        },
        DeclaredTypes {
            unit: None,
            ..declared()
        },
    ] {
        assert!(RecordReader::new(&RecordForm::Json, &columns(), &declared).is_err());
    }
}
