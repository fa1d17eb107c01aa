//! Moments of a release.

pub mod grid;

pub use self::grid::MOST_FREQUENCIES;
pub use self::grid::most_frequencies;
