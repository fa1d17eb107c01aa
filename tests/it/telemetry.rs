//! What the default level tells: two neighbouring streams through a whole worker, the noise frozen, and everything that an
//! outsider can read is the same but for the values of the synopses.
//!
//! The worker is a process of its own with the real endpoints, scraped over HTTP, and the broker a mock, so that this runs
//! everywhere. `tests/it/neighbours.rs` compares the values, with a real broker.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream::cli::{run, runtime};
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_ledger::{Ledger, Paid};
use bernstream_noise::noise::Generator;
use bernstream_server::serve;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::Metrics;
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use bernstream_worker::telemetry;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use serde::{Deserialize, Serialize};

use crate::harness::{PATIENCE, wait_for};

/// Three windows of a minute from here, a second of grace, a second ahead, keys `a` and `b`.
const ORIGIN: &str = "2025-01-01T00:00:00Z";
const WINDOWS: usize = 3;
const SECOND: i64 = 1_000_000;

/// A record; its time in microseconds after the origin.
#[derive(Clone, Debug)]
struct Record {
    time: Option<i64>,
    key: Option<&'static str>,
    value: Option<f64>,
    user: Option<&'static str>,
}

/// A message; its timestamp in seconds after the origin. Without records it is broken as a message.
#[derive(Clone, Debug)]
struct Message {
    seconds: i64,
    records: Vec<Record>,
}

/// All that an outsider can read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// The endpoints before each window is drawn, and at the end.
    pages: Vec<String>,
    /// Key and headers of each message, in order.
    headers: Vec<(String, Vec<(String, String)>)>,
    /// Name and size of every file of the output.
    files: BTreeMap<String, u64>,
    /// Without the times, in the order of the alphabet: two threads write it.
    log: Vec<String>,
}

fn origin() -> i64 {
    Timestamp::parse(ORIGIN).expect("a time").micros()
}

fn record(seconds: i64, user: &'static str) -> Record {
    let key = if seconds % 2 == 0 { "a" } else { "b" };
    Record {
        time: Some(seconds * SECOND),
        key: Some(key),
        value: Some((seconds * 7 % 100) as f64),
        user: Some(user),
    }
}

/// Six messages a window, of four records each, in turn on two partitions.
fn base() -> Vec<Message> {
    let message = |number: i64| Message {
        seconds: 10 * (number + 1),
        records: ["anna", "bela", "cleo", "dora"]
            .iter()
            .zip(1..)
            .map(|(user, at)| record(10 * number + at, user))
            .collect(),
    };
    (0..6 * WINDOWS as i64).map(message).collect()
}

fn with(place: usize, message: Message) -> Vec<Message> {
    let mut stream = base();
    stream.insert(place, message);
    stream
}

/// The stream with one user's records more: one of them, or all that he has.
fn neighbours() -> Vec<(&'static str, Vec<Message>)> {
    let plain = record(61, "emil");
    let one = |record: Record| {
        let mut stream = base();
        stream[9].records.insert(2, record);
        stream
    };
    let of_its_own = |seconds| {
        with(
            9,
            Message {
                seconds,
                records: vec![plain.clone()],
            },
        )
    };
    // In every window and both keys, more than are taken of him; late, ahead and broken ones too.
    let mut all = base();
    for (number, message) in all.iter_mut().enumerate() {
        message
            .records
            .insert(number % 4, record(10 * number as i64 + 3, "emil"));
        message.records.push(Record {
            value: None,
            ..plain.clone()
        });
    }
    all.push(Message {
        seconds: 200,
        records: vec![plain.clone(); 300],
    });
    vec![
        ("a record more", one(plain.clone())),
        ("a message more", of_its_own(70)),
        ("a record that comes late", of_its_own(150)),
        (
            "a record before its time",
            one(Record {
                time: Some(170 * SECOND),
                ..plain.clone()
            }),
        ),
        (
            "a record of another century",
            one(Record {
                time: Some(i64::MAX / 2),
                ..plain.clone()
            }),
        ),
        (
            "a record without time, key or value",
            one(Record {
                time: None,
                key: None,
                value: None,
                ..plain.clone()
            }),
        ),
        (
            "a value that is no number",
            one(Record {
                value: Some(f64::NAN),
                ..plain.clone()
            }),
        ),
        (
            "a key that nobody declared",
            one(Record {
                key: Some("secret"),
                ..plain
            }),
        ),
        ("a user more, with all his records", all),
    ]
}

fn configuration(servers: &str, topic: &str, detail: &str, folder: &Path) -> String {
    format!(
        r#"
pipeline = "telemetry"

[input]
time = "time"
key = {{ column = "key", values = ["a", "b"] }}

[input.kafka]
brokers = "{servers}"
topic = "{topic}"
clock_slack = "200ms"
trust_producer_time = true

[windows]
origin = "{ORIGIN}"
length = "1m"
end = "{end}"
grace = "1s"
ahead = "1s"
publish_delay = "300ms"

[privacy]
unit = {{ user = {{ column = "user", per = "3m", max_records_per_window = 3 }} }}
adjacency = "add_remove"
epsilon = 2.0

[release]
name = "density"
epsilon = 1.0
degree = 10
order = 1
domain = [{{ column = "value", min = 0, max = 100, outside = "drop" }}]

[release.density]
bandwidths = [10]

[output]
files = {{ path = "{folder}/out" }}

[ledger]
path = "{folder}/ledger"

[serve]
listen = "127.0.0.1:0"
detail = "{detail}"
"#,
        end = Timestamp::from_micros(origin() + WINDOWS as i64 * 60 * SECOND),
        folder = folder.display(),
    )
}

fn encode(records: &[Record]) -> Vec<u8> {
    let times = records
        .iter()
        .map(|r| r.time.map(|time| origin().saturating_add(time)));
    let columns: [(&str, ArrayRef); 4] = [
        (
            "time",
            Arc::new(
                times
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        (
            "key",
            Arc::new(records.iter().map(|r| r.key).collect::<StringArray>()),
        ),
        (
            "value",
            Arc::new(records.iter().map(|r| r.value).collect::<Float64Array>()),
        ),
        (
            "user",
            Arc::new(records.iter().map(|r| r.user).collect::<StringArray>()),
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    );
    let batch = batch.expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// The settings in `folder`, at a mock broker.
fn settings(folder: &Path) -> WorkerSettings {
    let mut settings =
        WorkerSettings::load(&folder.join("bernstream.toml")).expect("a sound configuration");
    let InputParams::Kafka(input) = &mut settings.input else {
        panic!("records come from Kafka")
    };
    input.broker.is_mock = true;
    settings
}

/// Sends `stream`, in turn to both partitions.
fn send(settings: &WorkerSettings, stream: &[Message]) {
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    let mut config = input.broker.client_config().expect("settings");
    let producer: ThreadedProducer<DefaultProducerContext> =
        config.set("linger.ms", "0").create().expect("a producer");
    for (number, message) in stream.iter().enumerate() {
        let payload = if message.records.is_empty() {
            b"no Arrow".to_vec()
        } else {
            encode(&message.records)
        };
        let record = BaseRecord::<(), _>::to(&input.topic)
            .partition((number % 2) as i32)
            .payload(&payload);
        let record = record.timestamp(origin() / 1000 + 1000 * message.seconds);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// The key of a message, and its headers.
type Headers = (String, Vec<(String, String)>);

/// Writes down what passes.
struct Recorder {
    inner: Box<dyn Sink + Send>,
    headers: Arc<Mutex<Vec<Headers>>>,
}

impl Sink for Recorder {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        let headers = paid
            .iter()
            .map(Paid::encoded)
            .map(|sealed| (sealed.key.clone(), sealed.headers.clone()));
        self.headers
            .lock()
            .expect("one thread publishes")
            .extend(headers);
        self.inner.publish(paid)
    }
}

/// All endpoints, as they answer over HTTP; the headers of the answers but their time, too.
fn pages(address: &str) -> String {
    let page = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("somebody listens");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .expect("it is asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        // How many windows wait for one claim is a matter of time, not of records; the end shows them all. The length is
        // that of the text.
        let hidden = [
            "date:",
            "bernstream_synopses_published_total",
            "content-length:",
        ];
        let lines = answer
            .lines()
            .filter(|line| !hidden.iter().any(|hidden| line.starts_with(hidden)));
        format!("{path}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
    };
    ["/metrics", "/readyz", "/healthz"].map(page).concat()
}

fn files(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let about = entry.metadata().expect("a size");
        match about.is_dir() {
            true => found.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|(inner, size)| (format!("{name}/{inner}"), size)),
            ),
            false => drop(found.insert(name, about.len())),
        }
    }
    found
}

/// Not a test of its own: the worker that the tests below start.
#[test]
fn a_worker_with_frozen_noise() {
    let Ok(folder) = env::var("BERNSTREAM_TEST_FOLDER") else {
        return;
    };
    let folder = Path::new(&folder);
    telemetry::start_logging();
    let mut settings = settings(folder);
    // The broker has a port of its own in each run; without it all else can be compared byte for byte.
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    settings.normalised = settings.normalised.replace(&input.broker.servers, "broker");
    fs::create_dir_all(&settings.ledger.path).expect("a folder");
    let from = StartMode::From {
        from: Timestamp::parse(ORIGIN).expect("a time"),
        backfill_until: None,
    };
    let mut witness = settings.output.open_witness().expect("a witness");
    let mut genesis = components::first_row(&settings, &mut *witness, from, Timestamp::now())
        .expect("a beginning");
    genesis.ledger = "the-ledger".to_owned();
    drop(Ledger::create(&settings.ledger, genesis).expect("a ledger"));
    drop(witness);

    let plan = settings
        .plan(
            |release| run::noise_bands(release, &settings.ledger.path),
            false,
        )
        .expect("a plan");
    let metrics = Metrics::new(
        settings.detail,
        &settings.pipeline,
        "pure epsilon",
        "digest",
    )
    .expect("metrics");
    let health = Arc::new(Health::default());
    let runtime = runtime::start_runtime().expect("a runtime");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    listener.set_nonblocking(true).expect("it does not block");
    runtime.spawn(serve::probes::serve(
        listener,
        Arc::default(),
        metrics.clone(),
        health.clone(),
    ));

    let Components {
        readers,
        ledger,
        witness,
        sink,
    } = Components::open(&settings).expect("the components open");
    let headers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let stop = StopRequest::default();
    let mut window = 0;
    let worker = Worker {
        plan: &plan,
        readers,
        ledger,
        witness,
        sink: Box::new(Recorder {
            inner: sink,
            headers: headers.clone(),
        }),
        generators: Box::new({
            let address = address.clone();
            let seen = seen.clone();
            move || {
                seen.lock().expect("one thread draws").push(pages(&address));
                window += 1;
                Ok(Generator::frozen([window; 32]))
            }
        }),
        metrics: metrics.clone(),
        health: &health,
        stop: stop.clone(),
    };
    thread::scope(|scope| {
        // A worker that reads no further waits forever: the test tells it to stop.
        scope.spawn(|| {
            while !(stop.is_requested()
                || folder.join("stop").exists() && health.publishing.load(Relaxed))
            {
                thread::sleep(Duration::from_millis(20));
            }
            stop.request_stop();
        });
        worker.run_alone().expect("it works to the end of the grid");
        stop.request_stop();
    });
    let mut pages_seen = seen.lock().expect("it has ended").clone();
    pages_seen.push(pages(&address) + &metrics.render_text().expect("metrics"));
    let headers = headers.lock().expect("it has ended").clone();
    // How many windows one claim covers is a matter of time, not of records.
    let mut files = files(&folder.join("out"));
    *files.get_mut("witness").expect("the witness") = 0;
    let seen = Seen {
        pages: pages_seen,
        headers,
        files,
        log: Vec::new(),
    };
    fs::write(
        folder.join("seen.json"),
        serde_json::to_vec(&seen).expect("JSON"),
    )
    .expect("it is written");
}

/// What can be read of a worker that reads `stream`.
fn watch(stream: &[Message], detail: &str) -> Seen {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("input", 2, 1).expect("a topic");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = configuration(&cluster.bootstrap_servers(), "input", detail, folder.path());
    fs::write(folder.path().join("bernstream.toml"), text).expect("it is written");
    send(&settings(folder.path()), stream);
    let child = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "telemetry::a_worker_with_frozen_noise",
            "--nocapture",
        ])
        .env("BERNSTREAM_TEST_FOLDER", folder.path())
        // A slow worker says now and then how far it is, by the clock and the schedule.
        .env("BERNSTREAM_LOG", "bernstream::progress=warn")
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("log")).expect("a log"))
        .spawn();
    let mut child = child.expect("the worker runs");
    let log = || fs::read_to_string(folder.path().join("log")).expect("a log");
    let status = wait_for("the worker's end", log, || {
        if log().contains("reading has stopped") {
            fs::write(folder.path().join("stop"), "").expect("it is written");
        }
        child.try_wait().expect("it can be asked")
    });
    let log = log();
    assert!(status.success(), "{log}");
    let seen = fs::read(folder.path().join("seen.json")).expect("what was seen");
    let mut seen: Seen = serde_json::from_slice(&seen).expect("JSON");
    seen.log = log.lines().map(without_time).collect();
    seen.log.sort();
    seen
}

fn without_time(line: &str) -> String {
    let mut line: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).expect("a line of JSON");
    line.remove("timestamp").expect("a time");
    serde_json::Value::Object(line).to_string()
}

/// Several at a time: a worker mostly waits.
fn watch_all(streams: &[(&str, Vec<Message>)], detail: &str) -> Vec<Seen> {
    streams
        .chunks(4)
        .flat_map(|some| {
            thread::scope(|scope| {
                let watched: Vec<_> = some
                    .iter()
                    .map(|(_, stream)| scope.spawn(|| watch(stream, detail)))
                    .collect();
                watched
                    .into_iter()
                    .map(|watched| watched.join().expect("it was watched"))
                    .collect::<Vec<_>>()
            })
        })
        .collect()
}

#[test]
fn neighbouring_streams_look_the_same_at_the_default_level() {
    let streams: Vec<_> = [("base", base())].into_iter().chain(neighbours()).collect();
    let seen = watch_all(&streams, "safe");
    let base = &seen[0];
    // There is something to compare: two windows are paid for, the third is withheld.
    assert_eq!(base.pages.len(), 3, "{base:?}");
    let end = &base.pages[2];
    for line in [
        "windows_released_total{pipeline=\"telemetry\"} 2",
        "windows_withheld_total{pipeline=\"telemetry\"} 1",
    ] {
        assert!(end.contains(line), "{line}: {end}");
    }
    assert!(
        end.contains("ready; the budget of the current block is spent") && end.contains("alive"),
        "{end}"
    );
    assert!(
        end.contains("newest_window_withheld{reason=\"budget\",pipeline=\"telemetry\"} 1"),
        "{end}"
    );
    assert_eq!(
        (base.headers.len(), base.files.len()),
        (4, 5),
        "two windows of two keys, and the witness: {base:?}"
    );
    assert!(
        base.log.iter().any(|line| line.contains("window released")),
        "{:?}",
        base.log
    );
    for ((name, _), seen) in streams.iter().zip(&seen) {
        assert_eq!(seen, base, "{name}");
    }
}

/// The comparison notices what is not hidden: each of the records is counted at the operator's level.
#[test]
fn neighbouring_streams_differ_at_the_operators_level() {
    let streams: Vec<_> = [("base", base())].into_iter().chain(neighbours()).collect();
    let seen = watch_all(&streams, "operator");
    let counts = |seen: &Seen| {
        let lines = seen
            .pages
            .last()
            .expect("the end")
            .lines()
            .map(str::to_owned);
        lines
            .filter(|line| line.starts_with("bernstream_records_total"))
            .collect::<Vec<_>>()
    };
    assert!(
        counts(&seen[0])
            .iter()
            .any(|line| line.contains("fate=\"taken\"") && line.ends_with(" 72")),
        "{seen:?}"
    );
    assert!(
        seen[0]
            .pages
            .last()
            .expect("the end")
            .contains("bernstream_read_until_timestamp_seconds{"),
        "{seen:?}"
    );
    for ((name, _), seen_of) in streams.iter().zip(&seen).skip(1) {
        assert_ne!(counts(seen_of), counts(&seen[0]), "{name}");
    }
}

/// A limit that the README states: a message that is broken as a whole stops the reading, and everybody sees that.
#[test]
fn a_broken_message_shows() {
    let seen = watch(
        &with(
            9,
            Message {
                seconds: 100,
                records: Vec::new(),
            },
        ),
        "safe",
    );
    let end = seen.pages.last().expect("the end");
    assert!(end.contains("not ready: reading the input"), "{end}");
    assert!(
        end.contains("ready{part=\"input\",pipeline=\"telemetry\"} 0"),
        "{end}"
    );
    assert!(
        end.contains("ready{part=\"output\",pipeline=\"telemetry\"} 1"),
        "{end}"
    );
    assert!(
        seen.log
            .iter()
            .any(|line| line.contains("reading has stopped")),
        "{:?}",
        seen.log
    );
}

/// How many messages come before it is an exact count: the log says nothing of it, and neither does anything else.
#[test]
fn where_a_broken_message_is_does_not_show() {
    let broken = |place| {
        with(
            place,
            Message {
                seconds: 100,
                records: Vec::new(),
            },
        )
    };
    let mut seen = watch_all(&[("early", broken(9)), ("late", broken(11))], "safe");
    // Whether the first fetch brings the broken message is a matter of time.
    seen.iter_mut()
        .for_each(|seen| seen.log.retain(|line| !line.contains("reading the input")));
    assert!(
        seen[0]
            .log
            .iter()
            .any(|line| line.contains("reading has stopped")),
        "{:?}",
        seen[0].log
    );
    assert_eq!(seen[0].log, seen[1].log);
    let seen = watch_all(&[("early", broken(9)), ("late", broken(11))], "operator");
    assert_ne!(seen[0].log, seen[1].log, "operators are told where it is");
}
