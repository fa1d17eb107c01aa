//! The integral of a function over a box, such as how many records lie in a range, and how far noise and form move it.
//!
//! The form follows the integral of a density far closer than its highest place: what a polynomial is too low here it is too high
//! beside it. So the error of the form is not that of the curve times the width of the box, but that of the integral of one record,
//! wherever it lies: found as in [`super::form_error`], by everybody who reads, because the box is known only then.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

use serde::Serialize;

use super::bernstein::{Operator, bernstein_basis};
use super::description::{Basis, CellBasis, Density, Smoothing, TargetDescription};
use super::domain::unit_point;
use super::error::SynopsisError;
use super::evaluator::cube_midpoints;
use super::form_error::{BETWEEN_PLACES, OF_A_VALUE, ROUNDED};
use super::newton::Newton;
use super::noise::AnswerNoise;
use super::released::Synopsis;
use crate::cholesky::{dot_product, sequential_dot};
use crate::histogram::Spline;
use crate::tensor::{even_coordinates, outer_product};

/// Number of places of a record that are looked at, in each cell of a grid.
const IN_A_CELL: u32 = 24;

/// An integral, and how far it can be off: for a density the number of records in a box.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Integral {
    pub value: f64,
    pub noise: AnswerNoise,
    /// Most that the form adds to the noise, wherever the records are; with it both hold in at least 9 of 10 windows. `None` where
    /// nothing is known of it, as [`Synopsis::form_error`].
    pub form_error: Option<f64>,
}

impl Synopsis {
    /// The integral of the function over a box, one interval an axis, at the recommended order. Of kernel functions it is found by the
    /// midpoint rule, as [`super::Evaluator::total_mass`].
    ///
    /// # Errors
    ///
    /// If the box does not lie in the domain or ends before it begins, or if the synopsis holds moments or tables of cells.
    pub fn integrate(&self, sides: &[[f64; 2]]) -> Result<Integral, SynopsisError> {
        let description = &self.description;
        let [low, high] =
            [0, 1].map(|end| sides.iter().map(|side| side[end]).collect::<Vec<f64>>());
        let low = unit_point(&description.domain, &low)?;
        let high = unit_point(&description.domain, &high)?;
        let mut sides = Vec::with_capacity(low.len());
        for (low, high) in low.into_iter().zip(high) {
            if low > high {
                return Err(SynopsisError::EmptyRange);
            }
            sides.push([low, high]);
        }
        let volume = description.volume();
        let weights = self.integral_weights(&sides)?;
        let value = match &description.basis {
            Basis::Kernel(_) => {
                let evaluator = self.evaluator(description.order)?;
                let points = box_midpoints(&sides);
                box_volume(&sides)
                    * points
                        .iter()
                        .map(|y| evaluator.value_in_cube(y))
                        .sum::<f64>()
                    / points.len() as f64
            }
            _ => dot_product(&weights, &self.values),
        };
        let of_noise: Vec<f64> = weights.iter().map(|weight| volume * weight).collect();
        Ok(Integral {
            value: volume * value,
            noise: description.noise.of_weighted_sum(&of_noise),
            form_error: self
                .integral_form_error(&sides, &weights)
                .map(|error| volume * error),
        })
    }

    /// Weight of each value that noise was added to, in the integral over a box of the unit cube.
    fn integral_weights(&self, sides: &[[f64; 2]]) -> Result<Vec<f64>, SynopsisError> {
        let description = &self.description;
        let shape = self.description.shape();
        Ok(match &shape.basis {
            Basis::Bernstein => {
                let along: Vec<Vec<f64>> = sides
                    .iter()
                    .map(|side| basis_integrals(shape.degree, *side))
                    .collect();
                Operator::new(shape.dimensions, shape.degree)
                    .influence_of_values(&along, description.order)
            }
            Basis::Affine => {
                let mut weights = vec![1.0];
                weights.extend(sides.iter().map(|[low, high]| low + high - 1.0));
                for weight in &mut weights {
                    *weight *= box_volume(sides);
                }
                weights
            }
            Basis::Cells(basis) if basis.is_diagonal() => {
                let mut factors = basis.nodes();
                for (axis, reader) in IntegralKernels::of_axes(basis).iter().enumerate() {
                    for node in &mut factors[axis] {
                        *node = reader.read(*node, sides[axis]);
                    }
                }
                outer_product(&factors)
            }
            Basis::Cells(basis) => {
                midpoint_weights(self.values.len(), sides, |y| basis.kernel_values(y))
            }
            Basis::Kernel(basis) => {
                let newton = Newton::on_points(basis);
                midpoint_weights(self.values.len(), sides, |y| newton.basis_values(y))
            }
            Basis::Tables(_) => return Err(SynopsisError::AskTables),
            Basis::Cosine { .. } => return Err(SynopsisError::NoFunction),
            Basis::Keys(_) => return Err(SynopsisError::AskKeys),
        })
    }

    /// Most that the form adds to the integral over a box of the unit cube: never more than to the curve, times the size of the box.
    fn integral_form_error(&self, sides: &[[f64; 2]], weights: &[f64]) -> Option<f64> {
        let description = &self.description;
        let everywhere = box_volume(sides) * description.form_error?;
        let TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(bandwidths),
            ..
        }) = &description.target
        else {
            return None;
        };
        let of_a_record = match &description.basis {
            Basis::Bernstein => {
                if let [axis] = description.domain.as_slice()
                    && let [bandwidth] = bandwidths.as_slice()
                    && let [side] = sides
                {
                    let width = bandwidth / (axis.max - axis.min);
                    lattice_form_error(description.degree, width, *side, weights)
                } else {
                    everywhere
                }
            }
            Basis::Cells(basis) => cells_form_error(basis, sides),
            _ => everywhere,
        };
        Some(of_a_record.min(everywhere) * self.largest_exact_sum()?)
    }
}

fn box_volume(sides: &[[f64; 2]]) -> f64 {
    sides.iter().map(|[low, high]| high - low).product()
}

/// The midpoints of equal parts of a box.
fn box_midpoints(sides: &[[f64; 2]]) -> Vec<Vec<f64>> {
    let mut points = cube_midpoints(sides.len());
    for point in &mut points {
        for (y, [low, high]) in point.iter_mut().zip(sides) {
            *y = low + *y * (high - low);
        }
    }
    points
}

/// Integrals over a box by the midpoint rule, each of one of `count` functions whose values at a point are `values_at`.
fn midpoint_weights(
    count: usize,
    sides: &[[f64; 2]],
    values_at: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let points = box_midpoints(sides);
    let part = box_volume(sides) / points.len() as f64;
    let mut sums = vec![0.0; count];
    for point in &points {
        for (sum, value) in sums.iter_mut().zip(values_at(point)) {
            *sum += part * value;
        }
    }
    sums
}

/// The integrals of the polynomials of the basis over an interval.
fn basis_integrals(degree: u32, side: [f64; 2]) -> Vec<f64> {
    let [low, high] = side.map(|end| later_sums(degree + 1, end));
    low.iter()
        .zip(&high)
        .skip(1)
        .map(|(low, high)| (high - low) / (f64::from(degree) + 1.0))
        .collect()
}

/// Sums of each polynomial of the basis at `x` and the later ones: over the degree, the integral up to `x` of the one before
/// it in the basis of a degree less.
fn later_sums(degree: u32, x: f64) -> Vec<f64> {
    let mut later = bernstein_basis(degree, x);
    let mut sum = 0.0;
    for value in later.iter_mut().rev() {
        sum += *value;
        *value = sum;
    }
    later
}

/// The integral of `exp(-(y - x)^2 / 2 width^2)` over an interval.
fn bump_integral(x: f64, width: f64, side: [f64; 2]) -> f64 {
    let [below_low, below_high] = side.map(|end| libm::erf((end - x) / width * FRAC_1_SQRT_2));
    width * FRAC_PI_2.sqrt() * (below_high - below_low)
}

/// The worst error of the integral of one record on a lattice, as a part of the sum of its values.
fn lattice_form_error(degree: u32, width: f64, side: [f64; 2], weights: &[f64]) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float saturates"
    )]
    let places = (16.0 / width).ceil() as u32;
    let places = places.div_ceil(4 * degree).max(1) * 4 * degree;
    let of_values: f64 = OF_A_VALUE * weights.iter().map(|weight| weight.abs()).sum::<f64>();
    let lattice = even_coordinates(degree);
    let mut worst = 0.0_f64;
    for x in even_coordinates(places) {
        let mut read = 0.0;
        let mut sum = 0.0;
        for (node, weight) in lattice.iter().zip(weights) {
            let value = (-((node - x) / width).powi(2) / 2.0).exp();
            read += value * weight;
            sum += value;
        }
        let error = (read - bump_integral(x, width, side)).abs() + of_values;
        worst = worst.max(error / sum);
    }
    BETWEEN_PLACES * worst
}

/// The worst error of the integral of one record on cells, as a part of the sum of its values. On several axes integrals are products:
/// what one axis does to them is at most its error, times the largest of the others.
fn cells_form_error(basis: &CellBasis, sides: &[[f64; 2]]) -> f64 {
    let mut axes = Vec::with_capacity(sides.len());
    for (reader, (steps, side)) in IntegralKernels::of_axes(basis)
        .iter()
        .zip(basis.steps.iter().zip(sides))
    {
        axes.push(reader.largest_integrals(basis.spline, *steps, *side));
    }
    let mut error = 0.0;
    for (axis, own) in axes.iter().enumerate() {
        let before: f64 = axes[..axis].iter().map(|other| other.read).product();
        let after: f64 = axes[axis + 1..].iter().map(|other| other.exact).product();
        error += own.error * (before * after);
    }
    BETWEEN_PLACES * error + ROUNDED * axes.iter().map(|own| own.read).product::<f64>()
}

/// The kernel that reads cells along one axis, and that of the density.
struct IntegralKernels {
    narrow: f64,
    wide: f64,
}

/// The largest integrals of one record along an axis: as read, as it is, and their difference.
struct LargestIntegrals {
    read: f64,
    exact: f64,
    error: f64,
}

impl IntegralKernels {
    fn of_axes(basis: &CellBasis) -> Vec<Self> {
        let bandwidths = basis.bandwidths();
        let mut readers = Vec::with_capacity(bandwidths.len());
        for (axis, wide) in bandwidths.into_iter().enumerate() {
            readers.push(IntegralKernels {
                narrow: basis.precision[axis][axis].powf(-0.5),
                wide,
            });
        }
        readers
    }

    fn read(&self, node: f64, side: [f64; 2]) -> f64 {
        bump_integral(node, self.narrow, side)
    }

    fn largest_integrals(&self, spline: Spline, steps: u32, side: [f64; 2]) -> LargestIntegrals {
        let mut read = Vec::with_capacity(spline.nodes(steps));
        for node in 0..spline.nodes(steps) {
            let place = (node as f64 + spline.first_node()) / f64::from(steps);
            read.push(self.read(place, side));
        }
        let mut most = LargestIntegrals {
            read: read.iter().copied().fold(0.0, f64::max),
            exact: 0.0,
            error: 0.0,
        };
        for cell in 0..steps {
            for i in 0..=IN_A_CELL {
                let f = f64::from(i) / f64::from(IN_A_CELL);
                let mut first = cell as usize;
                let shares = match spline {
                    Spline::Box => [1.0, 0.0, 0.0],
                    Spline::Linear => [1.0 - f, f, 0.0],
                    Spline::Quadratic => {
                        // The nearest node is the second: the first lies a step outside.
                        let mut d = f;
                        if f >= 0.5 {
                            first += 1;
                            d = f - 1.0;
                        }
                        [
                            (0.5 - d).powi(2) / 2.0,
                            0.75 - d * d,
                            (0.5 + d).powi(2) / 2.0,
                        ]
                    }
                };
                let found = sequential_dot(&read[first..], &shares);
                let x = (f64::from(cell) + f) / f64::from(steps);
                let exact = self.narrow / self.wide * bump_integral(x, self.wide, side);
                most.exact = most.exact.max(exact);
                most.error = most.error.max((found - exact).abs());
            }
        }
        most
    }
}
