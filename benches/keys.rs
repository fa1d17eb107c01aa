//! Many keys and many releases: from the cutoff of the last window to its last published synopsis, to a folder and to Kafka.
//!
//! `BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo bench --bench keys`; `BERNSTREAM_BENCH_KEYS=100,1000` and
//! `BERNSTREAM_BENCH_RELEASES=1` for others. Without a broker only to a folder.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, iter};

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::WorkerSettings;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_ledger::{Ledger, Paid};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use harness::kafka;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const ORIGIN: &str = "2025-01-01T00:00:00Z";
const WINDOWS: i64 = 4;
/// Records of a key in all windows together.
const RECORDS: usize = 40;
/// More synopses of a window are for a machine with more memory.
const MOST: usize = 10_000;

fn main() {
    let servers = env::var("BERNSTREAM_TEST_KAFKA").ok();
    println!(
        "{WINDOWS} windows, {RECORDS} records a key, 41 values; seconds from the first cutoff (all windows have the same)"
    );
    for releases in numbers("BERNSTREAM_BENCH_RELEASES", &[1, 100]) {
        for keys in numbers("BERNSTREAM_BENCH_KEYS", &[100, 1000, 10_000]) {
            if keys * releases > MOST.max(keys) {
                println!(
                    "{keys} keys, {releases} releases: left out, {} synopses a window",
                    keys * releases
                );
                continue;
            }
            for broker in iter::once(None).chain(servers.as_deref().map(Some)) {
                measure(broker, keys, releases);
            }
        }
    }
}

fn numbers(name: &str, otherwise: &[usize]) -> Vec<usize> {
    let Ok(text) = env::var(name) else {
        return otherwise.to_vec();
    };
    text.split(',')
        .map(|number| number.trim().parse().expect("a number"))
        .collect()
}

/// The times of a worker.
#[derive(Default)]
struct Times {
    /// When noise was drawn for each window.
    drawn: Vec<Instant>,
    /// When messages became durable, and how many.
    published: Vec<(Instant, usize)>,
}

/// Notes when messages are durable.
struct Timed {
    inner: Box<dyn Sink + Send>,
    times: Arc<Mutex<Times>>,
}

impl Sink for Timed {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        self.inner.publish(paid)?;
        self.times
            .lock()
            .expect("one thread publishes")
            .published
            .push((Instant::now(), paid.len()));
        Ok(())
    }

    fn confirm_place(&mut self) -> Result<(), sink::SinkError> {
        self.inner.confirm_place()
    }
}

fn measure(broker: Option<&str>, keys: usize, releases: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    write_input(folder.path(), keys);
    let text = configuration(broker, folder.path(), releases);
    let settings = WorkerSettings::parse(&text, "bench").expect("a sound configuration");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    settings
        .output
        .create_missing(settings.largest_synopsis(), &mut Vec::new())
        .expect("the output");
    let from = StartMode::From {
        from: Timestamp::parse(ORIGIN).expect("a time"),
        backfill_until: None,
    };
    let mut witness = settings.output.open_witness().expect("a witness");
    let genesis = components::first_row(&settings, &mut *witness, from, Timestamp::now())
        .expect("a beginning");
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), true)
        .expect("a plan");
    let Components {
        readers,
        ledger,
        witness,
        sink,
    } = Components::open(&settings).expect("the components open");
    let health = Health::default();
    let times = Arc::new(Mutex::new(Times::default()));
    let worker = Worker {
        plan: &plan,
        readers,
        ledger,
        witness,
        sink: Box::new(Timed {
            inner: sink,
            times: times.clone(),
        }),
        generators: Box::new({
            let times = times.clone();
            move || {
                times
                    .lock()
                    .expect("one thread draws")
                    .drawn
                    .push(Instant::now());
                Generator::from_entropy()
            }
        }),
        metrics: Metrics::new(MetricsDetail::Safe, "bench", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: StopRequest::default(),
    };
    let started = Instant::now();
    worker.run_alone().expect("it works to the end of the grid");
    let ended = Instant::now();
    let Times { drawn, published } = Arc::into_inner(times)
        .expect("it has ended")
        .into_inner()
        .expect("it has ended");
    let cutoff = *drawn.first().expect("a window was drawn for");
    let since = |moment: Instant| moment.duration_since(cutoff).as_secs_f64();
    let synopses: usize = published.iter().map(|(_, count)| count).sum();
    assert_eq!(synopses, keys * releases * WINDOWS as usize);
    let size = fs::metadata(settings.ledger.path.join("ledger.sqlite"))
        .expect("the ledger")
        .len();
    println!(
        "{keys} keys, {releases} releases to {}: {synopses} synopses; read in {:.2}; drawn for the last window {:.2}, first \
         published {:.2}, last {:.2}, ended {:.2}; {:.0} us a synopsis; the ledger has {} bytes a synopsis",
        if broker.is_some() { "Kafka" } else { "files" },
        cutoff.duration_since(started).as_secs_f64(),
        since(*drawn.last().expect("a window")),
        since(published.first().expect("a synopsis").0),
        since(published.last().expect("a synopsis").0),
        since(ended),
        since(ended) / synopses as f64 * 1e6,
        size / synopses as u64,
    );
}

fn key(number: usize) -> String {
    format!("key-{number:06}")
}

/// The records and the list of the keys.
fn write_input(folder: &Path, keys: usize) {
    let list: String = (0..keys).map(|number| key(number) + "\n").collect();
    fs::write(folder.join("keys.txt"), list).expect("it is written");
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let origin = Timestamp::parse(ORIGIN).expect("a time").micros();
    let mut batch = |rows: usize| {
        let times: Vec<i64> = (0..rows)
            .map(|_| origin + random.random_range(0..WINDOWS * 60_000_000))
            .collect();
        let values = (0..rows).map(|_| random.random_range(-5.0..105.0));
        let values: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
        let names = (0..rows).map(|_| key(random.random_range(0..keys)));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"));
        RecordBatch::try_from_iter([("time", times), ("x", values), ("key", names)])
            .expect("columns of one length")
    };
    let first = batch(1000);
    let file = File::create(folder.join("input.arrows")).expect("a file");
    let mut writer = StreamWriter::try_new(file, &first.schema()).expect("a writer");
    writer.write(&first).expect("it is written");
    for _ in 1..(keys * RECORDS).div_ceil(1000) {
        writer.write(&batch(1000)).expect("it is written");
    }
    writer.finish().expect("it ends");
}

fn configuration(broker: Option<&str>, folder: &Path, releases: usize) -> String {
    let shown = folder.display();
    let output = match broker {
        None => format!("files = {{ path = \"{shown}/out\" }}"),
        Some(servers) => format!(
            "[output.kafka]\nbrokers = \"{servers}\"\ntopic = \"{}\"\nwitness = \"{}\"\nwitness_min_insync_replicas = 1",
            kafka::fresh_name("keys"),
            kafka::fresh_name("witness"),
        ),
    };
    let release = |number: usize| {
        format!(
            "[[release]]\nname = \"density-{number}\"\nepsilon = 1.0\ndegree = 40\norder = 1\n\
             domain = [{{ column = \"x\", min = 0, max = 100, outside = \"clamp\" }}]\n\
             [release.density]\nbandwidths = [5]\n"
        )
    };
    let releases_text: String = (0..releases).map(release).collect();
    let output = if broker.is_some() {
        output
    } else {
        format!("[output]\n{output}")
    };
    let end = Timestamp::parse(ORIGIN)
        .expect("a time")
        .plus(Duration::from_secs(60 * WINDOWS.unsigned_abs()));
    format!(
        r#"
pipeline = "bench"
[input]
time = "time"
key = {{ column = "key", values_file = "{shown}/keys.txt" }}
files = {{ path = "{shown}/input.arrows" }}
[windows]
origin = "{ORIGIN}"
length = "1m"
end = "{end}"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = {releases}.0
{releases_text}
{output}
[ledger]
path = "{shown}/ledger"
"#
    )
}
