//! Readings by a Gaussian kernel at a point: densities, regressions, classes.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::ratio::RatioParts;
use super::{ConfidenceInterval, PointEstimate, Tables};
use crate::CellBasis;
use crate::cholesky::dot_product;
use crate::domain::unit_point;
use crate::error::SynopsisError;
use crate::tensor::grid_points;

/// Fit of a label around a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelFit {
    /// Mean, weighted by the kernel: safe where there are few records, and biased where the label has a slope.
    Constant,
    /// Line through the records, weighted by the kernel.
    Linear,
    /// Naive Bayes, of classes: the kernel on each axis for itself, as if the axes were independent within a class. Needs fewer records on several
    /// axes, and is biased where they are not independent; on one axis it is the same as a constant.
    Naive,
}

/// The tables, read by a kernel of some bandwidths.
#[derive(Clone, Debug)]
pub struct TableKernel<'t> {
    pub(super) tables: &'t Tables,
    pub(super) basis: CellBasis,
    /// The integral of the kernel, in natural units.
    integral: f64,
}

/// The most probable class at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassEstimate {
    /// Number of its table.
    pub table: usize,
    pub probability: f64,
    /// Tells that the noise allows another one.
    pub is_too_close: bool,
}

impl Tables {
    /// The reading of these bandwidths, in natural units, or of the smallest ones.
    ///
    /// # Errors
    ///
    /// If there is not one for each axis, or one is smaller than the smallest, or larger than the domain.
    pub fn kernel(&self, bandwidths: Option<&[f64]>) -> Result<TableKernel<'_>, SynopsisError> {
        let basis = match bandwidths {
            None => self.basis.basis_for_bandwidths(&self.basis.bandwidths),
            Some(bandwidths) => self.basis_of_bandwidths(bandwidths),
        };
        let basis = basis.ok_or_else(|| SynopsisError::Bandwidths {
            least: self.bandwidths(),
        })?;
        Ok(self.kernel_of_basis(basis))
    }

    /// The basis of bandwidths in natural units; `None` if they do not fit.
    fn basis_of_bandwidths(&self, bandwidths: &[f64]) -> Option<CellBasis> {
        // A part in 10^9: what a conversion of units leaves.
        const CONVERSION: f64 = 1e-9;
        if bandwidths.len() != self.axes.len() {
            return None;
        }
        let mut in_cube = bandwidths.to_vec();
        for (index, axis) in self.axes.iter().enumerate() {
            in_cube[index] /= axis.max - axis.min;
        }
        for (bandwidth, least) in in_cube.iter().zip(&self.basis.bandwidths) {
            let fits = *bandwidth >= least * (1.0 - CONVERSION) && *bandwidth <= 1.0 + CONVERSION;
            if !fits {
                return None;
            }
        }
        self.basis.basis_for_bandwidths(&in_cube)
    }

    /// The reading of the smallest bandwidths.
    pub(super) fn narrowest(&self) -> TableKernel<'_> {
        self.kernel_of_basis(self.narrowest.clone())
    }

    fn kernel_of_basis(&self, basis: CellBasis) -> TableKernel<'_> {
        let mut integral = 1.0;
        for (axis, row) in self.axes.iter().zip(&basis.precision) {
            let largest = row.iter().copied().fold(0.0, f64::max);
            integral *= (TAU / largest).sqrt() * (axis.max - axis.min);
        }
        TableKernel {
            tables: self,
            basis,
            integral,
        }
    }
}

impl TableKernel<'_> {
    /// Records per unit of the axes.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn density(&self, point: &[f64]) -> Result<PointEstimate, SynopsisError> {
        Ok(self.density_at(&unit_point(&self.tables.axes, point)?))
    }

    /// The probability of a table: a class, or how near to its largest value a number is.
    ///
    /// # Errors
    ///
    /// As [`TableKernel::density`], or if there is no such table, no label, or naive Bayes is asked for and it has no classes.
    pub fn probability(
        &self,
        point: &[f64],
        table: usize,
        fit: KernelFit,
    ) -> Result<PointEstimate, SynopsisError> {
        let table = self.tables.check_table(table)?;
        self.tables.check_fit(fit)?;
        Ok(self.probability_at(&unit_point(&self.tables.axes, point)?, table, fit))
    }

    /// The expected label.
    ///
    /// # Errors
    ///
    /// As [`TableKernel::probability`], or if the label is no number.
    pub fn expected(&self, point: &[f64], fit: KernelFit) -> Result<PointEstimate, SynopsisError> {
        self.tables.check_number()?;
        self.tables.check_fit(fit)?;
        Ok(self.expected_at(&unit_point(&self.tables.axes, point)?, fit))
    }

    /// The most probable class; a number has none.
    ///
    /// # Errors
    ///
    /// As [`TableKernel::probability`].
    pub fn most_probable_class(
        &self,
        point: &[f64],
        fit: KernelFit,
    ) -> Result<ClassEstimate, SynopsisError> {
        let point = unit_point(&self.tables.axes, point)?;
        let tables = self.tables;
        tables.check_table(0)?;
        tables.check_fit(fit)?;
        let parts = self.parts(&point, fit);
        let probabilities = tables.probabilities(&parts);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|a, b| {
            probabilities[*b]
                .total_cmp(&probabilities[*a])
                .then(a.cmp(b))
        });
        let [first, second, ..] = order[..] else {
            return Err(SynopsisError::NoSuchTable {
                table: 1,
                tables: 1,
            });
        };
        let is_too_close = parts.is_too_close(first, second, tables.within.pointwise);
        Ok(ClassEstimate {
            table: first,
            probability: probabilities[first],
            is_too_close,
        })
    }

    pub(super) fn density_at(&self, y: &[f64]) -> PointEstimate {
        let value = dot_product(&self.basis.kernel_values(y), &self.tables.counts) / self.integral;
        let length = self.density_length(y);
        let within = self.tables.within;
        PointEstimate {
            value,
            pointwise: Some(ConfidenceInterval::around(value, within.pointwise * length)),
            simultaneous: Some(ConfidenceInterval::around(
                value,
                within.simultaneous * length,
            )),
        }
    }

    /// The standard deviation of a density's noise, in units of that of one value.
    pub(super) fn density_length(&self, y: &[f64]) -> f64 {
        (self.tables.count() as f64).sqrt() * length(&self.basis.kernel_values(y)) / self.integral
    }

    /// The standard deviation of a probability's noise in units of that of one value, to first order.
    pub(super) fn probability_length(&self, y: &[f64], table: usize, fit: KernelFit) -> f64 {
        let parts = self.parts(y, fit);
        parts.probability_deviation(table, self.tables.probabilities(&parts)[table])
    }

    pub(super) fn probability_at(&self, y: &[f64], table: usize, fit: KernelFit) -> PointEstimate {
        let parts = self.parts(y, fit);
        let within = self.tables.within;
        PointEstimate {
            value: self.tables.probabilities(&parts)[table],
            pointwise: parts.interval(table, within.pointwise),
            simultaneous: parts.interval(table, within.simultaneous),
        }
    }

    pub(super) fn expected_at(&self, y: &[f64], fit: KernelFit) -> PointEstimate {
        let probability = self.probability_at(y, 1, fit);
        PointEstimate {
            value: self.tables.label_of_probability(probability.value),
            pointwise: self.tables.natural_interval(probability.pointwise),
            simultaneous: self.tables.natural_interval(probability.simultaneous),
        }
    }

    /// Sums of each table at a point.
    pub(super) fn parts(&self, y: &[f64], fit: KernelFit) -> RatioParts {
        let kernels = self.basis.kernel_values(y);
        let line = match fit {
            KernelFit::Naive => return self.tables.naive_parts(&self.axis_kernels(y)),
            KernelFit::Linear => self.tables.line_parts(&kernels, &self.node_offsets(y)),
            KernelFit::Constant => None,
        };
        match line {
            Some(parts) => parts,
            None => RatioParts::of_weights(
                self.tables.table_sums(&kernels),
                dot_product(&kernels, &kernels),
            ),
        }
    }

    /// Kernels of all nodes along each axis alone.
    fn axis_kernels(&self, y: &[f64]) -> Vec<Vec<f64>> {
        let offsets = self.node_offsets(y);
        let mut kernels = Vec::with_capacity(y.len());
        for (axis, row) in self.basis.precision.iter().enumerate() {
            let precision = row.get(axis).copied().unwrap_or(0.0);
            kernels.push(
                offsets
                    .iter()
                    .map(|offset| (-precision * offset[axis] * offset[axis] / 2.0).exp())
                    .collect(),
            );
        }
        kernels
    }

    /// Offset of each node from a point.
    fn node_offsets(&self, y: &[f64]) -> Vec<Vec<f64>> {
        let mut along = self.basis.nodes();
        along.truncate(y.len());
        for (nodes, y) in along.iter_mut().zip(y) {
            nodes.iter_mut().for_each(|node| *node -= y);
        }
        grid_points(&along)
    }
}

fn length(weights: &[f64]) -> f64 {
    dot_product(weights, weights).sqrt()
}
