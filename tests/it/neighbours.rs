//! Neighbouring streams with the noise frozen: one record more changes the window and key that it belongs to, by no more
//! than the sensitivity, and nothing else that anyone can see.
//!
//! Both streams go through a whole worker: a real broker, a real ledger, witness and folder. The worker is a process of
//! its own, so that its log can be read as it was written. Here is what only a broker can show: timestamps and offsets that it
//! gives, and a message more on its way. `tests/properties/neighbours.rs` has all other neighbours, of every configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_ledger::{Ledger, Paid};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use bernstream_worker::telemetry;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use serde::{Deserialize, Serialize};

use crate::harness::{PATIENCE, kafka};

mod forms;

use self::forms::Form;

/// Three windows of a minute from here, a second of grace, a second ahead, keys `a` and `b`.
const ORIGIN: &str = "2025-01-01T00:00:00Z";
const WINDOWS: usize = 3;
/// A key that becomes bytes which are not UTF-8 on the way.
const NOT_TEXT: &str = "?not-text?";

/// A record; its time in microseconds after the origin.
#[derive(Clone, Debug)]
struct Record {
    time: Option<i64>,
    key: Option<&'static str>,
    value: Option<f64>,
}

/// A message; its timestamp in milliseconds after the origin.
#[derive(Clone, Debug)]
struct Message {
    partition: i32,
    millis: i64,
    records: Vec<Record>,
}

/// A message as it is sent; its timestamp in milliseconds after the origin.
#[derive(Clone, Debug)]
struct Sent {
    partition: i32,
    millis: i64,
    payload: Option<Vec<u8>>,
}

/// One record more.
struct Case {
    name: &'static str,
    stream: Vec<Sent>,
    /// What becomes of it, by the name in the operator's metrics.
    fate: &'static str,
    /// Whether the synopses of its window change.
    is_seen: bool,
}

/// All that a worker shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Shown {
    published: Vec<Published>,
    /// The metrics at each draw, and at the end.
    metrics: Vec<String>,
    /// Without the times, in the order of the alphabet: two threads write it.
    log: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Published {
    key: String,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
}

fn origin() -> i64 {
    Timestamp::parse(ORIGIN).expect("a time").micros()
}

/// Six messages a window, in turn on two partitions, eight records each.
fn base() -> Vec<Message> {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let message = |number: i64| Message {
        partition: i32::try_from(number % 2).expect("0 or 1"),
        millis: 10_000 * (number + 1),
        records: (0..8)
            .map(|_| Record {
                time: Some(10_000_000 * number + random.random_range(100_000..10_000_000)),
                key: Some(if random.random_bool(0.5) { "a" } else { "b" }),
                value: Some(random.random_range(0.0..100.0)),
            })
            .collect(),
    };
    (0..6 * WINDOWS as i64).map(message).collect()
}

/// Where the odd record goes: within the second window, behind and before others.
const PLACE: usize = 9;

/// A record more in the middle of a message.
fn with_row(record: Record) -> Vec<Message> {
    let mut stream = base();
    stream[PLACE].records.insert(4, record);
    stream
}

/// A message more, of one record: everything behind it in its partition moves on by an offset.
fn with_message(millis: i64, record: Record) -> Vec<Message> {
    let mut stream = base();
    stream.insert(
        PLACE,
        Message {
            partition: 0,
            millis,
            records: vec![record],
        },
    );
    stream
}

/// Messages as they are sent: whole, or a record each.
fn sent(form: Form, stream: &[Message]) -> Vec<Sent> {
    let one = |message: &Message| {
        let Message {
            partition, millis, ..
        } = *message;
        form.payloads(&message.records)
            .map(move |payload| Sent {
                partition,
                millis,
                payload: Some(payload),
            })
            .collect()
    };
    stream
        .iter()
        .flat_map(|message| -> Vec<Sent> { one(message) })
        .collect()
}

/// A message that is no record, in the middle of the second window.
fn with_odd(form: Form, payload: Option<Vec<u8>>) -> Vec<Sent> {
    let mut stream = sent(form, &base());
    stream.insert(
        8 * PLACE + 4,
        Sent {
            partition: 0,
            millis: 95_000,
            payload,
        },
    );
    stream
}

/// A record more, and what becomes of it by the timestamp that the broker keeps.
fn records_more(form: Form) -> Vec<Case> {
    let plain = Record {
        time: Some(95_000_000),
        key: Some("a"),
        value: Some(50.0),
    };
    let row = |name, fate, record| Case {
        name,
        stream: sent(form, &with_row(record)),
        fate,
        is_seen: fate == "taken",
    };
    let bent = |name, fate, millis| {
        let stream = sent(form, &with_message(millis, plain.clone()));
        Case {
            name,
            stream,
            fate,
            is_seen: fate == "taken",
        }
    };
    vec![
        row("plain", "taken", plain.clone()),
        row(
            "null value",
            "missing",
            Record {
                value: None,
                ..plain.clone()
            },
        ),
        row(
            "a key that is not UTF-8",
            form.fate_of_a_key_that_is_not_text(),
            Record {
                key: Some(NOT_TEXT),
                ..plain.clone()
            },
        ),
        row(
            "the last time there is",
            "closed",
            Record {
                time: Some(i64::MAX - origin()),
                ..plain.clone()
            },
        ),
        bent("a message of its own", "taken", 100_000),
        bent("message timestamp in 1970", "ahead", 1 - origin() / 1000),
        bent("message timestamp in 9999", "late", 251_000_000_000_000),
        bent("message timestamp at the cutoff", "late", 121_000),
        bent("message timestamp just before the cutoff", "taken", 120_999),
    ]
}

fn configuration(servers: &str, topic: &str, folder: &Path, form: Form) -> String {
    let (time_format, kind, format) = form.declared(folder);
    format!(
        r#"
pipeline = "neighbours"

[input]
time = "time"
{time_format}
key = {{ column = "key", {kind} values = ["a", "b"] }}

[input.kafka]
brokers = "{servers}"
topic = "{topic}"
{format}
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
unit = "record"
adjacency = "add_remove"
epsilon = 3.0

[release]
name = "density"
epsilon = 1.0
degree = 10
order = 1
domain = [{{ column = "value", min = 0, max = 100, outside = "clamp" }}]

[release.density]
bandwidths = [10]

[output]
files = {{ path = "{folder}/out" }}

[ledger]
path = "{folder}/ledger"
"#,
        end = Timestamp::from_micros(origin() + WINDOWS as i64 * 60_000_000),
        folder = folder.display(),
    )
}

/// A topic that carries the producer's timestamps, whatever they are, with all of `stream`.
fn send(servers: &str, stream: &[Sent]) -> String {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "neighbours", 2, &settings);
    let mut config = kafka::at(servers).client_config().expect("settings");
    config
        .set("enable.idempotence", "true")
        .set("linger.ms", "0");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    for message in stream {
        let record = BaseRecord::<(), _>::to(&topic).partition(message.partition);
        let record = match &message.payload {
            Some(payload) => record.payload(payload),
            None => record,
        };
        let record = record.timestamp(origin() / 1000 + message.millis);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    assert_eq!(producer.in_flight_count(), 0);
    topic
}

/// Writes down what passes.
struct Recorder {
    inner: Box<dyn Sink + Send>,
    published: Arc<Mutex<Vec<Published>>>,
}

impl Sink for Recorder {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        let published = paid.iter().map(Paid::encoded).map(|sealed| Published {
            key: sealed.key.clone(),
            headers: sealed.headers.clone(),
            bytes: sealed.bytes.clone(),
        });
        self.published
            .lock()
            .expect("one thread publishes")
            .extend(published);
        self.inner.publish(paid)
    }
}

/// Not a test of its own: the worker that the tests below start.
#[test]
fn a_worker_with_frozen_noise() {
    let Ok(folder) = env::var("BERNSTREAM_TEST_FOLDER") else {
        return;
    };
    let folder = Path::new(&folder);
    let detail = match env::var("BERNSTREAM_TEST_DETAIL").as_deref() {
        Ok("operator") => MetricsDetail::Operator,
        _ => MetricsDetail::Safe,
    };
    let seed: u8 = env::var("BERNSTREAM_TEST_SEED")
        .expect("a seed")
        .parse()
        .expect("a number");
    telemetry::start_logging();
    let mut settings =
        WorkerSettings::load(&folder.join("bernstream.toml")).expect("a sound configuration");
    // Topic and ledger have names of their own in each run; without them all else can be compared byte for byte.
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    settings.normalised = settings.normalised.replace(&input.topic, "input");
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
            |release| bernstream::cli::run::noise_bands(release, &settings.ledger.path),
            false,
        )
        .expect("a plan");
    let Components {
        readers,
        ledger,
        witness,
        sink,
    } = Components::open(&settings).expect("the components open");
    let metrics = Metrics::new(
        detail,
        "neighbours",
        "pure epsilon",
        &plan.releases[0].description().digests.configuration,
    )
    .expect("metrics");
    let published = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let health = Health::default();
    let mut window = 0;
    let worker = Worker {
        plan: &plan,
        readers,
        ledger,
        witness,
        sink: Box::new(Recorder {
            inner: sink,
            published: published.clone(),
        }),
        generators: Box::new({
            let metrics = metrics.clone();
            let seen = seen.clone();
            move || {
                let text = metrics.render_text().expect("metrics");
                // How many windows wait for one claim is a matter of time, not of records.
                let lines = text.lines().filter(|line| !line.contains("published"));
                seen.lock()
                    .expect("one thread draws")
                    .push(lines.collect::<Vec<_>>().join("\n"));
                window += 1;
                Ok(Generator::frozen([seed.wrapping_add(window); 32]))
            }
        }),
        metrics: metrics.clone(),
        health: &health,
        stop: StopRequest::default(),
    };
    worker.run_alone().expect("it works to the end of the grid");
    let mut seen = seen.lock().expect("it has ended");
    seen.push(metrics.render_text().expect("metrics"));
    let published = published.lock().expect("it has ended").clone();
    let shown = Shown {
        published,
        metrics: seen.clone(),
        log: Vec::new(),
    };
    fs::write(
        folder.join("shown.json"),
        serde_json::to_vec(&shown).expect("JSON"),
    )
    .expect("it is written");
}

/// What a worker shows of a topic.
fn watch(servers: &str, topic: &str, form: Form, detail: &str, seed: u8) -> Shown {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = configuration(servers, topic, folder.path(), form);
    fs::write(folder.path().join("bernstream.toml"), text).expect("it is written");
    let child = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "neighbours::a_worker_with_frozen_noise",
            "--nocapture",
        ])
        .env("BERNSTREAM_TEST_FOLDER", folder.path())
        .env("BERNSTREAM_TEST_DETAIL", detail)
        .env("BERNSTREAM_TEST_SEED", seed.to_string())
        // A slow worker says now and then how far it is, by the clock and the schedule.
        .env("BERNSTREAM_LOG", "bernstream::progress=warn")
        .output()
        .expect("the worker runs");
    let log = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{log}");
    let shown = fs::read(folder.path().join("shown.json")).expect("what it showed");
    let mut shown: Shown = serde_json::from_slice(&shown).expect("JSON");
    shown.log = log.lines().map(without_time).collect();
    shown.log.sort();
    shown
}

fn without_time(line: &str) -> String {
    let mut line: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).expect("a line of JSON");
    line.remove("timestamp").expect("a time");
    serde_json::Value::Object(line).to_string()
}

/// Runs `job` for each of `0..count`, several at a time: a worker mostly waits for a disk or a broker.
fn at_once<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Relaxed)).filter(|at| *at < count) {
                    let result = job(at);
                    done.lock().expect("no job failed").insert(at, result);
                }
            });
        }
    });
    done.into_inner()
        .expect("no job failed")
        .into_values()
        .collect()
}

/// Records by what became of them, from the operator's metrics.
fn fates(shown: &Shown) -> BTreeMap<String, i64> {
    let last = shown.metrics.last().expect("metrics at the end");
    let lines = last
        .lines()
        .filter(|line| line.starts_with("bernstream_records_total"));
    lines
        .map(|line| {
            let fate = line
                .split("fate=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
                .expect("a fate");
            let count = line
                .rsplit(' ')
                .next()
                .and_then(|count| count.parse().ok())
                .expect("a count");
            (fate.to_owned(), count)
        })
        .collect()
}

/// Lattice values in whole grid units.
fn lattice(message: &Published) -> Vec<i128> {
    let synopsis = Synopsis::decode_message(&message.bytes).expect("a synopsis");
    let grid = synopsis.description().noise.grid;
    let whole = |value: &f64| {
        let units = value / grid;
        assert!(units.abs() < 2_f64.powi(50), "a difference is exact");
        units.round() as i128
    };
    synopsis.values().iter().map(whole).collect()
}

/// Which messages (by window and key) differ, and by how much in the 1-norm. Everything but the values must be the same.
fn difference(one: &Shown, other: &Shown) -> BTreeMap<(usize, String), u128> {
    assert_eq!(one.log, other.log, "log lines");
    assert_eq!(one.metrics, other.metrics, "metrics of the default level");
    assert_eq!(
        one.published.len(),
        other.published.len(),
        "the number of messages"
    );
    let mut different = BTreeMap::new();
    for (place, (one, other)) in one.published.iter().zip(&other.published).enumerate() {
        assert_eq!(one.key, other.key, "the order of the messages");
        assert_eq!(
            one.headers, other.headers,
            "headers, the schedule among them"
        );
        assert_eq!(
            one.bytes.len(),
            other.bytes.len(),
            "the length of a message"
        );
        if one.bytes != other.bytes {
            let open = |message: &Published| {
                Synopsis::decode_message(&message.bytes)
                    .expect("a synopsis")
                    .description()
                    .clone()
            };
            assert_eq!(open(one), open(other), "metadata");
            let norm = lattice(one)
                .iter()
                .zip(lattice(other))
                .map(|(one, other)| one.abs_diff(other))
                .sum();
            different.insert((place / 2, one.key.clone()), norm);
        }
    }
    different
}

/// Compares each case with the stream without it; gives the largest difference as a part of the sensitivity.
fn replay(servers: &str, form: Form, cases: &[Case]) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = configuration(servers, "topic", folder.path(), form);
    let settings = WorkerSettings::parse(&text, "neighbours").expect("a sound configuration");
    let contributions = settings.privacy.unit.most_contributions();
    let sensitivity = settings.releases[0]
        .function
        .target
        .sensitivity(settings.privacy.adjacency, contributions)
        .expect("one")
        .0;
    let streams: Vec<_> = [sent(form, &base())]
        .into_iter()
        .chain(cases.iter().map(|case| case.stream.clone()))
        .collect();
    let shown = at_once(streams.len(), |at| {
        let topic = send(servers, &streams[at]);
        let safe = watch(servers, &topic, form, "safe", 1);
        (safe, fates(&watch(servers, &topic, form, "operator", 1)))
    });
    let (base, fates) = &shown[0];
    assert_eq!(
        base.published.len(),
        2 * WINDOWS,
        "{:?} {:?}",
        base.log,
        base.metrics.last()
    );
    assert_eq!(
        fates.values().sum::<i64>(),
        144,
        "every record of the base has a fate"
    );
    assert!(
        base.log
            .iter()
            .any(|line| line.contains("reading the input")),
        "{:?}",
        base.log
    );
    assert!(base.metrics[0].contains("bernstream_windows_released_total"));

    let mut largest = 0;
    for (case, (shown, others)) in cases.iter().zip(&shown[1..]) {
        let name = case.name;
        let mut expected = fates.clone();
        *expected.entry(case.fate.to_owned()).or_default() += 1;
        assert_eq!(
            others, &expected,
            "{name}: every other record keeps its fate"
        );
        let different = difference(base, shown);
        assert_eq!(!different.is_empty(), case.is_seen, "{name}: {different:?}");
        let windows: BTreeSet<usize> = different.keys().map(|(window, _)| *window).collect();
        assert!(
            windows.iter().all(|window| *window == 1),
            "{name}: {different:?}"
        );
        assert!(different.len() <= 1, "{name}: {different:?}");
        let norm: u128 = different.values().sum();
        assert!(
            norm <= u128::from(sensitivity),
            "{name}: {norm} > {sensitivity}"
        );
        largest = largest.max(norm);
    }
    largest as f64 / sensitivity as f64
}

#[test]
fn one_record_more_changes_its_own_window_and_key_and_nothing_else() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let largest = replay(&servers, Form::Arrow, &records_more(Form::Arrow));
    println!("{largest:.3} of the sensitivity");
    assert!(largest > 0.5);
}

/// The same for messages of one record, and for messages that are none.
fn replay_records(form: Form) {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let mut cases = records_more(form);
    for (name, payload) in form.no_records() {
        cases.push(Case {
            name,
            stream: with_odd(form, payload),
            fate: "missing",
            is_seen: false,
        });
    }
    assert!(replay(&servers, form, &cases) > 0.5);
}

#[test]
fn one_message_of_json_more_changes_its_own_window_and_key_and_nothing_else() {
    replay_records(Form::Json);
}

#[test]
fn one_message_of_avro_more_changes_its_own_window_and_key_and_nothing_else() {
    replay_records(Form::Avro);
}

#[test]
fn one_message_of_protobuf_more_changes_its_own_window_and_key_and_nothing_else() {
    replay_records(Form::Protobuf);
}

#[test]
fn every_format_gives_the_same_values() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let forms = [Form::Arrow, Form::Json, Form::Avro, Form::Protobuf];
    let shown = at_once(forms.len(), |at| {
        let topic = send(&servers, &sent(forms[at], &base()));
        watch(&servers, &topic, forms[at], "safe", 1)
    });
    let values = |shown: &Shown| -> Vec<(String, Vec<i128>)> {
        shown
            .published
            .iter()
            .map(|message| (message.key.clone(), lattice(message)))
            .collect()
    };
    assert_eq!(shown[0].published.len(), 2 * WINDOWS);
    for (form, other) in forms.iter().zip(&shown) {
        assert!(values(other) == values(&shown[0]), "{form:?}");
    }
}

/// The comparison notices: counts at the operator's level, other noise, and a record too many.
#[test]
fn what_is_not_hidden_is_noticed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let null = &records_more(Form::Arrow)[1];
    assert_eq!((null.name, null.is_seen), ("null value", false));
    let less = send(&servers, &sent(Form::Arrow, &base()));
    let more = send(&servers, &null.stream);
    let operator = [&less, &more].map(|topic| watch(&servers, topic, Form::Arrow, "operator", 1));
    let counts = |shown: &Shown| {
        let last = shown.metrics.last().expect("metrics at the end");
        last.lines()
            .filter(|line| !line.starts_with("bernstream_seal_seconds"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_ne!(
        counts(&operator[0]),
        counts(&operator[1]),
        "the operator's metrics count records"
    );
    let safe = [1, 2].map(|seed| watch(&servers, &less, Form::Arrow, "safe", seed));
    assert_eq!(
        difference(&safe[0], &safe[1]).len(),
        2 * WINDOWS,
        "noise is noticed in every message"
    );
}
