//! Long work shows on a terminal how far it is, in lines that fit it, and nothing of that elsewhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::policies::{command, configuration, records};

/// How a line ends that takes the place of the one before.
const REWRITTEN: &str = "\x1b[K";

/// The lines that the program shows on a terminal while it works.
fn shown(folder: &Path, arguments: &str) -> Vec<String> {
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_bernstream"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .output();
    let said =
        String::from_utf8_lossy(&output.expect("`script` gives it a terminal").stdout).into_owned();
    let lines = said
        .split('\r')
        .filter_map(|text| text.split_once(REWRITTEN));
    let lines: Vec<String> = lines.map(|(line, _)| line.to_owned()).collect();
    assert!(
        lines.iter().all(|line| line.chars().count() < 80),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(String::is_empty),
        "what was shown is taken away: {said:?}"
    );
    lines
}

/// Whether one of the lines begins and ends so, with how much is done and the percentage in it.
fn has(lines: &[String], start: &str, end: &str) -> bool {
    let is_so = |line: &&String| line.starts_with(start) && line.ends_with(end);
    lines
        .iter()
        .filter(is_so)
        .any(|line| line.contains(" of ") && line.contains(" %)"))
}

#[test]
fn an_audit_shows_what_it_does_and_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration("1d", "epsilon = 1.0", &["epsilon = 0.1"]);
    fs::write(folder.path().join("c.toml"), text).expect("the configuration");
    records(&folder.path().join("in.arrows"));
    let lines = shown(folder.path(), "audit c.toml --minutes 0.15");
    assert!(
        has(&lines, "replaying neighbouring streams: ", " s left"),
        "{lines:?}"
    );
    assert!(has(&lines, "attacking what is released: ", ""), "{lines:?}");
    let piped = command(folder.path(), &["audit", "c.toml", "--minutes", "0.02"]);
    let piped = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(piped.contains("auditing c.toml"), "{piped}");
    assert!(
        !piped.contains('\r') && !piped.contains("replaying neighbouring"),
        "{piped:?}"
    );
}

#[test]
fn a_sample_of_files_shows_how_much_of_them_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration("1d", "epsilon = 1.0", &["epsilon = 0.1"]);
    let text = text
        .replace("in.arrows", "in.csv")
        .replace("\"user_id\"", "\"user_id\", type = \"text\"");
    fs::write(folder.path().join("c.toml"), text).expect("the configuration");
    let rows = "2026-01-01T00:30:00Z,u1,300\n".repeat(4_000_000);
    fs::write(
        folder.path().join("in.csv"),
        format!("received_at,user_id,milliseconds\n{rows}"),
    )
    .expect("records");
    let lines = shown(folder.path(), "check --sample c.toml");
    assert!(
        has(&lines, "trying records, bytes of files: ", ""),
        "{lines:?}"
    );
    let piped = command(folder.path(), &["check", "--sample", "c.toml"]);
    let piped = String::from_utf8_lossy(&[piped.stdout, piped.stderr].concat()).into_owned();
    assert!(piped.contains("4000000 of 4000000"), "{piped}");
    assert!(
        !piped.contains('\r') && !piped.contains("trying records"),
        "{piped:?}"
    );
}
