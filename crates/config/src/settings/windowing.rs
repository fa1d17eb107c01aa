//! The windows that a synopsis covers: one, the last several, or all so far.

use serde::Serialize;

use bernstream_noise::continual;

/// The windows that a synopsis covers; the windows of the grid are its panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// One pane.
    Tumbling,
    /// The last so many panes, at least two.
    Hopping { panes: u32 },
    /// All panes since the sum started. The noise is optimised for a sum of `horizon` panes.
    Cumulative { horizon: u64 },
}

impl WindowKind {
    /// The windows of correlated noise; none for a single pane.
    pub fn noise_windows(self) -> Option<continual::SeriesKind> {
        match self {
            WindowKind::Tumbling => None,
            WindowKind::Hopping { panes } => Some(continual::SeriesKind::Hopping { panes }),
            WindowKind::Cumulative { .. } => Some(continual::SeriesKind::Cumulative),
        }
    }

    pub fn horizon(self) -> u64 {
        match self {
            WindowKind::Cumulative { horizon } => horizon,
            WindowKind::Tumbling | WindowKind::Hopping { .. } => 1,
        }
    }
}
