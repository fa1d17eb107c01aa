//! A ledger and its witness: what a command claims and recognises.

use crate::cli::failure::Failure;
use bernstream_config::WorkerSettings;
use bernstream_kafka::ledger::log::open_log;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{Head, Ledger, LedgerError};

/// Claims the newest row at once, the first of which fences earlier ledgers; then checks whether another ledger was faster. Where
/// there is a log, it holds the row before.
pub(in crate::cli) fn claim_newest_row(
    settings: &WorkerSettings,
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
) -> Result<(), Failure> {
    if let Some(log) = &settings.ledger_log {
        ledger.attach_log(open_log(log)?);
    }
    let accepted = recognised_head(ledger, witness)?;
    if let Some(claim) = ledger.make_claim(accepted.as_ref())? {
        // After a transient error the worker claims again.
        match witness.append(&claim) {
            Err(error) if !error.is_transient() => return Err(error.into()),
            _ => {}
        }
    }
    recognised_head(ledger, witness).map(drop)
}

/// The head of the witness, if this ledger may continue from it.
pub(in crate::cli) fn recognised_head(
    ledger: &Ledger,
    witness: &mut dyn Witness,
) -> Result<Option<Head>, Failure> {
    let accepted = witness.read()?;
    ledger.check_accepted(&witness.identity()?, accepted.as_ref())?;
    Ok(accepted.map(|claim| claim.head))
}

/// A witness as it was found.
#[derive(Default)]
pub(in crate::cli) struct FoundWitness {
    pub identity: String,
    pub accepted: Option<WitnessClaim>,
}

/// Reads the witness of a pipeline. One that is missing has no identity, and has accepted nothing.
pub(in crate::cli) fn find_witness(settings: &WorkerSettings) -> Result<FoundWitness, Failure> {
    match settings.output.open_witness() {
        Ok(mut witness) => Ok(FoundWitness {
            identity: witness.identity()?,
            accepted: witness.read()?,
        }),
        Err(error) if error.is_missing() => Ok(FoundWitness::default()),
        Err(error) => Err(error.into()),
    }
}

/// The head of a witness that a ledger may continue from.
pub(super) struct RecognisedHead {
    pub head: Option<Head>,
    /// Number of rows of another worker between the ledger and the head.
    pub rows_behind: u64,
}

/// The head of the witness, if this ledger may continue from it, or only lacks what another worker has claimed since and its log has.
pub(super) fn recognised_or_behind(
    settings: &WorkerSettings,
    ledger: &Ledger,
    witness: &mut dyn Witness,
) -> Result<RecognisedHead, Failure> {
    let accepted = witness.read()?;
    let head = accepted.as_ref().map(|claim| claim.head);
    let error = match ledger.check_accepted(&witness.identity()?, accepted.as_ref()) {
        Ok(()) => {
            return Ok(RecognisedHead {
                head,
                rows_behind: 0,
            });
        }
        Err(error) => error,
    };
    if let LedgerError::ForeignHead { .. } = error
        && let Some(accepted) = head
        && let Some(log) = &settings.ledger_log
        && let Some(rows_behind) = ledger.rows_behind(&mut open_log(log)?, accepted)?
    {
        return Ok(RecognisedHead { head, rows_behind });
    }
    Err(error.into())
}
