//! What `run` would refuse of a ledger, its witness and its log as they are: for `check`, which changes nothing.

use crate::cli::components::{
    input_identity, input_mismatch, promise_mismatch, reads_too_far_back, refuse_foreign_output,
    start_mode,
};
use crate::cli::ledger::FoundWitness;
use crate::cli::open_error::{OpenError, ledger_refused};
use crate::cli::rebuilt::no_claims;
use bernstream_config::WorkerSettings;
use bernstream_kafka::ledger::log::open_log;
use bernstream_ledger as ledger;
use bernstream_ledger::bootstrap::{PriorState, choose_start};
use bernstream_ledger::log::LedgerLog;
use bernstream_ledger::witness::WitnessClaim;
use bernstream_ledger::{Ledger, LedgerError};
use bernstream_synopsis::clock::Timestamp;

/// The name of a witness that a worker would make, in the error of a ledger that it does not know.
const MADE_ANEW: &str = "new, because there is none and the output is empty";

/// Succeeds if a worker could go on with what is there, or begin. With `is_offline` no broker is asked.
///
/// # Errors
///
/// Those of the worker.
pub fn foresee_refusal(settings: &WorkerSettings, is_offline: bool) -> Result<(), OpenError> {
    let recorded = match ledger::ledger_exists(&settings.ledger)? {
        true => Some(Ledger::newest_settings(&settings.ledger)?),
        false => None,
    };
    // A worker misses an input before it looks at what the ledger has promised.
    let input = if is_offline {
        None
    } else {
        Some(input_identity(settings)?)
    };
    if let Some(why) = recorded.and_then(|recorded| promise_mismatch(settings, &recorded)) {
        return Err(ledger_refused(why));
    }
    if is_offline && settings.output.broker().is_some() {
        return Ok(look_at_ledger(settings).map(drop)?);
    }
    if !ledger::ledger_exists(&settings.ledger)? && settings.ledger_log.is_none() {
        refuse_foreign_output(settings, false)?;
    }
    // Before the ledger: a worker that is running writes a row there before it claims it.
    let mut witness = FoundWitness {
        identity: MADE_ANEW.to_owned(),
        accepted: None,
    };
    if let Some(mut found) = settings.output.look_at_witness()? {
        // The identity after reading.
        witness.accepted = found.read()?;
        witness.identity = found.identity()?;
    }
    let accepted = witness.accepted.as_ref();
    let ledger = look_at_ledger(settings)?;
    match &settings.ledger_log {
        Some(log) if !is_offline => {
            check_rebuilding(settings, ledger.as_ref(), &witness, open_log(log)?)?;
        }
        _ => match &ledger {
            Some(ledger) => ledger.check_accepted(&witness.identity, accepted)?,
            // One that is built from its log needs its broker.
            None if settings.ledger_log.is_some() && accepted.is_some() => {}
            None => check_beginning(settings, accepted)?,
        },
    }
    let Some(ledger) = ledger else { return Ok(()) };
    if let Some(why) = reads_too_far_back(settings, &ledger) {
        return Err(ledger_refused(why));
    }
    if input.is_some_and(|input| input != ledger.genesis().input) {
        return Err(ledger_refused(input_mismatch(settings)));
    }
    refuse_foreign_output(settings, ledger.genesis().previous.is_some())
}

/// The ledger, if there is one; nothing of one with the format before, which only a worker rewrites.
fn look_at_ledger(settings: &WorkerSettings) -> Result<Option<Ledger>, LedgerError> {
    if ledger::ledger_exists(&settings.ledger)? {
        Ledger::open_unlocked(&settings.ledger)
    } else {
        Ok(None)
    }
}

/// Checks that a new ledger may begin.
fn check_beginning(
    settings: &WorkerSettings,
    claim: Option<&WitnessClaim>,
) -> Result<(), OpenError> {
    if ledger::ledger_exists(&settings.ledger)? {
        return Ok(());
    }
    refuse_foreign_output(settings, false)?;
    let prior = PriorState {
        claim,
        is_output_untouched: settings.output.is_untouched()?,
    };
    let mode = start_mode(settings);
    let begun = choose_start(settings.bootstrap_scheme(), mode, prior, Timestamp::now());
    begun
        .map(drop)
        .map_err(|error| ledger_refused(error.to_string()))
}

/// Checks that the ledger that the witness follows is there, or can be built from its log.
fn check_rebuilding(
    settings: &WorkerSettings,
    ledger: Option<&Ledger>,
    witness: &FoundWitness,
    mut log: LedgerLog,
) -> Result<(), OpenError> {
    let identity = &witness.identity;
    let Some(accepted) = &witness.accepted else {
        log.read()?;
        if log.has_marks() {
            return Err(no_claims(settings));
        }
        return match ledger {
            Some(ledger) => Ok(ledger.check_accepted(identity, None)?),
            None => check_beginning(settings, None),
        };
    };
    match ledger.map(|ledger| ledger.check_accepted(identity, Some(accepted))) {
        Some(Ok(())) => Ok(()),
        None | Some(Err(LedgerError::ForeignHead { .. })) => Ok(log
            .restorable(&settings.ledger, &accepted.head, Timestamp::now())
            .map(drop)?),
        Some(Err(error)) => Err(error.into()),
    }
}
