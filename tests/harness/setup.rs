//! A worker with everything around it: topics of its own on the real broker, a configuration, a ledger, records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
use rdkafka::{Offset, TopicPartitionList};
use tempfile::TempDir;

use super::{PATIENCE, kafka, wait_for};

pub struct Setup {
    pub servers: String,
    /// Before the folder, which is gone when it is dropped.
    log: Unread,
    pub folder: TempDir,
    pub input: String,
    pub output: String,
    pub witness: String,
    pub origin: Timestamp,
    /// How long a window is.
    length: Duration,
    /// Windows that are over.
    windows: u32,
    /// Whether another window comes that is not over when the test is.
    is_live: bool,
}

/// Whatever a test does to a worker, no line of its log counts records: that is for operators.
struct Unread {
    folder: PathBuf,
    /// Whether some of the log is for operators.
    shows_operators: AtomicBool,
}

impl Drop for Unread {
    fn drop(&mut self) {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let is_for_operators = self.shows_operators.load(Relaxed)
            || read("bernstream.toml").contains("detail = \"operator\"");
        let log = read("log");
        let counts = counted_in(&log);
        if !is_for_operators && !thread::panicking() {
            assert!(
                counts.is_empty(),
                "what follows from records is in the log: {counts:?}"
            );
        }
    }
}

/// The lines that tell an offset, or how many records or messages there are.
pub fn counted_in(log: &str) -> Vec<&str> {
    let before = [
        "offset ",
        "offsets ",
        "offset = ",
        "from = ",
        "read up to ",
        "end at ",
    ];
    let after = [" records", " messages", " rows of the input", " broken"];
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let tells = |line: &&str| {
        before.iter().any(|word| {
            line.match_indices(word)
                .any(|(at, _)| is_digit(line[at + word.len()..].chars().next()))
        }) || after.iter().any(|word| {
            line.match_indices(word)
                .any(|(at, _)| is_digit(line[..at].chars().next_back()))
        })
    };
    log.lines().filter(tells).collect()
}

/// A record of a setup, in the order of its topic.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub micros: i64,
    pub key: &'static str,
    pub value: f64,
}

impl Setup {
    /// `windows` of one minute from 2025 on, keys `a` and `b`, an input of two partitions. The worker ends after them.
    pub fn new(servers: &str, windows: u32) -> Self {
        let origin = Timestamp::parse("2025-01-01T00:00:00Z").expect("a time");
        Setup::with(servers, origin, Duration::from_secs(60), windows, false)
    }

    /// `windows` of a day that are over, and one that begins at `today`: the worker waits for its end.
    pub fn live(servers: &str, today: Timestamp, windows: u32) -> Self {
        let day = Duration::from_secs(24 * 3600);
        Setup::with(servers, today.minus(windows * day), day, windows, true)
    }

    /// Windows of a second: `past` that are over, and more than a test takes that come.
    pub fn of_seconds(servers: &str, past: u32) -> Self {
        let second = 1_000_000;
        let origin =
            Timestamp::from_micros((Timestamp::now().micros() / second - i64::from(past)) * second);
        Setup::with(servers, origin, Duration::from_secs(1), past + 3600, false)
    }

    /// Windows of a second that come; its ledger and topics are there.
    pub fn ticking(servers: &str) -> Self {
        let setup = Setup::of_seconds(servers, 0);
        let made = setup.ledger_command(&["init"]);
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        setup
    }

    /// `windows` of a second from `origin` on, a whole second. The worker ends after them.
    pub fn quick(servers: &str, origin: Timestamp, windows: u32) -> Self {
        Setup::with(servers, origin, Duration::from_secs(1), windows, false)
    }

    fn with(
        servers: &str,
        origin: Timestamp,
        length: Duration,
        windows: u32,
        is_live: bool,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = Unread {
            folder: folder.path().to_owned(),
            shows_operators: AtomicBool::new(false),
        };
        let setup = Setup {
            servers: servers.to_owned(),
            log,
            folder,
            input: kafka::fresh_input(servers, 2),
            output: kafka::fresh_name("output"),
            witness: kafka::fresh_name("witness"),
            origin,
            length,
            windows,
            is_live,
        };
        fs::write(setup.configuration(), setup.text()).expect("the configuration is written");
        setup
    }

    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("bernstream.toml")
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// The start of a window.
    pub fn start_of(&self, window: u32) -> Timestamp {
        self.origin.plus(window * self.length)
    }

    fn text(&self) -> String {
        let Setup {
            servers,
            input,
            output,
            witness,
            origin,
            ..
        } = self;
        format!(
            r#"
pipeline = "setup"

[input]
time = "time"
key = {{ column = "key", values = ["a", "b"] }}

[input.kafka]
brokers = "{servers}"
topic = "{input}"
clock_slack = "200ms"

[windows]
origin = "{origin}"
length = "{length}s"
end = "{end}"
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
degree = 12
order = 2
domain = [{{ column = "value", min = 0, max = 100, outside = "clamp" }}]

[release.density]
bandwidths = [10]

[output.kafka]
topic = "{output}"
witness = "{witness}"
witness_min_insync_replicas = 1

[ledger]
path = "{ledger}"
keep_published = "1h"
"#,
            length = self.length.as_secs(),
            end = self.start_of(self.windows + u32::from(self.is_live)),
            ledger = self.ledger().display(),
        )
    }

    /// Has the log and the metrics show what only operators may see.
    pub fn show_operators(&self) {
        let text = fs::read_to_string(self.configuration()).expect("the configuration");
        let kept = text.split("\n[serve]").next().unwrap_or_default();
        let serve = "[serve]\nlisten = \"127.0.0.1:0\"\ndetail = \"operator\"\n";
        fs::write(self.configuration(), format!("{kept}\n{serve}"))
            .expect("the configuration is written");
        self.log.shows_operators.store(true, Relaxed);
    }

    /// Changes the configuration's text.
    pub fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.configuration()).expect("the configuration");
        assert!(text.contains(from), "'{from}' is in the configuration");
        fs::write(self.configuration(), text.replace(from, to))
            .expect("the configuration is written");
    }

    pub fn bernstream(&self, arguments: &[&str]) -> Command {
        // Another build of it where one is named.
        let program = std::env::var_os("BERNSTREAM_TEST_PROGRAM");
        let mut command =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_bernstream").into()));
        command.args(arguments).env("BERNSTREAM_LOG", "info");
        command
    }

    /// Runs a command of the ledger to its end.
    pub fn ledger_command(&self, arguments: &[&str]) -> Output {
        let configuration = self.configuration();
        let mut command = self.bernstream(&["ledger"]);
        command
            .arg(arguments[0])
            .arg(configuration)
            .args(&arguments[1..]);
        command.output().expect("it runs")
    }

    /// A ledger for history: from the origin, taking what is sent within `wait` from now.
    pub fn begin(&self, wait: Duration) {
        let until = Timestamp::now().plus(wait).to_string();
        let made = self.ledger_command(&[
            "init",
            "--from",
            &self.origin.to_string(),
            "--backfill-until",
            &until,
        ]);
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
    }

    /// Starts the worker; its log goes to `log` in the setup's folder.
    pub fn start(&self) -> Child {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        let mut command = self.bernstream(&["run"]);
        command
            .arg(self.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().expect("the worker starts")
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub fn read_log(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Looks again until `found` finds something.
    pub fn wait_for<T>(&self, what: &str, found: impl FnMut() -> Option<T>) -> T {
        wait_for(what, || self.read_log(), found)
    }

    /// Waits until the log says `words`.
    pub fn wait_log(&self, words: &str) {
        self.wait_for(words, || self.read_log().contains(words).then_some(()));
    }

    /// Sends `rows`, a thousand a message, in turn to both partitions. Returns once the broker has them.
    pub fn send(&self, rows: &[Row]) {
        let producer = self.producer(&[("enable.idempotence", "true")]);
        for (number, rows) in rows.chunks(1000).enumerate() {
            let payload = message(rows);
            let partition = i32::try_from(number % 2).expect("0 or 1");
            let record = BaseRecord::<(), _>::to(&self.input)
                .partition(partition)
                .payload(&payload);
            producer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("it is queued");
        }
        producer.flush(PATIENCE).expect("the broker takes it");
    }

    pub fn producer(&self, settings: &[(&str, &str)]) -> ThreadedProducer<DefaultProducerContext> {
        let mut config = kafka::at(&self.servers).client_config().expect("settings");
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config.create().expect("a producer")
    }

    /// Random records over the whole grid.
    pub fn rows(&self, count: usize, seed: u64) -> Vec<Row> {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let origin = self.origin.micros();
        let end = self.start_of(self.windows).micros();
        (0..count)
            .map(|_| Row {
                micros: random.random_range(origin..end),
                key: if random.random_bool(0.5) { "a" } else { "b" },
                value: random.random_range(0.0..100.0),
            })
            .collect()
    }

    /// Every message on the output, aborted or not: partition by partition, in order.
    pub fn published(&self) -> Vec<Published> {
        read_topic(&self.servers, &self.output)
    }

    /// The versions of each window and key on the output.
    pub fn versions(&self) -> BTreeMap<(Timestamp, String), BTreeSet<Vec<u8>>> {
        let mut versions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for published in self.published() {
            let synopsis = Synopsis::decode_message(&published.payload).expect("a synopsis");
            let description = synopsis.description();
            let place = (
                description.window.start,
                description.key.clone().expect("a key"),
            );
            versions.entry(place).or_default().insert(published.payload);
        }
        versions
    }

    /// Waits until every window that is over is on the output.
    pub fn wait_published(&self) {
        let is_all = || self.versions().len() == 2 * self.windows as usize;
        self.wait_for("every window", || is_all().then_some(()));
    }

    /// Checks what must hold whatever happened: one version of each window and key, none missing, all in the ledger.
    pub fn assert_whole(&self) {
        let versions = self.versions();
        assert_eq!(
            versions.len(),
            2 * self.windows as usize,
            "no window is missing, none is too many"
        );
        for (place, versions) in &versions {
            assert_eq!(versions.len(), 1, "{place:?} was drawn twice");
        }
        let verified = self.ledger_command(&["verify"]);
        assert!(
            verified.status.success(),
            "{}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }
}

/// A message of the output topic.
#[derive(Clone, Debug)]
pub struct Published {
    /// When it was sent or taken, as the topic has it.
    pub stamp: Timestamp,
    pub key: String,
    pub headers: BTreeMap<String, String>,
    pub payload: Vec<u8>,
}

/// One Arrow IPC stream of `rows`.
pub fn message(rows: &[Row]) -> Vec<u8> {
    let times = rows.iter().map(|row| row.micros).collect::<Vec<_>>();
    let columns: [(&str, ArrayRef); 3] = [
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
        ),
        (
            "key",
            Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| row.key),
            )),
        ),
        (
            "value",
            Arc::new(Float64Array::from_iter_values(
                rows.iter().map(|row| row.value),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// All that is on a topic now, read uncommitted.
pub fn read_topic(servers: &str, topic: &str) -> Vec<Published> {
    let published = |message: &BorrowedMessage| {
        let headers = message.headers().map(|headers| {
            let text = |value: Option<&[u8]>| {
                String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
            };
            headers
                .iter()
                .map(|header| (header.key.to_owned(), text(header.value)))
                .collect()
        });
        let stamp =
            Timestamp::from_micros(message.timestamp().to_millis().expect("a stamp") * 1000);
        Published {
            stamp,
            key: String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned(),
            headers: headers.unwrap_or_default(),
            payload: message.payload().unwrap_or_default().to_vec(),
        }
    };
    read_messages(servers, topic, published)
}

/// All that is on an input topic now: when a broker stamped a message, and the times of its rows.
pub fn read_rows(servers: &str, topic: &str) -> Vec<(Timestamp, Vec<Timestamp>)> {
    read_messages(servers, topic, |message| {
        let stamp = message.timestamp().to_millis().expect("a stamp");
        let batches =
            StreamReader::try_new(message.payload().unwrap_or_default(), None).expect("a stream");
        let times = batches.flat_map(|batch| {
            let batch = batch.expect("a batch");
            let times = batch
                .column_by_name("time")
                .expect("times")
                .as_primitive::<TimestampMicrosecondType>();
            times
                .values()
                .iter()
                .copied()
                .map(Timestamp::from_micros)
                .collect::<Vec<_>>()
        });
        (Timestamp::from_micros(stamp * 1000), times.collect())
    })
}

fn read_messages<T>(servers: &str, topic: &str, taken: impl Fn(&BorrowedMessage) -> T) -> Vec<T> {
    let consumer: BaseConsumer = kafka::at(servers)
        .client_config()
        .expect("settings")
        .set("group.id", "test")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_uncommitted")
        .create()
        .expect("a consumer");
    let metadata = consumer
        .fetch_metadata(Some(topic), PATIENCE)
        .expect("metadata");
    let mut published = Vec::new();
    for partition in metadata.topics()[0].partitions() {
        let (low, high) = consumer
            .fetch_watermarks(topic, partition.id(), PATIENCE)
            .expect("watermarks");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition.id(), Offset::Offset(low))
            .expect("a partition");
        consumer.assign(&list).expect("assigned");
        let mut next = low;
        while next < high {
            let message = match consumer.poll(PATIENCE).expect("in time") {
                // The client connects again to a broker that was killed and started again.
                Err(error)
                    if matches!(
                        error.rdkafka_error_code(),
                        Some(BrokerTransportFailure | AllBrokersDown)
                    ) =>
                {
                    continue;
                }
                polled => polled.expect("no error"),
            };
            next = message.offset() + 1;
            published.push(taken(&message));
        }
    }
    published
}
