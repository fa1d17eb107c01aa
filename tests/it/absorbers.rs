//! Absorbers: processes that read partitions for a worker. What the worker publishes does not depend on how many of them there are,
//! nor on what becomes of them.
//!
//! Whole workers on a real broker with the noise frozen, and absorbers that are processes of the program. `tests/properties/partials.rs`
//! has what they exchange.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_config::WorkerSettings;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{AbsorberParams, Worker};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::absorbers_partials::add_partition;
use crate::harness::http::{free_address, get};
use crate::harness::{PATIENCE, kafka, wait_for};
use crate::readers::{
    PARTITIONS, WINDOWS, configuration, message, moved, published_by, published_of, published_with,
    send, send_at, send_json,
};
use crate::source::delete_before;

/// Nobody waits for this in a test: whoever needs it to pass fails by the limit of the whole test.
pub const NEVER: &str = "20m";

/// A process that ends with the test.
pub struct Process(Child);

impl Process {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.0.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

/// One topic, and what a worker that reads it alone publishes.
pub struct Scene {
    pub servers: String,
    pub topic: String,
    pub expected: Vec<(String, Vec<u8>)>,
}

impl Scene {
    pub fn new() -> Option<Self> {
        let servers = kafka::broker()?;
        let topic = send(&servers);
        Some(Scene::of(servers, topic))
    }

    fn of(servers: String, topic: String) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = late(&configuration(&servers, &topic, folder.path(), 1));
        let expected = published_by(&text, folder.path(), 1);
        assert_eq!(expected.len(), 6 * WINDOWS as usize);
        Scene {
            servers,
            topic,
            expected,
        }
    }

    /// The configuration of a worker that leaves reading to absorbers for as long as `deadline`, and of the absorbers.
    pub fn configuration(&self, folder: &Path, deadline: &str) -> String {
        with_scale(
            &configuration(&self.servers, &self.topic, folder, 1),
            folder,
            deadline,
        )
    }

    fn check_with(&self, (absorbers, readers): (usize, u32), deadline: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let text = self
            .configuration(folder.path(), deadline)
            .replace("readers = 1", &format!("readers = {readers}"));
        fs::write(folder.path().join("bernstream.toml"), &text).expect("it is written");
        let running: Vec<_> = (0..absorbers)
            .map(|_| absorber(folder.path(), None))
            .collect();
        let published = published_by(&text, folder.path(), readers);
        assert!(
            published == self.expected,
            "{absorbers} absorbers, {readers} threads"
        );
        drop(running);
    }
}

/// A configuration that leaves reading to absorbers for as long as `deadline`.
pub fn with_scale(text: &str, folder: &Path, deadline: &str) -> String {
    fs::write(folder.join("key"), [7; 32]).expect("it is written");
    let text = late(text);
    let name = kafka::fresh_name("partials");
    format!(
        "{text}\n[scale]\ntopic = \"{name}\"\nkey_file = \"{}/key\"\ngroup = \"{name}\"\ndeadline = \"{deadline}\"\n",
        folder.display()
    )
}

/// So late that any deadline is before it.
pub fn late(text: &str) -> String {
    text.replace("publish_delay = \"300ms\"", "publish_delay = \"30m\"")
}

/// An absorber with the configuration that was written to `folder`.
pub fn absorber(folder: &Path, member: Option<&str>) -> Process {
    let arguments: Vec<&str> = member
        .iter()
        .flat_map(|member| ["--member", member])
        .collect();
    absorber_with(folder, &arguments)
}

fn absorber_with(folder: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command
        .arg("absorb")
        .arg(folder.join("bernstream.toml"))
        .env("RUST_LOG", "info")
        .args(arguments);
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("absorbers.log"))
        .expect("a log");
    let error = log.try_clone().expect("the same log");
    Process(
        command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(error)
            .spawn()
            .expect("it starts"),
    )
}

/// The group takes all partitions from its members before it deals them out anew.
#[test]
fn an_absorber_goes_on_reading_what_it_keeps_when_another_one_joins() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), NEVER);
    fs::write(folder.path().join("bernstream.toml"), text).expect("it is written");
    let assignments = |count: usize| {
        let started = Instant::now();
        loop {
            let log = fs::read_to_string(folder.path().join("absorbers.log")).unwrap_or_default();
            if log.matches("the group has assigned partitions").count() >= count {
                return log;
            }
            assert!(started.elapsed() < PATIENCE, "{log}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    let first = absorber(folder.path(), None);
    assignments(1);
    let second = absorber(folder.path(), None);
    // One of the first with less than before, and one of the second.
    let log = assignments(3);
    assert!(
        !log.contains("partitions=0") && !log.contains("\"partitions\":0"),
        "{log}"
    );
    drop((first, second));
}

#[test]
fn what_leaves_does_not_depend_on_the_number_of_absorbers() {
    let Some(scene) = Scene::new() else { return };
    // With none the worker reads everything when the deadline is over, in some threads. With some it never is.
    for (absorbers, readers, deadline) in [
        (0, 1, "100ms"),
        (0, 2, "100ms"),
        (0, 9, "100ms"),
        (1, 1, NEVER),
        (2, 1, NEVER),
        (5, 2, NEVER),
    ] {
        scene.check_with((absorbers, readers), deadline);
    }
}

#[test]
fn absorbers_that_are_killed_frozen_and_come_back_change_nothing() {
    let Some(scene) = Scene::new() else { return };
    for seed in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = scene
            .configuration(folder, "1s")
            .replace("readers = 1", "readers = 3");
        assert!(
            published_amid_faults(&text, folder, 3, seed) == scene.expected,
            "seed {seed}"
        );
    }
}

/// What a worker publishes while every absorber leaves and comes at random: with a name it keeps its partitions, without one the group gives
/// them to others. A frozen one sends what it has when nobody expects it any more.
pub fn published_amid_faults(
    text: &str,
    folder: &Path,
    readers: u32,
    seed: u64,
) -> Vec<(String, Vec<u8>)> {
    fs::write(folder.join("bernstream.toml"), text).expect("it is written");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = ChaCha20Rng::seed_from_u64(seed);
            let mut running: Vec<Option<(Process, bool)>> = vec![None, None, None];
            while !is_over.load(Ordering::Relaxed) {
                let number = random.random_range(0..running.len());
                let name = format!("absorber-{number}");
                running[number] = match (running[number].take(), random.random_range(0..3)) {
                    (None, _) => Some((
                        absorber(folder, (number > 0).then_some(name.as_str())),
                        false,
                    )),
                    (Some(_killed), 0) => None,
                    (Some((process, is_frozen)), _) => {
                        process.signal(if is_frozen { "CONT" } else { "STOP" });
                        Some((process, !is_frozen))
                    }
                };
                thread::sleep(Duration::from_millis(random.random_range(100..900)));
            }
        });
        let published = published_by(text, folder, readers);
        is_over.store(true, Ordering::Relaxed);
        published
    })
}

/// What absorbers send may fill so much memory: what has no room the worker reads, without waiting for the deadline.
#[test]
fn what_has_no_room_in_the_worker_is_read_there() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut text = scene.configuration(folder, NEVER);
    fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
    // The partials of a window have some kilobytes in all: more than one of them, and less than all.
    let metrics =
        Metrics::new(MetricsDetail::Operator, "room", "pure epsilon", "").expect("metrics");
    text.push_str("most_megabytes = 1\n");
    let running = absorber(folder, None);
    let settings = WorkerSettings::parse(&text, "room").expect("a sound configuration");
    let published = published_of(settings, folder, 1, &metrics, |worker, absorbed| {
        let absorbed = absorbed.expect("it leaves reading to absorbers");
        assert_eq!(absorbed.most, 1_000_000);
        (
            worker,
            Some(AbsorberParams {
                most: 6_000,
                ..absorbed
            }),
        )
    });
    drop(running);
    assert!(published == scene.expected);
    let shown = metrics.render_text().expect("metrics");
    for fate in ["taken", "no_room"] {
        assert!(
            shown.contains(&format!("fate=\"{fate}\"")),
            "{fate}: {shown}"
        );
    }
}

/// Two workers announce the same windows side by side, each with a ledger of its own, and one absorber answers both.
#[test]
fn workers_side_by_side_are_answered_each() {
    let Some(scene) = Scene::new() else { return };
    let folders = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    let [one, other] = folders.each_ref().map(|folder| folder.path());
    let text = scene.configuration(one, "3s");
    fs::write(one.join("bernstream.toml"), &text).expect("it is written");
    fs::write(other.join("key"), [7; 32]).expect("it is written");
    let same = text.replace(&one.display().to_string(), &other.display().to_string());
    let running = absorber(one, None);
    thread::scope(|scope| {
        let workers = [(one, text), (other, same)].map(|(folder, text)| {
            scope.spawn(move || {
                let metrics = Metrics::new(MetricsDetail::Operator, "both", "pure epsilon", "")
                    .expect("metrics");
                (
                    published_with(&text, folder, 1, &metrics),
                    metrics.render_text().expect("metrics"),
                )
            })
        });
        for worker in workers {
            let (published, shown) = worker.join().expect("it works");
            assert!(published == scene.expected);
            assert!(shown.contains("fate=\"taken\""), "{shown}");
        }
    });
    drop(running);
}

/// A topic gets a partition in the middle of a window, while the worker and absorbers run: what is published is what a worker alone
/// publishes that reads all of it later.
#[test]
fn a_partition_that_is_added_in_mid_window_changes_nothing() {
    const LENGTH: i64 = 5;
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let [topic, without] =
        ["added", "without"].map(|stem| kafka::fresh_topic(&servers, stem, PARTITIONS, &settings));
    let start = Timestamp::from_micros((Timestamp::now().micros() / 1_000_000 + 3) * 1_000_000);
    for (partition, window) in
        (0..PARTITIONS).flat_map(|partition| (0..WINDOWS).map(move |window| (partition, window)))
    {
        [&topic, &without]
            .iter()
            .for_each(|topic| message(&servers, topic, partition, (start, LENGTH * window)));
    }
    let configured = |topic: &str, folder: &Path| {
        let text = moved(&configuration(&servers, topic, folder, 2), start, LENGTH);
        text.replace("publish_delay = \"300ms\"", "publish_delay = \"10s\"")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = with_scale(&configured(&topic, folder), folder, "4s");
    fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
    let metrics =
        Metrics::new(MetricsDetail::Operator, "added", "pure epsilon", "").expect("metrics");
    let running = [absorber(folder, None), absorber(folder, None)];
    let published = thread::scope(|scope| {
        let worker = scope.spawn(|| published_with(&text, folder, 2, &metrics));
        // In the middle of the second window.
        thread::sleep(start.plus(Duration::from_secs(7)).since(Timestamp::now()));
        add_partition(&servers, &topic);
        // Its leader may not be known yet.
        thread::sleep(Duration::from_millis(500));
        [1, 2]
            .iter()
            .for_each(|window| message(&servers, &topic, PARTITIONS, (start, LENGTH * window)));
        assert!(
            Timestamp::now() < start.plus(Duration::from_secs(10)),
            "the second window is over: too slow to test it"
        );
        // The group learns of a partition when a member joins.
        let third = absorber(folder, None);
        let published = worker.join().expect("it works");
        drop(third);
        published
    });
    drop(running);
    assert!(
        metrics
            .render_text()
            .expect("metrics")
            .contains("fate=\"taken\""),
        "absorbers took part"
    );
    let alone = |topic: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        published_by(&configured(topic, folder.path()), folder.path(), 2)
    };
    assert_eq!(published.len(), 6 * WINDOWS as usize);
    assert!(published == alone(&topic));
    assert!(
        published != alone(&without),
        "the records of the new partition are in"
    );
}

/// A topic with a message for each partition and window, of so many seconds each, and when the first of them begins: in a moment.
fn live(servers: &str, stem: &str, length: i64) -> (String, Timestamp) {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, stem, PARTITIONS, &settings);
    let start = Timestamp::from_micros((Timestamp::now().micros() / 1_000_000 + 3) * 1_000_000);
    for (partition, window) in
        (0..PARTITIONS).flat_map(|partition| (0..WINDOWS).map(move |window| (partition, window)))
    {
        message(servers, &topic, partition, (start, length * window));
    }
    (topic, start)
}

/// Records that are messages of their own are put together before they are absorbed, and the log ends with marks that nobody is given.
#[test]
fn json_in_transactions_is_read_as_by_a_worker_alone() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send_json(&servers);
    let configured = |folder: &Path| {
        let text = late(&configuration(&servers, &topic, folder, 2));
        text.replace("[input]\n", "[input]\ntime_format = \"rfc3339\"\n")
            .replace("[input.kafka]\n", "[input.kafka]\nformat = \"json\"\n")
            .replace("column = \"key\"", "column = \"key\", type = \"text\"")
            .replace("column = \"user\"", "column = \"user\", type = \"text\"")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let alone = published_by(&configured(folder.path()), folder.path(), 2);
    assert_eq!(alone.len(), 6 * WINDOWS as usize);
    for (absorbers, deadline) in [(0, "100ms"), (2, NEVER)] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = with_scale(&configured(folder), folder, deadline);
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let running: Vec<_> = (0..absorbers).map(|_| absorber(folder, None)).collect();
        assert!(
            published_by(&text, folder, 2) == alone,
            "{absorbers} absorbers"
        );
        drop(running);
    }
}

/// What was deleted cannot belong to a window that began after an earlier one had closed behind it: whoever takes the partition over does
/// not miss it.
#[test]
fn a_partition_that_retention_has_emptied_is_taken_over() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    // A machine with other work may be late for short windows.
    let is_tested = [4, 16, 64]
        .into_iter()
        .any(|length| is_taken_over_when_emptied(&servers, length));
    assert!(is_tested, "too slow for windows of a minute");
}

/// Returns whether the partition was emptied before the last of the windows of `length` seconds was over.
fn is_taken_over_when_emptied(servers: &str, length: i64) -> bool {
    let topic = kafka::fresh_input(servers, PARTITIONS);
    let start = Timestamp::from_micros((Timestamp::now().micros() / 1_000_000 + 3) * 1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = moved(&configuration(servers, &topic, folder, 1), start, length);
    let text = text.replace("trust_producer_time = true\n", "");
    let text = with_scale(
        &text.replace("publish_delay = \"300ms\"", "publish_delay = \"10s\""),
        folder,
        "2s",
    );
    fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
    let metrics =
        Metrics::new(MetricsDetail::Operator, "emptied", "pure epsilon", "").expect("metrics");
    let mut is_in_time = false;
    let published = thread::scope(|scope| {
        let running = absorber(folder, None);
        let worker = scope.spawn(|| published_with(&text, folder, 1, &metrics));
        let wait_until = |second| {
            thread::sleep(
                start
                    .plus(Duration::from_secs(second))
                    .since(Timestamp::now()),
            )
        };
        for window in 0..WINDOWS {
            let second = length * window + 2;
            wait_until(second.unsigned_abs());
            // Nothing comes to the first partition any more.
            let partitions = if window == 0 {
                0..PARTITIONS
            } else {
                1..PARTITIONS
            };
            partitions
                .for_each(|partition| message(servers, &topic, partition, (start, second - 5)));
        }
        // The last window is open, and those before it are closed.
        wait_until(length.unsigned_abs() * 3 + 2);
        delete_before(servers, &topic, 1);
        drop(running);
        let end = start.plus(Duration::from_secs(4 * length.unsigned_abs()));
        is_in_time = Timestamp::now() < end;
        worker.join()
    });
    if !is_in_time {
        return false;
    }
    let published = published.expect("it works");
    assert_eq!(published.len(), 6 * WINDOWS as usize);
    let shown = metrics.render_text().expect("metrics");
    assert!(shown.contains("fate=\"taken\""), "{shown}");
    true
}

/// Append times that step back: a record of an earlier window comes behind those of a later one.
#[test]
fn append_times_that_step_back_change_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send_at(&servers, 9);
    let scene = Scene::of(servers, topic);
    for (absorbers, deadline) in [(0, "100ms"), (2, NEVER)] {
        scene.check_with((absorbers, 3), deadline);
    }
}

/// An absorber answers probes without a worker, and is ready without a partition: more of them than partitions are no fault.
#[test]
fn an_absorber_is_ready_when_it_can_read() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let scene = Scene {
        topic: send(&servers),
        servers,
        expected: Vec::new(),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), "1s");
    fs::write(folder.path().join("bernstream.toml"), text).expect("it is written");
    let address = free_address();
    let running = absorber_with(folder.path(), &["--listen", &address]);
    let started = Instant::now();
    while get(&address, "/readyz").as_deref() != Some("ready\n") {
        assert!(
            started.elapsed() < PATIENCE,
            "{:?}",
            get(&address, "/readyz")
        );
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(get(&address, "/healthz").as_deref(), Some("alive\n"));
    // What absorbers have done is told by the worker, to operators.
    assert!(
        !get(&address, "/metrics")
            .unwrap_or_default()
            .contains("bernstream_")
    );
    drop(running);
}

/// A witness that takes no claim for as long as it is held.
struct Held<'a> {
    inner: Box<dyn Witness + Send + 'a>,
    is_held: Arc<AtomicBool>,
}

impl Witness for Held<'_> {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.inner.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.inner.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        if self.is_held.load(Ordering::Relaxed) {
            return Err(witness::WitnessError::Unavailable {
                name: "held".to_owned(),
                why: "it is held".to_owned(),
            });
        }
        self.inner.append(claim)
    }
}

/// A partial shows what was recorded: it is in the topic until its window is accepted, since a worker that starts again needs it, and no
/// longer, and so are announcements.
#[test]
fn what_belongs_to_accepted_windows_is_deleted() {
    const LENGTH: i64 = 4;
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (topic, start) = live(&servers, "deleted", LENGTH);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let text = moved(&configuration(&servers, &topic, folder, 1), start, LENGTH);
    let text = with_scale(
        &text.replace("publish_delay = \"300ms\"", "publish_delay = \"10s\""),
        folder,
        "4s",
    );
    fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
    let settings = WorkerSettings::parse(&text, "f").expect("a sound configuration");
    let name = settings.scale.clone().expect("it has one").topic;
    let client = kafka::at(&servers).consumer(&[]).expect("a client");
    let kept = || -> Vec<(i64, i64)> {
        let of = |number| {
            rdkafka::consumer::Consumer::fetch_watermarks(&client, &name, number, PATIENCE)
        };
        (0..9)
            .map(|number| of(number).expect("an answer"))
            .collect()
    };
    let metrics =
        Metrics::new(MetricsDetail::Operator, "held", "pure epsilon", "").expect("metrics");
    let is_held = Arc::new(AtomicBool::new(true));
    let running = absorber(folder, None);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            published_of(settings, folder, 1, &metrics, |worker, absorbed| {
                let witness = Held {
                    inner: worker.witness,
                    is_held: Arc::clone(&is_held),
                };
                (
                    Worker {
                        witness: Box::new(witness),
                        ..worker
                    },
                    absorbed,
                )
            })
        });
        // Two windows are there, and none is accepted.
        let second = Duration::from_secs(2 * LENGTH.unsigned_abs() + 3);
        thread::sleep(start.plus(second).since(Timestamp::now()));
        let before = kept();
        is_held.store(false, Ordering::Relaxed);
        assert!(
            before.iter().all(|(low, _)| *low == 0) && before.iter().any(|(_, high)| *high > 0),
            "{before:?}"
        );
        assert_eq!(worker.join().expect("it works").len(), 6 * WINDOWS as usize);
    });
    drop(running);
    assert!(
        metrics
            .render_text()
            .expect("metrics")
            .contains("fate=\"taken\"")
    );
    // Announcements, and the partials of five partitions. Those of the newest windows, which may have been accepted when the worker had
    // ended, are left to the retention of the topic.
    let is_deleted = |kept: &[(i64, i64)]| {
        kept.iter().filter(|(low, _)| *low > 0).count() == 1 + PARTITIONS.unsigned_abs() as usize
    };
    wait_for(
        "they are deleted",
        || format!("{:?}", kept()),
        || is_deleted(&kept()).then_some(()),
    );
}

mod long {
    use super::*;

    /// A worker that has read all partitions alone for want of absorbers, and has each window at once, leaves them to absorbers that start later.
    #[test]
    fn absorbers_that_start_late_take_over_from_a_worker_that_is_faster() {
        const LENGTH: i64 = 12;
        let Some(servers) = kafka::broker() else {
            return;
        };
        let (topic, start) = live(&servers, "late", LENGTH);
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = moved(&configuration(&servers, &topic, folder, 1), start, LENGTH);
        let text = with_scale(
            &text.replace("publish_delay = \"300ms\"", "publish_delay = \"10s\""),
            folder,
            "3s",
        );
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let metrics =
            Metrics::new(MetricsDetail::Operator, "late", "pure epsilon", "").expect("metrics");
        thread::scope(|scope| {
            let worker = scope.spawn(|| published_with(&text, folder, 1, &metrics));
            // The first window is over, and so is its deadline: the worker has read everything.
            thread::sleep(
                start
                    .plus(Duration::from_secs(12 + 1 + 3 + 1))
                    .since(Timestamp::now()),
            );
            let late = absorber(folder, None);
            assert_eq!(worker.join().expect("it works").len(), 6 * WINDOWS as usize);
            drop(late);
        });
        let shown = metrics.render_text().expect("metrics");
        assert!(shown.contains("fate=\"taken\""), "{shown}");
    }

    /// Nor can it where it was deleted before the first window began: a new pipeline begins on a topic with a partition that retention has
    /// emptied, with an absorber and without.
    #[test]
    fn a_first_window_does_not_need_what_was_deleted_before() {
        const LENGTH: i64 = 2;
        let Some(servers) = kafka::broker() else {
            return;
        };
        let topic = kafka::fresh_input(&servers, PARTITIONS);
        message(&servers, &topic, 0, (Timestamp::now(), 0));
        delete_before(&servers, &topic, 1);
        thread::scope(|scope| {
            for absorbers in [0, 1] {
                let servers = &servers;
                let topic = &topic;
                scope.spawn(move || {
                    let start = Timestamp::from_micros(
                        (Timestamp::now().micros() / 1_000_000 + 20) * 1_000_000,
                    );
                    let folder = tempfile::tempdir().expect("a folder");
                    let folder = folder.path();
                    let text = moved(&configuration(servers, topic, folder, 1), start, LENGTH);
                    let text = text.replace("trust_producer_time = true\n", "");
                    let text = with_scale(
                        &text.replace("publish_delay = \"300ms\"", "publish_delay = \"10s\""),
                        folder,
                        "2s",
                    );
                    fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
                    let running: Vec<_> = (0..absorbers).map(|_| absorber(folder, None)).collect();
                    assert_eq!(
                        published_by(&text, folder, 1).len(),
                        6 * WINDOWS as usize,
                        "{absorbers} absorbers"
                    );
                    drop(running);
                    let log = fs::read_to_string(folder.join("absorbers.log")).unwrap_or_default();
                    assert!(!log.contains("left to the worker"), "{log}");
                });
            }
        });
    }
}
