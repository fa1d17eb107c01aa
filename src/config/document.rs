//! A TOML text with the place of everything in it, and what is wrong with it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::config::file::{Field, File};
use crate::config::keys::KEYS;

/// One fault: where, what and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text; empty where nothing can be pointed at.
    place: Range<usize>,
    /// The dotted path, empty for what is not TOML at all.
    path: String,
    what: String,
    hint: String,
}

/// Everything that is wrong with a configuration, in the order of the file.
///
/// Shown the way a compiler shows it: `file:line:column: path: what`, the line underlined, a hint.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Faults {
    name: String,
    text: String,
    list: Vec<Fault>,
}

/// Proof that a fault was recorded; only [`Document::fault`] makes one.
#[derive(Clone, Copy, Debug)]
pub struct Reported(());

/// A text, where its keys and values are, and the faults found so far.
///
/// A clone is for trying: what is found wrong in it is not told.
#[derive(Clone)]
pub struct Document<'t> {
    name: &'t str,
    text: &'t str,
    root: DeTable<'t>,
    faults: Vec<Fault>,
    /// Paths of nodes with a fault of their own: not missing, and no fault of the table around them.
    faulty: BTreeSet<String>,
}

impl<'t> Document<'t> {
    /// Reads the file as written, as far as it can be read, and records every unknown key and wrong type.
    ///
    /// Serde stops at the first fault. So its node is recorded, taken out, and the rest is read again.
    pub fn read(text: &'t str, name: &'t str) -> (Self, Result<File, Reported>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut document =
            Document { name, text, root: root.into_inner(), faults: Vec::new(), faulty: BTreeSet::new() };
        if !errors.is_empty() {
            let mut reported = Reported(());
            for error in errors {
                let place = error.span().unwrap_or(0..0);
                let is_second = error.message() == "duplicate key" && text.get(place.clone()) == Some("release");
                let hint =
                    if is_second { "several releases are each headed [[release]], the first one too" } else { "" };
                reported = document.record(place, String::new(), error.message(), hint);
            }
            return (document, Err(reported));
        }
        let mut rest = document.root.clone();
        loop {
            let error = match File::deserialize(toml::de::Deserializer::from(Spanned::new(0..0, rest.clone()))) {
                Ok(file) => return (document, Ok(file)),
                Err(error) => error,
            };
            let place = error.span().unwrap_or(0..0);
            let reported = document.misread(place.clone(), error.message());
            if !remove(&mut rest, &place) {
                return (document, Err(reported));
            }
        }
    }

    /// The proof that there is a fault, if there is one.
    pub fn reported(&self) -> Option<Reported> {
        (!self.faults.is_empty()).then_some(Reported(()))
    }

    /// Records a fault at `place`.
    pub fn fault(&mut self, place: Range<usize>, what: impl Into<String>, hint: impl Into<String>) -> Reported {
        let path = self.path_of(&place);
        self.record(place, path, what, hint)
    }

    /// Records that `key` is missing from the table at `place`, unless it is there and was already found faulty.
    pub fn missing(&mut self, place: Range<usize>, key: &str) -> Reported {
        let table = self.path_of(&place);
        let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
        if self.faulty.contains(&path) {
            return Reported(());
        }
        let hint = form(&path).map(|form| format!("add `{key}`, {form}")).unwrap_or_default();
        self.record(place, path, "missing", hint)
    }

    /// Records that the table at `place` has several or none of `keys`, unless one of them was already found faulty.
    pub fn not_one_of(&mut self, place: Range<usize>, keys: &[&str], is_several: bool) -> Reported {
        let path = self.path_of(&place);
        if keys.iter().any(|key| self.faulty.contains(&format!("{path}.{key}"))) {
            return Reported(());
        }
        let names: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
        let (what, names) =
            if is_several { ("has both", names.join(" and ")) } else { ("has neither", names.join(" nor ")) };
        self.record(place, path, format!("{what} {names}"), "exactly one of them is needed")
    }

    /// The value of `key` in the table at `table`, as `parse` makes it.
    pub fn required<T, U>(
        &mut self,
        table: &Range<usize>,
        key: &str,
        field: Field<T>,
        parse: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<Spanned<U>, Reported> {
        match field {
            Some(field) => self.parsed(field, parse),
            None => Err(self.missing(table.clone(), key)),
        }
    }

    /// The value of a key that may be missing, as `parse` makes it.
    pub fn optional<T, U>(
        &mut self,
        field: Field<T>,
        parse: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<Option<Spanned<U>>, Reported> {
        field.map(|field| self.parsed(field, parse)).transpose()
    }

    fn parsed<T, U>(
        &mut self,
        field: Spanned<T>,
        parse: impl FnOnce(T) -> Result<U, String>,
    ) -> Result<Spanned<U>, Reported> {
        let place = field.span();
        parse(field.into_inner()).map(|value| Spanned::new(place.clone(), value)).map_err(|what| {
            let form = form(&self.path_of(&place)).map(|form| format!("write {form}")).unwrap_or_default();
            self.fault(place, what, form)
        })
    }

    /// `Ok` where nothing was found wrong.
    pub fn finish<T>(mut self, found: Result<T, Reported>) -> Result<T, Faults> {
        match found {
            Ok(sound) if self.faults.is_empty() => Ok(sound),
            _ => {
                self.faults.sort_by_key(|f| f.place.start);
                Err(Faults { name: self.name.to_owned(), text: self.text.to_owned(), list: self.faults })
            }
        }
    }

    /// A fault that serde found: an unknown key or a wrong form.
    fn misread(&mut self, place: Range<usize>, message: &str) -> Reported {
        let path = self.path_of(&place);
        // A table may have become wrong only because its faulty part was taken out.
        let is_consequence = self.faulty.iter().any(|f| f.starts_with(&format!("{path}.")));
        if is_consequence {
            self.faulty.insert(path);
            return Reported(());
        }
        // `[[windows]]`: a list of tables where a table belongs.
        let path = path.strip_suffix("[0]").filter(|_| form(&path).is_none()).map(str::to_owned).unwrap_or(path);
        match form(&path) {
            Some(form) => {
                let found = self.text.get(place.clone()).unwrap_or_default().lines().next().unwrap_or_default();
                self.record(place, path, format!("expected {form}"), format!("found {found}"))
            }
            None if path.is_empty() => self.record(place, path, message, ""),
            None => {
                let hint = hint_for_unknown(&path);
                if let Some(meant) = nearest(&path) {
                    // What is misspelt is not missing as well.
                    let table = path.rfind('.').and_then(|dot| path.get(..=dot)).unwrap_or_default();
                    self.faulty.insert(format!("{table}{meant}"));
                }
                self.record(place, path, "unknown key", hint)
            }
        }
    }

    fn record(
        &mut self,
        place: Range<usize>,
        path: String,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Reported {
        self.faulty.insert(path.clone());
        self.faults.push(Fault { place, path, what: what.into(), hint: hint.into() });
        Reported(())
    }

    /// The dotted path of the outermost node whose key or value is at `place`.
    fn path_of(&self, place: &Range<usize>) -> String {
        if place.is_empty() { String::new() } else { path_in(&self.root, place).unwrap_or_default() }
    }
}

fn path_in(table: &DeTable<'_>, place: &Range<usize>) -> Option<String> {
    if let Some((key, value)) = table.iter().find(|(key, value)| key.span() == *place || value.span() == *place) {
        // `[[list]]`: the list is at the place of its first element, and the element is what is meant.
        let first = value.get_ref().as_array().and_then(|list| list.first());
        let is_element = key.span() != *place && first.is_some_and(|element| element.span() == *place);
        return Some(format!("{}{}", key.get_ref(), if is_element { "[0]" } else { "" }));
    }
    table.iter().find_map(|(key, value)| path_below(key.get_ref(), value.get_ref(), place))
}

fn path_below(path: &str, value: &DeValue<'_>, place: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => path_in(table, place).map(|below| format!("{path}.{below}")),
        DeValue::Array(list) => list.iter().enumerate().find_map(|(i, element)| {
            let path = format!("{path}[{i}]");
            if element.span() == *place { Some(path) } else { path_below(&path, element.get_ref(), place) }
        }),
        _ => None,
    }
}

/// Takes out the outermost node whose key or value is at `place`; `false` where there is none.
fn remove(table: &mut DeTable<'_>, place: &Range<usize>) -> bool {
    let found = table.iter().find(|(key, value)| key.span() == *place || value.span() == *place);
    match found.map(|(key, _)| key.get_ref().to_string()) {
        Some(key) => table.remove(key.as_str()).is_some(),
        None => table.iter_mut().any(|(_, value)| remove_below(value.get_mut(), place)),
    }
}

fn remove_below(value: &mut DeValue<'_>, place: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove(table, place),
        DeValue::Array(list) => {
            let count = list.len();
            let elements = std::mem::replace(list, DeArray::new());
            *list = elements.into_iter().filter(|element| element.span() != *place).collect();
            list.len() < count || list.iter_mut().any(|element| remove_below(element.get_mut(), place))
        }
        _ => false,
    }
}

/// `path` with `[]` for every `[3]`; one release of several has the keys of the only one.
fn generic(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    let path = parts.fold(first, |path, part| path + "[]" + part.split_once(']').map_or("", |(_, rest)| rest));
    match path.strip_prefix("release[]") {
        Some(rest) => format!("release{rest}"),
        None => path,
    }
}

/// The form of the value at `path`, where that is a known key.
fn form(path: &str) -> Option<&'static str> {
    let path = generic(path);
    KEYS.iter().find(|(key, _)| *key == path).map(|(_, form)| *form)
}

/// The keys that are known in `table`.
fn known(table: &str) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |(key, _)| {
        let (parent, key) = key.rsplit_once('.').unwrap_or(("", key));
        (parent == table && !key.ends_with("[]")).then_some(key)
    })
}

/// The known key beside `path` that it may be a misspelling of.
fn nearest(path: &str) -> Option<&'static str> {
    let path = generic(path);
    let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let nearest = known(table).map(|key| (distance(key, name), key)).min();
    nearest.filter(|(distance, key)| *distance <= key.len() / 3 + 1).map(|(_, key)| key)
}

/// The nearest known key beside `path`; else where a key of that name belongs; else what is known there.
fn hint_for_unknown(path: &str) -> String {
    if let Some(key) = nearest(path) {
        return format!("did you mean `{key}`?");
    }
    let path = generic(path);
    let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let elsewhere = KEYS.iter().find_map(|(key, _)| key.rsplit_once('.').filter(|(_, key)| *key == name));
    if let Some((table, _)) = elsewhere {
        return format!("`{name}` belongs to [{table}]");
    }
    let known: Vec<_> = known(table).map(|key| format!("`{key}`")).collect();
    format!("known here: {}", known.join(", "))
}

/// How many insertions, deletions and substitutions lie between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for (y, pair) in b.iter().zip(row.windows(2)) {
            let (diagonal, above) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            left = (diagonal + usize::from(x != *y)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

impl Faults {
    /// A configuration that could not be read at all.
    pub(super) fn unreadable(name: &str, error: &std::io::Error) -> Self {
        let what = format!("cannot be read: {error}");
        let fault = Fault { place: 0..0, path: String::new(), what, hint: String::new() };
        Faults { name: name.to_owned(), text: String::new(), list: vec![fault] }
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.list.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", fault.shown_in(&self.name, &self.text))?;
        }
        Ok(())
    }
}

impl Fault {
    fn shown_in(&self, name: &str, text: &str) -> String {
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let hint = if self.hint.is_empty() { String::new() } else { format!("  = {}\n", self.hint) };
        let before = text.get(..self.place.start).unwrap_or_default();
        if self.place.is_empty() && before.is_empty() {
            return format!("{name}: {path}{}\n{hint}", self.what);
        }
        let number = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let underlined = text.get(self.place.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        let marks = "^".repeat(underlined.chars().count().max(1));
        let gutter = " ".repeat(number.to_string().len());
        let indent = " ".repeat(column - 1);
        format!(
            "{name}:{number}:{column}: {path}{}\n{gutter} |\n{number} | {line}\n{gutter} | {indent}{marks}\n{hint}",
            self.what
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_words_is_levenshteins() {
        for (a, b, expected) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("degre", "degree", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn the_number_of_an_element_is_no_part_of_a_known_key() {
        assert_eq!(generic("release.domain[12].min"), "release.domain[].min");
        assert_eq!(generic("a[0][1].b"), "a[][].b");
        assert_eq!(generic("release[1].domain[12].min"), "release.domain[].min");
    }

    #[test]
    fn every_misread_node_is_found_in_one_pass() {
        let text = "pipeline = 1\ninput.time = 2\n[windows]\nlenght = \"1d\"\n[[release.domain]]\nmin = \"x\"\n";
        let (document, file) = Document::read(text, "f");
        assert!(file.is_ok());
        let paths: Vec<_> = document.faults.iter().map(|f| f.path.as_str()).collect();
        let expected = ["input.time", "pipeline", "release.domain[0].min", "windows.lenght"];
        assert_eq!(paths, expected);
    }
}
