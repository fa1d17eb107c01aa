//! Why `evaluate` prints nothing, or not everything.

use std::io;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::cli::newest;
use crate::cli::print::print_failure;
use bernstream_synopsis as synopsis;

/// The reason why nothing, or not everything, was printed.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error("{} is a folder: name one of the synopses in it, such as {}", path.display(), example.display())]
    Folder { path: PathBuf, example: PathBuf },
    #[error("cannot read {}", file_in_words(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", file_in_words(path))]
    NoSynopsis {
        path: PathBuf,
        source: synopsis::SynopsisError,
    },
    #[error("cannot print")]
    Print(#[from] io::Error),
    #[error("cannot print the description")]
    Describe(#[from] serde_json::Error),
    #[error(transparent)]
    Synopsis(#[from] synopsis::SynopsisError),
    #[error("this synopsis is not a density: remove --density or --cumulative")]
    NoDensity,
    #[error(transparent)]
    Topic(#[from] newest::NewestError),
    #[error(transparent)]
    Arguments(#[from] Failure),
}

impl From<EvaluateError> for Failure {
    fn from(error: EvaluateError) -> Self {
        let error = match error {
            EvaluateError::Print(error) => return print_failure(&error),
            EvaluateError::Topic(error) => return error.into(),
            EvaluateError::Arguments(failure) => return failure,
            error => error,
        };
        let why = std::error::Error::source(&error)
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        let text = format!("{error}{why}");
        match error {
            EvaluateError::Read { .. } => Failure::Unavailable(text),
            EvaluateError::NoDensity
            | EvaluateError::Folder { .. }
            | EvaluateError::Synopsis(synopsis::SynopsisError::NoFunction)
            | EvaluateError::Synopsis(
                synopsis::SynopsisError::OutsideDomain { .. }
                | synopsis::SynopsisError::Dimensions { .. }
                | synopsis::SynopsisError::Reading { .. }
                | synopsis::SynopsisError::NoOtherBandwidths
                | synopsis::SynopsisError::NoTables
                | synopsis::SynopsisError::NoLabel
                | synopsis::SynopsisError::NoClasses
                | synopsis::SynopsisError::Bandwidths { .. }
                | synopsis::SynopsisError::NotOneAxis { .. },
            ) => Failure::Configuration(text),
            _ => Failure::Other(text),
        }
    }
}

/// The name of a file to read.
pub(super) fn file_in_words(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}
