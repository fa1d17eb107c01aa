//! A client of the input that hangs, as none should: the worker mends it where it can, and else the liveness probe tells.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::kafka;
use crate::harness::preload::{Clock, Hang};
use crate::harness::running::Running;
use crate::harness::setup::Setup;

/// The thread that asks for the ends of the input.
const ASKS: &str = "end offsets";
/// A thread that reads records.
const READS: &str = "reader";

/// Starts a worker whose wall clock is `clock`, and some of whose threads `hang`.
fn start(clock: &Clock, hang: &Hang, setup: &Setup) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(setup.log())
        .expect("a log");
    let mut worker = setup.bernstream(&["run"]);
    worker
        .arg(setup.configuration())
        .env(Clock::SHIFT, &clock.shift)
        .env(Hang::THREADS, &hang.threads);
    worker.env(
        "LD_PRELOAD",
        format!("{} {}", clock.library.display(), hang.library.display()),
    );
    worker
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the worker starts")
}

#[test]
fn a_reader_that_hangs_is_told_by_the_liveness_probe_after_three_minutes() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::ticking(&servers);
    let folder = setup.folder.path();
    let (Some(clock), Some(hang)) = (Clock::new(folder), Hang::new(folder)) else {
        return;
    };
    let worker = Running::start_by(&setup, |setup| start(&clock, &hang, setup));
    worker.wait_ready(&setup, true);
    let wait_alive = |status| {
        setup.wait_for("liveness", || {
            (worker.get("/healthz").0 == status).then_some(())
        })
    };
    // The test can fail: three minutes pass for a reader that does not hang too.
    clock.move_to(240);
    wait_alive(200);
    hang.begin(READS);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(worker.get("/healthz").0, 200, "it may still come back");
    clock.move_to(480);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(
            worker.get("/healthz"),
            (503, "a loop of the worker hangs\n".to_owned())
        );
        thread::sleep(Duration::from_millis(100));
    }
    hang.end();
    wait_alive(200);
}

mod long {
    use super::*;

    #[test]
    fn a_client_that_never_answers_is_told_and_the_input_is_opened_again_with_another() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = Setup::ticking(&servers);
        let folder = setup.folder.path();
        let (Some(clock), Some(hang)) = (Clock::new(folder), Hang::new(folder)) else {
            return;
        };
        let worker = Running::start_by(&setup, |setup| start(&clock, &hang, setup));
        worker.wait_ready(&setup, true);
        let begun = Instant::now();
        hang.begin(ASKS);
        let wait_unready = || {
            worker
                .get("/readyz")
                .1
                .contains("reading the input")
                .then_some(())
        };
        setup.wait_for("the input", wait_unready);
        setup.wait_for("the end of patience", || {
            assert_eq!(
                worker.get("/healthz").0,
                200,
                "the worker mends it by itself"
            );
            setup
                .read_log()
                .contains("for minutes it has told neither an answer nor an error")
                .then_some(())
        });
        let patience = begun.elapsed().as_secs();
        assert!((175..240).contains(&patience), "{patience} s");
        hang.end();
        worker.wait_ready(&setup, true);
        let published = worker
            .metric("synopses_published_total")
            .expect("it is counted");
        worker.wait_metric(&setup, "synopses_published_total", published + 1.0);
    }
}
