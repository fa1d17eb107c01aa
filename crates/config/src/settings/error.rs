//! Reasons why settings cannot be carried out.

use bernstream_noise as mechanism;
use bernstream_noise::continual;
use bernstream_release as targets;

/// A reason why valid settings cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Target(#[from] targets::Error),
    #[error(transparent)]
    Mechanism(#[from] mechanism::Error),
    #[error(transparent)]
    Continual(#[from] continual::Error),
}
