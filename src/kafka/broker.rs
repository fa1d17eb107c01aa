//! How to reach a cluster: address, TLS and SASL, and why it cannot be reached, in words.

use std::path::Path;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use crate::kafka::error::Error;
use crate::kafka::error_context::{ErrorContext, RecentFailure};
use crate::kafka::security::Security;

/// How long a broker may take to answer one question.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How soon it is looked first whether the brokers have turned a client away.
const LOOK: Duration = Duration::from_secs(1);

/// How to reach a cluster. It holds no secret: passwords and keys stay in their files, which every new client reads.
#[derive(Clone, Debug)]
pub struct Broker {
    /// `bootstrap.servers`.
    pub servers: String,
    /// The demonstration's mock cluster, which answers no administration requests: settings are not checked there.
    pub is_mock: bool,
    security: Security,
    heard: RecentFailure,
}

/// The same where they are reached the same way, whatever was heard of them.
impl PartialEq for Broker {
    fn eq(&self, other: &Self) -> bool {
        (&self.servers, self.is_mock, &self.security) == (&other.servers, other.is_mock, &other.security)
    }
}

impl Eq for Broker {}

impl Broker {
    pub fn new(servers: impl Into<String>, security: Security) -> Self {
        Broker { servers: servers.into(), is_mock: false, security, heard: RecentFailure::default() }
    }

    /// A cluster that is reached in plain text.
    pub fn plain(servers: impl Into<String>) -> Self {
        Broker::new(servers, Security::default())
    }

    /// A mock cluster of librdkafka.
    pub fn mock(servers: impl Into<String>) -> Self {
        Broker { is_mock: true, ..Broker::plain(servers) }
    }

    pub fn security(&self) -> &Security {
        &self.security
    }

    /// What is unwise: a connection that others can read or take over, files of passwords and keys that everybody can read. A
    /// group may: Kubernetes mounts them so.
    pub fn warnings(&self) -> Vec<String> {
        use std::os::unix::fs::MetadataExt;
        let is_open = |path: &&Path| std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o004 != 0);
        let open = self.security.secrets().filter(is_open).map(|path| {
            let path = path.display();
            format!("every user of this machine can read the secret in {path}: chmod o= {path}")
        });
        let is_bare = self.security.sasl().is_some() && self.security.tls().is_none();
        let bare = format!(
            "{} asks for a password, but without TLS whoever is between can read all that is sent",
            self.servers
        );
        open.chain(is_bare.then_some(bare)).collect()
    }

    /// What every client starts from: how the cluster is reached, and that no topic appears by being asked for.
    pub fn client_config(&self) -> KafkaResult<ClientConfig> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("client.id", "bernstream")
            .set("allow.auto.create.topics", "false")
            // The default waits 10 s before it looks for a broker that has come back.
            .set("reconnect.backoff.max.ms", "1000")
            // A broker that hangs up, as it does on who speaks the wrong protocol, is news of this level.
            .set_log_level(RDKafkaLogLevel::Info);
        self.security.set(&mut config).map_err(KafkaError::ClientCreation)?;
        Ok(config)
    }

    /// A consumer with settings of its own.
    pub fn consumer(&self, settings: &[(&str, &str)]) -> KafkaResult<BaseConsumer<ErrorContext>> {
        let mut config = self.client_config()?;
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config.create_with_context(self.error_context())
    }

    /// Hears for this broker, and for all its clones, why a client cannot reach it.
    pub fn error_context(&self) -> ErrorContext {
        ErrorContext(self.heard.clone())
    }

    /// Takes in what a client that is not assigned anything has to say.
    pub(crate) fn hear(&self, client: &BaseConsumer<ErrorContext>) {
        // Errors and logs stand in one queue; a log does not end the poll.
        while client.poll(Duration::from_millis(2)).is_some() {}
    }

    /// Asks a first question with a client that is not assigned anything: until there is an answer, patience is over, or
    /// the brokers have turned it away for good.
    pub(crate) fn ask<T>(
        &self,
        client: &BaseConsumer<ErrorContext>,
        patience: Duration,
        question: impl Fn(Duration) -> KafkaResult<T>,
    ) -> KafkaResult<T> {
        use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, OperationTimedOut};
        let (started, mut look) = (Instant::now(), LOOK);
        // What was said long ago is not taken for news later.
        self.hear(client);
        loop {
            let answer = question(look.min(patience.saturating_sub(started.elapsed())));
            let silent = [OperationTimedOut, BrokerTransportFailure, AllBrokersDown];
            match answer.as_ref().err().and_then(KafkaError::rdkafka_error_code) {
                Some(code) if silent.contains(&code) => self.hear(client),
                _ => return answer,
            }
            let is_over = started.elapsed() >= patience;
            if is_over || self.heard.latest().is_some_and(|complaint| complaint.is_final()) {
                return answer;
            }
            look *= 3;
        }
    }

    /// A failed question about `topic`, in words.
    pub(crate) fn failed(&self, topic: &str, error: &KafkaError) -> Error {
        let code = match error {
            KafkaError::AdminOp(code) => Some(*code),
            error => error.rdkafka_error_code(),
        };
        match code {
            Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
                Error::NoTopic { topic: topic.to_owned(), servers: self.servers.clone() }
            }
            Some(
                RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::SaslAuthenticationFailed
                | RDKafkaErrorCode::Authentication
                | RDKafkaErrorCode::TopicAlreadyExists
                | RDKafkaErrorCode::InvalidTopic
                | RDKafkaErrorCode::InvalidConfig
                | RDKafkaErrorCode::InvalidPartitions
                | RDKafkaErrorCode::InvalidReplicationFactor
                | RDKafkaErrorCode::PolicyViolation,
            ) => self.refused(topic, &error.to_string()),
            _ => match error {
                KafkaError::ClientCreation(why) => Error::Setup { servers: self.servers.clone(), why: why.clone() },
                KafkaError::ClientConfig(_, why, property, _) => {
                    Error::Setup { servers: self.servers.clone(), why: format!("{property}: {why}") }
                }
                KafkaError::Nul(_) => self.refused(topic, &error.to_string()),
                _ => self.unavailable(&error.to_string()),
            },
        }
    }

    pub(crate) fn refused(&self, topic: &str, why: &str) -> Error {
        Error::Refused { topic: topic.to_owned(), servers: self.servers.clone(), why: why.to_owned() }
    }

    /// Nobody answered; `why` the client says, and why it could not connect, where that was heard.
    fn unavailable(&self, why: &str) -> Error {
        let servers = self.servers.clone();
        match self.heard.latest() {
            Some(complaint) if complaint.is_final() => {
                Error::Denied { why: complaint.words(&self.servers, &self.security), servers }
            }
            Some(complaint) => Error::Unavailable { why: complaint.words(&self.servers, &self.security), servers },
            None => Error::Unavailable { why: why.to_owned(), servers },
        }
    }
}
