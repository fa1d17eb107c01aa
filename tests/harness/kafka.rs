//! The real broker that tests run against, and topics of their own on it.
//!
//! `#[path = "support/kafka.rs"] mod kafka;` in a test, and `let Some(broker) = kafka::broker() else { return };`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bernstream_kafka::Broker;
use bernstream_kafka::topic::create_topic;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::metadata::MetadataTopic;
use tempfile::TempDir;

use super::lifeline::Lifeline;
use super::wait_for;

/// `bootstrap.servers` of the broker to test against, from `BERNSTREAM_TEST_KAFKA`; without one the test is skipped.
pub fn broker() -> Option<String> {
    let servers = std::env::var("BERNSTREAM_TEST_KAFKA")
        .ok()
        .filter(|s| !s.is_empty());
    if servers.is_none() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let how = "BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo test";
        // Unlike `eprintln!` not captured, so that a skipped test is seen.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {test}: it needs a broker; run {how}"
        );
    }
    servers
}

/// How the crate reaches that broker.
pub fn at(servers: &str) -> Broker {
    Broker::without_security(servers)
}

/// A name that no other test, thread or run uses.
pub fn fresh_name(stem: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    format!(
        "{stem}-{now}-{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    )
}

/// A new topic with the given settings, on top of `retention.ms=-1`.
pub fn fresh_topic(
    servers: &str,
    stem: &str,
    partitions: i32,
    settings: &[(&str, &str)],
) -> String {
    let name = fresh_name(stem);
    let settings: Vec<_> = [("retention.ms", "-1")]
        .iter()
        .chain(settings)
        .copied()
        .collect();
    create_topic(&at(servers), &name, partitions, 1, &settings).unwrap();
    name
}

/// A new topic as the operator wants its input: stamped by the broker, never expired.
pub fn fresh_input(servers: &str, partitions: i32) -> String {
    fresh_topic(
        servers,
        "input",
        partitions,
        &[("message.timestamp.type", "LogAppendTime")],
    )
}

/// A broker that a test may stop; it ends with the test.
pub struct Own {
    home: TempDir,
    lifeline: Lifeline,
    /// `bootstrap.servers`, the same after each restart.
    pub servers: String,
}

impl Own {
    pub fn start() -> Self {
        Own::begin(|start| start)
    }

    /// One at whose listener with a password users have no rights but those that are given.
    pub fn with_acls() -> Self {
        Own::begin(|start| start.env("BERNSTREAM_KAFKA_ACLS", "1"))
    }

    /// One where on a topic to which any right was given, users have no others; without a password they are `User:ANONYMOUS`.
    pub fn with_some_acls() -> Self {
        Own::begin(|start| start.env("BERNSTREAM_KAFKA_ACLS", "some"))
    }

    fn begin(set: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let lifeline = Lifeline::lay(home.path().join("server.properties"));
        let mut start = script(home.path(), "start");
        start.env("BERNSTREAM_KAFKA_CONTROLLER", lifeline.port.to_string());
        let servers = said(set(&mut start));
        let own = Own {
            home,
            lifeline,
            servers,
        };
        own.wait_led();
        own
    }

    /// `kafka-acls` with these arguments.
    pub fn acls(&self, arguments: &[&str]) {
        said(script(self.home.path(), "acls").args(arguments));
    }

    /// Another action of `tests/kafka.sh`.
    pub fn ask(&self, action: &str) -> String {
        if action == "restart" {
            self.lifeline.heal();
        }
        let said = said(&mut script(self.home.path(), action));
        if action == "restart" {
            self.wait_led();
        }
        said
    }

    /// Waits until it leads every partition: its port is open before.
    pub fn wait_led(&self) {
        let client: BaseConsumer = at(&self.servers).client_config().unwrap().create().unwrap();
        let is_led = || {
            let cluster = client.fetch_metadata(None, Duration::from_secs(1)).ok()?;
            let mut partitions = cluster.topics().iter().flat_map(MetadataTopic::partitions);
            (!cluster.brokers().is_empty() && partitions.all(|partition| partition.leader() >= 0))
                .then_some(())
        };
        wait_for("a leader of every partition", String::new, is_led);
    }

    /// Its controller hears nothing of it, and fences it: it answers that no partition has a leader.
    pub fn fence(&self) {
        self.lifeline.cut();
        let client: BaseConsumer = at(&self.servers).client_config().unwrap().create().unwrap();
        let is_fenced = || {
            let cluster = client.fetch_metadata(None, Duration::from_secs(1)).ok()?;
            cluster
                .topics()
                .iter()
                .flat_map(MetadataTopic::partitions)
                .all(|partition| partition.leader() < 0)
                .then_some(())
        };
        wait_for("that nothing is led", String::new, is_fenced);
    }

    /// It leads its partitions again.
    pub fn unfence(&self) {
        self.lifeline.heal();
        self.wait_led();
    }

    /// Sends its process a signal: `-STOP` or `-CONT`.
    pub fn signal(&self, name: &str) {
        let id = std::fs::read_to_string(self.home.path().join("pid")).expect("its process");
        assert!(
            Command::new("kill")
                .args([name, id.trim()])
                .status()
                .expect("kill runs")
                .success()
        );
    }

    /// What there is of it.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.home.path()).expect("its folder");
        files.map(|file| file.expect("a file").path()).collect()
    }

    /// Where its topics are.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A power failure as seen by a topic of one partition: while the broker is down, its newest records are cut off from some batch on.
    /// `keeps` says of how many batches how many are left.
    pub fn cut(&self, topic: &str, keeps: impl Fn(usize) -> usize) {
        let folder = self.data().join(format!("{topic}-0"));
        let names = std::fs::read_dir(&folder)
            .expect("its folder")
            .map(|entry| entry.expect("a file").path());
        let (logs, others): (Vec<_>, Vec<_>) =
            names.partition(|path| path.extension().is_some_and(|ending| ending == "log"));
        let [log] = logs.as_slice() else {
            panic!("one segment: {logs:?}")
        };
        let bytes = std::fs::read(log).expect("its records");
        let mut starts = Vec::new();
        let mut at = 0;
        while let Some(length) = bytes
            .get(at + 8..at + 12)
            .map(|length| u32::from_be_bytes(length.try_into().unwrap()))
        {
            // What was not written yet is zero.
            if length == 0 {
                break;
            }
            starts.push(at);
            at += 12 + length as usize;
        }
        starts.push(at);
        let end = starts[keeps(starts.len() - 1)];
        let file = std::fs::File::options()
            .write(true)
            .open(log)
            .expect("its records");
        file.set_len(end as u64).expect("they are cut off");
        // The broker makes these again.
        for other in others {
            let is_derived = ["index", "timeindex", "snapshot"]
                .iter()
                .any(|ending| other.extension().is_some_and(|it| it == *ending));
            if is_derived {
                std::fs::remove_file(other).expect("it is deleted");
            }
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.lifeline.heal();
        let _ = script(self.home.path(), "stop").output();
    }
}

fn script(home: &Path, action: &str) -> Command {
    let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka.sh"));
    script.arg(action).env("BERNSTREAM_KAFKA_HOME", home);
    script
}

fn said(script: &mut Command) -> String {
    let done = script.output().expect("the script runs");
    assert!(
        done.status.success(),
        "{script:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}
