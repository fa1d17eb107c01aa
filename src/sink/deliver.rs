//! One step of delivery, which the worker repeats: read the witness, publish what it has accepted, claim the rest.

use super::error::Error as SinkError;
use super::publish::Sink;
use crate::clock::Timestamp;
use crate::ledger;
use crate::ledger::witness::{self, Witness};
use crate::ledger::{Head, Ledger, Paid};

/// The most messages of one step, and so the most that are published again after a crash.
const BATCH: usize = 64;

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of published messages.
    pub published: usize,
    /// Rows were claimed; the next step shows whether the witness has accepted them.
    pub has_claimed: bool,
    /// Rows are not claimed yet: for some seconds that is left to the instance of the ledger that made the last accepted claim.
    pub is_waiting: bool,
    /// When the next accepted message is due.
    pub next_due: Option<Timestamp>,
}

/// Publishes what is paid for, accepted and due, and claims the rows that are not accepted yet.
///
/// Nothing is published before the witness has accepted it, which only reading the witness shows. So a window is never published
/// in two versions, even with several workers, copies of ledgers, and crashes at any point.
///
/// # Errors
///
/// If the error is transient, the step can be repeated later. Otherwise the worker must stop.
pub fn step(
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
    sink: &mut dyn Sink,
    now: Timestamp,
) -> Result<Progress, Error> {
    let newest = witness.read()?;
    ledger.recognise(&witness.identity()?, newest.as_ref())?;
    let accepted = newest.map(|claim| claim.head);

    let mut progress = Progress { published: 0, has_claimed: false, is_waiting: false, next_due: None };
    if let Some(accepted) = &accepted {
        let mut published = Vec::new();
        let done = publish(ledger, accepted, sink, now, &mut published);
        // One transaction for all. After a crash before it, the same bytes are published again: also if the place was replaced
        // in the meantime, for then it is not known which of them are there.
        if !published.is_empty() {
            sink.confirm()?;
            ledger.mark_published(&published, now)?;
        }
        done?;
        progress.published = published.len();
        progress.next_due = ledger.next_due(accepted)?;
    }

    if let Some(claim) = ledger.claim(accepted.as_ref())? {
        progress.is_waiting = ledger.must_wait(newest.as_ref(), now);
        if !progress.is_waiting {
            witness.append(&claim)?;
            progress.has_claimed = true;
        }
    }
    Ok(progress)
}

/// Publishes what is due, in order, up to [`BATCH`] messages.
fn publish(
    ledger: &Ledger,
    accepted: &Head,
    sink: &mut dyn Sink,
    now: Timestamp,
    published: &mut Vec<Paid>,
) -> Result<(), Error> {
    while published.len() < BATCH
        && let Some(paid) = ledger.deliverable(accepted, published.last(), now)?
    {
        if published.is_empty() {
            sink.confirm()?;
        }
        sink.publish(&paid)?;
        published.push(paid);
    }
    Ok(())
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    #[error(transparent)]
    Witness(#[from] witness::Error),
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl Error {
    /// Whether to try again.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Ledger(_) => false,
            Error::Witness(error) => error.is_transient(),
            Error::Sink(error) => error.is_transient(),
        }
    }
}
