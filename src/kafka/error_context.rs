//! Hears why clients cannot reach their brokers, which librdkafka tells its log alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;

use crate::kafka::refusal::Complaint;

/// How long a complaint counts. The client repeats the same one after 30 s only.
const FRESH: Duration = Duration::from_secs(60);

/// What clients of a cluster complained of lately: what is final, or what came last.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentFailure(Arc<Mutex<Option<(Complaint, Instant)>>>);

impl RecentFailure {
    pub fn latest(&self) -> Option<Complaint> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.as_ref().filter(|(_, at)| at.elapsed() < FRESH).map(|(complaint, _)| complaint.clone())
    }

    /// A refusal is not forgotten over the connection that ends with it.
    fn add(&self, complaint: Complaint) {
        if complaint.is_final() || !self.latest().is_some_and(|latest| latest.is_final()) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((complaint, Instant::now()));
        }
    }
}

/// A client's context that hears why it cannot reach its brokers, which librdkafka tells its log alone.
pub struct ErrorContext(pub(super) RecentFailure);

impl ClientContext for ErrorContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility == "FAIL" {
            self.0.add(Complaint::new(message));
        }
        DefaultClientContext.log(level, facility, message);
    }
}

impl ConsumerContext for ErrorContext {}
