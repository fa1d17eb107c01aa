//! A client that asks about topics and reads none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaResult;

use super::broker::{Broker, REQUEST_TIMEOUT, close_client};
use super::error::ClusterError;
use super::error_context::ErrorContext;
use crate::broker;

/// Clients give up a little early.
const ROUNDING: Duration = Duration::from_millis(100);

/// Asks about one topic, by one client as long as it answers.
///
/// A client that was told that nobody leads a partition believes it for minutes and asks nobody any more: after a failure it gets the
/// metadata first. One that was told that there are no brokers may have none left to ask, for ever
/// (<https://github.com/confluentinc/librdkafka/issues/5301>): one that does not answer is replaced, at once.
pub struct MetadataClient {
    broker: Broker,
    topic: String,
    kept: Mutex<KeptClient>,
}

#[derive(Clone)]
struct KeptClient {
    client: Arc<BaseConsumer<ErrorContext>>,
    /// Longest time for its answer: a new one has time to connect, and one that is always slow keeps its time.
    patience: Duration,
    has_failed: bool,
}

impl KeptClient {
    /// Its offsets are those of all messages, also of transactions that are not committed yet.
    fn new(broker: &Broker) -> KafkaResult<Self> {
        let client = broker.consumer(&[("isolation.level", "read_uncommitted")])?;
        Ok(KeptClient {
            client: Arc::new(client),
            patience: REQUEST_TIMEOUT,
            has_failed: false,
        })
    }

    /// Returns whether a request that failed after so long got no answer.
    fn is_silent(&self, took: Duration) -> bool {
        took.saturating_add(ROUNDING) >= self.patience
    }
}

impl MetadataClient {
    /// # Errors
    ///
    /// If a file of the TLS or SASL settings cannot be read.
    pub fn new(broker: &Broker, topic: &str) -> Result<Self, ClusterError> {
        let kept = KeptClient::new(broker).map_err(|error| broker.error_about(topic, &error))?;
        Ok(MetadataClient {
            broker: broker.clone(),
            topic: topic.to_owned(),
            kept: Mutex::new(kept),
        })
    }

    /// Asks something that may take as long as `request` is told; what a client that was fast before does not answer is asked of a new one.
    ///
    /// # Errors
    ///
    /// If there is no answer, or it is a refusal.
    pub fn ask<T, E>(
        &self,
        request: impl Fn(&BaseConsumer<ErrorContext>, Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let kept = self.lock_kept().clone();
        let begun = Instant::now();
        let answer = self.ask_client(&kept, &request);
        if answer.is_err() && kept.is_silent(begun.elapsed()) && kept.patience < REQUEST_TIMEOUT {
            let new = self.lock_kept().clone();
            return self.ask_client(&new, &request);
        }
        answer
    }

    fn ask_client<T, E>(
        &self,
        kept: &KeptClient,
        request: impl Fn(&BaseConsumer<ErrorContext>, Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = Instant::now();
        if kept.has_failed {
            // The request tells why, if it fails.
            let _ = kept.client.fetch_metadata(Some(&self.topic), kept.patience);
        }
        let answer = request(&kept.client, kept.patience.saturating_sub(begun.elapsed()));
        let took = begun.elapsed();
        if answer.is_err() && kept.is_silent(took) {
            self.replace_client(&kept.client);
        } else {
            self.note_answer(&kept.client, answer.is_err(), took);
        }
        answer
    }

    fn lock_kept(&self) -> MutexGuard<'_, KeptClient> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers how a client has answered, unless somebody else has replaced it.
    fn note_answer(
        &self,
        client: &Arc<BaseConsumer<ErrorContext>>,
        has_failed: bool,
        took: Duration,
    ) {
        if !has_failed {
            self.broker.hear_answer();
        }
        let mut kept = self.lock_kept();
        if Arc::ptr_eq(&kept.client, client) {
            kept.has_failed = has_failed;
            if !has_failed {
                kept.patience = broker::patience_after(took);
            }
        }
    }

    /// Replaces a client that does not answer, unless somebody else has done so.
    fn replace_client(&self, silent: &Arc<BaseConsumer<ErrorContext>>) {
        let mut kept = self.lock_kept();
        if Arc::ptr_eq(&kept.client, silent)
            && let Ok(new) = KeptClient::new(&self.broker)
        {
            *kept = new;
        }
        drop(kept);
        close_client(Arc::clone(silent));
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    #[test]
    fn a_partition_that_is_led_again_is_found_by_who_was_told_that_nobody_leads_it() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("input", 1, 1).unwrap();
        cluster.partition_leader("input", 0, None).unwrap();
        let inspector =
            MetadataClient::new(&Broker::mock_cluster(cluster.bootstrap_servers()), "input")
                .unwrap();
        let ask = || inspector.ask(|client, timeout| client.fetch_watermarks("input", 0, timeout));
        assert!(ask().is_err());
        cluster.partition_leader("input", 0, Some(1)).unwrap();
        assert_eq!(ask(), Ok((0, 0)));
    }
}
