//! `completions` and `schema`: files for shells and editors.

use clap_complete::Shell;

use crate::cli::failure::Failure;
use crate::cli::print::{line, print};
use bernstream_config as config;

#[derive(Debug, clap::Args)]
pub struct ShellArguments {
    /// The shell [default: that of $SHELL]
    #[arg(value_enum)]
    shell: Option<Shell>,
}

/// Prints a completion script, for example for `source <(bernstream completions bash)`.
///
/// # Errors
///
/// If the shell is unknown, or if standard output cannot be written.
pub fn print_completions(
    arguments: &ShellArguments,
    program: &mut clap::Command,
) -> Result<(), Failure> {
    let unknown = "$SHELL names no known shell: give its name, as in `bernstream completions bash`";
    let shell = arguments
        .shell
        .or_else(Shell::from_env)
        .ok_or_else(|| Failure::Configuration(unknown.to_owned()))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, program, "bernstream", &mut script);
    print(String::from_utf8_lossy(&script))
}

/// Prints the JSON Schema of the configuration.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn print_schema() -> Result<(), Failure> {
    line(format_args!("{:#}", config::schema()))
}
