//! Printing: results on standard output, remarks on standard error.
//!
//! `println!` panics if the output pipe is closed, as in `bernstream check FILE | head -1`, so every command prints here.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::style::{self, Style};

/// Prints on standard output.
///
/// # Errors
///
/// [`Failure::ClosedPipe`] if the output pipe is closed, which ends a command silently; [`Failure::Other`] if standard output
/// cannot be written.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.map_err(|error| print_failure(&error))
}

/// Prints a line on standard output.
///
/// # Errors
///
/// Those of [`print()`].
pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}

/// Prints a part of a verdict; a closed pipe does not keep the command from reaching the rest.
///
/// # Errors
///
/// [`Failure::Other`] if standard output cannot be written.
pub fn print_verdict(text: impl Display) -> Result<(), Failure> {
    match print(text) {
        Err(Failure::ClosedPipe) => Ok(()),
        done => done,
    }
}

/// Prints a line on standard error; if nobody can read it, the command goes on.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A warning on standard error.
pub fn warning(text: impl Display) {
    note(format_args!(
        "{} {text}",
        style::on_stderr(Style::Warning, "warning:")
    ));
}

pub fn print_failure(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Other(format!("cannot print: {error}")),
    }
}

/// A result as JSON, for programs.
///
/// # Errors
///
/// [`Failure::Other`] if it cannot be written as JSON.
pub fn as_json(result: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(result)
        .map_err(|error| Failure::Other(format!("cannot write JSON: {error}")))
}

/// Adds a heading and its lines, indented, to a text for standard output; a terminal shows the heading in bold.
pub fn push_section(text: &mut String, heading: &str, lines: &[String]) {
    text.push_str(&style::on_stdout(Style::Bold, heading));
    text.push('\n');
    for line in lines {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
}
