//! Every command that prints ends quietly where nobody reads on, and tells shells and editors what they want to know.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bernstream");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("it runs")
}

/// A synopsis of a case of the golden vectors, as a file of its own.
fn synopsis(case: &str, folder: &tempfile::TempDir) -> String {
    let text = fs::read_to_string(format!("clients/golden/{case}.json")).expect("the case");
    let case: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let path = folder.path().join("synopsis.json");
    fs::write(&path, case["synopsis"].to_string()).expect("it can be written");
    path.display().to_string()
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    let density = synopsis("density-1d", &folder);
    let moments = synopsis("moments-1d", &other);
    let query = ["query", &moments, "1"];
    let commands: [&[&str]; 11] = [
        &["audit", "config/flights.toml", "--minutes", "0.01"],
        &["check", "--offline", "config/flights.toml"],
        &["explain", "config/users.toml"],
        &["schema"],
        &["completions", "bash"],
        &["evaluate", &density],
        &["evaluate", &density, "--json"],
        &["evaluate", &density, "--describe"],
        &query,
        &["--help"],
        &["check", "--help"],
    ];
    for arguments in commands {
        let right = run(arguments);
        assert!(
            right.status.success() && !right.stdout.is_empty(),
            "{arguments:?}: {right:?}"
        );
        // Both ends of a pipe that nobody reads: what is said on standard error meets the same.
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            writer
        };
        let quiet = Command::new(PROGRAM)
            .args(arguments)
            .stdout(closed())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&quiet.stderr);
        assert_eq!(quiet.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.contains("error"),
            "{arguments:?}: {said}"
        );
        let deaf = Command::new(PROGRAM)
            .args(arguments)
            .stdout(closed())
            .stderr(closed())
            .status()
            .expect("it runs");
        assert_eq!(deaf.code(), Some(0), "{arguments:?}");
    }
    // A fault stays one, whoever reads.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let wrong = Command::new(PROGRAM)
        .args(["check", "tests/data/wrong.toml"])
        .stdout(writer)
        .output()
        .expect("it runs");
    assert_eq!(wrong.status.code(), Some(78));
}

#[test]
fn a_synopsis_is_printed_as_json_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = synopsis("density-1d", &folder);
    let json = run(&["evaluate", &path, "--json"]);
    assert!(json.status.success(), "{json:?}");
    let given: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("the file")).expect("JSON");
    let printed: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(given["values"], printed["values"]);
    assert_eq!(given["ledger"], printed["ledger"]);
    // From standard input, and the same at every point.
    let table = |path: &str, input: &[u8]| {
        let mut child = Command::new(PROGRAM)
            .args(["evaluate", path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(input)
            .expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    };
    let from_file = table(&path, b"");
    let from_input = table("-", &json.stdout);
    assert_eq!(from_file, from_input);
    assert_eq!(from_file.lines().count(), 26);

    let damaged = folder.path().join("damaged.json");
    fs::write(&damaged, "{\"format\": 1}").expect("it can be written");
    let refused = run(&["evaluate", &damaged.display().to_string()]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success()
            && said.contains("damaged.json: not a synopsis: it is not a synopsis written as JSON"),
        "{said}"
    );
}

#[test]
fn check_says_what_it_does_not_look_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string("config/files.toml").expect("a configuration");
    let file = folder.path().join("c.toml");
    let away = folder.path().join("away").display().to_string();
    fs::write(
        &file,
        text.replace("path = \"flights\"", &format!("path = \"{away}\"")),
    )
    .expect("it can be written");
    let offline = run(&["check", "--offline", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&offline.stderr);
    assert!(offline.status.success(), "{said}");
    let words = format!("not looked at, because of --offline: whether the files at {away}");
    assert!(
        said.contains(&words) && said.contains("are there and have the columns"),
        "{said}"
    );
    let looked = run(&["check", &file.display().to_string()]);
    assert!(
        !looked.status.success()
            && String::from_utf8_lossy(&looked.stdout).contains("fault  files at"),
        "{looked:?}"
    );
    let topics = run(&["check", "--offline", "config/flights.toml"]);
    let said = String::from_utf8_lossy(&topics.stderr);
    assert!(
        said.contains(
            "because of --offline: the topic flights, the topic flights-synopses, the topic"
        ),
        "{said}"
    );
}

#[test]
fn a_demonstration_of_no_windows_is_refused_before_it_begins() {
    let none = run(&["demo", "--windows", "0"]);
    assert!(!none.status.success() && none.stdout.is_empty());
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(
        said.contains("invalid value '0' for '--windows <WINDOWS>'") && said.contains("1.."),
        "{said}"
    );
}

#[test]
fn a_host_with_a_port_is_refused_before_a_page_is_served_that_nobody_could_ask_for() {
    for name in [
        "https://page.example.org",
        "page.example.org:443",
        "page.example.org/a",
        "",
    ] {
        let refused = run(&["dashboard", "/no/such/folder", "--host", name]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2)
                && said.contains("is not the name of a host: write the name"),
            "{said}"
        );
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let script = run(&["completions", "bash"]);
    assert!(script.status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bernstream.bash");
    fs::write(&path, &script.stdout).expect("it can be written");
    let bash = |line: &str| {
        Command::new("bash")
            .args(["--norc", "-c", line])
            .output()
            .expect("bash runs")
    };
    let path = path.display();
    assert!(bash(&format!("bash -n {path}")).status.success());
    let complete = |words: &str, last: &str| {
        let count = words.split_whitespace().count() - 1;
        let line = format!(
            "source {path}; COMP_WORDS=({words}); COMP_CWORD={count}; _bernstream bernstream '{last}' ''; echo \"${{COMPREPLY[@]}}\""
        );
        let output = bash(&line);
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .to_owned()
    };
    assert_eq!(complete("bernstream led", "led"), "ledger");
    assert_eq!(complete("bernstream check --off", "--off"), "--offline");
    assert_eq!(complete("bernstream nothing", "nothing"), "");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        assert!(
            script.status.success()
                && String::from_utf8_lossy(&script.stdout).contains("dashboard"),
            "{shell}"
        );
    }
    let unknown = Command::new(PROGRAM)
        .arg("completions")
        .env("SHELL", "/bin/false")
        .output()
        .expect("it runs");
    assert_eq!(unknown.status.code(), Some(78));
}

#[test]
fn nothing_is_written_over_where_there_is_no_terminal() {
    let explained = run(&["explain", "config/flights.toml"]);
    assert!(explained.status.success());
    assert!(!explained.stderr.contains(&b'\r') && !explained.stdout.contains(&b'\r'));
}

/// The name of every field of a JSON document but those of columns, which people choose.
fn field_names(document: &Value, names: &mut BTreeSet<String>) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                if name != "parts" {
                    field_names(value, names);
                }
            }
        }
        Value::Array(several) => several.iter().for_each(|one| field_names(one, names)),
        _ => {}
    }
}

/// The words in code of a section of the page of commands, without the fields around them.
fn described_fields(section: &str) -> BTreeSet<String> {
    let page = fs::read_to_string("docs/reference/commands.md").expect("the page");
    let (_, rest) = page.split_once(section).expect("the section");
    let (section, _) = rest.split_once("\n## ").expect("another section");
    let mut fields = BTreeSet::new();
    for word in section.split('`').skip(1).step_by(2) {
        let last = word.rsplit('.').next().expect("a word");
        let field = last.trim_end_matches("[]");
        if !word.starts_with(['-', '"']) && !["/", "null"].contains(&word) {
            fields.insert(field.to_owned());
        }
    }
    fields
}

#[test]
fn every_field_that_query_prints_is_described_and_no_other() {
    let questions: [(&str, &[&str]); 8] = [
        ("counts-variance", &[]),
        ("counts-caps", &["--top", "2"]),
        ("counts-columns", &["--shares"]),
        ("counts-columns", &["--margin", "carrier"]),
        ("quantiles-laplace", &[]),
        (
            "cells-number-1d",
            &["--range", "0..10", "--quantile", "0.5"],
        ),
        ("density-1d", &["--range", "0..10"]),
        ("moments-1d", &["dep_delay"]),
    ];
    let mut printed = BTreeSet::new();
    for (case, question) in questions {
        let folder = tempfile::tempdir().expect("a folder");
        let path = synopsis(case, &folder);
        let arguments = [&["query", &path, "--json"], question].concat();
        let answer = run(&arguments);
        assert!(answer.status.success(), "{case}: {answer:?}");
        let answer = serde_json::from_slice(&answer.stdout).expect("JSON");
        field_names(&answer, &mut printed);
    }
    // Of quantiles the page has one for all.
    printed.retain(|name| {
        name == "p50" || !(name.starts_with('p') && name[1..].parse::<f64>().is_ok())
    });
    assert_eq!(printed, described_fields("\n### query\n"));
}

/// Whatever the cap on records is, and where none is.
#[test]
fn the_caps_of_a_table_are_told_below_it() {
    for (case, caps, words) in [
        (
            "counts-columns",
            "3",
            "2 keys of a window, with at most 3 records of each: ",
        ),
        (
            "counts-columns",
            "1",
            "2 keys of a window, with at most one record of each: ",
        ),
        ("counts-caps", "", "2 keys of a window: "),
        (
            "counts-running",
            "3",
            "2 keys of each window that is added up, with at most 3 records of each: ",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = synopsis(case, &folder);
        let text = fs::read_to_string(&path).expect("it");
        let text = text.replace("\"max_records\":3", &format!("\"max_records\":{caps}"));
        fs::write(&path, text).expect("it can be written");
        let told = run(&["query", &path]);
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(
            told.contains(&format!("A user counts in at most {words}what a user")),
            "{case}: {told}"
        );
    }
}
