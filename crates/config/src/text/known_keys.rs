//! The known keys: the form of the value of each, and the nearest one to a misspelt key.

use std::cmp::Reverse;

/// A key and the form of its value; `[]` stands for any element of a list.
pub struct KnownKey {
    /// The names of the tables around it and its own, with dots between.
    pub path: String,
    pub form: String,
}

/// Names that are no keys, although people ask for them, and what to write in their place.
pub struct AskedName {
    /// The table, or the list of words, in which they stand; `None` for any table.
    pub table: Option<&'static str>,
    pub names: &'static [&'static str],
    /// The key of that table that does it.
    pub key: Option<&'static str>,
    pub instead: &'static str,
}

/// All known keys. Hints come from here: the nearest known key for an unknown one, the form for a wrong or missing value.
#[derive(Clone, Copy)]
pub struct KnownKeys {
    pub keys: &'static [KnownKey],
    pub asked: &'static [AskedName],
}

impl KnownKeys {
    /// The form of the value at `path`, where that is a known key.
    pub fn form(self, path: &str) -> Option<&'static str> {
        let path = generic(path);
        self.keys
            .iter()
            .find(|key| key.path == path)
            .map(|key| key.form.as_str())
    }

    /// The keys that are known in `table`.
    fn known(self, table: &str) -> impl Iterator<Item = &'static str> {
        self.keys.iter().filter_map(move |key| {
            let (parent, key) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
            (parent == table && !key.ends_with("[]")).then_some(key)
        })
    }

    fn asked(self, path: &str) -> Option<&'static AskedName> {
        let path = generic(path);
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        self.asked
            .iter()
            .find(|asked| asked.table.is_none_or(|of| of == table) && asked.names.contains(&name))
    }

    /// Words on what to write in place of `written`, a word in quotes in the list at `path`.
    pub fn instead_of_word(self, path: &str, written: &str) -> Option<&'static str> {
        let word = written.strip_prefix('"')?.split('"').next()?;
        let path = generic(path);
        let list = path.strip_suffix("[]")?;
        let asked = self
            .asked
            .iter()
            .find(|asked| asked.table == Some(list) && asked.names.contains(&word))?;
        Some(asked.instead)
    }

    /// The known key beside `path` that is meant by it.
    pub fn meant(self, path: &str) -> Option<&'static str> {
        self.asked(path)
            .map_or_else(|| self.nearest(path), |asked| asked.key)
    }

    /// The known key beside `path` that it may be a misspelling of.
    fn nearest(self, path: &str) -> Option<&'static str> {
        let path = generic(path);
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        let nearest = self
            .known(table)
            .map(|key| (distance(key, name), key))
            .min();
        nearest
            .filter(|(distance, key)| is_near(*distance, key))
            .map(|(_, key)| key)
    }

    /// The word that `form` allows and that `written`, a text in quotes, may be a misspelling of.
    pub fn nearest_word(form: &str, written: &str) -> Option<String> {
        let written = written.strip_prefix('"')?.split('"').next()?;
        let nearest = words(form)
            .into_iter()
            .map(|word| (distance(word, written), word))
            .min();
        nearest
            .filter(|(distance, word)| is_near(*distance, word))
            .map(|(_, word)| word.to_owned())
    }

    /// The table with which `form` writes `written`, a word in quotes.
    pub fn table_of_word(form: &'static str, written: &str) -> Option<&'static str> {
        let word = written.strip_prefix('"')?.split('"').next()?;
        let (_, table) = form.split_at(form.find(&format!("{{ {word} = "))?);
        let mut depth = 0_i32;
        let end = table.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        })?;
        table.get(..=end)
    }

    /// A hint for an unknown key: what to write for what is asked for; else the nearest known key in the same table; else the table that
    /// has a key of that name; else the known keys of the table.
    pub fn hint(self, path: &str) -> String {
        if let Some(asked) = self.asked(path) {
            return asked.instead.to_owned();
        }
        if let Some(key) = self.nearest(path) {
            return format!("did you mean `{key}`?");
        }
        let path = generic(path);
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        // The table that shares most of the path is meant, and of equals the one that is least deep.
        let elsewhere = self
            .keys
            .iter()
            .filter_map(|key| key.path.rsplit_once('.'))
            .filter(|(_, key)| *key == name);
        if let Some((table, _)) = elsewhere.max_by_key(|(other, _)| table_nearness(table, other)) {
            return format!("`{name}` belongs to [{table}]");
        }
        let known: Vec<_> = self.known(table).map(|key| format!("`{key}`")).collect();
        format!("known here: {}", known.join(", "))
    }
}

/// Whether so many changes may be a misspelling of a word.
fn is_near(distance: usize, word: &str) -> bool {
    distance <= word.len() / 3 + 1
}

/// The words that a form allows: those in quotes, but for its examples and for what is in a table or a list.
fn words(form: &str) -> Vec<&str> {
    let parts: Vec<&str> = form.split('"').collect();
    let mut depth = 0_i32;
    let mut word = |part: &[&'_ str]| {
        let [before, word, ..] = part else {
            return false;
        };
        depth += before
            .chars()
            .map(|c| i32::from("{[".contains(c)) - i32::from("}]".contains(c)))
            .sum::<i32>();
        depth == 0 && !before.ends_with("such as ") && !word.is_empty()
    };
    parts
        .chunks(2)
        .filter(|part| word(part))
        .filter_map(|part| part.get(1).copied())
        .collect()
}

/// `path` with `[]` for every index; a release of several has the same keys as a single one.
fn generic(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    let path = parts.fold(first, |path, part| {
        path + "[]" + part.split_once(']').map_or("", |(_, rest)| rest)
    });
    match path.strip_prefix("release[]") {
        Some(rest) => format!("release{rest}"),
        None => path,
    }
}

/// How many insertions, deletions and substitutions lie between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        let mut left = i + 1;
        for (y, pair) in b.iter().zip(row.windows(2)) {
            let diagonal = pair.first().copied().unwrap_or(0);
            let above = pair.last().copied().unwrap_or(0);
            left = (diagonal + usize::from(x != *y))
                .min(above + 1)
                .min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// Bytes that the paths of two tables begin with alike; of equals the path of fewer names is nearer.
fn table_nearness(path: &str, other: &str) -> (usize, Reverse<usize>) {
    let alike = other.bytes().zip(path.bytes()).take_while(|(a, b)| a == b);
    (alike.count(), Reverse(other.split('.').count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_wrong_table_is_sent_to_one_near_by() {
        let keys = [
            "privacy.unit",
            "release.domain[].unit",
            "release.label.column",
            "input.key",
            "output.kafka.tls.key",
        ]
        .map(|path| KnownKey {
            path: path.to_owned(),
            form: String::new(),
        });
        let keys = KnownKeys {
            keys: Vec::from(keys).leak(),
            asked: &[],
        };
        assert_eq!(
            keys.hint("release[1].label.unit"),
            "`unit` belongs to [release.domain[]]"
        );
        assert_eq!(
            keys.hint("privacy.column"),
            "`column` belongs to [release.label]"
        );
        assert_eq!(keys.hint("release.key"), "`key` belongs to [input]");
    }

    #[test]
    fn the_distance_of_words_is_levenshteins() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("degre", "degree", 1),
        ] {
            assert_eq!(
                (distance(a, b), distance(b, a)),
                (expected, expected),
                "{a} {b}"
            );
        }
    }

    #[test]
    fn a_misspelt_word_is_told_by_the_words_that_are_allowed_and_not_by_examples() {
        let kinds = r#""laplace", "cells", "gaussian", "gaussian_cells" or "auto": the noise"#;
        assert_eq!(
            words(kinds),
            ["laplace", "cells", "gaussian", "gaussian_cells", "auto"]
        );
        assert_eq!(
            words(r#""tumbling", { hopping = "24h" } or "all""#),
            ["tumbling", "all"]
        );
        assert_eq!(words(r#"a duration such as "1d", or "ever""#), ["ever"]);
        assert_eq!(
            words(r#"a list such as ["EWR", "JFK"]"#),
            Vec::<&str>::new()
        );
        let nearest = |written| KnownKeys::nearest_word(kinds, written);
        assert_eq!(nearest(r#""celsl""#).as_deref(), Some("cells"));
        assert_eq!(
            nearest(r#""gausian"  # by hand"#).as_deref(),
            Some("gaussian")
        );
        assert_eq!(
            [nearest("3"), nearest(r#""uniform""#), nearest("cells")],
            [None, None, None]
        );
    }

    #[test]
    fn the_number_of_an_element_is_no_part_of_a_known_key() {
        assert_eq!(generic("release.domain[12].min"), "release.domain[].min");
        assert_eq!(generic("a[0][1].b"), "a[][].b");
        assert_eq!(generic("release[1].domain[12].min"), "release.domain[].min");
    }
}
