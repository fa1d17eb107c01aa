//! A client that asks about topics and reads none.

use std::sync::{Arc, Mutex, PoisonError};

use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaResult;

use super::broker::Broker;
use super::error_context::ErrorContext;

/// Asks by one client until a request fails, and then by another: a client that was told that nobody leads a partition believes it for
/// minutes and asks nobody any more, and one that was told that there are no brokers may have none left to ask, for ever
/// (<https://github.com/confluentinc/librdkafka/issues/5301>).
pub struct MetadataClient {
    broker: Broker,
    client: Mutex<Arc<BaseConsumer<ErrorContext>>>,
}

impl MetadataClient {
    /// # Errors
    ///
    /// If a file of the TLS or SASL settings cannot be read.
    pub fn new(broker: &Broker) -> KafkaResult<Self> {
        let client = MetadataClient::client(broker)?;
        Ok(MetadataClient { broker: broker.clone(), client: Mutex::new(client) })
    }

    /// Its offsets are those of all messages, also of transactions that are not committed yet.
    fn client(broker: &Broker) -> KafkaResult<Arc<BaseConsumer<ErrorContext>>> {
        broker.consumer(&[("isolation.level", "read_uncommitted")]).map(Arc::new)
    }

    /// Asks something.
    ///
    /// # Errors
    ///
    /// If there is no answer, or it is a refusal.
    pub fn ask<T, E>(&self, request: impl FnOnce(&BaseConsumer<ErrorContext>) -> Result<T, E>) -> Result<T, E> {
        let client = Arc::clone(&self.client.lock().unwrap_or_else(PoisonError::into_inner));
        let answer = request(&client);
        if answer.is_err() {
            self.replace(client);
        }
        answer
    }

    fn replace(&self, failed: Arc<BaseConsumer<ErrorContext>>) {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have replaced it already.
        if Arc::ptr_eq(&client, &failed)
            && let Ok(new) = MetadataClient::client(&self.broker)
        {
            *client = new;
        }
        // Closing may wait for the broker.
        std::thread::spawn(move || drop(failed));
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::consumer::Consumer;
    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::kafka::broker::REQUEST_TIMEOUT;

    #[test]
    fn a_partition_that_is_led_again_is_found_by_who_was_told_that_nobody_leads_it() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("input", 1, 1).unwrap();
        cluster.partition_leader("input", 0, None).unwrap();
        let inspector = MetadataClient::new(&Broker::mock(cluster.bootstrap_servers())).unwrap();
        let ask = || inspector.ask(|client| client.fetch_watermarks("input", 0, REQUEST_TIMEOUT));
        assert!(ask().is_err());
        cluster.partition_leader("input", 0, Some(1)).unwrap();
        assert_eq!(ask(), Ok((0, 0)));
    }
}
