//! Why clients cannot reach their brokers: librdkafka reports it in its log only.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;

use crate::kafka::connection_failure::ConnectionFailure;

/// How long a failure counts as recent. A client repeats the same one only after 30 s.
const RECENT: Duration = Duration::from_secs(60);

/// The latest connection failure of all clients of a cluster; a permanent one takes precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentFailure(Arc<Mutex<Option<(ConnectionFailure, Instant)>>>);

impl RecentFailure {
    pub fn latest(&self) -> Option<ConnectionFailure> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|(_, at)| at.elapsed() < RECENT).map(|(failure, _)| failure.clone())
    }

    /// A permanent failure is not replaced by the disconnect that follows it.
    fn add(&self, failure: ConnectionFailure) {
        if failure.is_permanent() || !self.latest().is_some_and(|latest| latest.is_permanent()) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((failure, Instant::now()));
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
