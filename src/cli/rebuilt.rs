//! The ledger that the witness follows: the one on the disk, or one that is built from its log.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracing::{info, warn};

use crate::cli::open_error::{OpenError, refused};
use crate::clock::Timestamp;
use crate::config::{Settings, canonical, diff};
use crate::ledger::log::{self, Apart, LedgerLog};
use crate::ledger::witness::{Claim, Witness};
use crate::ledger::{self, Error, Ledger};
use crate::synopsis::description::Definition;

/// The ledger of the disk, `existing`, if the witness follows it; otherwise that is built from `log` and takes its place. `None` where
/// nothing was ever claimed: a new pipeline begins.
///
/// # Errors
///
/// If the ledger belongs to another witness; for now, while the log lacks what the witness has accepted.
pub fn newest(
    (settings, has_read_again): (&Settings, &AtomicBool),
    existing: Option<Ledger>,
    witness: &mut dyn Witness,
    log: &mut LedgerLog,
) -> Result<Option<Ledger>, OpenError> {
    let Some(accepted) = witness.read()? else {
        log.read()?;
        // Whatever was published was claimed before.
        return match log.has_marks() {
            true => Err(no_claims(settings)),
            false => Ok(existing),
        };
    };
    let Some(ledger) = existing else {
        info!("there is no ledger in {}: building it from its log", settings.ledger.path.display());
        return as_chosen(settings, has_read_again, build(settings, &accepted, log)?).map(Some);
    };
    match ledger.recognise(&witness.identity()?, Some(&accepted)) {
        Err(Error::ForeignHead { .. }) => {
            let ledger = match caught_up(ledger, &accepted, log)? {
                Some(ledger) => ledger,
                None => build(settings, &accepted, log)?,
            };
            as_chosen(settings, has_read_again, ledger).map(Some)
        }
        recognised => Ok(recognised.map(|()| Some(ledger))?),
    }
}

/// The ledger of the disk with the rows up to `accepted`, which it did not have; `None` if a new one must be built.
fn caught_up(mut ledger: Ledger, accepted: &Claim, log: &mut LedgerLog) -> Result<Option<Ledger>, OpenError> {
    let (found, newest) = (accepted.head.sequence, ledger.head().sequence);
    // Of what the log lacks this disk may have something.
    ledger.hand_over(log, &accepted.head)?;
    match ledger.catch_up(log, accepted.head, Timestamp::now())? {
        None => {
            info!(
                "the ledger on the disk was behind, with row {newest} as its newest: took the rows up to {found}, which the witness has \
                 accepted, from its log"
            );
            return Ok(Some(ledger));
        }
        Some(Apart::Lost) => warn!(
            "the ledger on the disk has rows that were not accepted, for another worker was faster (newest here: {newest}, accepted: \
             {found}): building it from its log"
        ),
        Some(Apart::Gone) => warn!(
            "the ledger on the disk is an older copy (newest row: {newest}, accepted: {found}), and its log does not have all rows \
             between these any more: building it from the log"
        ),
    }
    Ok(None)
}

fn build(settings: &Settings, accepted: &Claim, log: &mut LedgerLog) -> Result<Ledger, OpenError> {
    let built = log.restore(&settings.ledger, &accepted.head, Timestamp::now())?;
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
fn as_chosen(settings: &Settings, has_read_again: &AtomicBool, ledger: Ledger) -> Result<Ledger, OpenError> {
    let is_chosen = settings.privacy.definition == Definition::Gaussian
        || settings.releases.iter().any(|release| release.auto.is_some());
    let differs = || !diff::differences(ledger.settings(), &canonical::recorded(settings)).is_empty();
    if is_chosen && differs() && !has_read_again.swap(true, Relaxed) {
        let why = "the ledger has taken from its log what the program had chosen: start again, now with that";
        return Err(refused(why.to_owned()).about_choices());
    }
    Ok(ledger)
}

/// The log says that windows were published, and the witness knows of none.
pub(super) fn no_claims(settings: &Settings) -> OpenError {
    let name = settings.ledger_log.as_ref().map_or(String::new(), |log| log.records.topic.clone());
    ledger::Error::from(log::Error::NoClaims { name }).into()
}
