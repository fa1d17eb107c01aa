//! A ledger that outlives its disk: whatever is lost, copied or cut short, every window leaves once, and the ledger goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use bernstream_synopsis::clock::Timestamp;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use crate::crash::{STEPS, dies_at, grown};
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka};

/// A setup with a log, whose ledger is begun.
fn begun(servers: &str, windows: u32) -> Setup {
    let setup = Setup::new(servers, windows);
    setup.send(&setup.rows(3_000, 1));
    add_log(&setup, 1);
    setup.begin(Duration::from_millis(500));
    setup
}

/// Adds a log to the configuration, with a key of its own.
pub fn add_log(setup: &Setup, seed: u8) {
    set_key(setup, seed);
    let log = kafka::fresh_name("ledger");
    let key = setup.folder.path().join("key");
    let keys = format!(
        "[ledger]\nlog = \"{log}\"\nkey_file = \"{}\"\n",
        key.display()
    );
    setup.edit("[ledger]\n", &keys);
}

fn set_key(setup: &Setup, seed: u8) {
    let mut random = ChaCha20Rng::seed_from_u64(seed.into());
    let key: [u8; 32] = random.random();
    let path = setup.folder.path().join("key");
    fs::write(&path, key).expect("the key is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is a secret");
}

pub fn log_topic(setup: &Setup) -> String {
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let topic = text
        .lines()
        .find_map(|line| line.strip_prefix("log = \"")?.strip_suffix('"'));
    topic.expect("a log").to_owned()
}

fn lose_disk(setup: &Setup) {
    fs::remove_dir_all(setup.ledger()).expect("the disk is lost");
}

pub fn copy_disk(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(
        Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(to)
            .status()
            .expect("cp")
            .success()
    );
}

fn finish(setup: &Setup) {
    Killed(setup.start()).ends(setup);
}

/// From now on the configuration names another disk.
fn mount(setup: &Setup, disk: &Path) {
    setup.edit(
        &setup.ledger().display().to_string(),
        &disk.display().to_string(),
    );
}

/// What the ledger and its log say of each other.
fn verified(setup: &Setup) -> Result<String, String> {
    let done = setup.ledger_command(&["verify"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() {
        Ok(text(&done.stdout))
    } else {
        Err(text(&done.stderr))
    }
}

/// The rows that the witness has accepted: those of `before` and perhaps more. Others may be lost with a disk, and then never were.
fn claimed(setup: &Setup, before: &[String]) -> Vec<String> {
    let told = verified(setup).expect("sound");
    let accepted = told
        .split_once("the witness has accepted row ")
        .and_then(|(_, rest)| rest.lines().next());
    let accepted: usize = accepted.expect("a row").parse().expect("a number");
    let mut rows = grown(setup, before);
    rows.truncate(accepted + 1);
    rows
}

fn administer<T>(
    setup: &Setup,
    change: impl AsyncFnOnce(&AdminClient<DefaultClientContext>, &AdminOptions) -> KafkaResult<T>,
) -> T {
    let admin = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime
        .block_on(change(&admin, &AdminOptions::new()))
        .expect("it is done")
}

/// The offset that the next record of the log will have.
fn log_end(setup: &Setup) -> i64 {
    let client: BaseConsumer = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    client
        .fetch_watermarks(&log_topic(setup), 0, PATIENCE)
        .expect("an answer")
        .1
}

/// Has the log lose its records before an offset.
fn cut_log(setup: &Setup, offset: i64) {
    let mut before = TopicPartitionList::new();
    before
        .add_partition_offset(&log_topic(setup), 0, Offset::Offset(offset))
        .expect("a partition");
    administer(setup, async |admin, options| {
        admin.delete_records(&before, options).await
    });
}

/// Deletes the topic of the log, and makes it anew, empty.
fn empty_log(setup: &Setup) {
    let topic = log_topic(setup);
    let deleted = administer(setup, async |admin, options| {
        admin.delete_topics(&[&topic], options).await
    });
    assert!(deleted.iter().all(Result::is_ok));
    setup.wait_for("a new log", || {
        let made = setup
            .bernstream(&["ledger", "log", "init"])
            .arg(setup.configuration())
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&made.stdout)
            .contains("created the ledger log topic")
            .then_some(())
    });
}

/// A worker that is killed with its test.
struct Killed(Child);

impl Killed {
    /// It comes to the end of its windows.
    #[track_caller]
    fn ends(&mut self, setup: &Setup) {
        assert!(
            self.0.wait().expect("it ends").success(),
            "{}",
            setup.read_log()
        );
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_disk_that_is_lost_after_any_step_is_built_again() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    thread::scope(|scope| {
        for step in STEPS {
            let servers = &servers;
            scope.spawn(move || is_built_again_after(servers, step));
        }
    });
}

fn is_built_again_after(servers: &str, step: &str) {
    let setup = begun(servers, 3);
    assert!(dies_at(&setup, step, 1), "{step} is passed");
    let rows = claimed(&setup, &[]);
    let is_claimed = ["claimed", "publish", "published by half", "published"].contains(&step);
    assert_eq!(rows.len() > 1, is_claimed, "{step}");
    lose_disk(&setup);
    finish(&setup);
    assert!(
        setup.read_log().contains("built the ledger from its log"),
        "{step}: {}",
        setup.read_log()
    );
    // What was claimed stays as it was drawn.
    claimed(&setup, &rows);
    setup.assert_whole();
    let told = verified(&setup).expect("sound");
    assert!(
        told.contains("the ledger log has every row that was accepted"),
        "{told}"
    );
    lose_disk(&setup);
    let dry = setup.ledger_command(&["restore", "--dry-run"]);
    assert!(dry.status.success() && !setup.ledger().join("ledger.sqlite").exists());
    let told = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(
        told.contains("would build the ledger from its log: 4 rows") && told.contains(" 0 windows"),
        "{told}"
    );
    assert!(setup.ledger_command(&["restore"]).status.success());
    setup.assert_whole();
}

#[test]
fn an_old_copy_of_a_disk_takes_what_it_lacks_from_the_log() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = begun(&servers, 4);
    let old = setup.folder.path().join("old");
    copy_disk(&setup.ledger(), &old);
    finish(&setup);
    let rows = grown(&setup, &[]);
    copy_disk(&old, &setup.ledger());
    finish(&setup);
    let told = setup.read_log();
    assert!(
        told.contains("the ledger on the disk was behind") && !told.contains("built the ledger"),
        "{told}"
    );
    assert_eq!(grown(&setup, &rows), rows);
    setup.assert_whole();
    // Whoever is up to date builds nothing.
    let told = setup.ledger_command(&["restore"]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("nothing to build"));
}

#[test]
fn check_looks_at_the_log_and_at_its_key() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = begun(&servers, 1);
    let check = || {
        let done = setup
            .bernstream(&["check"])
            .arg(setup.configuration())
            .output()
            .expect("it runs");
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stdout).into_owned(),
        )
    };
    let log = log_topic(&setup);
    let key = setup.folder.path().join("key");
    let (code, told) = check();
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains(&format!(
            "ok     {} is a key of the ledger log",
            key.display()
        )),
        "{told}"
    );
    assert!(
        told.contains(&format!("ok     {log} has one partition")),
        "{told}"
    );
    fs::write(&key, "too short").expect("it is written");
    setup.edit(&log, &kafka::fresh_topic(&servers, "ledger", 2, &[]));
    let (code, told) = check();
    assert_eq!(code, Some(78), "{told}");
    assert!(
        told.contains("is a key of the ledger log: it has 9 bytes and needs exactly 32"),
        "{told}"
    );
    assert!(told.contains("has one partition: it has 2"), "{told}");
    setup.edit(&log_topic(&setup), &kafka::fresh_name("ledger"));
    let (code, told) = check();
    assert_ne!(code, Some(0), "{told}");
    assert!(
        told.contains("`bernstream ledger log init` creates it"),
        "{told}"
    );
}

#[test]
fn of_two_copies_at_once_one_wins_and_the_other_follows() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = begun(&servers, 6);
    let here = setup.ledger();
    let there = setup.folder.path().join("there");
    copy_disk(&here, &there);
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let other = setup.folder.path().join("other.toml");
    fs::write(
        &other,
        text.replace(&here.display().to_string(), &there.display().to_string()),
    )
    .expect("it is written");
    let log = fs::File::options()
        .append(true)
        .create(true)
        .open(setup.log())
        .expect("a log");
    let other = setup
        .bernstream(&["run"])
        .arg(other)
        .stderr(log)
        .spawn()
        .expect("it starts");
    for mut worker in [Killed(setup.start()), Killed(other)] {
        worker.ends(&setup);
    }
    setup.assert_whole();
    let rows = grown(&setup, &[]);
    mount(&setup, &there);
    assert_eq!(grown(&setup, &[]), rows, "both disks hold the same ledger");
    setup.assert_whole();
}

#[test]
fn what_is_not_in_the_log_is_waited_for() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = begun(&servers, 3);
    assert!(dies_at(&setup, "publish", 1));
    let kept = setup.folder.path().join("kept");
    fs::rename(setup.ledger(), &kept).expect("another host has it");
    empty_log(&setup);
    let mut waiting = Running::start(&setup);
    setup.wait_log("is not whole in the ledger log");
    assert_eq!(waiting.get("/readyz").0, 503);
    assert_eq!(waiting.get("/healthz").0, 200);
    assert!(
        waiting.child.try_wait().expect("it can be asked").is_none(),
        "{}",
        setup.read_log()
    );
    assert!(!setup.ledger().join("ledger.sqlite").exists() && setup.published().is_empty());
    // The worker with the disk comes back.
    mount(&setup, &kept);
    finish(&setup);
    assert!(
        waiting.child.wait().expect("it ends").success(),
        "{}",
        setup.read_log()
    );
    setup.assert_whole();
}

#[test]
fn a_pipeline_gets_a_log_and_loses_it_by_its_configuration() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 4);
    setup.send(&setup.rows(3_000, 1));
    setup.begin(Duration::from_millis(500));
    assert!(dies_at(&setup, "published by half", 1));
    let without = fs::read_to_string(setup.configuration()).expect("the configuration");
    add_log(&setup, 1);
    let refused = setup.start().wait().expect("it ends");
    assert!(
        !refused.success()
            && setup
                .read_log()
                .contains("`bernstream ledger log init` creates it")
    );
    let made = setup
        .bernstream(&["ledger", "log", "init"])
        .arg(setup.configuration())
        .status()
        .expect("it runs");
    assert!(made.success());
    assert!(dies_at(&setup, "publish", 1));
    lose_disk(&setup);
    assert!(dies_at(&setup, "published", 1));
    fs::write(setup.configuration(), without).expect("it is written");
    finish(&setup);
    setup.assert_whole();
}

/// What the log has of its records: the offset of the first, and of the next.
fn log_extent(setup: &Setup) -> (i64, i64) {
    let client: BaseConsumer = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    client
        .fetch_watermarks(&log_topic(setup), 0, PATIENCE)
        .expect("an answer")
}

mod long {
    use super::*;

    #[test]
    fn a_worker_deletes_old_rows_from_the_log_and_what_is_left_is_enough_for_the_next_disk() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let origin = Timestamp::parse("2025-01-01T00:00:00Z").expect("a time");
        let setup = Setup::quick(&servers, origin, 900);
        setup.send(&setup.rows(3_000, 1));
        add_log(&setup, 1);
        setup.begin(Duration::from_millis(500));
        let mut worker = Killed(setup.start());
        setup.wait_for("records that were deleted", || {
            (log_extent(&setup).0 > 0).then_some(())
        });
        worker.0.kill().expect("it is killed");
        worker.0.wait().expect("it ended");
        let spent = |setup: &Setup| {
            let shown = setup.ledger_command(&["show", "--json"]);
            let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
            (
                shown["head"].clone(),
                shown["next_window"].clone(),
                shown["blocks"][0].clone(),
                shown["missing"].clone(),
            )
        };
        // What was accepted: the rest is drawn again.
        claimed(&setup, &[]);
        let before = spent(&setup);
        assert!(before.3.is_null());
        lose_disk(&setup);
        let dry = setup.ledger_command(&["restore", "--dry-run"]);
        let told = String::from_utf8_lossy(&dry.stdout).into_owned();
        assert!(
            told.contains("would build the ledger from its log from the checkpoint of row "),
            "{told}"
        );
        finish(&setup);
        let after = spent(&setup);
        assert_eq!(after.3["first"], 1);
        setup.assert_whole();
        let told = verified(&setup).expect("sound");
        assert!(
            told.contains("not in it: it was built from a checkpoint of its log"),
            "{told}"
        );
        assert!(
            told.contains(" of rows that are not in the ledger, which it cannot verify"),
            "{told}"
        );
        assert!(
            told.contains(
                "the ledger log has every row that was accepted after that of a checkpoint"
            ),
            "{told}"
        );
        let export = setup.ledger_command(&["export"]);
        let lines = String::from_utf8_lossy(&export.stdout).into_owned();
        assert!(
            lines
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with(r#"{"gap":{"first":1,"last":"#)),
            "{lines}"
        );
        assert!(
            String::from_utf8_lossy(&export.stderr).contains("nobody can check with this export")
        );
        let (first, next) = log_extent(&setup);
        assert!(first > 0 && next - first < 3_000, "{first} to {next}");
    }

    #[test]
    fn a_log_that_was_made_anew_is_filled_by_the_worker_that_has_its_ledger() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = begun(&servers, 3);
        assert!(dies_at(&setup, "publish", 1));
        empty_log(&setup);
        let told = verified(&setup).expect_err("it lacks rows");
        assert!(
            told.contains("the ledger log lacks rows that the witness has accepted (0, 1"),
            "{told}"
        );
        assert!(dies_at(&setup, "publish", 1));
        lose_disk(&setup);
        finish(&setup);
        setup.assert_whole();
    }

    #[test]
    fn a_worker_killed_while_it_builds_its_ledger_builds_it_again() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = begun(&servers, 5);
        assert!(dies_at(&setup, "published", 1));
        let mut random = ChaCha20Rng::seed_from_u64(4);
        let mut rows = claimed(&setup, &[]);
        for round in 0..12 {
            if round % 2 == 0 {
                lose_disk(&setup);
            }
            let mut worker = Killed(setup.start());
            thread::sleep(Duration::from_millis(random.random_range(20..600)));
            worker.0.kill().expect("it is killed");
            worker.0.wait().expect("it ended");
            if setup.ledger().join("ledger.sqlite").exists() {
                rows = claimed(&setup, &rows);
            }
            fs::create_dir_all(setup.ledger()).expect("a disk");
        }
        finish(&setup);
        claimed(&setup, &rows);
        setup.assert_whole();
    }

    #[test]
    fn an_old_disk_gives_the_log_the_rows_that_it_has_lost_before_it_is_replaced() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        for is_by_command in [false, true] {
            let setup = begun(&servers, 3);
            let old = setup.folder.path().join("old");
            let lost = log_end(&setup);
            assert!(lost > 0, "its first row is there");
            copy_disk(&setup.ledger(), &old);
            finish(&setup);
            let rows = grown(&setup, &[]);
            copy_disk(&old, &setup.ledger());
            // What both disks had is not in the log any more.
            cut_log(&setup, lost);
            if is_by_command {
                let dry = setup.ledger_command(&["restore", "--dry-run"]);
                assert!(
                    String::from_utf8_lossy(&dry.stderr).contains("is not whole in the ledger log")
                );
                let restored = setup.ledger_command(&["restore"]);
                assert!(
                    restored.status.success(),
                    "{}",
                    String::from_utf8_lossy(&restored.stderr)
                );
            } else {
                let mut worker = Killed(setup.start());
                setup.wait_log("took the rows up to");
                worker.ends(&setup);
            }
            assert_eq!(grown(&setup, &[]), rows);
            let told = verified(&setup).expect("sound");
            assert!(
                told.contains("the ledger log has every row that was accepted"),
                "{told}"
            );
            setup.assert_whole();
        }
    }

    #[test]
    fn a_log_that_loses_its_records_under_a_worker_with_nothing_to_claim_gets_them_again() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let today = Timestamp::now();
        let setup = Setup::live(&servers, today, 3);
        setup.send(&setup.rows(3_000, 1));
        add_log(&setup, 1);
        setup.begin(Duration::from_millis(500));
        let _worker = Killed(setup.start());
        setup.wait_published();
        empty_log(&setup);
        setup.wait_for("the rows again", || (log_end(&setup) >= 4).then_some(()));
    }

    #[test]
    fn another_key_opens_nothing_and_a_worker_with_its_disk_may_change_it() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = begun(&servers, 3);
        assert!(dies_at(&setup, "claimed", 1));
        let kept = setup.folder.path().join("kept");
        copy_disk(&setup.ledger(), &kept);
        lose_disk(&setup);
        set_key(&setup, 2);
        let mut refused = Killed(setup.start());
        assert_eq!(
            refused.0.wait().expect("it ends").code(),
            Some(74),
            "{}",
            setup.read_log()
        );
        assert!(
            setup
                .read_log()
                .contains("but this key (ledger.key_file) does not open it"),
            "{}",
            setup.read_log()
        );
        // With the disk, everything is appended again.
        copy_disk(&kept, &setup.ledger());
        assert!(dies_at(&setup, "publish", 1));
        lose_disk(&setup);
        finish(&setup);
        setup.assert_whole();
        fs::write(setup.folder.path().join("key"), "too short").expect("it is written");
        let refused = setup.ledger_command(&["restore"]);
        assert_eq!(refused.status.code(), Some(78));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("needs exactly 32"));
    }
}
