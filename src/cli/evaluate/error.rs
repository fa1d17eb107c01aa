//! Why `evaluate` prints nothing, or not everything.

use std::io;
use std::path::{Path, PathBuf};

use crate::cli::failure::Failure;
use crate::cli::newest;
use crate::cli::print::print_failure;
use bernstream_synopsis as synopsis;

/// The reason why nothing, or not everything, was printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} is a folder: name one of the synopses in it, such as {}", path.display(), example.display())]
    Folder { path: PathBuf, example: PathBuf },
    #[error("cannot read {}", file_in_words(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", file_in_words(path))]
    NoSynopsis {
        path: PathBuf,
        source: synopsis::Error,
    },
    #[error("cannot print")]
    Print(#[from] io::Error),
    #[error("cannot print the description")]
    Describe(#[from] serde_json::Error),
    #[error(transparent)]
    Synopsis(#[from] synopsis::Error),
    #[error("this synopsis is not a density: remove --density or --cumulative")]
    NoDensity,
    #[error(transparent)]
    Topic(#[from] newest::Error),
    #[error(transparent)]
    Arguments(#[from] Failure),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Print(error) => return print_failure(&error),
            Error::Topic(error) => return error.into(),
            Error::Arguments(failure) => return failure,
            error => error,
        };
        let why = std::error::Error::source(&error)
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        let text = format!("{error}{why}");
        match error {
            Error::Read { .. } => Failure::Unavailable(text),
            Error::NoDensity
            | Error::Folder { .. }
            | Error::Synopsis(synopsis::Error::NoFunction)
            | Error::Synopsis(
                synopsis::Error::OutsideDomain { .. }
                | synopsis::Error::Dimensions { .. }
                | synopsis::Error::Reading { .. }
                | synopsis::Error::NoOtherBandwidths
                | synopsis::Error::NoTables
                | synopsis::Error::NoLabel
                | synopsis::Error::NoClasses
                | synopsis::Error::Bandwidths { .. }
                | synopsis::Error::NotOneAxis { .. },
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
