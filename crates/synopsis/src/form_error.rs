//! The error of the form of a density: how far it can be from the density itself, whatever the records are; known before there are any.
//!
//! The exact values and the density are both sums over the records, so their difference is one too. Nothing is worse than all
//! records in the place that the form follows least. With `v(x)` the values of one record at `x`, which are not negative,
//! `F v(x)` what the form makes of them, and `K_x` its kernel, the difference is everywhere at most
//!
//! `max over x of sup |F v(x) - K_x| / sum v(x)`, times the sum of the exact values:
//!
//! a reader has the sum of the noisy ones, and knows their noise ([`Synopsis::form_error`]).

use std::f64::consts::FRAC_1_SQRT_2;

use super::bernstein::{Bases, Operator};
use super::description::{AxisDescription, Basis, Density, Smoothing, TargetDescription};
use super::released::Synopsis;
use crate::cell_error;
use crate::histogram::Spline;
use crate::tensor::even_coordinates;
use crate::{CellBasis, Shape};

/// The most multiplications for which a lattice is looked at, so that a worker starts within seconds.
const WORK: usize = 100_000_000;
/// Factor for what the largest on a grid of places may miss.
pub(super) const BETWEEN_PLACES: f64 = 1.01;
/// The steps of the histogram that the values of a lattice are computed from, in bandwidths, at most.
const HISTOGRAM: f64 = 1.0 / 3.0;
/// Most that this does to a value, in units of the largest value of one record; `FORMAT.md` has it.
pub(super) const OF_A_VALUE: f64 = 4.44e-4;
/// The shares of a record are whole grains: at most 27 of them are each off by less than two, of a million.
pub(super) const ROUNDED: f64 = 1e-4;

/// The error of the form of a density, as a part of the sum of its exact values; `None` of everything else, of cells whose kernel is
/// correlated over the axes, and of lattices on several axes or too large to be looked at.
pub fn density_form_error(
    target: &TargetDescription,
    shape: &Shape,
    order: u32,
    domain: &[AxisDescription],
) -> Option<f64> {
    let TargetDescription::Density(Density {
        kernel: Smoothing::Bandwidths(bandwidths),
        ..
    }) = target
    else {
        return None;
    };
    let error = match &shape.basis {
        Basis::Cells(basis) => of_cells(basis),
        Basis::Bernstein => {
            let [bandwidth] = bandwidths.as_slice() else {
                return None;
            };
            let [axis] = domain else {
                return None;
            };
            lattice_error(shape.degree, order, bandwidth / (axis.max - axis.min))?
        }
        _ => return None,
    };
    if !error.is_finite() || error <= 0.0 {
        return None;
    }
    rounded_up(error)
}

/// To four digits, so that replicas agree whose exponentials differ in the last one.
fn rounded_up(error: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast from a float saturates"
    )]
    let exponent = error.log10().floor() as i32 - 3;
    let digits = (error / 10.0_f64.powi(exponent)).ceil();
    format!("{digits}e{exponent}").parse().ok()
}

/// The values of a record add up to the peak of the kernel that reads them, wherever it lies.
fn of_cells(basis: &CellBasis) -> f64 {
    // On several axes the errors of boxes are joined by a norm that comes within a few per cent of what is found.
    let joined = if basis.spline == Spline::Box && basis.steps.len() > 1 {
        1.1
    } else {
        BETWEEN_PLACES
    };
    joined * cell_error::form_of_a_count(basis) + ROUNDED
}

/// The largest over records at the points of the lattice and half way between them, or closer where the kernel is narrower.
fn lattice_error(degree: u32, order: u32, width: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float saturates"
    )]
    let cells = (8.0 / width).ceil() as u32;
    let cells = cells.div_ceil(4 * degree).max(1).checked_mul(4 * degree)?;
    let nodes = degree as usize + 1;
    let count = cells as usize + 1;
    let work = nodes
        .checked_mul(nodes)?
        .checked_mul(order as usize)?
        .checked_add(nodes.checked_mul(count)?)?;
    if work.checked_mul(count / 4)? > WORK {
        return None;
    }
    let points = even_coordinates(cells);
    let lattice = even_coordinates(degree);
    let at_points = Bases::at(degree, &points);
    let operator = Operator::new(1, degree);
    // Each value of the lattice is off by what the cells of its histogram do to the record.
    let of_values =
        operator.norm_bound(order) * cell_error::form_on_an_axis(Spline::Quadratic, HISTOGRAM);
    let mut worst = 0.0_f64;
    // The operator is symmetric, so half of the places are enough; every other point is one.
    for x in points.iter().step_by(2).filter(|x| **x <= 0.5) {
        let values = bump_values(&lattice, *x, width);
        let exact = bump_values(&points, *x, width);
        let polynomial = at_points.evaluate_tensor(&operator.coefficients(&values, order), 1);
        let mut largest = 0.0_f64;
        for (read, exact) in polynomial.iter().zip(&exact) {
            largest = largest.max((read - exact).abs());
        }
        worst = worst.max((largest + of_values) / values.iter().sum::<f64>());
    }
    Some(BETWEEN_PLACES * worst)
}

/// Values at some coordinates of the Gaussian bump of a record at `x`.
fn bump_values(coordinates: &[f64], x: f64, width: f64) -> Vec<f64> {
    coordinates
        .iter()
        .map(|y| {
            let away = (y - x) / width;
            libm::exp(-(away * FRAC_1_SQRT_2).powi(2))
        })
        .collect()
}

impl Synopsis {
    /// The sum of the exact values at most, with the probability that one value of the noise stays within its pointwise band.
    pub(super) fn largest_exact_sum(&self) -> Option<f64> {
        let noise = self.description.band.pointwise? * (self.values.len() as f64).sqrt();
        Some((self.values.iter().sum::<f64>() + noise).max(0.0))
    }

    /// Bound on how far the exact values' function at the recommended order is from the function itself, everywhere at once, with
    /// the probability that one value of the noise stays within its pointwise band. `None` where nothing is known of it.
    ///
    /// Add it to a [`super::band::Band`]. It is reached where all records lie in the place that the form follows least; of records that are
    /// spread the form is far closer.
    pub fn form_error(&self) -> Option<f64> {
        Some(self.description.form_error? * self.largest_exact_sum()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_format_says_of_a_value_is_what_its_histogram_does() {
        let found = cell_error::form_on_an_axis(Spline::Quadratic, HISTOGRAM);
        assert!(found < OF_A_VALUE && OF_A_VALUE < 1.001 * found, "{found}");
    }
}
