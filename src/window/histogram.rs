//! The state of a sum over records: an integer histogram on a fine public grid.

/// A record's place on the grid: integer coordinates, one an axis, in 1/1024 of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub [u32; 3]);

/// The fine grid: nodes `j / M`, `j = -1 ..= M + 1`, on each axis of the unit cube.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// `M`, one an axis, 1 to 3 axes.
    pub per_axis: Vec<u32>,
}

/// Deposits so far, row-major, the last axis fastest; `prod (M_i + 3)` cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub cells: Vec<u64>,
}
