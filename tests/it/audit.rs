//! `bernstream audit`, as people run it, on configurations as they are shipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::ledger::half_written;

const ALARM: f64 = 1e-9;
/// Of the line that an audit begins with.
const BEGUN: &str = "Ctrl-C ends it early, with its report";

/// Where a report is not as its description says.
fn schema_faults(report: &Value) -> Vec<String> {
    let text = fs::read_to_string("docs/reference/audit.schema.json").expect("the description");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    crate::schema::faults(&schema, &schema, report, "")
}

fn audit(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_bernstream");
    Command::new(program)
        .arg("audit")
        .args(arguments)
        .output()
        .expect("it runs")
}

/// The tests of a JSON report, by name.
fn tests(report: &Value) -> Vec<(String, Value)> {
    let named = |part: &Value, of: &Value| -> Vec<(String, Value)> {
        let tests = part["tests"].as_array().cloned().unwrap_or_default();
        let name = |test: &Value| {
            format!(
                "{}: {}",
                of.as_str().unwrap_or_default(),
                test["what"].as_str().unwrap_or_default()
            )
        };
        tests
            .iter()
            .map(|test| (name(test), test.clone()))
            .collect()
    };
    let samplers = report["samplers"]
        .as_array()
        .expect("samplers")
        .iter()
        .flat_map(|one| named(one, &one["of"]));
    let attacks = report["attacks"]
        .as_array()
        .expect("attacks")
        .iter()
        .flat_map(|one| named(one, &one["release"]));
    samplers.chain(attacks).collect()
}

/// Tests that find out noise of 0.8 of its scale.
const FOUND_OUT: [&str; 2] = [
    "the size of a draw",
    "the size of the noise has the declared distribution",
];

fn fails_at(tests: &[(String, Value)], name: &str) -> Option<f64> {
    tests.iter().find(|(known, _)| known.ends_with(name))?.1["fails_at"].as_f64()
}

/// It counts no draws.
fn is_calculated(name: &str) -> bool {
    name.ends_with("costs no more than the price")
}

/// An audit of the flights that had time enough to be strong, however much of it the machine gave to others: one that says that its attack
/// would have missed any noise, or that drew less than a test needs, is made again with four times the time.
fn strong(page: &str) -> Value {
    let mut minutes = 0.1;
    loop {
        let time = minutes.to_string();
        let output = audit(&[
            "config/flights.toml",
            "--minutes",
            &time,
            "--seed",
            "7",
            "--json",
            "--html",
            page,
        ]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
        let is_strong = report["attacks"][0]["detects"]["scale"].is_number()
            && tests(&report)
                .iter()
                .all(|(name, test)| is_calculated(name) || test["draws"].as_u64() >= Some(400))
            && FOUND_OUT
                .iter()
                .all(|name| fails_at(&tests(&report), name) > Some(0.8));
        if is_strong || minutes > 5.0 {
            return report;
        }
        minutes *= 4.0;
    }
}

#[test]
fn a_shipped_configuration_passes_and_its_report_says_what_was_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let report = strong(&page.display().to_string());
    assert_eq!(
        (&report["passed"], &report["format"], &report["seed"]),
        (&true.into(), &1.into(), &7.into()),
        "{report}"
    );
    assert_eq!(schema_faults(&report), Vec::<String>::new());
    assert_eq!(
        (&report["ended_early"], &report["ledger"]["state"]),
        (&false.into(), &"missing".into())
    );
    // How strong the attack was: noise that is weaker than this would have broken the promise.
    let detects = &report["attacks"][0]["detects"];
    let scale = detects["scale"].as_f64().expect("a part");
    let epsilon = detects["cost"].as_f64().expect("an epsilon");
    assert!(
        detects["of"] == "epsilon" && scale < 1.0 && (epsilon * scale - 1.0).abs() < 1e-6,
        "{detects}"
    );
    assert!(
        report["replay"]["replayed"].as_u64() > Some(0)
            && report["replay"]["violations"] == Value::Array(vec![])
    );
    let changes = report["replay"]["changes"].as_array().expect("changes");
    assert!(
        changes
            .iter()
            .all(|change| change["of_sensitivity"].as_f64() <= Some(1.0)),
        "{changes:?}"
    );
    let tests = tests(&report);
    assert!(tests.len() >= 9, "{tests:?}");
    for (name, test) in &tests {
        assert_eq!(test["verdict"], "passed", "{name}: {test}");
        let draws = test["draws"].as_u64().expect("a count");
        assert!(
            test["false_alarm"].as_f64() <= Some(ALARM) && (is_calculated(name) || draws >= 400),
            "{name}: {test}"
        );
    }
    for name in FOUND_OUT {
        assert!(
            fails_at(&tests, name) > Some(0.8),
            "{name}: noise of 0.8 of its scale would have failed"
        );
    }
    assert!(report["cannot_show"].as_array().expect("limits").len() > 5);

    // The page holds everything by itself: nothing is loaded, and nothing runs.
    let page = fs::read_to_string(page).expect("the page");
    assert!(
        page.contains("Audit of config/flights.toml: <span class=\"passed\">passed"),
        "{page}"
    );
    assert_eq!(page.matches("<svg").count(), 2, "the noise, and the attack");
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="));
    for words in [
        "largest change / sensitivity",
        "false positive rate",
        "What this cannot show",
        "--seed 7",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// Of users, and of records with a limit of different keys.
#[test]
fn keys_that_nobody_listed_are_attacked_alone_announced_and_near_the_threshold() {
    for configuration in ["config/pages.toml", "config/error-codes.toml"] {
        let output = audit(&[configuration, "--minutes", "0.1", "--seed", "7", "--json"]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert_eq!(schema_faults(&report), Vec::<String>::new());
        let attacks = report["attacks"].as_array().expect("attacks");
        assert_eq!(attacks.len(), 3, "{report}");
        for attack in attacks {
            assert!(attack["windows"].as_u64() >= Some(400), "{attack}");
        }
        for (name, test) in tests(&report) {
            assert_eq!(test["verdict"], "passed", "{name}: {test}");
        }
    }
}

#[test]
fn sums_with_noise_that_is_correlated_pass_and_what_is_left_out_is_named() {
    let output = audit(&[
        "config/flights-running.toml",
        "--minutes",
        "0.1",
        "--seed",
        "7",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for words in [
        "Gaussian noise",
        "last-four-weeks: ",
        "promised: rho 0.01",
        "later synopses of the running sum",
        "\n  passed",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A whole pipeline over files: what it left is verified, and one byte of it changed fails the audit.
#[test]
fn a_ledger_and_an_output_that_are_there_are_verified_and_a_byte_that_was_not_paid_for_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let flights = fs::canonicalize("tests/data/flights.parquet").expect("the flights");
    let text = format!(
        r#"
pipeline = "audited"
[input]
time = "time"
files = {{ path = "{}" }}
[windows]
origin = "2013-01-01T05:00:00Z"
length = "28d"
end = "2013-03-26T05:00:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1
[release]
name = "delay"
epsilon = 1
degree = 6
order = 1
domain = [{{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }}]
density = {{ bandwidths = [20] }}
[output]
files = {{ path = "{}" }}
[ledger]
path = "{}"
"#,
        flights.display(),
        path.join("out").display(),
        path.join("ledger").display()
    );
    let configuration = path.join("audited.toml");
    fs::write(&configuration, text).expect("it can be written");
    let configuration = configuration.display().to_string();
    let ran = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(["run", &configuration])
        .output()
        .expect("it runs");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let report = |output: &Output| -> Value {
        serde_json::from_slice(&output.stdout).expect("one document")
    };
    let arguments = [configuration.as_str(), "--minutes", "0.01", "--json"];

    let right = audit(&arguments);
    let found = report(&right);
    assert_eq!(
        (right.status.code(), &found["ledger"]["state"]),
        (Some(0), &"verified".into()),
        "{found}"
    );
    let lines = found["ledger"]["lines"].to_string();
    assert!(
        lines.contains("every message on the output was paid for, byte for byte: 3"),
        "{lines}"
    );

    let synopsis = path.join("out/audited/delay/2013-01-29T050000Z.arrows");
    let mut bytes = fs::read(&synopsis).expect("a synopsis");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&synopsis, bytes).expect("it can be written");
    let wrong = audit(&arguments);
    let found = report(&wrong);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(
        (wrong.status.code(), &found["ledger"]["state"]),
        (Some(1), &"failed".into()),
        "{found}"
    );
    let words = "1 of its tests failed: ledger and output: the output holds what this ledger never paid for";
    assert!(said.contains(words), "{said}");
}

/// To verify the format before, or one that a crash left in the middle of a write, is to rewrite it: an audit leaves that to whoever runs
/// the worker.
#[test]
fn a_ledger_that_would_have_to_be_changed_is_not_verified_and_not_changed() {
    for words in [
        "has format 4, of an older program",
        "a crash has left the ledger",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        fs::create_dir(&path).expect("a folder");
        if words.starts_with("a crash") {
            half_written(&path);
        } else {
            let old = fs::read_dir("tests/data/upgrade/format-4/ledger").expect("a ledger");
            for file in old.map(|file| file.expect("a file")) {
                fs::copy(file.path(), path.join(file.file_name())).expect("a copy");
            }
        }
        let text = fs::read_to_string("config/flights.toml").expect("a configuration");
        let text = text.replace(
            "path = \"ledger/flights\"",
            &format!("path = \"{}\"", path.display()),
        );
        let file = folder.path().join("audited.toml");
        fs::write(&file, text).expect("it can be written");
        let content = || {
            let files = fs::read_dir(&path)
                .expect("a folder")
                .map(|file| file.expect("a file").path());
            files
                .map(|file| (file.clone(), fs::read(file).expect("bytes")))
                .collect::<BTreeMap<_, _>>()
        };
        let before = content();
        let output = audit(&[&file.display().to_string(), "--minutes", "0.01", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(
            (output.status.code(), &report["ledger"]["state"]),
            (Some(0), &"not_verified".into()),
            "{said}"
        );
        assert!(
            report["ledger"]["lines"].to_string().contains(words),
            "{report}"
        );
        assert!(
            report["left_out"].to_string().contains("the ledger"),
            "{report}"
        );
        assert!(content() == before, "an audit changes nothing: {words}");
    }
}

#[test]
fn what_cannot_be_audited_is_refused_in_words() {
    let code = |arguments: &[&str]| {
        let output = audit(arguments);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (wrong, said) = code(&["tests/data/wrong.toml"]);
    assert_eq!(wrong, Some(78), "{said}");
    let (never, said) = code(&["config/flights.toml", "--minutes", "0"]);
    assert!(
        never == Some(2) && said.contains("must be more than 0"),
        "{said}"
    );
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_the_audit_begins() {
    let output = audit(&[
        "config/flights.toml",
        "--minutes",
        "0.01",
        "--html",
        "/nowhere/report.html",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(69) && said.contains("cannot write /nowhere/report.html"),
        "{said}"
    );
    assert!(
        output.stdout.is_empty() && !said.contains(BEGUN),
        "nothing was audited: {said}"
    );
}

/// Readers that hold every number as a float repeat the very audit.
#[test]
fn a_seed_is_exact_wherever_its_json_is_read() {
    let seed = || {
        let output = audit(&["config/flights.toml", "--minutes", "0.001", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("one document");
        report["seed"].as_u64().expect("a seed")
    };
    let seeds = [seed(), seed()];
    assert!(
        seeds[0] != seeds[1] && seeds.iter().all(|seed| *seed < 1 << 53),
        "{seeds:?}"
    );
    let least = (1_u64 << 53).to_string();
    let output = audit(&[
        "config/flights.toml",
        "--minutes",
        "0.001",
        "--seed",
        &least,
    ]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// An hour that ends after a moment: by a signal to the process, as from a terminal or a supervisor.
#[test]
fn a_signal_ends_an_audit_early_with_its_whole_report() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join("report.html");
        let mut audit = Command::new(env!("CARGO_BIN_EXE_bernstream"))
            .args([
                "audit",
                "config/flights.toml",
                "--minutes",
                "60",
                "--json",
                "--html",
            ])
            .arg(&page)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut said = BufReader::new(audit.stderr.take().expect("its standard error"));
        let mut first = String::new();
        said.read_line(&mut first).expect("a line");
        assert!(first.contains(BEGUN), "{first}");
        assert!(
            Command::new("kill")
                .args([signal, &audit.id().to_string()])
                .status()
                .expect("kill")
                .success()
        );
        let mut document = String::new();
        audit
            .stdout
            .take()
            .expect("its standard output")
            .read_to_string(&mut document)
            .expect("a document");
        let status = audit.wait().expect("it ends");
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("the rest");
        assert_eq!(status.code(), Some(0), "{signal}: {rest}");
        let report: Value = serde_json::from_str(&document)
            .unwrap_or_else(|error| panic!("{error}: {document} {rest}"));
        assert_eq!(schema_faults(&report), Vec::<String>::new());
        assert_eq!(
            (&report["ended_early"], &report["passed"]),
            (&true.into(), &true.into()),
            "{report}"
        );
        assert!(
            report["seconds"].as_f64() < Some(3600.0) && report["planned_seconds"] == 3600.0,
            "{report}"
        );
        // What there was no time for is never passed over.
        let left_out = report["left_out"].to_string();
        assert!(
            left_out.contains("pairs of streams") && left_out.contains("an attack"),
            "{left_out}"
        );
        assert_eq!(
            report["attacks"][0]["why"], "the audit was ended before it",
            "{report}"
        );
        assert!(
            !report["promise"].as_array().expect("a promise").is_empty()
                && !tests(&report).is_empty(),
            "{report}"
        );
        let page = fs::read_to_string(&page).expect("the page");
        assert!(
            page.contains("passed what was run; left out: ")
                && page.contains("ended by a signal after"),
            "{page}"
        );
    }
}

/// Beside its report an audit says that it has begun, and nothing more: progress is for terminals.
#[test]
fn no_progress_goes_to_a_file() {
    let output = audit(&["config/flights.toml", "--minutes", "0.1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.lines().count() == 1 && said.contains(BEGUN), "{said}");
}

#[test]
fn where_the_json_is_described_is_said() {
    let schema = "docs/reference/audit.schema.json";
    let help = audit(&["--help"]);
    for text in [
        String::from_utf8_lossy(&help.stdout).into_owned(),
        fs::read_to_string("docs/reference/commands.md").expect("it"),
    ] {
        assert!(
            text.contains(schema) || text.contains("../how-to/audit.md"),
            "{text}"
        );
    }
    assert!(
        fs::read_to_string("docs/how-to/audit.md")
            .expect("the page")
            .contains("audit.schema.json")
    );
    // The description can be broken: by a field too many, one too few, and a wrong value.
    let output = audit(&["config/flights.toml", "--minutes", "0.001", "--json"]);
    let right: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(schema_faults(&right), Vec::<String>::new());
    let mut wrong = vec![right; 3];
    wrong[0]["more"] = 1.into();
    wrong[1]["ledger"]
        .as_object_mut()
        .expect("an object")
        .remove("state");
    wrong[2]["replay"]["pairs"] = (-1).into();
    for report in wrong {
        assert_eq!(
            schema_faults(&report).len(),
            1,
            "{:?}",
            schema_faults(&report)
        );
    }
}
