//! Witness and sink, with their answers timed: a request that hangs is seen by the readiness probe before it fails.

use super::health::Health;
use bernstream_kafka::sink;
use bernstream_kafka::sink::{OutputTail, Sink};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{StrayCounts, Witness, WitnessClaim};
use bernstream_ledger::{Head, Paid, PublishedMessage};

/// A witness or sink whose requests `health` knows of.
pub(super) struct TimedRequests<'h, T: ?Sized> {
    pub inner: Box<T>,
    pub health: &'h Health,
}

impl<T: ?Sized> TimedRequests<'_, T> {
    fn time_request<A>(&mut self, request: impl FnOnce(&mut T) -> A) -> A {
        self.health.request_begins();
        let answer = request(&mut self.inner);
        self.health.request_ends();
        answer
    }
}

impl<T: Witness + ?Sized> Witness for TimedRequests<'_, T> {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.time_request(T::read)
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.time_request(T::identity)
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.time_request(|witness| witness.append(claim))
    }

    fn remembered(&self) -> Option<Head> {
        self.inner.remembered()
    }

    fn settle(&mut self) {
        self.inner.settle();
    }

    fn strays(&self) -> StrayCounts {
        self.inner.strays()
    }
}

impl<T: Sink + ?Sized> Sink for TimedRequests<'_, T> {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        self.time_request(|sink| sink.publish(paid))
    }

    fn confirm_place(&mut self) -> Result<(), sink::SinkError> {
        self.time_request(T::confirm_place)
    }

    fn read_tail(
        &mut self,
        newest: &[PublishedMessage],
    ) -> Result<Option<OutputTail>, sink::SinkError> {
        self.time_request(|sink| sink.read_tail(newest))
    }
}
