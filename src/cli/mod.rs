//! The command line: one file per command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod absorb;
mod alone;
pub mod audit;
mod background;
pub mod budget;
mod budget_forecast;
mod candidates;
mod cap;
mod chart;
pub mod check;
pub mod cluster;
mod comparison;
pub mod components;
pub mod dashboard;
pub mod demo;
pub mod evaluate;
pub mod explain;
pub mod failure;
mod figures;
mod foreseen;
mod held;
mod key_rows;
pub mod keys;
pub mod ledger;
mod left;
mod missing_topic;
mod newest;
mod newest_schema;
mod older_stamps;
mod open_error;
mod parallel;
mod print;
pub mod produce;
mod produce_lines;
mod progress;
pub mod query;
mod reading;
mod rebuilt;
mod resources;
mod restarted_sums;
pub mod run;
pub mod runtime;
pub mod sample;
mod sampled;
mod settings;
mod shares;
mod shell;
mod style;
mod units;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use self::failure::Failure;
use crate::cli::print::note;
use crate::cli::style::Style;

/// Private functions from a stream: windowed records in, differentially private synopses out.
#[derive(Debug, Parser)]
#[command(name = "bernstream", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the worker.
    Run(run::RunArguments),
    /// Read partitions for a worker: any number of these processes, on any machines.
    Absorb(absorb::AbsorbArguments),
    /// Find every fault in a configuration; print the guarantee in words and the resources that a worker needs.
    Check(check::CheckArguments),
    /// Show noise, error and budget over time, before any record is read.
    Explain(explain::ExplainArguments),
    /// Test this program against the promise of a configuration, without any data.
    Audit(audit::AuditArguments),
    /// Evaluate a synopsis, from a file or a topic, in natural units.
    Evaluate(evaluate::EvaluateArguments),
    /// Show the synopses of a topic or folder in a browser, as they arrive.
    Dashboard(dashboard::DashboardArguments),
    /// Estimate sums over the records from a synopsis of moments, or counts, shares and quantiles from tables of cells.
    Query(query::QueryArguments),
    /// Sample a sensitivity from a public prior, for random differential privacy.
    Sample(sample::SampleArguments),
    /// Show the keys that were found, where nobody lists them, or write them down as a list.
    Keys(keys::KeysArguments),
    /// Create, show and verify the privacy ledger.
    Ledger(ledger::LedgerArguments),
    /// Show who holds which share of an input's total, or end a share.
    Budget(budget::BudgetArguments),
    /// Send a Parquet or Arrow file to a topic.
    Produce(produce::ProduceArguments),
    /// Run a whole pipeline in one process, on simulated records and a mock broker.
    Demo(demo::DemoArguments),
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
    /// Print a shell completion script.
    Completions(shell::ShellArguments),
}

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    // A panic has said where it happened.
    std::panic::catch_unwind(command)
        .unwrap_or_else(|_| ExitCode::from(Failure::Other(String::new()).exit_code()))
}

fn command() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Absorb(arguments) => absorb::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Evaluate(arguments) => evaluate::run(&arguments),
        Command::Dashboard(arguments) => dashboard::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Ledger(arguments) => ledger::run(&arguments),
        Command::Budget(arguments) => budget::run(&arguments),
        Command::Produce(arguments) => produce::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Schema => shell::print_schema(),
        Command::Completions(arguments) => {
            shell::print_completions(&arguments, &mut Cli::command())
        }
    };
    match done {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            note(format_args!(
                "{} {failure}",
                style::on_stderr(Style::Error, "error:")
            ));
            ExitCode::from(failure.exit_code())
        }
    }
}
