//! Why a command fails, and the exit code that says so.

use crate::cli::style;
use bernstream_config::WorkerSettings;
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
    pub fn with_advice(self, settings: &WorkerSettings) -> Self {
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

impl From<config::SettingsError> for Failure {
    fn from(error: config::SettingsError) -> Self {
        Failure::Configuration(error.to_string())
    }
}

impl From<pipeline::PipelineError> for Failure {
    fn from(error: pipeline::PipelineError) -> Self {
        use pipeline::PipelineError;
        let text = error.to_string();
        match error {
            // What the brokers refuse now they allowed before.
            PipelineError::Source(
                source::SourceError::Kafka(_) | source::SourceError::Hanging { .. },
            ) => Failure::Unavailable(text),
            PipelineError::Source(error) => error.into(),
            PipelineError::Ledger(error)
            | PipelineError::Deliver(deliver::DeliveryError::Ledger(error)) => error.into(),
            PipelineError::Deliver(deliver::DeliveryError::Witness(error)) => error.into(),
            PipelineError::Deliver(deliver::DeliveryError::Sink { error, .. }) => error.into(),
            PipelineError::Mechanism(_)
            | PipelineError::Continual(_)
            | PipelineError::Synopsis(_)
            | PipelineError::ReadsTooFar
            | PipelineError::AnnouncedKeysDamaged
            | PipelineError::Thread(_)
            | PipelineError::Panicked => Failure::Other(text),
        }
    }
}

impl From<kafka::ClusterError> for Failure {
    fn from(error: kafka::ClusterError) -> Self {
        match &error {
            error if error.is_transient() => Failure::Unavailable(error.to_string()),
            // The operating system refuses a thread: no configuration is wrong.
            kafka::ClusterError::Setup { why, .. } if why.contains("Failed to create thread") => {
                Failure::Other(error.to_string())
            }
            error => Failure::Configuration(error.to_string()),
        }
    }
}

impl From<source::SourceError> for Failure {
    fn from(error: source::SourceError) -> Self {
        match error {
            source::SourceError::Kafka(error) => error.into(),
            error @ source::SourceError::Disk { .. } => Failure::Unavailable(error.to_string()),
            error => Failure::Configuration(error.to_string()),
        }
    }
}

impl From<ledger::LedgerError> for Failure {
    fn from(error: ledger::LedgerError) -> Self {
        match error.is_final() {
            true => Failure::LostLedger(error.to_string()),
            false => match error {
                ledger::LedgerError::Log(error) => error.into(),
                error @ ledger::LedgerError::Older { .. } => {
                    Failure::OlderLedger(error.to_string())
                }
                error => Failure::Ledger(error.to_string()),
            },
        }
    }
}

impl From<log::LedgerLogError> for Failure {
    fn from(error: log::LedgerLogError) -> Self {
        let text = error.to_string();
        match error {
            error if error.is_transient() => Failure::Unavailable(text),
            error if error.is_setting() => Failure::Unsound(text),
            log::LedgerLogError::KeyFile { .. } | log::LedgerLogError::Missing { .. } => {
                Failure::Configuration(text)
            }
            _ => Failure::Ledger(text),
        }
    }
}

impl From<budget::error::BudgetError> for Failure {
    fn from(error: budget::error::BudgetError) -> Self {
        match error.is_transient() {
            true => Failure::Unavailable(error.to_string()),
            false if matches!(error, budget::error::BudgetError::Missing { .. }) => {
                Failure::Configuration(error.to_string())
            }
            false if error.is_unsound() => Failure::Unsound(error.to_string()),
            false => Failure::Ledger(error.to_string()),
        }
    }
}

impl From<witness::WitnessError> for Failure {
    fn from(error: witness::WitnessError) -> Self {
        if let witness::WitnessError::Budget(error) = error {
            return error.into();
        }
        match error.is_transient() {
            true => Failure::Unavailable(error.to_string()),
            false if error.is_final() => Failure::LostLedger(error.to_string()),
            false
                if matches!(
                    error,
                    witness::WitnessError::Partitions { .. }
                        | witness::WitnessError::Setting { .. }
                ) =>
            {
                Failure::Unsound(error.to_string())
            }
            false => Failure::Ledger(error.to_string()),
        }
    }
}

impl From<sink::SinkError> for Failure {
    fn from(error: sink::SinkError) -> Self {
        let text = error.to_string();
        match error {
            sink::SinkError::TooLarge { .. } | sink::SinkError::Compacted { .. } => {
                Failure::Configuration(text)
            }
            sink::SinkError::Different { .. } | sink::SinkError::Header(_) => {
                Failure::Unsound(text)
            }
            sink::SinkError::Broker(_)
            | sink::SinkError::Deleted { .. }
            | sink::SinkError::Recreated { .. }
            | sink::SinkError::File { .. } => Failure::Unavailable(text),
        }
    }
}

impl From<serve::ServeError> for Failure {
    fn from(error: serve::ServeError) -> Self {
        Failure::Unavailable(error.to_string())
    }
}

impl From<output::OutputError> for Failure {
    fn from(error: output::OutputError) -> Self {
        match error {
            output::OutputError::NoTopic { .. } => Failure::Configuration(error.to_string()),
            output::OutputError::Broker(error) => error.into(),
            output::OutputError::Witness(error) => error.into(),
            output::OutputError::Sink(error) => error.into(),
        }
    }
}
