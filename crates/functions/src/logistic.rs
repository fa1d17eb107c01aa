//! Logistic regression with a regularised constant (`[AR17]` section 6; `docs/proofs/machines.md`): a linear score or its
//! sigmoid.
//!
//! `w_D = argmin (C/m) sum_i ln(1 + exp(-y_i <w, phi(x_i)>)) + |w|^2 / 2`, `phi(x) = (1, t) / sqrt(l + 1)`, `t = 2 x - 1`, so that
//! `|phi| <= 1`. The score is `<w, phi(x)>`. An intercept that is not regularised would have no sensitivity bound.
//!
//! # Why the sensitivities hold
//!
//! `w_D` moves by at most `r`, and in the ball of [`super::machine`], when a record is exchanged. The released
//! coefficients are `w / sqrt(l + 1)`; of one a record has at most `1 / (l + 1)`, of all together in the 1-norm at most 1
//! (a corner of the cube), and so
//!
//! ```text
//! linear    S = (min(2 M (C/m) / sqrt(l + 1), r) + r + 4 t) / (2 sqrt(l + 1))     D1 = r + 2 t     D2 = D1 / sqrt(l + 1)
//! sigmoid   S = (r + 2 t) / 4     D1 and D2 a quarter of those of the score on the lattice
//! ```
//!
//! since a sigmoid is nowhere steeper than 1/4.

use super::machine::exchange::{ExchangeBound, RecordChange, SensitivityClaim};
use super::machine::minimiser::first_records;
use super::machine::settings::{checked_features, checked_lattice, checked_weight};
use super::machine::solver::RiskProblem;
use super::machine::space::{Features, ROUNDING};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{
    EvaluationCost, Target, interpolated_sensitivity, sensitivity_of_every_value,
};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::machine::kernel::{CubeKernel, CubeLattice};
use bernstream_synopsis::machine::loss::Loss;
use bernstream_synopsis::shape::{Basis, Shape};

/// Single precision moves an inner product of two feature vectors by at most this.
const SINGLE: f64 = 1.0 / (1 << 22) as f64;

/// Part of a logistic regression that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogisticScore {
    /// The `l + 1` coefficients of the score.
    Linear,
    /// The probability of the class 1, on the lattice of this degree; at most 10,000 points.
    Sigmoid { degree: u32 },
}

/// The logistic regression of one release.
#[derive(Clone, Debug)]
pub struct Logistic {
    dimensions: usize,
    records: u32,
    lattice: Option<CubeLattice>,
    problem: RiskProblem,
    claim: SensitivityClaim,
}

impl Logistic {
    /// `c` is `C`, more than 0; `records` is `m`, the most records a window keeps; `dimensions` 1 to 3.
    ///
    /// # Errors
    ///
    /// If a setting is out of range.
    pub fn new(
        dimensions: usize,
        c: f64,
        records: u32,
        score: LogisticScore,
    ) -> Result<Self, TargetError> {
        let lattice = match score {
            LogisticScore::Linear => checked_lattice(dimensions, 1).map(|_| None)?,
            LogisticScore::Sigmoid { degree } => Some(checked_lattice(dimensions, degree)?),
        };
        checked_weight(c, records)?;
        let width = dimensions + 1;
        checked_features(records, width)?;
        let error = 3.0 * Features::error_with(records as usize, width);
        let problem = ExchangeBound::tolerable_problem(Loss::Logistic, c, records, error);
        let change = ExchangeBound::new(&problem);
        let off = problem.coefficient_bound() * (error + 16.0 * ROUNDING) + 16.0 * ROUNDING;
        let root = (width as f64).sqrt();
        let claim = if let Some(lattice) = &lattice {
            let points = lattice.count() as f64;
            let norm = (CubeKernel::Linear.pair_sum(lattice) + points * points * SINGLE)
                .sqrt()
                .min(points);
            let column = CubeKernel::Linear.column_sum(lattice) + points * SINGLE;
            // Rows as for a machine; single precision moves each of their terms.
            let squares = (CubeKernel::Linear.square_sum(lattice).sqrt() + points.sqrt() * SINGLE)
                .min(column.sqrt());
            let moved = RecordChange {
                sum: change.functional_change(norm, column) / 4.0,
                length: change.functional_change(column.sqrt(), squares) / 4.0,
                sup: change.functional_change(1.0, 1.0) / 4.0,
            };
            SensitivityClaim::new(lattice.count(), moved, off)
        } else {
            let moved = RecordChange {
                sum: change.functional_change(root, root) / root,
                length: change.functional_change(1.0, 1.0) / root,
                sup: change.functional_change(1.0, 1.0 / root + SINGLE) / root,
            };
            SensitivityClaim::new(width, moved, off)
        };
        Ok(Logistic {
            dimensions,
            records,
            lattice,
            problem,
            claim,
        })
    }

    /// `w`.
    fn weights(&self, records: &[Record]) -> Vec<f64> {
        let labels: Vec<f64> = records
            .iter()
            .map(|record| Loss::Logistic.signed_label(record.label()))
            .collect();
        let features = Features::new(records.len(), self.dimensions + 1, |i, row| {
            let x = [records[i].x(0), records[i].x(1), records[i].x(2)];
            for (single, feature) in row.iter_mut().zip(affine_features(&x[..self.dimensions])) {
                *single = shortened_single(feature);
            }
        });
        features.weights(&self.problem.solve(&features, &labels))
    }
}

/// `phi(x)`.
fn affine_features(x: &[f64]) -> impl Iterator<Item = f64> {
    let root = (x.len() as f64 + 1.0).sqrt();
    std::iter::once(1.0)
        .chain(x.iter().map(|x| 2.0 * x - 1.0))
        .map(move |t| t / root)
}

/// The feature in single precision and no larger in size, so that the norm of all features together stays at most 1.
fn shortened_single(feature: f64) -> f32 {
    (feature * (1.0 - f64::from(f32::EPSILON))) as f32
}

impl Builtin for Logistic {}

impl Target for Logistic {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records { most: self.records }
    }

    fn shape(&self) -> Shape {
        match &self.lattice {
            None => Shape {
                dimensions: self.dimensions,
                degree: 1,
                basis: Basis::Affine,
            },
            Some(lattice) => Shape {
                dimensions: self.dimensions,
                degree: lattice.degree,
                basis: Basis::Bernstein,
            },
        }
    }

    fn unit(&self) -> f64 {
        self.claim.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let weights = self.weights(first_records(accumulator, self.records));
        let Some(lattice) = &self.lattice else {
            let root = (weights.len() as f64).sqrt();
            return self
                .claim
                .rounded_values(weights.iter().map(|weight| weight / root));
        };
        self.claim.rounded_values(lattice.points().map(|p| {
            let features = affine_features(&p[..self.dimensions]);
            let score: f64 = weights.iter().zip(features).map(|(w, phi)| w * phi).sum();
            1.0 / (1.0 + (-score).exp())
        }))
    }

    fn cost(&self) -> EvaluationCost {
        let entries = u64::from(self.records) * (self.dimensions as u64 + 1);
        EvaluationCost {
            bytes: 4 * entries,
            products: entries.saturating_mul(self.problem.most_rounds()),
        }
    }

    fn sensitivity(&self, _: Adjacency, contributions: u32) -> Result<Sensitivity, TargetError> {
        self.claim.sensitivity(contributions)
    }

    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        self.claim.sup_sensitivity(contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let own = self.claim.euclidean_sensitivity(contributions)?;
        Ok(own.min(interpolated_sensitivity(self, adjacency, contributions)?))
    }

    /// `[AR17]` appendix G: weights move by at most `2 C / n`, and a sigmoid by a quarter of that. True.
    fn papers_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        sensitivity_of_every_value(self, adjacency, contributions)
    }
}
