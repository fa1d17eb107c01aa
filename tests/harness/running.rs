//! A worker that is running, as a person sees it: its log, its endpoints, how it ends.

use std::fs;
use std::process::{Child, Command, ExitStatus};

use bernstream_synopsis::clock::Timestamp;

use super::http;
use super::setup::Setup;

/// Ends with the test: no worker outlives it.
pub struct Running {
    pub child: Child,
    address: Option<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the worker of `setup` with its endpoints on a free port, which its log names.
    pub fn start(setup: &Setup) -> Self {
        Running::start_by(setup, Setup::start)
    }

    /// The same, of a process that `start` starts.
    pub fn start_by(setup: &Setup, start: impl FnOnce(&Setup) -> Child) -> Self {
        let text = fs::read_to_string(setup.configuration()).expect("the configuration");
        if !text.contains("\n[serve]") {
            fs::write(
                setup.configuration(),
                text + "\n[serve]\nlisten = \"127.0.0.1:0\"\n",
            )
            .expect("it is written");
        }
        let before = setup.read_log().len();
        let mut child = start(setup);
        let address = setup.wait_for("the worker's address, or its end", || {
            let log = setup.read_log();
            let serving = log[before..]
                .lines()
                .find_map(|line| line.split_once("serving http://")?.1.split_once("/metrics"));
            let has_ended = child.try_wait().expect("it can be asked").is_some();
            serving
                .map(|(address, _)| Some(address.to_owned()))
                .or(has_ended.then_some(None))
        });
        Running { child, address }
    }

    /// Where its endpoints are.
    pub fn address(&self) -> &str {
        self.address.as_deref().expect("it has not ended")
    }

    /// Status and text of an endpoint; status 0 where nobody listens.
    pub fn get(&self, path: &str) -> (u16, String) {
        let answer = self
            .address
            .as_ref()
            .and_then(|address| http::ask(address, "GET", path).ok());
        answer.map_or((0, String::new()), |answer| (answer.status, answer.body))
    }

    pub fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics");
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("bernstream_{name}{{")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits until the worker is ready, or not any more, and gives its words.
    pub fn wait_ready(&self, setup: &Setup, is_ready: bool) -> String {
        let wanted = if is_ready { 200 } else { 503 };
        setup
            .wait_for("readiness", || {
                Some(self.get("/readyz")).filter(|(status, _)| *status == wanted)
            })
            .1
    }

    /// Waits until the worker is ready, or until it is too late: whether it is.
    pub fn is_ready_by(&self, setup: &Setup, until: Timestamp) -> bool {
        let is_ready = || (self.get("/readyz").0 == 200).then_some(true);
        setup.wait_for("readiness", || {
            is_ready().or((Timestamp::now() > until).then_some(false))
        })
    }

    pub fn wait_metric(&self, setup: &Setup, name: &str, least: f64) {
        setup.wait_for(name, || self.metric(name).filter(|value| *value >= least));
    }

    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .expect("kill runs")
                .success()
        );
    }

    pub fn end(&mut self, setup: &Setup) -> ExitStatus {
        setup.wait_for("the end", || {
            self.child.try_wait().expect("it can be asked")
        })
    }

    /// Waits until the worker has ended with an error whose log has all of `words`.
    pub fn refuses(&mut self, setup: &Setup, words: &[&str]) {
        let status = self.end(setup);
        let log = setup.read_log();
        assert!(!status.success(), "{log}");
        let last = log.lines().rev().take(3).collect::<String>();
        assert!(
            words.iter().all(|word| last.contains(word)),
            "{words:?}: {log}"
        );
    }
}
