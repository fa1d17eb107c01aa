//! The kernel that reads counts of cells (`docs/proofs/cells.md`): that of the density that is asked for, less what the spline has
//! smoothed already.

use std::f64::consts::PI;

use super::bandwidths::{check_bandwidths, check_covariance};
use super::quadratic::{QuadraticForm, diagonal_matrix};
use super::shape::CellBasis;
use super::shape_error::ShapeError;
use crate::histogram::{Nodes, Spline};

/// Most cells of a release: each is drawn for, and sent.
pub const MOST_CELLS: usize = 1 << 16;

/// The kernel that reads the cells has something left when a tenth more than the variance of the spline is taken from it: else a float
/// would decide its width.
pub const LEAST_LEFT: f64 = 1.1;

/// `K_S` on a grid of cells: all of it is public.
#[derive(Clone, Debug)]
pub struct CellKernel {
    nodes: Nodes,
    basis: CellBasis,
    peak: f64,
}

impl CellKernel {
    /// `bandwidths` in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; `steps` the steps of each axis, from 1.
    ///
    /// # Errors
    ///
    /// If axes or bandwidths are out of range, the spline alone is as wide as the kernel, or there are more than
    /// [`MOST_CELLS`] cells.
    pub fn from_bandwidths(
        bandwidths: &[f64],
        spline: Spline,
        steps: &[u32],
    ) -> Result<Self, ShapeError> {
        if !(1..=3).contains(&bandwidths.len()) {
            return Err(ShapeError::Axes(bandwidths.len()));
        }
        check_bandwidths(bandwidths)?;
        let variances: Vec<f64> = bandwidths.iter().map(|width| width.powi(2)).collect();
        CellKernel::from_matrix(diagonal_matrix(&variances), spline, steps)
    }

    /// `matrix` is `H` in units of the cube's width, two or three rows, symmetric and positive definite, variances at most 1.
    ///
    /// # Errors
    ///
    /// If the matrix is not one, or as [`CellKernel::from_bandwidths`].
    pub fn from_covariance(
        matrix: &[Vec<f64>],
        spline: Spline,
        steps: &[u32],
    ) -> Result<Self, ShapeError> {
        check_covariance(matrix)?;
        CellKernel::from_matrix(matrix.to_vec(), spline, steps)
    }

    fn from_matrix(
        mut matrix: Vec<Vec<f64>>,
        spline: Spline,
        steps: &[u32],
    ) -> Result<Self, ShapeError> {
        let axes = matrix.len();
        let cells = steps.iter().map(|m| spline.nodes(*m) as u128).product();
        let nodes = Nodes::shared_by(spline, steps)
            .filter(|nodes| nodes.per_axis().len() == axes && nodes.cells() <= MOST_CELLS)
            .ok_or(ShapeError::CellGrid {
                cells,
                most: MOST_CELLS,
            })?;
        let mut narrower = matrix.clone();
        for (i, m) in steps.iter().enumerate() {
            let variance = spline.variance() / f64::from(*m).powi(2);
            matrix[i][i] -= variance;
            narrower[i][i] -= LEAST_LEFT * variance;
        }
        let form = QuadraticForm::new(&matrix).filter(|_| QuadraticForm::new(&narrower).is_some());
        let form = form.ok_or(ShapeError::WideSteps { spline })?;
        let peak = ((2.0 * PI).powi(axes as i32) * form.determinant()).powf(-0.5);
        let basis = CellBasis {
            precision: form.inverse(),
            spline,
            steps: steps.to_vec(),
        };
        Ok(CellKernel { nodes, basis, peak })
    }

    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub fn basis(&self) -> &CellBasis {
        &self.basis
    }

    /// Peak in records per volume of the unit cube.
    pub fn peak(&self) -> f64 {
        self.peak
    }
}
