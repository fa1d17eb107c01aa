//! The candidates that `"auto"` tried, and the one that it chose.

use crate::config::settings::noise::{Coordinates, NoiseKind};
use crate::synopsis::predict::{Bump, Expected};

/// The candidates that were tried, and the one that was chosen.
#[derive(Clone, Debug)]
pub struct Selection {
    pub expected_records: u64,
    /// By kind of noise, then by size; of a lattice the best order of each degree.
    pub candidates: Vec<Candidate>,
    /// The one that was chosen.
    pub best: Candidate,
    /// The bump that the error was predicted for.
    pub bump: Option<Bump>,
}

/// A kind of noise with its size, and its predicted errors in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// 1 if there is no lattice.
    pub order: u32,
    /// How many values a synopsis has.
    pub values: usize,
    pub expected: Expected,
}

impl Candidate {
    /// The keys that select it in a file.
    pub fn written(&self) -> String {
        match self.on {
            Coordinates::Lattice { degree } => {
                format!("noise = \"{}\", degree = {degree} and order = {}", self.noise, self.order)
            }
            Coordinates::Points { most } => format!("noise = \"{}\" and points = {most}", self.noise),
        }
    }
}
