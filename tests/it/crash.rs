//! kill -9 at every step of the walk, and at random: nothing unpaid leaves, nothing is drawn twice, nothing is missing.

use std::cell::Cell;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bernstream::cli::components::Components;
use bernstream_config::WorkerSettings;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::Paid;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_noise::noise::Generator;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::kafka;
use crate::harness::setup::Setup;

/// SIGKILL, to oneself: nothing is cleaned up, flushed or unlocked.
fn die() -> ! {
    let this = std::process::id().to_string();
    let _ = Command::new("kill").args(["-9", &this]).status();
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// Counts down, and dies when the count is over.
struct Fuse {
    step: &'static str,
    left: Cell<u32>,
}

impl Fuse {
    /// From the environment of a child: the step to die at, and at which time of passing it.
    fn at(step: &'static str) -> Self {
        let wanted = env::var("BERNSTREAM_TEST_DIE_AT").unwrap_or_default();
        let left = match wanted.split_once(':') {
            Some((name, count)) if name == step => count.parse().expect("a count"),
            _ => u32::MAX,
        };
        Fuse {
            step,
            left: Cell::new(left),
        }
    }

    fn burn(&self) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            eprintln!("dies: {}", self.step);
            die();
        }
    }
}

struct FusedWitness {
    inner: Box<dyn Witness + Send>,
    read: Fuse,
    before: Fuse,
    after: Fuse,
}

impl Witness for FusedWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.read.burn();
        self.inner.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.inner.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.before.burn();
        let appended = self.inner.append(claim);
        self.after.burn();
        appended
    }
}

struct FusedSink {
    inner: Box<dyn Sink + Send>,
    before: Fuse,
    between: Fuse,
    after: Fuse,
}

impl Sink for FusedSink {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        let (some, rest) = paid.split_at(paid.len() / 2);
        self.before.burn();
        self.inner.publish(some)?;
        self.between.burn();
        let published = self.inner.publish(rest);
        self.after.burn();
        published
    }
}

pub const STEPS: [&str; 7] = [
    "draw",
    "read the witness",
    "claim",
    "claimed",
    "publish",
    "published by half",
    "published",
];

/// Not a test of its own: the worker that the next test starts and that dies where it is told.
#[test]
fn a_worker_that_dies_where_it_is_told() {
    let Ok(configuration) = env::var("BERNSTREAM_TEST_CONFIGURATION") else {
        return;
    };
    let settings = WorkerSettings::load(configuration.as_ref()).expect("a sound configuration");
    let plan = settings
        .plan(
            |release| bernstream::cli::run::noise_bands(release, &settings.ledger.path),
            false,
        )
        .expect("a plan");
    let components = Components::open(&settings).expect("the components open");
    let draw = Fuse::at(STEPS[0]);
    let health = Health::default();
    let worker = Worker {
        plan: &plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: Box::new(FusedWitness {
            inner: components.witness,
            read: Fuse::at(STEPS[1]),
            before: Fuse::at(STEPS[2]),
            after: Fuse::at(STEPS[3]),
        }),
        sink: Box::new(FusedSink {
            inner: components.sink,
            before: Fuse::at(STEPS[4]),
            between: Fuse::at(STEPS[5]),
            after: Fuse::at(STEPS[6]),
        }),
        generators: Box::new(move || {
            draw.burn();
            Generator::from_entropy()
        }),
        metrics: Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "").expect("metrics"),
        health: &health,
        stop: StopRequest::default(),
    };
    worker.run_alone().expect("it works to the end of the grid");
}

/// A worker that dies at the given passing of a step, or works to the end where it never passes so often.
pub fn dies_at(setup: &Setup, step: &str, passing: u32) -> bool {
    let child = Command::new(env::current_exe().expect("this test"))
        .args([
            "--exact",
            "crash::a_worker_that_dies_where_it_is_told",
            "--nocapture",
        ])
        .env("BERNSTREAM_TEST_CONFIGURATION", setup.configuration())
        .env("BERNSTREAM_TEST_DIE_AT", format!("{step}:{passing}"))
        .output()
        .expect("the worker runs");
    let has_died = child.status.signal() == Some(9);
    assert!(
        has_died || child.status.success(),
        "{step}: {}",
        String::from_utf8_lossy(&child.stderr)
    );
    has_died
}

#[test]
fn a_worker_killed_at_any_step_publishes_every_window_once_and_pays_for_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    for step in STEPS {
        let setup = Setup::new(&servers, 3);
        setup.send(&setup.rows(3_000, 1));
        setup.begin(Duration::from_millis(500));
        assert!(dies_at(&setup, step, 1), "{step} is passed");
        let rows = grown(&setup, &[]);
        dies_at(&setup, step, 2);
        grown(&setup, &rows);
        assert!(
            setup.start().wait().expect("it ends").success(),
            "{step}: {}",
            setup.read_log()
        );
        setup.assert_whole();
    }
}

/// The rows of the ledger: those of `before` and perhaps more, never fewer or others.
pub fn grown(setup: &Setup, before: &[String]) -> Vec<String> {
    let exported = setup.ledger_command(&["export"]);
    assert!(
        exported.status.success(),
        "{}",
        String::from_utf8_lossy(&exported.stderr)
    );
    let rows: Vec<String> = String::from_utf8_lossy(&exported.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(rows.starts_with(before), "what was spent is spent");
    rows
}

mod long {
    use super::*;

    /// 50 in CI; `BERNSTREAM_TEST_KILLS=500 cargo test --test it crash::` for a longer look.
    #[test]
    fn a_worker_killed_at_random_publishes_every_window_once_and_pays_for_it() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let kills: u32 = env::var("BERNSTREAM_TEST_KILLS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(50);
        let setup = Setup::new(&servers, 16 * kills);
        setup.send(&setup.rows(50_000, 2));
        setup.begin(Duration::from_secs(1));
        let mut random = ChaCha20Rng::seed_from_u64(3);
        let mut rows = Vec::new();
        let mut killed = 0;
        for round in 0..kills {
            let before = setup.read_log().len();
            let mut worker = setup.start();
            // A third while they start; the others at work, which on a slow machine comes late.
            let mut ended = None;
            if round % 3 > 0 {
                setup.wait_for("a window", || {
                    ended = worker.try_wait().expect("it can be asked");
                    let is_at_work = setup.read_log()[before..].contains("window released");
                    (is_at_work || ended.is_some()).then_some(())
                });
            }
            thread::sleep(Duration::from_millis(random.random_range(0..200)));
            ended = worker.try_wait().expect("it can be asked");
            assert!(
                ended.is_none_or(|status| status.success()),
                "{}",
                setup.read_log()
            );
            worker.kill().expect("it is killed");
            worker.wait().expect("it ended");
            if ended.is_some() {
                break;
            }
            killed += 1;
            if round % 5 == 0 {
                rows = grown(&setup, &rows);
            }
        }
        println!(
            "killed {killed} of {kills} times while it worked, {} rows in the ledger then",
            rows.len()
        );
        assert!(
            killed > kills / 4,
            "a worker at work is killed, again and again"
        );
        assert!(
            setup.start().wait().expect("it ends").success(),
            "{}",
            setup.read_log()
        );
        setup.assert_whole();
    }
}
