//! Kernel density by counts of cells: a record is shared among the nodes of a coarse public grid, noise is added to the
//! counts, and the kernel smooths noise and records together (`docs/proofs/cells.md`).
//!
//! # What is released
//!
//! `c_j = sum_i w_j(d_i)`, `d_i` the records of the window in the unit cube, `w_j` a B-spline around the node `p_j`
//! ([`Spline`]), the product over the axes. Readers evaluate `F(y) = sum_j c_j K_S(y - p_j)`, `S = H - diag(v h_a^2)`: `H` is
//! the covariance of the kernel that is asked for, `h_a` the step of an axis, `v` the variance of the spline, so that a
//! record that is shared and smoothed has the mean and, on average over its place in a cell, the covariance of `K_H`. What is
//! left is a ripple along the grid and the fourth moment (`form_error` of `bernstream_synopsis::shape::CellBasis`).
//!
//! # Why the sensitivities hold
//!
//! The window keeps the counts themselves ([`Histogram`](bernstream_synopsis::histogram::Histogram)), in grains, and the shares
//! of a record are not negative and add up to `2^20` grains, whatever it is. So a record more or less changes the counts by
//! `2^20` in the 1-norm, less where a cell is full; one that is replaced by at most twice that, as it may have been
//! absent, or become so. In the 2-norm it is [`Nodes::longest_deposit`], and `sqrt 2` times that for a replacement: the inner
//! product of two deposits is not negative. Counts are multiplied by a power of two, so nothing is rounded and no surcharge
//! is due.

use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::{UNITS_A_PEAK, times_contributions};
use bernstream_release::target::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::cell_kernel::CellKernel;
use bernstream_synopsis::histogram::{GRAINS, Nodes, Spline};
use bernstream_synopsis::shape::{Basis, CellBasis, Shape};

/// A record is `2^32` grid units: a count in grains is so many times as large.
pub(super) const SHIFT: u32 = UNITS_A_PEAK - GRAINS.ilog2();

/// A density of one release by counts of cells: all of it is public.
#[derive(Clone, Debug)]
pub struct CellDensity(CellKernel);

impl CellDensity {
    /// # Errors
    ///
    /// As [`CellKernel::from_bandwidths`].
    pub fn diagonal(
        bandwidths: &[f64],
        spline: Spline,
        steps: &[u32],
    ) -> Result<Self, TargetError> {
        Ok(CellDensity(CellKernel::from_bandwidths(
            bandwidths, spline, steps,
        )?))
    }

    /// # Errors
    ///
    /// As [`CellKernel::from_covariance`].
    pub fn covariance(
        matrix: &[Vec<f64>],
        spline: Spline,
        steps: &[u32],
    ) -> Result<Self, TargetError> {
        Ok(CellDensity(CellKernel::from_covariance(
            matrix, spline, steps,
        )?))
    }

    /// Peak of the kernel that reads the cells, in records per volume of the unit cube.
    pub fn peak(&self) -> f64 {
        self.0.peak()
    }

    pub fn basis(&self) -> &CellBasis {
        self.0.basis()
    }
}

impl Builtin for CellDensity {}

impl Target for CellDensity {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.0.nodes().clone())
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.basis().steps.len(),
            degree: 1,
            basis: Basis::Cells(self.basis().clone()),
        }
    }

    /// A released value is a count times the peak of `K_S`, in records per volume of the unit cube.
    fn unit(&self) -> f64 {
        self.peak() / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let Some(histogram) = accumulator.histogram() else {
            return Exact::new(vec![0; self.0.nodes().cells()]);
        };
        Exact::new(
            histogram
                .cells
                .iter()
                .map(|grains| i128::from(*grains) << SHIFT)
                .collect(),
        )
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        records_of_change(adjacency, contributions).map(Sensitivity)
    }

    /// Change by one record for each record of a unit, for either adjacency: shares are not negative.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(u128::from(GRAINS) << SHIFT, contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        length_of_change(self.0.nodes(), adjacency, contributions)
    }
}

/// Change in the 1-norm: one record for each record of a unit, two where it is replaced.
pub(super) fn records_of_change(
    adjacency: Adjacency,
    contributions: u32,
) -> Result<u64, TargetError> {
    let records = match adjacency {
        Adjacency::AddRemove => 1,
        Adjacency::ReplaceOne => 2,
    };
    times_contributions(u128::from(records * GRAINS) << SHIFT, contributions)
}

/// Change in the 2-norm, in grid units.
pub(super) fn length_of_change(
    nodes: &Nodes,
    adjacency: Adjacency,
    contributions: u32,
) -> Result<u64, TargetError> {
    let one = u128::from(nodes.longest_deposit());
    let grains = match adjacency {
        Adjacency::AddRemove => one,
        Adjacency::ReplaceOne => (2 * one * one).isqrt() + 1,
    };
    times_contributions(grains << SHIFT, contributions)
}
