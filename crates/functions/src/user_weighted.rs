//! Functions to which each user counts as much as one record, however many records there are (`docs/proofs/windows.md`, "One vote a
//! user").
//!
//! # Why the sensitivities hold
//!
//! A unit with `n` records in a window deposits `1/n` of each, every share rounded down to whole grains: in each cell no more than the mean of
//! its `n` deposits, and `2^20` grains in all at the most. So its deposit, over all keys together, is what the deposit of one record is to the
//! proofs of the functions on histograms: `2^20` times a convex combination of single nodes and of none. In the 2-norm it is no longer than the
//! longest deposit, as a mean is no longer than the longest of what it is taken of, and shares are not negative.

use std::sync::Arc;

use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{EvaluationCost, Target};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::shape::Shape;

/// A function on histograms, of records that weigh `1/n` each where their user has `n` in the window.
#[derive(Clone, Debug)]
pub struct UserWeighted(Arc<dyn Target>);

impl UserWeighted {
    /// `None` unless the function is computed from histograms, without or with a label.
    pub fn new(target: Arc<dyn Target>) -> Option<Self> {
        match target.accumulator() {
            AccumulatorSpec::Histogram(_) | AccumulatorSpec::Tables { .. } => {
                Some(UserWeighted(target))
            }
            _ => None,
        }
    }
}

impl Builtin for UserWeighted {}

impl Target for UserWeighted {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::UserWeighted(Box::new(self.0.accumulator()))
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        self.0.evaluate(accumulator)
    }

    fn is_sum(&self) -> bool {
        self.0.is_sum()
    }

    fn cost(&self) -> EvaluationCost {
        self.0.cost()
    }

    /// That of one record, whatever the cap on records is.
    fn sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<Sensitivity, TargetError> {
        self.0.sensitivity(adjacency, 1)
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        self.0.sup_sensitivity(adjacency, 1)
    }

    fn euclidean_sensitivity(&self, adjacency: Adjacency, _: u32) -> Result<u64, TargetError> {
        self.0.euclidean_sensitivity(adjacency, 1)
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        self.0.publish(noisy)
    }
}
