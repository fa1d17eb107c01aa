//! A broker that is down at the start and in the middle, and comes back: the worker waits, says so, and loses nothing.

use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::kafka;
use crate::harness::running::{Running, wait_for};
use crate::harness::scene::Scene;

/// A broker that this test may crash.
struct Own(TempDir);

impl Own {
    fn ask(&self, action: &str) -> String {
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka.sh"));
        let done = script.arg(action).env("BERNSTREAM_KAFKA_HOME", self.0.path()).output().expect("the script runs");
        assert!(done.status.success(), "{action}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka.sh"));
        let _ = script.arg("stop").env("BERNSTREAM_KAFKA_HOME", self.0.path()).output();
    }
}

#[test]
fn a_broker_that_is_down_is_waited_for_at_the_start_and_in_the_middle_and_nothing_is_lost() {
    if kafka::broker().is_none() {
        return;
    }
    let own = Own(tempfile::tempdir().expect("a folder"));
    let scene = Scene::new(&own.ask("start"), 400);
    scene.send(&scene.rows(20_000, 1));
    scene.begin(Duration::ZERO);

    own.ask("crash");
    let mut impatient = Running::start(&scene);
    impatient.wait_ready(&scene, false);
    impatient.terminate();
    wait_for("the signal", &scene, 5, || scene.read_log().contains("stopping").then_some(()));
    impatient.terminate();
    assert_eq!(impatient.end(&scene, 3).code(), Some(130), "a second signal waits for no broker");

    let mut worker = Running::start(&scene);
    let words = worker.wait_ready(&scene, false);
    assert!(words.contains("not ready: reading the input, agreeing with the witness"), "{words}");
    wait_for("the log", &scene, 45, || scene.read_log().contains("does not answer").then_some(()));
    assert!(scene.read_log().contains("trying again"), "{}", scene.read_log());
    assert_eq!(worker.get("/healthz").0, 200, "a broker that is down must not restart the worker");
    own.ask("restart");
    worker.wait_ready(&scene, true);

    worker.wait_metric(&scene, "synopses_published_total", 20.0);
    own.ask("crash");
    let words = worker.wait_ready(&scene, false);
    assert!(words.contains("the input") || words.contains("publishing what is due"), "{words}");
    assert_eq!(worker.get("/healthz").0, 200);
    assert!(worker.metric("synopses_published_total").is_some_and(|count| count < 800.0), "it is in the middle");
    own.ask("restart");
    assert!(worker.end(&scene, 90).success(), "{}", scene.read_log());
    scene.assert_whole();
    let log = scene.read_log();
    let lines = log.lines().filter(|line| !line.contains("window released")).count();
    assert!(lines < 40, "a broker that is down fills no log: {log}");
}
