//! Why clients cannot reach their brokers: librdkafka reports it in its log only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;

use crate::connection_failure::ConnectionFailure;

/// How long a failure counts as recent. A client repeats the same one only after 30 s.
const RECENT: Duration = Duration::from_secs(60);

/// What all clients of a cluster have lately heard of it.
#[derive(Debug, Default)]
struct Heard {
    /// The latest failure; a permanent one takes precedence.
    failure: Option<(ConnectionFailure, Instant)>,
    answered: Option<Instant>,
}

/// Why clients of a cluster could not connect, and whether brokers have answered them all the same.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentFailure(Arc<Mutex<Heard>>);

impl RecentFailure {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn latest(&self) -> Option<ConnectionFailure> {
        let heard = self.heard();
        heard
            .failure
            .as_ref()
            .filter(|(_, at)| at.elapsed() < RECENT)
            .map(|(failure, _)| failure.clone())
    }

    /// Whether no waiting mends it. One broker may still reject what others accept, while credentials are changed at one after the
    /// other.
    pub fn is_permanent(&self) -> bool {
        let is_answered = self
            .heard()
            .answered
            .is_some_and(|at| at.elapsed() < RECENT);
        !is_answered && self.latest().is_some_and(|failure| failure.is_permanent())
    }

    /// Notes that a broker has answered a request.
    pub fn answer(&self) {
        self.heard().answered = Some(Instant::now());
    }

    /// A permanent failure is not replaced by the disconnect that follows it.
    fn add(&self, failure: ConnectionFailure) {
        if failure.is_permanent() || !self.latest().is_some_and(|latest| latest.is_permanent()) {
            self.heard().failure = Some((failure, Instant::now()));
        }
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
