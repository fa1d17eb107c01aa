//! The faults of a text, shown in the style of a compiler.

use std::fmt;
use std::ops::Range;

/// One fault: where, what, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// A byte range of the text; empty where the fault has no position.
    pub place: Range<usize>,
    /// The dotted path; empty where the text is not valid TOML.
    pub path: String,
    pub what: String,
    pub hint: String,
}

/// Everything that is wrong with a configuration, in the order of the file.
///
/// Shown in the style of a compiler: `file:line:column: path: what`, the line with the position underlined, a hint.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Faults {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) list: Vec<ConfigFault>,
}

impl Faults {
    /// The fault of a file that cannot be opened or read.
    pub fn unreadable(name: &str, error: &std::io::Error) -> Self {
        let what = format!("cannot be read: {error}");
        let fault = ConfigFault {
            place: 0..0,
            path: String::new(),
            what,
            hint: String::new(),
        };
        Faults {
            name: name.to_owned(),
            text: String::new(),
            list: vec![fault],
        }
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// What is wrong, without where.
    pub fn reason(&self) -> String {
        self.list
            .iter()
            .map(|fault| fault.what.as_str())
            .collect::<Vec<_>>()
            .join("; ")
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

impl ConfigFault {
    fn shown_in(&self, name: &str, text: &str) -> String {
        let path = if self.path.is_empty() {
            String::new()
        } else {
            format!("{}: ", self.path)
        };
        let hint = if self.hint.is_empty() {
            String::new()
        } else {
            format!("  = {}\n", self.hint)
        };
        let before = text.get(..self.place.start).unwrap_or_default();
        if self.place.is_empty() && before.is_empty() {
            return format!("{name}: {path}{}\n{hint}", self.what);
        }
        let number = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let underlined = text
            .get(self.place.clone())
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default();
        let marks = "^".repeat(underlined.chars().count().max(1));
        let gutter = " ".repeat(number.to_string().len());
        let indent = " ".repeat(column - 1);
        format!(
            "{name}:{number}:{column}: {path}{}\n{gutter} |\n{number} | {line}\n{gutter} | {indent}{marks}\n{hint}",
            self.what
        )
    }
}
