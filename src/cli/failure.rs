//! Why a command fails, and the exit code that says so.

use crate::cli::style;
use bernstream_config::Settings;
use bernstream_kafka::sink;
use bernstream_kafka::sink::{deliver, output};
use bernstream_kafka::source;
use bernstream_ledger::{budget, log, witness};
use bernstream_server::serve;
use bernstream_worker::pipeline;
use {bernstream_config as config, bernstream_kafka as kafka, bernstream_ledger as ledger};

/// The reason why a command failed, grouped by what the caller should do about it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The configuration or the arguments must be changed.
    #[error("{0}")]
    Configuration(String),
    /// A broker, topic or file could not be reached.
    #[error("{0}")]
    Unavailable(String),
    /// The ledger or its witness stops the worker; what is in them may be right.
    #[error("{0}")]
    Ledger(String),
    /// Something that the ledger, its witness or the output hold is wrong.
    #[error("{0}")]
    Unsound(String),
    /// The ledger stops the worker, and cannot go on.
    #[error("{0}")]
    LostLedger(String),
    /// The ledger is of a program before the first release.
    #[error("{0}")]
    OlderLedger(String),
    /// A test of an audit has failed.
    #[error("{0}")]
    Audit(String),
    #[error("{0}")]
    Other(String),
    /// The reader of the output has closed the pipe.
    #[error("output pipe closed")]
    ClosedPipe,
}

impl Failure {
    /// The matching code of `sysexits.h`; 1 for an audit that has found something.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Configuration(_) => 78,
            Failure::Unavailable(_) => 69,
            Failure::Ledger(_)
            | Failure::LostLedger(_)
            | Failure::OlderLedger(_)
            | Failure::Unsound(_) => 74,
            Failure::Audit(_) => 1,
            Failure::Other(_) => 70,
            Failure::ClosedPipe => 0,
        }
    }

    /// Says how to go on without the ledger, if it cannot: that depends on its log and on the output.
    pub fn with_advice(self, settings: &Settings) -> Self {
        let new = settings.output.new_ledger_advice();
        match self {
            Failure::LostLedger(what) if settings.ledger_log.is_some() => Failure::Ledger(format!(
                "{what}; start the worker, which builds the ledger from its log (`bernstream ledger restore --dry-run` says what); only \
                 if it cannot: {new}"
            )),
            // No program that wrote such a ledger had a log.
            Failure::LostLedger(what) | Failure::OlderLedger(what) => {
                Failure::Ledger(format!("{what}; to go on without this ledger: {new}"))
            }
            other => other,
        }
    }
}

impl From<config::Faults> for Failure {
    fn from(faults: config::Faults) -> Self {
        Failure::Configuration(style::style_faults(&faults.to_string()))
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Failure::Configuration(error.to_string())
    }
}

impl From<pipeline::Error> for Failure {
    fn from(error: pipeline::Error) -> Self {
        use pipeline::Error;
        let text = error.to_string();
        match error {
            // What the brokers refuse now they allowed before.
            Error::Source(source::Error::Kafka(_) | source::Error::Hanging { .. }) => {
                Failure::Unavailable(text)
            }
            Error::Source(error) => error.into(),
            Error::Ledger(error) | Error::Deliver(deliver::Error::Ledger(error)) => error.into(),
            Error::Deliver(deliver::Error::Witness(error)) => error.into(),
            Error::Deliver(deliver::Error::Sink { error, .. }) => error.into(),
            Error::Mechanism(_)
            | Error::Continual(_)
            | Error::Synopsis(_)
            | Error::ReadsTooFar
            | Error::Thread(_)
            | Error::Panicked => Failure::Other(text),
        }
    }
}

impl From<kafka::Error> for Failure {
    fn from(error: kafka::Error) -> Self {
        match &error {
            error if error.is_transient() => Failure::Unavailable(error.to_string()),
            // The operating system refuses a thread: no configuration is wrong.
            kafka::Error::Setup { why, .. } if why.contains("Failed to create thread") => {
                Failure::Other(error.to_string())
            }
            error => Failure::Configuration(error.to_string()),
        }
    }
}

impl From<source::Error> for Failure {
    fn from(error: source::Error) -> Self {
        match error {
            source::Error::Kafka(error) => error.into(),
            error @ source::Error::Disk { .. } => Failure::Unavailable(error.to_string()),
            error => Failure::Configuration(error.to_string()),
        }
    }
}

impl From<ledger::Error> for Failure {
    fn from(error: ledger::Error) -> Self {
        match error.is_final() {
            true => Failure::LostLedger(error.to_string()),
            false => match error {
                ledger::Error::Log(error) => error.into(),
                error @ ledger::Error::Older { .. } => Failure::OlderLedger(error.to_string()),
                error => Failure::Ledger(error.to_string()),
            },
        }
    }
}

impl From<log::Error> for Failure {
    fn from(error: log::Error) -> Self {
        let text = error.to_string();
        match error {
            error if error.is_transient() => Failure::Unavailable(text),
            error if error.is_setting() => Failure::Unsound(text),
            log::Error::KeyFile { .. } | log::Error::Missing { .. } => Failure::Configuration(text),
            _ => Failure::Ledger(text),
        }
    }
}

impl From<budget::error::Error> for Failure {
    fn from(error: budget::error::Error) -> Self {
        match error.is_transient() {
            true => Failure::Unavailable(error.to_string()),
            false if matches!(error, budget::error::Error::Missing { .. }) => {
                Failure::Configuration(error.to_string())
            }
            false if error.is_unsound() => Failure::Unsound(error.to_string()),
            false => Failure::Ledger(error.to_string()),
        }
    }
}

impl From<witness::Error> for Failure {
    fn from(error: witness::Error) -> Self {
        if let witness::Error::Budget(error) = error {
            return error.into();
        }
        match error.is_transient() {
            true => Failure::Unavailable(error.to_string()),
            false if error.is_final() => Failure::LostLedger(error.to_string()),
            false
                if matches!(
                    error,
                    witness::Error::Partitions { .. } | witness::Error::Setting { .. }
                ) =>
            {
                Failure::Unsound(error.to_string())
            }
            false => Failure::Ledger(error.to_string()),
        }
    }
}

impl From<sink::Error> for Failure {
    fn from(error: sink::Error) -> Self {
        let text = error.to_string();
        match error {
            sink::Error::TooLarge { .. } | sink::Error::Compacted { .. } => {
                Failure::Configuration(text)
            }
            sink::Error::Different { .. } | sink::Error::Header(_) => Failure::Unsound(text),
            sink::Error::Broker(_)
            | sink::Error::Deleted { .. }
            | sink::Error::Recreated { .. }
            | sink::Error::File { .. } => Failure::Unavailable(text),
        }
    }
}

impl From<serve::Error> for Failure {
    fn from(error: serve::Error) -> Self {
        Failure::Unavailable(error.to_string())
    }
}

impl From<output::Error> for Failure {
    fn from(error: output::Error) -> Self {
        match error {
            output::Error::NoTopic { .. } => Failure::Configuration(error.to_string()),
            output::Error::Broker(error) => error.into(),
            output::Error::Witness(error) => error.into(),
            output::Error::Sink(error) => error.into(),
        }
    }
}
