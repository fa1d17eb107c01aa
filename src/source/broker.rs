//! How to reach a cluster: address, TLS and SASL, and why it cannot be reached, in words.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use crate::source::Error;
use crate::source::refusal::Complaint;

/// How long a broker may take to answer one question.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How soon it is looked first whether the brokers have turned a client away.
const LOOK: Duration = Duration::from_secs(1);

/// How long a complaint counts. The client repeats the same one after 30 s only.
const FRESH: Duration = Duration::from_secs(60);

/// How to reach a cluster. It holds no secret: passwords and keys stay in their files, which every new client reads.
#[derive(Clone, Debug)]
pub struct Broker {
    /// `bootstrap.servers`.
    pub servers: String,
    /// The demonstration's mock cluster, which answers no administration requests: settings are not checked there.
    pub is_mock: bool,
    security: Security,
    heard: Heard,
}

/// The same where they are reached the same way, whatever was heard of them.
impl PartialEq for Broker {
    fn eq(&self, other: &Self) -> bool {
        (&self.servers, self.is_mock, &self.security) == (&other.servers, other.is_mock, &other.security)
    }
}

impl Eq for Broker {}

/// TLS and SASL; neither is plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    tls: Option<Tls>,
    sasl: Option<Sasl>,
}

/// Brokers prove who they are, by a certificate for the name that they are reached by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificate authorities, PEM; those of the system where there is none.
    pub ca: Option<PathBuf>,
    /// What the client proves who it is with, where the brokers ask for it.
    pub identity: Option<Identity>,
}

/// A certificate and its private key, PEM; the key is not encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A user who proves to be it by a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasl {
    pub mechanism: Mechanism,
    pub username: String,
    /// One line, the password.
    pub password_file: PathBuf,
}

/// How the password is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    ScramSha512,
    ScramSha256,
    /// The broker is told the password.
    Plain,
}

impl Mechanism {
    pub const ALL: [Mechanism; 3] = [Mechanism::ScramSha512, Mechanism::ScramSha256, Mechanism::Plain];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::Plain => "PLAIN",
        }
    }

    /// The mechanism of this name.
    pub fn named(name: &str) -> Option<Self> {
        Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}

/// PLAIN without TLS would send the password as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PLAIN without TLS sends the password in the clear")]
pub struct InTheClear;

impl Security {
    pub fn new(tls: Option<Tls>, sasl: Option<Sasl>) -> Result<Self, InTheClear> {
        match (&tls, &sasl) {
            (None, Some(Sasl { mechanism: Mechanism::Plain, .. })) => Err(InTheClear),
            _ => Ok(Security { tls, sasl }),
        }
    }

    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    pub fn sasl(&self) -> Option<&Sasl> {
        self.sasl.as_ref()
    }

    fn protocol(&self) -> &'static str {
        match (&self.tls, &self.sasl) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        }
    }

    fn set(&self, config: &mut ClientConfig) -> Result<(), String> {
        if *self == Security::default() {
            return Ok(());
        }
        if cfg!(not(feature = "tls")) {
            return Err("this program was built without TLS and SASL: build it with \
                        `cargo build --release --features tls`"
                .to_owned());
        }
        config.set("security.protocol", self.protocol());
        let mut file = |property: &str, what: &str, path: &Path| {
            readable(what, path)?;
            config.set(property, path.display().to_string());
            Ok::<_, String>(())
        };
        if let Some(ca) = self.tls.as_ref().and_then(|tls| tls.ca.as_ref()) {
            file("ssl.ca.location", "the certificate authorities", ca)?;
        }
        if let Some(identity) = self.tls.as_ref().and_then(|tls| tls.identity.as_ref()) {
            file("ssl.certificate.location", "the certificate", &identity.certificate)?;
            file("ssl.key.location", "the key", &identity.key)?;
        }
        if let Some(sasl) = &self.sasl {
            config
                .set("sasl.mechanism", sasl.mechanism.name())
                .set("sasl.username", &sasl.username)
                .set("sasl.password", password(&sasl.password_file)?);
        }
        Ok(())
    }

    /// The files that nobody else should read.
    fn secrets(&self) -> impl Iterator<Item = &Path> {
        let key = self.tls.as_ref().and_then(|tls| tls.identity.as_ref()).map(|identity| identity.key.as_path());
        let password = self.sasl.as_ref().map(|sasl| sasl.password_file.as_path());
        key.into_iter().chain(password)
    }
}

fn readable(what: &str, path: &Path) -> Result<File, String> {
    File::open(path).map_err(|why| format!("{what} in {} cannot be read: {why}", path.display()))
}

/// What stands in the file, which is never part of a message.
fn password(path: &Path) -> Result<String, String> {
    let file = readable("the password", path)?;
    let wrong = |why: &str| format!("the password in {} {why}", path.display());
    let text = std::io::read_to_string(file).map_err(|_| wrong("cannot be read as text"))?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    match line {
        "" => Err(wrong("is empty")),
        line if line.contains(char::is_control) => Err(wrong("is not one line of text")),
        line => Ok(line.to_owned()),
    }
}

impl Broker {
    pub fn new(servers: impl Into<String>, security: Security) -> Self {
        Broker { servers: servers.into(), is_mock: false, security, heard: Heard::default() }
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
        let is_bare = self.security.sasl.is_some() && self.security.tls.is_none();
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
    pub fn consumer(&self, settings: &[(&str, &str)]) -> KafkaResult<BaseConsumer<Ear>> {
        let mut config = self.client_config()?;
        for (name, value) in settings {
            config.set(*name, *value);
        }
        config.create_with_context(self.ear())
    }

    /// Hears for this broker, and for all its clones, why a client cannot reach it.
    pub fn ear(&self) -> Ear {
        Ear(self.heard.clone())
    }

    /// Takes in what a client that is not assigned anything has to say.
    pub(crate) fn hear(&self, client: &BaseConsumer<Ear>) {
        // Errors and logs stand in one queue; a log does not end the poll.
        while client.poll(Duration::from_millis(2)).is_some() {}
    }

    /// Asks a first question with a client that is not assigned anything: until there is an answer, patience is over, or
    /// the brokers have turned it away for good.
    pub(crate) fn ask<T>(
        &self,
        client: &BaseConsumer<Ear>,
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
            Some(complaint) if complaint.is_final() => Error::Denied { why: complaint.words(self), servers },
            Some(complaint) => Error::Unavailable { why: complaint.words(self), servers },
            None => Error::Unavailable { why: why.to_owned(), servers },
        }
    }
}

/// What clients of a cluster complained of lately: what is final, or what came last.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Option<(Complaint, Instant)>>>);

impl Heard {
    fn latest(&self) -> Option<Complaint> {
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
pub struct Ear(Heard);

impl ClientContext for Ear {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        if facility == "FAIL" {
            self.0.add(Complaint::new(message));
        }
        DefaultClientContext.log(level, facility, message);
    }
}

impl ConsumerContext for Ear {}
