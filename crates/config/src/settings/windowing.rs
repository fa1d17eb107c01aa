//! The windows that a synopsis covers: one, the last several, or all so far.

use serde::Serialize;

use bernstream_noise::continual;
use bernstream_release::Target;

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

    /// Returns whether windows of this kind are sums over panes of a function, with noise that is correlated from one to the next. The last
    /// several panes of a table by key are no sum: its caps are for all of them together.
    pub fn is_sum_of_panes(self, target: &dyn Target) -> bool {
        match self {
            WindowKind::Tumbling => false,
            WindowKind::Hopping { .. } => target.is_sum(),
            WindowKind::Cumulative { .. } => target.adds_up(),
        }
    }

    pub fn horizon(self) -> u64 {
        match self {
            WindowKind::Cumulative { horizon } => horizon,
            WindowKind::Tumbling | WindowKind::Hopping { .. } => 1,
        }
    }
}
