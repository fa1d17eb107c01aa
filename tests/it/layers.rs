//! The order of the crates, which their manifests keep, and which outside package each may use.

use std::fs;

use toml::{Table, Value};

/// Each after those below it.
const CRATES: [&str; 10] =
    ["synopsis", "noise", "release", "functions", "ledger", "kafka", "worker", "server", "audit", "config"];

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
const PACKAGES: [(&str, &[&str]); 8] = [
    ("rdkafka", &["kafka", "worker", "server"]),
    ("rusqlite", &["ledger"]),
    ("prometheus", &["worker", "audit"]),
    ("axum", &["server"]),
    ("tracing", &["kafka", "worker", "server", "audit"]),
    ("parquet", &["kafka"]),
    ("ureq", &["kafka"]),
    ("tokio", &["kafka", "worker", "server"]),
];

fn dependencies(name: &str) -> Table {
    let manifest = fs::read_to_string(format!("crates/{name}/Cargo.toml")).expect("a manifest");
    let manifest: Table = manifest.parse().expect("it can be parsed");
    manifest.get("dependencies").and_then(Value::as_table).cloned().unwrap_or_default()
}

#[test]
fn every_crate_uses_those_below_it_alone() {
    for (place, name) in CRATES.iter().enumerate() {
        let refused = REFUSED.iter().find(|(above, _)| above == name).map_or(&[][..], |(_, refused)| refused);
        for used in dependencies(name).keys().filter_map(|used| used.strip_prefix("bernstream-")) {
            assert!(CRATES[..place].contains(&used) && !refused.contains(&used), "{name} may not use {used}");
        }
    }
    let folders = fs::read_dir("crates").expect("the crates").count();
    assert_eq!(folders, CRATES.len(), "each has its place in the order");
}

/// A reader of synopses links no broker and no database, whoever evaluates them needs no server.
#[test]
fn outside_packages_are_used_where_they_belong() {
    for (package, allowed) in PACKAGES {
        let used: Vec<&str> = CRATES.into_iter().filter(|name| dependencies(name).contains_key(package)).collect();
        assert!(!used.is_empty(), "{package}: nothing uses it");
        assert!(used.iter().all(|name| allowed.contains(name)), "{package}: {used:?}");
    }
}
