//! A broker that hangs: the worker is not ready, and goes on soon after.

use std::env;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::ledger_log::add_log;

#[test]
fn a_broker_that_hangs_is_seen_by_the_probe_and_publishing_goes_on_soon_after() {
    if kafka::broker().is_none() {
        return;
    }
    let own = kafka::Own::start();
    let setup = Setup::ticking(&own.servers);
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "synopses_published_total", 6.0);
    worker.wait_ready(&setup, true);
    own.signal("-STOP");
    let stopped = Instant::now();
    let words = worker.wait_ready(&setup, false);
    let seen = stopped.elapsed();
    assert!(seen < Duration::from_secs(25), "seen after {seen:?}");
    assert!(words.starts_with("not ready"), "{words}");
    assert_eq!(worker.get("/healthz").0, 200);
    thread::sleep(Duration::from_secs(25).saturating_sub(stopped.elapsed()));
    let published = worker.metric("synopses_published_total").expect("a count");
    own.signal("-CONT");
    let back = Instant::now();
    setup.wait_for("publishing", || {
        let is_more = worker.metric("synopses_published_total").is_some_and(|count| count > published);
        (is_more && worker.get("/readyz").0 == 200).then_some(())
    });
    let resumed = back.elapsed();
    // A broker that wakes up takes some seconds itself, until it leads its partitions again.
    assert!(resumed < Duration::from_secs(20), "publishing goes on after {resumed:?}: {}", setup.read_log());
    println!("unready after {seen:?}, published again {resumed:?} after the broker was back");
    setup.wait_log("publishing what is due again");
    let log = setup.read_log();
    for words in ["cannot publish now", "publishing what is due again"] {
        assert_eq!(log.matches(words).count(), 1, "'{words}' is told once: {log}");
    }
    for words in ["cannot read the input", "the brokers of the input cannot be reached"] {
        assert!(log.matches(words).count() <= 1, "'{words}' is told once: {log}");
    }
}

/// How a broker can be away.
#[derive(Clone, Copy, Debug)]
enum Outage {
    Killed,
    Frozen,
    /// It was frozen for so long that its controller has fenced it, and is killed before it leads anything again.
    Fenced,
}

impl Outage {
    fn happen(self, broker: &kafka::Own, length: Duration) {
        match self {
            Outage::Killed => {
                broker.ask("crash");
                thread::sleep(length);
                broker.ask("restart");
            }
            Outage::Frozen => {
                broker.signal("-STOP");
                thread::sleep(length);
                broker.signal("-CONT");
                broker.wait_led();
            }
            Outage::Fenced => {
                broker.signal("-STOP");
                thread::sleep(length);
                broker.signal("-CONT");
                thread::sleep(Duration::from_secs(1));
                broker.ask("crash");
                broker.ask("restart");
            }
        }
    }
}

/// From a usable broker to the next synopsis.
const AGAIN: Duration = Duration::from_secs(10);

#[test]
fn a_broker_that_was_fenced_and_killed_is_found_again() {
    if kafka::broker().is_some() {
        let waited = wait_after(Outage::Fenced, 12, true);
        // Other tests may have the machine meanwhile: a worker that does not find the broker waits for minutes.
        assert!(waited < 4 * AGAIN, "{waited:?}");
    }
}

/// All kinds of outages. `BERNSTREAM_TEST_OUTAGES` says how many of each kind, and `BERNSTREAM_TEST_SECONDS` how long.
#[test]
#[ignore = "figures: as long as is wanted"]
fn how_soon_after_an_outage_is_published_again() {
    if kafka::broker().is_none() {
        return;
    }
    let number = |name: &str, or| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (count, seconds) = (number("BERNSTREAM_TEST_OUTAGES", 3), number("BERNSTREAM_TEST_SECONDS", 10));
    for has_log in [false, true] {
        for outage in [Outage::Killed, Outage::Frozen, Outage::Fenced] {
            let mut waits = (0..count).map(|_| wait_after(outage, seconds, has_log)).collect::<Vec<_>>();
            waits.sort();
            let median = waits[waits.len() / 2];
            println!("{outage:?} for {seconds} s, a ledger log: {has_log}: median {median:?}, of {waits:?}");
            assert!(waits.iter().all(|waited| *waited < AGAIN));
        }
    }
}

fn wait_after(outage: Outage, seconds: u64, has_log: bool) -> Duration {
    let broker = kafka::Own::start();
    let setup = Setup::of_seconds(&broker.servers, 0);
    if has_log {
        add_log(&setup, 1);
    }
    let made = setup.ledger_command(&["init"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let worker = Running::start(&setup);
    worker.wait_metric(&setup, "synopses_published_total", 6.0);
    outage.happen(&broker, Duration::from_secs(seconds));
    let back = Instant::now();
    let published = worker.metric("synopses_published_total").expect("a count");
    worker.wait_metric(&setup, "synopses_published_total", published + 1.0);
    back.elapsed()
}

#[test]
fn a_start_that_waits_tells_once_what_it_waits_for_and_repeats_nothing_else() {
    let Some(servers) = kafka::broker() else { return };
    let setup = Setup::of_seconds(&servers, 0);
    // No more than replicas may lag: a worker that reads warns of it.
    setup.edit("clock_slack = \"200ms\"", "clock_slack = \"50ms\"");
    let made = setup.ledger_command(&["init"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    setup.edit("[output.kafka]\n", "[output.kafka]\nbrokers = \"127.0.0.1:1\"\n");
    let mut worker = Ended(setup.start());
    setup.wait_log("kafka at 127.0.0.1:1 does not answer");
    // Two more tries, each of which opens the input.
    thread::sleep(Duration::from_secs(24));
    assert!(worker.0.try_wait().expect("asked").is_none(), "{}", setup.read_log());
    let log = setup.read_log();
    assert_eq!(log.matches("trying again").count(), 1, "{log}");
    assert!(!log.contains("is not above replica.lag.time.max.ms"), "nobody reads yet: {log}");
}

/// A worker that is killed when the test ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
