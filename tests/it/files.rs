//! Files as a source.

use std::fs::{File, read, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, NullArray,
    RecordBatch, StringArray, TimestampSecondArray,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use bernstream_kafka::source::files::{FileSource, FileSourceParams};
use bernstream_kafka::source::record::{DeclaredTypes, IdType, TimeFormat};
use bernstream_kafka::source::{RecordSource, SourceError, SourceEvent};
use bernstream_release::source::{Batch, Columns};
use bernstream_synopsis::RecordedPositions;
use bernstream_synopsis::clock::Timestamp;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel};
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

use crate::harness::files::{Files as Pipelines, command, ended};

fn columns() -> Columns {
    Columns {
        time: "time".to_owned(),
        key: vec!["key".to_owned()],
        values: vec!["x".to_owned()],
        ..Columns::default()
    }
}

fn table(key: ArrayRef, values: [f64; 2]) -> RecordBatch {
    let time: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2]));
    let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    RecordBatch::try_from_iter([
        ("time", time),
        ("unread", key.clone()),
        ("key", key),
        ("x", values),
    ])
    .unwrap()
}

fn text(keys: [&str; 2]) -> ArrayRef {
    Arc::new(StringArray::from(keys.to_vec()))
}

fn write_parquet(path: &Path, batch: &RecordBatch) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batches: &[RecordBatch]) {
    let mut writer =
        FileWriter::try_new(File::create(path).unwrap(), &batches[0].schema()).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

fn write_stream(path: &Path, batch: &RecordBatch) {
    let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// What is wrong with a folder, told when it is opened or when it is read.
fn reason(path: &Path) -> String {
    failure(path).to_string()
}

fn failure(path: &Path) -> SourceError {
    match FileSource::open(
        &FileSourceParams {
            path: path.to_owned(),
            declared: DeclaredTypes::default(),
        },
        columns(),
    ) {
        Ok(mut files) => read_all(&mut files).unwrap_err(),
        Err(error) => error,
    }
}

fn opened(path: &Path) -> FileSource {
    FileSource::open(
        &FileSourceParams {
            path: path.to_owned(),
            declared: DeclaredTypes::default(),
        },
        columns(),
    )
    .unwrap()
}

fn read_all(source: &mut FileSource) -> Result<Vec<Batch>, SourceError> {
    let ends = source.end_offsets(Timestamp::from_micros(0))?.unwrap();
    source.rewind(Timestamp::from_micros(0), &RecordedPositions::default())?;
    let mut batches = vec![];
    while !source.has_reached(&ends)? {
        match source.next_event(Some(&ends), Duration::ZERO)? {
            SourceEvent::Batch(batch) => batches.push(batch),
            SourceEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    Ok(batches)
}

#[test]
fn files_of_every_kind_are_read_in_the_order_of_their_names() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let dictionary: ArrayRef = Arc::new(
        ["g", "h"]
            .into_iter()
            .collect::<DictionaryArray<Int8Type>>(),
    );
    write_stream(&path("c.arrows"), &table(text(["e", "f"]), [4.0, 5.0]));
    write_parquet(&path("a.parquet"), &table(text(["a", "b"]), [0.0, 1.0]));
    write_arrow(
        &path("b.arrow"),
        &[
            table(text(["c", "d"]), [2.0, 3.0]),
            table(text(["c", "d"]), [2.5, 3.5]),
        ],
    );
    write_arrow(&path("d.feather"), &[table(dictionary.clone(), [6.0, 7.0])]);
    write_parquet(&path("e.parquet"), &table(dictionary, [8.0, 9.0]));
    write(path("notes.txt"), "not read").unwrap();

    let mut source = opened(folder.path());
    for _ in 0..2 {
        let batches = read_all(&mut source).unwrap();
        let places: Vec<_> = batches
            .iter()
            .map(|b| (b.partition, b.offset, b.message_time))
            .collect();
        assert_eq!(
            places,
            [
                (0, 0, None),
                (1, 0, None),
                (1, 1, None),
                (2, 0, None),
                (3, 0, None),
                (4, 0, None)
            ]
        );
        let values: Vec<f64> = batches
            .iter()
            .flat_map(|b| b.values[0].values().to_vec())
            .collect();
        assert_eq!(
            values,
            [0.0, 1.0, 2.0, 3.0, 2.5, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        );
        let keys: Vec<u8> = batches
            .iter()
            .flat_map(|b| {
                (0..b.times.len())
                    .map(|row| b.keys.as_ref().unwrap().parts()[0].get(row).unwrap()[0])
            })
            .collect();
        assert_eq!(keys, b"abcdcdefghgh");
        assert!(
            batches
                .iter()
                .all(|b| b.times.values().to_vec() == [1_000_000, 2_000_000] && b.units.is_none())
        );
    }
    let mut one = opened(&path("b.arrow"));
    assert_eq!(read_all(&mut one).unwrap().len(), 2);
}

#[test]
fn a_row_that_is_not_utf8_does_not_take_its_file_along() {
    // SAFETY is not kept on purpose: this is what a careless writer leaves behind.
    #[allow(unsafe_code)]
    let key = unsafe {
        StringArray::new_unchecked(
            OffsetBuffer::from_lengths([1, 1]),
            Buffer::from(&[0xff, b'k']),
            None,
        )
    };
    let batch = table(Arc::new(key), [0.0, 1.0]);
    for name in ["a.parquet", "a.arrow", "a.arrows"] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        match name {
            "a.parquet" => write_parquet(&path, &batch),
            "a.arrow" => write_arrow(&path, std::slice::from_ref(&batch)),
            _ => write_stream(&path, &batch),
        }
        let found = read_all(&mut opened(&path)).unwrap();
        let keys = &found[0].keys.as_ref().unwrap().parts()[0];
        assert_eq!(
            (keys.get(0), keys.get(1)),
            (Some(&[0xff][..]), Some(&b"k"[..])),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = TempDir::new().unwrap();
    let error = |path: &Path| {
        FileSource::open(
            &FileSourceParams {
                path: path.to_owned(),
                declared: DeclaredTypes::default(),
            },
            columns(),
        )
        .err()
        .unwrap()
        .to_string()
    };
    assert!(error(folder.path()).ends_with(
        "the folder contains no .parquet, .arrow, .feather, .arrows, .csv, .jsonl or .ndjson file"
    ));
    let missing = folder.path().join("missing");
    assert!(error(&missing).starts_with(&format!("file {}: No such file", missing.display())));

    let good = folder.path().join("0.parquet");
    write_parquet(&good, &table(text(["a", "b"]), [0.0, 1.0]));
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    for name in ["1.parquet", "1.arrow", "1.arrows"] {
        write(path(name), b"neither Parquet nor Arrow").unwrap();
        let found = reason(folder.path());
        assert!(
            found.starts_with(&format!("file {}: ", path(name).display())),
            "{found}"
        );
        std::fs::remove_file(path(name)).unwrap();
    }
    write_arrow(&path("1.arrow"), &[table(text(["a", "b"]), [0.0, 1.0])]);
    let whole = read(path("1.arrow")).unwrap();
    write(path("1.arrow"), &whole[..whole.len() / 2]).unwrap();
    assert!(
        reason(folder.path()).ends_with("1.arrow: it ends within an Arrow message"),
        "{}",
        reason(folder.path())
    );
    write_arrow(
        &path("1.arrow"),
        &[table(text(["a", "b"]), [0.0, 1.0])
            .project(&[0, 1, 3])
            .unwrap()],
    );
    assert!(reason(&path("1.arrow")).contains("1.arrow: it has no column 'key', only time, "));
    write_parquet(
        &path("1.parquet"),
        &table(text(["a", "b"]), [0.0, 1.0])
            .project(&[1, 2, 3])
            .unwrap(),
    );
    assert!(reason(&path("1.parquet")).contains("1.parquet: it has no column 'time', only "));
}

/// One record can decide the type of a column of its file, and whether there is one: a name that no file has is a mistake, and
/// what one of several files lacks its records lack.
#[test]
fn a_column_that_one_of_several_files_lacks_is_null_in_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let whole = table(text(["a", "b"]), [1.0, 2.0]);
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let time = whole.column_by_name("time").unwrap();
    let with = |x: ArrayRef| {
        let columns = [
            ("time", time.clone(), true),
            ("key", text(["a", "b"]), true),
            ("x", x, true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    let of_nulls = with(nulls);
    let of_dates = with(time.clone());
    let lacking = whole.project(&[0, 1, 2]).unwrap();
    for (name, batch) in [
        ("0", &whole),
        ("1", &of_nulls),
        ("2", &of_dates),
        ("3", &lacking),
    ] {
        write_parquet(&path(&format!("{name}.parquet")), batch);
        write_arrow(&path(&format!("{name}.arrow")), std::slice::from_ref(batch));
        write_stream(&path(&format!("{name}.arrows")), batch);
    }
    write(path("4.csv"), "time,key\n1970-01-01T00:00:01Z,a\n").unwrap();
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let mut files = FileSource::open(
        &FileSourceParams {
            path: folder.path().to_owned(),
            declared,
        },
        columns(),
    )
    .unwrap();
    let values: Vec<Option<f64>> = read_all(&mut files)
        .unwrap()
        .iter()
        .flat_map(|batch| batch.values[0].iter().collect::<Vec<_>>())
        .collect();
    let known = [Some(1.0), Some(2.0)].repeat(3);
    assert_eq!(values, [known, vec![None; 3 * 3 * 2 + 1]].concat());
    let unread: Vec<String> = files
        .unread()
        .map(|(path, why)| format!("{}: {why}", path.file_name().unwrap().display()))
        .collect();
    assert_eq!(unread.len(), 3 + 3 + 1, "{unread:?}");
    assert!(
        unread[0].starts_with("2.arrow: column 'x' is Timestamp(s), but a value must be a number"),
        "{unread:?}"
    );
    assert_eq!(unread[6], "4.csv: it has no column 'x', only time, key");
    // A column of which nothing is known is no mistake.
    read_all(&mut opened(&path("1.parquet"))).unwrap();
    let why = reason(&path("2.parquet"));
    assert!(
        why.ends_with("but a value must be a number, a boolean, or text that holds a number"),
        "{why}"
    );
}

/// Whether the file of a day has one record or none must not decide whether the others are read.
#[test]
fn a_file_without_a_byte_has_no_records() {
    let folder = TempDir::new().unwrap();
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let read = || {
        let mut files = FileSource::open(
            &FileSourceParams {
                path: folder.path().to_owned(),
                declared,
            },
            columns(),
        )
        .unwrap();
        let empty: Vec<PathBuf> = files.empty_files().map(Path::to_path_buf).collect();
        (read_all(&mut files).unwrap().len(), empty.len())
    };
    for (name, empty) in [
        ("a.csv", 1),
        ("b.jsonl", 1),
        ("c.parquet", 2),
        ("d.arrow", 3),
        ("e.arrows", 4),
    ] {
        write(folder.path().join(name), "").unwrap();
        assert_eq!(read(), (0, empty), "{name}");
    }
    write(folder.path().join("f.csv"), "\u{feff}\n \n").unwrap();
    assert_eq!(read(), (0, 5));
    write(folder.path().join("g.csv"), "time,key,x\n").unwrap();
    assert_eq!(read(), (0, 5));
    write_parquet(
        &folder.path().join("h.parquet"),
        &table(text(["a", "b"]), [1.0, 2.0]),
    );
    assert_eq!(read(), (1, 5));
}

/// `07` in one file is no other user than `7` in another, and none at all where integers are declared.
#[test]
fn a_declared_type_of_users_holds_for_files_of_every_kind() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let batch = table(text(["07", "7"]), [1.0, 2.0]);
    write_parquet(&path("a.parquet"), &batch);
    write_arrow(&path("b.arrow"), std::slice::from_ref(&batch));
    write_parquet(
        &path("c.parquet"),
        &table(
            Arc::new(Float64Array::from(vec![Some(7.0), None])),
            [3.0, 4.0],
        ),
    );
    write(
        path("d.csv"),
        "time,key,x\n1970-01-01T00:00:01Z,07,5\n1970-01-01T00:00:01Z,7.0,6\n",
    )
    .unwrap();
    write(
        path("e.jsonl"),
        "{\"time\":\"1970-01-01T00:00:01Z\",\"key\":7.0,\"x\":7}\n",
    )
    .unwrap();
    let integer = Some(IdType::Integer);
    let declared = DeclaredTypes {
        unit: integer,
        ..DeclaredTypes::default()
    };
    let columns = Columns {
        key: vec![],
        unit: Some("key".to_owned()),
        unit_type: integer,
        ..columns()
    };
    let mut files = FileSource::open(
        &FileSourceParams {
            path: folder.path().to_owned(),
            declared,
        },
        columns,
    )
    .unwrap();
    let batches = read_all(&mut files).unwrap();
    let users: Vec<Option<String>> = batches
        .iter()
        .flat_map(|batch| {
            let user = |row| {
                batch
                    .units
                    .as_ref()
                    .unwrap()
                    .get(row)
                    .map(|user| String::from_utf8(user.to_vec()).unwrap())
            };
            (0..batch.times.len()).map(user).collect::<Vec<_>>()
        })
        .collect();
    let seven = Some("7".to_owned());
    let expected = [
        None,
        seven.clone(),
        None,
        seven.clone(),
        seven.clone(),
        None,
        None,
        seven.clone(),
        seven,
    ];
    assert_eq!(users, expected);
}

/// A folder of a table keeps what the table has replaced.
#[test]
fn a_table_of_several_versions_is_refused_by_name() {
    for (format, mark) in [
        ("Delta Lake", "_delta_log/00000000000000000000.json"),
        ("Hudi", ".hoodie/hoodie.properties"),
        ("Iceberg", "metadata/v1.metadata.json"),
    ] {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("day=1");
        std::fs::create_dir(&data).unwrap();
        for folder in [folder.path(), &data] {
            write_parquet(
                &folder.join("a.parquet"),
                &table(text(["a", "b"]), [0.0, 1.0]),
            );
            read_all(&mut opened(folder)).unwrap();
        }
        std::fs::create_dir(folder.path().join(mark).parent().unwrap()).unwrap();
        write(folder.path().join(mark), "{}").unwrap();
        for folder in [folder.path(), &data] {
            let why = reason(folder);
            assert!(
                why.contains(&format!("this is a table of {format} (")),
                "{why}"
            );
        }
        // One file of it was asked for by its name.
        read_all(&mut opened(&data.join("a.parquet"))).unwrap();
    }
}

#[test]
fn what_is_no_input_is_passed_over_and_named() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = |x: f64| format!("time,key,x\n1970-01-01T00:00:01Z,a,{x}\n");
    for (at, name) in [
        ".a.csv", "._a.csv", "~$a.csv", "_a.csv", "a.csv.gz", "A.CSV",
    ]
    .iter()
    .enumerate()
    {
        write(path(name), file(at as f64)).unwrap();
    }
    std::fs::create_dir(path("b.csv")).unwrap();
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let open = |path: PathBuf| FileSource::open(&FileSourceParams { path, declared }, columns());
    let why = open(folder.path().to_owned()).err().unwrap().to_string();
    assert!(
        why.ends_with("file, only ._a.csv, .a.csv, A.CSV, _a.csv, a.csv.gz, b.csv, and 1 more"),
        "{why}"
    );
    write(path("a.csv"), file(9.0)).unwrap();
    let mut files = open(folder.path().to_owned()).unwrap();
    assert_eq!(files.passed_over().len(), 7);
    let batches = read_all(&mut files).unwrap();
    assert_eq!(
        batches.iter().map(|batch| batch.times.len()).sum::<usize>(),
        1
    );
    // A file that is asked for by its name is read.
    assert_eq!(
        read_all(&mut open(path(".a.csv")).unwrap()).unwrap().len(),
        1
    );
}

/// Each record of a copied file would count twice, for twice its epsilon.
#[test]
fn files_with_the_same_content_are_a_fault_that_names_both() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let open = || {
        FileSource::open(
            &FileSourceParams {
                path: folder.path().to_owned(),
                declared,
            },
            columns(),
        )
    };
    write(path("monday.csv"), "time,key,x\n1970-01-01T00:00:01Z,a,1\n").unwrap();
    // Of the same size.
    write(
        path("tuesday.csv"),
        "time,key,x\n1970-01-01T00:00:01Z,a,2\n",
    )
    .unwrap();
    // Days without a record are alike.
    for name in ["saturday.csv", "sunday.csv"] {
        write(path(name), "time,key,x\n").unwrap();
    }
    assert_eq!(read_all(&mut open().unwrap()).unwrap().len(), 2);
    std::fs::copy(path("monday.csv"), path("monday (copy).csv")).unwrap();
    let why = open().err().unwrap().to_string();
    let expected = format!(
        "file {}: has the same content as {}, so each of its records would count twice",
        path("monday.csv").display(),
        path("monday (copy).csv").display()
    );
    assert!(why.starts_with(&expected), "{why}");
    std::fs::remove_file(path("monday (copy).csv")).unwrap();
    write_parquet(&path("a.parquet"), &table(text(["a", "b"]), [0.0, 1.0]));
    write_parquet(&path("b.parquet"), &table(text(["a", "b"]), [0.0, 1.0]));
    assert!(
        open()
            .err()
            .unwrap()
            .to_string()
            .contains("b.parquet: has the same content as ")
    );
}

#[test]
fn arrow_files_with_compressed_buffers_are_read_and_a_false_length_takes_no_memory() {
    let folder = TempDir::new().unwrap();
    for (name, magic) in [
        ("lz4", [0x04, 0x22, 0x4d, 0x18]),
        ("zstd", [0x28, 0xb5, 0x2f, 0xfd]),
    ] {
        let stream = read(format!("tests/data/compressed.{name}.arrows")).unwrap();
        // An Arrow file has a stream between a header and a footer, which is not needed.
        let file = [b"ARROW1\0\0", &stream[..]].concat();
        for (ending, bytes) in [("arrows", &stream), ("feather", &file)] {
            let path = folder.path().join(format!("{name}.{ending}"));
            write(&path, bytes).unwrap();
            let found = read_all(&mut opened(&path)).unwrap();
            assert_eq!(
                found[0].times.values().to_vec(),
                (0..100).collect::<Vec<i64>>(),
                "{name}.{ending}"
            );
            assert_eq!(
                found[0].keys.as_ref().unwrap().parts()[0].get(99),
                Some(&b"EWR"[..])
            );
            assert_eq!(found[0].values[0], Float64Array::from(vec![1.5; 100]));
        }
        // Before each compressed buffer is the length that it says it unfolds to.
        let at = file.windows(4).position(|bytes| bytes == magic).unwrap() - 8;
        let path = folder.path().join("false.arrow");
        for (claim, expected) in [
            (i64::MAX, "unfold to more than 1073741824 bytes"),
            (801, "the Arrow reader rejects it"),
        ] {
            let mut bytes = file.clone();
            bytes[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            write(&path, bytes).unwrap();
            let failure = failure(&path);
            assert!(
                failure
                    .in_full()
                    .unwrap_or(failure.to_string())
                    .contains(expected),
                "{name}, {claim}: {failure}"
            );
            // How much there is follows from records.
            assert!(!failure.to_string().contains("1073741824"), "{failure}");
        }
    }
}

#[test]
fn a_parquet_file_with_gzip_dates_and_booleans_is_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.parquet");
    let time: ArrayRef = Arc::new(Date32Array::from(vec![1, 2]));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    let batch =
        RecordBatch::try_from_iter([("time", time), ("key", text(["a", "b"])), ("x", flags)])
            .unwrap();
    let gzip = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(gzip)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let batches = read_all(&mut opened(&path)).unwrap();
    assert_eq!(
        batches[0].times.values().to_vec(),
        [86_400_000_000, 172_800_000_000]
    );
    assert_eq!(
        batches[0].values[0],
        Float64Array::from(vec![Some(1.0), None])
    );
}

#[test]
fn a_parquet_file_whose_times_are_text_is_read_or_integers_where_their_unit_is_declared() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.parquet");
    let with = |time| {
        RecordBatch::try_from_iter([
            ("time", time),
            ("key", text(["a", "b"])),
            ("x", text(["1", "true"])),
        ])
        .unwrap()
    };
    write_parquet(
        &path,
        &with(text(["1970-01-01T00:00:01Z", "1970-01-01T01:00:00+01:00"])),
    );
    let read = read_all(&mut opened(&path)).unwrap();
    assert_eq!(read[0].times.values().to_vec(), [1_000_000, 0]);
    assert_eq!(read[0].values[0], Float64Array::from(vec![1.0, 1.0]));
    write_parquet(
        &path,
        &with(Arc::new(arrow_array::Int64Array::from(vec![1, 2]))),
    );
    let params = FileSourceParams {
        path: path.clone(),
        declared: DeclaredTypes::default(),
    };
    let columns = |time_format| Columns {
        time_format,
        values: Vec::new(),
        ..columns()
    };
    let read =
        read_all(&mut FileSource::open(&params, columns(Some(TimeFormat::Milliseconds))).unwrap())
            .unwrap();
    assert_eq!(read[0].times.values().to_vec(), [1_000, 2_000]);
    assert!(
        reason(&path).contains("input.time_format must say how it is written"),
        "{}",
        reason(&path)
    );
}

#[test]
fn the_flights_of_2013_are_read_whole() {
    let columns = Columns {
        time: "time".to_owned(),
        key: vec!["origin".to_owned()],
        values: vec!["dep_delay".to_owned(), "distance".to_owned()],
        ..Columns::default()
    };
    let params = FileSourceParams {
        path: "tests/data/flights.parquet".into(),
        declared: DeclaredTypes::default(),
    };
    let batches = read_all(&mut FileSource::open(&params, columns).unwrap()).unwrap();
    let times: Vec<i64> = batches
        .iter()
        .flat_map(|b| b.times.values().to_vec())
        .collect();
    assert_eq!(times.len(), 336_776);
    assert!(times.is_sorted());
    // 5:15 on New Year's Day in New York.
    assert_eq!(
        times[0],
        Timestamp::parse("2013-01-01T05:15:00-05:00")
            .unwrap()
            .micros()
    );
    assert_eq!(
        batches
            .iter()
            .map(|b| b.values[0].null_count())
            .sum::<usize>(),
        8_255,
        "cancelled flights"
    );
    let from = |airport: &[u8]| -> usize {
        let keys = |b: &Batch| {
            (0..b.times.len())
                .map(|row| b.keys.as_ref().unwrap().parts()[0].get(row) == Some(airport))
                .filter(|is| *is)
                .count()
        };
        batches.iter().map(keys).sum()
    };
    assert_eq!(
        [from(b"EWR"), from(b"JFK"), from(b"LGA")],
        [120_835, 111_279, 104_662]
    );
}

/// As CSV and as JSON lines, each with a line that is no record and one that lacks a value.
#[test]
fn lines_are_records_and_what_is_wrong_with_one_is_settled_for_it() {
    let folder = TempDir::new().unwrap();
    let csv = "\u{feff}note,x,key,time\r\n\"a, \"\"b\"\"\",1.5,g,1970-01-01T00:00:01Z\r\n\r\n\"open,2,g,1970-01-01T00:00:02Z\n\
               ,,h,1970-01-01T01:00:03+01:00\n,4,h,1970-01-01T00:00:04Z";
    let json = "{\"time\":\"1970-01-01T00:00:01Z\",\"key\":\"g\",\"x\":\"1.5\"}\n \n{\"x\":2,\n\
                {\"x\":null,\"key\":\"h\",\"time\":\"1970-01-01T00:00:03Z\"}\n{\"x\":4,\"key\":\"h\",\"time\":\"1970-01-01T00:00:04Z\"}\n";
    for (name, text) in [("a.csv", csv), ("a.jsonl", json)] {
        let path = folder.path().join(name);
        write(&path, text).unwrap();
        let declared = DeclaredTypes {
            key: [Some(IdType::Text), None, None],
            ..DeclaredTypes::default()
        };
        let open = |declared| {
            FileSource::open(
                &FileSourceParams {
                    path: path.clone(),
                    declared,
                },
                columns(),
            )
        };
        let batches = read_all(&mut open(declared).unwrap()).unwrap();
        let [batch] = batches.as_slice() else {
            panic!("{name}: one batch")
        };
        let times: Vec<Option<i64>> = batch.times.iter().collect();
        assert_eq!(
            times,
            [Some(1_000_000), None, Some(3_000_000), Some(4_000_000)],
            "{name}"
        );
        let keys = &batch.keys.as_ref().unwrap().parts()[0];
        assert_eq!(
            [0, 1, 2, 3].map(|row| keys.get(row)),
            [Some(&b"g"[..]), None, Some(b"h"), Some(b"h")],
            "{name}"
        );
        let values: Vec<Option<f64>> = batch.values[0].iter().collect();
        assert_eq!(values, [Some(1.5), None, None, Some(4.0)], "{name}");
        let error = open(DeclaredTypes::default()).err().unwrap().to_string();
        assert!(
            error.contains("the type of the key is not declared"),
            "{error}"
        );
    }
    write(folder.path().join("b.csv"), "time,key\n").unwrap();
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let path = folder.path().join("b.csv");
    let error = FileSource::open(&FileSourceParams { path, declared }, columns())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.ends_with("b.csv: it has no column 'x', only time, key"),
        "{error}"
    );
}

/// A mark before a line, as where two files were joined, counts for no more and no less on the first line than on another.
#[test]
fn a_byte_order_mark_makes_no_line_depend_on_those_before_it() {
    let folder = TempDir::new().unwrap();
    let one = "{\"time\":\"1970-01-01T00:00:01Z\",\"key\":\"g\",\"x\":1}\n";
    let marked = "\u{feff}{\"time\":\"1970-01-01T00:00:02Z\",\"key\":\"g\",\"x\":2}\n";
    let too_long = format!(
        "\u{feff}{}{} rubbish\n",
        one.trim_end(),
        " ".repeat((1 << 20) - 2 - one.len())
    );
    let times = |text: &str| -> Vec<Option<i64>> {
        let path = folder.path().join("a.jsonl");
        write(&path, text).unwrap();
        let declared = DeclaredTypes {
            key: [Some(IdType::Text), None, None],
            ..DeclaredTypes::default()
        };
        let batches = read_all(
            &mut FileSource::open(&FileSourceParams { path, declared }, columns()).unwrap(),
        )
        .unwrap();
        batches
            .iter()
            .flat_map(|batch| batch.times.iter())
            .collect()
    };
    assert_eq!(
        times(&[one, marked].concat()),
        [Some(1_000_000), Some(2_000_000)]
    );
    assert_eq!(times(marked), [Some(2_000_000)]);
    assert_eq!(times(&too_long), [None]);
}

/// A line that is far too long is one record that is dropped, and rows keep the order of their lines over batches.
#[test]
fn rows_keep_the_order_of_their_lines() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("many.csv");
    let mut text = "time,key,x\n".to_owned();
    for line in 0..20_000 {
        let key = if line == 7 {
            "k".repeat(3_000_000)
        } else {
            "k".to_owned()
        };
        text += &format!("1970-01-01T00:00:01Z,{key},{line}\n");
    }
    write(&path, text).unwrap();
    let declared = DeclaredTypes {
        key: [Some(IdType::Text), None, None],
        ..DeclaredTypes::default()
    };
    let batches =
        read_all(&mut FileSource::open(&FileSourceParams { path, declared }, columns()).unwrap())
            .unwrap();
    let values: Vec<Option<f64>> = batches
        .iter()
        .flat_map(|batch| batch.values[0].iter())
        .collect();
    assert_eq!(values.len(), 20_000);
    assert!(
        values
            .iter()
            .enumerate()
            .all(|(line, value)| *value == (line != 7).then_some(line as f64))
    );
    let ends: Vec<i64> = batches
        .iter()
        .map(|batch| batch.offset + batch.times.len() as i64)
        .collect();
    assert!(
        batches.len() > 1
            && ends
                .iter()
                .zip(&batches[1..])
                .all(|(end, next)| *end == next.offset),
        "{ends:?}"
    );
}

/// What a disk does that fails: the operating system does not give a byte of this file.
const FAILING: &str = "/proc/self/mem";

#[test]
fn a_disk_that_fails_may_come_back_and_a_file_that_is_wrong_does_not() {
    let files = Pipelines::new();
    let file = files.pipeline("one", "out");
    let records = files.path("records.csv");
    std::fs::remove_file(&records).unwrap();
    std::os::unix::fs::symlink(FAILING, &records).unwrap();
    let (code, error) = ended(command(&["run"], &file));
    assert!(
        code == 69 && error.contains("the disk does not give file"),
        "{error}"
    );
    assert_eq!(ended(command(&["check"], &file)).0, 69);
    std::fs::remove_file(&records).unwrap();
    write(&records, b"key,value\na,1\n").unwrap();
    let (code, error) = ended(command(&["run"], &file));
    assert!(code == 78 && error.contains("records.csv"), "{error}");
    assert_eq!(ended(command(&["check"], &file)).0, 78);
}
