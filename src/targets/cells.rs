//! Kernel density by counts of cells: a record is shared among the nodes of a coarse public grid, noise is added to the
//! counts, and the kernel smooths noise and records together (`docs/proofs/cells.md`).
//!
//! # What is released
//!
//! `c_j = sum_i w_j(d_i)`, `d_i` the records of the window in the unit cube, `w_j` a B-spline around the node `p_j`
//! ([`Spline`]), the product over the axes. Readers evaluate `F(y) = sum_j c_j K_S(y - p_j)`, `S = H - diag(v h_a^2)`: `H` is
//! the covariance of the kernel that is asked for, `h_a` the step of an axis, `v` the variance of the spline, so that a
//! record that is shared and smoothed has the mean and, on average over its place in a cell, the covariance of `K_H`. What is
//! left is a ripple along the grid and the fourth moment ([`CellBasis::form_error`]).
//!
//! # Why the sensitivities hold
//!
//! The window keeps the counts themselves ([`Histogram`](crate::window::histogram::Histogram)), in grains, and the shares
//! of a record are not negative and add up to `2^20` grains, whatever it is. So a record more or less changes the counts by
//! `2^20` in the 1-norm, less where a cell is full; one that is replaced by at most twice that, as it may have been
//! absent, or become so. In the 2-norm it is [`Nodes::longest_deposit`], and `sqrt 2` times that for a replacement: the inner
//! product of two deposits is not negative. Counts are multiplied by a power of two, so nothing is rounded and no surcharge
//! is due.

use std::f64::consts::PI;

use super::adjacency::{Adjacency, Sensitivity};
use super::covariance;
use super::density::check_bandwidths;
use super::error::Error;
use super::lattice::{UNITS_A_PEAK, times};
use super::quadratic::Form;
use super::shape::{Basis, CellBasis, Shape};
use super::target::{Exact, Target};
use crate::targets::builtin::Builtin;
use crate::window::accumulator::{Accumulator, AccumulatorSpec};
use crate::window::histogram::{GRAINS, Nodes, Spline};

/// Most cells of a release: each is drawn for, and sent.
pub const MOST_CELLS: usize = 1 << 16;

/// The kernel that reads the cells has something left when a tenth more than the variance of the spline is taken from it: else a float
/// would decide its width.
pub(super) const LEAST_LEFT: f64 = 1.1;

/// A record is `2^32` grid units: a count in grains is so many times as large.
pub(super) const SHIFT: u32 = UNITS_A_PEAK - GRAINS.ilog2();

/// A density of one release by counts of cells: all of it is public.
#[derive(Clone, Debug)]
pub struct CellDensity {
    nodes: Nodes,
    basis: CellBasis,
    /// Of `K_S`, in records per volume of the cube.
    peak: f64,
}

impl CellDensity {
    /// `bandwidths` in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; `steps` the steps of each axis, from 1.
    ///
    /// # Errors
    ///
    /// If axes or bandwidths are out of range, the spline alone is as wide as the kernel, or there are more than
    /// [`MOST_CELLS`] cells.
    pub fn diagonal(bandwidths: &[f64], spline: Spline, steps: &[u32]) -> Result<Self, Error> {
        if !(1..=3).contains(&bandwidths.len()) {
            return Err(Error::Axes(bandwidths.len()));
        }
        check_bandwidths(bandwidths)?;
        let row = |i: usize| (0..bandwidths.len()).map(|j| if i == j { bandwidths[i].powi(2) } else { 0.0 }).collect();
        CellDensity::of((0..bandwidths.len()).map(row).collect(), spline, steps)
    }

    /// `matrix` is `H` in units of the cube's width, two or three rows, symmetric and positive definite, variances at most 1.
    ///
    /// # Errors
    ///
    /// If the matrix is not one, or as [`CellDensity::diagonal`].
    pub fn covariance(matrix: &[Vec<f64>], spline: Spline, steps: &[u32]) -> Result<Self, Error> {
        covariance::checked(matrix)?;
        CellDensity::of(matrix.to_vec(), spline, steps)
    }

    fn of(mut matrix: Vec<Vec<f64>>, spline: Spline, steps: &[u32]) -> Result<Self, Error> {
        let axes = matrix.len();
        let cells = steps.iter().map(|m| spline.nodes(*m) as u128).product();
        let nodes = Nodes::shared_by(spline, steps)
            .filter(|nodes| nodes.per_axis().len() == axes && nodes.cells() <= MOST_CELLS)
            .ok_or(Error::CellGrid { cells, most: MOST_CELLS })?;
        let mut narrower = matrix.clone();
        for (i, m) in steps.iter().enumerate() {
            let variance = spline.variance() / f64::from(*m).powi(2);
            matrix[i][i] -= variance;
            narrower[i][i] -= LEAST_LEFT * variance;
        }
        let form = Form::new(&matrix).filter(|_| Form::new(&narrower).is_some());
        let form = form.ok_or(Error::WideSteps { spline })?;
        let peak = ((2.0 * PI).powi(axes as i32) * form.determinant()).powf(-0.5);
        let basis = CellBasis { precision: form.inverse(), spline, steps: steps.to_vec() };
        Ok(CellDensity { nodes, basis, peak })
    }

    /// Of the kernel that reads the cells, in records per volume of the unit cube.
    pub fn peak(&self) -> f64 {
        self.peak
    }

    pub fn basis(&self) -> &CellBasis {
        &self.basis
    }
}

impl Builtin for CellDensity {}

impl Target for CellDensity {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        Shape { dimensions: self.basis.steps.len(), degree: 1, basis: Basis::Cells(self.basis.clone()) }
    }

    /// A released value is a count times the peak of `K_S`, in records per volume of the unit cube.
    fn unit(&self) -> f64 {
        self.peak / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let counts = |cells: &[u64]| Exact::new(cells.iter().map(|grains| i128::from(*grains) << SHIFT).collect());
        accumulator
            .histogram()
            .map_or_else(|| counts(&vec![0; self.nodes.cells()]), |histogram| counts(&histogram.cells))
    }

    fn sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<Sensitivity, Error> {
        records_of_change(adjacency, contributions).map(Sensitivity)
    }

    /// One record for each record of a unit, for either adjacency: shares are not negative.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, Error> {
        times(u128::from(GRAINS) << SHIFT, contributions)
    }

    fn euclidean_sensitivity(&self, adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
        length_of_change(&self.nodes, adjacency, contributions)
    }
}

/// In the 1-norm: one record for each record of a unit, two where it is replaced.
pub(super) fn records_of_change(adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
    let records = match adjacency {
        Adjacency::AddRemove => 1,
        Adjacency::ReplaceOne => 2,
    };
    times(u128::from(records * GRAINS) << SHIFT, contributions)
}

/// In the 2-norm.
pub(super) fn length_of_change(nodes: &Nodes, adjacency: Adjacency, contributions: u32) -> Result<u64, Error> {
    let one = u128::from(nodes.longest_deposit());
    let grains = match adjacency {
        Adjacency::AddRemove => one,
        Adjacency::ReplaceOne => (2 * one * one).isqrt() + 1,
    };
    times(grains << SHIFT, contributions)
}
