//! The functions that we publish about: exact values on the lattice, and how much one record can change them.

pub mod density;

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// One record (or one unit's records) more or less.
    AddRemove,
    /// One record's values changed; block, window, key and validity stay.
    ReplaceOne,
}

/// Exact lattice values of one window and key, in grid units. Secret: only [`crate::mechanism`] opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Row-major over the lattice `{0, 1/k, ..., 1}^l`, the last axis fastest.
    pub values: Vec<i128>,
}
