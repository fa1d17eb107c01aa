//! Publishing at its moment, by a thread that does nothing else, what is due next while a window is drawn. What is due after that waits
//! for the draw.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use tracing::Dispatch;

use super::health::DeliveryReport;
use super::releasing::ReleaseTask;
use super::{LEAD, PipelineError, SealedWindow, StopRequest, WindowTerms};
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::{MESSAGES, PublishOutcome};
use bernstream_ledger::witness;
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{Head, Paid};
use bernstream_release::window::Window;
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};

/// The messages of the next moment: paid for and accepted.
struct DueWhileDrawing {
    accepted: Head,
    /// The identity of the witness that has accepted them.
    witness: String,
    moment: Timestamp,
    messages: Vec<Paid>,
}

/// The result of publishing while a window is drawn.
#[derive(Clone, Copy, Default)]
struct PublishedWhileDrawing {
    /// The number of messages, from the first on, that are durable.
    durable: usize,
    /// Witness or output have failed: the witness is compared with what was published before anything else is.
    has_failed: bool,
}

/// A window that was sealed, or why it was not, and what was published meanwhile.
struct SealedBesidePublication {
    sealed: Result<SealedWindow, PipelineError>,
    published: PublishedWhileDrawing,
}

impl ReleaseTask<'_> {
    /// Draws and seals a window, and meanwhile publishes what is due next.
    pub(super) fn seal_and_publish_due(
        &mut self,
        window: &Window,
        terms: &WindowTerms,
    ) -> Result<SealedWindow, PipelineError> {
        let due = self.due_while_drawing()?;
        let ReleaseTask {
            plan,
            ledger,
            generators,
            health,
            witness,
            sink,
            clock,
            stop,
            ..
        } = &mut *self;
        let Some(due) = due else {
            return plan.seal_window(window, terms, ledger, generators()?, health);
        };
        let SealedBesidePublication { sealed, published } =
            due.publish_beside(witness, sink, clock, stop, || {
                plan.seal_window(window, terms, ledger, generators()?, health)
            })?;
        self.mark_published_while_drawing(&due, published)?;
        sealed
    }

    /// The messages that are due next, if this worker publishes them at their moment.
    fn due_while_drawing(&self) -> Result<Option<DueWhileDrawing>, PipelineError> {
        let now = self.clock.now();
        if self.ledger.publishes_until(now) != now {
            return Ok(None);
        }
        let Some(accepted) = self.accepted_head else {
            return Ok(None);
        };
        let Some(moment) = self.next_due else {
            return Ok(None);
        };
        let messages = self.ledger.due_messages(&accepted, moment, MESSAGES)?;
        let witness = self.ledger.genesis().witness.clone();
        Ok(Some(DueWhileDrawing {
            accepted,
            witness,
            moment,
            messages,
        }))
    }

    /// Marks what was published beside a draw. What was not is published by the next step, which meets the failure again.
    fn mark_published_while_drawing(
        &mut self,
        due: &DueWhileDrawing,
        published: PublishedWhileDrawing,
    ) -> Result<(), PipelineError> {
        if published.has_failed {
            self.comparison.begin_again();
        }
        let Some(durable) = due
            .messages
            .get(..published.durable)
            .filter(|durable| !durable.is_empty())
        else {
            return Ok(());
        };
        self.ledger
            .mark_published(durable, self.clock.now().max(due.moment))?;
        self.metrics.published.inc_by(durable.len() as u64);
        self.next_due = self.ledger.next_due(&due.accepted)?;
        let report = DeliveryReport {
            has_published: true,
            next_due: self.next_due.map(|due| self.to_worker_clock(due)),
            ..DeliveryReport::default()
        };
        self.health.record_delivery(&report, Timestamp::now());
        Ok(())
    }
}

impl DueWhileDrawing {
    /// Seals a window, and meanwhile publishes the messages in a thread of their own, which logs to where the caller does.
    fn publish_beside(
        &self,
        witness: &mut (dyn Witness + Send),
        sink: &mut (dyn Sink + Send),
        clock: &ScheduleClock,
        stop: &StopRequest,
        seal: impl FnOnce() -> Result<SealedWindow, PipelineError>,
    ) -> Result<SealedBesidePublication, PipelineError> {
        let log = tracing::dispatcher::get_default(Dispatch::clone);
        thread::scope(|scope| {
            let (drawing, ended) = mpsc::channel();
            let publishing = scope.spawn(move || {
                tracing::dispatcher::with_default(&log, || {
                    self.publish_at_moment(&ended, witness, sink, clock, stop)
                })
            });
            let sealed = seal();
            drop(drawing);
            let published = publishing.join().map_err(|_| PipelineError::Panicked)?;
            Ok(SealedBesidePublication { sealed, published })
        })
    }

    /// Publishes the messages at their moment, if the draw lasts until shortly before it, and the same witness then says what it said
    /// before.
    fn publish_at_moment(
        &self,
        draw: &Receiver<Infallible>,
        witness: &mut dyn Witness,
        sink: &mut dyn Sink,
        clock: &ScheduleClock,
        stop: &StopRequest,
    ) -> PublishedWhileDrawing {
        let until = self.moment.minus(LEAD).since(clock.now());
        if !matches!(draw.recv_timeout(until), Err(RecvTimeoutError::Timeout)) {
            return PublishedWhileDrawing::default();
        }
        match self.is_still_accepted(witness) {
            Ok(true) => {
                let PublishOutcome { durable, failure } =
                    deliver::publish_due(&self.messages, sink, |moment| {
                        stop.wait_until(moment, clock)
                    });
                PublishedWhileDrawing {
                    durable,
                    has_failed: failure.is_some(),
                }
            }
            Ok(false) => PublishedWhileDrawing::default(),
            Err(_) => PublishedWhileDrawing {
                durable: 0,
                has_failed: true,
            },
        }
    }

    fn is_still_accepted(&self, witness: &mut dyn Witness) -> Result<bool, witness::WitnessError> {
        let newest = witness.read()?.map(|claim| claim.head);
        let identity = witness.identity()?;
        Ok(newest == Some(self.accepted)
            && witness.remembered().is_none()
            && identity == self.witness)
    }
}
