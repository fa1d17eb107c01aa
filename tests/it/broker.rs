//! A broker that is down at the start and in the middle, and comes back: the worker waits, says so, and loses nothing.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use bernstream_kafka::ordered;
use bernstream_kafka::ordered::{OrderedTopic, OrderedTopicParams, PowerLoss};
use bernstream_synopsis::clock::Timestamp;

use crate::harness::kafka::{self, Own};
use crate::harness::running::Running;
use crate::harness::setup::Setup;

#[test]
fn a_broker_that_is_down_is_waited_for_at_the_start_and_in_the_middle_and_nothing_is_lost() {
    if kafka::broker().is_none() {
        return;
    }
    let own = Own::start();
    is_down_at_the_start(&own, &own.servers);
    // The broker must go before the worker is done: with more windows until it does.
    assert!(
        [30, 300]
            .into_iter()
            .any(|windows| goes_in_the_middle(&own, &own.servers, windows)),
        "the worker is done first"
    );
    own.ask("stop");
    assert_eq!(
        own.files(),
        Vec::<PathBuf>::new(),
        "of a broker that is stopped nothing is left"
    );
}

fn is_down_at_the_start(own: &Own, servers: &str) {
    let setup = Setup::new(servers, 40);
    setup.send(&setup.rows(2000, 1));
    setup.begin(Duration::ZERO);

    own.ask("crash");
    let mut impatient = Running::start(&setup);
    impatient.wait_ready(&setup, false);
    impatient.terminate();
    setup.wait_log("stopping");
    impatient.terminate();
    assert_eq!(
        impatient.end(&setup).code(),
        Some(130),
        "a second signal waits for no broker"
    );

    let mut worker = Running::start(&setup);
    let words = worker.wait_ready(&setup, false);
    assert!(
        words.contains("not ready: reading the input, agreeing with the witness"),
        "{words}"
    );
    setup.wait_log("does not answer");
    assert!(
        setup.read_log().contains("trying again"),
        "{}",
        setup.read_log()
    );
    assert_eq!(
        worker.get("/healthz").0,
        200,
        "a broker that is down must not restart the worker"
    );
    own.ask("restart");
    ends_well(worker.end(&setup), &setup);
}

/// Whether the broker went before all of `windows` were published.
fn goes_in_the_middle(own: &Own, servers: &str, windows: u32) -> bool {
    let now = Timestamp::from_micros(Timestamp::now().micros() / 1_000_000 * 1_000_000);
    let setup = Setup::quick(servers, now, windows);
    setup.send(&setup.rows(2000, 1));
    setup.begin(Duration::ZERO);
    let mut worker = Running::start(&setup);
    let published = || {
        worker
            .metric("synopses_published_total")
            .unwrap_or_default()
    };
    let is_at_work = || (published() >= 4.0 && worker.get("/readyz").0 == 200).then_some(true);
    if !setup.wait_for("the first synopses", || {
        is_at_work().or((worker.get("/healthz").0 == 0).then_some(false))
    }) {
        return false;
    }
    own.ask("crash");
    let is_waiting = || (worker.get("/readyz").0 == 503).then_some(true);
    let is_early = setup.wait_for("the broker's absence", || {
        is_waiting().or((worker.get("/healthz").0 == 0).then_some(false))
    });
    if is_early {
        let (_, words) = worker.get("/readyz");
        assert!(
            words.contains("the input") || words.contains("publishing what is due"),
            "{words}"
        );
        assert_eq!(worker.get("/healthz").0, 200);
        assert!(
            published() < 2.0 * f64::from(windows),
            "a worker that is done has ended"
        );
    }
    own.ask("restart");
    ends_well(worker.end(&setup), &setup);
    is_early
}

fn ends_well(status: ExitStatus, setup: &Setup) {
    let log = setup.read_log();
    assert!(status.success(), "{log}");
    setup.assert_whole();
    let progress = ["window released", "catching up"];
    let lines = log
        .lines()
        .filter(|line| !progress.iter().any(|said| line.contains(said)))
        .count();
    assert!(lines < 40, "a broker that is down fills no log: {log}");
}

mod long {
    use super::*;

    /// An outage leaves the errors of all connections in the queue of a client.
    #[test]
    fn a_topic_is_read_at_the_first_try_after_an_outage() {
        if kafka::broker().is_none() {
            return;
        }
        let own = Own::start();
        let params = OrderedTopicParams {
            broker: kafka::at(&own.servers),
            topic: kafka::fresh_name("ordered"),
            min_insync_replicas: 1,
            power_loss: PowerLoss::Separately,
        };
        ordered::create_topic(&params, 1).expect("a topic");
        let mut topic = OrderedTopic::open(&params, "test").expect("it is open");
        topic.append_record(b"before").expect("it is written");
        assert!(topic.read_record(1).expect("it is read").is_some());
        own.ask("crash");
        thread::sleep(Duration::from_secs(3));
        own.ask("restart");
        OrderedTopic::open(&params, "test")
            .expect("it is open")
            .append_record(b"after")
            .expect("it is written");
        let read = topic.read_record(2).expect("it is read").expect("a record");
        assert_eq!(read.payload, b"after");
    }
}
