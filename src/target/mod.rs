//! The functions that we publish about: exact values on the lattice, and how much one record can change them.

pub mod density;
mod kernel;

use std::fmt;

use crate::window::histogram::MOST_CELLS;

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// One record (or one unit's records) more or less.
    AddRemove,
    /// One record's values changed; block, window, key and validity stay.
    ReplaceOne,
}

/// How much neighbours can differ in the 1-norm over the lattice, in grid units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sensitivity(pub u64);

/// Exact lattice values of one window and key, in grid units. Secret: only [`crate::mechanism`] opens it.
///
/// `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct Exact(Vec<i128>);

impl Exact {
    /// Row-major over the lattice `{0, 1/k, ..., 1}^l`, the last axis fastest.
    pub fn new(values: Vec<i128>) -> Self {
        Exact(values)
    }

    /// The secret itself: for [`crate::mechanism`], tests and audits. Nothing else may call it (`tests/noise.rs`).
    pub fn reveal(&self) -> &[i128] {
        &self.0
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({} values)", self.0.len())
    }
}

/// Why a target cannot be built or bounded. Axes count from 1.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error("a density has 1 to 3 axes, not {0}")]
    Axes(usize),
    #[error(
        "the bandwidth of axis {axis} is {bandwidth} of its domain's width: it must be more than 0 and at most 1; \
         change the bandwidth or the domain"
    )]
    Bandwidth { axis: usize, bandwidth: f64 },
    #[error("degree {degree} is out of range: it must lie between 1 and {most}")]
    Degree { degree: u32, most: u32 },
    #[error("degree {degree} on {axes} axes makes {points} lattice points, more than {most}: lower the degree")]
    Points { degree: u32, axes: usize, points: u64, most: usize },
    #[error(
        "bandwidths this small need a histogram of {cells} cells for every window and key, more than {MOST_CELLS}: \
         widen the bandwidths or narrow the domain"
    )]
    Cells { cells: u128 },
    #[error(
        "{contributions} records a unit can change the release by more than 2^64 grid units, more noise than can be \
         drawn: lower the number of records a unit may contribute"
    )]
    Contributions { contributions: u32 },
}
