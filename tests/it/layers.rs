//! The order of the crates, which their manifests keep, and which outside package each may use.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Each after those below it.
const CRATES: [&str; 10] = [
    "synopsis",
    "noise",
    "release",
    "functions",
    "ledger",
    "kafka",
    "worker",
    "server",
    "audit",
    "config",
];

/// What each crate may not use, though it lies below; a crate that is not listed may use all below it.
const REFUSED: [(&str, &[&str]); 6] = [
    ("ledger", &["functions"]),
    ("kafka", &["functions"]),
    ("worker", &["functions"]),
    ("server", &["functions"]),
    ("audit", &["functions", "server"]),
    ("config", &["server", "audit"]),
];

/// Who may use what; a package that is not listed is free.
const PACKAGES: [(&str, &[&str]); 10] = [
    ("rdkafka", &["kafka", "worker", "server", PROGRAM]),
    ("rusqlite", &["ledger"]),
    ("prometheus", &["worker", "audit"]),
    ("axum", &["server"]),
    ("tracing", &["kafka", "worker", "server", "audit", PROGRAM]),
    ("parquet", &["kafka", PROGRAM]),
    ("ureq", &["kafka"]),
    ("schemars", &["config"]),
    ("siphasher", &["release"]),
    ("tokio", &["kafka", "worker", "server", PROGRAM]),
];

const PROGRAM: &str = "the program";

/// What only these files may write: each would open a wall, and no visibility keeps it from other crates.
const WALLS: [(&str, &[&str]); 6] = [
    // Whoever knows a seed can subtract the noise. An audit reads streams that it makes up, and nothing of it is published.
    (
        "frozen(",
        &["crates/noise/src/noise/generator.rs", "crates/audit/src"],
    ),
    (
        "replayed(",
        &["crates/noise/src/noise/generator.rs", "crates/audit/src"],
    ),
    // What the distance of two exact values is follows from them.
    (
        "sup_distance(",
        &[
            "crates/noise/src/exact.rs",
            "crates/functions/src/sampled.rs",
        ],
    ),
    (
        "sum_distance(",
        &[
            "crates/noise/src/exact.rs",
            "crates/functions/src/sampled.rs",
        ],
    ),
    // What a function publishes counts as noisy.
    (
        "Builtin for",
        &["crates/functions/src", "crates/audit/src/watch.rs"],
    ),
    // What is added to noisy values.
    (
        "ValueScaling::new(",
        &[
            "crates/release/src/scaling.rs",
            "crates/config/src/targets/wording.rs",
        ],
    ),
];

fn dependencies(name: &str) -> Table {
    let manifest = if name == PROGRAM {
        "Cargo.toml".to_owned()
    } else {
        format!("crates/{name}/Cargo.toml")
    };
    let manifest = fs::read_to_string(manifest).expect("a manifest");
    let manifest: Table = manifest.parse().expect("it can be parsed");
    manifest
        .get("dependencies")
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn every_crate_uses_those_below_it_alone() {
    for (place, name) in CRATES.iter().enumerate() {
        let refused = REFUSED
            .iter()
            .find(|(above, _)| above == name)
            .map_or(&[][..], |(_, refused)| refused);
        for used in dependencies(name)
            .keys()
            .filter_map(|used| used.strip_prefix("bernstream-"))
        {
            assert!(
                CRATES[..place].contains(&used) && !refused.contains(&used),
                "{name} may not use {used}"
            );
        }
    }
    let folders = fs::read_dir("crates").expect("the crates").count();
    assert_eq!(folders, CRATES.len(), "each has its place in the order");
}

/// A reader of synopses links no broker and no database, whoever evaluates them needs no server.
#[test]
fn outside_packages_are_used_where_they_belong() {
    for (package, allowed) in PACKAGES {
        let all = CRATES.into_iter().chain([PROGRAM]);
        let used: Vec<&str> = all
            .filter(|name| dependencies(name).contains_key(package))
            .collect();
        assert!(!used.is_empty(), "{package}: nothing uses it");
        assert!(
            used.iter().all(|name| allowed.contains(name)),
            "{package}: {used:?}"
        );
    }
}

/// The files of the program, tests apart, that contain these words.
fn files_that_contain(words: &str, folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        if path.is_dir() {
            files_that_contain(words, &path, found);
            continue;
        }
        let is_test =
            path.ends_with("tests.rs") || path == Path::new("crates/functions/src/opened.rs");
        if is_test || path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let program = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        // Examples in the documentation are tests.
        let mut lines = program
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        if lines.any(|line| line.contains(words)) {
            found.push(path);
        }
    }
}

#[test]
fn what_the_compiler_cannot_close_is_used_where_it_belongs() {
    for (words, allowed) in WALLS {
        let mut found = Vec::new();
        for folder in ["src", "crates"] {
            files_that_contain(words, Path::new(folder), &mut found);
        }
        assert!(!found.is_empty(), "{words}: nothing uses it");
        let others: Vec<&PathBuf> = found
            .iter()
            .filter(|path| !allowed.iter().any(|place| path.starts_with(place)))
            .collect();
        assert!(others.is_empty(), "{words} is not for {others:?}");
    }
}
