//! What a Gaussian kernel reads at a point: densities, regressions, classes.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::ratio::Parts;
use super::{Interval, Reading, Tables};
use crate::CellBasis;
use crate::cholesky::dot;
use crate::description::Axis;
use crate::domain::unit_point;
use crate::error::Error;

/// How a label is fitted around a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Its mean, weighted by the kernel: safe where there are few records, and biased where the label has a slope.
    Constant,
    /// A line through the records, weighted by the kernel.
    Linear,
    /// Of classes, naive Bayes: the kernel on each axis for itself, as if the axes were independent within a class. Needs fewer records on several
    /// axes, and is biased where they are not independent; on one axis it is the same as a constant.
    Naive,
}

/// The tables, read by a kernel of some bandwidths.
#[derive(Clone, Debug)]
pub struct Kernel<'t> {
    pub(super) tables: &'t Tables,
    pub(super) basis: CellBasis,
    /// The integral of the kernel, in natural units.
    integral: f64,
}

/// The most probable class at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Its table.
    pub table: usize,
    pub probability: f64,
    /// The noise allows another one.
    pub is_too_close: bool,
}

impl Tables {
    /// The reading of these bandwidths, in natural units, or of the smallest ones.
    ///
    /// # Errors
    ///
    /// If there is not one for each axis, or one is smaller than the smallest, or larger than the domain.
    pub fn kernel(&self, bandwidths: Option<&[f64]>) -> Result<Kernel<'_>, Error> {
        let widths: Vec<f64> = self.axes.iter().map(|axis| axis.max - axis.min).collect();
        let wrong = || Error::Bandwidths {
            least: self.bandwidths(),
        };
        let in_cube: Vec<f64> = match bandwidths {
            None => self.basis.bandwidths.clone(),
            Some(bandwidths) => bandwidths
                .iter()
                .zip(&widths)
                .map(|(b, width)| b / width)
                .collect(),
        };
        // A part in 10^9: what a conversion of units leaves.
        let fits = |(b, least): (&f64, &f64)| *b >= least * (1.0 - 1e-9) && *b <= 1.0 + 1e-9;
        let is_complete = bandwidths.is_none_or(|bandwidths| bandwidths.len() == widths.len());
        if !is_complete || !in_cube.iter().zip(&self.basis.bandwidths).all(fits) {
            return Err(wrong());
        }
        Ok(self.with(self.basis.at(&in_cube).ok_or_else(wrong)?))
    }

    /// The reading of the smallest bandwidths.
    pub(super) fn narrowest(&self) -> Kernel<'_> {
        self.with(self.narrowest.clone())
    }

    fn with(&self, basis: CellBasis) -> Kernel<'_> {
        let deviation = |(axis, row): (&Axis, &Vec<f64>)| {
            let largest = row.iter().fold(0.0_f64, |a, b| a.max(*b));
            (TAU / largest).sqrt() * (axis.max - axis.min)
        };
        let integral = self
            .axes
            .iter()
            .zip(&basis.precision)
            .map(deviation)
            .product();
        Kernel {
            tables: self,
            basis,
            integral,
        }
    }
}

impl Kernel<'_> {
    /// Records per unit of the axes.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn density(&self, point: &[f64]) -> Result<Reading, Error> {
        Ok(self.density_at(&unit_point(&self.tables.axes, point)?))
    }

    /// The probability of a table: a class, or how near to its largest value a number is.
    ///
    /// # Errors
    ///
    /// As [`Kernel::density`], or if there is no such table, no label, or naive Bayes is asked for and it has no classes.
    pub fn probability(&self, point: &[f64], table: usize, fit: Fit) -> Result<Reading, Error> {
        let table = self.tables.table(table)?;
        self.tables.fits(fit)?;
        Ok(self.probability_at(&unit_point(&self.tables.axes, point)?, table, fit))
    }

    /// The expected label.
    ///
    /// # Errors
    ///
    /// As [`Kernel::probability`], or if the label is no number.
    pub fn expected(&self, point: &[f64], fit: Fit) -> Result<Reading, Error> {
        self.tables.number()?;
        self.tables.fits(fit)?;
        Ok(self.expected_at(&unit_point(&self.tables.axes, point)?, fit))
    }

    /// The most probable class; a number has none.
    ///
    /// # Errors
    ///
    /// As [`Kernel::probability`].
    pub fn class(&self, point: &[f64], fit: Fit) -> Result<Class, Error> {
        let point = unit_point(&self.tables.axes, point)?;
        let tables = self.tables;
        tables.table(0)?;
        tables.fits(fit)?;
        let parts = self.parts(&point, fit);
        let probabilities = tables.probabilities(&parts);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|a, b| {
            probabilities[*b]
                .total_cmp(&probabilities[*a])
                .then(a.cmp(b))
        });
        let [first, second, ..] = order[..] else {
            return Err(Error::NoSuchTable {
                table: 1,
                tables: 1,
            });
        };
        let is_too_close = parts.is_too_close(first, second, tables.within.pointwise);
        Ok(Class {
            table: first,
            probability: probabilities[first],
            is_too_close,
        })
    }

    pub(super) fn density_at(&self, y: &[f64]) -> Reading {
        let value = dot(&self.basis.at(y), &self.tables.counts) / self.integral;
        let length = self.density_length(y);
        let within = |q: f64| Some(Interval::around(value, q * length));
        let tables = self.tables.within;
        Reading {
            value,
            pointwise: within(tables.pointwise),
            simultaneous: within(tables.simultaneous),
        }
    }

    /// The standard deviation of a density's noise, in units of that of one value.
    pub(super) fn density_length(&self, y: &[f64]) -> f64 {
        (self.tables.count() as f64).sqrt() * length(&self.basis.at(y)) / self.integral
    }

    /// The same of a probability, to first order.
    pub(super) fn probability_length(&self, y: &[f64], table: usize, fit: Fit) -> f64 {
        let parts = self.parts(y, fit);
        parts.length(table, self.tables.probabilities(&parts)[table])
    }

    pub(super) fn probability_at(&self, y: &[f64], table: usize, fit: Fit) -> Reading {
        let parts = self.parts(y, fit);
        let within = self.tables.within;
        Reading {
            value: self.tables.probabilities(&parts)[table],
            pointwise: parts.interval(table, within.pointwise),
            simultaneous: parts.interval(table, within.simultaneous),
        }
    }

    pub(super) fn expected_at(&self, y: &[f64], fit: Fit) -> Reading {
        let Reading {
            value,
            pointwise,
            simultaneous,
        } = self.probability_at(y, 1, fit);
        let natural = |p| self.tables.natural(p);
        let of = |interval: Option<Interval>| interval.map(|interval| interval.map(natural));
        Reading {
            value: natural(value),
            pointwise: of(pointwise),
            simultaneous: of(simultaneous),
        }
    }

    /// What is counted of each table at a point.
    pub(super) fn parts(&self, y: &[f64], fit: Fit) -> Parts {
        let kernels = self.basis.at(y);
        let constant = || Parts::of_weights(self.tables.sums(&kernels), dot(&kernels, &kernels));
        match fit {
            Fit::Constant => constant(),
            Fit::Linear => self
                .tables
                .line(&kernels, &self.away(y))
                .unwrap_or_else(constant),
            Fit::Naive => self.tables.naive(&self.along(y)),
        }
    }

    /// For each axis, the kernels of all nodes along it alone.
    fn along(&self, y: &[f64]) -> Vec<Vec<f64>> {
        let away = self.away(y);
        let of_axis = |(axis, row): (usize, &Vec<f64>)| {
            let precision = row.get(axis).copied().unwrap_or(0.0);
            away.iter()
                .map(|d| (-precision * d[axis] * d[axis] / 2.0).exp())
                .collect()
        };
        self.basis
            .precision
            .iter()
            .enumerate()
            .map(of_axis)
            .collect()
    }

    /// How far each node is from a point.
    fn away(&self, y: &[f64]) -> Vec<Vec<f64>> {
        self.basis
            .nodes()
            .iter()
            .zip(y)
            .fold(vec![vec![]], |places: Vec<Vec<f64>>, (nodes, y)| {
                places
                    .iter()
                    .flat_map(|place| nodes.iter().map(move |p| [&place[..], &[p - y]].concat()))
                    .collect()
            })
    }
}

fn length(weights: &[f64]) -> f64 {
    dot(weights, weights).sqrt()
}
