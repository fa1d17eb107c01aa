//! A disk that fails to read, write or sync once is not a damaged ledger: the words say so, and the ledger goes on.

use std::fs;
use std::path::Path;

use bernstream_ledger::{LedgerError, ledger_exists};

use crate::harness::files::{Files, command, ended};
use crate::harness::ledger::params;
use crate::harness::preload;

/// A disk of which one kind of call fails.
struct FailingDisk<'a> {
    library: &'a Path,
    folder: &'a Path,
    kept: &'a Path,
}

impl FailingDisk<'_> {
    /// The exit code and the error of a command whose calls fail as `fault` says; `None` if it made too few of them.
    fn ended(
        &self,
        arguments: &[&str],
        configuration: &Path,
        fault: &str,
    ) -> Option<(i32, String)> {
        let mark = self.kept.join("refused");
        let _ = fs::remove_file(&mark);
        let mut failing = command(arguments, configuration);
        failing
            .env("LD_PRELOAD", self.library)
            .env("BERNSTREAM_STORM_FOLDER", self.folder)
            .env("BERNSTREAM_STORM_KEPT", self.kept)
            .env("BERNSTREAM_STORM_FAULT", fault);
        let done = ended(failing);
        mark.is_file().then_some(done)
    }
}

/// That a command said what is wrong, of the disk and of nothing else.
#[track_caller]
fn is_about_the_disk((code, error): &(i32, String), fault: &str) {
    let of_the_disk = [
        "the disk fails, not the ledger",
        "says nothing about the ledger",
        "is full; make room",
    ];
    assert!(
        *code == 74 && of_the_disk.iter().any(|words| error.contains(words)),
        "{fault}: {code} {error}"
    );
    for words in ["damaged", "malformed", "without this ledger", "ledger init"] {
        assert!(!error.contains(words), "{fault}: {error}");
    }
}

#[test]
fn a_ledger_that_cannot_be_read_is_called_damaged_only_if_its_bytes_are() {
    let tools = tempfile::tempdir().expect("a folder");
    let Some(library) = preload::build("storm/faults.c", tools.path()) else {
        return;
    };
    let files = Files::new();
    let file = files.has_run("one", "out");
    let disk = FailingDisk {
        library: &library,
        folder: &files.path("one.ledger"),
        kept: tools.path(),
    };
    for arguments in [["run"].as_slice(), &["ledger", "verify"]] {
        let mut told = 0;
        let mut count = 1;
        loop {
            let [once, always] = [1, 1_000_000].map(|times| format!("eio read {count} {times}"));
            let Some(done) = disk.ended(arguments, &file, &once) else {
                break;
            };
            // What it reads beside the ledger it may do without.
            if done.0 != 0 {
                is_about_the_disk(&done, &once);
                told += 1;
            }
            let done = disk
                .ended(arguments, &file, &always)
                .expect("it reads as much as before");
            is_about_the_disk(&done, &always);
            count += 1 + count / 10;
        }
        assert!(told > 5, "{arguments:?}: {told} reads");
    }
    assert_eq!(ended(command(&["ledger", "verify"], &file)).0, 0);

    let ledger = files.path("one.ledger/ledger.sqlite");
    let mut bytes = fs::read(&ledger).expect("a ledger");
    bytes[4096..].fill(0xff);
    fs::write(&ledger, bytes).expect("it is overwritten");
    for arguments in [["run"].as_slice(), &["ledger", "verify"]] {
        let (code, error) = ended(command(arguments, &file));
        assert!(
            code == 74 && error.contains("is damaged: ") && error.contains("to go on without"),
            "{error}"
        );
    }
}

#[test]
fn a_ledger_that_the_disk_does_not_show_is_not_called_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let unreachable = folder.path().join("a-file");
    fs::write(&unreachable, "").expect("it is written");
    assert!(
        !ledger_exists(&params(&folder.path().join("nothing")))
            .expect("it can be seen that there is none")
    );
    assert!(matches!(
        ledger_exists(&params(&unreachable)),
        Err(LedgerError::Disk { .. })
    ));
}

mod long {
    use super::*;

    #[test]
    fn a_call_that_fails_once_stops_the_worker_and_costs_no_ledger() {
        let tools = tempfile::tempdir().expect("a folder");
        let Some(library) = preload::build("storm/faults.c", tools.path()) else {
            return;
        };
        for (error, call) in [
            ("eio", "read"),
            ("eio", "write"),
            ("enospc", "write"),
            ("erofs", "sync"),
        ] {
            let mut told = 0;
            let mut count = 1;
            loop {
                let fault = format!("{error} {call} {count} 1");
                let files = Files::new();
                let file = files.pipeline("one", "out");
                let disk = FailingDisk {
                    library: &library,
                    folder: &files.path("one.ledger"),
                    kept: tools.path(),
                };
                let Some(done) = disk.ended(&["run"], &file, &fault) else {
                    break;
                };
                // Every call of the first ones, and then one in some.
                count += 1 + count / 10;
                // It may also have gone on without what failed.
                if done.0 != 0 {
                    is_about_the_disk(&done, &fault);
                    told += 1;
                }
                assert_eq!(
                    ended(command(&["run"], &file)),
                    (0, String::new()),
                    "after {fault}"
                );
                assert_eq!(
                    ended(command(&["ledger", "verify"], &file)).0,
                    0,
                    "after {fault}"
                );
            }
            assert!(told > 8, "{error} of {told} calls to {call} was told");
        }
    }
}
