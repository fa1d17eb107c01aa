//! promtool, a Prometheus server, and processes that end with their test.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use super::http::get;

/// The folder of promtool and prometheus; without them a test is skipped, but never in CI.
pub fn tools() -> Option<PathBuf> {
    let unpacked = PathBuf::from("target/prometheus/usr/bin");
    let given = env::var_os("BERNSTREAM_TEST_PROMETHEUS")
        .map(PathBuf::from)
        .filter(|folder| !folder.as_os_str().is_empty());
    let on_path =
        || env::split_paths(&env::var_os("PATH")?).find(|folder| folder.join("promtool").exists());
    let found = given
        .or_else(on_path)
        .or(Some(unpacked))
        .filter(|folder| folder.join("promtool").exists());
    if found.is_none() {
        assert!(
            env::var_os("CI").is_none(),
            "CI needs Prometheus: tests/prometheus.sh"
        );
        let test = thread::current().name().unwrap_or("a test").to_owned();
        let how = "BERNSTREAM_TEST_PROMETHEUS=$(tests/prometheus.sh) cargo test";
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {test}: it needs Prometheus; run {how}"
        );
    }
    found
}

/// Ends with the test.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn start(command: &mut Command, log: &Path) -> Process {
    let log = fs::File::create(log).expect("a log");
    let command = command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a copy"))
        .stderr(log);
    Process(command.spawn().expect("it starts"))
}

/// What Prometheus answers; it must take the question.
pub fn ask(address: &str, path: &str) -> Value {
    let text = get(address, path).unwrap_or_default();
    let answer: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
    assert_eq!(answer["status"], "success", "{path}: {text}");
    answer["data"].clone()
}

/// How many series an expression has now.
pub fn results(address: &str, expression: &str) -> usize {
    let encoded: String = expression
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    let data = ask(address, &format!("/api/v1/query?query={encoded}"));
    data["result"].as_array().map_or(0, Vec::len)
}
