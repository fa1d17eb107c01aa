//! A worker that is running, as a person sees it: its log, its endpoints, how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use super::scene::Scene;

/// Ends with the test: no worker outlives it.
pub struct Running {
    pub child: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again until `found` finds something.
pub fn wait_for<T>(what: &str, scene: &Scene, seconds: u64, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come within {seconds} s:\n{}", scene.read_log());
        thread::sleep(Duration::from_millis(20));
    }
}

impl Running {
    /// Starts the worker of `scene` with its endpoints on a free port.
    pub fn start(scene: &Scene) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        let text = fs::read_to_string(scene.configuration()).expect("the configuration");
        let (before, detail) = text.split_once("\n[serve]").unwrap_or((&text, ""));
        let detail = if detail.contains("operator") { "operator" } else { "safe" };
        let serve = format!("{before}\n[serve]\nlisten = \"{free}\"\ndetail = \"{detail}\"\n");
        fs::write(scene.configuration(), serve).expect("the configuration is written");
        Running { child: scene.start(), address: free.to_string() }
    }

    /// Status and text of an endpoint; status 0 where nobody listens.
    pub fn get(&self, path: &str) -> (u16, String) {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = ask().unwrap_or_default();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
    }

    pub fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find(|line| line.starts_with(&format!("bernstream_{name}{{")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits until the worker is ready, or not any more, and gives its words.
    pub fn wait_ready(&self, scene: &Scene, is_ready: bool) -> String {
        let wanted = if is_ready { 200 } else { 503 };
        wait_for("readiness", scene, 45, || Some(self.get("/readyz")).filter(|(status, _)| *status == wanted)).1
    }

    pub fn wait_metric(&self, scene: &Scene, name: &str, least: f64) {
        wait_for(name, scene, 45, || self.metric(name).filter(|value| *value >= least));
    }

    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    }

    /// Waits for the end, which comes soon.
    pub fn end(&mut self, scene: &Scene, seconds: u64) -> ExitStatus {
        wait_for("the end", scene, seconds, || self.child.try_wait().expect("it can be asked"))
    }

    /// Waits until the worker has ended with an error whose log has all of `words`.
    pub fn refuses(&mut self, scene: &Scene, words: &[&str]) {
        let status = self.end(scene, 45);
        let log = scene.read_log();
        assert!(!status.success(), "{log}");
        let last = log.lines().rev().take(3).collect::<String>();
        assert!(words.iter().all(|word| last.contains(word)), "{words:?}: {log}");
    }
}
