//! `ledger init`: creates the ledger, and what it needs of topics.

use super::log;
use super::witnessed::{FoundWitness, claim_newest_row, find_witness};
use crate::cli::components::{first_row, input_identity, refuse_foreign_output};
use crate::cli::failure::Failure;
use crate::cli::older_stamps;
use crate::cli::print::line;
use crate::cli::shares::{self, ShareRequest};
use bernstream_config::{InputParams, Period, PrivacyUnit, WorkerSettings};
use bernstream_kafka::ledger::log::{KafkaLogParams, open_log};
use bernstream_kafka::source::kafka;
use bernstream_kafka::{broker_clock, topic};
use bernstream_ledger as ledger;
use bernstream_ledger::Ledger;
use bernstream_ledger::bootstrap::{PriorState, StartMode, choose_start};
use bernstream_ledger::log::LedgerLogError;
use bernstream_ledger::witness::WitnessClaim;
use bernstream_synopsis::clock;
use bernstream_synopsis::clock::Timestamp;

/// Permission of the new ledger to take over from another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplacePermission {
    pub is_asked_for: bool,
    /// Even from one that its log can build again.
    pub is_abandoned: bool,
}

/// Creates everything, or nothing.
///
/// # Errors
///
/// If there is a ledger, if a worker would refuse what this one names, or if it would take over from another ledger unasked.
pub(super) fn run(
    settings: &WorkerSettings,
    mode: StartMode,
    replaced: ReplacePermission,
) -> Result<(), Failure> {
    if ledger::ledger_exists(&settings.ledger)? {
        return Err(ledger::LedgerError::Exists {
            path: settings.ledger.path.clone(),
        }
        .into());
    }
    // Before anything is created: a ledger needs an existing input, one that a worker reads.
    let input = input_identity(settings)?;
    if let InputParams::Kafka(params) = &settings.input {
        kafka::check_topic(
            params,
            &topic::describe_topic(&params.broker, &params.topic)?,
        )?;
    }
    foresee_refusal(settings, &input, mode, replaced)?;
    let mut created = Vec::new();
    if let InputParams::Kafka(kafka) = &settings.input
        && !kafka.trust_producer_time
        && broker_clock::create_missing(&kafka.broker, &kafka.clock, &kafka.topic)?
    {
        created.push(format!("clock topic {}", kafka.clock));
    }
    let done = settings
        .output
        .create_missing(settings.largest_synopsis(), &mut created)
        .map_err(Failure::from);
    let done = done.and_then(|()| log::create_missing(settings, &mut created));
    created
        .iter()
        .try_for_each(|what| line(format_args!("created the {what}")))?;
    done?;
    let mut witness = settings.output.open_witness()?;
    let genesis = first_row(settings, &mut *witness, mode, Timestamp::now())?;
    let mut ledger = Ledger::create(&settings.ledger, genesis)?;
    claim_newest_row(settings, &mut ledger, &mut *witness)?;
    let genesis = ledger.genesis();
    line(format_args!(
        "created the ledger {} in {}",
        genesis.ledger,
        settings.ledger.path.display()
    ))?;
    line(format_args!(
        "the first window starts at {}{}",
        genesis.first,
        wait_in_words(&settings.privacy.unit, mode)
    ))?;
    if let Some(until) = genesis.backfill_until {
        line(format_args!(
            "past windows accept records that are sent until {until}, and are released after that"
        ))?;
    }
    Ok(())
}

/// The reason why the first window may start later than the next one.
fn wait_in_words(unit: &PrivacyUnit, mode: StartMode) -> String {
    match unit {
        PrivacyUnit::User {
            per: Period::Every(per),
            ..
        } if mode.may_wait() => {
            format!(
                ": the budget of a user is for a whole period of {}",
                clock::format_duration(*per)
            )
        }
        _ => String::new(),
    }
}

/// Refuses to end a ledger that its log can build again. One that it cannot build, for whatever reason, may be replaced.
fn not_restorable(
    settings: &WorkerSettings,
    log: &KafkaLogParams,
    claim: &WitnessClaim,
) -> Result<(), Failure> {
    let built = open_log(log)
        .and_then(|mut log| log.restorable(&settings.ledger, &claim.head, Timestamp::now()));
    match built {
        Err(error @ LedgerLogError::Unavailable { .. }) => Err(error.into()),
        Err(_) => Ok(()),
        Ok(built) => Err(Failure::Ledger(format!(
            "the ledger that --replace would end is not lost: its log, {}, has it up to row {}, the newest that the witness has accepted. \
             `bernstream run` builds it from there, and `bernstream ledger restore` does so without starting a worker; both lose nothing. \
             If it shall end all the same, add --abandon",
            log.records.topic, built.newest
        ))),
    }
}

/// Refuses what would be refused once topics are created, and a ledger that nobody asked to be replaced.
fn foresee_refusal(
    settings: &WorkerSettings,
    input: &str,
    mode: StartMode,
    replaced: ReplacePermission,
) -> Result<(), Failure> {
    let FoundWitness {
        identity: owner,
        accepted: claim,
    } = find_witness(settings)?;
    let is_output_untouched = match settings.output.is_untouched() {
        Ok(is_untouched) => is_untouched,
        Err(error) if error.is_missing() => true,
        Err(error) => return Err(error.into()),
    };
    if !is_output_untouched {
        refuse_foreign_output(
            settings,
            replaced.is_asked_for && claim.is_some() && mode == StartMode::Init,
        )?;
    }
    let prior = PriorState {
        claim: claim.as_ref(),
        is_output_untouched,
    };
    let start = choose_start(settings.bootstrap_scheme(), mode, prior, Timestamp::now())
        .map_err(|error| Failure::Ledger(error.to_string()))?;
    if let Some(end) = settings.windows.end.filter(|end| start.first >= *end) {
        return Err(Failure::Configuration(format!(
            "the first window would start at {}, and the last one ends at {end} (windows.end): nothing would ever be released. For windows \
             of the past add --from, as in --from {}; see `bernstream ledger init --help`",
            start.first,
            settings.windows.grid.origin()
        )));
    }
    if let Some(claim) = claim.as_ref().filter(|_| !replaced.is_asked_for) {
        return Err(Failure::Ledger(format!(
            "another ledger publishes to this output: its row {} is the newest that the witness has accepted. A new ledger takes over \
             at the next block, and the worker of the other one stops for good: if that is lost, or shall end, add --replace; \
             otherwise start where it is, or name another output and witness{}",
            claim.head.sequence,
            settings.ledger_log.as_ref().map_or("", |_| {
                "; if only its folder is lost, no new one is needed: `bernstream run` builds it from its log"
            })
        )));
    }
    if let InputParams::Kafka(params) = &settings.input {
        older_stamps::refuse_older_stamps(settings, params, start.first)?;
    }
    if let (Some(claim), Some(log)) = (&claim, &settings.ledger_log)
        && !replaced.is_abandoned
    {
        not_restorable(settings, log, claim)?;
    }
    let was_claimed = claim.is_some();
    let may_wait = mode.may_wait();
    Ok(shares::foresee_share(
        settings,
        input,
        &ShareRequest {
            owner: &owner,
            was_claimed,
            first: start.first,
            may_wait,
        },
    )?)
}
