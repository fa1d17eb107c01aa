//! Figures, by hand: how soon after an outage of brokers the workers publish again.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::cluster::{replicated, soon};
use crate::harness::cluster::{self, Inside};
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka, wait_for};
use crate::ledger_log::add_log;

/// From usable brokers to the next synopsis.
pub const AGAIN: Duration = Duration::from_secs(10);

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
            Outage::Fenced | Outage::FencedAndKilled => each(harmed, |broker| brokers.fence(broker)),
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
        let client: BaseConsumer =
            kafka::at(brokers.servers()).client_config().expect("settings").create().expect("a client");
        let earlier = client.fetch_metadata(None, PATIENCE).expect("all topics");
        let earlier = earlier.topics().iter().map(|topic| topic.name().to_owned()).collect();
        Probe { brokers, earlier, written: (1..=B::COUNT).map(|leader| brokers.topic(leader)).collect() }
    }

    /// Waits until they can be used. Brokers that go away again afterwards count against the workers.
    fn wait(&self) {
        wait_for("brokers that can be used", String::new, || self.ask());
    }

    fn ask(&self) -> Option<()> {
        let soon = Duration::from_secs(1);
        let config = kafka::at(self.brokers.servers()).client_config().expect("settings");
        let client: BaseConsumer = config.create().expect("a client");
        let cluster = client.fetch_metadata(None, soon).ok()?;
        for topic in cluster.topics().iter().filter(|topic| !self.earlier.contains(topic.name())) {
            for partition in topic.partitions() {
                client.fetch_watermarks(topic.name(), partition.id(), soon).ok()?;
            }
        }
        let producer: BaseProducer = config.clone().set("message.timeout.ms", "1000").create().expect("a client");
        self.written.iter().try_for_each(|topic| {
            let (_, before) = client.fetch_watermarks(topic, 0, soon).ok()?;
            producer.send(BaseRecord::<(), _>::to(topic).payload("probe")).ok()?;
            producer.flush(soon).ok()?;
            let (_, after) = client.fetch_watermarks(topic, 0, soon).ok()?;
            (after > before).then_some(())
        })
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub outage: Outage,
    /// How many of the brokers are away.
    pub harmed: u8,
    pub seconds: u64,
    /// Whether the ledger is in a log too.
    pub has_log: bool,
}

impl Case {
    /// How long each of so many workers waits for its next synopsis once the brokers can be used: each time that they can again, where
    /// some do what others did.
    pub fn waits<B: Brokers>(self, brokers: &B, workers: usize, first: u8) -> Vec<Duration> {
        let probe = Probe::new(brokers);
        let setups: Vec<_> = (0..workers).map(|_| self.setup(brokers)).collect();
        let workers: Vec<_> = setups.iter().map(Running::start).collect();
        for (worker, setup) in workers.iter().zip(&setups) {
            worker.wait_metric(setup, "synopses_published_total", 6.0);
        }
        let harmed: Vec<_> = (0..self.harmed).map(|number| (first + number) % B::COUNT + 1).collect();
        self.outage.begin(brokers, &harmed);
        let begun = Instant::now();
        let mut waits = Vec::new();
        if self.harmed < B::COUNT {
            probe.wait();
            waits.extend(waits_of(&workers));
        }
        thread::sleep(Duration::from_secs(self.seconds).saturating_sub(begun.elapsed()));
        self.outage.end(brokers, &harmed);
        probe.wait();
        waits.extend(waits_of(&workers));
        waits
    }

    fn name(&self) -> String {
        let log = if self.has_log { " with a log" } else { "" };
        format!("{:?}{log}", self.outage).to_lowercase()
    }

    fn setup(self, brokers: &impl Brokers) -> Setup {
        let setup = brokers.setup();
        if self.has_log {
            add_log(&setup, 1);
        }
        let made = setup.ledger_command(&["init"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        setup
    }
}

/// How long each waits for its next synopsis; [`PATIENCE`] where none comes.
fn waits_of(workers: &[Running]) -> Vec<Duration> {
    let usable = Instant::now();
    let published = |worker: &Running| worker.metric("synopses_published_total").unwrap_or_default();
    let before: Vec<_> = workers.iter().map(published).collect();
    let mut waits = vec![None; workers.len()];
    while waits.contains(&None) && usable.elapsed() < PATIENCE {
        for ((wait, worker), before) in waits.iter_mut().zip(workers).zip(&before) {
            if wait.is_none() && published(worker) > *before {
                *wait = Some(usable.elapsed());
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    waits.into_iter().map(|wait| wait.unwrap_or(PATIENCE)).collect()
}

/// What was measured.
struct Figures {
    case: Case,
    brokers: u8,
    outages: u8,
    workers: usize,
    /// Ascending.
    waits: Vec<Duration>,
}

impl Figures {
    fn new(case: Case, brokers: u8, outages: u8, workers: usize, mut waits: Vec<Duration>) -> Self {
        waits.sort();
        Figures { case, brokers, outages, workers, waits }
    }

    fn is_soon(&self) -> bool {
        self.waits.iter().all(|wait| *wait < AGAIN)
    }
}

/// A row of a table.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { case: Case { outage, harmed, seconds, has_log }, brokers, outages, workers, waits } = self;
        let log = if *has_log { "with" } else { "without" };
        let [median, worst] =
            [waits.get(waits.len() / 2), waits.last()].map(|wait| wait.map_or(0.0, Duration::as_secs_f64));
        let soon = waits.iter().filter(|wait| **wait < AGAIN).count();
        write!(
            f,
            "| {outage:?}, {harmed} of {brokers} | {seconds} s | {log} | {outages} | {workers} | {median:.1} s | {worst:.1} s | {soon} of {} |",
            waits.len()
        )
    }
}

fn wanted<T: FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Measures outages of these kinds and numbers of brokers, and prints what came of each at once. `BERNSTREAM_TEST_SECONDS` says how long
/// they are, `BERNSTREAM_TEST_OUTAGES` how many of each, `BERNSTREAM_TEST_WORKERS` how many workers go through one, and
/// `BERNSTREAM_TEST_CASES` which alone: "killed, fenced, fenced with a log".
fn measure<B: Brokers>(brokers: impl Fn() -> B, kinds: &[(Outage, u8)]) {
    let (outages, workers) = (wanted("BERNSTREAM_TEST_OUTAGES", 2), wanted("BERNSTREAM_TEST_WORKERS", 10));
    let (seconds, names) = (wanted("BERNSTREAM_TEST_SECONDS", 10), wanted("BERNSTREAM_TEST_CASES", String::new()));
    let mut all = Vec::new();
    for has_log in [false, true] {
        for &(outage, harmed) in kinds {
            let case = Case { outage, harmed, seconds, has_log };
            if !names.is_empty() && !names.split(", ").any(|name| name == case.name()) {
                continue;
            }
            let waits = (0..outages).flat_map(|number| case.waits(&brokers(), workers, number)).collect();
            let figures = Figures::new(case, B::COUNT, outages, workers, waits);
            println!("{figures}\n{:.1?}", figures.waits);
            all.push(figures);
        }
    }
    println!("| outage | for | log | outages | workers | median | worst | within {AGAIN:?} |");
    all.iter().for_each(|figures| println!("{figures}"));
    assert!(all.iter().all(Figures::is_soon), "some wait longer than {AGAIN:?}");
}

#[test]
#[ignore = "figures: as long as is wanted"]
fn how_soon_after_an_outage_is_published_again() {
    if kafka::broker().is_some() {
        measure(
            kafka::Own::start,
            &[(Outage::Killed, 1), (Outage::Frozen, 1), (Outage::Fenced, 1), (Outage::FencedAndKilled, 1)],
        );
    }
}

#[test]
#[ignore = "figures: as long as is wanted"]
fn how_soon_after_an_outage_of_some_of_three_brokers_is_published_again() {
    let test = "outages::how_soon_after_an_outage_of_some_of_three_brokers_is_published_again";
    if let Some(brokers) = cluster::inside(test, 6_000) {
        let kinds = [(Outage::Killed, 1), (Outage::Frozen, 1), (Outage::Killed, 3), (Outage::Frozen, 3)];
        measure(|| &brokers, &kinds);
    }
}
