//! A broker that hangs: the worker is not ready, and goes on soon after.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::outages::{AGAIN, Case, Outage};

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
        let is_more = worker
            .metric("synopses_published_total")
            .is_some_and(|count| count > published);
        (is_more && worker.get("/readyz").0 == 200).then_some(())
    });
    let resumed = back.elapsed();
    // A broker that wakes up takes some seconds itself, until it leads its partitions again.
    assert!(
        resumed < Duration::from_secs(20),
        "publishing goes on after {resumed:?}: {}",
        setup.read_log()
    );
    println!("unready after {seen:?}, published again {resumed:?} after the broker was back");
    setup.wait_log("publishing what is due again");
    let log = setup.read_log();
    for words in ["cannot publish now", "publishing what is due again"] {
        assert_eq!(
            log.matches(words).count(),
            1,
            "'{words}' is told once: {log}"
        );
    }
    for words in [
        "cannot read the input",
        "the brokers of the input cannot be reached",
    ] {
        assert!(
            log.matches(words).count() <= 1,
            "'{words}' is told once: {log}"
        );
    }
}

#[test]
fn a_broker_that_was_fenced_and_killed_is_found_again() {
    if kafka::broker().is_some() {
        let case = Case {
            outage: Outage::FencedAndKilled,
            harmed: 1,
            seconds: 1,
        };
        let recoveries = case.recoveries(&kafka::Own::start(), 1, 0);
        // Other tests may have the machine meanwhile: a worker that does not find the broker waits for minutes.
        assert!(
            recoveries.iter().all(|recovery| recovery.first < 4 * AGAIN),
            "{recoveries:?}"
        );
    }
}

#[test]
fn a_start_that_waits_tells_once_what_it_waits_for_and_repeats_nothing_else() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    // No more than replicas may lag: a worker that reads warns of it.
    setup.edit("clock_slack = \"200ms\"", "clock_slack = \"50ms\"");
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    setup.edit(
        "[output.kafka]\n",
        "[output.kafka]\nbrokers = \"127.0.0.1:1\"\n",
    );
    let mut worker = Ended(setup.start());
    setup.wait_log("kafka at 127.0.0.1:1 does not answer");
    // Two more tries, each of which opens the input.
    thread::sleep(Duration::from_secs(24));
    assert!(
        worker.0.try_wait().expect("asked").is_none(),
        "{}",
        setup.read_log()
    );
    let log = setup.read_log();
    assert_eq!(log.matches("trying again").count(), 1, "{log}");
    assert!(
        !log.contains("is not above replica.lag.time.max.ms"),
        "nobody reads yet: {log}"
    );
}

/// A worker that is killed when the test ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
