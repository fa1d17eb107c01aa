//! The worker end to end, compared with only consuming and decoding Arrow from the same broker and topic in one run; and a
//! window of 10^4 lattice points from cutoff to sealed.
//!
//! `BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo bench --bench worker`; `BERNSTREAM_BENCH_ROWS` for more rows.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::components::{self, Components};
use bernstream::cli::run::bands;
use bernstream::clock::Timestamp;
use bernstream::config::Settings;
use bernstream::ledger::Ledger;
use bernstream::ledger::bootstrap::StartMode;
use bernstream::mechanism::noise::Generator;
use bernstream::metrics::{Detail, Metrics};
use bernstream::pipeline::{Health, Stop, Worker};
use bernstream::source::Batch;
use bernstream::synopsis::Synopsis;
use bernstream::window::Windows;
use harness::kafka;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

const ORIGIN: &str = "2025-01-01T00:00:00Z";
const MINUTES: i64 = 4;
const ROWS: usize = 1000;
const PARTITIONS: i32 = 2;
const ROUNDS: usize = 3;

fn main() {
    sealing();
    let Ok(servers) = env::var("BERNSTREAM_TEST_KAFKA") else {
        return println!("SKIPPED the worker: set BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start)");
    };
    let rows = env::var("BERNSTREAM_BENCH_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    println!("{rows} rows, {ROWS} a message; best of {ROUNDS} rounds; seconds, and the ratio bare : worker");
    for axes in 1..=2 {
        for has_keys in [false, true] {
            compare(&servers, axes, has_keys, rows);
        }
    }
}

fn compare(servers: &str, axes: usize, has_keys: bool, rows: usize) {
    let settings =
        [("message.timestamp.type", "LogAppendTime"), ("message.timestamp.after.max.ms", "9223372036854775807")];
    let topic = kafka::fresh_topic(servers, "bench", PARTITIONS, &settings);
    let bytes = send(servers, &topic, axes, has_keys, rows / ROWS);
    let sent = Timestamp::now().plus(Duration::from_millis(100));
    thread::sleep(Duration::from_secs(2));
    let mut best = [f64::INFINITY; 3];
    for _ in 0..ROUNDS {
        let bare = bare(servers, &topic, rows);
        let (read, published) = worker(servers, &topic, axes, has_keys, sent);
        for (best, time) in best.iter_mut().zip([bare, read, published]) {
            *best = best.min(time.as_secs_f64());
        }
    }
    let [bare, read, published] = best;
    println!(
        "{axes}-D, {} keys ({:.0} MB): bare {bare:.3}, worker {read:.3} to the first cut ({:.0} %), {published:.3} to the last \
         synopsis ({:.0} %); {:.1} million rows a second",
        if has_keys { "two" } else { "no" },
        bytes as f64 / 1e6,
        100.0 * bare / read,
        100.0 * bare / published,
        rows as f64 / published / 1e6,
    );
    drop_topic(servers, &topic);
}

fn message(axes: usize, has_keys: bool, random: &mut ChaCha20Rng) -> Vec<u8> {
    let origin = Timestamp::parse(ORIGIN).expect("a time").micros();
    // Event times follow the stream: a window takes many consecutive messages.
    let minute = origin + 60_000_000 * random.random_range(0..MINUTES);
    let times: Vec<i64> = (0..ROWS).map(|_| minute + random.random_range(0..60_000_000)).collect();
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("time", Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")))];
    for name in &["x", "y"][..axes] {
        let values = (0..ROWS).map(|_| random.random_range(-5.0..105.0));
        columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
    }
    if has_keys {
        let keys = (0..ROWS).map(|_| if random.random_bool(0.5) { "JFK" } else { "LGA" });
        columns.push(("key", Arc::new(StringArray::from_iter_values(keys))));
    }
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

fn send(servers: &str, topic: &str, axes: usize, has_keys: bool, messages: usize) -> usize {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let payloads: Vec<_> = (0..64).map(|_| message(axes, has_keys, &mut random)).collect();
    let mut config = kafka::at(servers).client_config().expect("settings");
    config.set("enable.idempotence", "true").set("batch.size", "900000").set("linger.ms", "20");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    let mut bytes = 0;
    for (number, payload) in payloads.iter().cycle().take(messages).enumerate() {
        bytes += payload.len();
        let mut record = BaseRecord::<(), _>::to(topic).partition(number as i32 % PARTITIONS).payload(payload);
        while let Err((error, back)) = producer.send(record) {
            assert!(matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)), "{error}");
            thread::sleep(Duration::from_millis(5));
            record = back;
        }
    }
    producer.flush(Duration::from_secs(60)).expect("the broker takes it");
    bytes
}

/// Consumes and decodes every message and does nothing with it; the consumer has the settings of the worker's.
fn bare(servers: &str, topic: &str, rows: usize) -> Duration {
    let started = Instant::now();
    let consumer: BaseConsumer = kafka::at(servers)
        .client_config()
        .expect("settings")
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("check.crcs", "true")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.queue.backoff.ms", "10")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Offset(0)).expect("a partition");
    }
    consumer.assign(&list).expect("assigned");
    let mut seen = 0;
    while seen < rows / ROWS * ROWS {
        let message = consumer.poll(Duration::from_secs(10)).expect("in time").expect("no error");
        let reader = StreamReader::try_new(Cursor::new(message.payload().expect("a payload")), None).expect("a stream");
        for batch in reader {
            seen += black_box(batch.expect("a batch")).num_rows();
        }
    }
    started.elapsed()
}

fn configuration(servers: &str, topic: &str, folder: &Path, axes: usize, has_keys: bool, degree: u32) -> String {
    let key = if has_keys { r#"key = { column = "key", values = ["JFK", "LGA"] }"# } else { "" };
    let axis = |name| format!(r#"{{ column = "{name}", min = 0, max = 100, outside = "clamp" }}"#);
    let domain = ["x", "y"][..axes].iter().map(axis).collect::<Vec<_>>().join(", ");
    let bandwidths = ["5", "5"][..axes].join(", ");
    format!(
        r#"
pipeline = "bench"
[input]
time = "time"
{key}
[input.kafka]
brokers = "{servers}"
topic = "{topic}"
clock_slack = "200ms"
[windows]
origin = "{ORIGIN}"
length = "1m"
end = "2025-01-01T00:0{MINUTES}:00Z"
grace = "1s"
ahead = "1s"
publish_delay = "300ms"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1.0
[release]
name = "density"
epsilon = 1.0
degree = {degree}
order = 1
domain = [{domain}]
[release.density]
bandwidths = [{bandwidths}]
[output]
files = {{ path = "{folder}/out" }}
[ledger]
path = "{folder}/ledger"
"#,
        folder = folder.display(),
    )
}

/// A whole worker: the time until the noise of the first window is drawn, when all has been read, and until all is published.
fn worker(servers: &str, topic: &str, axes: usize, has_keys: bool, sent: Timestamp) -> (Duration, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(servers, topic, folder.path(), axes, has_keys, 20);
    let settings = Settings::parse(&text, "bench").expect("a sound configuration");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let from = StartMode::From { from: Timestamp::parse(ORIGIN).expect("a time"), backfill_until: Some(sent) };
    let mut witness = settings.output.open_witness().expect("a witness");
    let genesis = components::genesis(&settings, &mut *witness, from, Timestamp::now()).expect("a beginning");
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));
    let plan = settings.plan(|release| bands(release, &settings.ledger.path), true).expect("a plan");
    let Components { source, ledger, witness, sink } = Components::open(&settings).expect("the components open");
    let health = Health::default();
    let first = Arc::new(Mutex::new(None));
    let worker = Worker {
        plan: &plan,
        source,
        ledger,
        witness,
        sink,
        generators: Box::new({
            let first = first.clone();
            move || {
                first.lock().expect("one thread draws").get_or_insert_with(Instant::now);
                Generator::from_entropy()
            }
        }),
        metrics: Metrics::new(Detail::Safe, "bench", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: Stop::default(),
    };
    let started = Instant::now();
    worker.run().expect("it works to the end of the grid");
    let ended = started.elapsed();
    let first = first.lock().expect("it has ended").expect("a window was drawn for");
    (first.duration_since(started), ended)
}

fn drop_topic(servers: &str, topic: &str) {
    let admin: AdminClient<DefaultClientContext> =
        kafka::at(servers).client_config().expect("settings").create().expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dropped = runtime.block_on(admin.delete_topics(&[topic], &AdminOptions::new()));
    assert!(dropped.is_ok_and(|topics| topics.iter().all(Result::is_ok)), "the topic is dropped");
}

/// A closed window of 10^4 lattice points: evaluate, draw, describe, seal.
fn sealing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration("localhost:9", "topic", folder.path(), 2, false, 99);
    let settings = Settings::parse(&text, "bench").expect("a sound configuration");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let plan = settings.plan(|release| bands(release, &settings.ledger.path), true).expect("a plan");
    let variant = plan.releases[0].variants.first();
    let mut random = ChaCha20Rng::seed_from_u64(2);
    let first = plan.rules.grid.span_of(Timestamp::parse(ORIGIN).expect("a time"));
    let mut windows = Windows::new(plan.rules.clone(), vec![plan.releases[0].form.clone()], first.start, first, None);
    let mut values = || (0..10_000).map(|_| random.random_range(-5.0..105.0)).collect::<Vec<f64>>();
    windows.absorb(&Batch {
        partition: 0,
        offset: 0,
        message_time: None,
        times: Int64Array::from_value(first.start.micros(), 10_000),
        keys: None,
        units: None,
        values: vec![Float64Array::from(values()), Float64Array::from(values())],
    });
    let window = windows.close();
    let mut times: Vec<Duration> = (0..50)
        .map(|seed| {
            let started = Instant::now();
            let exact = variant.target.evaluate(&window.forms[0][0].accumulator);
            let noisy = variant.mechanism.release(&exact, &mut Generator::frozen([seed; 32]));
            let synopsis =
                Synopsis::new(plan.releases[0].description().clone(), variant.dequantize(&noisy)).expect("a synopsis");
            black_box(synopsis.seal().expect("sealed"));
            started.elapsed()
        })
        .collect();
    times.sort();
    println!("cut to sealed, 2-D, k = 99 (10^4 points): {:?} in the middle, {:?} at most", times[25], times[49]);
}
