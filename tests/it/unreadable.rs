//! Batches that no client can unpack: the worker stops there, says where, and goes on once they are given up as lost.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_synopsis::Synopsis;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::harness::kafka::{self, Own};
use crate::harness::running::Running;
use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, wait_for};

/// `count` records of key `a` in the middle of the first window and of the domain.
fn crowd(setup: &Setup, count: usize) -> Vec<u8> {
    let micros = setup.origin.plus(Duration::from_secs(30)).micros();
    message(&vec![
        Row {
            micros,
            key: "a",
            value: 50.0
        };
        count
    ])
}

/// The same of one record, whose value is in a column of integers.
fn of_integers(setup: &Setup) -> Vec<u8> {
    let micros = setup.origin.plus(Duration::from_secs(30)).micros();
    let columns: [(&str, ArrayRef); 3] = [
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")),
        ),
        ("key", Arc::new(StringArray::from(vec!["a"]))),
        ("value", Arc::new(Int64Array::from(vec![50]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// Sends these messages to partition 0, in one batch if they are small.
fn send(setup: &Setup, producer: &ThreadedProducer<DefaultProducerContext>, payloads: &[&[u8]]) {
    for payload in payloads {
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(0)
            .payload(*payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// The worker stops at offsets `from` to `last` of partition 0, unready and alive, and says so once; then it goes on without.
fn stops_there_and_goes_on(setup: &Setup, from: i64, last: i64, expected: f64) {
    setup.show_operators();
    let mut worker = Running::start(setup);
    let words = format!(
        "the batch at offsets {from} to {last} of partition 0 of topic '{}' cannot be read",
        setup.input
    );
    setup.wait_log(&words);
    let remedy = format!(
        "add {{ partition = 0, from = {from}, to = {} }} to 'lost'",
        last + 1
    );
    assert!(setup.read_log().contains(&remedy), "{}", setup.read_log());
    // It does not fetch the batch over and over, and stays as it is.
    std::thread::sleep(Duration::from_secs(3));
    let ready = worker.get("/readyz");
    assert!(
        ready.0 == 503 && ready.1.contains("reading the input"),
        "{ready:?}"
    );
    assert_eq!(worker.get("/healthz").0, 200);
    assert_eq!(worker.metric("windows_released_total"), Some(0.0));
    let (_, metrics) = worker.get("/metrics");
    assert!(!metrics.contains("offset"), "{metrics}");
    let log = setup.read_log();
    assert_eq!(log.matches("cannot be read").count(), 1, "{log}");
    assert!(log.matches("reading again").count() <= 3, "{log}");
    worker.terminate();
    assert!(worker.end(setup).success(), "{}", setup.read_log());
    setup.edit(
        "clock_slack",
        &format!(
            "lost = [{{ partition = 0, from = {from}, to = {} }}]\nclock_slack",
            last + 1
        ),
    );
    let mut worker = Running::start(setup);
    assert!(worker.end(setup).success(), "{}", setup.read_log());
    setup.assert_whole();
    let found = counted(setup);
    assert!(
        (found - expected).abs() < 0.05 * expected,
        "{expected} records can be read, {found} were counted"
    );
}

/// About how many records the synopses have, all of which say that some are missing.
fn counted(setup: &Setup) -> f64 {
    let synopses: Vec<_> = setup
        .published()
        .iter()
        .map(|p| Synopsis::decode_message(&p.payload).expect("a synopsis"))
        .collect();
    assert!(
        synopses
            .iter()
            .all(|synopsis| synopsis.description().incomplete),
        "the configuration says so"
    );
    synopses
        .iter()
        .map(|synopsis| synopsis.values().iter().sum::<f64>() * 100.0 / 12.0)
        .sum()
}

#[test]
fn a_batch_that_unfolds_beyond_all_bounds_stops_its_partition_until_it_is_given_up() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    let plain = setup.producer(&[]);
    send(&setup, &plain, &[&crowd(&setup, 1500)]);
    let zeros = vec![0; 130_000_000];
    let bomb = setup.producer(&[
        ("compression.type", "zstd"),
        ("message.max.bytes", "200000000"),
    ]);
    send(&setup, &bomb, &[&zeros]);
    send(&setup, &plain, &[&crowd(&setup, 1500)]);
    setup.begin(Duration::ZERO);
    stops_there_and_goes_on(&setup, 1, 1, 3000.0);
}

#[test]
fn messages_that_are_given_up_are_passed_also_where_the_client_has_fetched_them_already() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    let producer = setup.producer(&[
        ("transactional.id", &setup.input),
        ("transaction.timeout.ms", "900000"),
    ]);
    producer.init_transactions(PATIENCE).expect("transactions");
    producer.begin_transaction().expect("it begins");
    send(&setup, &producer, &[&crowd(&setup, 1500)]);
    producer
        .commit_transaction(PATIENCE)
        .expect("it is committed");
    // Its marker is at offset 1: after the first message the next offset is not one that is given up, and the next message is.
    let plain = setup.producer(&[]);
    send(
        &setup,
        &plain,
        &[&crowd(&setup, 1500), &crowd(&setup, 1500)],
    );
    setup.edit(
        "clock_slack",
        "lost = [{ partition = 0, from = 2, to = 3 }]\nclock_slack",
    );
    setup.begin(Duration::ZERO);
    let mut worker = Running::start(&setup);
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
    let found = counted(&setup);
    assert!(
        (found - 3000.0).abs() < 150.0,
        "3000 records are left, {found} were counted"
    );
}

/// The offset of the first record of each batch of a segment, that of its last, and where it lies in the file.
fn batches(segment: &[u8]) -> Vec<(i64, i64, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while segment.len() > at + 61 {
        let number = |from: usize, bytes: usize| {
            segment[at + from..at + from + bytes]
                .iter()
                .fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte))
        };
        let base = number(0, 8);
        let length = number(8, 4);
        if length == 0 {
            break;
        }
        found.push((base, base + number(23, 4), at));
        at += 12 + usize::try_from(length).expect("a length");
    }
    found
}

/// All that is broken is told at once, and what to do depends on whether everything is.
#[test]
fn a_sample_tells_every_broken_message_and_which_column_no_record_has() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    setup.begin(Duration::from_secs(60));
    let check = |arguments: &[&str]| {
        let output = setup
            .bernstream(&[&["check"], arguments].concat())
            .arg(setup.configuration())
            .output()
            .expect("it runs");
        let told = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&told).into_owned(),
        )
    };
    let (is_sound, told) = check(&["--sample=7"]);
    assert!(
        is_sound && told.contains("has no messages to try"),
        "{told}"
    );

    let good = crowd(&setup, 3);
    let producer = setup.producer(&[]);
    send(
        &setup,
        &producer,
        &[&good, b"not Arrow", &good, &good[..100], &good],
    );
    let (is_sound, told) = check(&["--sample=100"]);
    assert!(
        !is_sound && told.contains("the newest: 3 of 5: offset 1 of partition 0: "),
        "{told}"
    );
    assert!(
        told.contains("{ partition = 0, offset = 1 }, { partition = 0, offset = 3 }"),
        "{told}"
    );
    assert!(
        told.contains("records in them have \"value\": 9 of 9"),
        "{told}"
    );
    assert!(!check(&[]).1.contains("can be read"), "nobody asked");
    // Those in between are not looked at.
    let (is_sound, told) = check(&["--sample=1"]);
    assert!(
        is_sound && told.contains("the oldest and the newest: 1 of 1"),
        "{told}"
    );

    // A transaction ends with a marker, which no client returns.
    let own = setup.producer(&[("transactional.id", &setup.input)]);
    own.init_transactions(PATIENCE)
        .expect("the broker knows it");
    own.begin_transaction().expect("it begins");
    send(&setup, &own, &[&good]);
    own.commit_transaction(PATIENCE).expect("it ends");
    let (is_sound, told) = check(&["--sample=2"]);
    assert!(
        is_sound && told.contains("the oldest and the newest: 1 of 1"),
        "{told}"
    );

    // What is skipped is broken no more; a column that no record has is found in the message.
    setup.edit(
        "clock_slack",
        "skip = [{ partition = 0, offset = 1 }, { partition = 0, offset = 3 }]\nclock_slack",
    );
    assert!(check(&["--sample=100"]).0, "{}", check(&["--sample=100"]).1);
    setup.edit("column = \"value\"", "column = \"delay\"");
    let (is_sound, told) = check(&["--sample=100"]);
    for words in [
        "messages in which \"delay\" can be read: 0 of 4: it has no column 'delay', only ",
        "records in them have \"delay\": 0 of 12: none has it",
    ] {
        assert!(!is_sound && told.contains(words), "{words}: {told}");
    }

    // The type of a column is that of the records in it.
    setup.edit("column = \"delay\"", "column = \"value\"");
    send(&setup, &producer, &[&of_integers(&setup)]);
    let (is_sound, told) = check(&["--sample=100"]);
    let words = "the type of \"value\" is the same in all messages: it is floats in 4 messages, integers in 1 message";
    assert!(!is_sound && told.contains(words), "{told}");

    // A record in JSON that lacks a field is none that is broken: only the count tells.
    let setup = Setup::new(&servers, 2);
    setup.begin(Duration::from_secs(60));
    setup.edit("clock_slack", "format = \"json\"\nclock_slack");
    setup.edit(
        "time = \"time\"",
        "time = \"time\"\ntime_format = \"rfc3339\"",
    );
    setup.edit("column = \"key\"", "column = \"key\", type = \"text\"");
    let record: &[u8] = br#"{"time":"2025-01-01T00:00:30Z","key":"a","delay":5}"#;
    send(&setup, &setup.producer(&[]), &[record, record, b"{"]);
    let output = setup
        .bernstream(&["check", "--sample"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    for words in [
        "the newest: 2 of 3; the others are dropped: offset 2 of partition 0",
        "records in them have \"time\": 2 of 2",
        "records in them have \"value\": 0 of 2: none has it",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

mod long {
    use super::*;

    #[test]
    fn a_corrupt_byte_in_a_segment_stops_its_partition_until_its_batch_is_given_up() {
        if kafka::broker().is_none() {
            return;
        }
        let own = Own::start();
        let setup = Setup::new(&own.servers, 2);
        // gzip has a checksum of its own.
        let producer = setup.producer(&[("linger.ms", "500"), ("compression.type", "gzip")]);
        send(&setup, &producer, &[&crowd(&setup, 1500)]);
        let five = [100; 5].map(|count| crowd(&setup, count));
        send(&setup, &producer, &five.each_ref().map(Vec::as_slice));
        send(&setup, &producer, &[&crowd(&setup, 1500)]);
        setup.begin(Duration::ZERO);
        own.ask("halt");
        let path = own
            .data()
            .join(format!("{}-0/00000000000000000000.log", setup.input));
        let segment = fs::read(&path).expect("the segment");
        let [_, (first, last, at), ..] = batches(&segment)[..] else {
            panic!("three batches")
        };
        assert_eq!((first, last), (1, 5), "five messages in one batch");
        let place = at + 200;
        let file = fs::File::options()
            .write(true)
            .open(&path)
            .expect("the segment");
        file.write_all_at(&[segment[place] ^ 0x10], place as u64)
            .expect("it is written");
        own.ask("restart");
        wait_for("the broker", String::new, || {
            bernstream_kafka::topic::describe_topic(&kafka::at(&own.servers), &setup.input).ok()
        });
        stops_there_and_goes_on(&setup, first, last, 3000.0);
    }
}
