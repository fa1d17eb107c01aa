//! The import table of `src/lib.rs` holds: a room imports only rooms before it on the walk, and none but the command
//! line imports the configuration.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms in the order of the walk, each with the outside crates that only it (and later rooms) may name.
const WALK: [&str; 17] = [
    "clock",
    "kafka",
    "source",
    "window",
    "targets",
    "mechanism",
    "accountant",
    "synopsis",
    "ledger",
    "sink",
    "feed",
    "metrics",
    "pipeline",
    "config",
    "serve",
    "telemetry",
    "cli",
];

/// Who may use what; a crate that is not listed is free.
const CRATES: [(&str, &[&str]); 6] = [
    ("rdkafka", &["kafka", "source", "ledger", "sink", "feed", "cli"]),
    ("rusqlite", &["ledger"]),
    ("prometheus", &["metrics"]),
    ("axum", &["serve"]),
    ("tracing", &["source", "feed", "pipeline", "telemetry", "cli"]),
    ("parquet", &["source", "cli"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the source folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The room of a file, and the program text before its tests, without comments.
fn read(path: &Path) -> (String, String) {
    let inside = path.strip_prefix("src").expect("a source file");
    let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("it can be read");
    let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<&str> = program.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    (first.trim_end_matches(".rs").to_string(), code.join("\n"))
}

/// Every room named as `crate::room` in `code`, in `use` groups too.
fn rooms_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let inner = group.split("};").next().unwrap_or_default();
            named.extend(inner.split(',').map(|part| first_word(part.trim())));
        } else {
            named.insert(first_word(rest));
        }
    }
    named
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Whether `name` may be imported by `room`.
fn is_allowed(room: &str, name: &str) -> bool {
    let place = |wanted: &str| WALK.iter().position(|room| *room == wanted);
    match (place(room), place(name)) {
        _ if room == name || room == "main" || room == "lib" => true,
        (Some(room), Some(name)) => name < room,
        _ => false,
    }
}

#[test]
fn a_room_imports_only_rooms_before_it() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    assert!(files.len() > 20, "the source was found");
    let mut wrong = Vec::new();
    for path in &files {
        let (room, code) = read(path);
        for name in rooms_named(&code) {
            if !is_allowed(&room, &name) {
                wrong.push(format!("{}: {room} must not import {name}", path.display()));
            }
            if name == "config" && !["config", "cli"].contains(&room.as_str()) {
                wrong.push(format!("{}: only the command line reads the configuration", path.display()));
            }
        }
        for (outside, rooms) in CRATES {
            let is_used = code.contains(&format!("use {outside}::")) || code.contains(&format!(" {outside}::"));
            if is_used && !rooms.contains(&room.as_str()) {
                wrong.push(format!("{}: {room} must not use {outside}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_map_lists_every_room_in_the_order_of_the_walk() {
    let map = fs::read_to_string("src/lib.rs").expect("the map");
    let listed: Vec<&str> = map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(listed, WALK);
}

#[test]
fn an_import_against_the_walk_is_found() {
    assert!(rooms_named("use crate::sink::Sink;").contains("sink"));
    assert!(rooms_named("use crate::{clock::Timestamp, ledger};").contains("ledger"));
    assert!(!is_allowed("mechanism", "ledger"));
    assert!(!is_allowed("window", "config"));
    assert!(is_allowed("pipeline", "sink"));
}
