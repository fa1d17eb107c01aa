//! One step of delivery, which the worker repeats: read the witness, publish what it has accepted, claim the rest.

use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use super::error::SinkError;
use super::publish::Sink;
use bernstream_ledger as ledger;
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{Head, Ledger, Paid, log};
use bernstream_synopsis::clock::Timestamp;

/// The most messages of one step, and so the most that are published again after a crash.
pub const MESSAGES: usize = 512;

/// Outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// The number of published messages.
    pub published: usize,
    /// Rows were claimed; the next step shows whether the witness has accepted them.
    pub has_claimed: bool,
    /// Rows are not claimed yet: that is left to the instance of the ledger that made the last accepted claim, or is not the moment for it,
    /// until `next_claim`.
    pub is_waiting: bool,
    pub next_claim: Option<Timestamp>,
    /// Rows or publications of another worker are now in the ledger too.
    pub has_followed: bool,
    /// When the next accepted message is due.
    pub next_due: Option<Timestamp>,
}

/// Lead by which a step looks ahead. Witness and output are asked, and messages read and checked, before the moment at which they are due:
/// at the moment itself they are only sent, however busy the machine or the brokers are then.
pub struct LookAhead<'a> {
    /// Messages that are due so soon are prepared.
    pub lead: Duration,
    /// Returns at the given moment; `false` if that will not be waited for.
    pub wait: &'a dyn Fn(Timestamp) -> bool,
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
) -> Result<DeliveryProgress, DeliveryError> {
    step_ahead(
        ledger,
        witness,
        sink,
        now,
        &LookAhead {
            lead: Duration::ZERO,
            wait: &|_| true,
        },
    )
}

/// Does what [`step`] does, and also publishes what is due soon, each window at its moment.
///
/// # Errors
///
/// As for [`step`].
pub fn step_ahead(
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
    sink: &mut dyn Sink,
    now: Timestamp,
    ahead: &LookAhead<'_>,
) -> Result<DeliveryProgress, DeliveryError> {
    let read = read_witness(ledger, witness, now)?;
    publish_and_claim(ledger, witness, sink, &read, now, ahead)
}

/// Claim that the witness has accepted, and the ledger has.
#[derive(Clone, Copy, Debug)]
pub struct AcceptedClaim {
    newest: Option<WitnessClaim>,
    begun: Instant,
    has_followed: bool,
}

impl AcceptedClaim {
    /// The head of the witness.
    pub fn head(&self) -> Option<Head> {
        self.newest.map(|claim| claim.head)
    }
}

/// The first half of a step: reads the witness, and takes from the log what others have claimed.
///
/// # Errors
///
/// As for [`step`].
pub fn read_witness(
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
    now: Timestamp,
) -> Result<AcceptedClaim, DeliveryError> {
    let begun = Instant::now();
    let newest = witness.read()?;
    let identity = witness.identity()?;
    // What was accepted while the witness was read is no older than its answer.
    let has_followed =
        ledger.follow_accepted(&identity, newest.as_ref(), now.plus(begun.elapsed()))?;
    ledger.check_accepted(&identity, newest.as_ref())?;
    Ok(AcceptedClaim {
        newest,
        begun,
        has_followed,
    })
}

/// The other half: publishes and claims.
///
/// # Errors
///
/// As for [`step`].
pub fn publish_and_claim(
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
    sink: &mut dyn Sink,
    read: &AcceptedClaim,
    now: Timestamp,
    ahead: &LookAhead<'_>,
) -> Result<DeliveryProgress, DeliveryError> {
    let AcceptedClaim {
        newest,
        begun,
        has_followed,
    } = *read;
    let accepted = read.head();

    let mut progress = DeliveryProgress {
        published: 0,
        has_claimed: false,
        is_waiting: false,
        next_claim: None,
        has_followed,
        next_due: None,
    };
    if let Some(accepted) = &accepted {
        let until = ledger.publishes_until(now);
        // Who follows publishes everything so much later.
        let later = now.since(until);
        let due = ledger.due_messages(accepted, until.plus(ahead.lead), MESSAGES)?;
        let published = publish_due(&due, sink, |due| (ahead.wait)(due.plus(later)));
        let durable = due.get(..published.durable).unwrap_or_default();
        // One transaction for all. After a crash before it, the same bytes are published again.
        if !durable.is_empty() {
            let newest = durable
                .iter()
                .map(|paid| paid.publish_at().plus(later))
                .max();
            ledger.mark_published(durable, newest.map_or(now, |newest| newest.max(now)))?;
        }
        match ledger.mark_in_log(accepted) {
            // The next step tries again.
            Err(error) if error.is_log_unavailable() || error.is_missing() => {}
            marked => marked?,
        }
        if let Some(error) = published.failure {
            return Err(DeliveryError::Sink {
                published: durable.len(),
                error,
            });
        }
        progress.published = durable.len();
        progress.next_due = ledger.next_due(accepted)?.map(|due| due.plus(later));
    }

    if let Some(claim) = ledger.make_claim(accepted.as_ref())? {
        // To have the log hold the rows takes time.
        let now = now.plus(begun.elapsed());
        let moment = ledger.schedule_claim(newest.as_ref(), now)?;
        progress.is_waiting = now < moment;
        if progress.is_waiting {
            progress.next_claim = Some(moment);
        } else {
            ledger.note_claim(now);
            witness.append(&claim)?;
            progress.has_claimed = true;
        }
    }
    Ok(progress)
}

/// Outcome of publishing messages that were due.
#[derive(Debug, Default)]
pub struct PublishOutcome {
    /// Number of them, the first ones, that are durable.
    pub durable: usize,
    /// Why the others are not, if not because their moment was not waited for.
    pub failure: Option<SinkError>,
}

/// Publishes one window after the other, each when `wait` has come to its moment, so that no synopsis of a key comes before an earlier
/// one, whatever fails. If the place was replaced in the meantime, it is not known which of them are there, and none counts.
pub fn publish_due(
    due: &[Paid],
    sink: &mut dyn Sink,
    wait: impl Fn(Timestamp) -> bool,
) -> PublishOutcome {
    let mut published = PublishOutcome::default();
    // The output is asked even if nothing is due: so the probes see brokers that hang before something is.
    let confirmed = sink.confirm_place();
    if due.is_empty() {
        return published;
    }
    if let Err(error) = confirmed {
        return PublishOutcome {
            failure: Some(error),
            ..published
        };
    }
    for window in due.chunk_by(|one, next| one.window() == next.window()) {
        if !window.first().is_none_or(|first| wait(first.publish_at())) {
            break;
        }
        if let Err(unpublished) = sink.publish(window) {
            published.durable += unpublished.durable;
            published.failure = Some(unpublished.error);
            break;
        }
        published.durable += window.len();
    }
    if published.durable > 0
        && let Err(error) = sink.confirm_place()
    {
        return PublishOutcome {
            durable: 0,
            failure: Some(error),
        };
    }
    published
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    #[error(transparent)]
    Witness(#[from] witness::WitnessError),
    /// A failure to publish, and the number of messages that were published and marked before.
    #[error("{error}")]
    Sink { published: usize, error: SinkError },
}

/// Reason of an error, whatever its words are. Two errors with one reason are one outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageReason {
    /// Brokers or a disk do not answer, whoever meets it first.
    Unreachable,
    /// Brokers do not know a topic.
    Missing,
    Log(Discriminant<log::LedgerLogError>),
    Budget(Discriminant<BudgetError>),
}

/// A topic of the ledger that has lost what it had accepted, or a broker that shows less of it than was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostTopic {
    Claims,
    Shares,
}

impl DeliveryError {
    /// Reason of the error.
    pub fn reason(&self) -> OutageReason {
        match self {
            error if error.is_missing() => OutageReason::Missing,
            DeliveryError::Ledger(ledger::LedgerError::Log(log::LedgerLogError::Unavailable {
                ..
            })) => OutageReason::Unreachable,
            DeliveryError::Ledger(ledger::LedgerError::Log(error)) => {
                OutageReason::Log(discriminant(error))
            }
            DeliveryError::Witness(witness::WitnessError::Budget(BudgetError::Unavailable {
                ..
            })) => OutageReason::Unreachable,
            DeliveryError::Witness(witness::WitnessError::Budget(error)) => {
                OutageReason::Budget(discriminant(error))
            }
            DeliveryError::Ledger(_) | DeliveryError::Witness(_) | DeliveryError::Sink { .. } => {
                OutageReason::Unreachable
            }
        }
    }

    /// Loss that it tells of, if nothing is only out of reach.
    pub fn lost_records(&self) -> Option<LostTopic> {
        match self {
            DeliveryError::Ledger(ledger::LedgerError::Log(log::LedgerLogError::NoClaims {
                ..
            })) => Some(LostTopic::Claims),
            DeliveryError::Witness(witness::WitnessError::Budget(BudgetError::Shorter {
                ..
            })) => Some(LostTopic::Shares),
            _ => None,
        }
    }

    /// Returns whether to try again.
    pub fn is_transient(&self) -> bool {
        match self {
            DeliveryError::Ledger(error) => error.is_log_unavailable(),
            DeliveryError::Witness(error) => error.is_transient(),
            DeliveryError::Sink { error, .. } => error.is_transient(),
        }
    }

    /// Returns whether it says that a topic is missing, which after an outage may pass.
    pub fn is_missing(&self) -> bool {
        match self {
            DeliveryError::Ledger(error) => error.is_missing(),
            DeliveryError::Witness(error) => error.is_missing(),
            DeliveryError::Sink { error, .. } => error.is_missing(),
        }
    }

    /// Number of messages that the step published before it failed.
    pub fn published_before(&self) -> usize {
        if let DeliveryError::Sink { published, .. } = self {
            *published
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_that_do_not_answer_are_one_reason_whoever_asks_them() {
        let [name, why, servers] = ["a topic", "no answer", "localhost:9092"].map(str::to_owned);
        let silences = [
            DeliveryError::Ledger(
                log::LedgerLogError::Unavailable {
                    name: name.clone(),
                    why: why.clone(),
                }
                .into(),
            ),
            DeliveryError::Witness(witness::WitnessError::Unavailable {
                name: name.clone(),
                why: why.clone(),
            }),
            DeliveryError::Witness(
                BudgetError::Unavailable {
                    name: name.clone(),
                    why: why.clone(),
                }
                .into(),
            ),
            DeliveryError::Sink {
                published: 0,
                error: crate::ClusterError::Unavailable { servers, why }.into(),
            },
        ];
        assert!(
            silences
                .iter()
                .all(|silence| silence.reason() == OutageReason::Unreachable)
        );
        assert_ne!(
            DeliveryError::Ledger(log::LedgerLogError::NoClaims { name }.into()).reason(),
            OutageReason::Unreachable
        );
    }
}
