//! Programs take the type of a column, and whether there is one, from the records that are in it: one record more must not change
//! what becomes of the others.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_array::{BooleanArray, LargeStringArray, StringViewArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};
use bernstream_kafka::source::record::{IdType, TimeFormat};
use bernstream_release::source::decode::decode_message;
use bernstream_release::source::{Batch, Columns};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One value of a record, before a program made a column of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Null,
    /// Below 2^53: what a producer has rounded before, nobody can mend.
    Integer(i64),
    Float(f64),
    /// As something that is no number stands in a file of text.
    Text(&'static str),
}

const COLUMNS: [&str; 4] = ["time", "user", "x", "y"];

/// One cell a column.
type Record = [Cell; 4];

fn columns(unit_type: Option<IdType>) -> Columns {
    let [time, user, x, y] = COLUMNS.map(str::to_owned);
    let time_format = Some(TimeFormat::Seconds);
    let unit = Some(user);
    Columns {
        time,
        time_format,
        unit,
        unit_type,
        values: vec![x, y],
        ..Columns::default()
    }
}

/// How programs make a column of Python objects, or of the fields of a file.
#[derive(Clone, Copy, Debug)]
enum Program {
    /// Integers stay integers beside a null.
    Pyarrow,
    /// Integers become floats beside a null.
    Pandas,
    /// Text is in views.
    Polars,
    /// Fields are numbers where all of them are, otherwise all are text.
    CsvOfPandas,
}

impl Program {
    const ALL: [Program; 4] = [
        Program::Pyarrow,
        Program::Pandas,
        Program::Polars,
        Program::CsvOfPandas,
    ];

    /// `None` where the program raises an error instead.
    fn column(self, cells: &[Cell]) -> Option<ArrayRef> {
        let has = |kind: fn(&Cell) -> bool| cells.iter().any(kind);
        let has_null = has(|cell| *cell == Cell::Null);
        let has_float = has(|cell| matches!(cell, Cell::Float(_)));
        let has_text = has(|cell| matches!(cell, Cell::Text(_)));
        let has_integer = has(|cell| matches!(cell, Cell::Integer(_)));
        let float = |cell: &Cell| match *cell {
            Cell::Integer(integer) => Some(integer as f64),
            Cell::Float(float) => Some(float),
            Cell::Null | Cell::Text(_) => None,
        };
        let text = |cell: &Cell| match *cell {
            Cell::Null => None,
            Cell::Integer(integer) => Some(integer.to_string()),
            Cell::Float(float) => Some(format!("{float:?}")),
            Cell::Text(text) => Some(text.to_owned()),
        };
        if has_text {
            let texts: Vec<Option<String>> = cells.iter().map(text).collect();
            return match self {
                Program::CsvOfPandas => Some(Arc::new(LargeStringArray::from(texts))),
                _ if has_integer || has_float => None,
                Program::Polars => Some(Arc::new(
                    texts
                        .iter()
                        .map(Option::as_deref)
                        .collect::<StringViewArray>(),
                )),
                Program::Pyarrow | Program::Pandas => Some(Arc::new(StringArray::from(texts))),
            };
        }
        let has_only_nulls = !has_float && !has_integer;
        Some(match self {
            // To pandas a field without text is not a number.
            _ if has_only_nulls && !matches!(self, Program::CsvOfPandas) => {
                Arc::new(NullArray::new(cells.len()))
            }
            Program::Pandas | Program::CsvOfPandas if has_null || has_float => {
                Arc::new(cells.iter().map(float).collect::<Float64Array>())
            }
            _ if has_float => Arc::new(cells.iter().map(float).collect::<Float64Array>()),
            _ => {
                let integer = |cell: &Cell| {
                    if let Cell::Integer(integer) = cell {
                        Some(*integer)
                    } else {
                        None
                    }
                };
                Arc::new(cells.iter().map(integer).collect::<Int64Array>())
            }
        })
    }

    /// A message of these records; with `leaves_out` it has no column of which no record has anything.
    fn message(self, records: &[Record], leaves_out: bool) -> Option<Vec<u8>> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (at, name) in COLUMNS.iter().enumerate() {
            let cells: Vec<Cell> = records.iter().map(|record| record[at]).collect();
            if leaves_out && cells.iter().all(|cell| *cell == Cell::Null) {
                continue;
            }
            let array = self.column(&cells)?;
            fields.push(Field::new(*name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(records.len()));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
            .expect("columns of one length");
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).expect("a writer");
        writer.write(&batch).expect("it is written");
        Some(writer.into_inner().expect("it ends"))
    }
}

/// What becomes of a record.
#[derive(Debug, PartialEq)]
struct Kept {
    time: i64,
    user: Option<Vec<u8>>,
    values: Vec<Option<f64>>,
}

/// What becomes of each record; `None` for those without a time, which are dropped.
fn kept(batch: &Batch, records: usize) -> Vec<Option<Kept>> {
    let kept = |row: usize| {
        let time = (row < batch.times.len() && batch.times.is_valid(row))
            .then(|| batch.times.value(row))?;
        let user = batch
            .units
            .as_ref()
            .expect("users")
            .get(row)
            .map(<[u8]>::to_vec);
        let values = batch
            .values
            .iter()
            .map(|values| values.is_valid(row).then(|| values.value(row)));
        Some(Kept {
            time,
            user,
            values: values.collect(),
        })
    };
    (0..records).map(kept).collect()
}

fn read(message: &[u8], columns: &Columns, records: usize) -> Vec<Option<Kept>> {
    let batch = decode_message(message, columns, 0, 0, None)
        .unwrap_or_else(|broken| panic!("reading stops: {broken}"));
    kept(&batch, records)
}

fn record() -> impl Strategy<Value = Record> {
    let most = (1_i64 << 53) - 1;
    let of = |cells: Vec<Cell>| select(cells);
    let time = of(vec![
        Cell::Integer(1),
        Cell::Integer(60),
        Cell::Integer(60),
        Cell::Null,
        Cell::Text("soon"),
    ]);
    let user = of(vec![
        Cell::Integer(7),
        Cell::Integer(-8),
        Cell::Integer(most),
        Cell::Null,
        Cell::Null,
        Cell::Text("x9"),
    ]);
    let value = || {
        of(vec![
            Cell::Integer(5),
            Cell::Integer(-most),
            Cell::Float(2.5),
            Cell::Float(1e3),
            Cell::Null,
            Cell::Text("n/a"),
        ])
    };
    (time, user, value(), value()).prop_map(|(time, user, x, y)| [time, user, x, y])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_record_decides_what_becomes_of_others_by_the_type_of_a_column(
        others in prop::collection::vec(record(), 1..6),
        one in record(),
        place in any::<Index>(),
        leaves_out in any::<bool>(),
        unit_type in select(vec![None, Some(IdType::Integer)]),
    ) {
        let place = place.index(others.len() + 1);
        let mut with = others.clone();
        with.insert(place, one);
        for program in Program::ALL {
            let messages = (program.message(&with, leaves_out), program.message(&others, leaves_out));
            let (Some(with_it), Some(without)) = messages else { continue };
            let columns = columns(unit_type);
            let mut rows = read(&with_it, &columns, with.len());
            rows.remove(place);
            prop_assert_eq!(rows, read(&without, &columns, others.len()), "{:?}", program);
        }
    }
}

/// A reader of CSV makes times and booleans of a column, unless one of its fields is neither: then all are text.
#[test]
fn one_field_that_is_no_time_or_boolean_takes_no_other_record_along() {
    let columns = Columns {
        time_format: None,
        unit: None,
        values: vec!["x".to_owned()],
        ..columns(None)
    };
    let read = |time: ArrayRef, x: ArrayRef| {
        let fields = [("time", &time), ("x", &x)]
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).expect("a writer");
        writer
            .write(&RecordBatch::try_new(schema, vec![time, x]).expect("columns of one length"))
            .expect("it is written");
        let bytes = writer.into_inner().expect("it ends");
        let batch = decode_message(&bytes, &columns, 0, 0, None)
            .unwrap_or_else(|broken| panic!("reading stops: {broken}"));
        let row = |row: usize| {
            let time = batch.times.is_valid(row).then(|| batch.times.value(row));
            (
                time,
                batch.values[0]
                    .is_valid(row)
                    .then(|| batch.values[0].value(row)),
            )
        };
        (row(0), row(1))
    };
    let times =
        TimestampMicrosecondArray::from(vec![Some(60_000_000), Some(1)]).with_timezone("+00:00");
    let inferred = read(
        Arc::new(times),
        Arc::new(BooleanArray::from(vec![true, false])),
    );
    assert_eq!(inferred.0, (Some(60_000_000), Some(1.0)));
    for booleans in [["True", "n/a"], ["true", "x"]] {
        let times = StringArray::from(vec!["1970-01-01T00:01:00Z", "soon"]);
        let text = read(
            Arc::new(times),
            Arc::new(StringArray::from(booleans.to_vec())),
        );
        assert_eq!(text.0, inferred.0);
        assert_eq!(text.1.1, None);
    }
}

/// The examples from outside: each changed its neighbours, or stopped reading.
#[test]
fn a_column_of_nulls_and_a_column_of_floats_are_what_their_records_are() {
    let kept = |user: Cell, x: Cell| Kept {
        time: 60_000_000,
        user: if let Cell::Integer(user) = user {
            Some(user.to_string().into_bytes())
        } else {
            None
        },
        values: vec![
            if let Cell::Integer(x) = x {
                Some(x as f64)
            } else {
                None
            },
            None,
        ],
    };
    let record = |user: Cell, x: Cell| [Cell::Integer(60), user, x, Cell::Null];
    let cells = [
        (Cell::Integer(7), Cell::Null),
        (Cell::Integer(7), Cell::Integer(5)),
        (Cell::Null, Cell::Integer(5)),
        (Cell::Null, Cell::Null),
    ];
    for program in Program::ALL {
        for some in (1..=4).flat_map(|length| cells.windows(length)) {
            let records: Vec<Record> = some.iter().map(|(user, x)| record(*user, *x)).collect();
            let expected: Vec<Option<Kept>> =
                some.iter().map(|(user, x)| Some(kept(*user, *x))).collect();
            for leaves_out in [false, true] {
                let message = program
                    .message(&records, leaves_out)
                    .expect("no text is in it");
                assert_eq!(
                    read(&message, &columns(None), records.len()),
                    expected,
                    "{program:?}: {some:?}"
                );
            }
        }
    }
}
