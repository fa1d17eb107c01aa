//! promtool, a Prometheus server, and processes that end with their test.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The folder of promtool and prometheus; without them a test is skipped, but never in CI.
pub fn tools() -> Option<PathBuf> {
    let unpacked = PathBuf::from("target/prometheus/usr/bin");
    let given =
        env::var_os("BERNSTREAM_TEST_PROMETHEUS").map(PathBuf::from).filter(|folder| !folder.as_os_str().is_empty());
    let on_path = || env::split_paths(&env::var_os("PATH")?).find(|folder| folder.join("promtool").exists());
    let found = given.or_else(on_path).or(Some(unpacked)).filter(|folder| folder.join("promtool").exists());
    if found.is_none() {
        assert!(env::var_os("CI").is_none(), "CI needs Prometheus: tests/prometheus.sh");
        let test = thread::current().name().unwrap_or("a test").to_owned();
        let how = "BERNSTREAM_TEST_PROMETHEUS=$(tests/prometheus.sh) cargo test";
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it needs Prometheus; run {how}");
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
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Process(command.spawn().expect("it starts"))
}

pub fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").to_string()
}

/// The text of an answer; none where nobody listens.
pub fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    // 1.0, so that no answer comes in pieces.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        thread::sleep(Duration::from_millis(200));
    }
}

/// What Prometheus answers; it must take the question.
pub fn ask(address: &str, path: &str) -> Value {
    let text = get(address, path).unwrap_or_default();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
    assert_eq!(answer["status"], "success", "{path}: {text}");
    answer["data"].clone()
}

/// How many series an expression has now.
pub fn results(address: &str, expression: &str) -> usize {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let data = ask(address, &format!("/api/v1/query?query={encoded}"));
    data["result"].as_array().map_or(0, Vec::len)
}
