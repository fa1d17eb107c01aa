//! The book in docs/: its table of contents, its code, and the tutorial, followed step by step.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Every page, in order of its path.
pub fn pages() -> Vec<PathBuf> {
    fn below(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("a name").path());
        entries
            .flat_map(|path| {
                if path.is_dir() {
                    below(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let mut pages: Vec<PathBuf> = below(Path::new("docs"))
        .into_iter()
        .filter(is_page)
        .collect();
    pages.sort();
    pages
}

/// The blocks of code of a page, each with its language.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').expect("a block has lines"))
        .collect()
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let summary = fs::read_to_string("docs/SUMMARY.md").expect("the table of contents");
    let listed: Vec<PathBuf> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|page| Path::new("docs").join(page))
        .collect();
    let all: BTreeSet<PathBuf> = pages()
        .into_iter()
        .filter(|page| !page.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(listed.len(), all.len(), "a page is listed twice");
}

/// mdBook turns links to Markdown into links to pages of the book, and there are none for files outside of it.
#[test]
fn no_page_of_the_book_links_to_markdown_outside_of_it() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', ' ', '#']).next())
        {
            let is_page = !link.starts_with("http")
                && Path::new(link)
                    .extension()
                    .is_some_and(|ending| ending == "md");
            let outside = || {
                let target =
                    fs::canonicalize(page.parent().expect("docs").join(link)).expect("it is there");
                !target.starts_with(fs::canonicalize("docs").expect("docs"))
            };
            assert!(!is_page || !outside(), "{}: {link}", page.display());
        }
    }
}

/// Parts of configurations are TOML (functions are parsed as such in tests/it/config.rs). The one whole configuration is that of
/// the tutorial, which is run below, and the README shows it in fewer lines.
#[test]
fn the_code_of_the_pages_is_sound() {
    let mut whole = Vec::new();
    for page in pages().into_iter().chain([PathBuf::from("README.md")]) {
        let text = fs::read_to_string(&page).expect("a page");
        for (language, code) in blocks(&text) {
            match language {
                "toml" => {
                    let parsed = code.parse::<toml::Table>();
                    let table = parsed
                        .unwrap_or_else(|fault| panic!("{}: {fault}\n{code}", page.display()));
                    whole.extend(table.contains_key("pipeline").then_some(table));
                }
                "json" => {
                    let parsed = serde_json::from_str::<serde_json::Value>(code);
                    parsed.unwrap_or_else(|fault| panic!("{}: {fault}\n{code}", page.display()));
                }
                "sh" | "text" | "python" => {}
                _ => panic!("{}: a block in `{language}`", page.display()),
            }
        }
    }
    let names: BTreeSet<&str> = whole
        .iter()
        .filter_map(|table| table["pipeline"].as_str())
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["visits", "waits"]);
    assert_eq!(whole.len(), 3, "those of two tutorials, and the README's");
    let waits = whole
        .iter()
        .filter(|table| table["pipeline"].as_str() == Some("waits"));
    let mut of_pages = waits.collect::<Vec<_>>();
    assert_eq!(of_pages.pop(), of_pages.pop());
}

/// A command of the tutorial in `folder`.
fn follow(folder: &Path, command: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_bernstream");
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(command.replace("bernstream ", &format!("{program} ")))
        .current_dir(folder);
    let output = shell.output().expect("a shell");
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A number of the exact table of visits, by country.
#[derive(Debug)]
struct ExactVisits {
    country: String,
    users: f64,
    revenue: f64,
}

impl ExactVisits {
    /// A line such as `CH 1467 70692.9`.
    fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        ExactVisits {
            country: words[0].to_owned(),
            users: words[1].parse().expect("a number of users"),
            revenue: words[2].parse().expect("a sum"),
        }
    }
}

/// From a CSV file to a table, as the page says: the exact numbers lie about in their intervals.
#[test]
fn the_tutorial_of_counts_can_be_followed() {
    let page = fs::read_to_string("docs/tutorial/counts.md").expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let mut exact = Vec::new();
    let mut tables = 0;
    for (language, code) in blocks(&page) {
        if language == "toml" {
            fs::write(folder.path().join("visits.toml"), code).expect("the configuration");
        }
        for command in code.lines().filter(|_| language == "sh") {
            let output = follow(folder.path(), command);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if command.starts_with("awk -F") {
                exact.extend(text.lines().map(ExactVisits::read));
                assert_eq!(exact.len(), 4, "{text}");
            }
            if command.starts_with("bernstream check") {
                assert!(!text.contains("warn   "), "{text}");
                assert!(
                    text.contains(
                        "keys of a user and window in them count under the cap of 2 in by-country"
                    ),
                    "{text}"
                );
            }
            if command.ends_with("Z.arrows") {
                tables += 1;
                let rows = text.lines().skip(1).take(5);
                assert_eq!(rows.clone().count(), 5, "{text}");
                for row in rows {
                    let words: Vec<&str> = row.split_whitespace().collect();
                    let number =
                        |at: usize| words[at].parse::<f64>().unwrap_or_else(|_| panic!("{row}"));
                    let Some(exact) = exact.iter().find(|exact| exact.country == words[0]) else {
                        assert!(row.starts_with("AT"), "{row}");
                        continue;
                    };
                    // Three times the interval; caps take some percents of the revenue.
                    assert!((number(1) - exact.users).abs() < 36.0, "{row} {exact:?}");
                    let missing = exact.revenue - number(5);
                    assert!(
                        -5400.0 < missing && missing < 5400.0 + 0.1 * exact.revenue,
                        "{row} {exact:?}"
                    );
                }
            }
            if command.contains("--top 2") {
                assert!(text.starts_with("key "), "{text}");
                let keys: Vec<&str> = text.lines().skip(1).take(2).map(|row| &row[..2]).collect();
                assert_eq!(keys, ["CH", "DE"], "{text}");
            }
        }
    }
    assert_eq!(tables, 1);
}

/// From a CSV file to a curve, as the page says: what is exact lies about in the band, and a second run publishes nothing.
#[test]
fn the_tutorial_can_be_followed() {
    let page = fs::read_to_string("docs/tutorial/csv.md").expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let mut published = Vec::new();
    for (language, code) in blocks(&page) {
        match language {
            "toml" => fs::write(folder.path().join("waits.toml"), code).expect("the configuration"),
            "sh" => {
                // One does not end, and the other works out what `run` works out again.
                let is_left_out =
                    |line: &&str| line.contains(" dashboard ") || line.contains(" explain ");
                for command in code.lines().filter(|line| !is_left_out(line)) {
                    let start = Instant::now();
                    let output = follow(folder.path(), command);
                    if command.starts_with("bernstream evaluate") {
                        let text = String::from_utf8_lossy(&output.stdout).into_owned();
                        let rows: Vec<Vec<f64>> = text
                            .lines()
                            .filter_map(|line| {
                                line.split(',').map(|number| number.parse().ok()).collect()
                            })
                            .collect();
                        assert_eq!(rows.len(), 3, "{text}");
                        // 5,000 waits, each the sum of two that are exponential, of 8 minutes on average.
                        for row in &rows {
                            let exact = 5000.0 / 64.0 * row[0] * (-row[0] / 8.0).exp();
                            let by_chance = 4.0 * (exact / 10.0).sqrt();
                            assert!(
                                (row[1] - exact).abs() < 0.1 * exact + by_chance,
                                "{row:?} {exact}"
                            );
                            assert!(row[2] < row[1] && row[1] < row[3], "{row:?}");
                        }
                    }
                    if command == "bernstream run waits.toml" {
                        // The second has nothing to do, and does not wait to look at the witness again.
                        let took = start.elapsed();
                        assert!(
                            published.is_empty() || took < Duration::from_secs(5),
                            "{took:?}"
                        );
                        let synopsis = folder
                            .path()
                            .join("out/waits/waiting-time/2026-01-05T000000Z.arrows");
                        published.push(fs::read(synopsis).expect("the synopsis"));
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(published.len(), 2, "two runs");
    assert_eq!(published[0], published[1]);
}
