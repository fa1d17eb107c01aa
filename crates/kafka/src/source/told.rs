//! Messages about the input: in part for everyone, and in full for whoever may see the records.
//!
//! An offset says how many messages there are, and a number in the reason why one cannot be read how long it is. So both follow from
//! records: what everyone may read names topic and partition, and says how to see the rest.

use std::fmt;

/// Advice on how to see the numbers that are left out.
pub const HOW: &str = "detail = \"operator\" in [serve] has the log say where";

/// The words for everyone, which are those that it is displayed with, and all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedReason {
    words: String,
    in_full: String,
}

impl RedactedReason {
    pub fn new(words: impl Into<String>, in_full: impl Into<String>) -> Self {
        RedactedReason {
            words: words.into(),
            in_full: in_full.into(),
        }
    }

    /// For operators only.
    pub fn in_full(&self) -> &str {
        &self.in_full
    }

    /// Words for the log, which may be for operators.
    pub fn shown(&self, is_for_operators: bool) -> &str {
        if is_for_operators {
            &self.in_full
        } else {
            &self.words
        }
    }
}

impl fmt::Display for RedactedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// Words in which no number follows from records.
impl From<String> for RedactedReason {
    fn from(words: String) -> Self {
        RedactedReason {
            in_full: words.clone(),
            words,
        }
    }
}

/// A reason without its numbers. Those that belong to a name, such as `Float64`, stay.
pub fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(from);
        let to = number
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(number.len());
        let (digits, after) = number.split_at(to);
        shown.push_str(before);
        let is_of_name = shown
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        shown.push_str(if is_of_name { digits } else { "…" });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_left_out_and_names_are_not() {
        for (text, shown) in [
            ("it ends within 178 bytes", "it ends within … bytes"),
            (
                "Float64 is not Int64, utf8_9 is",
                "Float64 is not Int64, utf8_9 is",
            ),
            ("17 of 4.5", "… of ….…"),
            ("row 5", "row …"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(text), shown);
        }
    }

    #[test]
    fn only_operators_are_told_everything() {
        let told = RedactedReason::new("partition 0", "offset 178 of partition 0");
        assert_eq!(
            (
                told.to_string().as_str(),
                told.shown(false),
                told.shown(true)
            ),
            ("partition 0", "partition 0", told.in_full())
        );
        assert_eq!(
            RedactedReason::from("no number".to_owned()).in_full(),
            "no number"
        );
    }
}
