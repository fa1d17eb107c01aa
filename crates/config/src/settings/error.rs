//! Reasons why settings cannot be carried out.

use bernstream_noise as mechanism;
use bernstream_noise::continual;
use bernstream_release as targets;

/// A reason why valid settings cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Target(#[from] targets::TargetError),
    #[error(transparent)]
    Mechanism(#[from] mechanism::NoiseError),
    #[error(transparent)]
    Continual(#[from] continual::SeriesError),
}
