//! Whether readers will see anything is told before the first record.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FLIGHTS: &str = include_str!("../../config/flights.toml");

/// What `explain` says of the releases of a file.
fn explained(file: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(["explain", "--json"])
        .arg(file)
        .output();
    let output = output.expect("it runs");
    assert!(
        output.status.success(),
        "{}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let mut found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    serde_json::from_value(found["releases"].take()).expect("releases")
}

/// The same of the first release of a text.
fn first(text: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.toml");
    fs::write(&file, text).expect("it is written");
    explained(&file)[0].take()
}

fn visibility(text: &str) -> Value {
    first(text)["accuracy"]["visibility"].take()
}

/// Whether a release without a verdict says in its last sentence why: with these words.
fn says_why(text: &str, words: &str) -> bool {
    let release = first(text);
    let said = release["in_short"]
        .as_array()
        .and_then(|lines| lines.last())
        .and_then(Value::as_str);
    release["accuracy"]["visibility"].is_null() && said.is_some_and(|said| said.contains(words))
}

#[test]
fn a_release_without_a_verdict_says_why_and_what_to_look_at_instead() {
    let fixed = replaced(
        FLIGHTS,
        "noise = \"auto\"",
        "noise = \"laplace\"\ndegree = 24\norder = 32",
    );
    let unknown = fixed
        .lines()
        .filter(|line| !line.starts_with("expected_records"))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(says_why(&unknown, "where the file says `expected_records`"));
    let label = "label = { column = \"arr_delay\", min = -60, max = 180, outside = \"clamp\" }";
    let regression =
        format!("{label}\n\n[release.regression]\nbandwidth = 10\ngap = 5\nmax_records = 99");
    let regression = replaced(
        &unknown,
        "[release.density]\nbandwidths = [10]",
        &regression,
    );
    assert!(says_why(
        &regression,
        "what is fitted is drawn towards the middle of its range"
    ));
    assert!(says_why(
        include_str!("../../config/summary.toml"),
        "which is the first moment"
    ));
    let running = include_str!("../../config/flights-running.toml");
    assert!(says_why(
        running,
        "records and noise of a sum grow until it covers all its windows"
    ));
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old}");
    text.replace(old, new)
}

#[test]
fn every_example_shows_at_least_the_shape() {
    let mut judged = Vec::new();
    for file in fs::read_dir("config")
        .expect("a folder")
        .map(|file| file.expect("a file").path())
    {
        let text = fs::read_to_string(&file).expect("a text");
        let says_how_many = text
            .lines()
            .any(|line| line.starts_with("expected_records"));
        if file.extension().is_some_and(|ending| ending == "toml") && says_how_many {
            for release in explained(&file) {
                if let Some(visible) = release["accuracy"]["visibility"]["visible"].as_str() {
                    assert!(
                        ["shape", "details"].contains(&visible),
                        "{}: {visible}",
                        file.display()
                    );
                    judged.push(file.clone());
                }
            }
        }
    }
    let wanted = ["demo", "flights", "rides"].map(|name| format!("config/{name}.toml"));
    assert!(
        wanted
            .iter()
            .all(|file| judged.iter().any(|judged| judged == Path::new(file))),
        "{judged:?}"
    );
}

/// A fifth of the price of the example shows nothing. Each of the ways out that are named leads to the shape.
#[test]
fn what_would_show_the_shape_does() {
    let poor = replaced(FLIGHTS, "\nepsilon = 1.0\nnoise", "\nepsilon = 0.2\nnoise");
    let without_room = replaced(&poor, "\nepsilon = 1.0\n", "\nepsilon = 0.2\n");
    assert_eq!(
        visibility(&without_room)["shape_needs"]["price"],
        Value::Null,
        "no price above the total is named"
    );
    // Room for a higher price.
    let poor = replaced(&poor, "\nepsilon = 1.0\n", "\nepsilon = 5.0\n");
    let told = visibility(&poor);
    assert_eq!(told["visible"], "nothing", "{told}");
    let needs = &told["shape_needs"];
    for (old, new) in [
        (
            "expected_records = 300 ",
            format!("expected_records = {} ", needs["records"]),
        ),
        (
            "epsilon = 0.2",
            format!("epsilon = {}", needs["price"].as_str().expect("a price")),
        ),
        (
            "bandwidths = [10]",
            format!("bandwidths = {}", needs["bandwidths"]),
        ),
    ] {
        let told = visibility(&replaced(&poor, old, &new));
        assert!(
            told["visible"] == "shape" || told["visible"] == "details",
            "{new}: {told}"
        );
    }
    let days = needs["window"]
        .as_str()
        .and_then(|window| window.strip_suffix('d'))
        .expect("whole days");
    let records = needs["records"].as_u64().expect("a number");
    assert!(
        days.parse::<u64>().expect("a number") * 300 >= records,
        "{needs}"
    );
}

#[test]
fn a_size_that_is_fixed_is_judged_where_the_file_says_how_many_records_it_expects() {
    let fixed = replaced(
        FLIGHTS,
        "noise = \"auto\"",
        "noise = \"laplace\"\ndegree = 24\norder = 32",
    );
    let richer = replaced(
        &fixed,
        "expected_records = 300 ",
        "expected_records = 3000 ",
    );
    assert_eq!(visibility(&richer)["visible"], "details");
    let told = visibility(&fixed);
    assert_eq!(
        (&told["visible"], &told["shape_needs"]["bandwidths"]),
        (&Value::from("nothing"), &Value::Null),
        "{told}"
    );
}

#[test]
fn what_a_private_choice_leads_to_is_not_judged() {
    let fixed = replaced(
        FLIGHTS,
        "noise = \"auto\"",
        "noise = \"laplace\"\ndegree = 24\norder = 32",
    );
    let chosen = replaced(
        &fixed,
        "order = 32",
        "private_order = { epsilon = 0.1, candidates = [1, 32] }",
    );
    let chosen = replaced(&chosen, "\nepsilon = 1.0\nnoise", "\nepsilon = 0.9\nnoise");
    assert!(says_why(&chosen, "a private choice"));
}

#[test]
fn tables_of_cells_are_judged_with_their_form_and_name_no_way_out() {
    let tables = replaced(FLIGHTS, "[release.density]", "[release.cells]");
    let tables = replaced(&tables, "noise = \"auto\"", "step = \"auto\"");
    assert_eq!(
        visibility(&replaced(
            &tables,
            "expected_records = 300 ",
            "expected_records = 30000 "
        ))["visible"],
        "details"
    );
    let told = visibility(&replaced(
        &tables,
        "expected_records = 300 ",
        "expected_records = 30 ",
    ));
    assert_eq!(
        (&told["visible"], &told["shape_needs"]),
        (&Value::from("nothing"), &Value::Null),
        "{told}"
    );
}

/// The band of a share of labels is compared with all that the share can be.
#[test]
fn labels_of_cells_are_judged_by_the_range_of_their_values() {
    const LATE: &str = include_str!("../../config/flights-late.toml");
    let told = visibility(LATE);
    assert_eq!(
        (&told["visible"], &told["shape_needs"]),
        (&Value::from("details"), &Value::Null),
        "{told}"
    );
    let expected = LATE
        .lines()
        .find(|line| line.starts_with("expected_records"))
        .expect("a number of records");
    let poor = visibility(&replaced(LATE, expected, "expected_records = 100"));
    assert_eq!(poor["visible"], "nothing", "{poor}");
}
