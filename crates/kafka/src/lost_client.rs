//! A client that reads nothing any more although its brokers answer others.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::broker::{Broker, REQUEST_TIMEOUT, close_client};
use super::error_context::ErrorContext;

/// Time without anything from a client before it is asked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Time until one is asked again that has no broker, though a new one has: after an outage it needs a moment.
const SUSPECT_INTERVAL: Duration = Duration::from_secs(3);

/// Asks a client from which nothing comes whether it is lost: one that was told that there are no brokers may have none left to ask, for
/// ever (<https://github.com/confluentinc/librdkafka/issues/5301>).
///
/// It is lost if it is connected to no broker twice in a row, and a new one is answered. One that is connected and has to wait is not: its
/// broker is slow, or throttles it.
pub struct LostClientWatch {
    asked: Instant,
    has_heard: bool,
    is_suspected: bool,
}

impl LostClientWatch {
    pub fn start() -> Self {
        LostClientWatch {
            asked: Instant::now(),
            has_heard: false,
            is_suspected: false,
        }
    }

    /// Notes that something has come from the client.
    pub fn note_message(&mut self) {
        self.has_heard = true;
    }

    /// Asks brokers from time to time, and returns whether `client` is lost. To be called where nothing has come from it; during an outage
    /// this takes up to twenty seconds.
    pub fn check_lost(
        &mut self,
        broker: &Broker,
        client: &BaseConsumer<ErrorContext>,
        topic: &str,
    ) -> bool {
        if self.has_heard {
            *self = LostClientWatch::start();
            return false;
        }
        let pause = if self.is_suspected {
            SUSPECT_INTERVAL
        } else {
            CHECK_INTERVAL
        };
        if self.asked.elapsed() < pause {
            return false;
        }
        let was_suspected = self.is_suspected;
        self.is_suspected = has_no_broker(client, topic) && answers_others(broker, topic);
        self.asked = Instant::now();
        was_suspected && self.is_suspected
    }
}

/// A broker that is connected and does not answer in time is another error. A request that is given up earlier than others would end the
/// connection of a client that is only slow.
fn has_no_broker(client: &BaseConsumer<ErrorContext>, topic: &str) -> bool {
    let failure = client.fetch_metadata(Some(topic), REQUEST_TIMEOUT).err();
    failure
        == Some(KafkaError::MetadataFetch(
            RDKafkaErrorCode::BrokerTransportFailure,
        ))
}

/// Returns whether a new client is answered.
fn answers_others(broker: &Broker, topic: &str) -> bool {
    let Ok(client) = broker.consumer(&[]) else {
        return false;
    };
    let answer = client.fetch_metadata(Some(topic), REQUEST_TIMEOUT);
    let is_answered = answer.is_ok_and(|found| !found.brokers().is_empty());
    close_client(client);
    is_answered
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    /// Whether `client` is found lost within three quarters of a minute, where brokers at `others` answer new clients.
    fn is_found(client: &BaseConsumer<ErrorContext>, others: &str) -> bool {
        let mut watch = LostClientWatch::start();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(45) {
            if watch.check_lost(&Broker::mock_cluster(others), client, "input") {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    fn client_of(servers: &str) -> BaseConsumer<ErrorContext> {
        Broker::mock_cluster(servers).consumer(&[]).unwrap()
    }

    mod long {
        use super::*;

        #[test]
        fn a_client_is_lost_only_where_others_are_answered() {
            let cluster = MockCluster::new(1).unwrap();
            cluster.create_topic("input", 1, 1).unwrap();
            let there = cluster.bootstrap_servers();
            let gone = "127.0.0.1:1";
            let slow_cluster = MockCluster::new(1).unwrap();
            slow_cluster.create_topic("input", 1, 1).unwrap();
            let slow_client = client_of(&slow_cluster.bootstrap_servers());
            // The first answer comes over a connection that the client then leaves for one to the broker that the answer names.
            slow_client
                .fetch_metadata(Some("input"), REQUEST_TIMEOUT)
                .unwrap();
            std::thread::sleep(Duration::from_secs(1));
            slow_client
                .fetch_metadata(Some("input"), REQUEST_TIMEOUT)
                .unwrap();
            slow_cluster
                .broker_round_trip_time(1, Duration::from_secs(4))
                .unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(!is_found(&client_of(&there), &there), "nothing is wrong"));
                scope.spawn(|| assert!(!is_found(&client_of(gone), gone), "an outage"));
                scope.spawn(|| assert!(is_found(&client_of(gone), &there), "it is lost"));
                scope.spawn(|| assert!(!is_found(&slow_client, &there), "it is slow"));
            });
        }
    }
}
