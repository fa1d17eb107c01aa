//! Why clients cannot reach their brokers: librdkafka reports it in its log only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;

use crate::connection_failure::ConnectionFailure;

/// Time for which a failure counts as recent. A client repeats the same one only after 30 s.
const RECENT: Duration = Duration::from_secs(60);

/// Longest time for which one broker may reject what others accept, while credentials are changed at one after the other.
const LONGEST_REJECTION: Duration = Duration::from_secs(600);

/// The latest failures and answers of all clients of a cluster.
#[derive(Debug, Default)]
struct ConnectionHistory {
    /// The latest failure; a permanent one takes precedence.
    failure: Option<ConnectionFailure>,
    failed_at: Option<Instant>,
    /// Since when permanent failures have followed each other.
    rejected_since: Option<Instant>,
    answered_at: Option<Instant>,
}

fn is_recent(time: Option<Instant>, now: Instant) -> bool {
    time.is_some_and(|time| now.saturating_duration_since(time) < RECENT)
}

impl ConnectionHistory {
    fn recent_failure(&self, now: Instant) -> Option<&ConnectionFailure> {
        self.failure
            .as_ref()
            .filter(|_| is_recent(self.failed_at, now))
    }

    fn is_rejected(&self, now: Instant) -> bool {
        self.recent_failure(now)
            .is_some_and(ConnectionFailure::is_permanent)
    }

    /// Returns whether a broker rejects the client, and none has answered.
    fn is_denied(&self, now: Instant) -> bool {
        self.is_rejected(now) && !is_recent(self.answered_at, now)
    }

    /// Returns whether no waiting mends it: no broker has answered, or one has rejected what others accept for too long.
    fn is_permanent(&self, now: Instant) -> bool {
        let is_lasting = self
            .rejected_since
            .is_some_and(|since| now.saturating_duration_since(since) >= LONGEST_REJECTION);
        self.is_denied(now) || self.is_rejected(now) && is_lasting
    }

    /// A permanent failure is not replaced by the disconnect that follows it.
    fn add(&mut self, failure: ConnectionFailure, now: Instant) {
        let was_rejected = self.is_rejected(now);
        if !failure.is_permanent() && was_rejected {
            return;
        }
        if !was_rejected {
            self.rejected_since = failure.is_permanent().then_some(now);
        }
        self.failure = Some(failure);
        self.failed_at = Some(now);
    }
}

/// Why clients of a cluster could not connect, and whether brokers have answered them all the same.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentFailure(Arc<Mutex<ConnectionHistory>>);

/// A failure, and what it means for whoever waits.
pub(super) struct KnownFailure {
    pub failure: ConnectionFailure,
    pub is_permanent: bool,
}

impl RecentFailure {
    fn history(&self) -> MutexGuard<'_, ConnectionHistory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn latest_failure(&self) -> Option<KnownFailure> {
        let now = Instant::now();
        let history = self.history();
        let failure = history.recent_failure(now)?.clone();
        let is_permanent = history.is_permanent(now);
        Some(KnownFailure {
            failure,
            is_permanent,
        })
    }

    pub fn is_permanent(&self) -> bool {
        self.history().is_permanent(Instant::now())
    }

    /// Returns whether a broker rejects this client and its clones, and none has answered them. Where requests succeed, a rejection by one broker,
    /// however long, ends nothing.
    pub fn is_denied(&self) -> bool {
        self.history().is_denied(Instant::now())
    }

    /// Notes that a broker has answered a request.
    pub fn note_answer(&self) {
        self.history().answered_at = Some(Instant::now());
    }

    fn add(&self, failure: ConnectionFailure) {
        self.history().add(failure, Instant::now());
    }
}

/// The context of a client: records why it cannot reach its brokers.
pub struct ErrorContext(pub(super) RecentFailure);

impl ClientContext for ErrorContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility == "FAIL" {
            self.0.add(ConnectionFailure::new(message));
        }
        DefaultClientContext.log(level, facility, message);
    }
}

impl ConsumerContext for ErrorContext {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_is_permanent_where_no_broker_answers_and_after_ten_minutes() {
        let rejection = || ConnectionFailure::new("a:1: SASL authentication error: wrong password");
        let disconnect = ConnectionFailure::new("a:1: Disconnected");
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut heard = ConnectionHistory::default();
        heard.add(rejection(), at(0));
        heard.add(disconnect, at(1));
        assert!(
            heard.is_permanent(at(2)),
            "the disconnect that follows says nothing"
        );
        heard.answered_at = Some(at(3));
        assert!(!heard.is_permanent(at(59)), "others accept it");
        assert!(!heard.is_permanent(at(60)), "it is over");
        for second in (60..660).step_by(30) {
            assert!(!heard.is_permanent(at(second)), "{second} s");
            heard.add(rejection(), at(second));
            heard.answered_at = Some(at(second));
        }
        assert!(heard.is_permanent(at(661)), "nobody is about to mend it");
        heard.add(rejection(), at(800));
        heard.answered_at = Some(at(800));
        assert!(!heard.is_permanent(at(801)), "another one");
    }
}
