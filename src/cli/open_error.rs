//! Why something that a worker needs could not be opened, and whether to try again.

use crate::cli::failure::Failure;
use bernstream_kafka as kafka;
use bernstream_kafka::sink::output;
use bernstream_kafka::source;
use bernstream_ledger as ledger;
use bernstream_ledger::{budget, log, witness};

/// The reason why the components could not be opened, and whether to try again.
#[derive(Debug)]
pub struct OpenError {
    pub failure: Failure,
    pub is_transient: bool,
    /// Something is not there, or the brokers do not know it yet.
    pub is_missing: bool,
    is_about_choices: bool,
    /// The witness has lost claims whose rows this worker does not have: another one may.
    pub is_of_lost_claims: bool,
}

impl OpenError {
    fn new(failure: Failure, is_transient: bool) -> Self {
        OpenError {
            failure,
            is_transient,
            is_missing: false,
            is_about_choices: false,
            is_of_lost_claims: false,
        }
    }

    /// Makes an error after which to try again.
    pub(super) fn for_now(self) -> Self {
        OpenError {
            is_transient: true,
            ..self
        }
    }

    /// Makes an error after which the file is to be read again, with what the ledger has recorded of `"auto"`.
    pub(super) fn about_choices(self) -> Self {
        OpenError {
            is_about_choices: true,
            ..self
        }
    }

    pub fn is_about_choices(&self) -> bool {
        self.is_about_choices
    }
}

pub(super) fn ledger_refused(why: String) -> OpenError {
    OpenError::new(Failure::Ledger(why), false)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        error.failure
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        OpenError::new(failure, false)
    }
}

impl From<log::LedgerLogError> for OpenError {
    fn from(error: log::LedgerLogError) -> Self {
        ledger::LedgerError::from(error).into()
    }
}

impl From<ledger::LedgerError> for OpenError {
    fn from(error: ledger::LedgerError) -> Self {
        let is_of_lost_claims = matches!(error, ledger::LedgerError::LostClaims { .. });
        let is_transient = error.is_transient();
        let is_missing = error.is_missing();
        OpenError {
            is_missing,
            is_of_lost_claims,
            ..OpenError::new(error.into(), is_transient)
        }
    }
}

/// Converts errors that know whether they pass.
macro_rules! transient_or_not {
    ($($error:ty),+) => {
        $(impl From<$error> for OpenError {
            fn from(error: $error) -> Self {
                let (is_transient, is_missing) = (error.is_transient(), error.is_missing());
                OpenError { is_missing, ..OpenError::new(error.into(), is_transient) }
            }
        })+
    };
}

transient_or_not!(
    kafka::ClusterError,
    source::SourceError,
    witness::WitnessError,
    budget::error::BudgetError,
    output::OutputError
);
