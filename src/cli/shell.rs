//! `completions` and `schema`: what a shell and an editor want to know of the program.

use clap_complete::Shell;

use crate::cli::failure::Failure;
use crate::cli::print::{line, print};
use crate::config;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The shell; without it, that of $SHELL
    #[arg(value_enum)]
    shell: Option<Shell>,
}

/// Prints a script that completes commands and options, as for `source <(bernstream completions bash)`.
pub fn completions(arguments: &Arguments, program: &mut clap::Command) -> Result<(), Failure> {
    let unknown = "$SHELL names no shell that is known: give its name, as in `bernstream completions bash`";
    let shell = arguments.shell.or_else(Shell::from_env).ok_or_else(|| Failure::Configuration(unknown.to_owned()))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, program, "bernstream", &mut script);
    print(String::from_utf8_lossy(&script))
}

/// Prints the JSON Schema of the configuration.
pub fn schema() -> Result<(), Failure> {
    line(format_args!("{:#}", config::schema()))
}
