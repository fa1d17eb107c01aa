//! From exact to noisy: the only door.

pub mod calibrate;
pub mod noise;

/// Noisy lattice values in grid units: safe to publish once paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noisy {
    /// Row-major over the lattice, the last axis fastest.
    pub values: Vec<i128>,
}
