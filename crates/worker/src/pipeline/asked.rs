//! Witness and sink, with their answers timed: a request that hangs is seen by the readiness probe before it fails.

use super::health::Health;
use bernstream_kafka::sink;
use bernstream_kafka::sink::{Sink, Tail};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Claim, Strays, Witness};
use bernstream_ledger::{Head, Paid, PublishedMessage};

/// A witness or sink whose requests `health` knows of.
pub(super) struct TimedRequests<'h, T: ?Sized> {
    pub inner: Box<T>,
    pub health: &'h Health,
}

impl<T: ?Sized> TimedRequests<'_, T> {
    fn timed<A>(&mut self, request: impl FnOnce(&mut T) -> A) -> A {
        self.health.ask();
        let answer = request(&mut self.inner);
        self.health.rest();
        answer
    }
}

impl<T: Witness + ?Sized> Witness for TimedRequests<'_, T> {
    fn read(&mut self) -> Result<Option<Claim>, witness::Error> {
        self.timed(T::read)
    }

    fn identity(&mut self) -> Result<String, witness::Error> {
        self.timed(T::identity)
    }

    fn append(&mut self, claim: &Claim) -> Result<(), witness::Error> {
        self.timed(|witness| witness.append(claim))
    }

    fn remembered(&self) -> Option<Head> {
        self.inner.remembered()
    }

    fn settle(&mut self) {
        self.inner.settle();
    }

    fn strays(&self) -> Strays {
        self.inner.strays()
    }
}

impl<T: Sink + ?Sized> Sink for TimedRequests<'_, T> {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        self.timed(|sink| sink.publish(paid))
    }

    fn confirm(&mut self) -> Result<(), sink::Error> {
        self.timed(T::confirm)
    }

    fn tail(&mut self, newest: &[PublishedMessage]) -> Result<Option<Tail>, sink::Error> {
        self.timed(|sink| sink.tail(newest))
    }
}
