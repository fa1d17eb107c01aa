//! What `"auto"` looked at, and what it took.

use crate::config::settings::noise::{Coordinates, NoiseKind};
use crate::synopsis::predict::{Bump, Expected};

/// What was looked at, and what was taken.
#[derive(Clone, Debug)]
pub struct Selection {
    pub expected_records: u64,
    /// By kind of noise, then by size; of a lattice the best order of each degree.
    pub candidates: Vec<Candidate>,
    /// Taken.
    pub best: Candidate,
    /// What it is judged by.
    pub bump: Option<Bump>,
}

/// One way to release, with its predicted errors in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub noise: NoiseKind,
    pub on: Coordinates,
    /// 1 where there is no lattice.
    pub order: u32,
    /// How many values a synopsis has.
    pub values: usize,
    pub expected: Expected,
}

impl Candidate {
    /// The keys that ask for it.
    pub fn written(&self) -> String {
        match self.on {
            Coordinates::Lattice { degree } => {
                format!("noise = \"{}\", degree = {degree} and order = {}", self.noise, self.order)
            }
            Coordinates::Points { most } => format!("noise = \"{}\" and points = {most}", self.noise),
        }
    }
}
