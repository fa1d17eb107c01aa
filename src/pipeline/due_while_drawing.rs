//! What becomes due while a window is drawn: a thread that does nothing else publishes it at its moment, however long the draw takes.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use tracing::Dispatch;

use super::{Error, LEAD, Releasing, Stop};
use crate::clock::{ScheduleClock, Timestamp};
use crate::ledger::witness::Witness;
use crate::ledger::{Head, Paid};
use crate::sink::Sink;
use crate::sink::deliver::{self, MESSAGES};

/// The messages of the next moment: paid for and accepted.
pub(super) struct DueWhileDrawing {
    accepted: Head,
    moment: Timestamp,
    messages: Vec<Paid>,
}

impl Releasing<'_> {
    /// The messages that are due next, if this worker publishes them at their moment.
    pub(super) fn due_while_drawing(&self) -> Result<Option<DueWhileDrawing>, Error> {
        let now = self.clock.now();
        let is_ours = self.ledger.publishes_until(now) == now;
        let (Some(accepted), Some(moment), true) = (self.accepted_head, self.next_due, is_ours) else {
            return Ok(None);
        };
        let messages = self.ledger.deliverable(&accepted, moment, MESSAGES)?;
        Ok(Some(DueWhileDrawing { accepted, moment, messages }))
    }

    /// Marks what was published beside a draw. What was not is published by the next step, which meets the failure again.
    pub(super) fn mark_published_while_drawing(&mut self, due: &DueWhileDrawing, count: usize) -> Result<(), Error> {
        let Some(durable) = due.messages.get(..count).filter(|durable| !durable.is_empty()) else { return Ok(()) };
        self.ledger.mark_published(durable, self.clock.now().max(due.moment))?;
        self.published_while_drawing += count;
        self.next_due = self.ledger.next_due(&due.accepted)?;
        Ok(())
    }
}

impl DueWhileDrawing {
    /// Draws, and meanwhile publishes the messages in a thread of their own, which logs to where the caller does. What was drawn, and how
    /// many messages are durable.
    pub fn publish_beside<T>(
        &self,
        (witness, sink): (&mut (dyn Witness + Send), &mut (dyn Sink + Send)),
        clock: &ScheduleClock,
        stop: &Stop,
        draw: impl FnOnce() -> T,
    ) -> Result<(T, usize), Error> {
        let log = tracing::dispatcher::get_default(Dispatch::clone);
        thread::scope(|scope| {
            let (drawing, ended) = mpsc::channel();
            let publishing = scope.spawn(move || {
                tracing::dispatcher::with_default(&log, || self.publish(&ended, witness, sink, clock, stop))
            });
            let drawn = draw();
            drop(drawing);
            let durable = publishing.join().map_err(|_| Error::Panicked)?;
            Ok((drawn, durable))
        })
    }

    /// Publishes the messages at their moment, if the draw lasts until shortly before it, and the witness then says what it said before.
    /// How many are durable.
    fn publish(
        &self,
        draw: &Receiver<Infallible>,
        witness: &mut dyn Witness,
        sink: &mut dyn Sink,
        clock: &ScheduleClock,
        stop: &Stop,
    ) -> usize {
        let until = self.moment.minus(LEAD).since(clock.now());
        let Err(RecvTimeoutError::Timeout) = draw.recv_timeout(until) else { return 0 };
        let newest = witness.read().ok().flatten().map(|claim| claim.head);
        if newest != Some(self.accepted) || witness.remembered().is_some() {
            return 0;
        }
        let durable = deliver::publish(&self.messages, sink, |moment| stop.wait_until(moment, clock)).durable;
        if durable > 0 && sink.confirm().is_err() { 0 } else { durable }
    }
}
