//! The functions that we publish about: exact values on the lattice, and how much one record can change them.

pub mod bayes;
pub mod blackbox;
pub mod covariance;
pub mod density;
pub mod expression;
mod kernel;
mod lattice;
pub mod logistic;
pub mod machine;
pub mod marginals;
pub mod moments;
mod quadratic;
pub mod regression;
pub mod sampled;
pub mod sampler;
pub mod whitened;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::window::accumulator::{Accumulator, AccumulatorSpec};
use crate::window::histogram::MOST_CELLS;

/// A function of a window's records, on a lattice, and how much a record can change it.
///
/// All of a target is public. Values are whole numbers of grid units; in natural units a value is
/// `offset + unit * value`.
pub trait Target: fmt::Debug + Send + Sync {
    /// What a window must keep of its records.
    fn keep(&self) -> AccumulatorSpec;

    /// What the released values are: the same for every window.
    fn shape(&self) -> Shape;

    /// What one grid unit stands for, where the domain is the unit cube and a label lies in `[-1, 1]`.
    fn unit(&self) -> f64;

    /// The exact values of one window and key, [`Shape::values`] of them. `state` must be one of [`Target::keep`].
    fn evaluate(&self, state: &Accumulator) -> Exact;

    /// Whether the values are a sum over the records: those of several windows then add up, each rounded by itself.
    fn is_sum(&self) -> bool {
        false
    }

    /// What one evaluation takes at most, whatever the records are.
    fn cost(&self) -> Cost {
        Cost::default()
    }

    /// How much a unit of at most `contributions` records can change the values in the 1-norm, all keys together; an
    /// error where no bound holds.
    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error>;

    /// How much such a unit can change any one value, in grid units, summed over the keys: cubes are drawn a key apart.
    fn sup_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error>;

    /// How much such a unit can change the values in the 2-norm, in grid units, summed over the keys. Without a bound of the
    /// target's own `sqrt(D1 S)`, rounded up, because `sum z_i^2 <= max |z_i| sum |z_i|`: true where `D1` and `S` hold for all
    /// neighbours, not where each was sampled.
    fn euclidean_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
        let one = self.sensitivity(adjacency, contributions)?.0;
        let sup = self.sup_sensitivity(adjacency, contributions)?;
        Ok(root(u128::from(one) * u128::from(sup)))
    }

    /// What is published of noisy values: post-processing, at no price, and linear. The coefficients of the shape's
    /// [`Basis`].
    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        noisy
    }

    /// What single records make of the values, in grid units before they are rounded: the change by any record more or less
    /// is a convex combination of these and of none, up to less than one unit in each value. `None` where there is no such
    /// list.
    fn effects(&self) -> Option<Vec<Vec<i128>>> {
        None
    }

    /// What the papers charge in place of [`Target::sensitivity`], to compare with: `N S`, `S` their bound in the sup
    /// norm. Where their `S` is false it is refused: noise of that scale would promise a privacy that is not there.
    ///
    /// A target that overrides this must return a bound that holds.
    fn papers_sensitivity(&self, _: Adjacency, _contributions: u32) -> Result<Sensitivity, Error> {
        Err(Error::PapersGiveNone)
    }
}

/// The square root, rounded up.
fn root(square: u128) -> u64 {
    let down = square.isqrt();
    // At most 2^64 is the root of 128 bits.
    u64::try_from(if down * down < square { down + 1 } else { down }).unwrap_or(u64::MAX)
}

/// `N S`: what the papers charge where their `S` is [`Target::sup_sensitivity`].
fn every_value(target: &dyn Target, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error> {
    let sup = target.sup_sensitivity(adjacency, contributions)?;
    sup.checked_mul(target.shape().values() as u64).map(Sensitivity).ok_or(Error::Contributions { contributions })
}

/// What the evaluation of a full window and key can take; public. Nothing where it is a moment's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Beside what the window keeps.
    pub bytes: u64,
    /// Multiplications. Few records and simple ones need far fewer.
    pub products: u64,
}

/// What released values are, and how they become a function on the unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// `l`, 1 to 3.
    pub dimensions: usize,
    /// `k`; 1 where there is no lattice.
    pub degree: u32,
    pub basis: Basis,
}

/// How released values become a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Values on the lattice `{0, 1/k, ..., 1}^l`, row-major, the last axis fastest; a polynomial by the iterated
    /// Bernstein operator ([`crate::synopsis::bernstein::Operator`]).
    Bernstein,
    /// `l + 1` coefficients of `c_0 + sum_i c_i t_i`, `t_i = 2 y_i - 1` in `[-1, 1]`, `y` the point in the unit cube.
    Affine,
    /// Kernel functions at public points: `sum_i a_i K(y, p_i)`, `y` the point in the unit cube.
    Kernel(KernelBasis),
    /// Moments of the records, not a function of a point: `sum_x prod_i cos(m_i arccos t_i)`, `0 <= m_i < frequencies` on
    /// each axis, `t_i` in `[-1, 1]`; row-major in `m`, the last axis fastest. The number of records is the first.
    Cosine { frequencies: u32 },
}

/// A kernel, and the points of the unit cube on which its functions sit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelBasis {
    pub kernel: PointKernel,
    pub points: Vec<Vec<f64>>,
}

/// A kernel on the unit cube, `K(y, y) <= 1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKernel {
    /// `exp(-(x - y)' P (x - y) / 2)`; the rows of `P`, the inverse of the covariance matrix.
    Gaussian { precision: Vec<Vec<f64>> },
    /// The kernel of a machine.
    Machine(machine::Kernel),
}

impl PointKernel {
    /// `K(x, y)`; both have as many coordinates as the cube has axes.
    pub fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        match self {
            PointKernel::Gaussian { precision } => {
                let apart: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
                let along = |row: &Vec<f64>| -> f64 { row.iter().zip(&apart).map(|(p, d)| p * d).sum() };
                let square: f64 = precision.iter().zip(&apart).map(|(row, d)| d * along(row)).sum();
                (-square.max(0.0) / 2.0).exp()
            }
            PointKernel::Machine(kernel) => kernel.value(x, y),
        }
    }
}

impl Shape {
    /// How many values there are.
    pub fn values(&self) -> usize {
        let dimensions = self.dimensions as u32;
        match &self.basis {
            Basis::Bernstein => (self.degree as usize + 1).saturating_pow(dimensions),
            Basis::Affine => self.dimensions + 1,
            Basis::Kernel(basis) => basis.points.len(),
            Basis::Cosine { frequencies } => (*frequencies as usize).saturating_pow(dimensions),
        }
    }
}

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjacency {
    /// One record (or one unit's records) more or less.
    AddRemove,
    /// One record's values changed; block, window, key and validity stay.
    ReplaceOne,
}

/// How much neighbours can differ, in grid units, in the norm that the noise is made for: the 1-norm over the values where
/// nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sensitivity(pub u64);

/// Exact lattice values of one window and key, in grid units. Secret: only [`crate::mechanism`] opens it.
///
/// `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct Exact(Vec<i128>);

impl Exact {
    /// Row-major over the lattice `{0, 1/k, ..., 1}^l`, the last axis fastest.
    pub fn new(values: Vec<i128>) -> Self {
        Exact(values)
    }

    /// The secret itself: for [`crate::mechanism`], tests and audits. Nothing else may call it (`tests/properties/noise.rs`).
    pub fn reveal(&self) -> &[i128] {
        &self.0
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exact({} values)", self.0.len())
    }
}

/// Why a target cannot be built or bounded. Axes count from 1.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error("a function has 1 to 3 axes, not {0}")]
    Axes(usize),
    #[error(
        "the bandwidth of axis {axis} is {bandwidth} of its domain's width: it must be more than 0 and at most 1; \
         change the bandwidth or the domain"
    )]
    Bandwidth { axis: usize, bandwidth: f64 },
    #[error(
        "the smallest standard deviation of axis {axis} is {deviation} of its domain's width: it must be at least \
         {least} and at most 1; change the deviation or the domain"
    )]
    Deviation { axis: usize, deviation: f64, least: f64 },
    #[error("degree {degree} is out of range: it must lie between 1 and {most}")]
    Degree { degree: u32, most: u32 },
    #[error("degree {degree} on {axes} axes makes {points} lattice points, more than {most}: lower the degree")]
    Points { degree: u32, axes: usize, points: u64, most: usize },
    #[error(
        "bandwidths this small need a histogram of {cells} cells for every window and key, more than {MOST_CELLS}: \
         widen the bandwidths or narrow the domain"
    )]
    Cells { cells: u128 },
    #[error(
        "{frequencies} frequencies on {axes} axes are not from 1 to {most}: the more there are, the more noise each has"
    )]
    Frequencies { frequencies: u32, axes: usize, most: u32 },
    #[error("a covariance matrix has 2 or 3 rows, each as long, and is symmetric")]
    Matrix,
    #[error(
        "the covariance matrix is not positive definite: some direction has no width; lower the covariances or raise \
         the variances"
    )]
    NotPositiveDefinite,
    #[error(
        "one window and key would take {work} products at its cutoff, more than {most}: lower the degree, or choose a \
         matrix whose axes are less correlated"
    )]
    Work { work: u64, most: u64 },
    #[error(
        "the gap is {0} of its domain's width: it must be at least 2^-31 and at most 1; change the gap or the domain"
    )]
    Gap(f64),
    #[error("{0} kept records cannot make a regression: keep at least 2")]
    FewRecords(u32),
    #[error(
        "{contributions} records a unit can change the release by more than 2^64 grid units, more noise than can be \
         drawn: lower the number of records a unit may contribute"
    )]
    Contributions { contributions: u32 },
    #[error("the papers give no sensitivity for this function: leave out scale = \"paper\"")]
    PapersGiveNone,
    #[error(
        "the paper's sensitivity of {what} is false: neighbours were found that differ by more, so noise of that scale would \
         not be private; leave out scale = \"paper\""
    )]
    PaperIsWrong { what: &'static str },
    #[error("the kernel's bandwidth is {bandwidth} of the domain's width: it must lie between 0.001 and 10")]
    KernelBandwidth { bandwidth: f64 },
    #[error("the kernel's power is {power}: it must lie between 1 and {most}")]
    Power { power: u32, most: u32 },
    #[error("C is {c}: it must lie between 0.000001 and 1000000")]
    Weight { c: f64 },
    #[error("a kernel on public points takes 1 to {most} points, not {points}")]
    KernelPoints { points: usize, most: usize },
    #[error(
        "{points} kernel points on a histogram of {cells} cells make a table of more than {most} numbers: take fewer \
         points, or widen the bandwidths"
    )]
    Table { points: usize, cells: usize, most: usize },
    #[error("a window must keep at least one record: raise the number of records")]
    NoRecords,
    #[error(
        "the kernel matrix of {records} records is too large, at most {most} fit: give a number of landmarks, or keep \
         fewer records"
    )]
    NeedsLandmarks { records: u32, most: u32 },
    #[error(
        "{records} records of {width} features each are more than {most} numbers for every window and key: keep fewer \
         records, or take fewer landmarks"
    )]
    Features { records: u32, width: usize, most: u64 },
    #[error(
        "the squared loss has no bound that we claim where a record more or less makes a neighbour: use the huber loss, \
         or the adjacency replace_one"
    )]
    SquaredLoss,
    #[error(transparent)]
    Expression(#[from] expression::Error),
    #[error(transparent)]
    BlackBox(#[from] blackbox::Error),
    #[error(transparent)]
    Sampler(#[from] sampler::Error),
}
