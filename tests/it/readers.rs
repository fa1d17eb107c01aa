//! Readers that share the partitions of a topic: whatever their number, the bytes that leave are the same.
//!
//! Whole workers on a real broker with the noise frozen: one reader, two and five of the same topic. `tests/properties/parts.rs` has
//! every kind of state, caps and readers that fall out.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::absorb;
use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_ledger::Ledger;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{AbsorberParams, Health, StopRequest, Worker};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::harness::{PATIENCE, kafka};

const ORIGIN: &str = "2025-01-01T00:00:00Z";
pub const WINDOWS: i64 = 4;
pub const PARTITIONS: i32 = 5;

/// A window's records of two keys and a few users, on five partitions, the same in every run.
pub fn send(servers: &str) -> String {
    send_at(servers, 0)
}

/// The same; the message timestamps go up and down by so many messages.
pub fn send_at(servers: &str, back: i64) -> String {
    send_rows(servers, back, 40, 1)
}

/// The same with so many rows in a message, and so many messages for one.
pub fn send_rows(servers: &str, back: i64, rows: usize, copies: usize) -> String {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "readers", PARTITIONS, &settings);
    let mut config = kafka::at(servers).client_config().expect("settings");
    config
        .set("enable.idempotence", "true")
        .set("linger.ms", "0");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    let mut random = ChaCha20Rng::seed_from_u64(3);
    for message in (0..12 * WINDOWS).flat_map(|message| std::iter::repeat_n(message, copies)) {
        let payload = message_of(origin().micros() + 5_000_000 * message, rows, &mut random);
        // One partition is empty in every second window.
        let partitions = if message / 12 % 2 == 0 {
            PARTITIONS
        } else {
            PARTITIONS - 1
        };
        let partition = random.random_range(0..partitions);
        let record = BaseRecord::<(), _>::to(&topic)
            .partition(partition)
            .payload(&payload);
        let step = if message % 2 == 0 { back } else { 0 };
        let record = record.timestamp(origin().micros() / 1000 + 5000 * (message + 1 + step));
        let mut sent = producer.send(record);
        // Many large messages fill its queue.
        while let Err((error, back)) = sent {
            assert_eq!(
                error.rdkafka_error_code(),
                Some(RDKafkaErrorCode::QueueFull),
                "{error}"
            );
            thread::sleep(Duration::from_millis(10));
            sent = producer.send(back);
        }
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    topic
}

/// Records as JSON, each a message, of the same times, keys and users; those of each window in a transaction, so that a mark of the
/// broker is the last of each partition.
pub fn send_json(servers: &str) -> String {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "json", PARTITIONS, &settings);
    let mut config = kafka::at(servers).client_config().expect("settings");
    config.set("transactional.id", &topic);
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    producer.init_transactions(PATIENCE).expect("transactions");
    let mut random = ChaCha20Rng::seed_from_u64(4);
    for window in 0..WINDOWS {
        producer.begin_transaction().expect("a transaction");
        for second in 60 * window..60 * (window + 1) {
            let time = origin().plus(Duration::from_secs(second.unsigned_abs()));
            let key = ["a", "b", "c"][random.random_range(0..3)];
            let user = random.random_range(0..25);
            let value = random.random_range(-5.0..105.0);
            let label = value / 2.0 + random.random_range(-10.0..10.0);
            let payload = format!(
                r#"{{"time":"{time}","key":"{key}","user":"u{user}","value":{value},"label":{label}}}"#
            );
            let record = BaseRecord::<(), _>::to(&topic)
                .partition(random.random_range(0..PARTITIONS))
                .payload(&payload);
            let record = record.timestamp(origin().micros() / 1000 + 1000 * (second + 1));
            producer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("it is queued");
        }
        producer
            .commit_transaction(PATIENCE)
            .expect("it is committed");
    }
    topic
}

/// One message of the five seconds from `second` after `start` on, to a partition.
pub fn message(servers: &str, topic: &str, partition: i32, (start, second): (Timestamp, i64)) {
    message_at(servers, topic, partition, (start, second), second + 5);
}

/// The same, sent at the second `sent`.
pub fn message_at(
    servers: &str,
    topic: &str,
    partition: i32,
    (start, second): (Timestamp, i64),
    sent: i64,
) {
    let producer: ThreadedProducer<DefaultProducerContext> = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a producer");
    let mut random = ChaCha20Rng::seed_from_u64(u64::from(partition.unsigned_abs()));
    let payload = message_of(start.micros() + 1_000_000 * second, 40, &mut random);
    let record = BaseRecord::<(), _>::to(topic)
        .partition(partition)
        .payload(&payload);
    let record = record.timestamp(start.micros() / 1000 + 1000 * sent);
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("it is queued");
    producer.flush(PATIENCE).expect("the broker takes it");
}

pub fn origin() -> Timestamp {
    Timestamp::parse(ORIGIN).expect("a time")
}

/// So many records of the five seconds from `start` on, in microseconds.
fn message_of(start: i64, rows: usize, random: &mut ChaCha20Rng) -> Vec<u8> {
    let times: Vec<i64> = (0..rows)
        .map(|_| start + random.random_range(0..5_000_000))
        .collect();
    let values: Vec<f64> = (0..rows)
        .map(|_| random.random_range(-5.0..105.0))
        .collect();
    let labels: Vec<f64> = values
        .iter()
        .map(|value| value / 2.0 + random.random_range(-10.0..10.0))
        .collect();
    let keys = (0..rows).map(|_| ["a", "b", "c"][random.random_range(0..3)]);
    let keys: StringArray = keys.map(Some).collect();
    let users: StringArray = (0..rows)
        .map(|_| Some(format!("u{}", random.random_range(0..25))))
        .collect();
    let columns: [(&str, ArrayRef); 5] = [
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
        ),
        ("key", Arc::new(keys)),
        ("user", Arc::new(users)),
        ("value", Arc::new(Float64Array::from(values))),
        ("label", Arc::new(Float64Array::from(labels))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// A density of each window, the sum of two, and a machine of the records of two windows, 30 of a key; three records of a user count.
pub fn configuration(servers: &str, topic: &str, folder: &Path, readers: u32) -> String {
    let domain = r#"domain = [{ column = "value", min = 0, max = 100, outside = "clamp" }]"#;
    format!(
        r#"
pipeline = "readers"

[input]
time = "time"
key = {{ column = "key", values = ["a", "b"] }}

[input.kafka]
brokers = "{servers}"
topic = "{topic}"
clock_slack = "200ms"
trust_producer_time = true
readers = {readers}

[windows]
origin = "{ORIGIN}"
length = "1m"
end = "{end}"
grace = "1s"
ahead = "1s"
publish_delay = "300ms"

[privacy]
unit = {{ user = {{ column = "user", per = "1d", max_records_per_window = 3 }} }}
adjacency = "add_remove"
epsilon = 100.0

[[release]]
name = "density"
epsilon = 1.0
degree = 10
order = 1
{domain}
[release.density]
bandwidths = [10]

[[release]]
name = "hopping"
epsilon = 1.0
degree = 10
order = 1
windows = {{ hopping = "2m" }}
{domain}
[release.density]
bandwidths = [10]

[[release]]
name = "machine"
epsilon = 1.0
degree = 8
order = 1
windows = {{ hopping = "2m" }}
label = {{ column = "label", above = 20 }}
{domain}
[release.machine]
loss = "hinge"
kernel = {{ gaussian = {{ bandwidth = 0.2 }} }}
c = 1
max_records = 30

[output]
files = {{ path = "{folder}/out" }}

[ledger]
path = "{folder}/ledger"
"#,
        end = end(origin(), 60),
        folder = folder.display(),
    )
}

/// The end of so many windows of so many seconds.
fn end(start: Timestamp, length: i64) -> Timestamp {
    Timestamp::from_micros(start.micros() + 1_000_000 * length * WINDOWS)
}

/// The same with windows of so many seconds from `start` on.
pub fn moved(text: &str, start: Timestamp, length: i64) -> String {
    let text = text.replace(
        &end(origin(), 60).to_string(),
        &end(start, length).to_string(),
    );
    let text = text.replace(ORIGIN, &start.to_string());
    text.replace("\"1m\"", &format!("\"{length}s\""))
        .replace("\"2m\"", &format!("\"{}s\"", 2 * length))
}

/// Every message that a worker with so many readers publishes, by its file.
fn published(servers: &str, topic: &str, readers: u32) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a folder");
    published_by(
        &configuration(servers, topic, folder.path(), readers),
        folder.path(),
        readers,
    )
}

/// Every message that a worker with this configuration publishes to a folder.
pub fn published_by(text: &str, folder: &Path, readers: u32) -> Vec<(String, Vec<u8>)> {
    let metrics =
        Metrics::new(MetricsDetail::Safe, "readers", "pure epsilon", "").expect("metrics");
    published_with(text, folder, readers, &metrics)
}

/// The same, by a worker with these metrics.
pub fn published_with(
    text: &str,
    folder: &Path,
    readers: u32,
    metrics: &Metrics,
) -> Vec<(String, Vec<u8>)> {
    let settings = WorkerSettings::parse(text, "readers").expect("a sound configuration");
    published_of(settings, folder, readers, metrics, |worker, absorbed| {
        (worker, absorbed)
    })
}

/// The same, by a worker with these settings, and whatever a test makes of it.
pub fn published_of(
    mut settings: WorkerSettings,
    folder: &Path,
    readers: u32,
    metrics: &Metrics,
    change: impl FnOnce(Worker<'_>, Option<AbsorberParams>) -> (Worker<'_>, Option<AbsorberParams>),
) -> Vec<(String, Vec<u8>)> {
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    settings.normalised = settings.normalised.replace(&input.topic, "input");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let from = StartMode::From {
        from: settings.windows.grid.origin(),
        backfill_until: None,
    };
    let mut witness = settings.output.open_witness().expect("a witness");
    let mut genesis = components::first_row(&settings, &mut *witness, from, Timestamp::now())
        .expect("a beginning");
    genesis.ledger = "the-ledger".to_owned();
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));
    drop(witness);
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), false)
        .expect("a plan");
    let components = Components::open(&settings).expect("the components open");
    // A broker may not know yet who leads a new topic: a worker tries again as well.
    let absorbed = loop {
        match absorb::open_absorbed(&settings) {
            Err(error) if error.is_transient => thread::sleep(Duration::from_millis(100)),
            opened => break opened.expect("it opens"),
        }
    };
    let expected = if absorbed.is_some() {
        0
    } else {
        readers.min(PARTITIONS.unsigned_abs()) as usize
    };
    assert_eq!(components.readers.len(), expected);
    // What no absorber sends is read by as many threads as all of it would be.
    let here = absorbed.as_ref().map_or(0, |absorbed| absorbed.own.len());
    assert_eq!(
        here + expected,
        readers.min(PARTITIONS.unsigned_abs()) as usize
    );
    let health = Health::default();
    let mut window = 0;
    let worker = Worker {
        plan: &plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(move || {
            window += 1;
            Ok(Generator::frozen([window; 32]))
        }),
        metrics: metrics.clone(),
        health: &health,
        stop: StopRequest::default(),
    };
    let (worker, absorbed) = change(worker, absorbed);
    worker
        .run_with_absorbers(absorbed)
        .expect("it works to the end of the grid");
    let mut found = Vec::new();
    let mut open = vec![folder.join("out")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
            continue;
        }
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".arrows") {
            let inside = path.strip_prefix(folder).expect("in the folder");
            found.push((
                inside.display().to_string(),
                fs::read(&path).expect("bytes"),
            ));
        }
    }
    found.sort();
    found
}

#[test]
fn what_leaves_does_not_depend_on_the_number_of_readers() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let one = published(&servers, &topic, 1);
    // Three releases of two keys in each window.
    assert_eq!(
        one.len(),
        6 * WINDOWS as usize,
        "{:?}",
        one.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    for readers in [2, 5, 9] {
        let others = published(&servers, &topic, readers);
        assert!(others == one, "{readers} readers publish the same");
    }
}
