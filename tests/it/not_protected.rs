//! What is not protected is one list: README and the page are what it generates, and no other page limits the promise without naming an
//! entry of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use bernstream_config::WorkerSettings;
use bernstream_config::guarantee::{Exclusion, NOT_PROTECTED, not_protected};

use crate::book::pages;
use crate::harness::plan::plan;

const PAGE: &str = "docs/concepts/not-protected.md";
const README: &str = "README.md";
/// README's list stands between the line that ends like this, and an empty line.
const BEFORE_MAIN_LIMITS: &str = "from [the whole list](docs/concepts/not-protected.md):\n\n";
/// What follows on the page is no part of the list.
const AFTER_THE_LIST: &str = "\n## Other limits\n";
/// With this variable the texts are written anew.
const WRITE: &str = "BERNSTREAM_WRITE_DOCS";

/// Words by which a page says that something is not protected.
const LIMITS: [&str; 10] = [
    "not protected",
    "not hidden",
    "does not hide",
    "does not protect",
    "remains visible",
    "is trusted",
    "are trusted",
    "reveals more than",
    "shows how long",
    "whoever has",
];

/// A clause as the page shows it, with the names of values for the values.
fn shown(exclusion: &Exclusion) -> String {
    exclusion.clause.replace(['{', '}'], "`")
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The page down to the end of the list.
fn page() -> String {
    let mut text = String::from(
        "# What is not protected\n\n\
         Every synopsis and `bernstream check` print what of this list applies to the configuration, in these words:\n\n",
    );
    for exclusion in NOT_PROTECTED {
        let when = match exclusion.applies_to {
            "always" => String::new(),
            some => format!(" ({some})"),
        };
        text += &format!(
            "- {}{when}: [more](#{})\n",
            shown(exclusion),
            anchor(exclusion.title)
        );
    }
    for exclusion in NOT_PROTECTED {
        text += &format!("\n## {}\n\n{}\n", exclusion.title, exclusion.details);
    }
    text
}

/// The main limits, a line each.
fn main_limits() -> String {
    let limits = NOT_PROTECTED
        .iter()
        .filter_map(|exclusion| exclusion.main_limit);
    limits
        .map(|limit| format!("- {limit}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A text that has `generated` between `before` and the first `after`.
fn with(text: &str, before: &str, generated: &str, after: &str) -> String {
    let (head, rest) = text
        .split_once(before)
        .expect("where the generated part begins");
    let (_, tail) = rest
        .split_once(after)
        .expect("where the generated part ends");
    format!("{head}{before}{generated}{after}{tail}")
}

fn assert_generated(file: &str, expected: &str) {
    if std::env::var_os(WRITE).is_some() {
        fs::write(file, expected).expect("it is written");
    }
    let committed = fs::read_to_string(file).expect("a page");
    assert!(
        committed == expected,
        "{file} is not what crates/config/src/guarantee/exclusions/list.rs generates; write it anew with: {WRITE}=1 cargo test --test it \
         not_protected"
    );
}

#[test]
fn the_page_is_what_the_list_generates() {
    let committed = fs::read_to_string(PAGE).expect("the page");
    assert_generated(PAGE, &with(&committed, "", &page(), AFTER_THE_LIST));
}

#[test]
fn the_main_limits_of_readme_are_what_the_list_generates() {
    let committed = fs::read_to_string(README).expect("the page");
    assert_generated(
        README,
        &with(&committed, BEFORE_MAIN_LIMITS, &main_limits(), "\n\n"),
    );
}

/// Where a page limits the promise in words of its own, and names no entry of the list.
fn unlisted(text: &str) -> Vec<String> {
    let anchors: BTreeSet<String> = NOT_PROTECTED
        .iter()
        .map(|exclusion| anchor(exclusion.title))
        .collect();
    let names_an_entry = |paragraph: &str| {
        let mut links = paragraph.split("not-protected.md#").skip(1);
        links.any(|rest| {
            rest.split(')')
                .next()
                .is_some_and(|link| anchors.contains(link))
        })
    };
    let paragraphs = text
        .split("\n\n")
        .flat_map(|paragraph| paragraph.split("\n- "))
        .flat_map(|item| item.split("\n* "));
    let limits = paragraphs.filter(|paragraph| {
        // The list as a whole limits nothing.
        let paragraph = paragraph
            .to_lowercase()
            .replace("what is not protected", "");
        LIMITS.iter().any(|words| paragraph.contains(words))
    });
    limits
        .filter(|paragraph| !names_an_entry(paragraph))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_limit_of_proofs_and_how_tos_is_in_the_list() {
    for page in pages() {
        let is_searched = ["docs/proofs", "docs/how-to", "docs/concepts"]
            .iter()
            .any(|folder| page.starts_with(folder));
        if is_searched && page != Path::new(PAGE) {
            let text = fs::read_to_string(&page).expect("a page");
            assert_eq!(
                unlisted(&text),
                Vec::<String>::new(),
                "{}: link the entry of {PAGE}",
                page.display()
            );
        }
    }
    let entry = anchor(NOT_PROTECTED[0].title);
    assert!(
        unlisted(&format!(
            "Its time is not hidden: [why](not-protected.md#{entry})"
        ))
        .is_empty()
    );
    assert_eq!(unlisted("Its time is not hidden.").len(), 1);
    assert_eq!(
        unlisted("Its time is not hidden: [why](not-protected.md#an-entry-that-is-none)").len(),
        1
    );
}

#[test]
fn the_clauses_are_short_and_complete_in_every_configuration_that_we_ship() {
    let mut applied = BTreeSet::new();
    for entry in fs::read_dir("config").expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a file");
        let settings =
            WorkerSettings::parse(&text, &path.display().to_string()).expect("a sound file");
        let clauses = not_protected(&settings);
        for clause in &clauses {
            assert!(
                clause.chars().count() <= 150 && !clause.contains('{') && !clause.ends_with('.'),
                "{clause}"
            );
        }
        let bytes: usize = clauses.iter().map(String::len).sum();
        assert!(
            clauses.len() >= 8 && bytes <= 1800,
            "{}: {bytes} bytes",
            path.display()
        );
        applied.extend(
            NOT_PROTECTED
                .iter()
                .filter(|one| (one.applies)(&settings))
                .map(|one| one.title),
        );
    }
    assert!(applied.len() > 15, "{applied:?}");
}

/// Ninety-nine records wait in a producer for the hundredth, which may take two hours. Without it they miss their window, and the noise
/// is for one record. With a grace of an hour this is refused, and whoever declares nothing is told, as are all readers.
#[test]
fn a_producer_that_waits_for_the_hundredth_record_is_not_configured_in_silence() {
    let flights = fs::read_to_string("config/flights.toml").expect("the file");
    let folder = tempfile::tempdir().expect("a folder");
    let check = |declared: &str| {
        let file = folder.path().join("flights.toml");
        fs::write(&file, flights.replace("producer_delay = \"10m\"", declared))
            .expect("it is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        let output = command
            .args(["check", "--offline"])
            .arg(&file)
            .output()
            .expect("it runs");
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        (output.status.code(), out, err)
    };
    let (code, _, told) = check("producer_delay = \"2h\"");
    assert_eq!(code, Some(78));
    let fault =
        "flights.toml:22:9: windows.grace: must be longer than input.kafka.producer_delay, 2h";
    assert!(
        told.contains(fault)
            && told.contains("raise grace, or let producers send more often, by the clock"),
        "{told}"
    );

    let condition = |time: &str| {
        format!(
            "by the clock, each must reach the topic from 5m before its event time to {time} after it"
        )
    };
    let note = "input.kafka.producer_delay is not declared: the guarantee needs producers that send by the clock and not by a count. Whatever \
        other records there are, each must be on the topic from windows.ahead, 5m, before its event time to windows.grace, 1h, after it, or \
        at a moment that no other record decides";
    let (code, said, _) = check("producer_delay = \"10m\"");
    assert!(
        code == Some(0) && said.contains(&condition("10m")) && !said.contains(note),
        "{said}"
    );
    let (code, said, _) = check("");
    assert!(
        code == Some(0) && said.contains(&condition("1h")) && said.contains(note),
        "{said}"
    );

    let settings = WorkerSettings::parse(&flights, "flights").expect("a sound file");
    let described = plan(&settings).releases[0]
        .description()
        .not_protected
        .clone();
    assert!(
        described
            .iter()
            .any(|clause| clause.contains(&condition("10m"))),
        "{described:?}"
    );
}
