//! `budget`: its topic, who holds which share of an input's total, and the end of a share.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::components::{input_identity, promise_mismatch};
use crate::cli::failure::Failure;
use crate::cli::ledger::{claim_newest_row, recognised_head};
use crate::cli::print::{line, print, push_section};
use crate::cli::settings;
use crate::cli::shares::{self, HeldShare, OpenBudget};
use bernstream_config::WorkerSettings;
use bernstream_ledger::Ledger;
use bernstream_ledger::budget::entry::BlockGrid;
use bernstream_ledger::budget::fold::{ActiveShare, BudgetShares};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::price::Price;

#[derive(Debug, Args)]
pub struct BudgetArguments {
    #[command(subcommand)]
    action: BudgetAction,
}

#[derive(Debug, Subcommand)]
enum BudgetAction {
    /// Create the budget topic of an input, before its first pipeline is started.
    Init {
        /// The configuration of any pipeline of the input.
        configuration: PathBuf,
    },
    /// Show who holds which share, until when, and what is left.
    Show {
        /// The configuration of any pipeline of the input.
        configuration: PathBuf,
    },
    /// End the share of a pipeline with the first block that was never charged, so that others may take it. Its worker must be stopped.
    End {
        /// The configuration.
        configuration: PathBuf,
        /// Not before this time.
        #[arg(long, value_name = "TIME", value_parser = Timestamp::parse_argument)]
        from: Option<Timestamp>,
    },
}

/// Runs one of the actions.
///
/// # Errors
///
/// If the configuration has a fault or no budget, or if the budget topic, the ledger or its witness does not allow it.
pub fn run(arguments: &BudgetArguments) -> Result<(), Failure> {
    match &arguments.action {
        BudgetAction::Init { configuration } => {
            create_budget_topic(&settings::load_settings(configuration)?)
        }
        BudgetAction::Show { configuration } => {
            show_shares(&settings::load_settings(configuration)?)
        }
        BudgetAction::End {
            configuration,
            from,
        } => {
            let settings = settings::load_settings(configuration)?;
            end_share(&settings, *from).map_err(|failure| failure.with_advice(&settings))
        }
    }
}

fn no_budget() -> Failure {
    let what =
        "the configuration has no `budget` in [privacy]: its pipeline shares its total with nobody";
    Failure::Configuration(what.to_owned())
}

fn create_budget_topic(settings: &WorkerSettings) -> Result<(), Failure> {
    let Some(params) = settings.budget_topic() else {
        return Err(no_budget());
    };
    match shares::create_budget_topic(&params)? {
        true => line(format_args!("created the budget topic {}", params.topic)),
        false => line(format_args!(
            "the budget topic {} is there already",
            params.topic
        )),
    }
}

fn show_shares(settings: &WorkerSettings) -> Result<(), Failure> {
    if settings.privacy.budget.is_none() {
        return Err(no_budget());
    }
    let Some(OpenBudget {
        shared: own,
        mut topic,
        ..
    }) = shares::open_budget(settings, &input_identity(settings)?)?
    else {
        return Err(no_budget());
    };
    let name = topic.name().to_owned();
    let id = topic.id().to_owned();
    let shares = topic.read_shares()?;
    let mut text = String::new();
    let mut lines = vec![
        format!("topic {name}, id {id}"),
        format!("the whole total of a block: {}", price_in_words(own.total)),
    ];
    if let Some(shared) = shares.shared_budget()
        && let Some(what) = own.difference(shared)
    {
        lines.push(format!(
            "this configuration is of another budget, and cannot take a share: {what}"
        ));
    }
    push_section(&mut text, "Budget", &lines);
    let whole = shares
        .shared_budget()
        .map_or(own.total, |shared| shared.total);
    let mut holders = Vec::new();
    for held in shares.held_shares() {
        holders.push(holder_in_words(held, whole));
    }
    if holders.is_empty() {
        holders.push("nobody holds a share yet".to_owned());
    }
    push_section(&mut text, "Shares", &holders);
    push_section(&mut text, "Left", &left_in_words(shares, whole, own.blocks));
    let mut void = Vec::new();
    for (offset, why) in topic.void_records() {
        void.push(format!("the record at offset {offset}: {why}"));
    }
    if !void.is_empty() {
        push_section(&mut text, "Void, for ever", &void);
    }
    print(text)
}

fn holder_in_words(held: &ActiveShare, whole: Price) -> String {
    let entry = &held.entry;
    let from = entry.of.blocks.words_since(entry.from);
    let from = if from.is_empty() {
        from
    } else {
        format!("{from},")
    };
    let until = match held.until {
        None => "without an end".to_owned(),
        Some(until) if until <= Timestamp::now() => format!("ended {until}"),
        Some(until) => format!("until {until}"),
    };
    format!(
        "{} of the total, {}: {},{} {until} (witness {}, generation {})",
        entry.share,
        price_in_words(entry.share.part_of_price(whole)),
        entry.pipeline,
        from,
        entry.holder.owner,
        entry.holder.generation
    )
}

/// Shares that a new pipeline could take.
fn left_in_words(shares: &BudgetShares, whole: Price, blocks: BlockGrid) -> Vec<String> {
    let now = Timestamp::now();
    let over_time = shares
        .left_over_time(blocks.start_of(now).unwrap_or(now))
        .into_iter();
    over_time
        .map(|(from, left)| match left {
            Fraction::ZERO => format!("nothing is left{}", blocks.words_since(from)),
            left => format!(
                "{left} of the total, {}{}",
                price_in_words(left.part_of_price(whole)),
                blocks.words_since(from)
            ),
        })
        .collect()
}

/// A price with its kind, which that of a pure epsilon does not name.
fn price_in_words(price: Price) -> String {
    match price {
        Price::Pure(epsilon) => format!("epsilon {epsilon}"),
        other => other.to_string(),
    }
}

/// First the ledger, in a row that its witness accepts, and only then the topic: the other way round a crash between the two
/// would leave a ledger that spends what another pipeline has taken over.
fn end_share(settings: &WorkerSettings, from: Option<Timestamp>) -> Result<(), Failure> {
    let mut ledger = Ledger::open(&settings.ledger)?;
    if let Some(why) = promise_mismatch(settings, ledger.settings()) {
        return Err(Failure::Ledger(why));
    }
    let Some(HeldShare {
        mut topic,
        share: held,
    }) = shares::held_share(settings, &ledger)?
    else {
        return Err(no_budget());
    };
    let mut witness = shares::guard_witness(settings, &ledger, settings.output.open_witness()?)?;
    // A copy that is behind its witness knows nothing of what was charged since.
    recognised_head(&ledger, &mut *witness)?;
    let until = match ledger.until() {
        Some(until) => {
            if from.is_some() {
                line("its end was decided before, and is final: --from changes nothing")?;
            }
            until
        }
        None => {
            let until = settings.blocks.first_from(
                ledger
                    .last_block_end()
                    .max(from.unwrap_or(Timestamp::EARLIEST)),
            );
            let until = until.map(|block| block.start).ok_or_else(|| {
                Failure::Ledger(
                    "a user without a period has one block, of which this ledger holds its share for ever: it never ends".to_owned(),
                )
            })?;
            ledger.end_share(until)?;
            if let Some(from) = from.filter(|from| *from < ledger.last_block_end()) {
                line(format_args!(
                    "--from {from} is in a block that this ledger has charged, or before one: those stay taken, and the end is {until}, \
                     the earliest that there can be"
                ))?;
            }
            until
        }
    };
    claim_newest_row(settings, &mut ledger, &mut *witness)?;
    if recognised_head(&ledger, &mut *witness)? != Some(*ledger.head()) {
        return Err(Failure::Unavailable(
            "the ledger says that its share ends, and its witness has not accepted that yet, so the share is still held: run this again"
                .to_owned(),
        ));
    }
    topic.end(&held.entry.holder, until)?;
    line(format_args!(
        "the share of {} ends: this ledger releases no block from {until} on, and another pipeline may take it from then on",
        held.entry.share
    ))
}
