//! A clock that jumps: it can make a window late or cut short what was read for it, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bernstream::cli::components::Components;
use bernstream::clock::Timestamp;
use bernstream::config::{Input, Settings};
use bernstream::mechanism::noise::Generator;
use bernstream::metrics::{Detail, Metrics};
use bernstream::pipeline::{Health, Stop, Worker};
use bernstream::source::kafka::Kafka;

use crate::harness::kafka;
use crate::harness::setup::Setup;

/// How far the worker's clock is from the true one, in microseconds.
static OFF: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp::from_micros(Timestamp::now().micros() + OFF.load(Relaxed))
}

#[test]
fn a_clock_that_jumps_an_hour_to_and_fro_closes_every_window_once_and_pays_for_it() {
    let Some(servers) = kafka::broker() else { return };
    let setup = Setup::new(&servers, 30);
    setup.send(&setup.rows(5_000, 1));
    setup.begin(Duration::from_millis(500));
    let settings = Settings::load(&setup.configuration()).expect("a sound configuration");
    let plan =
        settings.plan(|release| bernstream::cli::run::bands(release, &settings.ledger.path), false).expect("a plan");
    let components = Components::open(&settings).expect("the components open");
    let Input::Kafka(input) = &settings.input else { panic!("a setup reads Kafka") };
    let source = Kafka::open(input.clone(), settings.columns.clone(), clock).expect("the input opens");
    let (health, done) = (Health::default(), AtomicBool::new(false));
    let worker = Worker {
        plan: &plan,
        source: Box::new(source),
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(Generator::from_entropy),
        metrics: Metrics::new(Detail::Safe, "setup", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: Stop::default(),
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
        let worked = worker.run();
        done.store(true, Relaxed);
        worked.expect("it works to the end of the grid");
    });
    setup.assert_whole();
}
