//! Neighbouring data sets, and how far apart they can be.

use serde::{Deserialize, Serialize};

/// Relation by which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// One record (or one unit's records) more or less.
    AddRemove,
    /// One record's values changed; block, window and key stay. Values that are null, or that a domain drops, count as well:
    /// then the record is absent, and takes away all that it added.
    ReplaceOne,
}

/// Largest difference of neighbours, in grid units, in the norm that the noise is made for: the 1-norm over the values where
/// nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sensitivity(pub u64);
