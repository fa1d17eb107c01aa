//! Looking at a ledger never delays its worker, and never accuses it: real processes, with windows of a second.

use std::io::Read;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_ledger::{Ledger, LedgerError};
use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::ledger::{folder, format_4, half_written, params};
use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka};

/// A worker with `past` windows behind it, that has begun to publish a window a second.
fn at_work(servers: &str, past: u32) -> (Setup, Running) {
    let setup = Setup::of_seconds(servers, past);
    setup.begin(Duration::ZERO);
    let worker = Running::start(&setup);
    let caught_up = 2 * past as usize + 6;
    setup.wait_for("windows of the present", || {
        (setup.published().len() >= caught_up).then_some(())
    });
    (setup, worker)
}

/// How many windows are published in so many seconds.
fn published_in(setup: &Setup, seconds: u64) -> usize {
    let before = setup.published().len();
    thread::sleep(Duration::from_secs(seconds));
    (setup.published().len() - before) / 2
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Ends with the test.
struct Export(Child);

impl Drop for Export {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Export {
    fn start(setup: &Setup) -> Self {
        let mut export = setup.bernstream(&["ledger", "export"]);
        export
            .arg(setup.configuration())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Export(export.spawn().expect("it starts"))
    }
}

/// A program that is none of bernstream's, and reads in a transaction that does not end.
fn foreign_reader(setup: &Setup) -> rusqlite::Connection {
    let reader =
        rusqlite::Connection::open(setup.ledger().join("ledger.sqlite")).expect("it opens");
    reader.busy_timeout(PATIENCE).expect("it waits");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM rows;")
        .expect("it reads");
    reader
}

const HELD: &str = "another program has held the ledger's file for 10 s";

#[test]
fn a_worker_waits_for_whoever_holds_its_ledger_and_goes_on_afterwards() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (setup, mut worker) = at_work(&servers, 3);
    worker.wait_ready(&setup, true);
    let reader = foreign_reader(&setup);
    setup.wait_log(HELD);
    let published = published_in(&setup, 3);
    assert_eq!(published, 0, "windows beside a reader that does not end");
    let words = worker.wait_ready(&setup, false);
    assert!(words.contains("publishing what is due"), "{words}");
    assert_eq!(
        worker.get("/healthz").0,
        200,
        "to start it again would not help"
    );
    drop(reader);
    let before = setup.published().len();
    setup.wait_for("what was due meanwhile", || {
        (setup.published().len() >= before + 30).then_some(())
    });
    worker.wait_ready(&setup, true);
    let log = setup.read_log();
    assert_eq!(log.matches(HELD).count(), 1, "{log}");
    assert!(
        log.contains("`fuser`") && !log.contains("another worker"),
        "{log}"
    );
    let verified = setup.ledger_command(&["verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
    // A stop is not held up.
    let reader = foreign_reader(&setup);
    thread::sleep(Duration::from_secs(3));
    worker.terminate();
    let status = worker.end(&setup);
    let log = setup.read_log();
    assert!(
        status.code() == Some(74) && log.contains("another program holds"),
        "{status}: {log}"
    );
    drop(reader);
    let again = Running::start(&setup);
    again.wait_ready(&setup, true);
}

#[test]
fn a_ledger_that_a_crash_left_in_the_middle_of_a_write_is_looked_at_as_it_was_before() {
    let there = folder();
    let head = half_written(there.path());
    assert_eq!(
        Ledger::newest_settings(&params(there.path())).unwrap(),
        "{}"
    );
    assert_eq!(
        *Ledger::inspect(&params(there.path())).unwrap().head(),
        head
    );
}

#[test]
fn the_settings_of_an_older_ledger_are_read_without_a_change_to_it() {
    for windows in [1, 601] {
        let folder = folder();
        format_4(folder.path(), windows);
        let before = std::fs::read(folder.path().join("ledger.sqlite")).unwrap();
        assert_eq!(
            Ledger::newest_settings(&params(folder.path())).unwrap(),
            "{}"
        );
        assert_eq!(
            std::fs::read(folder.path().join("ledger.sqlite")).unwrap(),
            before
        );
        let file = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        file.pragma_update(None, "user_version", 99).unwrap();
        let newer = Ledger::newest_settings(&params(folder.path()));
        assert!(
            matches!(newer, Err(LedgerError::Newer { format: 99, .. })),
            "{newer:?}"
        );
    }
}

#[test]
fn of_a_copy_and_its_original_that_both_run_the_original_wins() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let (setup, worker) = at_work(&servers, 3);
    worker.terminate();
    drop(worker);
    let copy = setup.folder.path().join("copy");
    std::fs::create_dir(&copy).expect("a folder");
    for file in std::fs::read_dir(setup.ledger())
        .expect("a folder")
        .map(|file| file.expect("a file"))
    {
        std::fs::copy(file.path(), copy.join(file.file_name())).expect("it is copied");
    }
    let text = std::fs::read_to_string(setup.configuration()).expect("the configuration");
    let config = setup.folder.path().join("copy.toml");
    let moved = text.replace(
        &setup.ledger().display().to_string(),
        &copy.display().to_string(),
    );
    assert_ne!(text, moved);
    std::fs::write(&config, moved).expect("it is written");
    // The copy comes first, and has rows to claim when the original comes.
    let mut second = setup.bernstream(&["run"]);
    let second = second
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    thread::sleep(Duration::from_secs(3));
    let original = Running::start(&setup);
    let ended = second.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(74), "{said}");
    assert!(
        said.contains("a copy of it was started and has taken its place"),
        "{said}"
    );
    assert!(
        said.contains("another instance of this ledger made the last accepted claim"),
        "{said}"
    );
    original.wait_ready(&setup, true);
    let published = published_in(&setup, 3);
    assert!(published >= 2, "{published} windows in 3 s");
    // How the operator finds out which is which.
    let verified = setup.ledger_command(&["verify"]);
    assert!(verified.status.success(), "{}", self::text(&verified));
    let mut of_the_copy = setup.bernstream(&["ledger", "verify"]);
    let of_the_copy = of_the_copy.arg(&config).output().expect("it runs");
    assert_eq!(
        of_the_copy.status.code(),
        Some(74),
        "{}",
        self::text(&of_the_copy)
    );
}

mod long {
    use super::*;

    #[test]
    fn an_export_that_nobody_reads_delays_no_window_and_keeps_no_worker_from_starting() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        // More rows than a pipe takes.
        let (setup, worker) = at_work(&servers, 400);
        let mut export = Export::start(&setup);
        thread::sleep(Duration::from_secs(1));
        let published = published_in(&setup, 6);
        // More than one a second is a worker that catches up after its 400 windows.
        assert!(published >= 5, "{published} windows in 6 s");
        assert!(
            export.0.try_wait().expect("it can be asked").is_none(),
            "it waits for its reader"
        );
        drop(worker);
        let again = Running::start(&setup);
        again.wait_ready(&setup, true);
        let published = published_in(&setup, 3);
        assert!(published >= 2, "{published} windows in 3 s");
        let mut exported = String::new();
        export
            .0
            .stdout
            .as_mut()
            .expect("a pipe")
            .read_to_string(&mut exported)
            .expect("it is text");
        assert!(export.0.wait().expect("it ends").success());
        assert!(
            exported.lines().count() > 400,
            "{} rows",
            exported.lines().count()
        );

        // The other commands, one after the other, as often as they can.
        let begun = Instant::now();
        let before = setup.published().len();
        for action in ["show", "verify", "export"].iter().cycle().take(9) {
            let looked = setup.ledger_command(&[action]);
            assert!(looked.status.success(), "{action}: {}", text(&looked));
        }
        let took = begun.elapsed().as_secs();
        let published = (setup.published().len() - before) / 2;
        assert!(
            published as u64 + 1 >= took,
            "{published} windows in {took} s"
        );
    }

    #[test]
    fn a_ledger_is_verified_beside_its_worker_again_and_again_without_a_false_alarm() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let (setup, worker) = at_work(&servers, 3);
        for round in 0..12 {
            let verified = setup.ledger_command(&["verify"]);
            assert!(
                verified.status.success(),
                "round {round}: {}",
                text(&verified)
            );
        }
        drop(worker);
        // What is not in the ledger is still an incident, whatever else is: another payload, and another header.
        let first = setup.published().remove(0);
        let producer = setup.producer(&[]);
        let payload = [first.payload.as_slice(), b" "].concat();
        for payload in [&payload, &first.payload] {
            let record = BaseRecord::to(&setup.output)
                .key(&first.key)
                .payload(payload);
            producer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("it is queued");
            producer.flush(PATIENCE).expect("the broker takes it");
            let verified = setup.ledger_command(&["verify"]);
            assert_eq!(verified.status.code(), Some(74), "{}", text(&verified));
            assert!(
                text(&verified).contains("never paid for: 0:"),
                "{}",
                text(&verified)
            );
        }
    }
}
