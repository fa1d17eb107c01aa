//! Private choices of a window, and their mechanisms.

use crate::settings::error::SettingsError;
use crate::settings::function::ReleasedFunction;
use crate::settings::privacy::NeighbourRelation;
use bernstream_noise as mechanism;
use bernstream_noise::Mechanism;
use bernstream_noise::order::{OrderChoice, OrderRemainder, TargetChange};
use bernstream_release::choice::{Bandwidth, Candidates};
use bernstream_release::marginals::Marginals;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::Shape;
use bernstream_synopsis::bernstein::Operator;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::predict;

/// The most multiplications for all tables of a choice of order, so that a worker starts within seconds.
const WORK: usize = 300_000_000;

/// `private_bandwidths`: every candidate is a function of its own, all on one histogram.
#[derive(Clone, Debug)]
pub struct PrivateBandwidths {
    /// The price of one choice.
    pub price: Epsilon,
    pub candidates: Candidates<ReleasedFunction>,
    /// In the unit cube, one list a candidate.
    pub in_cube: Vec<Vec<f64>>,
}

/// `private_order`: candidates in ascending order.
#[derive(Clone, Debug)]
pub struct PrivateOrder {
    /// The price of one choice.
    pub price: Epsilon,
    pub candidates: Candidates<u32>,
}

impl PrivateBandwidths {
    /// The mechanism that chooses.
    ///
    /// # Errors
    ///
    /// If the function keeps no histogram, or the price does not pay for the noise of the choice.
    pub fn mechanism(&self, protected: NeighbourRelation) -> Result<Bandwidth, SettingsError> {
        let AccumulatorSpec::Histogram(nodes) = self.candidates.first().target.accumulator() else {
            return Err(SettingsError::Mechanism(
                mechanism::NoiseError::NoSensitivity,
            ));
        };
        let marginals = Marginals::new(nodes);
        let sensitivity = marginals.sensitivity(protected.adjacency, protected.contributions)?;
        Ok(Bandwidth::new(
            marginals,
            self.in_cube.clone(),
            sensitivity,
            self.price,
        )?)
    }
}

impl PrivateOrder {
    /// The mechanism that chooses for the values of `function` with the noise of `noise`.
    ///
    /// # Errors
    ///
    /// If the function has no sensitivity, or the price does not pay for the noise of the choice.
    pub fn mechanism(
        &self,
        function: &ReleasedFunction,
        noise: &Mechanism,
        protected: NeighbourRelation,
    ) -> Result<OrderChoice, SettingsError> {
        let target = &function.target;
        let Shape {
            dimensions, degree, ..
        } = target.shape();
        let orders: Vec<u32> = self.candidates.iter().copied().collect();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a prediction; what is claimed is read off whole numbers"
        )]
        let scale = noise.scale().units() as f64;
        let noises = predict::mean_noise_sups(&target.shape(), noise.distribution(), &orders);
        let tables = Operator::new(dimensions, degree).remainders(&orders);
        let mut remainders = Vec::new();
        for (noise, rows) in noises.iter().zip(&tables) {
            remainders.push(OrderRemainder::new(noise * scale, rows));
        }
        let change = TargetChange {
            values: target.shape().value_count(),
            sup: target.sup_sensitivity(protected.adjacency, 1)?,
            effects: target.effects(),
            adjacency: protected.adjacency,
            contributions: protected.contributions,
        };
        Ok(OrderChoice::new(remainders, &change, self.price)?)
    }

    /// Returns whether the tables for this lattice are computed within seconds: at order 8, at most degree 290 on one axis and 20 on
    /// two.
    pub fn is_quick(&self, shape: &Shape) -> bool {
        let highest = self.candidates.iter().max().copied().unwrap_or(1) as usize;
        let step = shape
            .value_count()
            .saturating_pow(2)
            .saturating_mul(shape.degree as usize + 1)
            * shape.dimensions;
        step.saturating_mul(highest) <= WORK
    }
}
