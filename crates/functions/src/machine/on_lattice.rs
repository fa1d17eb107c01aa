//! Machines whose function is released on a lattice.

use super::exchange::{ExchangeBound, RecordChange, SensitivityClaim};
use super::landmarks::LandmarkMap;
use super::minimiser::{Minimiser, first_records, solving_cost};
use super::settings::{MachineSettings, checked_features, checked_lattice, checked_weight};
use super::solver::RiskProblem;
use super::space::{Features, GramMatrix, ROUNDING};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{EvaluationCost, Target, interpolated_sensitivity};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::machine::kernel::CubeLattice;
use bernstream_synopsis::shape::{Basis, Shape};

/// The machine of one release.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: MachineSettings,
    lattice: CubeLattice,
    map: Option<LandmarkMap>,
    problem: RiskProblem,
    claim: SensitivityClaim,
}

/// Sums of kernel values over the lattice, each at least what it bounds.
struct LatticeSums {
    /// Error of a value of a function, in parts of `sum |b_i|`.
    error: f64,
    /// `sum_{p, q} |K(p, q)|`.
    pairs: f64,
    /// `max_x sum_p |K(x, p)|`.
    column: f64,
    /// `max_p sum_q |K(p, q)|`.
    row: f64,
    /// `max_x sum_p K(x, p)^2`.
    square: f64,
}

impl Machine {
    /// The machine of these settings.
    ///
    /// # Errors
    ///
    /// If there is no bound for these settings, or they would take too much memory or time.
    pub fn new(settings: MachineSettings) -> Result<Self, TargetError> {
        let MachineSettings {
            kernel,
            loss,
            c,
            records,
            dimensions,
            degree,
            ..
        } = settings;
        let kernel = kernel.check_parameters()?;
        let lattice = checked_lattice(dimensions, degree)?;
        checked_weight(c, records)?;
        let landmarks = settings.checked_landmarks()?;
        if let Some(landmarks) = landmarks {
            checked_lattice(dimensions, landmarks)?;
        }
        let map = landmarks.map(|landmarks| LandmarkMap::new(kernel, landmarks, &lattice));
        let n = records as usize;
        let sums = match &map {
            None => {
                let column = kernel.column_sum(&lattice);
                LatticeSums {
                    error: 2.0 * GramMatrix::error_with(n),
                    pairs: kernel.pair_sum(&lattice),
                    column,
                    row: column,
                    square: kernel.square_sum(&lattice),
                }
            }
            Some(map) => {
                checked_features(records, map.width())?;
                let row = map.row_sum();
                LatticeSums {
                    error: 3.0 * Features::error_with(n, map.width()),
                    pairs: map.pair_sum(),
                    column: map.column_sum(),
                    row,
                    square: row,
                }
            }
        };
        let problem = ExchangeBound::tolerable_problem(loss, c, records, sums.error);
        let change = ExchangeBound::new(&problem);
        let norm = sums.pairs.sqrt().min(lattice.count() as f64);
        let off = problem.coefficient_bound() * (sums.error + (n + 8) as f64 * ROUNDING);
        let moved = RecordChange {
            sum: change.functional_change(norm, sums.column),
            length: change.functional_change(sums.row.sqrt(), sums.square.sqrt()),
            sup: change.functional_change(1.0, 1.0),
        };
        let claim = SensitivityClaim::new(lattice.count(), moved, off);
        Ok(Machine {
            settings,
            lattice,
            map,
            problem,
            claim,
        })
    }

    /// Largest distance of the result from the minimiser, in the norm of the kernel.
    pub fn tolerance(&self) -> f64 {
        self.problem.tolerance
    }

    /// Lattice values before they are rounded.
    fn lattice_values(&self, records: &[Record]) -> Vec<f64> {
        let MachineSettings {
            kernel, dimensions, ..
        } = self.settings;
        match Minimiser::find_minimiser(&self.settings, self.map.as_ref(), &self.problem, records) {
            Minimiser::Features(weights) => match &self.map {
                Some(map) => map.lattice_values(&weights),
                None => Vec::new(),
            },
            Minimiser::Kernels(terms) => {
                let mut values = vec![0.0; self.lattice.count()];
                let mut row = Vec::new();
                for term in terms {
                    kernel.write_lattice_row(&term.place[..dimensions], &self.lattice, &mut row);
                    for (value, k) in values.iter_mut().zip(&row) {
                        *value += term.coefficient * k;
                    }
                }
                values
            }
        }
    }
}

impl Builtin for Machine {}

impl Target for Machine {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records {
            most: self.settings.records,
        }
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.settings.dimensions,
            degree: self.settings.degree,
            basis: Basis::Bernstein,
        }
    }

    fn unit(&self) -> f64 {
        self.claim.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        self.claim
            .rounded_values(self.lattice_values(first_records(accumulator, self.settings.records)))
    }

    fn cost(&self) -> EvaluationCost {
        solving_cost(
            &self.settings,
            self.map.as_ref(),
            &self.problem,
            self.lattice.count(),
        )
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        self.settings.check_adjacency(adjacency)?;
        self.claim.sensitivity(contributions)
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.settings.check_adjacency(adjacency)?;
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

    /// Refused: the `M C / n` of `[AR17]` section 6 is half of what two windows can differ by.
    fn papers_sensitivity(
        &self,
        _: Adjacency,
        _contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        Err(TargetError::PaperIsWrong {
            what: "a regularised empirical risk, M C / n,",
        })
    }
}
