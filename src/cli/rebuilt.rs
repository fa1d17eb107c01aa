//! The ledger that the witness follows: the one on the disk, or one that is built from its log.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracing::{info, warn};

use crate::cli::open_error::{OpenError, ledger_refused};
use bernstream_config::{WorkerSettings, canonical, diff};
use bernstream_kafka::sink::{OutputTail, Sink, output};
use bernstream_ledger as ledger;
use bernstream_ledger::log;
use bernstream_ledger::log::{AppendOutcome, CannotAppend, LedgerLog};
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{Evidence, Head, Ledger, LedgerError, PublishedMessage, WitnessStanding};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::PrivacyDefinition;

/// The ledger of the disk, `existing`, if the witness follows it; otherwise that is built from `log` and takes its place. `None` where
/// nothing was ever claimed: a new pipeline begins.
///
/// # Errors
///
/// If the ledger belongs to another witness, or the witness follows other rows than were published; for now, while the log lacks what the
/// witness has accepted.
pub fn newest_ledger(
    settings: &WorkerSettings,
    has_read_again: &AtomicBool,
    existing: Option<Ledger>,
    witness: &mut dyn Witness,
    log: &mut LedgerLog,
    sink: &mut dyn Sink,
) -> Result<Option<Ledger>, OpenError> {
    // Before the witness: whatever was published was claimed before.
    let messages = existing
        .as_ref()
        .map(Ledger::newest_messages)
        .transpose()?
        .unwrap_or_default();
    let evidence = Evidence::gather(tail_of_output(sink, &messages)?.rows(), Some(&mut *log))?;
    let Some(accepted) = witness.read()? else {
        let Some(ledger) = existing else {
            return if log.has_marks() {
                Err(no_claims(settings))
            } else {
                Ok(None)
            };
        };
        ledger.check_accepted(&witness.identity()?, None)?;
        return Ok(Some(ledger));
    };
    let mut is_new = true;
    let ledger = match existing {
        None => {
            info!(
                "there is no ledger in {}: building it from its log",
                settings.ledger.path.display()
            );
            build_from_log(settings, accepted.head, log)?
        }
        Some(ledger) => match ledger.check_accepted(&witness.identity()?, Some(&accepted)) {
            Err(LedgerError::ForeignHead { .. }) => {
                ledger.check_gives_way(log, accepted.head, witness.remembered(), &evidence)?;
                move_to(settings, ledger, accepted.head, log)?
            }
            recognised => {
                recognised?;
                is_new = false;
                ledger
            }
        },
    };
    log.read()?;
    let ahead = ledger.row_to_take(log, Some(&accepted.head), witness.remembered(), &evidence)?;
    let ledger = match ahead {
        Some(newest) => {
            info!(
                "the ledger log has rows up to {} that the witness has not accepted, or not any more (newest: {}): they are claimed, the same \
                 bytes, before anything is drawn",
                newest.sequence, accepted.head.sequence
            );
            move_to(settings, ledger, newest, log)?
        }
        None => ledger,
    };
    if is_new || ahead.is_some() {
        refuse_other_choices(settings, has_read_again, ledger).map(Some)
    } else {
        Ok(Some(ledger))
    }
}

/// The end of the output; nothing if it may not be read.
///
/// # Errors
///
/// If it cannot be reached.
fn tail_of_output(
    sink: &mut dyn Sink,
    newest: &[PublishedMessage],
) -> Result<OutputTail, OpenError> {
    let Some(tail) = sink.read_tail(newest).map_err(output::OutputError::from)? else {
        warn!(
            "the output may not be read by this worker, so it does not notice if the witness has lost claims on what is there: give it the \
             right to read the output"
        );
        return Ok(OutputTail::default());
    };
    Ok(tail)
}

/// Refuses a ledger without a log that lacks rows which were published: nobody else has them.
///
/// # Errors
///
/// [`LedgerError::LostClaims`] if it does, or if witness or output cannot be read.
pub fn refuse_behind(
    ledger: &Ledger,
    witness: &mut dyn Witness,
    sink: &mut dyn Sink,
) -> Result<(), OpenError> {
    let evidence = Evidence::gather(
        tail_of_output(sink, &ledger.newest_messages()?)?.rows(),
        None,
    )?;
    let accepted = witness.read()?.map(|claim| claim.head);
    // What is foreign to it is refused when it is to publish.
    if accepted.is_some_and(|head| !ledger.contains(&head).unwrap_or(false)) {
        return Ok(());
    }
    match ledger.standing_of_witness(accepted.as_ref(), witness.remembered(), &evidence)? {
        WitnessStanding::Unknown(shown) => {
            Err(LedgerError::lost_claims(&shown, accepted.as_ref()).into())
        }
        WitnessStanding::Agrees | WitnessStanding::Behind(_) => Ok(()),
    }
}

/// The ledger with the rows up to `newest`, which it did not have: appended, or built anew.
fn move_to(
    settings: &WorkerSettings,
    ledger: Ledger,
    newest: Head,
    log: &mut LedgerLog,
) -> Result<Ledger, OpenError> {
    match catch_up_with(ledger, newest, log)? {
        Some(ledger) => Ok(ledger),
        None => build_from_log(settings, newest, log),
    }
}

/// The ledger of the disk with the rows up to `accepted`, which it did not have; `None` if a new one must be built.
fn catch_up_with(
    mut ledger: Ledger,
    accepted: Head,
    log: &mut LedgerLog,
) -> Result<Option<Ledger>, OpenError> {
    let found = accepted.sequence;
    let newest = ledger.head().sequence;
    // Of what the log lacks this disk may have something.
    ledger.fill_other_log(log, &accepted)?;
    match ledger.catch_up(log, accepted, Timestamp::now())? {
        AppendOutcome::Appended => {
            info!(
                "the ledger on the disk was behind, with row {newest} as its newest: took the rows up to {found}, which the witness has \
                 accepted, from its log"
            );
            return Ok(Some(ledger));
        }
        AppendOutcome::Refused(CannotAppend::Lost) => warn!(
            "the ledger on the disk has rows that were not accepted, for another worker was faster (newest here: {newest}, accepted: \
             {found}): building it from its log"
        ),
        AppendOutcome::Refused(CannotAppend::Gone) => warn!(
            "the ledger on the disk is an older copy (newest row: {newest}, accepted: {found}), and its log does not have all rows \
             between these any more: building it from the log"
        ),
    }
    Ok(None)
}

fn build_from_log(
    settings: &WorkerSettings,
    accepted: Head,
    log: &mut LedgerLog,
) -> Result<Ledger, OpenError> {
    let built = log.restore_ledger(&settings.ledger, &accepted, Timestamp::now())?;
    let checkpoint = built.checkpoint.unwrap_or_default();
    info!(
        rows = built.rows,
        newest = built.newest,
        unpublished = built.unpublished,
        checkpoint,
        "built the ledger from its log"
    );
    Ok(Ledger::open(&settings.ledger)?)
}

/// The ledger, which has rows that it had not when the settings were read: unless these must be read again for what it says of `"auto"`,
/// or of a Gaussian total, of which an earlier version of the program may have derived less.
fn refuse_other_choices(
    settings: &WorkerSettings,
    has_read_again: &AtomicBool,
    ledger: Ledger,
) -> Result<Ledger, OpenError> {
    let is_chosen = settings.privacy.definition == PrivacyDefinition::Gaussian
        || settings
            .releases
            .iter()
            .any(|release| release.auto.is_some());
    if is_chosen
        && !diff::setting_differences(ledger.settings(), &canonical::recorded_text(settings))
            .is_empty()
        && !has_read_again.swap(true, Relaxed)
    {
        let why = "the ledger has taken from its log what the program had chosen: start again, now with that";
        return Err(ledger_refused(why.to_owned()).about_choices());
    }
    Ok(ledger)
}

/// The log says that windows were published, and the witness knows of none.
pub(super) fn no_claims(settings: &WorkerSettings) -> OpenError {
    let name = settings
        .ledger_log
        .as_ref()
        .map_or(String::new(), |log| log.records.topic.clone());
    ledger::LedgerError::from(log::LedgerLogError::NoClaims { name }).into()
}
