//! The proof pages and the list of known bugs name the tests that try to break what they say: they exist.

use std::fs;
use std::path::Path;

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
        match Path::new(file).extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                let is_test = |at: usize| {
                    let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
                    let attributes: Vec<_> = attributes.collect();
                    attributes.iter().any(|line| **line == "#[test]")
                        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
                };
                let is_named = |line: &str| begins(line, &format!("fn {function}("));
                lines.iter().position(|line| is_named(line)).is_some_and(is_test)
            }
            Some("py") => {
                function.starts_with("test_") && text.lines().any(|line| begins(line, &format!("def {function}(")))
            }
            _ => false,
        }
    };
    named.iter().filter(|named| !is_there(named)).map(|(file, function)| format!("{file}: {function}")).collect()
}

/// A name that is a letter off, a file that is another one.
fn assert_that_wrong_names_are_found(named: &[(String, String)]) {
    let (file, function) = &named[0];
    let wrong = [(file.clone(), format!("{function}s")), ("src/lib.rs".into(), function.clone())];
    assert_eq!(missing(&wrong).len(), 2);
}

#[test]
fn every_test_that_a_proof_page_names_exists() {
    let mut pages = 0;
    for page in fs::read_dir("docs/proofs").expect("the pages").map(|entry| entry.expect("a name").path()) {
        let text = fs::read_to_string(&page).expect("a page");
        let list = text.split_once("## The tests that try to break it").map_or("", |(_, list)| list);
        let named = named(list);
        assert!(named.len() >= 4, "{}: {} tests", page.display(), named.len());
        assert_eq!(missing(&named), Vec::<String>::new(), "{}", page.display());
        assert_that_wrong_names_are_found(&named);
        pages += 1;
    }
    assert!(pages >= 2);
}

/// Forty, each with a verdict, with what is left where there is something, and with the tests that hold it out.
#[test]
fn every_known_bug_has_a_verdict_and_tests_that_exist() {
    let text = fs::read_to_string("docs/evidence.md").expect("the page");
    let bugs: Vec<&str> = text.split("\n### ").skip(1).collect();
    assert_eq!(bugs.len(), 40);
    for (number, bug) in (1..).zip(bugs) {
        assert!(bug.starts_with(&format!("{number}. ")), "{bug}");
        let (verdict, tests) = bug.split_once("\nTests: ").expect("a list of tests");
        let verdict = verdict.split_once("\n\n").expect("a verdict").1;
        let is_excluded = verdict.starts_with("Excluded. ");
        assert!(is_excluded || verdict.starts_with("Partly. ") || verdict.starts_with("Open. "), "{number}: {verdict}");
        assert_eq!(is_excluded, !verdict.contains(" Left: "), "{number}: {verdict}");
        let named = named(tests.lines().next().expect("a line"));
        assert!(!named.is_empty(), "{number}");
        assert_eq!(missing(&named), Vec::<String>::new(), "{number}");
        assert_that_wrong_names_are_found(&named);
    }
}
