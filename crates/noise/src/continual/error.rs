//! Reasons why there can be no series, or its state cannot be read.

use crate::error::NoiseError;

/// The longest window of a hopping series, in panes.
pub const MOST_PANES: u32 = 2048;

/// Reasons why there can be no series, or its state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    #[error(transparent)]
    Mechanism(#[from] NoiseError),
    #[error(
        "a window of {panes} panes: take 1 to {MOST_PANES}, with longer panes where the window is long"
    )]
    Panes { panes: u32 },
    #[error(
        "Gaussian noise for a unit that can be in {panes} panes of a series has no price in epsilon and delta here: set the \
         budget as a rho, or take Laplace noise"
    )]
    SeveralPanes { panes: u32 },
    #[error(
        "at this price whole numbers are exact enough for {longest} panes of the series, and {least} are needed: raise the \
         price or lower the number of values"
    )]
    Rounding { longest: u64, least: u64 },
    #[error(
        "a change of {change} grid units in a pane is too large for a series: take a coarser grid"
    )]
    Change { change: u64 },
    #[error(
        "the state of the series has version {version}, and this program reads versions 1 and 2: upgrade the program"
    )]
    StateVersion { version: u8 },
    #[error("the state of the series is damaged: restore it from a copy, or begin a new series")]
    StateDamaged,
    #[error(
        "the state belongs to another series, with other noise, panes or price: restore the configuration, or begin a new \
         series"
    )]
    StateForeign,
}
