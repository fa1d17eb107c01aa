//! What people type.

pub mod check;
pub mod explain;

use std::fmt::Write as _;

/// Why a command failed; each kind has an exit code of its own (`sysexits.h`).
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The configuration is wrong; trying again does not help.
    #[error("{0}")]
    Configuration(String),
    /// Something outside did not answer; trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// The ledger or its witness does not allow it; a person must look.
    #[error("{0}")]
    Ledger(String),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Configuration(_) => 78,
            Failure::Unavailable(_) => 69,
            Failure::Ledger(_) => 65,
            Failure::Other(_) => 70,
        }
    }
}

fn section(text: &mut String, heading: &str, lines: &[String]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{heading}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}
