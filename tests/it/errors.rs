//! The list of errors is true: the words that it quotes are those of the source.

use std::fs;
use std::path::Path;

/// Every text file below `folder` with one of these endings, as one text in which long strings are in one piece.
fn gather(folder: &Path, endings: &[&str], found: &mut String) {
    for entry in fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("a name").path())
    {
        let is_source = entry
            .extension()
            .is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted));
        // Packages that the JavaScript client is packed with.
        if entry.ends_with("node_modules") {
            continue;
        }
        if entry.is_dir() {
            gather(&entry, endings, found);
        } else if is_source {
            let text = fs::read_to_string(&entry).expect("a source");
            let program = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            for line in program.lines() {
                let line = if found.ends_with('\u{1}') {
                    line.trim_start()
                } else {
                    line
                };
                found.truncate(found.trim_end_matches('\u{1}').len());
                // A string that goes on in the next line.
                match line.strip_suffix('\\') {
                    Some(part) => found.push_str(&format!("{part}\u{1}")),
                    None => found.push_str(&format!("{line}\n")),
                }
            }
        }
    }
}

fn source() -> String {
    let mut found = String::new();
    gather(Path::new("src"), &["rs"], &mut found);
    gather(Path::new("crates"), &["rs", "js"], &mut found);
    gather(Path::new("clients/python/src"), &["py"], &mut found);
    gather(Path::new("clients/javascript"), &["js"], &mut found);
    found.replace("\\\"", "\"")
}

/// Every entry: the words of the message, and what is said about it.
fn entries(list: &str) -> Vec<(String, String)> {
    let sections = list.split("\n### ").skip(1);
    sections
        .map(|entry| {
            let (title, body) = entry.split_once('\n').expect("an entry has a body");
            let body = body.split("\n## ").next().unwrap_or_default();
            (title.trim().trim_matches('`').to_owned(), body.to_owned())
        })
        .collect()
}

/// The parts of a message that stand in the source; what lies between them is filled in.
fn missing<'m>(message: &'m str, source: &str) -> Vec<&'m str> {
    message
        .split('…')
        .map(str::trim)
        .filter(|part| !part.is_empty() && !source.contains(part))
        .collect()
}

#[test]
fn every_message_of_the_list_is_in_the_source_and_has_a_fix() {
    let list = fs::read_to_string("config/ERRORS.md").expect("the list");
    let source = source();
    let entries = entries(&list);
    assert!(entries.len() >= 60, "{} entries", entries.len());
    for (message, body) in &entries {
        assert_eq!(missing(message, &source), Vec::<&str>::new(), "{message}");
        assert!(
            message.split('…').any(|part| part.trim().len() >= 7),
            "{message}: too short to be searched for"
        );
        assert!(body.contains("**Do**"), "{message}: what is to be done?");
    }
    for (at, (message, _)) in entries.iter().enumerate() {
        assert!(
            entries[..at].iter().all(|(earlier, _)| earlier != message),
            "twice: {message}"
        );
    }
}

#[test]
fn a_message_that_nothing_says_is_found() {
    let source = source();
    assert_eq!(
        missing("there is no topic '…' at …: this is not said", &source),
        [": this is not said"]
    );
    assert!(missing("the ledger … is damaged", &source).is_empty());
    assert_eq!(entries("# A\n### `b c`\nd\n## E\nf\n### `g`\nh").len(), 2);
}

/// What a command really says to a few wrong inputs is found in the list by its words.
#[test]
fn what_is_said_can_be_found_in_the_list() {
    let list = fs::read_to_string("config/ERRORS.md").expect("the list");
    let titles: Vec<String> = entries(&list)
        .into_iter()
        .map(|(message, _)| message)
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("not-a-synopsis.arrows");
    fs::write(&file, b"hello").expect("it can be written");
    let file = file.display().to_string();
    let cases: [&[&str]; 5] = [
        &["evaluate", &file],
        &["evaluate", "/no/such/file"],
        &["check", "--offline", "/no/such/file.toml"],
        &["ledger", "show", "config/flights.toml"],
        &["dashboard", "/no/such/folder", "--listen", "127.0.0.1:0"],
    ];
    for arguments in cases {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_bernstream"))
            .args(arguments)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        let fits = |title: &String| {
            title
                .split('…')
                .map(str::trim)
                .all(|part| said.contains(part))
        };
        assert!(
            titles.iter().any(fits),
            "{arguments:?} says what the list does not have: {said}"
        );
    }
}
