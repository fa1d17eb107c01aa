//! A worker that runs for long, and what it uses meanwhile.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_synopsis::clock::Timestamp;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::running::Running;
use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, kafka};

const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// The pause between two samples, and between two looks at the ledger by its commands.
const SAMPLE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(60);

/// Sends records as they happen, until it is over.
fn send(setup: &Setup, is_over: &AtomicBool) {
    let producer = setup.producer(&[("linger.ms", "5")]);
    for number in 0.. {
        if is_over.load(Relaxed) {
            break;
        }
        let micros = Timestamp::now().micros();
        let rows: Vec<Row> = KEYS
            .iter()
            .map(|key| Row {
                micros,
                key,
                value: 50.0,
            })
            .collect();
        let payload = message(&rows);
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(number % 2)
            .payload(&payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
        thread::sleep(Duration::from_millis(20));
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// Reads the output as it grows.
struct Output {
    consumer: BaseConsumer,
    messages: u64,
    windows: u64,
}

impl Output {
    fn of(setup: &Setup) -> Self {
        let mut config = kafka::at(&setup.servers).client_config().expect("settings");
        let consumer: BaseConsumer = config.set("group.id", "soak").create().expect("a consumer");
        let mut start = TopicPartitionList::new();
        start
            .add_partition_offset(&setup.output, 0, Offset::Beginning)
            .expect("a partition");
        consumer.assign(&start).expect("assigned");
        Output {
            consumer,
            messages: 0,
            windows: 0,
        }
    }

    /// How late the messages came that are new: the latest of them, in milliseconds after the time that each was due.
    fn lateness(&mut self, due_after_end: Duration) -> i64 {
        let mut latest = i64::MIN;
        while let Some(message) = self.consumer.poll(Duration::from_millis(200)) {
            // A broker that is busy is not what is looked at.
            let Ok(message) = message else { continue };
            let synopsis =
                bernstream_synopsis::Synopsis::decode_message(message.payload().expect("bytes"))
                    .expect("a synopsis");
            let due = synopsis.description().window.end.plus(due_after_end);
            let sent = message.timestamp().to_millis().expect("a time") * 1000;
            latest = latest.max((sent - due.micros()) / 1000);
            self.messages += 1;
            self.windows += u64::from(synopsis.description().key.as_deref() == Some(KEYS[0]));
        }
        latest
    }
}

fn size(setup: &Setup, name: &str) -> u64 {
    fs::metadata(setup.ledger().join(name)).map_or(0, |file| file.len())
}

/// Run it by its name, with `--ignored --nocapture`; `BERNSTREAM_SOAK_SECONDS` says for how long.
#[test]
#[ignore = "it takes as long as it is told to"]
#[cfg(target_os = "linux")]
fn a_worker_uses_no_more_the_longer_it_runs() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let seconds = std::env::var("BERNSTREAM_SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(600);
    let setup = Setup::of_seconds(&servers, 0);
    setup.edit(r#"["a", "b"]"#, &format!("{KEYS:?}"));
    setup.edit(r#"keep_published = "1h""#, r#"keep_published = "5m""#);
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut worker = Running::start(&setup);
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let mut samples: Vec<[i64; 3]> = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| send(&setup, &is_over));
        scope.spawn(|| {
            let actions = ["show", "verify", "show", "export", "archive"];
            for action in actions.iter().cycle() {
                let next = Instant::now() + LOOK;
                while Instant::now() < next && !is_over.load(Relaxed) {
                    thread::sleep(Duration::from_millis(100));
                }
                if is_over.load(Relaxed) {
                    break;
                }
                let looked = setup.ledger_command(&[action]);
                if !looked.status.success() {
                    println!(
                        "{action} fails: {}",
                        String::from_utf8_lossy(&looked.stderr)
                    );
                }
            }
        });
        let mut output = Output::of(&setup);
        println!(
            "seconds windows messages rss_kb threads fds ledger_bytes journal_bytes late_ms ready"
        );
        while begun.elapsed() < Duration::from_secs(seconds) {
            thread::sleep(SAMPLE);
            if let Some(status) = worker.child.try_wait().expect("it can be asked") {
                is_over.store(true, Relaxed);
                panic!("it ended: {status}: {}", setup.read_log());
            }
            let status = fs::read_to_string(format!("/proc/{}/status", worker.child.id()))
                .expect("its status");
            let value = |name: &str| -> i64 {
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .expect("a value");
                line.split_whitespace()
                    .next()
                    .expect("a number")
                    .parse()
                    .expect("a number")
            };
            let fds = fs::read_dir(format!("/proc/{}/fd", worker.child.id()))
                .expect("its files")
                .count();
            let late = output.lateness(Duration::from_millis(1300));
            let journal = size(&setup, "ledger.sqlite-journal") + size(&setup, "ledger.sqlite-wal");
            println!(
                "{} {} {} {} {} {fds} {} {journal} {late} {}",
                begun.elapsed().as_secs(),
                output.windows,
                output.messages,
                value("VmRSS:"),
                value("Threads:"),
                size(&setup, "ledger.sqlite"),
                worker.get("/readyz").0,
            );
            samples.push([
                value("VmRSS:"),
                value("Threads:"),
                i64::try_from(fds).expect("few"),
            ]);
        }
        is_over.store(true, Relaxed);
    });
    worker.terminate();
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    let verified = setup.ledger_command(&["verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
    print!("{}", String::from_utf8_lossy(&verified.stdout));
    let log = setup.read_log();
    println!(
        "{} lines of the log, {} bytes of witness-place",
        log.lines().count(),
        size(&setup, "witness-place")
    );
    // From the middle to the end.
    let middle = samples[samples.len() / 2];
    let end = samples[samples.len() - 1];
    assert!(
        end[0] < middle[0] + 8_192 && end[1] <= middle[1] && end[2] <= middle[2] + 2,
        "{middle:?} {end:?}"
    );
}
