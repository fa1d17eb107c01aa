//! The grid that moments are summed on, and how many of them it carries.

use crate::histogram::Nodes;

pub const MOST_FREQUENCIES: u32 = 1024;

/// Cells a frequency and axis, and the most cells of a grid that has more than the least.
const FINENESS: [u32; 4] = [64, 32, 16, 8];
const CELLS: usize = 1_100_000;

/// The grid of so many frequencies, `None` where there is none.
pub fn moment_nodes(dimensions: usize, frequencies: u32) -> Option<Nodes> {
    let mut coarsest = None;
    for cells in FINENESS {
        coarsest = Nodes::of_angles(&vec![cells * frequencies; dimensions]);
        if let Some(nodes) = &coarsest
            && nodes.cells() <= CELLS
        {
            break;
        }
    }
    coarsest
}

/// The most frequencies that there can be on so many axes.
pub fn most_frequencies(dimensions: usize) -> u32 {
    (1..=MOST_FREQUENCIES)
        .rev()
        .find(|t| moment_nodes(dimensions, *t).is_some())
        .unwrap_or(0)
}
