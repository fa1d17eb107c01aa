//! A coarse picture of a window: how many records lie in each of [`BINS`] equal parts of each axis, whatever the other
//! axes say. It is what a bandwidth is chosen from (`crate::choice`).
//!
//! # Why the sensitivity holds
//!
//! A record deposits at most [`GRAINS`] on the nodes, and each node belongs to one bin of each axis. So a record changes
//! the counts of one axis by at most [`GRAINS`] in the 1-norm if it comes or goes (less where cells are full), by at most
//! twice that if its values change, and a unit by that for each of its records and each axis.

use super::error::TargetError;
use crate::lattice;
use crate::window::accumulator::Accumulator;
use bernstream_noise::Exact;
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::histogram::{GRAINS, Nodes};

/// Parts of an axis.
pub const BINS: usize = 16;

/// Coarse counts on every axis of one grid.
#[derive(Clone, Debug)]
pub struct Marginals {
    nodes: Nodes,
}

impl Marginals {
    pub fn new(nodes: Nodes) -> Self {
        Marginals { nodes }
    }

    pub fn axis_count(&self) -> usize {
        self.nodes.per_axis().len()
    }

    /// [`BINS`] counts in grains for each axis, the first axis first. `state` must be a histogram on the nodes; anything
    /// else counts as empty.
    pub fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let mut counts = vec![0_i128; BINS * self.axis_count()];
        let Some(histogram) = accumulator.histogram() else {
            return Exact::new(counts);
        };
        let mut inner = histogram.cells.len();
        let axes = self.nodes.widths().zip(self.nodes.per_axis());
        for ((width, m), counts) in axes.zip(counts.chunks_exact_mut(BINS)) {
            inner /= width;
            for (at, grains) in histogram.cells.iter().enumerate() {
                if let Some(count) = counts.get_mut(bin_of_node(at / inner % width, *m)) {
                    *count += i128::from(*grains);
                }
            }
        }
        Exact::new(counts)
    }

    /// Largest change of all counts together by a unit of at most `contributions` records, in the 1-norm.
    ///
    /// # Errors
    ///
    /// If it exceeds `2^64` grid units.
    pub fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let moves = match adjacency {
            Adjacency::AddRemove => 1,
            Adjacency::ReplaceOne => 2,
        };
        lattice::times_contributions(
            moves * self.axis_count() as u128 * u128::from(GRAINS),
            contributions,
        )
        .map(Sensitivity)
    }
}

/// The bin of the node `index - 1` of `m`: those outside the domain belong to the bins at its ends.
fn bin_of_node(index: usize, m: u32) -> usize {
    let node = index.saturating_sub(1);
    let m = m as usize;
    (node * BINS / m).min(BINS - 1)
}
