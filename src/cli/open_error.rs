//! Why something that a worker needs could not be opened, and whether to try again.

use crate::cli::failure::Failure;
use crate::ledger::{self, budget, log, witness};
use crate::sink::output;
use crate::{kafka, source};

/// Why the components could not be opened, and whether to try again.
#[derive(Debug)]
pub struct OpenError {
    pub failure: Failure,
    pub is_transient: bool,
}

pub(super) fn refused(why: String) -> OpenError {
    OpenError { failure: Failure::Ledger(why), is_transient: false }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        error.failure
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        OpenError { failure, is_transient: false }
    }
}

impl From<kafka::Error> for OpenError {
    fn from(error: kafka::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}

impl From<source::Error> for OpenError {
    fn from(error: source::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}

impl From<witness::Error> for OpenError {
    fn from(error: witness::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}

impl From<budget::error::Error> for OpenError {
    fn from(error: budget::error::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}

impl From<log::Error> for OpenError {
    fn from(error: log::Error) -> Self {
        ledger::Error::from(error).into()
    }
}

impl From<output::Error> for OpenError {
    fn from(error: output::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}

impl From<ledger::Error> for OpenError {
    fn from(error: ledger::Error) -> Self {
        OpenError { is_transient: error.is_transient(), failure: error.into() }
    }
}
