//! The integral of a function over a box, such as how many records lie in a range, and how far noise and form move it.
//!
//! The form follows the integral of a density far closer than its highest place: what a polynomial is too low here it is too high
//! beside it. So the error of the form is not that of the curve times the width of the box, but that of the integral of one record,
//! wherever it lies: found as in [`super::form_error`], by everybody who reads, because the box is known only then.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

use serde::Serialize;

use super::bernstein::{Operator, basis};
use super::description::{Basis, CellBasis, Density, Smoothing, Target};
use super::domain::unit_point;
use super::error::Error;
use super::evaluator::midpoints;
use super::form_error::{BETWEEN_PLACES, OF_A_VALUE, ROUNDED};
use super::newton::Newton;
use super::noise::NoiseError;
use super::released::Synopsis;
use crate::cholesky::dot;
use crate::histogram::Spline;
use crate::noise;

/// The places of a record that are looked at, in each cell of a grid.
const IN_A_CELL: u32 = 24;

/// An integral, and how far it can be off: for a density the number of records in a box.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Integral {
    pub value: f64,
    pub noise: NoiseError,
    /// What the form adds to the noise at most, wherever the records are; with it both hold in at least 9 of 10 windows. `None` where
    /// nothing is known of it, as [`Synopsis::form_error`].
    pub form_error: Option<f64>,
}

impl Synopsis {
    /// The integral of the function over a box, one interval an axis, at the recommended order. Of kernel functions it is found by the
    /// midpoint rule, as [`super::Evaluator::mass`].
    ///
    /// # Errors
    ///
    /// If the box does not lie in the domain or ends before it begins, or if the synopsis holds moments or tables of cells.
    pub fn integrate(&self, sides: &[[f64; 2]]) -> Result<Integral, Error> {
        let about = &self.description;
        let end = |pick: usize| {
            unit_point(
                &about.domain,
                &sides.iter().map(|side| side[pick]).collect::<Vec<f64>>(),
            )
        };
        let low = end(0)?;
        let high = end(1)?;
        let sides: Vec<[f64; 2]> = low
            .into_iter()
            .zip(high)
            .map(|(low, high)| [low, high])
            .collect();
        if sides.iter().any(|[low, high]| low > high) {
            return Err(Error::EmptyRange);
        }
        let volume = about.volume();
        let weights = self.weights_of(&sides)?;
        let value = match &about.basis {
            Basis::Kernel(_) => {
                let evaluator = self.evaluator(about.order)?;
                let points = within(&sides);
                size(&sides) * points.iter().map(|y| evaluator.at(y)).sum::<f64>()
                    / points.len() as f64
            }
            _ => dot(&weights, &self.values),
        };
        let of_noise: Vec<f64> = weights.iter().map(|weight| volume * weight).collect();
        Ok(Integral {
            value: volume * value,
            noise: noise::weighted(about.noise.law, about.noise.scale, &of_noise),
            form_error: self
                .form_error_of(&sides, &weights)
                .map(|error| volume * error),
        })
    }

    /// What each value that noise was added to counts in the integral over a box of the unit cube.
    fn weights_of(&self, sides: &[[f64; 2]]) -> Result<Vec<f64>, Error> {
        let about = &self.description;
        let shape = self.description.shape();
        let mean = |at: &dyn Fn(&[f64]) -> Vec<f64>| {
            let points = within(sides);
            let part = size(sides) / points.len() as f64;
            let mut sum = vec![0.0; self.values.len()];
            for y in &points {
                sum.iter_mut()
                    .zip(at(y))
                    .for_each(|(sum, one)| *sum += part * one);
            }
            sum
        };
        Ok(match &shape.basis {
            Basis::Bernstein => {
                let along: Vec<Vec<f64>> = sides
                    .iter()
                    .map(|side| of_bases(shape.degree, *side))
                    .collect();
                Operator::new(shape.dimensions, shape.degree).influence(&along, about.order)
            }
            Basis::Affine => {
                let middle = sides.iter().map(|[low, high]| low + high - 1.0);
                std::iter::once(1.0)
                    .chain(middle)
                    .map(|weight| size(sides) * weight)
                    .collect()
            }
            Basis::Cells(basis) if basis.is_diagonal() => {
                let axes = Reader::of(basis).into_iter().zip(basis.nodes()).zip(sides);
                let along = axes.map(|((reader, nodes), side)| {
                    nodes.iter().map(|p| reader.read(*p, *side)).collect()
                });
                along.fold(vec![1.0], |product: Vec<f64>, own: Vec<f64>| {
                    product
                        .iter()
                        .flat_map(|p| own.iter().map(move |w| p * w))
                        .collect()
                })
            }
            Basis::Cells(basis) => mean(&|y| basis.at(y)),
            Basis::Kernel(basis) => {
                let newton = Newton::on(basis);
                mean(&|y| newton.at(y))
            }
            Basis::Tables(_) => return Err(Error::AskTables),
            Basis::Cosine { .. } => return Err(Error::NoFunction),
        })
    }

    /// What the form adds to the integral over a box of the unit cube at most: never more than to the curve, times the size of the box.
    fn form_error_of(&self, sides: &[[f64; 2]], weights: &[f64]) -> Option<f64> {
        let about = &self.description;
        let everywhere = size(sides) * about.form_error?;
        let Target::Density(Density {
            kernel: Smoothing::Bandwidths(bandwidths),
            ..
        }) = &about.target
        else {
            return None;
        };
        let of_a_record = match (
            &about.basis,
            about.domain.as_slice(),
            bandwidths.as_slice(),
            sides,
        ) {
            (Basis::Bernstein, [axis], [bandwidth], [side]) => on_lattice(
                about.degree,
                bandwidth / (axis.max - axis.min),
                *side,
                weights,
            ),
            (Basis::Cells(basis), ..) => on_cells(basis, sides),
            _ => everywhere,
        };
        Some(of_a_record.min(everywhere) * self.most_of_sum()?)
    }
}

fn size(sides: &[[f64; 2]]) -> f64 {
    sides.iter().map(|[low, high]| high - low).product()
}

/// The midpoints of equal parts of a box.
fn within(sides: &[[f64; 2]]) -> Vec<Vec<f64>> {
    let inside = |y: Vec<f64>| {
        y.iter()
            .zip(sides)
            .map(|(y, [low, high])| low + y * (high - low))
            .collect()
    };
    midpoints(sides.len()).into_iter().map(inside).collect()
}

/// The integrals of the polynomials of the basis. That of `b_j` up to `x` is the sum of the later ones of the next degree, over `k + 1`.
fn of_bases(degree: u32, side: [f64; 2]) -> Vec<f64> {
    let up_to = |x: f64| {
        let mut later = basis(degree + 1, x);
        let mut sum = 0.0;
        for one in later.iter_mut().rev() {
            sum += *one;
            *one = sum;
        }
        later
    };
    let [low, high] = side.map(up_to);
    low.iter()
        .zip(&high)
        .skip(1)
        .map(|(low, high)| (high - low) / (f64::from(degree) + 1.0))
        .collect()
}

/// The integral of `exp(-(y - x)^2 / 2 width^2)` over an interval.
fn of_bump(x: f64, width: f64, [low, high]: [f64; 2]) -> f64 {
    let below = |end: f64| libm::erf((end - x) / width * FRAC_1_SQRT_2);
    width * FRAC_PI_2.sqrt() * (below(high) - below(low))
}

/// The worst error of the integral of one record on a lattice, as a part of the sum of its values.
fn on_lattice(degree: u32, width: f64, side: [f64; 2], weights: &[f64]) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float saturates"
    )]
    let places = (16.0 / width).ceil() as u32;
    let places = places.div_ceil(4 * degree).max(1) * 4 * degree;
    let of_values: f64 = OF_A_VALUE * weights.iter().map(|weight| weight.abs()).sum::<f64>();
    let of_a_record = |i: u32| {
        let x = f64::from(i) / f64::from(places);
        let values = (0..=degree)
            .map(|j| (-((f64::from(j) / f64::from(degree) - x) / width).powi(2) / 2.0).exp());
        let (read, sum) = values
            .zip(weights)
            .fold((0.0, 0.0), |(read, sum), (v, w)| (read + v * w, sum + v));
        ((read - of_bump(x, width, side)).abs() + of_values) / sum
    };
    BETWEEN_PLACES * (0..=places).map(of_a_record).fold(0.0, f64::max)
}

/// The same on cells. On several axes integrals are products: what one axis does to them is at most its error, times the largest of the
/// others.
fn on_cells(basis: &CellBasis, sides: &[[f64; 2]]) -> f64 {
    let axes = Reader::of(basis).into_iter().zip(&basis.steps).zip(sides);
    let along: Vec<Largest> = axes
        .map(|((reader, steps), side)| reader.largest(basis.spline, *steps, *side))
        .collect();
    let others = |axis: usize| -> f64 {
        let (before, after) = along.split_at(axis);
        before.iter().map(|own| own.read).product::<f64>()
            * after.iter().skip(1).map(|own| own.exact).product::<f64>()
    };
    let error: f64 = along
        .iter()
        .enumerate()
        .map(|(axis, own)| own.error * others(axis))
        .sum();
    BETWEEN_PLACES * error + ROUNDED * along.iter().map(|own| own.read).product::<f64>()
}

/// The kernel that reads cells along one axis, and that of the density.
struct Reader {
    narrow: f64,
    wide: f64,
}

/// Of the integrals of one record along an axis, the largest: as read, as it is, and their difference.
struct Largest {
    read: f64,
    exact: f64,
    error: f64,
}

impl Reader {
    fn of(basis: &CellBasis) -> Vec<Self> {
        let diagonal = basis
            .precision
            .iter()
            .enumerate()
            .map(|(i, row)| row.get(i).copied().unwrap_or(1.0));
        diagonal
            .zip(basis.bandwidths())
            .map(|(p, wide)| Reader {
                narrow: p.powf(-0.5),
                wide,
            })
            .collect()
    }

    fn read(&self, node: f64, side: [f64; 2]) -> f64 {
        of_bump(node, self.narrow, side)
    }

    fn largest(&self, spline: Spline, steps: u32, side: [f64; 2]) -> Largest {
        let node = |j: usize| (j as f64 + spline.first()) / f64::from(steps);
        let read: Vec<f64> = (0..spline.nodes(steps))
            .map(|j| self.read(node(j), side))
            .collect();
        let mut most = Largest {
            read: read.iter().copied().fold(0.0, f64::max),
            exact: 0.0,
            error: 0.0,
        };
        for cell in 0..steps {
            for i in 0..=IN_A_CELL {
                let f = f64::from(i) / f64::from(IN_A_CELL);
                let from = cell as usize;
                let (from, shares) = match spline {
                    Spline::Box => (from, [1.0, 0.0, 0.0]),
                    Spline::Linear => (from, [1.0 - f, f, 0.0]),
                    // The nearest node is the second: the first lies a step outside.
                    Spline::Quadratic => {
                        let (from, d) = if f < 0.5 {
                            (from, f)
                        } else {
                            (from + 1, f - 1.0)
                        };
                        (
                            from,
                            [
                                (0.5 - d).powi(2) / 2.0,
                                0.75 - d * d,
                                (0.5 + d).powi(2) / 2.0,
                            ],
                        )
                    }
                };
                let found: f64 = read
                    .iter()
                    .skip(from)
                    .zip(shares)
                    .map(|(read, share)| read * share)
                    .sum();
                let x = (f64::from(cell) + f) / f64::from(steps);
                let exact = self.narrow / self.wide * of_bump(x, self.wide, side);
                most.exact = most.exact.max(exact);
                most.error = most.error.max((found - exact).abs());
            }
        }
        most
    }
}
