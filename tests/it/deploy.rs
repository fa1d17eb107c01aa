//! What is shown to people is true: the manifests' configurations, the README's commands. The rest of deploy/: tests/deploy.sh.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bernstream_config::WorkerSettings;

#[test]
fn the_manifests_hold_sound_configurations() {
    for folder in ["base", "overlays/dev", "overlays/production"] {
        let path = format!("deploy/{folder}/bernstream.toml");
        let text = fs::read_to_string(&path).expect("the configuration");
        let settings =
            WorkerSettings::parse(&text, &path).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(
            settings.ledger.path.starts_with("/var/lib/bernstream"),
            "the ledger is on the volume"
        );
        assert_eq!(settings.serve.expect("the probes need it").port(), 9464);
    }
}

/// Commands of the README and of the pages that need no broker, run as they stand there.
#[test]
fn the_commands_of_the_readme_and_the_pages_work() {
    let pages: String = pages()
        .iter()
        .map(|path| fs::read_to_string(path).expect("a page"))
        .collect();
    let shell: Vec<&str> = pages
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let commands: Vec<&str> = shell.iter().flat_map(|block| block.lines()).collect();
    let mut done = BTreeSet::new();
    for command in &commands {
        let words: Vec<&str> = command
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        match words.as_slice() {
            // Somebody's own file, or that of the tutorial.
            ["bernstream", .., "my.toml" | "waits.toml" | "visits.toml"]
            | [
                "mkdir" | "awk" | "sed" | "head" | "chmod" | "printf" | "curl",
                ..,
            ]
            | ["mdbook", "build"]
            | ["cargo", "install", "mdbook", ..] => {}
            ["bernstream", "explain" | "check" | "sample" | "schema", ..] => {
                if !done.insert(words.clone()) {
                    continue;
                }
                let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
                    .args(&words[1..])
                    .output()
                    .expect("it runs");
                assert!(
                    output.status.success(),
                    "{command}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            }
            // The tutorial: in tests/it/book.rs. With a broker: in tests/it/flights.rs; without: in tests/it/functions.rs. The
            // demonstration: in tests/it/demo.rs. The page: in tests/it/api.rs. The audit: in tests/it/audit.rs. Absorbers: in
            // tests/it/absorbers.rs, with another file. Found keys: in tests/it/found_keys.rs. The tests: this.
            [
                "bernstream",
                "absorb" | "audit" | "produce" | "ledger" | "run" | "evaluate" | "query"
                | "dashboard" | "keys",
                ..,
            ]
            | ["cargo", "run", ..]
            | ["tests/run"]
            | [] => {}
            _ => panic!("nothing tests `{command}`"),
        }
    }
    assert!(!done.is_empty(), "the pages show commands: {commands:?}");
}

/// Links between pages lead somewhere.
#[test]
fn the_links_of_the_readme_and_the_pages_lead_to_files_and_headings() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', ' ']).next())
        {
            if link.starts_with("http") {
                continue;
            }
            let (file, heading) = link
                .split_once('#')
                .map_or((link, None), |(file, heading)| (file, Some(heading)));
            let file = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap_or(Path::new("")).join(file)
            };
            assert!(file.exists(), "{}: {link}", page.display());
            let Some(heading) = heading else { continue };
            let target = fs::read_to_string(&file).expect("a page");
            let anchor = |line: &str| -> String {
                let title = line
                    .trim_start_matches('#')
                    .trim()
                    .to_lowercase()
                    .replace(' ', "-");
                title
                    .chars()
                    .filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_')
                    .collect()
            };
            let is_there = target
                .lines()
                .filter(|line| line.starts_with('#'))
                .any(|line| anchor(line) == heading);
            assert!(is_there, "{}: {link}", page.display());
        }
    }
}

/// The README, what stands beside it, and the book.
fn pages() -> Vec<PathBuf> {
    let beside = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ]
    .map(PathBuf::from);
    beside.into_iter().chain(super::book::pages()).collect()
}
