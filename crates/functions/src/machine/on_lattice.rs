//! Machines whose function is released on a lattice.

use super::exchange::{Change, Claim, ExchangeBound};
use super::landmarks::Map;
use super::minimiser::{Minimiser, at_most, cost};
use super::settings::{MOST_EXACT, Settings, checked_features, checked_lattice, checked_weight};
use super::solver::Problem;
use super::space::{Features, Gram, ROUNDING};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::Error;
use bernstream_release::target::{Cost, Target, interpolated};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::machine::kernel::{Kernel, Lattice};
use bernstream_synopsis::shape::{Basis, Shape};

/// The machine of one release.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    lattice: Lattice,
    map: Option<Map>,
    problem: Problem,
    claim: Claim,
}

impl Machine {
    /// The machine of these settings.
    ///
    /// # Errors
    ///
    /// If there is no bound for these settings, or they would take too much memory or time.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings {
            kernel,
            loss,
            c,
            records,
            dimensions,
            degree,
            landmarks,
        } = settings;
        let kernel = kernel.checked()?;
        let lattice = checked_lattice(dimensions, degree)?;
        checked_weight(c, records)?;
        // Corners are landmarks enough for all affine functions.
        let landmarks = if kernel == Kernel::Linear {
            Some(1)
        } else {
            landmarks
        };
        if let Some(landmarks) = landmarks {
            checked_lattice(dimensions, landmarks)?;
        } else if records > MOST_EXACT {
            return Err(Error::NeedsLandmarks {
                records,
                most: MOST_EXACT,
            });
        }
        let map = landmarks.map(|landmarks| Map::new(kernel, landmarks, &lattice));
        let n = records as usize;
        let (error, pairs, column) = match &map {
            None => (
                2.0 * Gram::error_with(n),
                kernel.pair_sum(&lattice),
                kernel.column_sum(&lattice),
            ),
            Some(map) => {
                checked_features(records, map.width())?;
                (
                    3.0 * Features::error_with(n, map.width()),
                    map.pair_sum(),
                    map.column_sum(),
                )
            }
        };
        let (rows, squares) = match &map {
            None => (column, kernel.square_sum(&lattice)),
            Some(map) => (map.row_sum(), map.row_sum()),
        };
        let (change, problem) = ExchangeBound::new(loss, c, records, error);
        let norm = pairs.sqrt().min(lattice.count() as f64);
        let off = problem.mass() * (error + (n + 8) as f64 * ROUNDING);
        let moved = Change {
            sum: change.functional(norm, column),
            length: change.functional(rows.sqrt(), squares.sqrt()),
            sup: change.functional(1.0, 1.0),
        };
        let claim = Claim::new(lattice.count(), moved, off);
        Ok(Machine {
            settings,
            lattice,
            map,
            problem,
            claim,
        })
    }

    /// How far the result may lie from the minimiser, in the norm of the kernel.
    pub fn tolerance(&self) -> f64 {
        self.problem.tolerance
    }

    /// Lattice values before they are rounded.
    fn values(&self, records: &[Record]) -> Vec<f64> {
        let Settings {
            kernel, dimensions, ..
        } = self.settings;
        match Minimiser::of(&self.settings, self.map.as_ref(), &self.problem, records) {
            Minimiser::Features(weights) => self
                .map
                .as_ref()
                .map_or_else(Vec::new, |map| map.values(&weights)),
            Minimiser::Kernels(terms) => {
                let mut values = vec![0.0; self.lattice.count()];
                let mut row = Vec::new();
                for (b, place) in terms {
                    kernel.row(&place[..dimensions], &self.lattice, &mut row);
                    values
                        .iter_mut()
                        .zip(&row)
                        .for_each(|(value, k)| *value += b * k);
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
            .exact(self.values(at_most(accumulator, self.settings.records)))
    }

    fn cost(&self) -> Cost {
        cost(
            &self.settings,
            self.map.as_ref(),
            &self.problem,
            self.lattice.count(),
        )
    }

    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error> {
        self.settings.check_adjacency(adjacency)?;
        self.claim.sensitivity(contributions)
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
        self.settings.check_adjacency(adjacency)?;
        self.claim.sup_sensitivity(contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, Error> {
        let own = self.claim.euclidean_sensitivity(contributions)?;
        Ok(own.min(interpolated(self, adjacency, contributions)?))
    }

    /// Refused: the `M C / n` of `[AR17]` section 6 is half of what two windows can differ by.
    fn papers_sensitivity(&self, _: Adjacency, _contributions: u32) -> Result<Sensitivity, Error> {
        Err(Error::PaperIsWrong {
            what: "a regularised empirical risk, M C / n,",
        })
    }
}
