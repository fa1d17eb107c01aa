//! Turns of several workers that share a log: how long this one waits, how far back it may go on, and how it leaves.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tracing::{info, warn};

use super::releasing::ReleaseTask;
use super::{LEAD, PipelineError};
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::DeliveryProgress;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// The pause between two reads of the witness while nothing is due.
const WITNESS_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest pause before a step, even if something is due already.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

impl ReleaseTask<'_> {
    /// Returns whether a moment is so near that nothing else is begun.
    pub(super) fn is_due_soon(&self) -> bool {
        let now = self.clock.now();
        self.next_due
            .is_some_and(|due| due > now && due.minus(LEAD) <= now)
    }

    /// The pause before the witness is read again: until something is due, but not longer than [`WITNESS_INTERVAL`].
    pub(super) fn pause_before_step(&self, progress: &DeliveryProgress) -> Duration {
        if progress.has_claimed || progress.published > 0 {
            return Duration::ZERO;
        }
        // Nothing is drawn beside rows that wait for their moment.
        let turn = match &self.held {
            Some(held) if !progress.is_waiting => self.ledger.draws_from(held.publish_at),
            _ => None,
        };
        let prepared = progress.next_due.map(|due| due.minus(LEAD));
        let next = [prepared, progress.next_claim, turn]
            .into_iter()
            .flatten()
            .min();
        let most = self.ledger.looks_every().unwrap_or(WITNESS_INTERVAL);
        // At the moment itself everything is there to be done.
        match next {
            Some(next) => next.since(self.clock.now()).max(LEAST_PAUSE).min(most),
            None => most,
        }
    }

    /// Returns whether this worker, which follows another one, is about to draw a window that is due at `publish_at`, and has to compare the
    /// witness with what was published before.
    pub(super) fn must_compare(&self, publish_at: Timestamp) -> bool {
        let draws_from = self.ledger.draws_from(publish_at);
        draws_from.is_some_and(|from| from <= self.clock.now()) && !self.comparison.is_fresh()
    }

    /// Returns whether the releases of a window begin no earlier than what can still be charged. Rows of other workers may have closed what
    /// could be when reading began, and what was read of that is in the window.
    pub(super) fn is_reach_chargeable(&self, window: Span) -> bool {
        let live_from = self.ledger.live_from();
        self.plan.releases.iter().all(|release| {
            self.plan
                .span_of(release, window, self.beginning.first_covered)
                .start
                >= live_from
        })
    }

    /// Claims what is drawn, if that may be done at once, and tells the workers that follow that this one ends; unless the brokers do not
    /// answer: that would take longer than they wait. Where a part of this worker has failed, nothing is claimed any more.
    pub(super) fn resign_turn(&mut self) {
        if !self.ledger.is_shared() || !self.health.publishing.load(Relaxed) {
            return;
        }
        let mut has_claimed = false;
        if self.ledger.is_acting() && self.stop.is_asked_from_outside() {
            match self.deliver_once_more() {
                Ok(progress) => has_claimed = progress.has_claimed,
                Err(error) => {
                    return warn!(
                        "cannot claim or publish once more before this worker ends: {error}"
                    );
                }
            }
        }
        match self.ledger.resign_turn(has_claimed, self.clock.now()) {
            Ok(true) => info!("handed over to the workers that follow, if there are any"),
            Ok(false) => {}
            Err(error) => warn!("cannot tell the workers that follow that this one ends: {error}"),
        }
    }

    fn deliver_once_more(&mut self) -> Result<DeliveryProgress, PipelineError> {
        let now = self.clock.now();
        let progress = deliver::step(&mut self.ledger, &mut self.witness, &mut self.sink, now)?;
        self.report_step(&progress)?;
        Ok(progress)
    }
}
