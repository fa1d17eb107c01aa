//! What a Gaussian kernel reads at a point: densities, regressions, classes.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::ratio::{fieller, shrunk};
use super::{Interval, Reading, Tables};
use crate::synopsis::description::Axis;
use crate::synopsis::domain::unit_point;
use crate::synopsis::error::Error;
use crate::targets::CellBasis;
use crate::targets::cholesky::{backward, dot, factor, forward};

/// How a label is fitted around a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Its mean, weighted by the kernel: safe where there are few records, and biased where the label has a slope.
    Constant,
    /// A line through the records, weighted by the kernel.
    Linear,
}

/// The tables, read by a kernel of some bandwidths.
#[derive(Clone, Debug)]
pub struct Kernel<'t> {
    tables: &'t Tables,
    basis: CellBasis,
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
        let wrong = || Error::Bandwidths { least: self.bandwidths() };
        let in_cube: Vec<f64> = match bandwidths {
            None => self.basis.bandwidths.clone(),
            Some(bandwidths) => bandwidths.iter().zip(&widths).map(|(b, width)| b / width).collect(),
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
        let integral = self.axes.iter().zip(&basis.precision).map(deviation).product();
        Kernel { tables: self, basis, integral }
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
    /// As [`Kernel::density`], or if there is no such table, or no label.
    pub fn probability(&self, point: &[f64], table: usize, fit: Fit) -> Result<Reading, Error> {
        let table = self.tables.table(table)?;
        Ok(self.probability_at(&unit_point(&self.tables.axes, point)?, table, fit))
    }

    /// The expected label.
    ///
    /// # Errors
    ///
    /// As [`Kernel::density`], or if the label is no number.
    pub fn expected(&self, point: &[f64], fit: Fit) -> Result<Reading, Error> {
        self.tables.number()?;
        Ok(self.expected_at(&unit_point(&self.tables.axes, point)?, fit))
    }

    /// The most probable class; a number has none.
    ///
    /// # Errors
    ///
    /// As [`Kernel::probability`].
    pub fn class(&self, point: &[f64], fit: Fit) -> Result<Class, Error> {
        let (point, tables) = (unit_point(&self.tables.axes, point)?, self.tables);
        tables.table(0)?;
        let weights = self.weights(&point, fit);
        let sums = tables.sums(&weights);
        let probabilities = self.probabilities(&weights, &sums);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]).then(a.cmp(b)));
        let [first, second, ..] = order[..] else { return Err(Error::NoSuchTable { table: 1, tables: 1 }) };
        let apart = sums[first] - sums[second];
        let noise = tables.within.pointwise * 2.0_f64.sqrt() * length(&weights);
        Ok(Class { table: first, probability: probabilities[first], is_too_close: apart <= noise })
    }

    pub(super) fn density_at(&self, y: &[f64]) -> Reading {
        let value = dot(&self.basis.at(y), &self.tables.counts) / self.integral;
        let length = self.density_length(y);
        let within = |q: f64| Some(Interval::around(value, q * length));
        let tables = self.tables.within;
        Reading { value, pointwise: within(tables.pointwise), simultaneous: within(tables.simultaneous) }
    }

    /// The standard deviation of a density's noise, in units of that of one value.
    pub(super) fn density_length(&self, y: &[f64]) -> f64 {
        (self.tables.count() as f64).sqrt() * length(&self.basis.at(y)) / self.integral
    }

    /// The same of a probability, to first order.
    pub(super) fn probability_length(&self, y: &[f64], table: usize, fit: Fit) -> f64 {
        let weights = self.weights(y, fit);
        let sums = self.tables.sums(&weights);
        let (p, whole): (f64, f64) = (self.probabilities(&weights, &sums)[table], sums.iter().sum());
        let others = self.tables.count() as f64 - 1.0;
        let length = length(&weights) * ((1.0 - p).powi(2) + others * p * p).sqrt();
        if whole > 0.0 { length / whole } else { f64::INFINITY }
    }

    pub(super) fn probability_at(&self, y: &[f64], table: usize, fit: Fit) -> Reading {
        let weights = self.weights(y, fit);
        let sums = self.tables.sums(&weights);
        let value = self.probabilities(&weights, &sums)[table];
        let (whole, length) = (sums.iter().sum(), length(&weights));
        let within = |q: f64| fieller(sums[table], whole, q * length, [1.0, 1.0, self.tables.count() as f64]);
        let tables = self.tables.within;
        Reading { value, pointwise: within(tables.pointwise), simultaneous: within(tables.simultaneous) }
    }

    pub(super) fn expected_at(&self, y: &[f64], fit: Fit) -> Reading {
        let Reading { value, pointwise, simultaneous } = self.probability_at(y, 1, fit);
        let natural = |p| self.tables.natural(p);
        let of = |interval: Option<Interval>| interval.map(|interval| interval.map(natural));
        Reading { value: natural(value), pointwise: of(pointwise), simultaneous: of(simultaneous) }
    }

    fn probabilities(&self, weights: &[f64], sums: &[f64]) -> Vec<f64> {
        shrunk(
            sums,
            self.tables.deviation * (self.tables.count() as f64).sqrt() * length(weights),
            &self.tables.parts(),
        )
    }

    /// What each node counts at a point.
    fn weights(&self, y: &[f64], fit: Fit) -> Vec<f64> {
        let kernels = self.basis.at(y);
        match fit {
            Fit::Constant => kernels,
            Fit::Linear => self.slanted(y, &kernels).unwrap_or(kernels),
        }
    }

    /// The weights of a line, drawn to those of a constant by the noise on the second moments; `None` where noise leaves no line.
    fn slanted(&self, y: &[f64], kernels: &[f64]) -> Option<Vec<f64>> {
        let (tables, axes) = (self.tables, y.len());
        let error = tables.deviation * (tables.count() as f64).sqrt();
        let away = self.away(y);
        let mut matrix: Vec<Vec<f64>> = (0..axes).map(|i| vec![0.0; i + 1]).collect();
        let (mut first, mut fourth) = (vec![0.0; axes], vec![0.0; axes]);
        for ((kernel, count), d) in kernels.iter().zip(&tables.counts).zip(&away) {
            for i in 0..axes {
                first[i] += kernel * count * d[i];
                fourth[i] += kernel * kernel * d[i].powi(4);
                for j in 0..=i {
                    matrix[i][j] += kernel * count * d[i] * d[j];
                }
            }
        }
        for (i, fourth) in fourth.iter().enumerate() {
            matrix[i][i] += 2.0 * error * fourth.sqrt();
        }
        let lower = factor(matrix, 0.0);
        if !lower.iter().all(|row| row.last().is_some_and(|pivot| *pivot > 0.0)) {
            return None;
        }
        let slope = backward(&lower, &forward(&lower, &first));
        Some(kernels.iter().zip(&away).map(|(kernel, d)| kernel * (1.0 - dot(&slope, d))).collect())
    }

    /// How far each node is from a point.
    fn away(&self, y: &[f64]) -> Vec<Vec<f64>> {
        self.basis.nodes().iter().zip(y).fold(vec![vec![]], |places: Vec<Vec<f64>>, (nodes, y)| {
            places.iter().flat_map(|place| nodes.iter().map(move |p| [&place[..], &[p - y]].concat())).collect()
        })
    }
}

fn length(weights: &[f64]) -> f64 {
    dot(weights, weights).sqrt()
}
