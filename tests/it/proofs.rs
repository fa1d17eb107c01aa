//! The proof pages name the tests that try to break them: they exist.

use std::fs;

/// The files and the functions that a page names, as `file`, function.
fn named(page: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let mut named = Vec::new();
    let list = page.split_once("## The tests that try to break it").map_or("", |(_, list)| list);
    for word in list.split('`').skip(1).step_by(2) {
        match word.ends_with(".rs") {
            true => file = word.to_owned(),
            false => named.push((file.clone(), word.to_owned())),
        }
    }
    named
}

/// Those that are no test of their file.
fn missing(named: &[(String, String)]) -> Vec<String> {
    let is_there = |(file, function): &(String, String)| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().zip(text.lines().skip(1)).any(|(before, line)| {
            before.trim() == "#[test]" && line.trim_start().starts_with(&format!("fn {function}("))
        })
    };
    named.iter().filter(|named| !is_there(named)).map(|(file, function)| format!("{file}: {function}")).collect()
}

#[test]
fn every_test_that_a_proof_page_names_exists() {
    let mut pages = 0;
    for page in fs::read_dir("docs/proofs").expect("the pages").map(|entry| entry.expect("a name").path()) {
        let text = fs::read_to_string(&page).expect("a page");
        let named = named(&text);
        assert!(named.len() >= 5, "{}: {} tests", page.display(), named.len());
        assert_eq!(missing(&named), Vec::<String>::new(), "{}", page.display());
        // A name that is a letter off, a file that is another one.
        let (file, function) = &named[0];
        assert_eq!(
            missing(&[(file.clone(), format!("{function}s")), ("src/lib.rs".into(), function.clone())]).len(),
            2
        );
        pages += 1;
    }
    assert!(pages >= 2);
}
