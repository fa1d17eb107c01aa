//! The form of released values, and how they become a function of a point.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::machine::kernel::CubeKernel;
use super::quadratic::{QuadraticForm, diagonal_matrix};
use crate::cholesky::sequential_dot;
use crate::found_keys::FoundKeys;
use crate::histogram::Spline;
use crate::tensor::{grid_points, outer_product};
use crate::told_caps::UnitCounts;

/// Form of released values: how they become a function on the unit cube.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Number of axes `l`, 1 to 3.
    pub dimensions: usize,
    /// Degree `k`; 1 where there is no lattice.
    pub degree: u32,
    pub basis: Basis,
}

/// Basis by which released values become a function.
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
    /// A table with a row for each key, not a function of a point ([`crate::key_table`]); one column after the other.
    Keys(KeyBasis),
}

/// Rows and columns of a table by key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyBasis {
    /// The keys, a row each. An Arrow message has them in a column of its own instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    pub columns: Vec<KeyColumn>,
    /// Numbers of units by how many keys they have, which follow the columns; absent where they are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitCounts>,
    /// How its keys were found, where nobody listed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundKeys>,
}

impl KeyBasis {
    /// Returns whether records of a value stand at three places, of which variances are read.
    pub fn has_middle(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.statistic == KeyStatistic::Middle)
    }

    /// Most keys of a table of this release: those that are listed, or as many as can be found.
    pub fn most_keys(&self) -> usize {
        match &self.found {
            Some(found) => found.most as usize,
            None => self.keys.len(),
        }
    }
}

/// One column of a table by key: a noisy number for each key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyColumn {
    pub statistic: KeyStatistic,
    /// Scale of the noise on a number of this column, in units of the scale that the description gives.
    pub unit: f64,
}

/// Statistic of one key and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatistic {
    /// Number of different users.
    Users,
    /// Number of records.
    Records,
    /// Records at the lower end of the value: of a record the part of the way from its value to the upper end, `1 - y`; with
    /// [`KeyStatistic::Middle`] the square of that.
    Low,
    /// Records between both ends of the value, of which variances are read: of a record `2 y (1 - y)`.
    Middle,
    /// Records at the upper end of the value: the rest of each record.
    High,
    /// Sum of the values.
    Sum,
    /// Number of values that count at the places of a range ([`crate::key_quantiles`]).
    Range(KeyRange),
}

/// Places of a value that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first place.
    pub from: u32,
    /// The place after the last one.
    pub to: u32,
}

impl KeyStatistic {
    /// Name of the column.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            KeyStatistic::Users => "users",
            KeyStatistic::Records => "records",
            KeyStatistic::Low => "low",
            KeyStatistic::Middle => "middle",
            KeyStatistic::High => "high",
            KeyStatistic::Sum => "sum",
            KeyStatistic::Range(KeyRange { from, to }) => {
                return Cow::Owned(format!("range_{from}_{to}"));
            }
        })
    }
}

/// A kernel, and the points of the unit cube on which its functions sit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelBasis {
    pub kernel: PointKernel,
    pub points: Vec<Vec<f64>>,
}

impl KernelBasis {
    /// Sum of the kernel functions with these coefficients, at a point of the unit cube.
    pub(crate) fn combine(&self, coefficients: &[f64], y: &[f64]) -> f64 {
        self.points
            .iter()
            .zip(coefficients)
            .map(|(point, coefficient)| coefficient * self.kernel.value(y, point))
            .sum()
    }
}

/// A grid of nodes, and the kernel that reads them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellBasis {
    /// The rows of `P`, the inverse of the covariance matrix of the kernel that reads the cells: that of the density, less the
    /// variance of the spline.
    pub precision: Vec<Vec<f64>>,
    /// Spline by which records were shared among the nodes; it says where they lie ([`CellBasis::nodes`]).
    pub spline: Spline,
    /// Steps of each axis of the unit cube.
    pub steps: Vec<u32>,
}

/// Most classes of a label.
pub const MOST_CLASSES: usize = 16;

/// A grid of nodes with several counts each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableBasis {
    /// Spline by which records were shared among the nodes; it says where they lie ([`TableBasis::nodes`]).
    pub spline: Spline,
    /// Steps of each axis of the unit cube.
    pub steps: Vec<u32>,
    /// The smallest bandwidths of a reading, in units of the cube's width.
    pub bandwidths: Vec<f64>,
    /// Number of tables, from 1; one follows the other.
    pub tables: u32,
}

impl TableBasis {
    /// Coordinates of the nodes along each axis.
    pub fn nodes(&self) -> Vec<Vec<f64>> {
        node_coordinates(self.spline, &self.steps)
    }

    /// Number of nodes.
    pub fn count(&self) -> usize {
        node_count(self.spline, &self.steps)
    }

    /// Number of values of all tables.
    pub fn values(&self) -> usize {
        self.count().saturating_mul(self.tables as usize)
    }

    /// Returns the basis that reads one table as a density with its smallest bandwidths, or with others; `None` if the spline
    /// alone is as wide.
    pub fn basis_for_bandwidths(&self, bandwidths: &[f64]) -> Option<CellBasis> {
        let mut inverse_variances = Vec::with_capacity(bandwidths.len());
        for (axis, bandwidth) in bandwidths.iter().enumerate() {
            let step = match self.steps.get(axis) {
                Some(steps) => 1.0 / f64::from(*steps),
                None => 1.0,
            };
            let left = bandwidth * bandwidth - self.spline.variance() * step * step;
            inverse_variances.push((left > 0.0).then_some(1.0 / left)?);
        }
        Some(CellBasis {
            precision: diagonal_matrix(&inverse_variances),
            spline: self.spline,
            steps: self.steps.clone(),
        })
    }
}

/// Coordinates of the nodes along each axis.
fn node_coordinates(spline: Spline, steps: &[u32]) -> Vec<Vec<f64>> {
    let mut axes = Vec::with_capacity(steps.len());
    for steps in steps {
        axes.push(
            (0..spline.nodes(*steps))
                .map(|node| (node as f64 + spline.first_node()) / f64::from(*steps))
                .collect(),
        );
    }
    axes
}

fn node_count(spline: Spline, steps: &[u32]) -> usize {
    let mut count: usize = 1;
    for steps in steps {
        count = count.saturating_mul(spline.nodes(*steps));
    }
    count
}

impl CellBasis {
    /// Coordinates of the nodes along each axis.
    pub fn nodes(&self) -> Vec<Vec<f64>> {
        node_coordinates(self.spline, &self.steps)
    }

    /// Number of nodes.
    pub fn count(&self) -> usize {
        node_count(self.spline, &self.steps)
    }

    /// Standard deviation along each axis of the density's kernel: that of the one that reads the cells, and of the spline.
    pub fn bandwidths(&self) -> Vec<f64> {
        let covariance = QuadraticForm::new(&self.precision).map(|form| form.inverse());
        let mut bandwidths = Vec::with_capacity(self.steps.len());
        for (axis, steps) in self.steps.iter().enumerate() {
            let of_kernel = covariance
                .as_ref()
                .and_then(|rows| rows.get(axis)?.get(axis))
                .copied()
                .unwrap_or(0.0);
            let of_spline = self.spline.variance() / f64::from(*steps).powi(2);
            bandwidths.push((of_kernel + of_spline).sqrt());
        }
        bandwidths
    }

    /// Values at a point of the unit cube of the kernels of all nodes.
    pub fn kernel_values(&self, y: &[f64]) -> Vec<f64> {
        let mut away: Vec<Vec<f64>> = Vec::with_capacity(y.len());
        for (nodes, y) in self.nodes().iter().zip(y) {
            away.push(nodes.iter().map(|node| y - node).collect());
        }
        if !self.is_diagonal() {
            let offsets = grid_points(&away);
            return offsets
                .iter()
                .map(|offset| self.kernel_value(offset))
                .collect();
        }
        // The kernel separates: one exponential for each node of an axis.
        for (axis, offsets) in away.iter_mut().enumerate() {
            for offset in offsets {
                *offset = (-self.precision[axis][axis] * *offset * *offset / 2.0).exp();
            }
        }
        outer_product(&away)
    }

    /// Value of the kernel so far from its node.
    fn kernel_value(&self, offset: &[f64]) -> f64 {
        let square: f64 = self
            .precision
            .iter()
            .zip(offset)
            .map(|(row, along)| along * sequential_dot(row, offset))
            .sum();
        (-square.max(0.0) / 2.0).exp()
    }

    /// Tests that `P` is a positive definite matrix with a row for each axis.
    pub fn is_proper(&self) -> bool {
        let axes = self.steps.len();
        let square =
            self.precision.len() == axes && self.precision.iter().all(|row| row.len() == axes);
        square && QuadraticForm::new(&self.precision).is_some()
    }

    /// Tests that the kernel is a product over the axes.
    pub fn is_diagonal(&self) -> bool {
        for (i, row) in self.precision.iter().enumerate() {
            for (j, entry) in row.iter().enumerate() {
                if i != j && *entry != 0.0 {
                    return false;
                }
            }
        }
        true
    }
}

/// A kernel on the unit cube, `K(y, y) <= 1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointKernel {
    /// `exp(-(x - y)' P (x - y) / 2)`; the rows of `P`, the inverse of the covariance matrix.
    Gaussian { precision: Vec<Vec<f64>> },
    /// The kernel of a machine.
    Machine(CubeKernel),
}

impl PointKernel {
    /// Value `K(x, y)`; both have as many coordinates as the cube has axes.
    pub fn value(&self, x: &[f64], y: &[f64]) -> f64 {
        match self {
            PointKernel::Gaussian { precision } => {
                let mut square = 0.0;
                for (row, (x_along, y_along)) in precision.iter().zip(x.iter().zip(y)) {
                    let mut turned = 0.0;
                    for (entry, (x, y)) in row.iter().zip(x.iter().zip(y)) {
                        turned += entry * (x - y);
                    }
                    square += (x_along - y_along) * turned;
                }
                (-square.max(0.0) / 2.0).exp()
            }
            PointKernel::Machine(kernel) => kernel.value(x, y),
        }
    }

    /// Gaussian with this covariance matrix; `None` if it is not symmetric and positive definite.
    pub fn of_covariance(rows: &[Vec<f64>]) -> Option<Self> {
        QuadraticForm::new(rows).map(|form| PointKernel::Gaussian {
            precision: form.inverse(),
        })
    }

    /// Kernel that is wider by the root of 2 where it has a width: a Gaussian that is smoothed by itself.
    pub fn smoothed_by_itself(&self) -> Self {
        const TIMES: f64 = std::f64::consts::SQRT_2;
        match self {
            PointKernel::Gaussian { precision } => {
                let mut precision = precision.clone();
                precision.iter_mut().flatten().for_each(|p| *p /= 2.0);
                PointKernel::Gaussian { precision }
            }
            PointKernel::Machine(CubeKernel::Gaussian { bandwidth }) => {
                PointKernel::Machine(CubeKernel::Gaussian {
                    bandwidth: bandwidth * TIMES,
                })
            }
            PointKernel::Machine(CubeKernel::Laplacian { bandwidth }) => {
                PointKernel::Machine(CubeKernel::Laplacian {
                    bandwidth: bandwidth * TIMES,
                })
            }
            other @ PointKernel::Machine(CubeKernel::Polynomial { .. } | CubeKernel::Linear) => {
                other.clone()
            }
        }
    }

    /// Gaussian that stands for it where it smooths much at once.
    pub(crate) fn smoothing_widths(&self, axes: usize) -> SmoothingWidths {
        let density = std::f64::consts::TAU.powf(axes as f64 / 2.0);
        match self {
            PointKernel::Gaussian { precision }
                if let Some(form) = QuadraticForm::new(precision) =>
            {
                let covariance = form.inverse();
                SmoothingWidths {
                    deviations: (0..axes)
                        .map(|axis| covariance[axis][axis].sqrt())
                        .collect(),
                    integral: density / form.determinant().sqrt(),
                }
            }
            _ => {
                let deviations: Vec<f64> = (0..axes).map(|axis| self.width_along(axis)).collect();
                let volume = deviations.iter().product::<f64>();
                SmoothingWidths {
                    deviations,
                    integral: density * volume,
                }
            }
        }
    }

    /// Width along an axis where the other coordinates stay; a kernel with a corner counts as a quarter of its width.
    pub fn width_along(&self, axis: usize) -> f64 {
        match self {
            PointKernel::Gaussian { precision } => precision[axis][axis].powf(-0.5),
            PointKernel::Machine(CubeKernel::Gaussian { bandwidth }) => *bandwidth,
            PointKernel::Machine(CubeKernel::Laplacian { bandwidth }) => *bandwidth / 4.0,
            PointKernel::Machine(CubeKernel::Polynomial { .. } | CubeKernel::Linear) => 1.0,
        }
    }
}

/// Gaussian that stands for a kernel where it smooths much at once. The deviations of a slanted one forget the slant.
pub(crate) struct SmoothingWidths {
    /// Standard deviation along each axis, whatever the other coordinates are.
    pub deviations: Vec<f64>,
    /// Integral in units of the peak.
    pub integral: f64,
}

impl Shape {
    /// Number of values.
    pub fn value_count(&self) -> usize {
        let dimensions = self.dimensions as u32;
        match &self.basis {
            Basis::Bernstein => (self.degree as usize + 1).saturating_pow(dimensions),
            Basis::Affine => self.dimensions + 1,
            Basis::Kernel(basis) => basis.points.len(),
            Basis::Cells(basis) => basis.count(),
            Basis::Tables(basis) => basis.values(),
            Basis::Cosine { frequencies } => (*frequencies as usize).saturating_pow(dimensions),
            Basis::Keys(basis) => {
                let of_units = basis.units.as_ref().map_or(0, |told| told.bins.len());
                basis.table_values().saturating_add(of_units)
            }
        }
    }
}
