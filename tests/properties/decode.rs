//! Messages from outside: what is read, what is refused, and that nothing gets through.

use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::types::{Float16Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray, Date32Array,
    Date64Array, Decimal128Array, Decimal256Array, DictionaryArray, FixedSizeBinaryArray,
    Float16Array, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, LargeBinaryArray,
    LargeStringArray, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, i256};
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use bernstream_kafka::source::record::{IdType, TimeFormat};
use bernstream_release::source::decode::{ArrowDecoder, decode_message};
use bernstream_release::source::{Batch, Columns, DecodeError};
use bernstream_synopsis::clock::Timestamp;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::memory;

fn columns() -> Columns {
    Columns {
        time: "time".to_owned(),
        key: vec!["key".to_owned()],
        unit: Some("unit".to_owned()),
        values: vec!["x".to_owned(), "y".to_owned()],
        ..Columns::default()
    }
}

fn read(payload: &[u8]) -> Result<Batch, DecodeError> {
    decode_message(payload, &columns(), 3, 17, Some(Timestamp::from_micros(5)))
}

/// A column as a message brings it: everything nullable.
fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn encode(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// Five sound columns of three rows, of which some can be put in another way.
fn sound(other: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(1), None, Some(-3)]).with_timezone("UTC"),
            ),
        ),
        (
            "key",
            Arc::new(StringArray::from(vec![Some("EWR"), None, Some("")])),
        ),
        (
            "unit",
            Arc::new(Int64Array::from(vec![Some(7), Some(-8), None])),
        ),
        (
            "x",
            Arc::new(Float64Array::from(vec![Some(1.5), None, Some(f64::NAN)])),
        ),
        (
            "y",
            Arc::new(Int32Array::from(vec![Some(4), Some(-5), None])),
        ),
    ];
    for (name, array) in other {
        match columns.iter_mut().find(|(n, _)| *n == name) {
            Some(column) => column.1 = array,
            None => columns.push((name, array)),
        }
    }
    table(columns)
}

fn texts(
    batch: &Batch,
    text: Option<&bernstream_release::source::TextColumn>,
) -> Vec<Option<Vec<u8>>> {
    let text = text.unwrap();
    assert!(text.get(batch.times.len()).is_none());
    (0..batch.times.len())
        .map(|row| text.get(row).map(<[u8]>::to_vec))
        .collect()
}

fn keys(batch: &Batch) -> Vec<Option<Vec<u8>>> {
    texts(batch, batch.keys.as_ref().map(|keys| &keys.parts()[0]))
}

fn units(batch: &Batch) -> Vec<Option<Vec<u8>>> {
    texts(batch, batch.units.as_ref())
}

fn bytes(texts: [Option<&str>; 3]) -> Vec<Option<Vec<u8>>> {
    texts
        .iter()
        .map(|t| t.map(|t| t.as_bytes().to_vec()))
        .collect()
}

fn reason(result: Result<Batch, DecodeError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_sound_message_is_read_column_by_column() {
    let batch = read(&encode(&[sound(vec![])])).unwrap();
    assert_eq!(
        (batch.partition, batch.offset, batch.message_time),
        (3, 17, Some(Timestamp::from_micros(5)))
    );
    assert_eq!(batch.times, Int64Array::from(vec![Some(1), None, Some(-3)]));
    assert_eq!(keys(&batch), bytes([Some("EWR"), None, Some("")]));
    assert_eq!(units(&batch), bytes([Some("7"), Some("-8"), None]));
    assert_eq!(batch.values.len(), 2);
    assert_eq!(
        (batch.values[0].value(0), batch.values[0].is_null(1)),
        (1.5, true)
    );
    assert!(batch.values[0].value(2).is_nan());
    assert_eq!(
        batch.values[1],
        Float64Array::from(vec![Some(4.0), Some(-5.0), None])
    );
}

#[test]
fn only_what_the_configuration_names_is_read() {
    let named = Columns {
        time: "time".to_owned(),
        values: vec!["y".to_owned(), "y".to_owned()],
        ..Columns::default()
    };
    let batch = decode_message(&encode(&[sound(vec![])]), &named, 0, 0, None).unwrap();
    assert!(batch.keys.is_none() && batch.units.is_none());
    assert_eq!(
        batch.values[0], batch.values[1],
        "one column may serve two axes"
    );
    let shared = Columns {
        unit: Some("key".to_owned()),
        ..columns()
    };
    let batch = decode_message(&encode(&[sound(vec![])]), &shared, 0, 0, None).unwrap();
    assert_eq!(keys(&batch), units(&batch));
}

#[test]
fn columns_that_are_not_named_may_be_anything() {
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let field = Arc::new(Field::new("item", DataType::Int64, true));
    let list = ListArray::new(
        field.clone(),
        OffsetBuffer::from_lengths([1, 0, 2]),
        inner.clone(),
        None,
    );
    let fields = vec![field, Arc::new(Field::new("more", DataType::Boolean, true))];
    let nested = StructArray::new(
        fields.into(),
        vec![inner, Arc::new(BooleanArray::from(vec![true; 3]))],
        None,
    );
    let dictionary: DictionaryArray<Int8Type> = ["p", "q", "p"].into_iter().collect();
    let batch = sound(vec![
        ("list", Arc::new(list)),
        ("nested", Arc::new(nested)),
        (
            "views",
            Arc::new(StringViewArray::from(vec![
                "a",
                "b",
                "a view that is longer than twelve bytes",
            ])),
        ),
        ("dictionary", Arc::new(dictionary)),
    ]);
    // In front of the needed columns, so that reading has to step over them.
    let order = [5, 6, 7, 8, 0, 1, 2, 3, 4];
    let found = read(&encode(&[batch.project(&order).unwrap()])).unwrap();
    assert_eq!(
        format!("{found:?}"),
        format!("{:?}", read(&encode(&[sound(vec![])])).unwrap())
    );
}

/// Everything that a message was read as, or why it was not.
fn told(result: Result<Batch, DecodeError>) -> String {
    let all = |batch: Batch| {
        format!(
            "{batch:?} {:?} {:?} {:?} {:?}",
            batch.times,
            keys(&batch),
            units(&batch),
            batch.values
        )
    };
    result.map_or_else(|broken| broken.to_string(), all)
}

#[test]
fn what_a_message_is_read_as_does_not_depend_on_the_messages_before_it() {
    let dictionary: ArrayRef = Arc::new(
        ["p", "q", "p"]
            .into_iter()
            .collect::<DictionaryArray<Int8Type>>(),
    );
    let batches = [
        sound(vec![]),
        sound(vec![]).project(&[4, 3, 2, 1, 0]).unwrap(),
        sound(vec![(
            "x",
            Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0])),
        )]),
        sound(vec![(
            "y",
            Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])),
        )]),
        sound(vec![("key", dictionary)]),
        sound(vec![("other", Arc::new(Int8Array::from(vec![1, 2, 3])))]),
        sound(vec![]).slice(0, 0),
        sound(vec![]).project(&[0, 1, 3, 4]).unwrap(),
    ];
    let mut messages: Vec<Vec<u8>> = batches
        .iter()
        .map(|batch| encode(std::slice::from_ref(batch)))
        .collect();
    let whole = messages[0].clone();
    let schema = schema_length(&whole);
    messages.push(whole[..schema].to_vec());
    messages.push([&whole[..schema], &whole].concat());
    messages.push(whole[schema..].to_vec());
    messages.push(Vec::new());
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..200 {
        // A schema that differs in one byte, and the rest as it was; most of them are broken.
        let mut changed = whole.clone();
        changed[random.random_range(0..schema)] ^= 1 << random.random_range(0..8);
        messages.push(changed);
        messages.push(whole[..random.random_range(0..whole.len())].to_vec());
    }
    let mut decoder = ArrowDecoder::new(columns());
    let time = Some(Timestamp::from_micros(5));
    for _ in 0..3000 {
        // Often one of the first, so that a schema is found again.
        let last = if random.random() {
            batches.len()
        } else {
            messages.len()
        };
        let message = &messages[random.random_range(0..last)];
        assert_eq!(
            told(decoder.decode_message(message, 3, 17, time)),
            told(read(message))
        );
    }
}

#[test]
fn a_schema_is_read_once_unless_it_is_very_long() {
    let with = |others: usize| {
        let names: Vec<String> = (0..others)
            .map(|number| format!("other-{number}"))
            .collect();
        let column: ArrayRef = Arc::new(Int8Array::from(vec![0; 3]));
        encode(&[sound(
            names
                .iter()
                .map(|name| (name.as_str(), column.clone()))
                .collect(),
        )])
    };
    for (others, is_kept) in [(100, true), (1000, false)] {
        let message = with(others);
        let mut decoder = ArrowDecoder::new(columns());
        let [first, second, third] = [0, 1, 2].map(|offset| {
            let (read, peak) =
                memory::peak_of(|| decoder.decode_message(&message, 3, offset, None));
            read.unwrap();
            peak
        });
        assert_eq!(second, third);
        assert_eq!(
            second < first / 2,
            is_kept,
            "{others} other columns: {first} bytes, then {second}"
        );
    }
}

#[test]
fn times_of_every_unit_become_microseconds_rounded_down_and_null_where_they_overflow() {
    let cases: [(ArrayRef, [Option<i64>; 3]); 6] = [
        (
            Arc::new(TimestampSecondArray::from(vec![2, -2, i64::MAX])),
            [Some(2_000_000), Some(-2_000_000), None],
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![2, -2, i64::MIN])),
            [Some(2_000), Some(-2_000), None],
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![2, i64::MIN, i64::MAX])),
            [Some(2), Some(i64::MIN), Some(i64::MAX)],
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![1_999, -1, -1_000])),
            [Some(1), Some(-1), Some(-1)],
        ),
        (
            Arc::new(Date32Array::from(vec![1, -1, i32::MAX])),
            [Some(86_400_000_000), Some(-86_400_000_000), None],
        ),
        (
            Arc::new(Date64Array::from(vec![86_400_000, -86_400_000, i64::MAX])),
            [Some(86_400_000_000), Some(-86_400_000_000), None],
        ),
    ];
    for (array, expected) in cases {
        let kind = array.data_type().clone();
        let batch = read(&encode(&[sound(vec![("time", array)])])).unwrap();
        assert_eq!(batch.times, Int64Array::from(expected.to_vec()), "{kind}");
    }
    let zoned = TimestampMillisecondArray::from(vec![1, 2, 3]).with_timezone("America/New_York");
    let batch = read(&encode(&[sound(vec![("time", Arc::new(zoned))])])).unwrap();
    assert_eq!(batch.times, Int64Array::from(vec![1_000, 2_000, 3_000]));
}

/// As declared, and by the law of records that are no Arrow.
#[test]
fn integers_and_text_are_times_where_that_is_declared_and_only_as_it_is() {
    use TimeFormat::{Microseconds, Milliseconds, Nanoseconds, Rfc3339, Seconds};
    let read = |declared: Option<TimeFormat>, array: &ArrayRef| {
        let columns = Columns {
            time_format: declared,
            ..columns()
        };
        decode_message(
            &encode(&[sound(vec![("time", array.clone())])]),
            &columns,
            3,
            17,
            None,
        )
    };
    let integers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1_999), None, Some(i64::MIN)]));
    for (format, expected) in [
        (Seconds, [Some(1_999_000_000), None, None]),
        (Milliseconds, [Some(1_999_000), None, None]),
        (Microseconds, [Some(1_999), None, Some(i64::MIN)]),
        (
            Nanoseconds,
            [Some(1), None, Some(i64::MIN.div_euclid(1_000))],
        ),
    ] {
        assert_eq!(
            read(Some(format), &integers).unwrap().times,
            Int64Array::from(expected.to_vec()),
            "{format:?}"
        );
    }
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![7, u64::MAX, 0]));
    let expected = Int64Array::from(vec![Some(7), None, Some(0)]);
    assert_eq!(read(Some(Microseconds), &large).unwrap().times, expected);
    let small: ArrayRef = Arc::new(Int8Array::from(vec![7, -7, 0]));
    assert_eq!(
        read(Some(Microseconds), &small).unwrap().times,
        Int64Array::from(vec![7, -7, 0])
    );

    let text = [
        Some("1970-01-01T00:00:01.5Z"),
        Some("1970-01-01T01:00:00+01:00"),
        Some("1970-01-01T00:00:01"),
    ];
    let [long, dictionary, views, bytes]: [ArrayRef; 4] = [
        Arc::new(LargeStringArray::from(text.to_vec())),
        Arc::new(text.into_iter().collect::<DictionaryArray<Int32Type>>()),
        Arc::new(StringViewArray::from(text.to_vec())),
        Arc::new(BinaryArray::from(vec![
            text[0].map(str::as_bytes),
            text[1].map(str::as_bytes),
            Some(b"\xff"),
        ])),
    ];
    for array in [&long, &dictionary, &views, &bytes] {
        let expected = Int64Array::from(vec![Some(1_500_000), Some(0), None]);
        for declared in [None, Some(Rfc3339)] {
            assert_eq!(
                read(declared, array).unwrap().times,
                expected,
                "{}",
                array.data_type()
            );
        }
    }
    let digits: ArrayRef = Arc::new(StringArray::from(vec!["7", "07", "7.0"]));
    // As programs write integers of which one is missing.
    let expected = Int64Array::from(vec![Some(7_000_000), None, Some(7_000_000)]);
    assert_eq!(read(Some(Seconds), &digits).unwrap().times, expected);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(7.0), None, Some(7.5)]));
    let expected = Int64Array::from(vec![Some(7_000_000), None, None]);
    assert_eq!(read(Some(Seconds), &floats).unwrap().times, expected);

    // A type that says what it is needs no declaration, and takes none.
    let typed: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2, 3]));
    for declared in [None, Some(Rfc3339), Some(Nanoseconds)] {
        assert_eq!(
            read(declared, &typed).unwrap().times,
            Int64Array::from(vec![1_000_000, 2_000_000, 3_000_000])
        );
    }
    for (declared, array, why) in [
        (
            None,
            &integers,
            "or input.time_format must say how it is written",
        ),
        (Some(Rfc3339), &integers, "as input.time_format says, text"),
    ] {
        let batch = read(declared, array).unwrap();
        assert_eq!(batch.times.len(), 0, "without times no row is of use");
        let [why_not] = unread(&batch).try_into().unwrap();
        assert!(
            why_not.starts_with("column 'time' is ") && why_not.ends_with(why),
            "{why_not}"
        );
    }
}

/// Why columns count as null.
fn unread(batch: &Batch) -> Vec<String> {
    let found = batch.found.as_ref().expect("a message has columns");
    found
        .unread_columns()
        .map(|column| found.unread_reason(column).to_string())
        .collect()
}

#[test]
fn text_of_every_kind_becomes_the_same_bytes() {
    let text = [
        Some("ab"),
        None,
        Some("a text that is longer than twelve bytes"),
    ];
    let raw: Vec<Option<&[u8]>> = text.iter().map(|t| t.map(str::as_bytes)).collect();
    let dictionary: DictionaryArray<Int32Type> = text.into_iter().collect();
    let of_bytes = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(LargeBinaryArray::from(vec![raw[2], raw[0]])),
    );
    let null_value = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), Some(0), Some(2)]),
        Arc::new(StringArray::from(vec![None, text[0], text[2]])),
    );
    let kinds: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(text.to_vec())),
        Arc::new(LargeStringArray::from(text.to_vec())),
        Arc::new(StringViewArray::from(text.to_vec())),
        Arc::new(BinaryArray::from(raw.clone())),
        Arc::new(LargeBinaryArray::from(raw.clone())),
        Arc::new(raw.iter().copied().collect::<BinaryViewArray>()),
        Arc::new(dictionary),
        Arc::new(of_bytes),
        Arc::new(null_value),
    ];
    for array in kinds {
        let kind = array.data_type().clone();
        let batch = read(&encode(&[sound(vec![
            ("key", array.clone()),
            ("unit", array),
        ])]))
        .unwrap();
        assert_eq!(keys(&batch), bytes(text), "{kind}");
        assert_eq!(units(&batch), bytes(text), "{kind}");
    }
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some(*b"abc"), None, Some(*b"def")].into_iter(),
        3,
    )
    .unwrap();
    let batch = read(&encode(&[sound(vec![("unit", Arc::new(fixed))])])).unwrap();
    assert_eq!(units(&batch), bytes([Some("abc"), None, Some("def")]));
    let whole: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]));
    let batch = read(&encode(&[sound(vec![("unit", whole)])])).unwrap();
    assert_eq!(
        units(&batch),
        bytes([Some("18446744073709551615"), None, Some("0")])
    );
}

/// Numbers that are integers, in every form that a column can have.
fn numbers() -> Vec<(ArrayRef, [Option<&'static str>; 3])> {
    let decimals = |n: [i128; 3], scale| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(n.to_vec())
                .with_precision_and_scale(38, scale)
                .unwrap(),
        )
    };
    let halves = Float16Array::from_iter([Some(7.0), None, Some(2048.0)].map(|x| x.map(half)));
    let of_integers = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(Int64Array::from(vec![-8, 7])),
    );
    let of_floats = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), Some(1), Some(0)]),
        Arc::new(Float64Array::from(vec![0.5, 7.0])),
    );
    let wide = [7, -8, 5].map(i256::from_i128);
    let wide = Decimal256Array::from(wide.to_vec())
        .with_precision_and_scale(50, 0)
        .unwrap();
    let beyond = ((1_i64 << 53) + 2) as f64;
    vec![
        (
            Arc::new(Int8Array::from(vec![7, -8, 0])),
            [Some("7"), Some("-8"), Some("0")],
        ),
        (
            Arc::new(UInt64Array::from(vec![7, u64::MAX, 0])),
            [Some("7"), Some("18446744073709551615"), Some("0")],
        ),
        (
            Arc::new(Float64Array::from(vec![Some(7.0), None, Some(-8.0)])),
            [Some("7"), None, Some("-8")],
        ),
        (
            Arc::new(Float64Array::from(vec![7.5, f64::NAN, beyond])),
            [None; 3],
        ),
        (
            Arc::new(Float32Array::from(vec![7.0, 16_777_215.0, 16_777_216.0])),
            [Some("7"), Some("16777215"), None],
        ),
        (Arc::new(halves), [Some("7"), None, None]),
        (
            decimals([7, -8, i128::from(u64::MAX)], 0),
            [Some("7"), Some("-8"), Some("18446744073709551615")],
        ),
        (decimals([700, -800, 750], 2), [Some("7"), Some("-8"), None]),
        (
            decimals([7, 1 << 64, -(1 << 63)], 0),
            [Some("7"), None, Some("-9223372036854775808")],
        ),
        (Arc::new(wide), [Some("7"), Some("-8"), Some("5")]),
        (Arc::new(of_integers), [Some("7"), None, Some("-8")]),
        (Arc::new(of_floats), [Some("7"), Some("7"), None]),
    ]
}

/// Text in every form that a column can have.
fn texts_as_columns(text: [Option<&str>; 3]) -> Vec<ArrayRef> {
    let raw: Vec<Option<&[u8]>> = text.iter().map(|t| t.map(str::as_bytes)).collect();
    vec![
        Arc::new(StringArray::from(text.to_vec())),
        Arc::new(LargeStringArray::from(text.to_vec())),
        Arc::new(StringViewArray::from(text.to_vec())),
        Arc::new(BinaryArray::from(raw.clone())),
        Arc::new(LargeBinaryArray::from(raw.clone())),
        Arc::new(raw.iter().copied().collect::<BinaryViewArray>()),
        Arc::new(text.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ]
}

/// One user is one, whatever the type of the column: `07` is no other form of 7.
#[test]
fn a_declared_type_of_keys_and_users_holds_for_every_type_of_column() {
    let read = |declared: Option<IdType>, array: &ArrayRef| {
        let named = Columns {
            key_types: [declared, None, None],
            unit_type: declared,
            ..columns()
        };
        let message = encode(&[sound(vec![("key", array.clone()), ("unit", array.clone())])]);
        let batch = decode_message(&message, &named, 3, 17, None).unwrap();
        assert_eq!(keys(&batch), units(&batch));
        assert_eq!(
            batch.times,
            Int64Array::from(vec![Some(1), None, Some(-3)]),
            "nothing else is touched"
        );
        units(&batch)
    };
    for (array, integers) in numbers() {
        let kind = array.data_type();
        for declared in [None, Some(IdType::Integer)] {
            assert_eq!(
                read(declared, &array),
                bytes(integers),
                "{declared:?}, {kind}"
            );
        }
        assert_eq!(read(Some(IdType::Text), &array), bytes([None; 3]), "{kind}");
    }
    for (text, integers) in [
        ([Some("7"), None, Some("07")], [Some("7"), None, None]),
        (
            [Some("7.0"), Some("-8.00"), Some("7.5")],
            [Some("7"), Some("-8"), None],
        ),
        (
            [Some("x"), Some(" 7"), Some("18446744073709551615")],
            [None, None, Some("18446744073709551615")],
        ),
    ] {
        for array in texts_as_columns(text) {
            let kind = array.data_type();
            assert_eq!(
                read(Some(IdType::Integer), &array),
                bytes(integers),
                "{kind}"
            );
            for declared in [None, Some(IdType::Text)] {
                assert_eq!(read(declared, &array), bytes(text), "{declared:?}, {kind}");
            }
        }
    }
    let others: [ArrayRef; 3] = [
        Arc::new(BooleanArray::from(vec![true; 3])),
        Arc::new(Date32Array::from(vec![7; 3])),
        Arc::new(TimestampSecondArray::from(vec![7; 3])),
    ];
    for (array, declared) in others
        .iter()
        .flat_map(|array| [None, Some(IdType::Integer)].map(|kind| (array, kind)))
    {
        assert_eq!(
            read(declared, array),
            bytes([None; 3]),
            "{declared:?}, {}",
            array.data_type()
        );
    }
}

/// A text counts for a value if it holds a number, as in JSON: one row of a table that is no number must not take the others along.
#[test]
fn text_is_a_number_where_it_holds_one() {
    for array in texts_as_columns([Some("1.50"), Some("n/a"), Some("-2e3")]) {
        let kind = array.data_type().clone();
        let batch = read(&encode(&[sound(vec![("x", array)])])).unwrap();
        assert_eq!(
            batch.values[0],
            Float64Array::from(vec![Some(1.5), None, Some(-2000.0)]),
            "{kind}"
        );
    }
    let categories = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(Float64Array::from(vec![0.5, 7.0])),
    );
    let batch = read(&encode(&[sound(vec![(
        "x",
        Arc::new(categories) as ArrayRef,
    )])]))
    .unwrap();
    assert_eq!(
        batch.values[0],
        Float64Array::from(vec![Some(7.0), None, Some(0.5)])
    );
}

#[test]
fn values_of_every_number_type_become_doubles() {
    let halves = Float16Array::from_iter([Some(0.5), None, Some(-2.0)].map(|x| x.map(half)));
    let decimals = Decimal128Array::from(vec![Some(50), None, Some(-200)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let kinds: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-2.0)])),
        Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-2.0)])),
        Arc::new(halves),
        Arc::new(decimals),
    ];
    for array in kinds {
        let kind = array.data_type().clone();
        let batch = read(&encode(&[sound(vec![("x", array)])])).unwrap();
        assert_eq!(
            batch.values[0],
            Float64Array::from(vec![Some(0.5), None, Some(-2.0)]),
            "{kind}"
        );
    }
    let wide = [Some(5), None, Some(-20)]
        .map(|n| n.map(|n| i256::from_i128(n) * i256::from_i128(10).wrapping_pow(40)));
    let wide = Decimal256Array::from(wide.to_vec())
        .with_precision_and_scale(50, 41)
        .unwrap();
    let batch = read(&encode(&[sound(vec![("x", Arc::new(wide) as ArrayRef)])])).unwrap();
    assert_eq!(
        batch.values[0],
        Float64Array::from(vec![Some(0.5), None, Some(-2.0)])
    );
    // Divided by its power of ten it would be the next double, 96838539921.57495.
    let halfway = Decimal128Array::from(vec![Some(96_838_539_921_574_939); 3])
        .with_precision_and_scale(19, 6)
        .unwrap();
    let batch = read(&encode(&[sound(vec![(
        "x",
        Arc::new(halfway) as ArrayRef,
    )])]))
    .unwrap();
    assert_eq!(batch.values[0].value(0), 96_838_539_921.574_94);
    let small: ArrayRef = Arc::new(Int8Array::from(vec![Some(-128), None, Some(127)]));
    let batch = read(&encode(&[sound(vec![("x", small)])])).unwrap();
    assert_eq!(
        batch.values[0],
        Float64Array::from(vec![Some(-128.0), None, Some(127.0)])
    );
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let batch = read(&encode(&[sound(vec![("x", flags)])])).unwrap();
    assert_eq!(
        batch.values[0],
        Float64Array::from(vec![Some(1.0), None, Some(0.0)])
    );
}

fn half(x: f32) -> <Float16Type as ArrowPrimitiveType>::Native {
    <Float16Type as ArrowPrimitiveType>::Native::from_f32(x)
}

#[test]
fn a_row_that_is_not_utf8_does_not_take_its_message_along() {
    let offsets = OffsetBuffer::from_lengths([2, 1, 2]);
    let broken = Buffer::from(&[b'o', b'k', 0xff, b'o', b'k']);
    // SAFETY is not kept on purpose: this is what a careless or hostile producer sends.
    #[allow(unsafe_code)]
    let key = unsafe { StringArray::new_unchecked(offsets, broken, None) };
    let batch = read(&encode(&[sound(vec![("key", Arc::new(key))])])).unwrap();
    assert_eq!(
        keys(&batch),
        vec![Some(b"ok".to_vec()), Some(vec![0xff]), Some(b"ok".to_vec())]
    );
}

#[test]
fn nulls_where_the_schema_says_there_are_none_stay_nulls() {
    let message = encode(&[sound(vec![])]);
    let strict: Vec<_> = sound(vec![])
        .schema()
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_nullable(false))
        .collect();
    let mut lying = StreamWriter::try_new(Vec::new(), &Schema::new(strict)).unwrap();
    lying.flush().unwrap();
    let mut lying = lying.get_ref().clone();
    lying.extend_from_slice(&message[schema_length(&message)..]);
    assert_eq!(
        format!("{:?}", read(&lying)),
        format!("{:?}", read(&message))
    );
}

/// The length of the first message of a stream, which is its schema.
fn schema_length(stream: &[u8]) -> usize {
    8 + usize::try_from(i32::from_le_bytes(stream[4..8].try_into().unwrap())).unwrap()
}

#[test]
fn a_message_may_hold_no_batch_no_rows_or_many_batches() {
    let three = sound(vec![]);
    let none = sound(vec![]).slice(0, 0);
    let whole = encode(std::slice::from_ref(&three));
    let empty = read(&whole[..schema_length(&whole)]).unwrap();
    assert_eq!(
        (empty.times.len(), empty.values.len(), keys(&empty).len()),
        (0, 2, 0)
    );
    assert_eq!(
        read(&encode(std::slice::from_ref(&none)))
            .unwrap()
            .times
            .len(),
        0
    );
    let joined = read(&encode(&[three.slice(0, 1), none, three.slice(1, 2)])).unwrap();
    assert_eq!(
        format!("{joined:?}"),
        format!("{:?}", read(&encode(&[three])).unwrap())
    );
}

#[test]
fn a_dictionary_may_change_between_batches_but_not_grow_by_pieces() {
    let keys = |texts: [&str; 3]| -> ArrayRef {
        Arc::new(texts.into_iter().collect::<DictionaryArray<Int8Type>>())
    };
    let batches = [
        sound(vec![("key", keys(["a", "b", "a"]))]),
        sound(vec![("key", keys(["c", "a", "d"]))]),
    ];
    let joined = read(&encode(&batches)).unwrap();
    let found: Vec<_> = self::keys(&joined)
        .into_iter()
        .map(|t| t.unwrap()[0])
        .collect();
    assert_eq!(found, b"abacad");

    let delta = [
        sound(vec![("key", keys(["a", "b", "a"]))]),
        sound(vec![("key", keys(["a", "b", "c"]))]),
    ];
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &delta[0].schema(), options).unwrap();
    delta.iter().for_each(|batch| writer.write(batch).unwrap());
    assert_eq!(
        reason(read(&writer.into_inner().unwrap())),
        "it has a delta dictionary; send each dictionary in one piece"
    );
}

#[test]
fn a_message_without_the_end_of_stream_mark_is_whole() {
    let message = encode(&[sound(vec![])]);
    assert_eq!(
        message[message.len() - 8..],
        [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]
    );
    assert_eq!(
        format!("{:?}", read(&message[..message.len() - 8])),
        format!("{:?}", read(&message))
    );
}

#[test]
fn truncated_empty_and_foreign_messages_are_broken() {
    let message = encode(&[sound(vec![])]);
    let schema = schema_length(&message);
    let body = message.len() - 8;
    for length in (0..message.len()).filter(|length| ![schema, body].contains(length)) {
        assert!(
            read(&message[..length]).is_err(),
            "{length} of {} bytes",
            message.len()
        );
    }
    assert_eq!(reason(read(b"")), "it has no Arrow schema");
    assert_eq!(
        reason(read(b"{\"time\": 1}")),
        "it is not an Arrow IPC stream (no continuation marker)"
    );
    assert_eq!(
        reason(read(&message[..body - 1])),
        "it ends within the body of an Arrow message"
    );
    assert_eq!(
        reason(read(&message[..20])),
        "it ends within the metadata of an Arrow message"
    );
    let twice = [message.as_slice(), &message].concat();
    assert_eq!(
        reason(read(&twice)),
        "there are bytes after the end of the Arrow stream"
    );
    let twice = [&message[..body], &message].concat();
    assert_eq!(reason(read(&twice)), "it has two Arrow schemas");
    assert_eq!(reason(read(&message[schema..])), "it has no Arrow schema");
    let negative = [&[0xff; 4], (-5_i32).to_le_bytes().as_slice()].concat();
    assert_eq!(
        reason(read(&negative)),
        "an Arrow message has -5 bytes of metadata"
    );
}

/// One record can decide the type of a column, and whether there is one: the others must not be lost with it.
#[test]
fn a_column_that_is_missing_or_of_an_unsuitable_type_is_a_column_of_nulls() {
    let integers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 3]));
    let nulls: ArrayRef = Arc::new(NullArray::new(3));
    let inner = Arc::new(Field::new("item", DataType::Float64, true));
    let nested: ArrayRef = Arc::new(ListArray::new(
        inner,
        OffsetBuffer::from_lengths([1, 1, 1]),
        floats.clone(),
        None,
    ));
    let none = bytes([None; 3]);
    let plain = read(&encode(&[sound(vec![])])).unwrap();
    let others = |batch: &Batch| (batch.times.clone(), batch.values[1].clone());
    for (array, fault) in [
        (
            &flags,
            Some("column 'unit' is Boolean, but a user must be integers, text or bytes"),
        ),
        (&nested, Some("but a user must be integers, text or bytes")),
        (&nulls, None),
    ] {
        let batch = read(&encode(&[sound(vec![("unit", array.clone())])])).unwrap();
        assert_eq!((units(&batch), keys(&batch)), (none.clone(), keys(&plain)));
        assert_eq!(others(&batch), others(&plain));
        let told = unread(&batch);
        assert_eq!(told.len(), usize::from(fault.is_some()), "{told:?}");
        assert!(
            told.iter()
                .zip(fault)
                .all(|(told, fault)| told.ends_with(fault)),
            "{told:?}"
        );
    }
    for array in [&nested, &nulls] {
        let batch = read(&encode(&[sound(vec![("x", array.clone())])])).unwrap();
        assert_eq!(
            (batch.values[0].null_count(), units(&batch)),
            (3, units(&plain))
        );
        assert_eq!(others(&batch), others(&plain));
    }
    // Without a time no row is of use, and none is made up.
    for array in [&integers, &flags, &nested, &nulls] {
        let batch = read(&encode(&[sound(vec![("time", array.clone())])])).unwrap();
        assert_eq!(
            (batch.times.len(), keys(&batch).len(), batch.values[0].len()),
            (0, 0, 0)
        );
    }
    let without = |at: &[usize]| read(&encode(&[sound(vec![]).project(at).unwrap()])).unwrap();
    let batch = without(&[0, 1, 3, 4]);
    assert_eq!((units(&batch), others(&batch)), (none, others(&plain)));
    assert_eq!(
        unread(&batch),
        ["it has no column 'unit', only time, key, x, y"]
    );
    assert_eq!(without(&[1, 2, 3, 4]).times.len(), 0);
    let twice = sound(vec![]).project(&[0, 1, 2, 3, 4, 3]).unwrap();
    assert_eq!(reason(read(&encode(&[twice]))), "it has two columns 'x'");
}

/// A message of a few bytes may say that it has any number of rows, where no column bounds it.
#[test]
fn rows_that_only_the_message_counts_take_no_memory() {
    let many = 1 << 40;
    for message in [
        encode(&[table(vec![(
            "time",
            Arc::new(NullArray::new(1 << 20)) as ArrayRef,
        )])]),
        {
            let schema = Arc::new(Schema::new(vec![Field::new("other", DataType::Null, true)]));
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(many));
            let columns = vec![Arc::new(NullArray::new(many)) as ArrayRef];
            encode(&[RecordBatch::try_new_with_options(schema, columns, &options).unwrap()])
        },
    ] {
        let (batch, peak) = memory::peak_of(|| read(&message));
        assert_eq!(batch.unwrap().times.len(), 0);
        assert!(
            peak < 1 << 20,
            "{peak} bytes for a message of {}",
            message.len()
        );
    }
}

/// A message that Arrow compressed, with `length` as the uncompressed length of every buffer.
fn hostile_compressed(codec: &str, length: i64) -> Vec<u8> {
    let mut message = std::fs::read(format!("tests/data/compressed.{codec}.arrows")).unwrap();
    let start = schema_length(&message);
    let body = start + schema_length(&message[start..]);
    let header = arrow_ipc::root_as_message(&message[start + 8..body]).unwrap();
    let buffers = header.header_as_record_batch().unwrap().buffers().unwrap();
    let offsets: Vec<_> = buffers
        .iter()
        .filter(|b| b.length() > 0)
        .map(|b| usize::try_from(b.offset()).unwrap())
        .collect();
    for offset in offsets {
        message[body + offset..][..8].copy_from_slice(&length.to_le_bytes());
    }
    message
}

#[test]
fn compressed_buffers_are_refused_before_their_length_is_believed() {
    for length in [i64::MAX, 1 << 62, 1 << 40, -1, 0, 100] {
        for codec in ["lz4", "zstd"] {
            let found = reason(read(&hostile_compressed(codec, length)));
            assert!(
                found.starts_with("its Arrow buffers are compressed; send them uncompressed"),
                "{found}"
            );
        }
    }
}

/// A record batch of rows that all have the one key, and the rest of which is as small as it can be.
fn of_one_key(key: ArrayRef) -> RecordBatch {
    let rows = key.len();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(TimestampSecondArray::from(vec![0; rows]))),
        ("key", key),
        ("unit", Arc::new(Int8Array::from(vec![0; rows]))),
        ("x", Arc::new(Int8Array::from(vec![0; rows]))),
        ("y", Arc::new(Int8Array::from(vec![0; rows]))),
    ];
    table(columns)
}

/// A dictionary of a long text: a byte a row.
fn long_dictionary(length: usize, rows: usize) -> ArrayRef {
    let long = "x".repeat(length);
    let keys = Int8Array::from(vec![0; rows]);
    let values = Arc::new(StringArray::from(vec![long.as_str()]));
    Arc::new(DictionaryArray::<Int8Type>::new(keys, values))
}

/// Views of a long text: 16 bytes a row.
fn long_views(length: usize, rows: usize) -> ArrayRef {
    let mut key = BinaryViewBuilder::new();
    let block = key.append_block(Buffer::from(vec![b'x'; length]));
    for _ in 0..rows {
        key.try_append_view(block, 0, u32::try_from(length).unwrap())
            .unwrap();
    }
    Arc::new(key.finish())
}

#[test]
fn a_message_takes_memory_in_proportion_to_its_bytes_whatever_it_unfolds_to() {
    let batches = |number, of: ArrayRef| encode(&vec![of_one_key(of); number]);
    let cases = [
        ("24 batches", batches(24, long_dictionary(1 << 16, 1000))),
        (
            "a dictionary",
            batches(1, long_dictionary(100_000, 100_000)),
        ),
        ("views", batches(1, long_views(1_000_000, 10_000))),
        (
            "24 batches of views",
            batches(24, long_views(1 << 16, 1000)),
        ),
    ];
    for (name, message) in cases {
        let (batch, peak) = memory::peak_of(|| read(&message));
        let batch = batch.unwrap_or_else(|broken| panic!("{name}: {broken}"));
        let last = batch
            .keys
            .as_ref()
            .unwrap()
            .get(batch.times.len() - 1)
            .unwrap();
        assert!(
            last.len() >= 1 << 16 && last.iter().all(|byte| *byte == b'x'),
            "{name}"
        );
        assert!(
            peak < 20 * message.len(),
            "{name}: {peak} bytes for a message of {}",
            message.len()
        );
    }
}

#[test]
fn rows_with_long_keys_do_not_take_the_rows_of_others_along() {
    let others: ArrayRef = Arc::new(
        vec!["EWR"; 500]
            .into_iter()
            .collect::<DictionaryArray<Int8Type>>(),
    );
    for long in 1020..1030 {
        let batch = read(&encode(&[
            of_one_key(others.clone()),
            of_one_key(long_dictionary(1 << 16, long)),
        ]));
        let batch = batch.unwrap_or_else(|broken| panic!("with {long} long keys: {broken}"));
        assert_eq!(batch.times.len(), 500 + long);
        assert_eq!(
            (0..500)
                .filter(|row| batch.keys.as_ref().unwrap().parts()[0].get(*row) == Some(b"EWR"))
                .count(),
            500
        );
    }
}

/// Messages of different make-up, all sound.
fn bases() -> Vec<Vec<u8>> {
    let dictionary: ArrayRef = Arc::new(
        ["p", "q", "p"]
            .into_iter()
            .collect::<DictionaryArray<Int8Type>>(),
    );
    let views: ArrayRef = Arc::new(StringViewArray::from(vec![
        "a",
        "b",
        "a view that is longer than twelve bytes",
    ]));
    let plain = sound(vec![
        ("key", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ("x", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]))),
    ]);
    let more = sound(vec![
        ("other", dictionary.clone()),
        ("views", views.clone()),
    ]);
    vec![
        encode(&[plain]),
        encode(&[sound(vec![])]),
        encode(&[sound(vec![("key", dictionary)])]),
        encode(&[sound(vec![("key", views)])]),
        encode(&[more.clone(), more]),
        hostile_compressed("zstd", 1 << 40),
    ]
}

#[test]
fn no_corruption_gets_past_the_door() {
    let mut random = ChaCha8Rng::seed_from_u64(20_261_121);
    let bases = bases();
    let good = format!("{:?}", read(&bases[1]).unwrap());
    let mut read_through = 0;
    let mut refused = 0;
    for round in 0..200_000 {
        let mut message = bases[round % bases.len()].clone();
        for _ in 0..random.random_range(1..=3) {
            let at = random.random_range(0..message.len());
            message[at] = random.random();
        }
        match read(&message) {
            Ok(batch) => {
                // What was read can be walked through.
                let rows = batch.times.len();
                assert!(batch.values.iter().all(|values| values.len() == rows));
                assert_eq!((keys(&batch).len(), units(&batch).len()), (rows, rows));
                read_through += 1;
            }
            Err(_) => refused += 1,
        }
        if round % 100 == 0 {
            assert_eq!(
                format!("{:?}", read(&bases[1]).unwrap()),
                good,
                "after round {round}"
            );
        }
    }
    assert!(
        read_through > 20_000 && refused > 20_000,
        "{read_through} read, {refused} refused"
    );
}
