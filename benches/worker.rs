//! The worker end to end, compared with only consuming and decoding Arrow from the same broker and topic in one run; and a
//! window of 10^4 lattice points from cutoff to sealed.
//!
//! `BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo bench --bench worker`. `BERNSTREAM_BENCH_ROWS` for other than 20 million rows,
//! `BERNSTREAM_BENCH_ALL=1` for every combination, `BERNSTREAM_BENCH_ONLY="2-D, 2 keys"` for those whose name has these words.
//!
//! CPU is that of this process, not of the broker, in ticks of the kernel (10 ms) over all rounds: with fewer rows it says nothing.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::WorkerSettings;
use bernstream_ledger::Ledger;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_noise::noise::Generator;
use bernstream_release::source::Batch;
use bernstream_release::window::WindowStore;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
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
const PARTITIONS: i32 = 2;
const ROUNDS: u32 = 3;
/// Ticks a second of the CPU times that the kernel tells.
const TICKS: f64 = 100.0;

/// What is in a topic.
#[derive(Clone, Copy, PartialEq)]
struct Content {
    axes: usize,
    keys: usize,
    /// Rows a message.
    rows: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Function {
    Density,
    Regression,
    Moments,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::Density => "density",
            Function::Regression => "regression",
            Function::Moments => "moments",
        }
    }
}

/// The combinations that are measured, by topic.
fn cases(is_all: bool) -> Vec<(Content, Vec<(Function, u32)>)> {
    use Function::{Density, Moments, Regression};
    let mut cases = Vec::new();
    for axes in [1, 2] {
        for keys in [0, 2, 1000] {
            for rows in [1000, 20_000] {
                // A regression has its label in the second column.
                let others: &[Function] = if axes == 2 {
                    &[Regression, Moments]
                } else {
                    &[Moments]
                };
                let functions = match (keys, rows) {
                    _ if is_all => [&[Density], others].concat(),
                    (0, 1000) => [&[Density], others].concat(),
                    (_, 1000) => vec![Density],
                    (0, _) if axes == 1 => vec![Density],
                    _ => continue,
                };
                let runs = functions
                    .into_iter()
                    .flat_map(|function| [1, 2].map(|readers| (function, readers)));
                cases.push((Content { axes, keys, rows }, runs.collect()));
            }
        }
    }
    cases
}

fn main() {
    sealing();
    let Ok(servers) = env::var("BERNSTREAM_TEST_KAFKA") else {
        return println!("SKIPPED the worker: set BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start)");
    };
    let rows = env::var("BERNSTREAM_BENCH_ROWS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000_000);
    let only = env::var("BERNSTREAM_BENCH_ONLY").unwrap_or_default();
    let is_all = env::var("BERNSTREAM_BENCH_ALL").is_ok();
    println!(
        "{rows} rows; the best wall time of {ROUNDS} rounds in seconds, and the mean CPU time in nanoseconds a row"
    );
    println!(
        "| | bare: seconds, CPU | to the first cutoff: seconds, CPU over bare | to the last synopsis: seconds, CPU over bare |"
    );
    println!("|---|---|---|---|");
    for (content, runs) in cases(is_all) {
        let named: Vec<_> = runs
            .into_iter()
            .map(|run| (run, name(content, run)))
            .filter(|(_, name)| name.contains(&only))
            .collect();
        if !named.is_empty() {
            compare(&servers, content, &named, rows);
        }
    }
}

fn name(Content { axes, keys, rows }: Content, (function, readers): (Function, u32)) -> String {
    format!(
        "{axes}-D, {keys} keys, {rows} rows a message, {}, {readers} readers",
        function.name()
    )
}

fn compare(servers: &str, content: Content, runs: &[((Function, u32), String)], rows: usize) {
    let settings = [
        ("message.timestamp.type", "LogAppendTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "bench", PARTITIONS, &settings);
    let messages = rows.div_ceil(content.rows);
    send(servers, &topic, content, messages);
    let sent = Timestamp::now().plus(Duration::from_millis(100));
    thread::sleep(Duration::from_secs(2));
    let rows = messages * content.rows;
    let bare = best(|| vec![bare(servers, &topic, rows)]);
    let cpu = |spent: &Spent| 1e9 * spent.cpu / rows as f64;
    for ((function, readers), name) in runs {
        let worked = best(|| worker(servers, &topic, content, *function, *readers, sent));
        let bare = &bare[0];
        let first = &worked[0];
        let published = &worked[1];
        let over = |spent: &Spent| {
            let part = 100.0 * bare.wall / spent.wall;
            format!(
                "{:.3} ({part:.0} %), {:+.1}",
                spent.wall,
                cpu(spent) - cpu(bare)
            )
        };
        println!(
            "| {name} | {:.3}, {:.1} | {} | {} |",
            bare.wall,
            cpu(bare),
            over(first),
            over(published)
        );
    }
    drop_topic(servers, &topic);
}

/// Seconds of the clock and of the processors.
#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    cpu: f64,
}

/// Of several rounds of the same stages, for each stage the least time and the mean CPU.
fn best(mut round: impl FnMut() -> Vec<Spent>) -> Vec<Spent> {
    let mut best = round();
    for _ in 1..ROUNDS {
        for (best, spent) in best.iter_mut().zip(round()) {
            *best = Spent {
                wall: best.wall.min(spent.wall),
                cpu: best.cpu + spent.cpu,
            };
        }
    }
    best.into_iter()
        .map(|spent| Spent {
            cpu: spent.cpu / f64::from(ROUNDS),
            ..spent
        })
        .collect()
}

/// When something began.
#[derive(Clone, Copy)]
struct Start {
    wall: Instant,
    cpu: f64,
}

impl Start {
    fn now() -> Self {
        Start {
            wall: Instant::now(),
            cpu: cpu(),
        }
    }

    fn spent(self) -> Spent {
        Spent {
            wall: self.wall.elapsed().as_secs_f64(),
            cpu: cpu() - self.cpu,
        }
    }
}

/// What all threads of this process have used of the processors so far, in seconds; those that have ended too.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, can have spaces.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

fn message(Content { axes, keys, rows }: Content, random: &mut ChaCha20Rng) -> Vec<u8> {
    let origin = Timestamp::parse(ORIGIN).expect("a time").micros();
    // Event times follow the stream: a window takes many consecutive messages.
    let minute = origin + 60_000_000 * random.random_range(0..MINUTES);
    let times: Vec<i64> = (0..rows)
        .map(|_| minute + random.random_range(0..60_000_000))
        .collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![(
        "time",
        Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
    )];
    for name in &["x", "y"][..axes] {
        let values = (0..rows).map(|_| random.random_range(-5.0..105.0));
        columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
    }
    if keys > 0 {
        let keys = (0..rows).map(|_| key(random.random_range(0..keys)));
        columns.push(("key", Arc::new(StringArray::from_iter_values(keys))));
    }
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

fn key(number: usize) -> String {
    format!("key-{number:04}")
}

fn send(servers: &str, topic: &str, content: Content, messages: usize) {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let payloads: Vec<_> = (0..64).map(|_| message(content, &mut random)).collect();
    let mut config = kafka::at(servers).client_config().expect("settings");
    config
        .set("enable.idempotence", "true")
        .set("batch.size", "900000")
        .set("linger.ms", "20");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    for (number, payload) in payloads.iter().cycle().take(messages).enumerate() {
        let mut record = BaseRecord::<(), _>::to(topic)
            .partition(number as i32 % PARTITIONS)
            .payload(payload);
        while let Err((error, back)) = producer.send(record) {
            assert!(
                matches!(
                    error,
                    KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)
                ),
                "{error}"
            );
            thread::sleep(Duration::from_millis(5));
            record = back;
        }
    }
    producer
        .flush(Duration::from_secs(60))
        .expect("the broker takes it");
}

/// Consumes and decodes every message and does nothing with it; the consumer has the settings of the worker's.
fn bare(servers: &str, topic: &str, rows: usize) -> Spent {
    let started = Start::now();
    let consumer: BaseConsumer = kafka::at(servers)
        .client_config()
        .expect("settings")
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("check.crcs", "false")
        .set("fetch.wait.max.ms", "100")
        .set("fetch.queue.backoff.ms", "10")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        list.add_partition_offset(topic, partition, Offset::Offset(0))
            .expect("a partition");
    }
    consumer.assign(&list).expect("assigned");
    let mut seen = 0;
    while seen < rows {
        let message = consumer
            .poll(Duration::from_secs(10))
            .expect("in time")
            .expect("no error");
        let reader =
            StreamReader::try_new(Cursor::new(message.payload().expect("a payload")), None)
                .expect("a stream");
        for batch in reader {
            seen += black_box(batch.expect("a batch")).num_rows();
        }
    }
    started.spent()
}

fn configuration(
    (servers, topic): (&str, &str),
    folder: &Path,
    content: Content,
    (function, readers): (Function, u32),
    degree: u32,
) -> String {
    let key = match content.keys {
        0 => String::new(),
        keys => format!(
            "key = {{ column = \"key\", values = {:?} }}",
            (0..keys).map(key).collect::<Vec<_>>()
        ),
    };
    let axis = |name| format!(r#"{{ column = "{name}", min = 0, max = 100, outside = "clamp" }}"#);
    let axes = if function == Function::Regression {
        1
    } else {
        content.axes
    };
    let domain = ["x", "y"][..axes]
        .iter()
        .map(axis)
        .collect::<Vec<_>>()
        .join(", ");
    let bandwidths = ["5", "5"][..axes].join(", ");
    let lattice = format!("degree = {degree}\norder = 1");
    let function = match function {
        Function::Density => format!("{lattice}\n[release.density]\nbandwidths = [{bandwidths}]"),
        Function::Moments => "[release.moments]\nfrequencies = 6".to_owned(),
        Function::Regression => {
            let label = axis(&"y");
            format!(
                "{lattice}\nlabel = {label}\n[release.regression]\nbandwidth = 5\ngap = 0.5\nmax_records = 10000"
            )
        }
    };
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
readers = {readers}
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
name = "bench"
epsilon = 1.0
domain = [{domain}]
{function}
[output]
files = {{ path = "{folder}/out" }}
[ledger]
path = "{folder}/ledger"
"#,
        folder = folder.display(),
    )
}

/// A whole worker: until the noise of the first window is drawn, when all has been read, and until all is published.
fn worker(
    servers: &str,
    topic: &str,
    content: Content,
    function: Function,
    readers: u32,
    sent: Timestamp,
) -> Vec<Spent> {
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(
        (servers, topic),
        folder.path(),
        content,
        (function, readers),
        20,
    );
    let settings = WorkerSettings::parse(&text, "bench").expect("a sound configuration");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let from = StartMode::From {
        from: Timestamp::parse(ORIGIN).expect("a time"),
        backfill_until: Some(sent),
    };
    let mut witness = settings.output.open_witness().expect("a witness");
    let genesis = components::first_row(&settings, &mut *witness, from, Timestamp::now())
        .expect("a beginning");
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), true)
        .expect("a plan");
    let Components {
        readers: shares,
        ledger,
        witness,
        sink,
    } = Components::open(&settings).expect("the components open");
    let health = Health::default();
    let started = Start::now();
    let first = Arc::new(Mutex::new(None));
    let worker = Worker {
        plan: &plan,
        readers: shares,
        ledger,
        witness,
        sink,
        generators: Box::new({
            let first = first.clone();
            move || {
                first
                    .lock()
                    .expect("one thread draws")
                    .get_or_insert_with(|| started.spent());
                Generator::from_entropy()
            }
        }),
        metrics: Metrics::new(MetricsDetail::Safe, "bench", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: StopRequest::default(),
    };
    worker.run_alone().expect("it works to the end of the grid");
    let ended = started.spent();
    let first = first
        .lock()
        .expect("it has ended")
        .expect("a window was drawn for");
    vec![first, ended]
}

fn drop_topic(servers: &str, topic: &str) {
    let admin: AdminClient<DefaultClientContext> = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let dropped = runtime.block_on(admin.delete_topics(&[topic], &AdminOptions::new()));
    assert!(
        dropped.is_ok_and(|topics| topics.iter().all(Result::is_ok)),
        "the topic is dropped"
    );
}

/// A closed window of 10^4 lattice points: evaluate, draw, describe, seal.
fn sealing() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = Content {
        axes: 2,
        keys: 0,
        rows: 10_000,
    };
    let text = configuration(
        ("localhost:9", "topic"),
        folder.path(),
        content,
        (Function::Density, 1),
        99,
    );
    let settings = WorkerSettings::parse(&text, "bench").expect("a sound configuration");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), true)
        .expect("a plan");
    let variant = plan.releases[0].variants.first();
    let mut random = ChaCha20Rng::seed_from_u64(2);
    let first = plan
        .rules
        .grid
        .span_of(Timestamp::parse(ORIGIN).expect("a time"));
    let mut windows = WindowStore::new(
        plan.rules.clone(),
        vec![plan.releases[0].form.clone()],
        first.start,
        first,
        None,
    );
    let mut values = || {
        (0..10_000)
            .map(|_| random.random_range(-5.0..105.0))
            .collect::<Vec<f64>>()
    };
    windows.absorb_batch(&Batch {
        partition: 0,
        offset: 0,
        message_time: None,
        times: Int64Array::from_value(first.start.micros(), 10_000),
        keys: None,
        units: None,
        values: vec![Float64Array::from(values()), Float64Array::from(values())],
        found: None,
    });
    let window = windows.close_next();
    let mut times: Vec<Duration> = (0..50)
        .map(|seed| {
            let started = Instant::now();
            let exact = variant.target.evaluate(&window.forms[0][0].accumulator);
            let noisy = variant
                .mechanism
                .release_noisy(&exact, &mut Generator::frozen([seed; 32]));
            let synopsis = Synopsis::new(
                plan.releases[0].description().clone(),
                variant.dequantize(&noisy).into_values(),
            )
            .expect("a synopsis");
            black_box(synopsis.encode().expect("sealed"));
            started.elapsed()
        })
        .collect();
    times.sort();
    println!(
        "cut to sealed, 2-D, k = 99 (10^4 points): {:?} in the middle, {:?} at most",
        times[25], times[49]
    );
}
