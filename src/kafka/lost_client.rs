//! A client that reads nothing any more although its brokers answer others.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};

use super::broker::{Broker, PROMPT, PROMPT_CLIENT_TIMEOUT, close_client};
use super::error_context::ErrorContext;

/// How often a client is asked from which nothing comes.
const INTERVAL: Duration = Duration::from_secs(5);
/// How soon one is asked again that has not answered, though a new one was answered: after an outage it needs a moment.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks a client now and then from which nothing comes, whether there is nothing or it is lost: one that was told that there are no brokers
/// may have none left to ask, for ever (<https://github.com/confluentinc/librdkafka/issues/5301>).
///
/// It is lost if it does not answer twice, and a new one is answered at once. Records have no part in this.
pub(crate) struct LostClientWatch {
    asked: Instant,
    is_suspected: bool,
}

impl LostClientWatch {
    pub fn start() -> Self {
        LostClientWatch { asked: Instant::now(), is_suspected: false }
    }

    /// Whether `client` is lost. To be asked where nothing has come from it; during an outage this takes some seconds.
    pub fn is_lost(&mut self, broker: &Broker, client: &BaseConsumer<ErrorContext>, topic: &str) -> bool {
        let pause = if self.is_suspected { AGAIN } else { INTERVAL };
        if self.asked.elapsed() < pause {
            return false;
        }
        let is_silent = client.fetch_metadata(Some(topic), PROMPT_CLIENT_TIMEOUT).is_err();
        let was_suspected = self.is_suspected;
        self.is_suspected = is_silent && answers_others(broker, topic);
        self.asked = Instant::now();
        was_suspected && self.is_suspected
    }
}

/// Whether a new client gets an answer, and promptly: brokers that are slow are so to the others too.
fn answers_others(broker: &Broker, topic: &str) -> bool {
    let Ok(client) = broker.consumer(&[]) else { return false };
    let is_connected =
        client.fetch_metadata(Some(topic), PROMPT_CLIENT_TIMEOUT).is_ok_and(|found| !found.brokers().is_empty());
    let begun = Instant::now();
    let is_prompt = is_connected && client.fetch_metadata(Some(topic), PROMPT).is_ok() && begun.elapsed() < PROMPT;
    close_client(client);
    is_prompt
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    /// Whether a client of `servers` is found lost within a quarter of a minute, where brokers at `others` answer new clients.
    fn is_found(servers: &str, others: &str) -> bool {
        let client = Broker::mock(servers).consumer(&[]).unwrap();
        let (mut watch, begun) = (LostClientWatch::start(), Instant::now());
        while begun.elapsed() < Duration::from_secs(20) {
            if watch.is_lost(&Broker::mock(others), &client, "input") {
                return true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        false
    }

    #[test]
    fn a_client_is_lost_only_where_others_are_answered() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("input", 1, 1).unwrap();
        let (there, gone) = (cluster.bootstrap_servers(), "127.0.0.1:1");
        let cases = [(there.as_str(), there.as_str(), false), (gone, gone, false), (gone, &there, true)];
        std::thread::scope(|scope| {
            for (servers, others, expected) in cases {
                scope.spawn(move || assert_eq!(is_found(servers, others), expected, "{servers}, {others}"));
            }
        });
    }
}
