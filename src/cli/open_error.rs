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

impl From<log::Error> for OpenError {
    fn from(error: log::Error) -> Self {
        ledger::Error::from(error).into()
    }
}

/// From errors that know whether they pass.
macro_rules! transient_or_not {
    ($($error:ty),+) => {
        $(impl From<$error> for OpenError {
            fn from(error: $error) -> Self {
                OpenError { is_transient: error.is_transient(), failure: error.into() }
            }
        })+
    };
}

transient_or_not!(kafka::Error, source::Error, witness::Error, budget::error::Error, output::Error, ledger::Error);
