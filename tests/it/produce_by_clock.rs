//! `bernstream produce` sends by the clock: no record waits for others to come.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::Failure;
use bernstream::cli::produce::{ProduceArguments, run};
use bernstream_kafka::source::kafka::{BadMessageRule, KafkaSource, KafkaSourceParams};
use bernstream_kafka::source::record::{DeclaredTypes, RecordForm, TopicFormat};
use bernstream_kafka::source::{RecordSource, SourceEvent};
use bernstream_release::source::Columns;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::{Positions, RecordedPositions};
use clap::Parser;

use crate::harness::{PATIENCE, kafka};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: ProduceArguments,
}

fn produce(file: &Path, servers: &str, topic: &str, more: &[&str]) -> Result<(), Failure> {
    let file = file.display().to_string();
    let fixed = ["produce", &file, "--brokers", servers, "--topic", topic];
    run(&Command::try_parse_from(fixed.iter().chain(more))
        .unwrap()
        .arguments)
}

/// The event times in each of the first `count` messages of the only partition of a topic, in seconds.
fn messages(servers: &str, topic: &str, format: TopicFormat, count: i64) -> Vec<Vec<i64>> {
    let params = KafkaSourceParams {
        broker: kafka::at(servers),
        topic: topic.to_owned(),
        clock: kafka::fresh_name("clock"),
        clock_slack: Duration::ZERO,
        readers: Some(1),
        trust_producer_time: false,
        format,
        on_bad_message: BadMessageRule::Stop,
        skip: BTreeSet::new(),
        lost: vec![],
    };
    let columns = Columns {
        time: "time".to_owned(),
        values: vec!["x".to_owned()],
        ..Columns::default()
    };
    let mut source = KafkaSource::open(params, columns, Timestamp::now).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    let ends = Positions([(0, count)].into());
    let deadline = Instant::now() + PATIENCE;
    let mut found = Vec::new();
    while !source.has_reached(&ends).unwrap() {
        assert!(Instant::now() < deadline, "{found:?}");
        match source.next_event(None, Duration::from_millis(100)).unwrap() {
            SourceEvent::Batch(batch) => found.push(
                batch
                    .times
                    .values()
                    .iter()
                    .map(|time| time / 1_000_000)
                    .collect(),
            ),
            SourceEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    found
}

/// Rows at these seconds.
fn rows(seconds: impl Iterator<Item = i64>) -> RecordBatch {
    let times: Vec<i64> = seconds.map(|second| second * 1_000_000).collect();
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0; times.len()]));
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"));
    RecordBatch::try_from_iter([("time", times), ("x", values)]).unwrap()
}

fn pipe(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(
        Process::new("mkfifo")
            .arg(&path)
            .status()
            .expect("mkfifo")
            .success()
    );
    path
}

fn opened(pipe: &Path) -> File {
    OpenOptions::new()
        .write(true)
        .open(pipe)
        .expect("somebody reads the pipe")
}

/// Sends what `write` writes into a pipe, which stays open until it is done.
fn through_a_pipe(servers: &str, topic: &str, name: &str, write: impl FnOnce(File)) {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path(), name);
    std::thread::scope(|threads| {
        let sending = threads.spawn(|| {
            produce(&path, servers, topic, &["--rows", "1000"]).map_err(|e| e.to_string())
        });
        write(opened(&path));
        sending.join().unwrap().unwrap();
    });
}

#[test]
fn a_line_that_comes_through_a_slow_pipe_is_sent_before_the_next_comes() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let name = kafka::fresh_input(&servers, 1);
    through_a_pipe(&servers, &name, "slow.jsonl", |mut slow| {
        for second in 0..3 {
            writeln!(slow, "{{\"time\":\"1970-01-01T00:00:0{second}Z\",\"x\":1}}").unwrap();
            let json = TopicFormat::Records {
                form: RecordForm::Json,
                declared: DeclaredTypes::default(),
            };
            let expected: Vec<i64> = (0..=second).collect();
            assert_eq!(
                messages(&servers, &name, json, second + 1).concat(),
                expected
            );
        }
    });
}

#[test]
fn rows_that_come_through_a_slow_pipe_are_sent_before_the_next_come() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let name = kafka::fresh_input(&servers, 1);
    through_a_pipe(&servers, &name, "slow.arrows", |slow| {
        let mut slow = StreamWriter::try_new(slow, &rows(0..1).schema()).unwrap();
        for second in 0..3 {
            slow.write(&rows(second..second + 1)).unwrap();
            let expected: Vec<Vec<i64>> = (0..=second).map(|second| vec![second]).collect();
            assert_eq!(
                messages(&servers, &name, TopicFormat::Arrow, second + 1),
                expected
            );
        }
        slow.finish().unwrap();
    });
}

/// A row less, and every other row is sent with the same rows as before, at the end of the same second.
#[test]
fn a_replay_sends_the_rows_of_an_interval_and_waits_for_no_count() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("replay.arrows");
    let sent = |without: Option<i64>| {
        let mut file =
            StreamWriter::try_new(File::create(&path).unwrap(), &rows(0..1).schema()).unwrap();
        // Thirty rows, in three intervals of ten seconds.
        file.write(&rows((0..30).filter(|second| Some(*second) != without)))
            .unwrap();
        file.finish().unwrap();
        let name = kafka::fresh_input(&servers, 1);
        let start = Instant::now();
        produce(
            &path,
            &servers,
            &name,
            &["--pace", "100", "--time", "time", "--flush-every", "100ms"],
        )
        .unwrap();
        assert!(
            start.elapsed() >= Duration::from_millis(300),
            "the last message is sent at the end of its interval"
        );
        messages(&servers, &name, TopicFormat::Arrow, 3)
    };
    let intervals = |without: Option<i64>| -> Vec<Vec<i64>> {
        let seconds = |interval: i64| {
            (10 * interval..10 * interval + 10).filter(|second| Some(*second) != without)
        };
        (0..3).map(|interval| seconds(interval).collect()).collect()
    };
    for without in [None, Some(4), Some(29)] {
        assert_eq!(sent(without), intervals(without), "without {without:?}");
    }
}
