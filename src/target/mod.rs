//! The functions that we publish about: exact values on the lattice, and how much one record can change them.

pub mod bayes;
pub mod density;
mod kernel;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::window::histogram::MOST_CELLS;
use crate::window::keep::{Keep, State};

/// A function of a window's records, on a lattice, and how much a record can change it.
///
/// All of a target is public. Values are whole numbers of grid units; in natural units a value is
/// `offset + unit * value`.
pub trait Target: fmt::Debug + Send + Sync {
    /// What a window must keep of its records.
    fn keep(&self) -> Keep;

    /// What the released values are: the same for every window.
    fn shape(&self) -> Shape;

    /// What one grid unit stands for, where the domain is the unit cube and a label lies in `[-1, 1]`.
    fn unit(&self) -> f64;

    /// The exact values of one window and key, [`Shape::values`] of them. `state` must be one of [`Target::keep`].
    fn evaluate(&self, state: &State) -> Exact;

    /// How much a unit of at most `contributions` records can change the values in the 1-norm, all keys together; an
    /// error where no bound holds.
    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error>;

    /// How much such a unit can change any one value, in grid units.
    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error>;
}

/// What released values are, and how they become a function on the unit cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `l`, 1 to 3.
    pub dimensions: usize,
    /// `k`; 1 for [`Basis::Affine`].
    pub degree: u32,
    pub basis: Basis,
}

/// How released values become a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Values on the lattice `{0, 1/k, ..., 1}^l`, row-major, the last axis fastest; a polynomial by the iterated
    /// Bernstein operator ([`crate::synopsis::bernstein::Operator`]).
    Bernstein,
    /// `l + 1` coefficients of `c_0 + sum_i c_i t_i`, `t_i = 2 y_i - 1` in `[-1, 1]`, `y` the point in the unit cube.
    Affine,
}

impl Shape {
    /// How many values there are: `(k + 1)^l`, or `l + 1`.
    pub fn values(&self) -> usize {
        match self.basis {
            Basis::Bernstein => (self.degree as usize + 1).saturating_pow(self.dimensions as u32),
            Basis::Affine => self.dimensions + 1,
        }
    }
}

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
    #[error("a function has 1 to 3 axes, not {0}")]
    Axes(usize),
    #[error(
        "the bandwidth of axis {axis} is {bandwidth} of its domain's width: it must be more than 0 and at most 1; \
         change the bandwidth or the domain"
    )]
    Bandwidth { axis: usize, bandwidth: f64 },
    #[error(
        "the smallest standard deviation of axis {axis} is {deviation} of its domain's width: it must be at least \
         {least} and at most 1; change the deviation or the domain"
    )]
    Deviation { axis: usize, deviation: f64, least: f64 },
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
