//! What released values are, and how they become a function of a point.

use serde::{Deserialize, Serialize};

use super::machine::kernel::Kernel;
use super::quadratic::Form;
use crate::histogram::Spline;

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
    /// Bernstein operator ([`crate::bernstein::Operator`]).
    Bernstein,
    /// `l + 1` coefficients of `c_0 + sum_i c_i t_i`, `t_i = 2 y_i - 1` in `[-1, 1]`, `y` the point in the unit cube.
    Affine,
    /// Kernel functions at public points: `sum_i a_i K(y, p_i)`, `y` the point in the unit cube.
    Kernel(KernelBasis),
    /// Gaussian kernels on the nodes of a public grid, each with a count of its own: `sum_j c_j exp(-(y - p_j)' P (y - p_j) / 2)`,
    /// `y` the point in the unit cube. The noise is on the `c_j`, row-major over the nodes, the last axis fastest.
    Cells(CellBasis),
    /// Noisy counts of cells, one or more tables of them, from which many functions can be read
    /// ([`crate::tables`]).
    Tables(TableBasis),
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

/// A grid of nodes, and the kernel that reads them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellBasis {
    /// The rows of `P`, the inverse of the covariance matrix of the kernel that reads the cells: that of the density, less the
    /// variance of the spline.
    pub precision: Vec<Vec<f64>>,
    /// How records were shared among the nodes; it says where they lie ([`CellBasis::nodes`]).
    pub spline: Spline,
    /// Steps of each axis of the unit cube.
    pub steps: Vec<u32>,
}

/// Most classes of a label.
pub const MOST_CLASSES: usize = 16;

/// A grid of nodes with several counts each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableBasis {
    /// How records were shared among the nodes; it says where they lie ([`TableBasis::nodes`]).
    pub spline: Spline,
    /// Steps of each axis of the unit cube.
    pub steps: Vec<u32>,
    /// The smallest bandwidths of a reading, in units of the cube's width.
    pub bandwidths: Vec<f64>,
    /// How many tables there are, from 1; one follows the other.
    pub tables: u32,
}

impl TableBasis {
    /// The coordinates of the nodes along each axis.
    pub fn nodes(&self) -> Vec<Vec<f64>> {
        nodes(self.spline, &self.steps)
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        count(self.spline, &self.steps)
    }

    /// The values of all tables.
    pub fn values(&self) -> usize {
        self.count().saturating_mul(self.tables as usize)
    }

    /// What reads one table as a density with its smallest bandwidths, or with others; `None` if the spline alone is as wide.
    pub fn at(&self, bandwidths: &[f64]) -> Option<CellBasis> {
        let precision = |(axis, b): (usize, &f64)| {
            let step = self.steps.get(axis).map_or(1.0, |m| 1.0 / f64::from(*m));
            let left = b * b - self.spline.variance() * step * step;
            (left > 0.0).then(|| {
                (0..bandwidths.len())
                    .map(|other| if other == axis { 1.0 / left } else { 0.0 })
                    .collect()
            })
        };
        let precision = bandwidths
            .iter()
            .enumerate()
            .map(precision)
            .collect::<Option<Vec<Vec<f64>>>>()?;
        Some(CellBasis {
            precision,
            spline: self.spline,
            steps: self.steps.clone(),
        })
    }
}

/// The coordinates of the nodes along each axis.
fn nodes(spline: Spline, steps: &[u32]) -> Vec<Vec<f64>> {
    let along = |m: &u32| {
        let at = |j: usize| (j as f64 + spline.first()) / f64::from(*m);
        (0..spline.nodes(*m)).map(at).collect()
    };
    steps.iter().map(along).collect()
}

/// How many nodes there are.
fn count(spline: Spline, steps: &[u32]) -> usize {
    steps
        .iter()
        .fold(1, |count: usize, m| count.saturating_mul(spline.nodes(*m)))
}

impl CellBasis {
    /// The coordinates of the nodes along each axis.
    pub fn nodes(&self) -> Vec<Vec<f64>> {
        nodes(self.spline, &self.steps)
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        count(self.spline, &self.steps)
    }

    /// The standard deviation along each axis of the density's kernel: that of the one that reads the cells, and of the spline.
    pub fn bandwidths(&self) -> Vec<f64> {
        let matrix = Form::new(&self.precision)
            .map(|form| form.inverse())
            .unwrap_or_default();
        let along = |(axis, m): (usize, &u32)| {
            let of_kernel = matrix
                .get(axis)
                .and_then(|row| row.get(axis))
                .copied()
                .unwrap_or(0.0);
            (of_kernel + self.spline.variance() / f64::from(*m).powi(2)).sqrt()
        };
        self.steps.iter().enumerate().map(along).collect()
    }

    /// The kernels of all nodes at a point of the unit cube.
    pub fn at(&self, y: &[f64]) -> Vec<f64> {
        let nodes = self.nodes();
        let away: Vec<Vec<f64>> = nodes
            .iter()
            .zip(y)
            .map(|(p, y)| p.iter().map(|p| y - p).collect())
            .collect();
        // Where the kernel separates, one exponential for each node of an axis.
        if self.is_diagonal() {
            let factors = |(axis, away): (usize, &Vec<f64>)| -> Vec<f64> {
                away.iter()
                    .map(|d| (-self.precision[axis][axis] * d * d / 2.0).exp())
                    .collect()
            };
            return away
                .iter()
                .enumerate()
                .map(factors)
                .fold(vec![1.0], |product, axis| {
                    product
                        .iter()
                        .flat_map(|value| axis.iter().map(move |factor| value * factor))
                        .collect()
                });
        }
        let places = away
            .iter()
            .fold(vec![vec![]], |places: Vec<Vec<f64>>, axis| {
                places
                    .iter()
                    .flat_map(|place| axis.iter().map(move |d| [&place[..], &[*d]].concat()))
                    .collect()
            });
        let form = |d: &Vec<f64>| -> f64 {
            let along = |row: &Vec<f64>| -> f64 { row.iter().zip(d).map(|(p, d)| p * d).sum() };
            self.precision
                .iter()
                .zip(d)
                .map(|(row, d)| d * along(row))
                .sum()
        };
        places
            .iter()
            .map(|d| (-form(d).max(0.0) / 2.0).exp())
            .collect()
    }

    /// Whether `P` is a positive definite matrix with a row for each axis.
    pub fn is_proper(&self) -> bool {
        let axes = self.steps.len();
        let square =
            self.precision.len() == axes && self.precision.iter().all(|row| row.len() == axes);
        square && Form::new(&self.precision).is_some()
    }

    /// Whether the kernel is a product over the axes.
    pub fn is_diagonal(&self) -> bool {
        let off = |(i, row): (usize, &Vec<f64>)| {
            row.iter()
                .enumerate()
                .all(|(j, entry)| i == j || *entry == 0.0)
        };
        self.precision.iter().enumerate().all(off)
    }
}

/// A kernel on the unit cube, `K(y, y) <= 1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKernel {
    /// `exp(-(x - y)' P (x - y) / 2)`; the rows of `P`, the inverse of the covariance matrix.
    Gaussian { precision: Vec<Vec<f64>> },
    /// The kernel of a machine.
    Machine(Kernel),
}

impl PointKernel {
    /// `K(x, y)`; both have as many coordinates as the cube has axes.
    pub fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        match self {
            PointKernel::Gaussian { precision } => {
                let apart = || x.iter().zip(y).map(|(x, y)| x - y);
                let along =
                    |row: &Vec<f64>| -> f64 { row.iter().zip(apart()).map(|(p, d)| p * d).sum() };
                let square: f64 = precision
                    .iter()
                    .zip(apart())
                    .map(|(row, d)| d * along(row))
                    .sum();
                (-square.max(0.0) / 2.0).exp()
            }
            PointKernel::Machine(kernel) => kernel.value(x, y),
        }
    }

    /// The Gaussian with this covariance matrix; `None` if it is not symmetric and positive definite.
    pub fn of_covariance(rows: &[Vec<f64>]) -> Option<Self> {
        Form::new(rows).map(|form| PointKernel::Gaussian {
            precision: form.inverse(),
        })
    }

    /// The same, wider by the root of 2 where it has a width: a Gaussian that is smoothed by itself.
    pub fn widened(&self) -> Self {
        const TIMES: f64 = std::f64::consts::SQRT_2;
        match self {
            PointKernel::Gaussian { precision } => {
                let half = |row: &Vec<f64>| row.iter().map(|p| p / 2.0).collect();
                PointKernel::Gaussian {
                    precision: precision.iter().map(half).collect(),
                }
            }
            PointKernel::Machine(Kernel::Gaussian { bandwidth }) => {
                PointKernel::Machine(Kernel::Gaussian {
                    bandwidth: bandwidth * TIMES,
                })
            }
            PointKernel::Machine(Kernel::Laplacian { bandwidth }) => {
                PointKernel::Machine(Kernel::Laplacian {
                    bandwidth: bandwidth * TIMES,
                })
            }
            other @ PointKernel::Machine(Kernel::Polynomial { .. } | Kernel::Linear) => {
                other.clone()
            }
        }
    }

    /// The Gaussian that stands for it where it smooths much at once: the standard deviation along each axis, whatever the other
    /// coordinates are, and its integral in units of its peak. The deviations of a slanted one forget the slant.
    pub fn smoothing(&self, axes: usize) -> (Vec<f64>, f64) {
        let density = std::f64::consts::TAU.powf(axes as f64 / 2.0);
        match self {
            PointKernel::Gaussian { precision } if let Some(form) = Form::new(precision) => {
                let covariance = form.inverse();
                let deviations = (0..axes)
                    .map(|axis| covariance[axis][axis].sqrt())
                    .collect();
                (deviations, density / form.determinant().sqrt())
            }
            _ => {
                let widths: Vec<f64> = (0..axes).map(|axis| self.width(axis)).collect();
                let volume = widths.iter().product::<f64>();
                (widths, density * volume)
            }
        }
    }

    /// How wide it is along an axis where the other coordinates stay; a kernel with a corner counts as a quarter of its width.
    pub fn width(&self, axis: usize) -> f64 {
        match self {
            PointKernel::Gaussian { precision } => precision[axis][axis].powf(-0.5),
            PointKernel::Machine(Kernel::Gaussian { bandwidth }) => *bandwidth,
            PointKernel::Machine(Kernel::Laplacian { bandwidth }) => *bandwidth / 4.0,
            PointKernel::Machine(Kernel::Polynomial { .. } | Kernel::Linear) => 1.0,
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
            Basis::Cells(basis) => basis.count(),
            Basis::Tables(basis) => basis.values(),
            Basis::Cosine { frequencies } => (*frequencies as usize).saturating_pow(dimensions),
        }
    }
}
