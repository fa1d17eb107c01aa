//! How to reach a cluster, and what its errors mean.

use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;

use crate::error::ClusterError;
use crate::error_context::{ErrorContext, KnownFailure, RecentFailure};
use crate::security::{Security, open_to_all};

/// Longest time that a broker may take to answer one request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for a client whose last answer was prompt: one that is lost to its brokers never answers, and a new one does at once.
const PROMPT_CLIENT_TIMEOUT: Duration = Duration::from_secs(3);

/// An answer within this is prompt.
const PROMPT: Duration = Duration::from_secs(1);

/// Longest time for a new connection, with TLS and SASL.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of the first attempt of a request; the reasons for a failed connection are read after each attempt.
const FIRST_ATTEMPT: Duration = Duration::from_secs(1);

/// Addresses and settings with which a cluster is reached. It contains no secret: passwords and keys stay in their files, which every new client reads.
#[derive(Clone, Debug)]
pub struct Broker {
    /// `bootstrap.servers`.
    pub servers: String,
    /// The mock cluster of the demo. It answers no administration requests, so its settings are not checked.
    pub is_mock: bool,
    security: Security,
    recent: RecentFailure,
}

/// Longest time for the next answer of a client whose last one took so long: where brokers or the network are slow, the whole time, so that
/// no client is given up that would answer.
pub(crate) fn patience_after(took: Duration) -> Duration {
    if took < PROMPT {
        PROMPT_CLIENT_TIMEOUT
    } else {
        REQUEST_TIMEOUT
    }
}

/// Closes a client, and does not wait for its brokers.
pub fn close_client<C: Send + 'static>(client: C) {
    thread::spawn(move || drop(client));
}

/// Returns whether an error is about connections: the client tries to connect again by itself.
fn is_unanswered(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{
        AllBrokersDown, Authentication, BrokerTransportFailure, OperationTimedOut, SSL,
    };
    matches!(
        error.rdkafka_error_code(),
        Some(AllBrokersDown | Authentication | BrokerTransportFailure | OperationTimedOut | SSL)
    )
}

/// Returns whether an error is about a consumer group: librdkafka looks for the coordinator of one even where partitions are assigned, which no group
/// needs, and a user who may not describe groups gets this error.
pub fn is_group_error(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::GroupAuthorizationFailed)
}

/// Equal if they are reached in the same way, whatever failures were seen.
impl PartialEq for Broker {
    fn eq(&self, other: &Self) -> bool {
        self.servers == other.servers
            && self.is_mock == other.is_mock
            && self.security == other.security
    }
}

impl Eq for Broker {}

impl Broker {
    pub fn new(servers: impl Into<String>, security: Security) -> Self {
        Broker {
            servers: servers.into(),
            is_mock: false,
            security,
            recent: RecentFailure::default(),
        }
    }

    /// A cluster without TLS and SASL.
    pub fn without_security(servers: impl Into<String>) -> Self {
        Broker::new(servers, Security::default())
    }

    /// A mock cluster of librdkafka.
    pub fn mock_cluster(servers: impl Into<String>) -> Self {
        Broker {
            is_mock: true,
            ..Broker::without_security(servers)
        }
    }

    pub fn security(&self) -> &Security {
        &self.security
    }

    /// Warns of what this program was built without, and of unsafe settings: SASL without TLS, and secret files that every user can read.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(why) = self.security.unsupported_reason() {
            warnings.push(format!("{} cannot be reached: {why}", self.servers));
        }
        warnings.extend(self.security.secret_files().filter_map(open_to_all));
        if self.security.sasl().is_some() && self.security.tls().is_none() {
            warnings.push(format!(
                "the connection to {} uses SASL without TLS: anyone on the network path can read what is sent",
                self.servers
            ));
        }
        warnings
    }

    /// The arguments with which Kafka's own commands reach it, as an administrator types them.
    pub(crate) fn for_kafka_commands(&self) -> String {
        let access = if self.security == Security::default() {
            ""
        } else {
            " --command-config client.properties"
        };
        format!("--bootstrap-server {}{access}", self.servers)
    }

    /// The settings that all clients share. Asking for a topic never creates it.
    ///
    /// # Errors
    ///
    /// If a file of the TLS or SASL settings cannot be read.
    pub fn client_config(&self) -> KafkaResult<ClientConfig> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("client.id", "bernstream")
            .set("allow.auto.create.topics", "false")
            // With the default, a client notices only after 10 s that a broker is back.
            .set("reconnect.backoff.max.ms", "1000")
            // With the defaults, a request that the network has swallowed is waited for a minute, and a connection half of one,
            // even if the broker is back since long.
            .set("socket.timeout.ms", REQUEST_TIMEOUT.as_millis().to_string())
            .set(
                "socket.connection.setup.timeout.ms",
                CONNECTION_TIMEOUT.as_millis().to_string(),
            )
            // Level of the log line for a connection that the broker closes, as it does for the wrong protocol.
            .set_log_level(RDKafkaLogLevel::Info);
        self.security
            .set_properties(&mut config)
            .map_err(KafkaError::ClientCreation)?;
        Ok(config)
    }

    /// A consumer with the shared settings and these.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or a setting is invalid.
    pub fn consumer(&self, settings: &[(&str, &str)]) -> KafkaResult<BaseConsumer<ErrorContext>> {
        let mut config = self.client_config()?;
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config.create_with_context(self.error_context())
    }

    /// A client that asks about `topic` and reads nothing.
    ///
    /// # Errors
    ///
    /// The client cannot be made, as in [`consumer`](Self::consumer).
    pub(crate) fn client_for(
        &self,
        topic: &str,
    ) -> Result<BaseConsumer<ErrorContext>, ClusterError> {
        self.consumer(&[])
            .map_err(|error| self.error_about(topic, &error))
    }

    /// A context that records connection failures for this broker and all its clones.
    pub fn error_context(&self) -> ErrorContext {
        ErrorContext(self.recent.clone())
    }

    /// Serves the logs and errors of a client without an assignment.
    fn drain_events(&self, client: &BaseConsumer<ErrorContext>) {
        // Errors and logs share one queue; a log line does not end the poll.
        while client.poll(Duration::from_millis(2)).is_some() {}
    }

    /// Sends the first request of a client without an assignment: until it is answered, `timeout` is over, or the connection
    /// has failed for a permanent reason.
    ///
    /// # Errors
    ///
    /// The error of the last attempt.
    pub(crate) fn first_request<T>(
        &self,
        client: &BaseConsumer<ErrorContext>,
        timeout: Duration,
        request: impl Fn(Duration) -> KafkaResult<T>,
    ) -> KafkaResult<T> {
        let started = Instant::now();
        let mut attempt = FIRST_ATTEMPT;
        // Old events must not count as new ones later.
        self.drain_events(client);
        loop {
            let answer = request(attempt.min(timeout.saturating_sub(started.elapsed())));
            match &answer {
                Err(error) if is_unanswered(error) => self.drain_events(client),
                Ok(_) => {
                    self.hear_answer();
                    return answer;
                }
                Err(_) => return answer,
            }
            let is_over = started.elapsed() >= timeout;
            if is_over || self.recent.is_permanent() {
                return answer;
            }
            attempt *= 3;
        }
    }

    /// The next message or error of `client`, which is in no group, within `wait`. Connection errors are passed over: an outage leaves many of them in the queue,
    /// and the client connects again by itself. A connection error that no waiting ends, such as a wrong password, is returned.
    pub(crate) fn poll_message<'c>(
        &self,
        client: &'c BaseConsumer<ErrorContext>,
        wait: Duration,
    ) -> Option<KafkaResult<BorrowedMessage<'c>>> {
        let deadline = Instant::now() + wait;
        loop {
            match client.poll(deadline.saturating_duration_since(Instant::now()))? {
                Err(error) if is_group_error(&error) => {}
                Err(error) if is_unanswered(&error) && !self.recent.is_denied() => {}
                Ok(message) => {
                    self.hear_answer();
                    return Some(Ok(message));
                }
                failed => return Some(failed),
            }
        }
    }

    /// Notes that a request was answered: what rejects a client then is one broker among others.
    pub(super) fn hear_answer(&self) {
        self.recent.note_answer();
    }

    /// The error of a failed request about `topic`.
    pub fn error_about(&self, topic: &str, error: &KafkaError) -> ClusterError {
        let code = match error {
            KafkaError::AdminOp(code) => Some(*code),
            error => error.rdkafka_error_code(),
        };
        match code {
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                ClusterError::NoTopic {
                    topic: topic.to_owned(),
                    servers: self.servers.clone(),
                }
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::TopicAlreadyExists
                | RDKafkaErrorCode::InvalidTopic
                | RDKafkaErrorCode::InvalidConfig
                | RDKafkaErrorCode::InvalidPartitions
                | RDKafkaErrorCode::InvalidReplicationFactor
                | RDKafkaErrorCode::PolicyViolation,
            ) => self.refused_request(topic, &error.to_string()),
            Some(RDKafkaErrorCode::UnsupportedFeature) => {
                let why = "what answers there does not know the request: it is the port of a controller (KRaft), or a broker that is too old";
                ClusterError::Unavailable {
                    servers: self.servers.clone(),
                    why: why.to_owned(),
                }
            }
            _ => match error {
                KafkaError::ClientCreation(why) => ClusterError::Setup {
                    servers: self.servers.clone(),
                    why: why.clone(),
                },
                KafkaError::ClientConfig(_, why, property, _) => ClusterError::Setup {
                    servers: self.servers.clone(),
                    why: format!("{property}: {why}"),
                },
                KafkaError::Nul(_) => self.refused_request(topic, &error.to_string()),
                _ => self.unavailable_error(&error.to_string()),
            },
        }
    }

    pub fn refused_request(&self, topic: &str, why: &str) -> ClusterError {
        ClusterError::Refused {
            topic: topic.to_owned(),
            servers: self.servers.clone(),
            why: why.to_owned(),
        }
    }

    /// The error where no broker answered. The reason why the client could not connect is better than its own `why`, if there is one.
    fn unavailable_error(&self, why: &str) -> ClusterError {
        let servers = self.servers.clone();
        let Some(KnownFailure {
            failure,
            is_permanent,
        }) = self.recent.latest_failure()
        else {
            let why = why.to_owned();
            return ClusterError::Unavailable { servers, why };
        };
        let why = failure.explain(&servers, &self.security);
        if is_permanent {
            ClusterError::Denied { servers, why }
        } else if failure.is_permanent() {
            ClusterError::Unavailable {
                servers,
                why: format!("one broker rejects this client while others answer: {why}"),
            }
        } else {
            ClusterError::Unavailable { servers, why }
        }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::ClientContext;
    use rdkafka::consumer::Consumer;
    use rdkafka::mocking::MockCluster;

    use super::*;
    use crate::producer::{Producer, ProducerRecord};
    use crate::{MetadataClient, offsets, topic};

    /// The log line and the error of a client whose password a broker rejects.
    fn reject(broker: &Broker) -> ClusterError {
        let line = "[thrd:b:2/2]: b:2/2: SASL authentication error: Authentication failed (after 12ms in state AUTH_REQ)";
        broker
            .error_context()
            .log(RDKafkaLogLevel::Error, "FAIL", line);
        broker.error_about(
            "topic",
            &KafkaError::MessageConsumption(RDKafkaErrorCode::Authentication),
        )
    }

    fn describe(broker: &Broker) {
        let client = broker.consumer(&[]).unwrap();
        topic::partitions(broker, &client, "topic").unwrap();
    }

    fn inspect(broker: &Broker) {
        let inspector = MetadataClient::new(broker, "topic").unwrap();
        inspector
            .ask(|client, timeout| client.fetch_watermarks("topic", 0, timeout))
            .unwrap();
    }

    fn write(broker: &Broker) {
        let mut producer = Producer::new(broker.clone(), "topic".to_owned());
        producer
            .send(ProducerRecord {
                partition: Some(0),
                payload: b"record",
                ..ProducerRecord::default()
            })
            .unwrap();
    }

    fn read(broker: &Broker) {
        let client = broker.consumer(&[("group.id", "test")]).unwrap();
        offsets::assign_from("topic", &client, 0).unwrap();
        broker
            .poll_message(&client, REQUEST_TIMEOUT)
            .unwrap()
            .unwrap();
    }

    #[test]
    fn a_broker_that_rejects_whom_another_one_answers_is_waited_for() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("topic", 1, 1).unwrap();
        for ask in [describe, inspect, write, read] {
            let broker = Broker::mock_cluster(cluster.bootstrap_servers());
            assert!(
                matches!(reject(&broker), ClusterError::Denied { .. }),
                "nobody has answered"
            );
            // Each of its clients speaks for all.
            ask(&broker.clone());
            let silent = broker.error_about(
                "topic",
                &KafkaError::MetadataFetch(RDKafkaErrorCode::AllBrokersDown),
            );
            assert!(silent.is_transient(), "{silent}");
            let rejected = reject(&broker);
            assert!(
                rejected.is_transient() && rejected.to_string().contains("Authentication failed"),
                "{rejected}"
            );
        }
    }
}
