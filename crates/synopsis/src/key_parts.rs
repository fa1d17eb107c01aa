//! Keys of several columns as one text: the parts with `/` between them, and `%25` and `%2F` for `%` and `/` within a part.
//!
//! Two keys of equally many parts never have the same text, whatever their parts are: a part has no `/` once it is written so, and
//! no two parts are written alike. So names, ranks and files of keys are those of one text. A key of one column is its text as it stands.

use std::borrow::Cow;

/// Most columns of a key.
pub const MOST_PARTS: usize = 3;
/// Names of columns that a table by key has of its own.
const OWN_COLUMNS: [&str; 18] = [
    "window_start",
    "window_end",
    "key",
    "sequence",
    "users",
    "records",
    "low",
    "middle",
    "high",
    "sum",
    "mean",
    "variance",
    "deviation",
    "values",
    "keys",
    "parts",
    "lattice_values",
    "is_last_unclear",
];
/// Names of columns that a table of keys that nobody listed has beside those.
const FOUND_COLUMNS: [&str; 3] = ["new", "until", "threshold"];

const SEPARATOR: u8 = b'/';
const ESCAPE: u8 = b'%';

/// Returns whether a column of a key can stand in a table by key, beside the columns that it has of its own, such as `users`, `p50` and
/// `range_0_4`, and the ends of their intervals, such as `users_lower`.
pub fn is_part_name(column: &str) -> bool {
    let own = column
        .strip_suffix("_lower")
        .or_else(|| column.strip_suffix("_upper"));
    let own = own.unwrap_or(column);
    let is_quantile = own
        .strip_prefix('p')
        .is_some_and(|part| part.starts_with(|letter: char| letter.is_ascii_digit()));
    let is_own = OWN_COLUMNS.contains(&own) || own.starts_with("range_") || is_quantile;
    !column.is_empty() && !is_own
}

/// Returns whether a column of a key can stand in a table of keys that nobody listed, which has more columns of its own.
pub fn is_found_part_name(column: &str) -> bool {
    is_part_name(column) && !FOUND_COLUMNS.contains(&column)
}

/// The text of a key with these parts.
pub fn join_parts<P: AsRef<str>>(parts: &[P]) -> String {
    let mut joined = String::new();
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            joined.push('/');
        }
        for letter in part.as_ref().chars() {
            match letter {
                '%' => joined.push_str("%25"),
                '/' => joined.push_str("%2F"),
                letter => joined.push(letter),
            }
        }
    }
    joined
}

/// Appends a part, of any bytes, to those before it, as [`join_parts`] does; `is_first` if there are none.
pub fn append_part(joined: &mut Vec<u8>, part: &[u8], is_first: bool) {
    if !is_first {
        joined.push(SEPARATOR);
    }
    for byte in part {
        match *byte {
            ESCAPE => joined.extend_from_slice(b"%25"),
            SEPARATOR => joined.extend_from_slice(b"%2F"),
            byte => joined.push(byte),
        }
    }
}

/// The parts of a key of so many columns; `None` where [`join_parts`] does not write any key so.
pub fn split_key(key: &str, columns: usize) -> Option<Vec<Cow<'_, str>>> {
    if columns < 2 {
        return Some(vec![Cow::Borrowed(key)]);
    }
    let mut parts = Vec::with_capacity(columns);
    for part in key.split('/') {
        parts.push(unescaped(part)?);
    }
    (parts.len() == columns).then_some(parts)
}

/// A part as it was before it was joined.
fn unescaped(written: &str) -> Option<Cow<'_, str>> {
    let mut pieces = written.split('%');
    let first = pieces.next()?;
    if first.len() == written.len() {
        return Some(Cow::Borrowed(written));
    }
    let mut part = first.to_owned();
    for piece in pieces {
        let (letter, rest) = match (piece.strip_prefix("25"), piece.strip_prefix("2F")) {
            (Some(rest), _) => ('%', rest),
            (_, Some(rest)) => ('/', rest),
            (None, None) => return None,
        };
        part.push(letter);
        part.push_str(rest);
    }
    Some(Cow::Owned(part))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// All texts of up to so many of these letters.
    fn short_texts(longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..longest {
            let mut longer = Vec::new();
            for text in &last {
                for letter in ['a', '/', '%', '2', '5', 'F'] {
                    longer.push(format!("{text}{letter}"));
                }
            }
            all.extend(longer.iter().cloned());
            last = longer;
        }
        all
    }

    #[test]
    fn different_parts_never_have_one_text() {
        let texts = short_texts(3);
        let mut known = HashMap::new();
        for one in &texts {
            for other in &texts {
                let parts = [one.as_str(), other.as_str()];
                let joined = join_parts(&parts);
                assert_eq!(split_key(&joined, 2).expect("two parts"), parts);
                let mut bytes = Vec::new();
                append_part(&mut bytes, one.as_bytes(), true);
                append_part(&mut bytes, other.as_bytes(), false);
                assert_eq!(bytes, joined.as_bytes());
                let before = known.insert(joined, parts);
                assert_eq!(before, None, "{parts:?}");
            }
        }
        assert_ne!(join_parts(&["a", "bc"]), join_parts(&["ab", "c"]));
        assert_eq!(join_parts(&["DE", "phone"]), "DE/phone");
        assert_eq!(join_parts(&["50%", "a/b"]), "50%25/a%2Fb");
    }

    #[test]
    fn what_is_not_written_so_has_no_parts() {
        for (key, columns) in [
            ("DE", 2),
            ("DE/phone/1", 2),
            ("DE/%2f", 2),
            ("DE/%", 2),
            ("%252/%2", 2),
        ] {
            assert_eq!(split_key(key, columns), None, "{key}");
        }
        assert_eq!(split_key("50%/x", 1).expect("one part"), ["50%/x"]);
        assert_eq!(split_key("/", 2).expect("two parts"), ["", ""]);
        assert!(is_part_name("country") && !is_part_name("users"));
        assert!(!is_part_name("sum_lower") && !is_part_name(""));
        assert!(is_part_name("page") && is_part_name("price_range"));
        assert!(!is_part_name("p50_upper") && !is_part_name("range_0_4"));
        assert!(is_part_name("until") && !is_found_part_name("until"));
        assert!(is_found_part_name("country") && !is_found_part_name("users"));
    }
}
