//! Names for people are in every synopsis, bear on no digest, and may change under a ledger that goes on.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::{AxisNames, PlotNames};

/// Months of flights; `END`, `NAMES` and `AXIS` are filled in.
const CONFIGURATION: &str = r#"
pipeline = "flights"
input = { time = "time", files = { path = "tests/data/flights.parquet" } }
windows = { origin = "2013-01-01T05:00:00Z", length = "28d", end = "END" }
privacy = { unit = "record", adjacency = "add_remove", epsilon = 1.0 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[release]
name = "delay"
NAMES
epsilon = 1.0
degree = 20
order = 2
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp"AXIS }]
density = { bandwidths = [15] }
"#;

fn run(folder: &Path, end: &str, names: &str, axis: &str) -> Output {
    let configuration = folder.join("names.toml");
    let text = CONFIGURATION.replace("FOLDER", &folder.display().to_string());
    fs::write(
        &configuration,
        text.replace("END", end)
            .replace("NAMES", names)
            .replace("AXIS", axis),
    )
    .expect("written");
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .arg("run")
        .arg(&configuration)
        .output()
        .expect("it runs")
}

/// What was published, by its window.
fn published(folder: &Path) -> Vec<Synopsis> {
    fn gather(folder: &Path, found: &mut Vec<Synopsis>) {
        for path in fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
        {
            if path.is_dir() {
                gather(&path, found);
            } else if let Ok(synopsis) = Synopsis::decode_message(&fs::read(&path).expect("a file"))
            {
                found.push(synopsis);
            }
        }
    }
    let mut found = Vec::new();
    gather(&folder.join("out"), &mut found);
    found.sort_by_key(|synopsis| synopsis.description().window.start);
    found
}

#[test]
fn names_are_in_every_synopsis_and_change_while_the_ledger_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let succeeded = |output: Output| {
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    succeeded(run(folder.path(), "2013-01-29T05:00:00Z", "", ""));
    let [first] = published(folder.path()).try_into().expect("one window");
    assert_eq!(first.description().names, None);
    assert!(
        !first.to_json().expect("JSON").contains("\"names\""),
        "what is not declared is not written"
    );

    let names = "title = \"Departure delay\"\ndescription = \"How late flights leave.\"\nrecord = \"flight\"";
    let axis = ", label = \"departure delay\", unit = \"minute\"";
    succeeded(run(folder.path(), "2013-02-26T05:00:00Z", names, axis));
    let [_, second] = published(folder.path())
        .try_into()
        .expect("the ledger goes on");
    let text = |text: &str| Some(text.to_owned());
    let declared = PlotNames {
        title: text("Departure delay"),
        description: text("How late flights leave."),
        record: text("flight"),
        axes: vec![AxisNames {
            label: text("departure delay"),
            unit: text("minute"),
        }],
    };
    assert_eq!(second.description().names, Some(declared));
    assert_eq!(second.description().domain[0].column, "dep_delay");
    assert_eq!(
        second.description().ledger.id,
        first.description().ledger.id
    );

    // Whoever evaluates one reads them.
    let said = |start: &str| {
        let file = folder
            .path()
            .join("out/flights/delay")
            .join(format!("{start}.arrows"));
        let mut evaluate = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        let output = evaluate
            .arg("evaluate")
            .arg(file)
            .args(["--at", "0"])
            .output()
            .expect("it runs");
        String::from_utf8(output.stderr).expect("text")
    };
    let divided = "; divide by the released mass for a density\n";
    assert!(
        said("2013-01-01T050000Z")
            .contains(&format!("value: records per unit of dep_delay{divided}"))
    );
    assert!(said("2013-01-29T050000Z").contains(&format!(
        "value: flights per minute of departure delay{divided}"
    )));

    // A part of them, and another.
    succeeded(run(
        folder.path(),
        "2013-03-26T05:00:00Z",
        "title = \"Late\"",
        "",
    ));
    let [_, _, third] = published(folder.path())
        .try_into()
        .expect("the ledger goes on");
    assert_eq!(
        third.description().names,
        Some(PlotNames {
            title: text("Late"),
            ..PlotNames::default()
        })
    );
}
