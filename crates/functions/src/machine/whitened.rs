//! Machines by whitened coordinates on public points: what the kernel ball and the Gaussian process add noise to.
//!
//! `c = M (f(p_1), ..., f(p_d))`, `f` the minimiser ([`super`]) and `M`, `p_i` those of [`Points`]. The minimiser moves by at
//! most `r` in the norm of the kernel, in a ball around half of what a lone record would do, and lies within `t` of what
//! is computed. `M` makes at most `q` of a function of norm 1 ([`Points::stretch_bound`]; about 1). So
//!
//! ```text
//! D2 = q (r + 2 t) + 2 e + sqrt(d) units,    S = D2,    D1 = sqrt(d) D2
//! ```
//!
//! with `e` what floats lose. Of a sum of kernels that is its error at a point, times [`Points::whitening_norm`], and that of the
//! product with `M`.
//!
//! On landmarks a function is `<w, phi>`, and `c = T w`, `T` the floats computed for `M phi(P)`: no error of theirs matters, as
//! `T` is what is used. `q` is then the largest singular value of `T`. As `||phi(x)|| <= 1`, `||w|| <= sum_i |b_i|`; what the sums of
//! `w` and of `T w` lose is at most `error_with` times that, times the 2-norm of all of `T`.

use super::exchange::{ExchangeBound, RecordChange, SensitivityClaim};
use super::landmarks::LandmarkMap;
use super::minimiser::{Minimiser, first_records, solving_cost};
use super::settings::{MachineSettings, checked_features, checked_lattice, checked_weight};
use super::solver::RiskProblem;
use super::space::{Features, GramMatrix, ROUNDING};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::target::{EvaluationCost, Target, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::cholesky::dot_product;
use bernstream_synopsis::machine::kernel::{CubeKernel, CubeLattice};
use bernstream_synopsis::shape::{Basis, PointKernel, Shape};
use bernstream_synopsis::whitened::points::{Placement, Points};

/// The machine of one release in whitened coordinates; all of it is public.
#[derive(Clone, Debug)]
pub struct KernelMachine {
    settings: MachineSettings,
    points: Points,
    landmarks: Option<Landmarks>,
    problem: RiskProblem,
    claim: SensitivityClaim,
}

#[derive(Clone, Debug)]
struct Landmarks {
    map: LandmarkMap,
    /// `T`, row by row.
    table: Vec<Vec<f64>>,
}

/// Errors of values, relative to `sum |b_i|` as for a lattice, and what the coordinates make of functions and errors.
struct CoordinateBounds {
    error: f64,
    /// Length of what becomes of a function of norm 1.
    stretch: f64,
    /// Length of what becomes of an error of 1 at every point.
    spread: f64,
    /// Error of the product with `M`.
    lost: f64,
}

impl KernelMachine {
    /// The machine at points placed so ([`Points::from_placement`]), a number for at most so many; the degree of the settings is not used.
    ///
    /// # Errors
    ///
    /// If there is no bound for these settings, or they would take too much memory or time.
    pub fn new(
        settings: MachineSettings,
        placement: impl Into<Placement>,
    ) -> Result<Self, TargetError> {
        let MachineSettings {
            kernel,
            loss,
            c,
            records,
            dimensions,
            ..
        } = settings;
        let points =
            Points::from_placement(PointKernel::Machine(kernel), dimensions, placement.into())?;
        checked_weight(c, records)?;
        let landmarks = match settings.checked_landmarks()? {
            Some(degree) => Some(Landmarks::new(kernel, dimensions, degree, &points)?),
            None => None,
        };
        let n = records as usize;
        let bounds = match &landmarks {
            None => CoordinateBounds {
                error: 2.0 * GramMatrix::error_with(n),
                stretch: points.stretch_bound(),
                spread: points.whitening_norm(),
                lost: points.rounding_loss(),
            },
            Some(Landmarks { map, table }) => {
                checked_features(records, map.width())?;
                let size = table.iter().flatten().map(|t| t * t).sum::<f64>().sqrt();
                CoordinateBounds {
                    error: 3.0 * Features::error_with(n, map.width()),
                    stretch: largest_singular(table),
                    spread: size * (1.0 + 1e-9),
                    lost: 0.0,
                }
            }
        };
        let problem = ExchangeBound::tolerable_problem(loss, c, records, bounds.error);
        let change = ExchangeBound::new(&problem);
        let values = bounds.error + (n + 8) as f64 * ROUNDING;
        let off =
            problem.coefficient_bound() * (bounds.spread * values + bounds.lost) * (1.0 + 1e-9);
        let d2 = change.functional_change(bounds.stretch, bounds.stretch);
        let count = points.count();
        let moved = RecordChange {
            sum: (count as f64).sqrt() * d2,
            length: d2,
            sup: d2,
        };
        let mut claim = SensitivityClaim::new(count, moved, off);
        // `off` is that of all coordinates together.
        claim.length =
            claim.whole_units(d2 + 2.0 * off) + u128::from(root_rounded_up(count as u128));
        Ok(KernelMachine {
            settings,
            points,
            landmarks,
            problem,
            claim,
        })
    }

    pub fn points(&self) -> &Points {
        &self.points
    }

    /// Largest distance of the result from the minimiser, in the norm of the kernel.
    pub fn tolerance(&self) -> f64 {
        self.problem.tolerance
    }

    /// Whitened coordinates before they are rounded.
    fn whitened_coordinates(&self, records: &[Record]) -> Vec<f64> {
        let MachineSettings {
            kernel, dimensions, ..
        } = self.settings;
        let map = self.landmarks.as_ref().map(|landmarks| &landmarks.map);
        match Minimiser::find_minimiser(&self.settings, map, &self.problem, records) {
            Minimiser::Features(weights) => match &self.landmarks {
                Some(Landmarks { table, .. }) => {
                    table.iter().map(|row| dot_product(row, &weights)).collect()
                }
                None => Vec::new(),
            },
            Minimiser::Kernels(terms) => {
                let mut values = Vec::with_capacity(self.points.count());
                for p in &self.points.basis().points {
                    let products = terms
                        .iter()
                        .map(|term| term.coefficient * kernel.value(&term.place[..dimensions], p));
                    values.push(products.sum());
                }
                self.points.whiten(&values)
            }
        }
    }
}

impl Landmarks {
    fn new(
        kernel: CubeKernel,
        axes: usize,
        degree: u32,
        points: &Points,
    ) -> Result<Self, TargetError> {
        checked_lattice(axes, degree)?;
        // A lattice is asked for by the column sums alone; any will do.
        let map = LandmarkMap::new(kernel, degree, &CubeLattice { axes, degree: 1 });
        let features: Vec<Vec<f64>> = points
            .basis()
            .points
            .iter()
            .map(|p| map.features_at(p))
            .collect();
        let mut columns = Vec::with_capacity(map.width());
        for j in 0..map.width() {
            let column: Vec<f64> = features.iter().map(|phi| phi[j]).collect();
            columns.push(points.whiten(&column));
        }
        let table = (0..points.count())
            .map(|i| columns.iter().map(|column| column[i]).collect())
            .collect();
        Ok(Landmarks { map, table })
    }
}

/// Upper bound of the largest singular value of `T`.
///
/// `sqrt(1 + ||G - I||_F + w u ||T||_F^2)`, `G` what floats make of `T T'`, `w` more than the roundings of an inner product:
/// each of them is off by at most `w u` times the norms of two rows.
fn largest_singular(table: &[Vec<f64>]) -> f64 {
    let mut off = 0.0;
    let mut square = 0.0;
    for (i, row) in table.iter().enumerate() {
        off += table[..i]
            .iter()
            .map(|other| 2.0 * dot_product(row, other).powi(2))
            .sum::<f64>();
        let own = dot_product(row, row);
        off += (own - 1.0).powi(2);
        square += own;
    }
    let roundings = (table.first().map_or(0, Vec::len) + 4) as f64 * ROUNDING;
    (1.0 + off.sqrt() + roundings * square).sqrt() * (1.0 + 1e-9)
}

impl Builtin for KernelMachine {}

impl Target for KernelMachine {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records {
            most: self.settings.records,
        }
    }

    fn shape(&self) -> Shape {
        let basis = Basis::Kernel(self.points.basis().clone());
        Shape {
            dimensions: self.settings.dimensions,
            degree: 1,
            basis,
        }
    }

    fn unit(&self) -> f64 {
        self.claim.unit
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        self.claim.rounded_values(
            self.whitened_coordinates(first_records(accumulator, self.settings.records)),
        )
    }

    fn cost(&self) -> EvaluationCost {
        let map = self.landmarks.as_ref().map(|landmarks| &landmarks.map);
        solving_cost(&self.settings, map, &self.problem, self.points.count())
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
        self.settings.check_adjacency(adjacency)?;
        self.claim.euclidean_sensitivity(contributions)
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        self.points.coefficients(&noisy)
    }
}
