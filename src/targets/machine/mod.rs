//! Regularised empirical risk in an RKHS: support vector machines, kernel logistic regression, ridge and Huber regression
//! (`[AR17]` section 6; privacy mathematics, section 6).
//!
//! `f_D = argmin (C/m) sum_i L(y_i, f(x_i)) + ||f||^2 / 2` over the functions of the kernel, on the lattice. `m` is public,
//! the most records a window keeps. There is no intercept: without regularisation it has no sensitivity bound.
//!
//! # Why the sensitivities hold
//!
//! `f_D` moves by at most `r = (C/m)` [`Loss::exchange`] in the norm of the kernel, `K(x, x) <= 1`, when a record is
//! exchanged, and in a ball around half of what a lone record would do (`change.rs`). At most `m` records are used,
//! here too, so pulls are bounded by `M` and one record more is at worst an exchange. Hence, `N` the lattice points,
//! `t` the tolerance of the solver (`solver.rs`) and `Q = min(N, sqrt(sum_{p,q} |K(p, q)|))`,
//!
//! ```text
//! S  = r + 2 t
//! D1 = (min(2 M (C/m) max_x sum_p |K(x, p)|, r Q) + r Q) / 2 + 2 t Q
//! ```
//!
//! because `||g||_1 = max_s <g, sum_p s_p K_p> <= ||g|| Q`. What the floats of the lattice values may lose
//! (`space.rs`) is added, and a unit for rounding. The constant `MC/n` of `[AR17]` is half of what holds.
//!
//! # Large windows
//!
//! The Gram matrix of more than [`MOST_EXACT`] records is too large. Then the functions are those of public landmarks
//! (`landmarks.rs`); the argument is the same with `phi(x)' phi(y)` for `K(x, y)`. The linear kernel always has explicit
//! features.
//!
//! [`whitened`] has the same machines without a lattice, for noise in the 2-norm.

pub(in crate::targets) mod change;
pub mod kernel;
mod landmarks;
pub mod loss;
pub(in crate::targets) mod solver;
pub(in crate::targets) mod space;
pub mod whitened;

pub use kernel::Kernel;
pub use loss::Loss;
pub use whitened::KernelMachine;

use super::{Adjacency, Basis, Cost, Error, Exact, Sensitivity, Shape, Target};
use crate::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use change::{Change, Claim};
use kernel::Lattice;
use landmarks::Map;
use solver::Problem;
use space::{Features, Gram, ROUNDING};

/// Most records of a window whose Gram matrix is computed (200 MB).
pub const MOST_EXACT: u32 = 5_000;

/// Most features of all records of a window together (1 GB).
const MOST_FEATURES: u64 = 1 << 28;

const MOST_POINTS: usize = 10_000;

/// What a machine is made of; all of it public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub kernel: Kernel,
    pub loss: Loss,
    /// `C`, more than 0: how much the records count against the norm. `C/m` is what libraries call `C`.
    pub c: f64,
    /// `m`: the most records a window keeps.
    pub records: u32,
    /// `l`, 1 to 3.
    pub dimensions: usize,
    /// `k`; at most 10,000 lattice points.
    pub degree: u32,
    /// The degree of the landmarks' lattice; without it the Gram matrix.
    pub landmarks: Option<u32>,
}

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
    /// Refuses settings for which there is no bound, no memory or no time.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings { kernel, loss, c, records, dimensions, degree, landmarks } = settings;
        let kernel = kernel.checked()?;
        let lattice = checked_lattice(dimensions, degree)?;
        checked_weight(c, records)?;
        // Corners are landmarks enough for all affine functions.
        let landmarks = if kernel == Kernel::Linear { Some(1) } else { landmarks };
        if let Some(landmarks) = landmarks {
            checked_lattice(dimensions, landmarks)?;
        } else if records > MOST_EXACT {
            return Err(Error::NeedsLandmarks { records, most: MOST_EXACT });
        }
        let map = landmarks.map(|landmarks| Map::new(kernel, landmarks, &lattice));
        let n = records as usize;
        let (error, pairs, column) = match &map {
            None => (2.0 * Gram::error_with(n), kernel.pair_sum(&lattice), kernel.column_sum(&lattice)),
            Some(map) => {
                checked_features(records, map.width())?;
                (3.0 * Features::error_with(n, map.width()), map.pair_sum(), map.column_sum())
            }
        };
        let (change, problem) = Change::new(loss, c, records, error);
        let norm = pairs.sqrt().min(lattice.len() as f64);
        let off = problem.mass() * (error + (n + 8) as f64 * ROUNDING);
        let claim = Claim::new(lattice.len(), change.functional(norm, column), change.functional(1.0, 1.0), off);
        Ok(Machine { settings, lattice, map, problem, claim })
    }

    /// How far the result may lie from the minimiser, in the norm of the kernel.
    pub fn tolerance(&self) -> f64 {
        self.problem.tolerance
    }

    /// Lattice values before they are rounded.
    fn values(&self, records: &[Record]) -> Vec<f64> {
        let Settings { kernel, dimensions, .. } = self.settings;
        match Minimiser::of(&self.settings, self.map.as_ref(), &self.problem, records) {
            Minimiser::Features(weights) => self.map.as_ref().map_or_else(Vec::new, |map| map.values(&weights)),
            Minimiser::Kernels(terms) => {
                let mut values = vec![0.0; self.lattice.len()];
                let mut row = Vec::new();
                for (b, place) in terms {
                    kernel.row(&place[..dimensions], &self.lattice, &mut row);
                    values.iter_mut().zip(&row).for_each(|(value, k)| *value += b * k);
                }
                values
            }
        }
    }
}

/// The minimiser of one window, to within the solver's tolerance.
enum Minimiser {
    /// `sum_i b_i K(x_i, .)`.
    Kernels(Vec<(f64, [f64; 3])>),
    /// `<w, phi(.)>`.
    Features(Vec<f64>),
}

impl Minimiser {
    /// At most `m` records.
    fn of(settings: &Settings, map: Option<&Map>, problem: &Problem, records: &[Record]) -> Self {
        let Settings { kernel, loss, dimensions: axes, .. } = *settings;
        let x = |record: &Record| [record.x(0), record.x(1), record.x(2)];
        let labels: Vec<f64> = records.iter().map(|record| loss.label(record.label())).collect();
        if let Some(map) = map {
            let write = |i: usize, row: &mut [f32]| map.features(&x(&records[i])[..axes], row);
            let features = Features::new(records.len(), map.width(), write);
            return Minimiser::Features(features.weights(&problem.solve(&features, &labels)));
        }
        let places: Vec<[f64; 3]> = records.iter().map(x).collect();
        let gram = Gram::new(records.len(), |i, j| kernel.value(&places[i][..axes], &places[j][..axes]));
        let b = problem.solve(&gram, &labels);
        Minimiser::Kernels(b.into_iter().zip(places).filter(|(b, _)| *b != 0.0).collect())
    }
}

/// What solving takes at most, and the values at so many places.
fn cost(settings: &Settings, map: Option<&Map>, problem: &Problem, places: usize) -> Cost {
    let records = u64::from(settings.records);
    let (entries, bytes) = match map {
        None => (records * records, records * records * 8),
        Some(map) => (records * map.width() as u64, records * map.width() as u64 * 4),
    };
    Cost { bytes, products: entries.saturating_mul(problem.rounds()).saturating_add(records * places as u64) }
}

impl Target for Machine {
    fn keep(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records { most: self.settings.records }
    }

    fn shape(&self) -> Shape {
        Shape { dimensions: self.settings.dimensions, degree: self.settings.degree, basis: Basis::Bernstein }
    }

    fn unit(&self) -> f64 {
        self.claim.unit
    }

    fn evaluate(&self, state: &Accumulator) -> Exact {
        self.claim.exact(self.values(at_most(state, self.settings.records)))
    }

    fn cost(&self) -> Cost {
        cost(&self.settings, self.map.as_ref(), &self.problem, self.lattice.len())
    }

    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error> {
        self.allows(adjacency)?;
        self.claim.sensitivity(contributions)
    }

    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
        self.allows(adjacency)?;
        self.claim.sup_sensitivity(contributions)
    }

    /// Refused: the `M C / n` of `[AR17]` section 6 is half of what two windows can differ by.
    fn papers_sensitivity(&self, _: Adjacency, _contributions: u32) -> Result<Sensitivity, Error> {
        Err(Error::PaperIsWrong { what: "a regularised empirical risk, M C / n," })
    }
}

impl Machine {
    fn allows(&self, adjacency: Adjacency) -> Result<(), Error> {
        let refused = self.settings.loss == Loss::Squared && adjacency == Adjacency::AddRemove;
        if refused { Err(Error::SquaredLoss) } else { Ok(()) }
    }
}

/// The records that count: a window keeps no more, and the bounds rest on it.
pub(in crate::targets) fn at_most(state: &Accumulator, most: u32) -> &[Record] {
    let records = state.records();
    records.get(..most as usize).unwrap_or(records)
}

pub(in crate::targets) fn checked_lattice(axes: usize, degree: u32) -> Result<Lattice, Error> {
    if !(1..=3).contains(&axes) {
        return Err(Error::Axes(axes));
    }
    let most = MOST_POINTS as u32 - 1;
    if !(1..=most).contains(&degree) {
        return Err(Error::Degree { degree, most });
    }
    let lattice = Lattice { axes, degree };
    if lattice.len() > MOST_POINTS {
        return Err(Error::Points { degree, axes, points: lattice.len() as u64, most: MOST_POINTS });
    }
    Ok(lattice)
}

pub(in crate::targets) fn checked_weight(c: f64, records: u32) -> Result<(), Error> {
    if !(1e-6..=1e6).contains(&c) {
        return Err(Error::Weight { c });
    }
    if records == 0 { Err(Error::NoRecords) } else { Ok(()) }
}

pub(in crate::targets) fn checked_features(records: u32, width: usize) -> Result<(), Error> {
    let features = u64::from(records) * width as u64;
    if features > MOST_FEATURES {
        return Err(Error::Features { records, width, most: MOST_FEATURES });
    }
    Ok(())
}
