//! The proof pages and the list of known bugs name the tests that try to break what they say: they exist. So do the pages that
//! the sources cite, and the sources that the pages cite.

use std::fs;
use std::path::{Path, PathBuf};

/// The files and the functions that a text names between backticks: a file, then its functions.
fn named(text: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let mut named = Vec::new();
    for word in text.split('`').skip(1).step_by(2) {
        match Path::new(word).extension() {
            Some(_) => word.clone_into(&mut file),
            None => named.push((file.clone(), word.to_owned())),
        }
    }
    named
}

/// Those that are no test of their file, in Rust or Python, or one that only runs if it is asked for.
fn missing(named: &[(String, String)]) -> Vec<String> {
    let is_there = |(file, function): &(String, String)| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let begins = |line: &str, with: &str| line.trim_start().starts_with(with);
        match Path::new(file)
            .extension()
            .and_then(|extension| extension.to_str())
        {
            Some("rs") => {
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                let is_test = |at: usize| {
                    let attributes = lines[..at]
                        .iter()
                        .rev()
                        .take_while(|line| line.starts_with("#["));
                    let attributes: Vec<_> = attributes.collect();
                    attributes.iter().any(|line| **line == "#[test]")
                        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
                };
                let is_named = |line: &str| begins(line, &format!("fn {function}("));
                lines
                    .iter()
                    .position(|line| is_named(line))
                    .is_some_and(is_test)
            }
            Some("py") => {
                function.starts_with("test_")
                    && text
                        .lines()
                        .any(|line| begins(line, &format!("def {function}(")))
            }
            _ => false,
        }
    };
    named
        .iter()
        .filter(|named| !is_there(named))
        .map(|(file, function)| format!("{file}: {function}"))
        .collect()
}

/// A name that is a letter off, a file that is another one.
fn assert_that_wrong_names_are_found(named: &[(String, String)]) {
    let (file, function) = &named[0];
    let wrong = [
        (file.clone(), format!("{function}s")),
        ("src/lib.rs".into(), function.clone()),
    ];
    assert_eq!(missing(&wrong).len(), 2);
}

#[test]
fn every_test_that_a_proof_page_names_exists() {
    let mut number = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        assert!(text.contains("\n## Claim\n"), "{}", page.display());
        let list = text
            .split_once("## The tests that try to break it")
            .map_or("", |(_, list)| list);
        let named = named(list);
        assert!(
            named.len() >= 4,
            "{}: {} tests",
            page.display(),
            named.len()
        );
        assert_eq!(missing(&named), Vec::<String>::new(), "{}", page.display());
        assert_that_wrong_names_are_found(&named);
        number += 1;
    }
    assert!(number >= 20);
}

/// All but the index.
fn pages() -> Vec<PathBuf> {
    let all = fs::read_dir("docs/proofs")
        .expect("the pages")
        .map(|entry| entry.expect("a name").path());
    all.filter(|page| !page.ends_with("index.md")).collect()
}

/// The pages of proofs that a text cites, as `docs/proofs/NAME.md`.
fn cited(text: &str) -> impl Iterator<Item = PathBuf> {
    let citations = text.split("docs/proofs/").skip(1);
    let names = citations.map(|rest| {
        rest.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
            .next()
    });
    names
        .flatten()
        .map(|name| name.trim_end_matches('.'))
        .filter(|name| !name.is_empty())
        .map(|name| {
            let path = Path::new("docs/proofs").join(name);
            if path.extension().is_some() {
                path
            } else {
                path.with_extension("md")
            }
        })
}

/// Everything below a folder that is written by hand, but for what was installed or generated there.
fn texts_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a name").path());
    let below = entries.flat_map(|path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let is_left_out = name.starts_with('.')
            || ["target", "node_modules", "golden", "fixtures"].contains(&name);
        match path.is_dir() {
            _ if is_left_out => Vec::new(),
            true => texts_below(&path),
            false => vec![path],
        }
    });
    let endings = [
        "rs", "py", "js", "ts", "md", "toml", "yaml", "json", "sh", "html",
    ];
    below
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| endings.iter().any(|known| ending == *known))
        })
        .collect()
}

/// Whether a text cites mathematics that is on no page, also where a line of a comment ends between the two words.
fn cites_no_page(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| {
        pair[0].eq_ignore_ascii_case("privacy") && pair[1].eq_ignore_ascii_case("mathematics")
    })
}

#[test]
fn a_citation_that_names_no_page_is_found_also_over_the_end_of_a_line() {
    for text in [
        "Privacy mathematics, section 1",
        "the claim (privacy\n//! mathematics, section 1)",
        "`privacy-mathematics`",
    ] {
        assert!(cites_no_page(text), "{text}");
    }
    assert!(!cites_no_page(
        "what privacy costs; the mathematics is in docs/proofs/noise.md"
    ));
}

/// Every page is cited where its claim is implemented, and no citation leads nowhere.
#[test]
fn every_citation_leads_to_a_page_and_every_page_is_cited() {
    let folders = [
        "src", "crates", "tests", "clients", "config", "deploy", "docs", "examples", "benches",
        "fuzz",
    ];
    let files = folders
        .iter()
        .flat_map(|folder| texts_below(Path::new(folder)));
    let mut cited_by_sources = Vec::new();
    for file in files.filter(|file| !file.ends_with("it/proofs.rs")) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        assert!(!cites_no_page(&text), "{}: which page?", file.display());
        for page in cited(&text) {
            assert!(page.exists(), "{} cites {}", file.display(), page.display());
            if file.starts_with("crates") {
                cited_by_sources.push(page);
            }
        }
    }
    let index = fs::read_to_string("docs/proofs/index.md").expect("the index");
    for page in pages() {
        let name = page.file_name().expect("a name").to_string_lossy();
        assert!(
            index.contains(&format!("({name})")),
            "{name} is not in the index"
        );
        let is_about_papers = page.ends_with("papers.md");
        assert!(
            is_about_papers || cited_by_sources.contains(&page),
            "no source cites {}",
            page.display()
        );
    }
}

/// The sources that a page says it is about.
#[test]
fn the_sources_that_a_proof_page_names_exist() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let named = text
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| word.starts_with("crates/") || word.starts_with("src/"));
        for source in named {
            assert!(Path::new(source).exists(), "{}: {source}", page.display());
        }
    }
}

/// Forty, each with a verdict, with what is left where there is something, and with the tests that hold it out.
#[test]
fn every_known_bug_has_a_verdict_and_tests_that_exist() {
    let text = fs::read_to_string("docs/evidence/known-bugs.md").expect("the page");
    let bugs: Vec<&str> = text.split("\n### ").skip(1).collect();
    assert_eq!(bugs.len(), 40);
    for (number, bug) in (1..).zip(bugs) {
        assert!(bug.starts_with(&format!("{number}. ")), "{bug}");
        let (verdict, tests) = bug.split_once("\nTests: ").expect("a list of tests");
        let verdict = verdict.split_once("\n\n").expect("a verdict").1;
        let is_excluded = verdict.starts_with("Excluded. ");
        assert!(
            is_excluded || verdict.starts_with("Partly. ") || verdict.starts_with("Open. "),
            "{number}: {verdict}"
        );
        assert_eq!(
            is_excluded,
            !verdict.contains(" Left: "),
            "{number}: {verdict}"
        );
        let named = named(tests.lines().next().expect("a line"));
        assert!(!named.is_empty(), "{number}");
        assert_eq!(missing(&named), Vec::<String>::new(), "{number}");
        assert_that_wrong_names_are_found(&named);
    }
}
