//! `ledger`: creates, shows, verifies, exports and archives the ledger, and publishes kept messages again. No command refunds budget.

mod audit;
mod log;
mod spending;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::cli::components::{genesis, input_id};
use crate::cli::failure::Failure;
use crate::cli::ledger::spending::By;
use crate::cli::print::{line, note, print, report, section, unprinted};
use crate::cli::shares;
use crate::clock::Timestamp;
use crate::config::{Input, Settings, canonical, guarantee};
use crate::kafka::broker_clock;
use crate::ledger::bootstrap::StartMode;
use crate::ledger::log::LedgerLog;
use crate::ledger::witness::Witness;
use crate::ledger::{self, Closed, Genesis, Head, Ledger, Outcome, Paid, Row};
use crate::mechanism::price::Price;
use crate::sink::output::Extent;
use crate::sink::{PaidMessages, deliver};

/// How many blocks `show` lists.
const SHOWN: usize = 10;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
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
    },
    /// Show what was promised, released and spent.
    Show {
        /// Show where the budget went, and how long it lasts.
        #[arg(long)]
        by: Option<By>,
        /// The configuration.
        configuration: PathBuf,
    },
    /// Verify the ledger, and every message on the output against it.
    Verify {
        /// Add up the costs that the synopses on the output state, without the ledger and the witness.
        #[arg(long)]
        output_only: bool,
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
    if text == "now" { Ok(Timestamp::now()) } else { Timestamp::parse_argument(text) }
}

/// Runs one of the actions.
///
/// # Errors
///
/// If the configuration has a fault, if the ledger, its witness or the output is missing or damaged, or if one of them contradicts
/// another.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = Settings::load(arguments.action.configuration())?;
    let done = match &arguments.action {
        Action::Init { from, backfill_until, .. } => {
            let mode = match (*from, &settings.input) {
                (Some(from), _) => StartMode::From { from, backfill_until: *backfill_until },
                // Files are history: their windows are all over.
                (None, Input::Files(_)) => {
                    StartMode::From { from: settings.windows.grid.origin(), backfill_until: None }
                }
                (None, Input::Kafka(_)) => StartMode::Init,
            };
            init(&settings, mode)
        }
        Action::Show { by: Some(by), .. } => spending::show(&settings, *by),
        Action::Show { by: None, .. } => show(&settings),
        Action::Verify { output_only: true, .. } => audit::run(&settings.output),
        Action::Verify { output_only: false, .. } => verify(&settings, &mut |line| report(format_args!("{line}\n"))),
        Action::Export { secret, .. } => export(&settings, *secret),
        Action::Archive { .. } => archive(&settings),
        Action::Restore { dry_run, .. } => log::restore(&settings, *dry_run),
        Action::Log { action: LogAction::Init { .. } } => log::init(&settings),
        Action::Republish { window, .. } => republish(&settings, *window),
    };
    done.map_err(|failure| failure.advised(&settings.output))
}

impl Action {
    fn configuration(&self) -> &Path {
        match self {
            Action::Init { configuration, .. }
            | Action::Show { configuration, .. }
            | Action::Verify { configuration, .. }
            | Action::Export { configuration, .. }
            | Action::Archive { configuration }
            | Action::Restore { configuration, .. }
            | Action::Log { action: LogAction::Init { configuration } }
            | Action::Republish { configuration, .. } => configuration,
        }
    }
}

fn init(settings: &Settings, mode: StartMode) -> Result<(), Failure> {
    if ledger::exists(&settings.ledger) {
        return Err(ledger::Error::Exists { path: settings.ledger.path.clone() }.into());
    }
    // Before anything is created: a ledger needs an existing input.
    input_id(settings)?;
    let mut created = Vec::new();
    if let Input::Kafka(kafka) = &settings.input
        && !kafka.trust_producer_time
        && broker_clock::create_missing(&kafka.broker, &kafka.clock, &kafka.topic)?
    {
        created.push(format!("clock topic {}", kafka.clock));
    }
    let done = shares::create_missing(settings, &mut created).map_err(Failure::from);
    let done = done.and_then(|()| Ok(settings.output.create_missing(&mut created)?));
    let done = done.and_then(|()| log::create_missing(settings, &mut created));
    created.iter().try_for_each(|what| line(format_args!("created the {what}")))?;
    done?;
    let mut witness = settings.output.open_witness()?;
    let now = Timestamp::now();
    let genesis = genesis(settings, &mut *witness, mode, now)?;
    let mut ledger = Ledger::create(&settings.ledger, genesis)?;
    claim(settings, &mut ledger, &mut *witness)?;
    let genesis = ledger.genesis();
    line(format_args!("created the ledger {} in {}", genesis.ledger, settings.ledger.path.display()))?;
    line(format_args!("the first window starts at {}", genesis.first))?;
    if let Some(until) = genesis.backfill_until {
        line(format_args!("past windows accept records that are sent until {until}, and are released after that"))?;
    }
    Ok(())
}

/// Claims the newest row at once, the first of which fences earlier ledgers; then checks whether another ledger was faster. Where
/// there is a log, it holds the row before.
pub(super) fn claim(settings: &Settings, ledger: &mut Ledger, witness: &mut dyn Witness) -> Result<(), Failure> {
    if let Some(log) = &settings.ledger_log {
        ledger.attach_log(LedgerLog::open(log)?);
    }
    let accepted = recognised(ledger, witness)?;
    if let Some(claim) = ledger.claim(accepted.as_ref())? {
        // After a transient error the worker claims again.
        match witness.append(&claim) {
            Err(error) if !error.is_transient() => return Err(error.into()),
            _ => {}
        }
    }
    recognised(ledger, witness).map(drop)
}

/// The head of the witness, if this ledger may continue from it.
pub(super) fn recognised(ledger: &Ledger, witness: &mut dyn Witness) -> Result<Option<Head>, Failure> {
    let accepted = witness.read()?;
    ledger.recognise(&witness.identity()?, accepted.as_ref())?;
    Ok(accepted.map(|claim| claim.head))
}

fn show(settings: &Settings) -> Result<(), Failure> {
    let ledger = Ledger::inspect(&settings.ledger)?;
    let genesis = ledger.genesis();
    let (mut released, mut withheld, mut changes) = (0, 0, Vec::new());
    ledger.each_row(|stored| {
        match stored.row {
            Row::Genesis(_) => {}
            Row::Window(Closed { outcome: Outcome::Released { .. }, .. }) => released += 1,
            Row::Window(Closed { outcome: Outcome::Withheld, .. }) => withheld += 1,
            Row::Configuration(row) => changes.push(format!("from {} on, by row {}", row.first, stored.head.sequence)),
        }
        Ok::<(), Failure>(())
    })?;
    let mut text = String::new();
    let mut lines =
        vec![format!("{} of {}, begun {}", genesis.ledger, settings.pipeline, genesis.created), promised(genesis)];
    lines.extend(meaning(genesis.total));
    lines.extend([
        format!("first window {}, next window {}", genesis.first, ledger.next_window()),
        format!("newest row {}, digest {}", ledger.head().sequence, ledger.head().digest),
    ]);
    lines.extend(
        genesis.backfill_until.map(|until| format!("past windows accept records that were sent until {until}")),
    );
    lines.extend(genesis.previous.map(|head| format!("follows the ledger that ended with row {}", head.sequence)));
    section(&mut text, "Ledger", &lines);
    let windows = [
        format!("{released} released"),
        format!("{withheld} withheld: their budget was spent, or every release was over"),
        format!("{} messages not known to be published", ledger.unpublished()?),
    ];
    section(&mut text, "Windows", &windows);
    if !changes.is_empty() {
        section(&mut text, "Changes of the configuration", &changes);
    }
    let blocks: Vec<String> = ledger
        .blocks(SHOWN)?
        .into_iter()
        .map(|(block, spent)| format!("{} - {}  {spent} of {}", block.start, block.end, genesis.total))
        .collect();
    if !blocks.is_empty() {
        let parts = match genesis.total {
            Price::Pure(_) => "epsilon",
            Price::Approximate { .. } => "epsilon and delta",
            Price::Concentrated(_) => "rho",
            Price::Slots(_) => "windows of the plan",
        };
        section(&mut text, &format!("Newest blocks: {parts} spent of the total"), &blocks);
    }
    print(text)
}

/// The privacy definition of the ledger itself, whatever the configuration says now.
fn promised(genesis: &Genesis) -> String {
    match canonical::definition(&genesis.settings) {
        Some(definition) => definition.to_string(),
        None => "a definition that this program does not know".to_owned(),
    }
}

/// What a total promises that is not pure.
fn meaning(total: Price) -> Vec<String> {
    let promise = format!(
        "the guarantee of a block is its total, {total}; what it has spent is a guarantee of its own only if no price was changed \
         because of earlier results"
    );
    match total {
        Price::Pure(_) | Price::Slots(_) => Vec::new(),
        Price::Approximate { .. } => vec![promise],
        Price::Concentrated(rho) => vec![promise, guarantee::implied(rho)],
    }
}

/// Verifies the ledger and the output, and tells what it has found, sentence by sentence. What was on the output before the ledger is
/// read must be in the ledger: the worker pays first.
///
/// # Errors
///
/// If the ledger, its witness or the output is missing or damaged, or if one of them contradicts another.
pub fn verify(settings: &Settings, tell: &mut dyn FnMut(String) -> Result<(), Failure>) -> Result<(), Failure> {
    let published = settings.output.extent()?;
    // This verifies all of the ledger; the rest is a comparison with the output.
    let ledger = Ledger::inspect(&settings.ledger)?;
    let (rows, mut paid) = paid(&ledger, &published)?;
    tell(format!("ledger verified: {rows} rows, newest {}", ledger.head().digest))?;
    tell(format!("it accounts for {}", promised(ledger.genesis())))?;
    let accepted = recognised(&ledger, &mut *settings.output.open_witness()?)?;
    let row = accepted.map_or_else(|| "none of its rows yet".into(), |head| format!("row {}", head.sequence));
    tell(format!("the witness has accepted {row}"))?;
    if let (Some(accepted), Some(log)) = (accepted, &settings.ledger_log) {
        tell(log::verify(&ledger, accepted, log)?)?;
    }
    if let Some((topic, held)) = shares::held(settings, &ledger)? {
        let until = held.until.map_or(String::new(), |until| format!(" until {until}"));
        let (share, from) = (held.entry.share, held.entry.from);
        tell(format!("the budget topic {} knows its share, {share} from {from} on{until}", topic.name()))?;
    }
    let (mut others, mut unpaid) = (0, Vec::new());
    let genesis = ledger.genesis();
    published.each_published(|found| {
        let is_other = || genesis.previous.is_some() && found.is_of_another_ledger(&genesis.ledger);
        match paid.find(&found) {
            true => {}
            false if is_other() => others += 1,
            false => unpaid.push(found),
        }
    })?;
    if !unpaid.is_empty() {
        // Before anyone is accused, the ledger is read again.
        let (_, mut paid) = self::paid(&Ledger::inspect(&settings.ledger)?, &published)?;
        unpaid.retain(|found| !paid.find(found));
    }
    if !unpaid.is_empty() {
        let places: Vec<String> = unpaid.into_iter().map(|found| found.place).collect();
        let places = places.join(", ");
        return Err(Failure::Unsound(format!("the output holds what this ledger never paid for: {places}")));
    }
    tell(format!("every message on the output was paid for, byte for byte: {}", paid.found()))?;
    let missing = paid.missing();
    if missing > 0 {
        tell(format!(
            "and {missing} that were paid for are missing: not published yet, or removed since; `bernstream ledger republish` \
             sends what is kept"
        ))?;
    }
    if others > 0 {
        tell(format!("and {others} from earlier ledgers, which this ledger cannot verify"))?;
    }
    Ok(())
}

/// How many rows there are, and what they paid for.
fn paid(ledger: &Ledger, published: &Extent<'_>) -> Result<(u64, PaidMessages), Failure> {
    let mut rows = 0;
    let paid = PaidMessages::gather(published.has_envelope(), |each| {
        ledger.each_row(|stored| {
            rows += 1;
            if let Row::Window(Closed { outcome: Outcome::Released { messages, .. }, .. }) = stored.row {
                messages.iter().for_each(&mut *each);
            }
            Ok::<(), Failure>(())
        })
    })?;
    Ok((rows, paid))
}

fn export(settings: &Settings, is_secret: bool) -> Result<(), Failure> {
    let ledger = Ledger::inspect(&settings.ledger)?;
    let (mut out, mut rows, mut loose) = (io::stdout().lock(), 0_u64, 0);
    ledger.each_row(|row| {
        let line =
            if is_secret { row.secret_line() } else { row.public_line().map_err(|e| Failure::Other(e.to_string()))? };
        rows += 1;
        if !is_secret && !row.is_checkable() {
            loose = rows;
        }
        writeln!(out, "{line}").map_err(|error| unprinted(&error))
    })?;
    if loose > 0 {
        note(format_args!(
            "note: the first {loose} of {rows} rows were written by older versions: nobody can check their digests with a public export, \
             so what they say must be believed"
        ));
    }
    Ok(())
}

/// Moves what the witness has accepted, and what no worker needs any more.
fn archive(settings: &Settings) -> Result<(), Failure> {
    let ledger = Ledger::inspect(&settings.ledger)?;
    let accepted = recognised(&ledger, &mut *settings.output.open_witness()?)?;
    let moved = accepted.map_or(Ok(None), |accepted| ledger.archive(&accepted, &mut |_| {}))?;
    match moved {
        Some((first, last)) => line(format_args!(
            "moved the rows {first} to {last} to a file beside the ledger, of which it is a part: never delete it"
        )),
        None => {
            line("nothing to move yet: the newest rows stay, and all whose messages are kept (ledger.keep_published)")
        }
    }
}

/// Publishes kept bytes again: only what the witness has accepted, and only from the ledger that it has accepted.
fn republish(settings: &Settings, window: Option<Timestamp>) -> Result<(), Failure> {
    let ledger = Ledger::inspect(&settings.ledger)?;
    let mut witness = settings.output.open_witness()?;
    let accepted = recognised(&ledger, &mut *witness)?;
    let mut sink = settings.output.open_sink()?;
    let mut sent = 0;
    let mut last: Option<Paid> = None;
    while let Some(accepted) = &accepted
        && let kept = ledger.kept(accepted, last.as_ref(), deliver::MESSAGES)?
        && !kept.is_empty()
    {
        let is_asked_for = |paid: &&[Paid]| paid.iter().all(|paid| window.is_none_or(|at| paid.window().start == at));
        let windows = kept.chunk_by(|one, next| one.window() == next.window());
        for window in windows.filter(is_asked_for) {
            sink.publish(window).map_err(|unpublished| unpublished.error)?;
            sent += window.len();
        }
        last = kept.into_iter().last();
    }
    line(format_args!("published {sent} messages again, byte for byte"))?;
    Ok(())
}
