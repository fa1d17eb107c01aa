//! Bold and colours, for terminals alone: files, pipes and whoever sets `NO_COLOR` get the words as they are.

use std::io::{self, IsTerminal};

/// The way in which a word stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Bold,
    Error,
    Warning,
    /// The place where something is wrong.
    Place,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Bold => "1",
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Place => "1;34",
        }
    }
}

/// The text for standard output.
pub fn on_stdout(style: Style, text: &str) -> String {
    styled(style, text, io::stdout().is_terminal() && is_wanted())
}

/// The text for standard error.
pub fn on_stderr(style: Style, text: &str) -> String {
    styled(style, text, io::stderr().is_terminal() && is_wanted())
}

/// Faults for standard error, as a compiler shows them: on a terminal the marks under what is wrong are red, the gutter blue, and
/// where it stands bold.
pub fn style_faults(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(fault_line).collect();
    lines.join("\n")
}

fn fault_line(line: &str) -> String {
    if let Some((gutter, rest)) = line.split_once('|')
        && gutter
            .chars()
            .all(|sign| sign == ' ' || sign.is_ascii_digit())
    {
        let marks = rest.trim_start();
        let rest = match !marks.is_empty() && marks.chars().all(|sign| sign == '^') {
            true => rest.replace(marks, &on_stderr(Style::Error, marks)),
            false => rest.to_owned(),
        };
        return on_stderr(Style::Place, &format!("{gutter}|")) + &rest;
    }
    if line.starts_with("  = ") || line.is_empty() {
        line.to_owned()
    } else {
        on_stderr(Style::Bold, line)
    }
}

/// Decides by `NO_COLOR` (<https://no-color.org>: set and not empty) and by what the terminal is.
fn is_wanted() -> bool {
    let is_refused = std::env::var("NO_COLOR").is_ok_and(|value| !value.is_empty());
    let is_dumb = std::env::var("TERM").is_ok_and(|value| value == "dumb");
    !is_refused && !is_dumb
}

fn styled(style: Style, text: &str, is_styled: bool) -> String {
    if is_styled {
        format!("\x1b[{}m{text}\x1b[0m", style.code())
    } else {
        text.to_owned()
    }
}
