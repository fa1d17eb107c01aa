//! A choice of `"auto"` that a ledger has recorded holds until the file changes, whatever a later version would choose.

use std::fs;
use std::time::Duration;

use bernstream_ledger::{Configuration, Ledger, LedgerParams, LedgerRow};
use serde_json::Value;

use crate::harness::policies::{bernstream, read, records};

const FILE: &str = r#"
pipeline = "responses"
[input]
time = "received_at"
files = { path = "in.arrows" }
[windows]
origin = "2026-01-01T00:00:00Z"
length = "6h"
end = "2026-01-03T00:00:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1.0
[release]
name = "times"
epsilon = 1.0
degree = "auto"
order = "auto"
expected_records = 60
domain = [{ column = "milliseconds", min = 0, max = 2000, outside = "clamp" }]
density = { bandwidths = [200] }
[output]
files = { path = "out" }
[ledger]
path = "ledger"
"#;

/// A pair that is on no list.
const THEIRS: (u64, u64) = (23, 5);

/// What a worker of an earlier version left behind: a ledger that has recorded `THEIRS`, edited by `edit`.
fn earlier(edit: impl Fn(&mut Value)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.toml"), FILE).expect("the configuration");
    records(&folder.path().join("in.arrows"));
    bernstream(folder.path(), &["ledger", "init", "c.toml"]);
    let mut ledger = open(&folder);
    let mut settings: Value = serde_json::from_str(ledger.settings()).expect("JSON");
    settings["releases"]["times"]["degree"] = THEIRS.0.into();
    settings["releases"]["times"]["order"] = THEIRS.1.into();
    edit(&mut settings);
    let first = ledger.next_window();
    let configuration = Configuration {
        settings: settings.to_string(),
        first,
        reach: Duration::ZERO,
        ended: vec![],
        until: None,
    };
    ledger.record_settings(configuration).expect("a row");
    folder
}

fn open(folder: &tempfile::TempDir) -> Ledger {
    let params = LedgerParams {
        path: folder.path().join("ledger"),
        keep_published: Duration::ZERO,
    };
    Ledger::open(&params).expect("a ledger")
}

/// How often the settings were changed.
fn changes(folder: &tempfile::TempDir) -> usize {
    let rows = open(folder).rows().expect("rows");
    rows.iter()
        .filter(|stored| matches!(stored.row, LedgerRow::Configuration(_)))
        .count()
}

/// The degree and order of every window that is published, which must be the same.
fn published(folder: &tempfile::TempDir) -> (u64, u64) {
    let all: Vec<(u64, u64)> = read(folder.path())["times"]
        .values()
        .map(|about| (about.degree.into(), about.order.into()))
        .collect();
    assert_eq!(all.len(), 8);
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    all[0]
}

fn edit(folder: &tempfile::TempDir, from: &str, to: &str) {
    assert!(FILE.contains(from));
    fs::write(folder.path().join("c.toml"), FILE.replace(from, to)).expect("the configuration");
}

#[test]
fn a_worker_goes_on_with_the_choice_of_its_ledger() {
    let folder = earlier(|_| {});
    let words = "goes on with noise = \"laplace\", degree = 23 and order = 5, which the ledger has recorded";
    for command in [
        &["check", "--offline", "c.toml"][..],
        &["explain", "c.toml"],
    ] {
        let (out, _) = bernstream(folder.path(), command);
        assert!(out.contains(words), "{out}");
    }
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    assert!(
        log.contains("goes on with") && !log.contains("settings have changed"),
        "{log}"
    );
    assert_eq!((published(&folder), changes(&folder)), (THEIRS, 1));
    bernstream(folder.path(), &["run", "c.toml"]);
    assert_eq!(changes(&folder), 1);
    bernstream(folder.path(), &["ledger", "verify", "c.toml"]);
}

/// The ledgers of earlier versions do not say what was left to `"auto"`.
#[test]
fn an_older_ledger_is_carried_on_and_learns_what_was_asked() {
    let folder =
        earlier(|settings| drop(settings.as_object_mut().expect("an object").remove("auto")));
    bernstream(folder.path(), &["run", "c.toml"]);
    assert_eq!((published(&folder), changes(&folder)), (THEIRS, 2));
    let settings: Value = serde_json::from_str(open(&folder).settings()).expect("JSON");
    assert_eq!(settings["auto"]["times"]["expected_records"], 60);
    bernstream(folder.path(), &["run", "c.toml"]);
    assert_eq!(changes(&folder), 2);
}

#[test]
fn a_file_that_changes_is_chosen_for_anew() {
    let edits = [
        ("expected_records = 60", "expected_records = 61"),
        (
            "degree = \"auto\"\norder = \"auto\"",
            "noise = \"cube\"\ndegree = \"auto\"\norder = \"auto\"",
        ),
        ("epsilon = 1.0\ndegree", "epsilon = 0.5\ndegree"),
        ("order = \"auto\"", "order = 2"),
    ];
    for (from, to) in edits {
        let folder = earlier(|_| {});
        edit(&folder, from, to);
        let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
        assert!(
            log.contains("the settings have changed") && !log.contains("goes on with"),
            "{to}: {log}"
        );
        assert!(
            published(&folder) != THEIRS && changes(&folder) == 2,
            "{to}"
        );
    }
    // What was written, and is left to "auto" now.
    let folder = earlier(|settings| settings["auto"] = serde_json::json!({}));
    let (_, log) = bernstream(folder.path(), &["run", "c.toml"]);
    assert!(
        log.contains("nothing in the ledger, { expected_records = 60"),
        "{log}"
    );
    assert!(published(&folder) != THEIRS);
}

/// The digest in every synopsis is that of the settings, and says nothing of what was asked.
#[test]
fn the_digest_of_a_choice_is_that_of_the_same_values_written_down() {
    let digests = [earlier(|_| {}), earlier(|_| {})].map(|folder| {
        bernstream(folder.path(), &["run", "c.toml"]);
        let kept = read(folder.path())["times"]
            .values()
            .next()
            .expect("a window")
            .digests
            .configuration
            .clone();
        edit(
            &folder,
            "degree = \"auto\"\norder = \"auto\"\nexpected_records = 60",
            "degree = 23\norder = 5",
        );
        let (out, _) = bernstream(folder.path(), &["check", "--offline", "c.toml"]);
        let text = fs::read_to_string(folder.path().join("c.toml")).expect("a file");
        let settings = bernstream_config::WorkerSettings::parse(&text, "c").expect("settings");
        let written: String = settings
            .digest()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(!out.contains("goes on with"));
        assert_eq!(kept, written);
        kept
    });
    assert_eq!(digests[0], digests[1]);
}
