//! What released values are, and how they become a function of a point.

use serde::{Deserialize, Serialize};

use super::machine::kernel::Kernel;

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
    Machine(Kernel),
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
