//! What a command says: on standard output what it was asked for, on standard error what is said about that.
//!
//! `println!` panics where nobody reads on, as in `bernstream check FILE | head -1`: so every command prints here.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::cli::failure::Failure;

/// Prints on standard output. Where nobody reads on that is [`Failure::Unread`], which ends a command without a word.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(|error| unprinted(&error))
}

/// The same with the end of a line.
pub fn line(text: impl Display) -> Result<(), Failure> {
    print(format_args!("{text}\n"))
}

/// Prints a part of what is found out; the rest is found out, and its verdict given, whether or not anybody reads on.
pub fn report(text: impl Display) -> Result<(), Failure> {
    match print(text) {
        Err(Failure::Unread) => Ok(()),
        done => done,
    }
}

/// A line on standard error; that nobody reads it is no reason to stop.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

pub fn unprinted(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::Unread,
        _ => Failure::Other(format!("cannot print: {error}")),
    }
}

/// Adds a heading and its lines, indented, to a text.
pub fn section(text: &mut String, heading: &str, lines: &[String]) {
    text.push_str(heading);
    text.push('\n');
    for line in lines {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
}
