//! Why a message or file cannot be decoded.

/// Why a message or file cannot be decoded.
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
    Broken::new(format_args!("the Arrow reader rejects it: {error}"))
}
