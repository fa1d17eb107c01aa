//! What is wrong with a message, or with a file.

/// Why a message cannot be read as a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl Broken {
    pub(crate) fn new(why: impl std::fmt::Display) -> Self {
        Broken(why.to_string())
    }
}

pub(crate) fn truncated(what: &str) -> Broken {
    Broken(format!("it ends within {what}"))
}

pub(crate) fn arrow(error: impl std::fmt::Display) -> Broken {
    Broken::new(format_args!("the Arrow reader refuses it: {error}"))
}
