//! A broker that hangs: the worker is not ready, and goes on soon after.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;

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
