//! `input.key.values_file`: a text file with one key a line, of several columns a CSV file.

use std::collections::{HashMap, HashSet};
use std::fs;

use bernstream_kafka::source::record::split_line;
use bernstream_synopsis::key_parts::join_parts;

/// The most keys of a pipeline: a row of the ledger has a digest for each of them, and so many were tried.
pub const MOST_KEYS: usize = 100_000;
const QUOTES: [char; 2] = ['"', '\''];
/// The most faults of one file that are told.
const TOLD: usize = 5;

/// The keys of the file `path`, in the order of its lines.
///
/// A line is a key as it stands: no quotes, no comments. The last one may end without a line break, and lines may end as on
/// Windows. `is_possible` tells whether a record can have a key; `header` is the name of their column, which stands above them where the
/// file was written as a table.
///
/// # Errors
///
/// Every fault of the file, with its line.
pub fn read_key_file(
    path: &str,
    header: &str,
    is_possible: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Vec<String>> {
    keys_of_lines(path, &read_text(path)?, header, is_possible)
}

/// The keys of several columns in the file `path`, in the order of its lines: CSV (RFC 4180) with a field for each part.
///
/// A first line that is just the names of the columns, in their order, is a header and no key. `is_possible` tells whether a record can have a
/// part, by its place.
///
/// # Errors
///
/// Every fault of the file, with its line.
pub fn read_part_file(
    path: &str,
    columns: &[String],
    is_possible: impl Fn(usize, &str) -> bool,
) -> Result<Vec<String>, Vec<String>> {
    keys_of_table(path, &read_text(path)?, columns, is_possible)
}

fn read_text(path: &str) -> Result<String, Vec<String>> {
    let bytes = fs::read(path).map_err(|error| vec![format!("{path}: cannot be read: {error}")])?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        vec![format!("{path}:{line}: is not UTF-8")]
    })
}

fn keys_of_lines(
    path: &str,
    text: &str,
    header: &str,
    is_possible: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Vec<String>> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut keys = Vec::new();
    let mut faults = Vec::new();
    for (line, key) in (1..).zip(text.lines()) {
        let fault = match first.get(key) {
            _ if key.is_empty() => Some("is empty, and a key must not be".to_owned()),
            _ if key.starts_with('\u{feff}') => {
                Some("begins with a byte order mark: save the file without".to_owned())
            }
            _ if key.trim() != key => {
                Some("has white space around the key, which would be part of it".to_owned())
            }
            _ if line == 1 && key == header => {
                Some("is the name of the column, not a key".to_owned())
            }
            _ if key.len() > 1 && key.starts_with(QUOTES) && key.ends_with(QUOTES) => {
                Some("has quotes around the key, which would be part of it".to_owned())
            }
            _ if key.contains(',') => Some("has a comma, and a line is one key".to_owned()),
            Some(line) => Some(format!("has the key of line {line}")),
            None if !is_possible(key) => {
                Some("no integer is written like this, so no record can have this key".to_owned())
            }
            None => None,
        };
        first.entry(key).or_insert(line);
        match fault {
            Some(fault) => faults.push(format!("{path}:{line}: {fault}")),
            None => keys.push(key.to_owned()),
        }
    }
    keys_or_faults(path, keys, faults)
}

fn keys_of_table(
    path: &str,
    text: &str,
    columns: &[String],
    is_possible: impl Fn(usize, &str) -> bool,
) -> Result<Vec<String>, Vec<String>> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut keys = Vec::new();
    let mut faults = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        let parts = match split_line(written.as_bytes()) {
            Ok(parts) if line == 1 && parts == columns => continue,
            Ok(parts) => parts,
            Err(why) => {
                faults.push(format!("{path}:{line}: cannot be read: {why}"));
                continue;
            }
        };
        if let Some(fault) = fault_of_parts(line, &parts, columns, &is_possible) {
            faults.push(format!("{path}:{line}: {fault}"));
            continue;
        }
        let key = join_parts(&parts);
        match first.get(&key) {
            Some(line_before) => {
                faults.push(format!("{path}:{line}: has the key of line {line_before}"));
            }
            None => {
                first.insert(key.clone(), line);
                keys.push(key);
            }
        }
    }
    keys_or_faults(path, keys, faults)
}

/// Fault of the parts of a line; `None` if a record can have such a key.
fn fault_of_parts(
    line: usize,
    parts: &[String],
    columns: &[String],
    is_possible: impl Fn(usize, &str) -> bool,
) -> Option<String> {
    let names: HashSet<&String> = columns.iter().collect();
    if line == 1 && names == parts.iter().collect() {
        return Some(format!(
            "has the names of the columns in another order than {}",
            columns.join(",")
        ));
    }
    if parts
        .first()
        .is_some_and(|part| part.starts_with('\u{feff}'))
    {
        return Some("begins with a byte order mark: save the file without".to_owned());
    }
    if parts.len() != columns.len() {
        let found = parts.len();
        let wanted = columns.len();
        return Some(format!(
            "has {found} of {wanted} parts: {} are expected",
            columns.join(",")
        ));
    }
    for (place, part) in parts.iter().enumerate() {
        if part.is_empty() {
            return Some("has an empty part, and a part must not be empty".to_owned());
        }
        if part.trim() != part {
            return Some("has white space around a part, which would be part of it".to_owned());
        }
        if !is_possible(place, part) {
            return Some(format!(
                "no integer is written as {part:?}, so no record can have this key"
            ));
        }
    }
    None
}

/// The keys, if there are not too many of them and no line is wrong.
fn keys_or_faults(
    path: &str,
    keys: Vec<String>,
    mut faults: Vec<String>,
) -> Result<Vec<String>, Vec<String>> {
    if faults.len() > TOLD {
        let more = faults.len() - TOLD;
        faults.truncate(TOLD);
        faults.push(format!("{path}: {more} further lines are wrong"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    match keys.len() {
        0 => Err(vec![format!("{path}: has no key")]),
        1..=MOST_KEYS => Ok(keys),
        count => Err(vec![format!(
            "{path}: has {count} keys, more than {MOST_KEYS}"
        )]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_key() {
        for text in [
            "EWR\nJFK\nNew York\n",
            "EWR\r\nJFK\r\nNew York\r\n",
            "EWR\nJFK\nNew York",
        ] {
            assert_eq!(
                keys_of_lines("k", text, "code", |_| true).unwrap(),
                ["EWR", "JFK", "New York"],
                "{text:?}"
            );
        }
        assert_eq!(
            keys_of_lines("k", "#\na\"b\"\n", "code", |_| true).unwrap(),
            ["#", "a\"b\""]
        );
    }

    #[test]
    fn every_fault_has_its_line() {
        let faults = |text: &str| keys_of_lines("k", text, "code", |key| key != "07").unwrap_err();
        assert_eq!(
            faults("a\n\n b\na\n"),
            [
                "k:2: is empty, and a key must not be",
                "k:3: has white space around the key, which would be part of it",
                "k:4: has the key of line 1"
            ]
        );
        assert_eq!(
            faults("\u{feff}a\n"),
            ["k:1: begins with a byte order mark: save the file without"]
        );
        assert_eq!(
            faults("7\n07\n"),
            ["k:2: no integer is written like this, so no record can have this key"]
        );
        assert_eq!(
            faults("code\n\"a\"\na,b\ncode\n"),
            [
                "k:1: is the name of the column, not a key",
                "k:2: has quotes around the key, which would be part of it",
                "k:3: has a comma, and a line is one key",
                "k:4: has the key of line 1"
            ]
        );
        assert_eq!(faults(""), ["k: has no key"]);
        let many = faults(&"a\n".repeat(100));
        assert_eq!(
            (many.len(), many[5].as_str()),
            (6, "k: 94 further lines are wrong")
        );
        let numbers = |count: usize| (0..count).map(|key| format!("{key}\n")).collect::<String>();
        assert_eq!(
            keys_of_lines("k", &numbers(MOST_KEYS), "code", |_| true)
                .unwrap()
                .len(),
            MOST_KEYS
        );
        assert_eq!(
            faults(&numbers(MOST_KEYS + 1)),
            ["k: has 100001 keys, more than 100000"]
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys").display().to_string();
        assert!(
            read_key_file(&path, "code", |_| true).unwrap_err()[0]
                .starts_with(&format!("{path}: cannot be read: "))
        );
        fs::write(&path, b"a\nb\xff\n").unwrap();
        assert_eq!(
            read_key_file(&path, "code", |_| true).unwrap_err(),
            [format!("{path}:2: is not UTF-8")]
        );
        fs::write(&path, b"a\nb\n").unwrap();
        assert_eq!(read_key_file(&path, "code", |_| true).unwrap(), ["a", "b"]);
    }
}
