//! Told caps, from the configuration to what readers see.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use bernstream_config::WorkerSettings;
use bernstream_synopsis::Synopsis;
use serde_json::Value;

const CONFIGURATION: &str = r#"
pipeline = "pages"
input = { time = "at", files = { path = "FOLDER/visits.csv" }, key = { column = "page", type = "text", values = ["a", "b", "c", "d", "e", "f", "g", "h"] } }
windows = { origin = "2026-01-05T00:00:00Z", length = "1d", end = "2026-01-06T00:00:00Z" }
privacy = { unit = { user = { column = "user", type = "text", per = "1d" } }, adjacency = "add_remove", epsilon = 4 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[release]
name = "visitors"
epsilon = 4
[release.counts]
of = ["users"]
max_keys = 2
caps = { part = 0.25, most = 6 }
"#;

fn fault(old: &str, new: &str) -> String {
    assert!(CONFIGURATION.contains(old), "{old}");
    let text = CONFIGURATION.replace(old, new);
    WorkerSettings::parse(&text, "f").map_or_else(|faults| faults.to_string(), |_| "none".into())
}

#[test]
fn every_mistake_in_told_caps_is_told_in_its_place() {
    let caps = "caps = { part = 0.25, most = 6 }";
    for (old, new, expected) in [
        (
            "part = 0.25",
            "part = 1",
            "release.counts.caps.part: must be above 0 and below 1",
        ),
        (
            "most = 6",
            "most = 2000",
            "release.counts.caps.most: must be from 1 to 1024",
        ),
        (
            "most = 6",
            "most = 1",
            "release.counts.caps.most: must be at least max_keys, 2: what is dropped lies above",
        ),
        (
            "max_keys = 2",
            "max_keys = 8",
            "release.counts.caps: has no effect: max_keys is at least the number of all keys",
        ),
        (
            "max_keys = 2",
            "max_keys = 2\nparts = { users = 0.5 }",
            "release.counts.parts: adds up to 0.5, not to 1",
        ),
    ] {
        let fault = fault(old, new);
        assert!(fault.contains(expected), "{new}: {fault}");
    }
    assert_eq!(fault(caps, "caps = {}"), "none");
    assert_eq!(fault(caps, ""), "none");
}

#[test]
fn other_bins_and_other_parts_are_other_settings() {
    let mut digests = Vec::new();
    for new in ["most = 6", "most = 4", "most = 3"] {
        let text = CONFIGURATION.replace("most = 6", new);
        digests.push(WorkerSettings::parse(&text, "f").unwrap().digest());
        let text = text.replace("part = 0.25", "part = 0.2");
        digests.push(WorkerSettings::parse(&text, "f").unwrap().digest());
    }
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 6);
}

/// Users with 1 to 8 pages, some of them twice.
fn write_visits(path: &Path) {
    let mut text = "at,user,page\n".to_owned();
    for user in 0..4000 {
        let pages = match user % 10 {
            0..=4 => 1,
            5 | 6 => 2,
            7 => 3,
            8 => 5,
            _ => 8,
        };
        for page in 0..pages {
            let name = char::from(b'a' + (user / 10 + page) as u8 % 8);
            for _ in 0..=(user % 2) {
                writeln!(text, "2026-01-05T10:00:00Z,u{user},{name}").unwrap();
            }
        }
    }
    fs::write(path, text).unwrap();
}

fn said_by(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Of 10 users 5 + 4 + 3 + 5 + 8 = 25 pairs of a user and a page are all, and 1 + 3 + 6 of them are dropped.
#[test]
fn what_a_cap_drops_is_read_from_the_synopsis_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let file = folder.path().join("pages.toml");
    let file = file.to_str().unwrap();
    fs::write(file, CONFIGURATION.replace("FOLDER", path)).unwrap();
    write_visits(&folder.path().join("visits.csv"));
    let told = said_by(&["explain", file]);
    let of_units = told
        .lines()
        .find(|line| line.contains("users with so many keys is within ± "));
    assert!(
        of_units.is_some_and(|line| line.ends_with("the more users, the narrower.")),
        "{told}"
    );
    assert!(
        told.contains("what max_keys drops is told: units by how many keys they have, up to 6 apart, for 25 % of the price"),
        "{told}"
    );
    said_by(&["ledger", "init", file]);
    said_by(&["run", file]);
    let synopsis = folder
        .path()
        .join("out/pages/visitors/2026-01-05T000000Z.arrows");
    let read = Synopsis::decode_message(&fs::read(&synopsis).unwrap()).unwrap();
    let dropped = read.told_caps().expect("told caps").dropped;
    let interval = dropped.interval.expect("many users");
    let exact = 10.0 / 25.0;
    assert!((dropped.value - exact).abs() < 0.15, "{dropped:?}");
    assert!(interval.upper - interval.lower < 0.1, "{dropped:?}");
    let synopsis = synopsis.to_str().unwrap();
    let words = said_by(&["query", synopsis]);
    assert!(words.contains("max_keys = 2 drops "), "{words}");
    assert!(words.contains("\nmax_keys = 1 would drop "), "{words}");
    assert!(words.contains(" %, 3 would drop "), "{words}");
    let json: Value = serde_json::from_str(&said_by(&["query", synopsis, "--json"])).unwrap();
    assert_eq!(json["caps"]["max_keys"], 2);
    assert_eq!(json["caps"]["dropped"]["value"], dropped.value);
    assert_eq!(json["caps"]["units"][0]["least"], 1);
    // Of the 25 pairs 15 are those beyond one key of a user, and 7 those beyond three.
    for (bin, exact) in [(0, 15.0 / 25.0), (2, 7.0 / 25.0)] {
        let share = json["caps"]["units"][bin]["dropped"]["value"].as_f64();
        assert!((share.expect("a share") - exact).abs() < 0.15, "{json}");
    }
}
