//! Three real brokers on a network of their own (`tests/cluster.sh`), and a test that runs inside of it.

use std::env;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use tempfile::TempDir;

use super::{PATIENCE, kafka, wait_for};

const INSIDE: &str = "BERNSTREAM_TEST_CLUSTER";

/// A cluster that ends with the test.
pub struct Cluster {
    home: TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = script(self.home.path(), &["stop"]).status();
    }
}

/// What a test inside of the cluster's network can do to it.
pub struct Inside {
    home: String,
    /// `bootstrap.servers`.
    pub servers: String,
}

/// Runs the test that calls it on three brokers: starts them, then runs the same test again inside of their network, where it
/// gets them. Skipped, loudly, where a broker or namespaces are missing.
///
/// `test` is the test's name, `lag` the brokers' replica.lag.time.max.ms.
pub fn inside(test: &str, lag: u32) -> Option<Inside> {
    inside_with(test, lag, Disks::OfThisMachine)
}

/// The same on brokers whose power can fail: each has a disk of its own, which loses what was not synced.
pub fn inside_on_disks(test: &str, lag: u32) -> Option<Inside> {
    inside_with(test, lag, Disks::Own)
}

/// Where the brokers keep their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disks {
    OfThisMachine,
    Own,
}

fn inside_with(test: &str, lag: u32, disks: Disks) -> Option<Inside> {
    if let Ok(place) = env::var(INSIDE) {
        let (home, servers) = place.split_once(' ').expect("a folder and addresses");
        return Some(Inside {
            home: home.to_owned(),
            servers: servers.to_owned(),
        });
    }
    kafka::broker()?;
    let can = Command::new("unshare")
        .args(["--map-root-user", "--net", "true"])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED {test}: it needs network namespaces");
        return None;
    }
    let cluster = Cluster {
        home: tempfile::tempdir().expect("a folder"),
    };
    let home = cluster.home.path();
    let mut start = script(home, &["start"]);
    start.env("BERNSTREAM_CLUSTER_LAG", lag.to_string());
    if disks == Disks::Own {
        let can = script(home, &["can-lose-power"]).output().expect("it runs");
        if !can.status.success() {
            let why = String::from_utf8_lossy(&can.stderr);
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {test}: disks of its own for each broker: {}",
                why.trim()
            );
            return None;
        }
        start.env("BERNSTREAM_CLUSTER_DISKS", "1");
    }
    let started = start.output().expect("it runs");
    assert!(
        started.status.success(),
        "{}",
        String::from_utf8_lossy(&started.stderr)
    );
    let servers = String::from_utf8_lossy(&started.stdout).trim().to_owned();
    let this = env::current_exe().expect("this test");
    let mut again = script(home, &["exec"]);
    again
        .arg(this)
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(INSIDE, format!("{} {servers}", home.display()));
    let again = again.output().expect("it runs");
    let [said, told] = [&again.stdout, &again.stderr].map(|text| String::from_utf8_lossy(text));
    print!("{said}");
    assert!(again.status.success(), "{said}{told}");
    assert!(
        said.contains("1 passed"),
        "{test} is the test's name: {said}"
    );
    None
}

impl Inside {
    /// Another action of `tests/cluster.sh`.
    pub fn ask(&self, action: &[&str]) -> String {
        let done = script(Path::new(&self.home), action)
            .output()
            .expect("the script runs");
        assert!(
            done.status.success(),
            "{action:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The power of all brokers fails at once: what they had not synced is lost.
    pub fn power_off(&self) {
        self.ask(&["power", "off"]);
    }

    /// They start again, with what is left.
    pub fn power_on(&self) {
        self.ask(&["power", "on"]);
    }

    /// Whether each broker has a disk of its own, whose power can fail.
    pub fn can_lose_power(&self) -> bool {
        Path::new(&self.home).join("disks").exists()
    }

    /// A new topic on all brokers, led by the given one as long as that lives.
    pub fn topic(
        &self,
        stem: &str,
        partitions: usize,
        leader: i32,
        settings: &[(&str, &str)],
    ) -> String {
        let name = kafka::fresh_name(stem);
        let admin: AdminClient<DefaultClientContext> = kafka::at(&self.servers)
            .client_config()
            .expect("settings")
            .create()
            .expect("a client");
        let replicas = [leader, leader % 3 + 1, (leader + 1) % 3 + 1];
        let assignment = vec![replicas.as_slice(); partitions];
        let count = i32::try_from(partitions).expect("few");
        let topic = NewTopic::new(&name, count, TopicReplication::Variable(&assignment))
            .set("retention.ms", "-1");
        let topic = settings
            .iter()
            .fold(topic, |topic, (name, value)| topic.set(name, value));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let made = runtime
            .block_on(admin.create_topics([&topic], &AdminOptions::new()))
            .expect("an answer");
        made.into_iter()
            .next()
            .expect("one topic")
            .expect("it is made");
        for server in self.servers.split(',') {
            let is_known = || (leader_of(server, &name, 0) == Some(leader)).then_some(());
            wait_for("its leader on every broker", String::new, is_known);
        }
        name
    }

    /// A host of its own beside the brokers, of which there are few; `number` names it.
    pub fn host(&self, number: u8) -> Host {
        let mut keeper = Command::new("unshare");
        keeper
            .args(["--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let keeper = keeper.spawn().expect("a namespace");
        let id = keeper.id().to_string();
        let link = format!("worker{number}");
        let host = Host { keeper, link };
        let here = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
        let is_there = || {
            let is_alone =
                std::fs::read_link(format!("/proc/{id}/ns/net")).is_ok_and(|there| there != here);
            is_alone.then_some(())
        };
        wait_for("a namespace", String::new, is_there);
        let link = host.link.as_str();
        ip(&[
            "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", &id,
        ]);
        ip(&["link", "set", link, "master", "brokers", "up"]);
        for inside in [
            ["link", "set", "lo", "up"].as_slice(),
            &["link", "set", "eth0", "up"],
            &[
                "address",
                "add",
                &format!("10.77.0.{}/24", 100 + number),
                "dev",
                "eth0",
            ],
        ] {
            assert!(
                host.command("ip")
                    .args(inside)
                    .status()
                    .expect("ip runs")
                    .success(),
                "{inside:?}"
            );
        }
        host
    }

    /// Who leads a partition, by what some broker says now.
    pub fn leader(&self, topic: &str, partition: usize) -> Option<i32> {
        leader_of(&self.servers, topic, partition)
    }

    /// No record passes between a broker and both others while `during` runs.
    pub fn cut_off<T>(&self, broker: i32, during: impl FnOnce() -> T) -> T {
        let others = [broker % 3 + 1, (broker + 1) % 3 + 1];
        for other in others {
            self.ask(&["cut", &broker.to_string(), &other.to_string()]);
        }
        let done = during();
        for other in others {
            self.ask(&["heal", &broker.to_string(), &other.to_string()]);
        }
        done
    }
}

/// A host beside the brokers; it ends with the test.
pub struct Host {
    keeper: Child,
    link: String,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

impl Host {
    /// A program on this host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--net", "-t", &self.keeper.id().to_string(), "--"])
            .arg(program);
        command
    }

    /// Pulls its cable.
    pub fn cut(&self) {
        ip(&["link", "set", &self.link, "down"]);
    }

    pub fn heal(&self) {
        ip(&["link", "set", &self.link, "up"]);
    }
}

fn ip(arguments: &[&str]) {
    assert!(
        Command::new("ip")
            .args(arguments)
            .status()
            .expect("ip runs")
            .success(),
        "{arguments:?}"
    );
}

fn leader_of(servers: &str, topic: &str, partition: usize) -> Option<i32> {
    let consumer: BaseConsumer = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).ok()?;
    metadata
        .topics()
        .first()?
        .partitions()
        .get(partition)
        .map(|it| it.leader())
}

fn script(home: &Path, arguments: &[&str]) -> Command {
    let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster.sh"));
    script
        .args(arguments)
        .env("BERNSTREAM_CLUSTER_HOME", home)
        .stdin(Stdio::null());
    script
}
