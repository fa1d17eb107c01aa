//! The memory of a series between two panes.

use std::fmt;

use super::correlation::NoiseMemory;

/// State of a series of one key: the noise that is still needed, and the values that were published.
///
/// Secret, and worth as much as the exact values: published values less their noise are those. It has no more than the next step
/// needs, but where noise is correlated that is enough to compute exact panes: with a filter the last ones, as many as it is long; with a
/// BLT or a tree those after a beginning, and sums of the later ones. `Debug` shows none. Keep it
/// with the charge, in one transaction: a step that is drawn twice is published twice and paid for once.
#[derive(Clone, PartialEq, Eq)]
pub struct SeriesState {
    pub(super) memory: NoiseMemory,
    /// Cumulative: the sum. Hopping: the last panes but the one that leaves the window now, a ring.
    pub(super) published: Vec<Vec<i128>>,
    pub(super) values: usize,
}

impl fmt::Debug for SeriesState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} values, step {})", self.values, self.step())
    }
}

impl SeriesState {
    /// Number of panes that have been released.
    pub fn step(&self) -> u64 {
        self.memory.step
    }

    /// Number of values of a pane.
    pub fn values(&self) -> usize {
        self.values
    }
}
