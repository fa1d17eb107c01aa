//! `bernstream produce` against a real broker.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bernstream::cli::Failure;
use bernstream::cli::produce::{ProduceArguments, run};
use bernstream_kafka::source::kafka::{BadMessageRule, KafkaSource, KafkaSourceParams};
use bernstream_kafka::source::record::{DeclaredTypes, IdType, RecordForm, TopicFormat};
use bernstream_kafka::source::{RecordSource, SourceEvent};
use bernstream_kafka::topic;
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

fn produce(servers: &str, topic: &str, more: &[&str]) -> Result<(), Failure> {
    let fixed = [
        "produce",
        "tests/data/flights.parquet",
        "--brokers",
        servers,
        "--topic",
        topic,
    ];
    run(&Command::try_parse_from(fixed.iter().chain(more))
        .unwrap()
        .arguments)
}

#[test]
fn every_row_of_a_file_arrives_once_and_in_order() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let name = kafka::fresh_name("flights");
    produce(&servers, &name, &["--create", "3", "--rows", "900"]).unwrap();
    let found = topic::describe_topic(&kafka::at(&servers), &name).unwrap();
    assert_eq!(found.partitions, [0, 1, 2]);
    assert_eq!(found.settings["message.timestamp.type"], "LogAppendTime");
    assert_eq!(found.settings["retention.ms"], "-1");

    let params = KafkaSourceParams {
        broker: kafka::at(&servers),
        topic: name.clone(),
        clock: kafka::fresh_name("clock"),
        clock_slack: Duration::ZERO,
        readers: Some(1),
        trust_producer_time: false,
        format: TopicFormat::Arrow,
        on_bad_message: BadMessageRule::Stop,
        skip: BTreeSet::new(),
        lost: vec![],
    };
    let columns = Columns {
        time: "time".to_owned(),
        key: vec!["origin".to_owned()],
        unit: Some("carrier".to_owned()),
        values: vec!["dep_delay".to_owned()],
        ..Columns::default()
    };
    let mut source = KafkaSource::open(params, columns, Timestamp::now).unwrap();
    source
        .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
        .unwrap();
    // 336,776 rows in messages of 900 are 375 messages, 125 a partition.
    let ends = Positions((0..3).map(|partition| (partition, 125)).collect());
    let mut messages = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    while !source.has_reached(&ends).unwrap() {
        assert!(Instant::now() < deadline);
        match source.next_event(None, Duration::from_millis(100)).unwrap() {
            SourceEvent::Batch(batch) => assert!(
                messages
                    .insert((batch.offset, batch.partition), batch.times)
                    .is_none()
            ),
            SourceEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    // Round robin: offset, then partition, is the order of the file.
    let times: Vec<i64> = messages
        .values()
        .flat_map(|times| times.values().to_vec())
        .collect();
    assert_eq!(times.len(), 336_776);
    assert!(times.is_sorted());

    let error = produce(&servers, &name, &["--create", "3"]).unwrap_err();
    assert!(
        matches!(&error, Failure::Configuration(why) if why.contains("already exists")),
        "{error}"
    );
}

#[test]
fn event_time_is_replayed_no_faster_than_was_asked_for() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let name = kafka::fresh_input(&servers, 1);
    // A year of flights in two seconds.
    let start = Instant::now();
    produce(
        &servers,
        &name,
        &["--rows", "10000", "--pace", "15768000", "--time", "time"],
    )
    .unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!(took > 1.8, "{took} s");
    let error = produce(&servers, &name, &["--pace", "1", "--time", "when"]).unwrap_err();
    assert!(
        matches!(&error, Failure::Configuration(why) if why == "there is no column 'when'"),
        "{error}"
    );
    let error = produce(&servers, &name, &["--pace", "1", "--time", "origin"]).unwrap_err();
    assert!(matches!(error, Failure::Configuration(_)), "{error}");
}

#[test]
fn messages_that_the_topic_does_not_take_fail_with_what_to_do() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let name = kafka::fresh_topic(&servers, "small", 1, &[("max.message.bytes", "10000")]);
    let error = produce(&servers, &name, &["--rows", "10000"]).unwrap_err();
    assert!(
        matches!(&error, Failure::Configuration(why) if why.contains("send fewer --rows")),
        "{error}"
    );
    let error = produce(&servers, &kafka::fresh_name("none"), &[]).unwrap_err();
    assert!(
        matches!(&error, Failure::Configuration(why) if why.contains("there is no topic")),
        "{error}"
    );
}

#[test]
fn senseless_arguments_are_refused() {
    let parse = |more: &[&str]| {
        let fixed = [
            "produce",
            "a.parquet",
            "--brokers",
            "localhost:1",
            "--topic",
            "t",
        ];
        Command::try_parse_from(fixed.iter().chain(more)).is_ok()
    };
    assert!(
        parse(&[])
            && parse(&["--pace", "2.5", "--time", "t"])
            && parse(&["--rows", "1", "--create", "1"])
    );
    let senseless: [&[&str]; 7] = [
        &["--rows", "0"],
        &["--create", "0"],
        &["--pace", "2"],
        &["--time", "t"],
        &["--pace", "0", "--time", "t"],
        &["--pace", "1", "--time", "t", "--flush-every", "0s"],
        &["--pace", "inf", "--time", "t"],
    ];
    assert!(senseless.iter().all(|more| !parse(more)));
}

/// Columns of [`RIDES`].
fn rides() -> Columns {
    Columns {
        time: "started_at".to_owned(),
        key: vec!["ride.city".to_owned()],
        unit: Some("rider".to_owned()),
        values: vec!["ride.kilometres".to_owned()],
        ..Columns::default()
    }
}

fn sent_from(
    file: &std::path::Path,
    servers: &str,
    topic: &str,
    more: &[&str],
) -> Result<(), Failure> {
    let file = file.display().to_string();
    let fixed = ["produce", &file, "--brokers", servers, "--topic", topic];
    run(&Command::try_parse_from(fixed.iter().chain(more))
        .unwrap()
        .arguments)
}

const RIDES: &str = "started_at,rider,ride.city,ride.kilometres\n2026-01-01T09:30:00Z,4711,Bern,7.25\n\n\
                     2026-01-01T09:31:00Z,4712,\"Ber,gen\",\n2026-01-01T09:32:00Z,4711,Bern,0.5\n";

#[test]
fn lines_of_text_become_messages_that_a_worker_reads() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rides.csv");
    let json = folder.path().join("rides.jsonl");
    std::fs::write(&csv, RIDES).unwrap();
    let lines = "{\"started_at\":\"2026-01-01T09:30:00Z\",\"rider\":4711,\"ride\":{\"city\":\"Bern\",\"kilometres\":7.25}}\n\
                 {\"started_at\":\"2026-01-01T09:31:00Z\",\"rider\":\"4712\",\"ride\":{\"city\":\"Ber,gen\"}}\n\
                 {\"started_at\":\"2026-01-01T09:32:00Z\",\"rider\":4711,\"ride\":{\"city\":\"Bern\",\"kilometres\":\"0.5\"}}";
    std::fs::write(&json, lines).unwrap();
    for file in [csv, json] {
        let name = kafka::fresh_name("rides");
        sent_from(&file, &servers, &name, &["--create", "1"]).unwrap();
        let declared = DeclaredTypes {
            key: [Some(IdType::Text), None, None],
            unit: Some(IdType::Integer),
            ..DeclaredTypes::default()
        };
        let params = KafkaSourceParams {
            broker: kafka::at(&servers),
            topic: name.clone(),
            clock: kafka::fresh_name("clock"),
            clock_slack: Duration::ZERO,
            readers: Some(1),
            trust_producer_time: false,
            format: TopicFormat::Records {
                form: RecordForm::Json,
                declared,
            },
            on_bad_message: BadMessageRule::Stop,
            skip: BTreeSet::new(),
            lost: vec![],
        };
        let mut source = KafkaSource::open(params, rides(), Timestamp::now).unwrap();
        source
            .rewind(Timestamp::from_micros(0), &RecordedPositions::default())
            .unwrap();
        let ends = Positions([(0, 3)].into());
        let mut rows = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while !source.has_reached(&ends).unwrap() {
            assert!(Instant::now() < deadline);
            match source
                .next_event(Some(&ends), Duration::from_millis(100))
                .unwrap()
            {
                SourceEvent::Batch(batch) => {
                    assert!(batch.message_time.is_some());
                    let text = |column: Option<&bernstream_release::source::TextColumn>, row| {
                        column
                            .and_then(|column| column.get(row))
                            .map(|text| String::from_utf8_lossy(text).into_owned())
                    };
                    for row in 0..batch.times.len() {
                        let minute = batch.times.value(row) / 60_000_000 % 60;
                        let value = batch.values[0].iter().nth(row).flatten();
                        rows.push((
                            batch.offset + row as i64,
                            minute,
                            text(batch.keys.as_ref().map(|keys| &keys.parts()[0]), row),
                            text(batch.units.as_ref(), row),
                            value,
                        ));
                    }
                }
                SourceEvent::Idle => {}
                other => panic!("{other:?}"),
            }
        }
        let row = |offset, city: &str, rider: &str, value| {
            (
                offset,
                30 + offset,
                Some(city.to_owned()),
                Some(rider.to_owned()),
                value,
            )
        };
        let expected = [
            row(0, "Bern", "4711", Some(7.25)),
            row(1, "Ber,gen", "4712", None),
            row(2, "Bern", "4711", Some(0.5)),
        ];
        assert_eq!(rows, expected, "{}", file.display());
    }
}

#[test]
fn a_line_that_no_worker_could_read_is_named() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let name = kafka::fresh_input(&servers, 1);
    for (file, text, told) in [
        (
            "a.jsonl",
            "{\"time\": 1}\n\n[1]\n",
            "line 3: no worker could read it: it is not a JSON object",
        ),
        (
            "b.jsonl",
            "{\"time\": 1}\n{\"time\": 1,}\n",
            "line 2: no worker could read it",
        ),
        (
            "a.csv",
            "time,x\n1,2\n1\n",
            "line 3: it has 1 fields, the header has 2",
        ),
        (
            "b.csv",
            "time,x\n1,\"2\n",
            "line 2: it has a quoted field that does not end on its line",
        ),
        (
            "c.csv",
            "time,time\n1,2\n",
            "line 1: it has two columns 'time'",
        ),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        let error = sent_from(&path, &servers, &name, &[]).unwrap_err();
        assert!(
            matches!(&error, Failure::Configuration(why) if why.contains(told)),
            "{file}: {error}"
        );
    }
}
