//! Whether readers will see anything is told before the first record.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FLIGHTS: &str = include_str!("../../config/flights.toml");

/// What `explain` says of the releases of a file.
fn explained(file: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream")).args(["explain", "--json"]).arg(file).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    let mut found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    serde_json::from_value(found["releases"].take()).expect("releases")
}

fn visibility(text: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.toml");
    fs::write(&file, text).expect("it is written");
    explained(&file)[0]["accuracy"]["visibility"].take()
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old}");
    text.replace(old, new)
}

#[test]
fn every_example_shows_at_least_the_shape() {
    let mut judged = 0;
    for file in fs::read_dir("config").expect("a folder").map(|file| file.expect("a file").path()) {
        let text = fs::read_to_string(&file).expect("a text");
        let says_how_many = text.lines().any(|line| line.starts_with("expected_records"));
        if file.extension().is_some_and(|ending| ending == "toml") && says_how_many {
            for release in explained(&file) {
                let visible = &release["accuracy"]["visibility"]["visible"];
                assert_ne!(visible, "nothing", "{}", file.display());
                judged += usize::from(visible.is_string());
            }
        }
    }
    assert!(judged >= 3, "{judged}");
}

/// A fifth of the price of the example shows nothing. Each of the ways out that are named leads to the shape.
#[test]
fn what_would_show_the_shape_does() {
    let poor = replaced(FLIGHTS, "\nepsilon = 1.0\nnoise", "\nepsilon = 0.2\nnoise");
    let poor = replaced(&poor, "end = \"2014-01-01T05:00:00Z\"\n", "");
    let told = visibility(&poor);
    assert_eq!(told["visible"], "nothing", "{told}");
    let needs = &told["shape_needs"];
    let bandwidths = &needs["bandwidths"];
    let ways = [
        ("expected_records = 300 ", format!("expected_records = {} ", needs["records"])),
        ("epsilon = 0.2", format!("epsilon = {}", needs["price"].as_str().expect("a price"))),
        ("length = \"1d\"", format!("length = {}", needs["window"])),
        ("bandwidths = [10]", format!("bandwidths = {bandwidths}")),
    ];
    for (old, new) in ways {
        let richer = replaced(&poor, old, &new);
        // A longer window has as many more records.
        let richer = if old.starts_with("length") {
            replaced(&richer, "records = 300 ", &format!("records = {} ", needs["records"]))
        } else {
            richer
        };
        let told = visibility(&richer);
        assert_ne!(told["visible"], "nothing", "{new}: {told}");
    }
}

#[test]
fn a_size_that_is_fixed_is_judged_where_the_file_says_how_many_records_it_expects() {
    let fixed = replaced(FLIGHTS, "noise = \"auto\"", "noise = \"laplace\"\ndegree = 24\norder = 32");
    assert_eq!(visibility(&fixed)["visible"], "shape");
    let unknown = fixed.lines().filter(|line| !line.starts_with("expected_records")).collect::<Vec<_>>().join("\n");
    assert!(visibility(&unknown).is_null());
}
