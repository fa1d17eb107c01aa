//! The ledger that the witness follows: the one on the disk, or one that is built from its log.

use tracing::{info, warn};

use crate::cli::open_error::{OpenError, refused};
use crate::clock::Timestamp;
use crate::config::{Settings, canonical, diff};
use crate::ledger::log::{self, LedgerLog};
use crate::ledger::witness::{Claim, Witness};
use crate::ledger::{self, Error, Ledger};

/// The ledger of the disk, `existing`, if the witness follows it; otherwise that is built from `log` and takes its place. `None` where
/// nothing was ever claimed: a new pipeline begins.
///
/// # Errors
///
/// If the ledger belongs to another witness; for now, while the log lacks what the witness has accepted.
pub fn newest(
    settings: &Settings,
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
    if let Some(ledger) = existing {
        match ledger.recognise(&witness.identity()?, Some(&accepted)) {
            Err(Error::ForeignHead { found, newest, .. }) => {
                warn!(
                    "the witness has accepted {found}, which the ledger on the disk does not have (newest row: {newest}): it is an \
                     older copy, or another worker was faster; building it from its log"
                );
                ledger.hand_over(log, &accepted.head)?;
            }
            recognised => return Ok(recognised.map(|()| Some(ledger))?),
        }
    } else {
        info!("there is no ledger in {}: building it from its log", settings.ledger.path.display());
    }
    build(settings, &accepted, log).map(Some)
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
    let ledger = Ledger::open(&settings.ledger)?;
    let is_chosen = settings.releases.iter().any(|release| release.auto.is_some());
    if is_chosen && !diff::differences(ledger.settings(), &canonical::recorded(settings)).is_empty() {
        // The file was read before there was a ledger to say what it chose.
        return Err(refused(
            "the ledger was built from its log and has recorded what the file leaves to \"auto\": start again, now with that".into(),
        ));
    }
    Ok(ledger)
}

/// The log says that windows were published, and the witness knows of none.
pub(super) fn no_claims(settings: &Settings) -> OpenError {
    let name = settings.ledger_log.as_ref().map_or(String::new(), |log| log.records.topic.clone());
    ledger::Error::from(log::Error::NoClaims { name }).into()
}
