//! A TOML text with the place of everything in it, and what is wrong with it.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use crate::text::faults::{ConfigFault, Faults};
use crate::text::known_keys::KnownKeys;
use crate::text::spanned::Spanned;
use crate::text::tree::{path_in, remove, unexpanded};

/// A value that may be missing, with its place.
pub type Field<T> = Option<Spanned<T>>;

/// A value that was read and checked, or the proof that a fault was recorded.
pub type Checked<T> = Result<T, Reported>;

/// Proof that a fault was recorded; only [`Document::fault`] makes one.
#[derive(Clone, Copy, Debug)]
pub struct Reported(());

/// A text, the positions of its keys and values, and the faults found so far.
///
/// Faults recorded in a clone are not reported: use one to try something.
#[derive(Clone)]
pub struct Document<'t> {
    name: &'t str,
    text: &'t str,
    keys: KnownKeys,
    root: DeTable<'t>,
    faults: Vec<ConfigFault>,
    /// Paths of nodes that have a fault of their own: neither they nor the table around them are reported again.
    faulty: BTreeSet<String>,
}

impl<'t> Document<'t> {
    /// Reads the file as written, as far as it can be read, and records every unknown key and wrong type.
    ///
    /// Serde stops at the first error. So the node with the error is recorded and removed, and the rest is read again.
    pub fn read<T: DeserializeOwned>(
        text: &'t str,
        name: &'t str,
        keys: KnownKeys,
    ) -> (Self, Checked<T>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut document = Document {
            name,
            text,
            keys,
            root: root.into_inner(),
            faults: Vec::new(),
            faulty: BTreeSet::new(),
        };
        if !errors.is_empty() {
            let mut reported = Reported(());
            for error in errors {
                let place = error.span().unwrap_or(0..0);
                let hint = toml_hint(error.message(), text, &place);
                reported = document.record(place, String::new(), error.message(), hint);
            }
            return (document, Err(reported));
        }
        let mut rest = document.root.clone();
        for place in unexpanded(&document.root) {
            document.fault(
                place.clone(),
                "has a name that only a shell would replace by its value",
                "write the value itself, or fill it in before the program reads the file, as `envsubst` does",
            );
            remove(&mut rest, &place);
        }
        loop {
            let error = match T::deserialize(toml::de::Deserializer::from(toml::Spanned::new(
                0..0,
                rest.clone(),
            ))) {
                Ok(read) => return (document, Ok(read)),
                Err(error) => error,
            };
            let place = error.span().unwrap_or(0..0);
            let reported = document.misread(place.clone(), error.message());
            if !remove(&mut rest, &place) {
                return (document, Err(reported));
            }
        }
    }

    /// The proof that a fault was recorded, if there is one.
    pub fn reported(&self) -> Option<Reported> {
        (!self.faults.is_empty()).then_some(Reported(()))
    }

    /// The proof that `key` of the table at `place`, or a misspelling of it, has a fault: what depends on it is not known.
    pub fn reported_of(&self, place: &Range<usize>, key: &str) -> Option<Reported> {
        let table = self.path_of(place);
        self.faulty
            .contains(&format!("{table}.{key}"))
            .then_some(Reported(()))
    }

    /// The proof that something within the list or the table at `place` has a fault, and so is missing from what was read of it.
    pub fn reported_within(&self, place: &Range<usize>) -> Option<Reported> {
        let path = self.path_of(place);
        let within = self
            .faulty
            .iter()
            .filter_map(|faulty| faulty.strip_prefix(&path));
        let mut within = within.filter(|rest| rest.starts_with(['[', '.']));
        within.next().map(|_| Reported(()))
    }

    /// Records a fault at `place`.
    pub fn fault(
        &mut self,
        place: Range<usize>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Reported {
        let path = self.path_of(&place);
        self.record(place, path, what, hint)
    }

    /// Records that `key` is missing from the table at `place`, unless it is there and was already found faulty.
    pub fn missing(&mut self, place: Range<usize>, key: &str) -> Reported {
        let table = self.path_of(&place);
        let path = if table.is_empty() {
            key.to_owned()
        } else {
            format!("{table}.{key}")
        };
        if self.faulty.contains(&path) {
            return Reported(());
        }
        let hint = self
            .keys
            .form(&path)
            .map(|form| format!("add `{key}`, {form}"))
            .unwrap_or_default();
        self.record(place, path, "missing", hint)
    }

    /// Records that the table at `place` has several or none of `keys`, unless one of them was already found faulty.
    pub fn not_one_of(&mut self, place: Range<usize>, keys: &[&str], is_several: bool) -> Reported {
        let path = self.path_of(&place);
        if keys
            .iter()
            .any(|key| self.faulty.contains(&format!("{path}.{key}")))
        {
            return Reported(());
        }
        let names: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
        let (what, names) = if is_several {
            ("has both", names.join(" and "))
        } else {
            ("has neither", names.join(" nor "))
        };
        self.record(
            place,
            path,
            format!("{what} {names}"),
            "exactly one of them is needed",
        )
    }

    /// The value of `key` in the table at `table`, parsed by `parse`.
    ///
    /// # Errors
    ///
    /// If the key is missing or `parse` refuses its value; the fault is recorded.
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

    /// The value of a key that may be missing, parsed by `parse`.
    ///
    /// # Errors
    ///
    /// If `parse` refuses the value; the fault is recorded.
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
        parse(field.into_inner())
            .map(|value| Spanned::new(place.clone(), value))
            .map_err(|what| {
                // A list may have become wrong only because faulty elements were taken out.
                if let Some(reported) = self.reported_within(&place) {
                    return reported;
                }
                let form = self
                    .keys
                    .form(&self.path_of(&place))
                    .map(|form| format!("write {form}"))
                    .unwrap_or_default();
                self.fault(place, what, form)
            })
    }

    /// # Errors
    ///
    /// All faults, in the order of the text, if there is at least one.
    pub fn finish<T>(mut self, found: Result<T, Reported>) -> Result<T, Faults> {
        match found {
            Ok(sound) if self.faults.is_empty() => Ok(sound),
            _ => {
                self.faults.sort_by_key(|f| f.place.start);
                Err(Faults {
                    name: self.name.to_owned(),
                    text: self.text.to_owned(),
                    list: self.faults,
                })
            }
        }
    }

    /// Records an error of serde: an unknown key or a wrong type.
    fn misread(&mut self, place: Range<usize>, message: &str) -> Reported {
        let path = self.path_of(&place);
        // A table may have become wrong only because its faulty part was taken out.
        let is_consequence = self
            .faulty
            .iter()
            .any(|f| f.starts_with(&format!("{path}.")));
        if is_consequence {
            self.faulty.insert(path);
            return Reported(());
        }
        // `[[windows]]`: a list of tables where a table belongs.
        let path = path
            .strip_suffix("[0]")
            .filter(|_| self.keys.form(&path).is_none())
            .map(str::to_owned)
            .unwrap_or(path);
        match self.keys.form(&path) {
            Some(form) => {
                let found = self
                    .text
                    .get(place.clone())
                    .unwrap_or_default()
                    .lines()
                    .next()
                    .unwrap_or_default();
                let table = KnownKeys::table_of_word(form, found)
                    .map(|table| format!("that needs a table: {table}"));
                let asked = self.keys.instead_of_word(&path, found).map(str::to_owned);
                let word = || {
                    let meant = KnownKeys::nearest_word(form, found)?;
                    // A word of a list that stands alone.
                    Some(match found.trim_matches('"') == meant {
                        true => format!("a list has brackets: [{found}]"),
                        false => format!("did you mean \"{meant}\"?"),
                    })
                };
                let hint = table
                    .or(asked)
                    .or_else(word)
                    .unwrap_or_else(|| format!("found {found}"));
                self.record(place, path, format!("expected {form}"), hint)
            }
            None if path.is_empty() => self.record(place, path, message, ""),
            None => {
                let hint = self.keys.hint(&path);
                if let Some(meant) = self.keys.meant(&path) {
                    // What is misspelt is not missing as well.
                    let table = path
                        .rfind('.')
                        .and_then(|dot| path.get(..=dot))
                        .unwrap_or_default();
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
        self.faults.push(ConfigFault {
            place,
            path,
            what: what.into(),
            hint: hint.into(),
        });
        Reported(())
    }

    /// The dotted path of the outermost node whose key or value is at `place`.
    fn path_of(&self, place: &Range<usize>) -> String {
        if place.is_empty() {
            String::new()
        } else {
            path_in(&self.root, place).unwrap_or_default()
        }
    }
}

/// What is mostly meant where a text is no TOML.
fn toml_hint(message: &str, text: &str, place: &Range<usize>) -> &'static str {
    let here = text.get(place.clone()).unwrap_or_default();
    let next = text.get(place.start..).and_then(|rest| rest.chars().next());
    if message == "duplicate key" && here == "release" {
        "each of several releases starts with [[release]], the first one too"
    } else if message.starts_with("invalid boolean") {
        "text is written in quotes: key = \"text\""
    } else if message.starts_with("invalid unquoted key") && next == Some(':') {
        "this is TOML: write key = \"value\" instead of key: value, and a table in brackets on a line of its own"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{ConfigFile, known_keys};

    #[test]
    fn every_misread_node_is_found_in_one_pass() {
        let text = "pipeline = 1\ninput.time = 2\n[windows]\nlenght = \"1d\"\n[[release.domain]]\nmin = \"x\"\n";
        let (document, file) = Document::read::<ConfigFile>(text, "f", known_keys());
        assert!(file.is_ok());
        let paths: Vec<_> = document.faults.iter().map(|f| f.path.as_str()).collect();
        let expected = [
            "input.time",
            "pipeline",
            "release.domain[0].min",
            "windows.lenght",
        ];
        assert_eq!(paths, expected);
    }
}
