//! When synopses leave: at their moment, however much there is to read then.

use std::env;
use std::thread;
use std::time::Duration;

use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::WorkerSettings;
use bernstream_kafka::topic::create_topic;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::harness::PATIENCE;
use crate::harness::kafka;
use crate::harness::setup::{Published, Setup};

const LENGTH: Duration = Duration::from_secs(2);
/// From the end of a window to the moment at which it is published.
const LATER: Duration = Duration::from_millis(1700);
/// Windows with a burst, and as many without.
const WINDOWS: u32 = 30;
/// Of a burst, unless `BERNSTREAM_TEST_BURST` says how many.
const MESSAGES: usize = 200_000;

/// A user's records, each a message, from shortly before the moment on.
fn burst(
    producer: &ThreadedProducer<DefaultProducerContext>,
    topic: &str,
    moment: Timestamp,
    messages: usize,
) {
    let payload = format!(r#"{{"time":"{}","key":"a","value":50.0}}"#, moment);
    thread::sleep(
        moment
            .minus(Duration::from_millis(100))
            .since(Timestamp::now()),
    );
    for number in 0..messages {
        let partition = i32::try_from(number % 2).expect("0 or 1");
        let record = BaseRecord::<(), _>::to(topic)
            .partition(partition)
            .payload(&payload);
        if producer.send(record).is_err() {
            break;
        }
    }
}

/// How late the first message of a window was appended, in milliseconds.
fn lateness(published: &[Published], moment: Timestamp) -> Option<i64> {
    let due = moment.to_string();
    let of_window = published
        .iter()
        .filter(|message| message.headers["ce_time"] == due);
    let first = of_window.map(|message| message.stamp).min()?;
    Some(first.micros().div_euclid(1000) - moment.micros().div_euclid(1000))
}

fn show(name: &str, mut late: Vec<i64>) {
    late.sort_unstable();
    let at = |part: f64| late[(part * (late.len() - 1) as f64).round() as usize];
    println!(
        "{name}: median {} ms, 95 % within {} ms, at most {} ms; {late:?}",
        at(0.5),
        at(0.95),
        at(1.0)
    );
}

#[test]
fn a_draw_that_lasts_over_the_moment_of_the_window_before_does_not_hold_it_up() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let length = Duration::from_secs(3);
    let later = Duration::from_secs(5);
    // A window held up by the next draw leaves 1.2 s late; between two draws there are 0.8 s to claim it.
    let draw = Duration::from_millis(2200);
    // So that the worker has begun before the first window ends, however much else runs.
    let second = Timestamp::from_micros((Timestamp::now().micros() / 1_000_000 + 8) * 1_000_000);
    let setup = Setup::quick(&servers, second, 12);
    setup.edit("length = \"1s\"", "length = \"3s\"");
    setup.edit("publish_delay = \"300ms\"", "publish_delay = \"4s\"");
    create_topic(
        &kafka::at(&servers),
        &setup.output,
        1,
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    )
    .expect("a topic");
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), false)
        .expect("a plan");
    let components = Components::open(&settings)
        .map_err(|error| error.failure)
        .expect("the components open");
    let metrics = Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "0").expect("metrics");
    let health = Health::default();
    let mut draws = Vec::new();
    let worker = Worker {
        plan: &plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(|| {
            draws.push(Timestamp::now());
            thread::sleep(draw);
            Generator::from_entropy()
        }),
        metrics: metrics.clone(),
        health: &health,
        stop: StopRequest::default(),
    };
    worker.run_alone().expect("it works to the end of the grid");
    let published = setup.published();
    // All windows but the last, beside which nothing is drawn.
    let late: Vec<i64> = (1..4)
        .map(|window| {
            let due = setup.origin.plus(length * window).plus(later);
            assert!(
                draws
                    .iter()
                    .any(|start| *start < due && due < start.plus(draw)),
                "{due:?} is amid none of the draws {draws:?}"
            );
            lateness(&published, due).expect("every window is published")
        })
        .collect();
    assert!(
        late.iter().all(|late| (0..1_000).contains(late)),
        "{late:?} ms"
    );
    assert_eq!(metrics.published.get(), published.len() as u64);
}

/// `cargo test --release --test it -- --ignored --nocapture when_synopses_leave`
#[test]
#[ignore = "figures: minutes"]
fn when_synopses_leave_with_and_without_a_burst_of_input() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    setup.edit("length = \"1s\"", "length = \"2s\"");
    setup.edit("publish_delay = \"300ms\"", "publish_delay = \"700ms\"");
    setup.edit("column = \"key\", ", "column = \"key\", type = \"text\", ");
    setup.edit("topic = \"input", "format = \"json\"\ntopic = \"input");
    create_topic(
        &kafka::at(&servers),
        &setup.output,
        1,
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    )
    .expect("a topic");
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut worker = setup.start();
    let producer = setup.producer(&[
        ("queue.buffering.max.messages", "1000000"),
        ("linger.ms", "5"),
    ]);
    setup.wait_for("the first synopsis", || {
        (!setup.published().is_empty()).then_some(())
    });
    let since = Timestamp::now().since(setup.origin).as_micros() / LENGTH.as_micros();
    let first = setup
        .origin
        .plus(LENGTH * u32::try_from(since + 2).expect("few windows"))
        .plus(LATER);
    let moments: Vec<Timestamp> = (0..2 * WINDOWS)
        .map(|window| first.plus(LENGTH * window))
        .collect();
    let messages = env::var("BERNSTREAM_TEST_BURST")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(MESSAGES);
    for moment in moments.iter().step_by(2) {
        burst(&producer, &setup.input, *moment, messages);
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    setup.wait_for("the last window", || {
        lateness(&setup.published(), *moments.last()?)
    });
    worker.kill().expect("it runs");
    worker.wait().expect("it ends");
    let published = setup.published();
    let late = |from: usize| {
        let every_other = moments.iter().skip(from).step_by(2);
        every_other
            .map(|moment| lateness(&published, *moment).expect("every window is published"))
            .collect::<Vec<_>>()
    };
    let with = late(0);
    let without = late(1);
    assert!(
        with.iter().chain(&without).all(|late| *late >= 0),
        "nothing leaves before its moment"
    );
    show("with a burst", with);
    show("without", without);
}
