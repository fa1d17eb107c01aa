//! A clock that jumps, of the worker: it can make a window late, and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bernstream::cli::components::Components;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::source::RecordSource;
use bernstream_kafka::source::kafka::KafkaSource;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::preload::Clock;
use crate::harness::running::Running;
use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, in_time, kafka};

/// How far the worker's clock is from the true one, in microseconds.
static OFF: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::from_micros(Timestamp::now().micros() + OFF.load(Relaxed))
}

#[test]
fn a_clock_that_jumps_an_hour_to_and_fro_closes_every_window_once_and_pays_for_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 30);
    setup.send(&setup.rows(5_000, 1));
    setup.begin(Duration::from_millis(500));
    let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    let plan = settings
        .plan(
            |release| bernstream::cli::run::noise_bands(release, &settings.ledger.path),
            false,
        )
        .expect("a plan");
    let components = Components::open(&settings).expect("the components open");
    let InputParams::Kafka(input) = &settings.input else {
        panic!("a setup reads Kafka")
    };
    let source =
        KafkaSource::open(input.clone(), settings.columns.clone(), clock).expect("the input opens");
    let health = Health::default();
    let done = AtomicBool::new(false);
    let worker = Worker {
        plan: &plan,
        readers: source
            .shared_readers()
            .into_iter()
            .map(|share| Box::new(share) as Box<dyn RecordSource + Send>)
            .collect(),
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(Generator::from_entropy),
        metrics: Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: StopRequest::default(),
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for jump in [-3_600, 3_600, -7_200, 0, 86_400].into_iter().cycle() {
                if done.load(Relaxed) {
                    break;
                }
                OFF.store(jump * 1_000_000, Relaxed);
                thread::sleep(Duration::from_millis(70));
            }
        });
        let worked = worker.run_alone();
        done.store(true, Relaxed);
        worked.expect("it works to the end of the grid");
    });
    setup.assert_whole();
}

/// Starts a worker whose wall clock is this one.
fn start(clock: &Clock, setup: &Setup) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(setup.log())
        .expect("a log");
    let mut worker = setup.bernstream(&["run"]);
    worker
        .arg(setup.configuration())
        .env("LD_PRELOAD", &clock.library)
        .env(Clock::SHIFT, &clock.shift);
    worker
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the worker starts")
}

/// Records that are sent as they happen, by a producer with these settings, counted by their window.
pub fn send_live(
    setup: &Setup,
    windows: u32,
    settings: &[(&str, &str)],
) -> BTreeMap<Timestamp, f64> {
    let settings = [("linger.ms", "0")]
        .iter()
        .chain(settings)
        .copied()
        .collect::<Vec<_>>();
    let producer = setup.producer(&settings);
    let origin = setup.origin;
    let end = setup.start_of(windows);
    let mut sent: BTreeMap<Timestamp, f64> = (0..windows)
        .map(|window| (setup.start_of(window), 0.0))
        .collect();
    while Timestamp::now() < origin {
        thread::sleep(Duration::from_millis(5));
    }
    loop {
        let now = Timestamp::now();
        if now >= end {
            break;
        }
        let payload = message(
            &[Row {
                micros: now.micros(),
                key: "a",
                value: 50.0,
            }; 5],
        );
        producer
            .send(
                BaseRecord::<(), _>::to(&setup.input)
                    .partition(0)
                    .payload(&payload),
            )
            .map_err(|(e, _)| e)
            .unwrap();
        *sent.range_mut(..=now).next_back().expect("a window").1 += 5.0;
        thread::sleep(Duration::from_millis(10));
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    sent
}

/// About how many records of key `a` each window has, by what was published.
pub fn counted(setup: &Setup) -> BTreeMap<Timestamp, f64> {
    let synopses = setup
        .published()
        .into_iter()
        .map(|p| Synopsis::decode_message(&p.payload).expect("a synopsis"));
    let of_a = synopses.filter(|synopsis| synopsis.description().key.as_deref() == Some("a"));
    let mass = |synopsis: Synopsis| synopsis.values().iter().sum::<f64>() * 100.0 / 12.0;
    of_a.map(|synopsis| (synopsis.description().window.start, mass(synopsis)))
        .collect()
}

#[test]
fn a_worker_whose_clock_is_an_hour_behind_is_not_ready_and_says_why() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::ticking(&servers);
    let Some(shim) = Clock::new(setup.folder.path()) else {
        return;
    };
    shim.move_to(-3600);
    let worker = Running::start_by(&setup, |setup| start(&shim, setup));
    setup.wait_for("why it is not ready", || {
        let (status, words) = worker.get("/readyz");
        (status == 503 && words.contains("a right clock") && !words.contains("reading the input"))
            .then_some(())
    });
    assert!(
        worker
            .get("/metrics")
            .1
            .contains("ready{part=\"clock\",pipeline=\"setup\"} 0")
    );
    setup.wait_log("behind the brokers'");
    assert!(setup.published().is_empty());
    shim.move_to(0);
    worker.wait_ready(&setup, true);
    worker.wait_metric(&setup, "synopses_published_total", 1.0);
}

mod long {
    use super::*;

    /// Records of its windows come late where other tests starve the producer.
    #[test]
    fn a_clock_that_is_20_s_ahead_for_5_s_loses_no_record_unless_producers_are_trusted() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let run = |is_trusting: bool, wait: Duration| {
            let origin = Timestamp::from_micros(
                Timestamp::now().plus(wait).micros() / 1_000_000 * 1_000_000,
            );
            let setup = Setup::quick(&servers, origin, 14);
            setup.edit("epsilon = 1.0", "epsilon = 1000.0");
            if is_trusting {
                setup.edit("clock_slack", "trust_producer_time = true\nclock_slack");
            }
            let made = setup.ledger_command(&["init", "--from", &origin.to_string()]);
            assert!(
                made.status.success(),
                "{}",
                String::from_utf8_lossy(&made.stderr)
            );
            let shim = Clock::new(setup.folder.path()).expect("a C compiler");
            let mut worker = start(&shim, &setup);
            setup.wait_log("reading the input");
            if Timestamp::now() > origin {
                let _ = worker.kill();
                let _ = worker.wait();
                return None;
            }
            let sent = thread::scope(|scope| {
                let sending = scope.spawn(|| send_live(&setup, 14, &[]));
                thread::sleep(setup.start_of(4).since(Timestamp::now()));
                shim.move_to(20);
                thread::sleep(Duration::from_secs(5));
                shim.move_to(0);
                sending.join().expect("it sends")
            });
            assert!(
                setup
                    .wait_for("the end", || worker.try_wait().expect("asked"))
                    .success(),
                "{}",
                setup.read_log()
            );
            setup.assert_whole();
            Some((sent, counted(&setup), setup.read_log()))
        };
        in_time(|wait| {
            let both = thread::scope(|scope| {
                [false, true]
                    .map(|is_trusting| scope.spawn(move || run(is_trusting, wait)))
                    .map(|one| one.join().unwrap())
            });
            let [
                Some((sent, found, log)),
                Some((sent_anyway, found_anyway, _)),
            ] = both
            else {
                return false;
            };
            for (window, sent) in &sent {
                let found = found[window];
                assert!(
                    *sent > 0.0 && (found - sent).abs() < 0.02 * sent,
                    "{window}: {sent} sent, {found} found: {log}"
                );
            }
            assert!(
                log.contains("ahead of the brokers'")
                    && log.contains("agrees with the brokers' again"),
                "{log}"
            );
            // The test can fail: nothing but the worker's clock counts where producers are trusted.
            let [sent, found] =
                [&sent_anyway, &found_anyway].map(|windows| windows.values().sum::<f64>());
            println!("where producers are trusted: {sent} sent, {found:.0} found");
            assert!(found < 0.8 * sent, "{sent} sent, {found} found");
            true
        });
    }

    #[test]
    fn a_clock_that_stays_ahead_publishes_nothing_before_it_is_due() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let run = |is_trusting: bool| {
            let origin = Timestamp::from_micros(Timestamp::now().micros() / 1_000_000 * 1_000_000);
            let setup = Setup::quick(&servers, origin, 12);
            setup.edit("publish_delay = \"300ms\"", "publish_delay = \"4s\"");
            if is_trusting {
                setup.edit("clock_slack", "trust_producer_time = true\nclock_slack");
            }
            let made = setup.ledger_command(&["init", "--from", &origin.to_string()]);
            assert!(
                made.status.success(),
                "{}",
                String::from_utf8_lossy(&made.stderr)
            );
            let shim = Clock::new(setup.folder.path()).expect("a C compiler");
            shim.move_to(20);
            let mut worker = start(&shim, &setup);
            // How long before it was due the earliest synopsis was there.
            let mut early = 0;
            let mut seen = 0;
            let is_over = || {
                let published = setup.published();
                let now = Timestamp::now();
                for message in published.iter().skip(seen) {
                    let due = Synopsis::decode_message(&message.payload)
                        .expect("a synopsis")
                        .description()
                        .published;
                    early = early.max(due.micros() - now.micros());
                }
                seen = seen.max(published.len());
                worker.try_wait().expect("asked")
            };
            assert!(
                setup.wait_for("the end", is_over).success(),
                "{}",
                setup.read_log()
            );
            setup.assert_whole();
            early
        };
        let early = run(false);
        assert!(early <= 0, "{early} us before it was due");
        // The test can fail: where producers are trusted, nothing but the worker's clock counts.
        let early = run(true);
        assert!(early > 1_000_000, "{early} us before it was due");
    }
}
