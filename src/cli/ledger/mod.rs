//! `ledger`: creates, shows, verifies, exports and archives the ledger, and publishes kept messages again. No command refunds budget.

mod audit;
mod init;
mod log;
mod promised;
mod rows;
mod show;
mod spending;
mod verify;
mod witnessed;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use self::init::ReplacePermission;
pub use self::rows::verified_ledger;
pub use self::verify::verify_all;
pub(super) use self::witnessed::{FoundWitness, claim_newest_row, find_witness, recognised_head};
use crate::cli::failure::Failure;
use crate::cli::figures::count_in_words;
use crate::cli::ledger::spending::SpendingGroup;
use crate::cli::print::{as_json, line, note, print_failure, print_verdict};
use crate::cli::progress::show_progress;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::sink::deliver;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_ledger::{ArchiveStep, Head, Ledger, Paid};
use bernstream_synopsis::clock::Timestamp;

/// The words of `ledger archive` where it has nothing to do.
const NOTHING_TO_MOVE: &str = "nothing to move yet: the newest rows stay, and all whose messages are kept (ledger.keep_published)";

#[derive(Debug, Args)]
pub struct LedgerArguments {
    #[command(subcommand)]
    action: LedgerAction,
}

#[derive(Debug, Subcommand)]
enum LedgerAction {
    /// Create the ledger, and the output, witness and clock topics if they are missing.
    Init {
        /// The configuration.
        configuration: PathBuf,
        /// Start with the first window from this time on, as for history; only if nothing was ever published.
        #[arg(long, value_name = "TIME", value_parser = Timestamp::parse_argument)]
        from: Option<Timestamp>,
        /// Accept records of past windows that are sent until this time, or until `now`; the windows are released after it.
        #[arg(long, value_name = "TIME", requires = "from", value_parser = time_or_now)]
        backfill_until: Option<Timestamp>,
        /// Take over from another ledger, at the next block that takes no record sent before now: its worker stops for good.
        #[arg(long)]
        replace: bool,
        /// With --replace: even from a ledger that its log can build again.
        #[arg(long, requires = "replace")]
        abandon: bool,
    },
    /// Show what was promised, released and spent.
    Show {
        /// Show where the budget went, and how long it lasts.
        #[arg(long, conflicts_with = "json")]
        by: Option<SpendingGroup>,
        /// Print it as JSON, and nothing else; docs/reference/commands.md says what the fields are
        #[arg(long)]
        json: bool,
        /// The configuration.
        configuration: PathBuf,
    },
    /// Verify the ledger, and every message on the output against it.
    Verify {
        /// Add up the costs that the synopses on the output state, without the ledger and the witness.
        #[arg(long)]
        output_only: bool,
        /// Print what was found as JSON, and nothing else; docs/reference/commands.md says what the fields are
        #[arg(long, conflicts_with = "output_only")]
        json: bool,
        /// The configuration.
        configuration: PathBuf,
    },
    /// Print every row as a line of JSON, without what counts messages: anyone can check the chain of it.
    Export {
        /// How far the input was read for each window as well, which are exact counts of messages, and all salts: for whoever may
        /// see that. Not to be published.
        #[arg(long)]
        secret: bool,
        /// The configuration.
        configuration: PathBuf,
    },
    /// Move old rows to a compressed file beside the ledger, which `verify` and `export` read. The worker may be running.
    Archive {
        /// The configuration.
        configuration: PathBuf,
    },
    /// Build the ledger from its log, up to the row that the witness has accepted. A worker does that by itself where it must.
    Restore {
        /// Only say what would be built.
        #[arg(long)]
        dry_run: bool,
        /// The configuration.
        configuration: PathBuf,
    },
    /// The topic that the ledger can be built from.
    Log {
        #[command(subcommand)]
        action: LogAction,
    },
    /// Publish kept messages again, byte for byte.
    Republish {
        /// The configuration.
        configuration: PathBuf,
        /// Only the window that starts at this time.
        #[arg(long, value_name = "START", value_parser = Timestamp::parse_argument)]
        window: Option<Timestamp>,
        /// All that is kept (ledger.keep_published).
        #[arg(long, conflicts_with = "window")]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
enum LogAction {
    /// Create the topic, if it is missing. A worker then appends to it what its ledger has.
    Init {
        /// The configuration.
        configuration: PathBuf,
    },
}

fn time_or_now(text: &str) -> Result<Timestamp, String> {
    if text == "now" {
        Ok(Timestamp::now())
    } else {
        Timestamp::parse_argument(text)
    }
}

/// Runs one of the actions.
///
/// # Errors
///
/// If the configuration has a fault, if the ledger, its witness or the output is missing or damaged, or if one of them contradicts
/// another.
pub fn run(arguments: &LedgerArguments) -> Result<(), Failure> {
    let settings = WorkerSettings::load(arguments.action.configuration())?;
    let done = match &arguments.action {
        LedgerAction::Init {
            from,
            backfill_until,
            replace,
            abandon,
            ..
        } => {
            let mode = match *from {
                Some(from) => StartMode::From {
                    from,
                    backfill_until: *backfill_until,
                },
                None => match &settings.input {
                    // Files are history: their windows are all over.
                    InputParams::Files(_) => StartMode::From {
                        from: settings.windows.grid.origin(),
                        backfill_until: None,
                    },
                    InputParams::Kafka(_) => StartMode::Init,
                },
            };
            init::run(
                &settings,
                mode,
                ReplacePermission {
                    is_asked_for: *replace,
                    is_abandoned: *abandon,
                },
            )
        }
        LedgerAction::Show { by: Some(by), .. } => spending::show_spending(&settings, *by),
        LedgerAction::Show { by: None, json, .. } => show::run(&settings, *json),
        LedgerAction::Verify {
            output_only: true, ..
        } => audit::run(&settings.output),
        LedgerAction::Verify { json: true, .. } => {
            line(as_json(&verify_all(&settings, &mut |_| Ok(()))?)?)
        }
        LedgerAction::Verify { .. } => verify_all(&settings, &mut |line| {
            print_verdict(format_args!("{line}\n"))
        })
        .map(drop),
        LedgerAction::Export { secret, .. } => export_rows(&settings, *secret),
        LedgerAction::Archive { .. } => archive_rows(&settings),
        LedgerAction::Restore { dry_run, .. } => log::restore_ledger(&settings, *dry_run),
        LedgerAction::Log {
            action: LogAction::Init { .. },
        } => log::create_log(&settings),
        LedgerAction::Republish {
            window: None,
            all: false,
            ..
        } => Err(refuse_unasked(&settings)),
        LedgerAction::Republish { window, .. } => republish_kept(&settings, *window),
    };
    done.map_err(|failure| failure.with_advice(&settings))
}

impl LedgerAction {
    fn configuration(&self) -> &Path {
        match self {
            LedgerAction::Init { configuration, .. }
            | LedgerAction::Show { configuration, .. }
            | LedgerAction::Verify { configuration, .. }
            | LedgerAction::Export { configuration, .. }
            | LedgerAction::Archive { configuration }
            | LedgerAction::Restore { configuration, .. }
            | LedgerAction::Log {
                action: LogAction::Init { configuration },
            }
            | LedgerAction::Republish { configuration, .. } => configuration,
        }
    }
}

fn export_rows(settings: &WorkerSettings, is_secret: bool) -> Result<(), Failure> {
    let ledger = verified_ledger(settings)?;
    let mut out = io::stdout().lock();
    let mut rows = 0_u64;
    let mut loose = 0;
    let missing = ledger.missing();
    ledger.each_row(|row| {
        if let Some(missing) =
            missing.filter(|missing| missing.last.checked_add(1) == Some(row.head.sequence))
        {
            writeln!(out, "{}", missing.line()).map_err(|error| print_failure(&error))?;
        }
        let line = if is_secret {
            row.secret_line()
        } else {
            row.public_line()
                .map_err(|e| Failure::Other(e.to_string()))?
        };
        rows += 1;
        if !is_secret && !row.is_checkable() {
            loose = rows;
        }
        writeln!(out, "{line}").map_err(|error| print_failure(&error))
    })?;
    if let Some(missing) = missing {
        note(format_args!(
            "note: {}; nobody can check with this export what blocks had spent before row {}",
            show::not_here(missing),
            missing.last.saturating_add(1)
        ));
    }
    if loose > 0 {
        note(format_args!(
            "note: the first {loose} of {rows} rows were written by older versions: nobody can check their digests with a public export, \
             so what they say must be believed"
        ));
    }
    Ok(())
}

/// Moves what the witness has accepted, and what no worker needs any more.
fn archive_rows(settings: &WorkerSettings) -> Result<(), Failure> {
    let ledger = verified_ledger(settings)?;
    let accepted = recognised_head(&ledger, &mut *settings.output.open_witness()?)?;
    let Some(accepted) = accepted else {
        return line(NOTHING_TO_MOVE);
    };
    let moved = show_progress("moving old rows", |done| {
        ledger.archive_rows(&accepted, &mut |step| match step {
            // One that is written has come half of the way.
            ArchiveStep::Written { rows, of } => done.set(rows / 2, of),
            ArchiveStep::Removed { rows, of } => done.set(of.saturating_add(rows) / 2, of),
            ArchiveStep::Durable | ArchiveStep::Recorded => {}
        })
    })?;
    match moved {
        Some((first, last)) => line(format_args!(
            "moved the rows {first} to {last} to a file beside the ledger, of which it is a part: never delete it"
        )),
        None => line(NOTHING_TO_MOVE),
    }
}

/// Passes the kept messages of each window that the witness has accepted to `each`.
fn each_kept(
    ledger: &Ledger,
    accepted: Option<&Head>,
    mut each: impl FnMut(&[Paid]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut last: Option<Paid> = None;
    while let Some(accepted) = accepted
        && let kept = ledger.kept_messages(accepted, last.as_ref(), deliver::MESSAGES)?
        && !kept.is_empty()
    {
        kept.chunk_by(|one, next| one.window() == next.window())
            .try_for_each(&mut each)?;
        last = kept.into_iter().last();
    }
    Ok(())
}

/// Refuses to publish everything again unasked, and says how much that would be.
fn refuse_unasked(settings: &WorkerSettings) -> Failure {
    match kept_in_words(settings) {
        Ok(what) => Failure::Configuration(what),
        Err(failure) => failure,
    }
}

fn kept_in_words(settings: &WorkerSettings) -> Result<String, Failure> {
    let ledger = verified_ledger(settings)?;
    let accepted = recognised_head(&ledger, &mut *settings.output.open_witness()?)?;
    let mut messages = 0;
    let mut windows = BTreeSet::new();
    each_kept(&ledger, accepted.as_ref(), |kept| {
        messages += kept.len() as u64;
        windows.extend(kept.iter().map(|paid| paid.window().start));
        Ok(())
    })?;
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Ok("no message is kept, so there is nothing to publish again".to_owned());
    };
    Ok(format!(
        "that would publish {} of {} again, those that start from {first} to {last}: add --all for all of them, or --window START \
         for the window that starts then",
        count_in_words(messages, "message"),
        count_in_words(windows.len() as u64, "window"),
    ))
}

/// Publishes kept bytes again: only what the witness has accepted, and only from the ledger that it has accepted.
fn republish_kept(settings: &WorkerSettings, window: Option<Timestamp>) -> Result<(), Failure> {
    let ledger = verified_ledger(settings)?;
    let mut witness = settings.output.open_witness()?;
    let accepted = recognised_head(&ledger, &mut *witness)?;
    let mut sink = settings.output.open_sink()?;
    let mut sent = 0;
    each_kept(&ledger, accepted.as_ref(), |messages| {
        if messages
            .iter()
            .all(|paid| window.is_none_or(|at| paid.window().start == at))
        {
            sink.publish(messages)
                .map_err(|unpublished| unpublished.error)?;
            sent += messages.len();
        }
        Ok(())
    })?;
    match window {
        Some(window) if sent == 0 => Err(Failure::Configuration(format!(
            "nothing that is kept is of a window that starts at {window}: nothing was published again; `bernstream ledger show` says \
             which windows there are, and ledger.keep_published how long messages are kept"
        ))),
        _ => line(format_args!(
            "published {sent} messages again, byte for byte"
        )),
    }
}
