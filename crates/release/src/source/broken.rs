//! Reasons why a message or file cannot be decoded.

use bernstream_synopsis::terminal_text::escape_unprintable;

/// Reason why a message or file cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl DecodeError {
    pub fn new(why: impl std::fmt::Display) -> Self {
        DecodeError(escape_unprintable(&cut_text(&why.to_string(), LONGEST)))
    }
}

/// Longest part of a reason that is repeated, in characters: a producer can put anything into the names and types of a message.
const LONGEST: usize = 600;
/// Longest part of one name, and most names that are listed.
const LONGEST_NAME: usize = 40;
const MOST_NAMES: usize = 6;

/// The first characters of a text.
fn cut_text(text: &str, longest: usize) -> String {
    let mut rest = text.chars();
    let shown: String = rest.by_ref().take(longest).collect();
    match rest.count() {
        0 => shown,
        left => format!("{shown}... and {left} more characters"),
    }
}

/// The first of some names.
pub fn first_names<'n>(all: impl ExactSizeIterator<Item = &'n str>) -> String {
    let left = all.len().saturating_sub(MOST_NAMES);
    let mut shown: Vec<String> = all
        .take(MOST_NAMES)
        .map(|name| cut_text(name, LONGEST_NAME))
        .collect();
    if left > 0 {
        shown.push(format!("and {left} more"));
    }
    shown.join(", ")
}

pub fn truncated_input(what: &str) -> DecodeError {
    DecodeError(format!("it ends within {what}"))
}

pub(crate) fn arrow_error(error: impl std::fmt::Display) -> DecodeError {
    DecodeError::new(format_args!("the Arrow reader rejects it: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_producer_wrote_is_bounded_and_escaped() {
        let broken = DecodeError::new(format_args!(
            "it has two columns '{}'",
            "\u{1b}[31m\n\u{202e}x".repeat(100_000)
        ));
        let shown = broken.to_string();
        assert!(
            shown.starts_with(r"it has two columns '\u{1b}[31m\n\u{202e}x\u{1b}"),
            "{shown}"
        );
        assert!(
            shown.ends_with("more characters") && shown.len() < 10 * LONGEST,
            "{shown}"
        );
        assert!(!shown.chars().any(char::is_control));
        assert_eq!(
            DecodeError::new("a column is Utf8, but 'x'").to_string(),
            "a column is Utf8, but 'x'"
        );
    }

    #[test]
    fn of_many_names_a_few_are_listed() {
        let many: Vec<String> = (0..5000).map(|n| format!("c{n}")).collect();
        assert_eq!(
            first_names(many.iter().map(String::as_str)),
            "c0, c1, c2, c3, c4, c5, and 4994 more"
        );
        assert_eq!(first_names(["a", "b"].into_iter()), "a, b");
        assert!(
            first_names([&*"n".repeat(1000)].into_iter()).ends_with("n... and 960 more characters")
        );
    }
}
