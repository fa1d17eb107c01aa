//! A ledger and its witness: what a command claims and recognises.

use crate::cli::failure::Failure;
use bernstream_config::Settings;
use bernstream_kafka::ledger::log::open_log;
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{Error, Head, Ledger};

/// Claims the newest row at once, the first of which fences earlier ledgers; then checks whether another ledger was faster. Where
/// there is a log, it holds the row before.
pub(in crate::cli) fn claim(
    settings: &Settings,
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
) -> Result<(), Failure> {
    if let Some(log) = &settings.ledger_log {
        ledger.attach_log(open_log(log)?);
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
pub(in crate::cli) fn recognised(
    ledger: &Ledger,
    witness: &mut dyn Witness,
) -> Result<Option<Head>, Failure> {
    let accepted = witness.read()?;
    ledger.recognise(&witness.identity()?, accepted.as_ref())?;
    Ok(accepted.map(|claim| claim.head))
}

/// The same. A ledger that only lacks what another worker has claimed since, and its log has, may go on too: also by how many rows it is behind.
pub(in crate::cli) fn recognised_or_behind(
    settings: &Settings,
    ledger: &Ledger,
    witness: &mut dyn Witness,
) -> Result<(Option<Head>, u64), Failure> {
    let accepted = witness.read()?;
    match ledger.recognise(&witness.identity()?, accepted.as_ref()) {
        Ok(()) => Ok((accepted.map(|claim| claim.head), 0)),
        Err(error) => {
            let (Error::ForeignHead { .. }, Some(claim), Some(log)) =
                (&error, accepted, &settings.ledger_log)
            else {
                return Err(error.into());
            };
            match ledger.rows_behind(&mut open_log(log)?, claim.head)? {
                Some(rows) => Ok((Some(claim.head), rows)),
                None => Err(error.into()),
            }
        }
    }
}
