//! Text of others on a terminal: keys are data, and whoever sends records writes them.

/// Characters that stand as they are, though a text in Rust has a backslash before them.
const QUOTES: [char; 2] = ['\'', '"'];

/// The text with escapes such as `\n`, `\u{1b}` and `\u{202e}` for characters that do not show or that turn the direction of others: no text
/// moves the cursor, looks like another one, or begins a line. A backslash is written twice.
pub fn escape_unprintable(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for piece in text.split_inclusive(QUOTES) {
        let plain = piece.trim_end_matches(QUOTES);
        escaped.extend(plain.escape_debug());
        escaped.push_str(&piece[plain.len()..]);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_show_is_escaped_and_all_else_stands_as_it_is() {
        for plain in [
            "",
            "DE",
            "a/b?c=1",
            "Lin\u{f3}pe \"air\"",
            "it's",
            "\u{0939}\u{093f}\u{0928}\u{094d}\u{0926}\u{0940}",
            "\u{05e9}\u{05dc}\u{05d5}\u{05dd}",
            "\u{65e5}\u{672c}",
        ] {
            assert_eq!(escape_unprintable(plain), plain);
        }
        for (text, shown) in [
            ("a\nb\t\r", r"a\nb\t\r"),
            ("\u{1b}[2J\u{7}", r"\u{1b}[2J\u{7}"),
            ("\u{202e}gpj.exe", r"\u{202e}gpj.exe"),
            (
                "a\u{2066}b\u{2069}\u{200f}\u{200b}",
                r"a\u{2066}b\u{2069}\u{200f}\u{200b}",
            ),
            ("\u{0}\u{9b}\u{feff}\u{2028}", r"\0\u{9b}\u{feff}\u{2028}"),
            (r"\n", r"\\n"),
            ("\"\n'\u{1b}\"", r#""\n'\u{1b}""#),
        ] {
            assert_eq!(escape_unprintable(text), shown);
        }
    }
}
