//! Figures, by hand: how soon after an outage of brokers the workers publish again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bernstream_synopsis::clock::Timestamp;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::cluster::{replicated, soon};
use crate::harness::cluster::{self, Inside};
use crate::harness::running::Running;
use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, kafka, wait_for};
use crate::ledger_log::add_log;

/// From usable brokers to the next synopsis.
pub const AGAIN: Duration = Duration::from_secs(10);
/// What is drawn and cannot be claimed promptly waits for this, where a ledger is in a log.
const STANDBY: Duration = Duration::from_secs(10);

/// How brokers can be away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    Killed,
    Frozen,
    /// It says that no partition has a leader.
    Fenced,
    /// The same, and it is killed before it leads anything again.
    FencedAndKilled,
}

impl Outage {
    fn begin(self, brokers: &impl Brokers, harmed: &[u8]) {
        match self {
            Outage::Killed => each(harmed, |broker| brokers.kill(broker)),
            Outage::Frozen => each(harmed, |broker| brokers.freeze(broker)),
            Outage::Fenced | Outage::FencedAndKilled => {
                each(harmed, |broker| brokers.fence(broker))
            }
        }
    }

    fn end(self, brokers: &impl Brokers, harmed: &[u8]) {
        match self {
            Outage::Killed => each(harmed, |broker| brokers.restart(broker)),
            Outage::Frozen => each(harmed, |broker| brokers.thaw(broker)),
            Outage::Fenced => each(harmed, |broker| brokers.unfence(broker)),
            Outage::FencedAndKilled => each(harmed, |broker| {
                brokers.kill(broker);
                brokers.restart(broker);
            }),
        }
    }
}

/// At the same time.
fn each(harmed: &[u8], act: impl Fn(u8) + Sync) {
    thread::scope(|scope| {
        for broker in harmed {
            scope.spawn(|| act(*broker));
        }
    });
}

/// Brokers that a test may harm, numbered from 1 on.
pub trait Brokers: Sync {
    const COUNT: u8;

    fn servers(&self) -> &str;
    fn kill(&self, broker: u8);
    fn restart(&self, broker: u8);
    fn freeze(&self, broker: u8);
    fn thaw(&self, broker: u8);
    fn fence(&self, broker: u8);
    fn unfence(&self, broker: u8);

    /// A configuration for a worker; its ledger is not there yet.
    fn setup(&self) -> Setup;

    /// A new topic of one partition, which the given broker leads.
    fn topic(&self, leader: u8) -> String;
}

impl Brokers for kafka::Own {
    const COUNT: u8 = 1;

    fn servers(&self) -> &str {
        &self.servers
    }

    fn kill(&self, _: u8) {
        self.ask("crash");
    }

    fn restart(&self, _: u8) {
        self.ask("restart");
    }

    fn freeze(&self, _: u8) {
        self.signal("-STOP");
    }

    fn thaw(&self, _: u8) {
        self.signal("-CONT");
    }

    fn fence(&self, _: u8) {
        kafka::Own::fence(self);
    }

    fn unfence(&self, _: u8) {
        kafka::Own::unfence(self);
    }

    fn setup(&self) -> Setup {
        Setup::of_seconds(&self.servers, 0)
    }

    fn topic(&self, _: u8) -> String {
        kafka::fresh_topic(&self.servers, "probe", 1, &[])
    }
}

impl Brokers for &Inside {
    const COUNT: u8 = 3;

    fn servers(&self) -> &str {
        &self.servers
    }

    fn kill(&self, broker: u8) {
        self.ask(&["kill", &broker.to_string()]);
    }

    fn restart(&self, broker: u8) {
        self.ask(&["restart", &broker.to_string()]);
    }

    fn freeze(&self, broker: u8) {
        self.ask(&["freeze", &broker.to_string()]);
    }

    fn thaw(&self, broker: u8) {
        self.ask(&["thaw", &broker.to_string()]);
    }

    fn fence(&self, _: u8) {
        unimplemented!("a broker among others does not know that it is fenced");
    }

    fn unfence(&self, _: u8) {}

    fn setup(&self) -> Setup {
        replicated(self, soon(Duration::ZERO), 3600, 1)
    }

    fn topic(&self, leader: u8) -> String {
        Inside::topic(self, "probe", 1, leader.into(), &[])
    }
}

/// Whether brokers can be used, by a client that is made for each question and knows nothing of an outage: it gets the end of every
/// partition that workers use from who leads it, and who reads sees what it writes.
struct Probe<'a, B> {
    brokers: &'a B,
    /// Topics of earlier workers.
    earlier: BTreeSet<String>,
    /// Of each broker one that it leads, as long as it is there.
    written: Vec<String>,
}

impl<'a, B: Brokers> Probe<'a, B> {
    /// To be made before the workers.
    fn new(brokers: &'a B) -> Self {
        let client: BaseConsumer = kafka::at(brokers.servers())
            .client_config()
            .expect("settings")
            .create()
            .expect("a client");
        let earlier = client.fetch_metadata(None, PATIENCE).expect("all topics");
        let earlier = earlier
            .topics()
            .iter()
            .map(|topic| topic.name().to_owned())
            .collect();
        Probe {
            brokers,
            earlier,
            written: (1..=B::COUNT).map(|leader| brokers.topic(leader)).collect(),
        }
    }

    /// Waits until they can be used. Brokers that go away again afterwards count against the workers.
    fn wait(&self) {
        let unusable = RefCell::new(String::new());
        wait_for(
            "brokers that can be used",
            || unusable.borrow().clone(),
            || match self.ask() {
                Ok(()) => Some(()),
                Err(why) => {
                    *unusable.borrow_mut() = why;
                    None
                }
            },
        );
    }

    /// Why the brokers cannot be used, if they cannot.
    fn ask(&self) -> Result<(), String> {
        let soon = Duration::from_secs(3);
        let config = kafka::at(self.brokers.servers())
            .client_config()
            .expect("settings");
        let client: BaseConsumer = config.create().expect("a client");
        let cluster = client
            .fetch_metadata(None, soon)
            .map_err(|error| format!("no list of topics: {error}"))?;
        for topic in cluster.topics() {
            if self.earlier.contains(topic.name()) {
                continue;
            }
            for partition in topic.partitions() {
                // The input that a setup begins with has one replica; a worker beside three brokers has another input.
                if partition.replicas().len() < usize::from(B::COUNT) {
                    continue;
                }
                end_of(&client, topic.name(), partition.id(), soon)?;
            }
        }
        let producer: BaseProducer = config
            .clone()
            .set("message.timeout.ms", "3000")
            .create()
            .expect("a client");
        for topic in &self.written {
            let before = end_of(&client, topic, 0, soon)?;
            producer
                .send(BaseRecord::<(), _>::to(topic).payload("probe"))
                .map_err(|(error, _)| format!("{topic} takes no message: {error}"))?;
            producer
                .flush(soon)
                .map_err(|error| format!("{topic} confirms no message: {error}"))?;
            if end_of(&client, topic, 0, soon)? <= before {
                return Err(format!("{topic} does not have what was written"));
            }
        }
        Ok(())
    }
}

/// The end of a partition, from the broker that leads it.
fn end_of(
    client: &BaseConsumer,
    topic: &str,
    partition: i32,
    soon: Duration,
) -> Result<i64, String> {
    match client.fetch_watermarks(topic, partition, soon) {
        Ok((_, end)) => Ok(end),
        Err(error) => Err(format!("no end of {topic}, partition {partition}: {error}")),
    }
}

/// Sends records to the inputs of workers, twice a second to each partition, whatever their brokers do: who publishes has to read.
struct RecordFeeder {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RecordFeeder {
    fn start(setups: &[Setup]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let servers = setups
            .first()
            .map(|setup| setup.servers.clone())
            .unwrap_or_default();
        let inputs: Vec<_> = setups.iter().map(|setup| setup.input.clone()).collect();
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !seen.load(Relaxed) {
                // A client of its own each time: it knows nothing of an outage.
                RecordFeeder::send(&servers, &inputs);
                thread::sleep(Duration::from_millis(500));
            }
        });
        RecordFeeder {
            is_over,
            thread: Some(thread),
        }
    }

    fn send(servers: &str, inputs: &[String]) {
        let mut config = kafka::at(servers).client_config().expect("settings");
        let producer: BaseProducer = config
            .set("message.timeout.ms", "1000")
            .create()
            .expect("a client");
        let payload = message(&[Row {
            micros: Timestamp::now().micros(),
            key: "a",
            value: 50.0,
        }]);
        for input in inputs {
            for partition in [0, 1] {
                let _ = producer.send(
                    BaseRecord::<(), _>::to(input)
                        .partition(partition)
                        .payload(&payload),
                );
            }
        }
        let _ = producer.flush(Duration::from_secs(1));
    }
}

impl Drop for RecordFeeder {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub outage: Outage,
    /// How many of the brokers are away.
    pub harmed: u8,
    pub seconds: u64,
}

/// What a worker does once the brokers can be used.
#[derive(Clone, Copy, Debug)]
pub struct WorkerRecovery {
    /// Whether its ledger is in a log too.
    pub has_log: bool,
    /// How long it waits for its next synopsis.
    pub first: Duration,
    /// How long until windows are published that ended after the outage.
    pub current: Duration,
}

impl Case {
    /// How so many workers with a ledger log, and as many without, recover: each time that the brokers can be used again, where some do what
    /// others did.
    pub fn recoveries<B: Brokers>(
        self,
        brokers: &B,
        workers: usize,
        first: u8,
    ) -> Vec<WorkerRecovery> {
        let probe = Probe::new(brokers);
        let setups: Vec<_> = (0..2 * workers)
            .map(|number| setup(brokers, has_log(number)))
            .collect();
        let workers: Vec<_> = setups.iter().map(Running::start).collect();
        let feeder = RecordFeeder::start(&setups);
        for (worker, setup) in workers.iter().zip(&setups) {
            worker.wait_metric(setup, "synopses_published_total", 6.0);
        }
        let harmed: Vec<_> = (0..self.harmed)
            .map(|number| (first + number) % B::COUNT + 1)
            .collect();
        self.outage.begin(brokers, &harmed);
        let begun = Instant::now();
        let mut recoveries = Vec::new();
        if self.harmed < B::COUNT {
            probe.wait();
            recoveries.extend(recoveries_of(&workers, &setups));
        }
        thread::sleep(Duration::from_secs(self.seconds).saturating_sub(begun.elapsed()));
        self.outage.end(brokers, &harmed);
        probe.wait();
        recoveries.extend(recoveries_of(&workers, &setups));
        drop(feeder);
        recoveries
    }

    fn name(&self) -> String {
        format!("{:?}", self.outage).to_lowercase()
    }
}

/// Every other worker.
fn has_log(number: usize) -> bool {
    number % 2 == 1
}

fn setup(brokers: &impl Brokers, has_log: bool) -> Setup {
    let setup = brokers.setup();
    if has_log {
        add_log(&setup, 1);
    }
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    setup
}

/// How each recovers; [`PATIENCE`] where it does not.
fn recoveries_of(workers: &[Running], setups: &[Setup]) -> Vec<WorkerRecovery> {
    let usable = Instant::now();
    let now = Timestamp::now();
    let published = |worker: &Running| {
        worker
            .metric("synopses_published_total")
            .unwrap_or_default()
    };
    let before: Vec<_> = workers.iter().map(published).collect();
    // Two keys, and windows of a second.
    let over: Vec<_> = setups
        .iter()
        .map(|setup| 2.0 * now.since(setup.origin).as_secs_f64().ceil())
        .collect();
    let mut waits = vec![[None; 2]; workers.len()];
    while waits.iter().flatten().any(Option::is_none) && usable.elapsed() < PATIENCE {
        for (number, worker) in workers.iter().enumerate() {
            let wanted = [before[number], over[number]];
            for (wait, wanted) in waits[number]
                .iter_mut()
                .zip(wanted)
                .filter(|(wait, _)| wait.is_none())
            {
                *wait = (published(worker) > wanted).then(|| usable.elapsed());
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    let waits = waits.into_iter().zip(setups).enumerate();
    let recoveries = waits.map(|(number, (waits, setup))| {
        let [first, current] = waits.map(|wait| wait.unwrap_or(PATIENCE));
        if first >= AGAIN {
            let log = setup.read_log();
            let told = log
                .lines()
                .filter(|line| !line.contains("window released"))
                .collect::<Vec<_>>()
                .join("\n");
            println!("after {first:.1?}: {told}");
        }
        WorkerRecovery {
            has_log: has_log(number),
            first,
            current,
        }
    });
    recoveries.collect()
}

/// What was measured.
struct Figures {
    case: Case,
    has_log: bool,
    brokers: u8,
    outages: u8,
    /// Ascending.
    first: Vec<Duration>,
    /// Ascending.
    current: Vec<Duration>,
}

impl Figures {
    fn new(
        case: Case,
        has_log: bool,
        brokers: u8,
        outages: u8,
        recoveries: &[WorkerRecovery],
    ) -> Self {
        let of_them = || {
            recoveries
                .iter()
                .filter(|recovery| recovery.has_log == has_log)
        };
        let mut first: Vec<_> = of_them().map(|recovery| recovery.first).collect();
        let mut current: Vec<_> = of_them().map(|recovery| recovery.current).collect();
        first.sort();
        current.sort();
        Figures {
            case,
            has_log,
            brokers,
            outages,
            first,
            current,
        }
    }

    fn is_soon(&self) -> bool {
        let most = if self.has_log { AGAIN + STANDBY } else { AGAIN };
        self.first.iter().all(|wait| *wait < most)
    }
}

/// A row of a table.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures {
            case:
                Case {
                    outage,
                    harmed,
                    seconds,
                },
            has_log,
            brokers,
            outages,
            first,
            current,
        } = self;
        let log = if *has_log { "with" } else { "without" };
        let of =
            |waits: &[Duration], place: usize| waits.get(place).map_or(0.0, Duration::as_secs_f64);
        let middle = first.len() / 2;
        let last = first.len().saturating_sub(1);
        let soon = first.iter().filter(|wait| **wait < AGAIN).count();
        write!(
            f,
            "| {outage:?}, {harmed} of {brokers} | {seconds} s | {log} | {outages} | {:.1} s | {:.1} s | {soon} of {} | {:.1} s | {:.1} s |",
            of(first, middle),
            of(first, last),
            first.len(),
            of(current, middle),
            of(current, last),
        )
    }
}

fn wanted<T: FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// Measures outages of these kinds and numbers of brokers, and prints what came of each at once. `BERNSTREAM_TEST_SECONDS` says how long
/// they are, `BERNSTREAM_TEST_OUTAGES` how many of each, `BERNSTREAM_TEST_WORKERS` how many workers with and without a log go through one,
/// and `BERNSTREAM_TEST_CASES` which alone: "killed, fenced".
fn measure<B: Brokers>(brokers: impl Fn() -> B, kinds: &[(Outage, u8)]) {
    let outages = wanted("BERNSTREAM_TEST_OUTAGES", 2);
    let workers = wanted("BERNSTREAM_TEST_WORKERS", 10);
    let seconds = wanted("BERNSTREAM_TEST_SECONDS", 10);
    let names = wanted("BERNSTREAM_TEST_CASES", String::new());
    let mut all = Vec::new();
    for &(outage, harmed) in kinds {
        let case = Case {
            outage,
            harmed,
            seconds,
        };
        if !names.is_empty() && !names.split(", ").any(|name| name == case.name()) {
            continue;
        }
        let recoveries: Vec<_> = (0..outages)
            .flat_map(|number| case.recoveries(&brokers(), workers, number))
            .collect();
        for has_log in [false, true] {
            let figures = Figures::new(case, has_log, B::COUNT, outages, &recoveries);
            println!("{figures}\n{:.1?}\n{:.1?}", figures.first, figures.current);
            all.push(figures);
        }
    }
    println!(
        "| outage | for | log | outages | first: median | worst | within {AGAIN:?} | current: median | worst |"
    );
    all.iter().for_each(|figures| println!("{figures}"));
    assert!(
        all.iter().all(Figures::is_soon),
        "some wait longer than {AGAIN:?}, or with a log {STANDBY:?} more"
    );
}

#[test]
#[ignore = "figures: as long as is wanted"]
fn how_soon_after_an_outage_is_published_again() {
    if kafka::broker().is_some() {
        measure(
            kafka::Own::start,
            &[
                (Outage::Killed, 1),
                (Outage::Frozen, 1),
                (Outage::Fenced, 1),
                (Outage::FencedAndKilled, 1),
            ],
        );
    }
}

#[test]
#[ignore = "figures: as long as is wanted"]
fn how_soon_after_an_outage_of_some_of_three_brokers_is_published_again() {
    let test = "outages::how_soon_after_an_outage_of_some_of_three_brokers_is_published_again";
    if let Some(brokers) = cluster::inside(test, 6_000) {
        let kinds = [
            (Outage::Killed, 1),
            (Outage::Frozen, 1),
            (Outage::Killed, 3),
            (Outage::Frozen, 3),
        ];
        measure(|| &brokers, &kinds);
    }
}
