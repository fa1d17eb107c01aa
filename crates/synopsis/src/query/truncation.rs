//! The error of the approximation of a function by cosines.

use std::f64::consts::FRAC_PI_2;

use serde::Serialize;

use super::coefficients::{Tensor, even_angles, nodes_per_axis, unravel_index};
use super::function::{Query, natural_coordinate};
use crate::description::AxisDescription;
use crate::error::SynopsisError;

/// The error of an answer because there are finitely many moments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Truncation {
    /// Error of one record: `sup |f - p|` over the domain.
    pub per_record: f64,
    /// Tells that this is a proved bound. Otherwise it is an estimate, the largest that was seen on a fine grid.
    pub is_proved: bool,
    /// Number of times that it counts: the released number of records, itself noisy.
    pub records: f64,
    /// Most that both together can change the sum.
    pub error: f64,
}

impl Truncation {
    /// Looks at `f - p` at even angles, two to four a frequency. An expression has derivatives: at every point around such an
    /// angle, within half a step `s` on each axis, `|f - p|` is at most what it is there and `s sum_i sup |d_i (f - p)|`, where the
    /// derivative of `f` lies in an interval and that of `p` moves by at most `s sum_j sum_m m_i m_j |c_m|`.
    pub(super) fn bound_error(
        query: &Query<'_>,
        domain: &[AxisDescription],
        t: usize,
        coefficients: &[f64],
        records: f64,
    ) -> Result<Self, SynopsisError> {
        let axes = domain.len();
        let angles = even_angles(nodes_per_axis(axes, t));
        let polynomial = Polynomial {
            coefficients,
            frequencies: t,
            axes,
        };
        let values = polynomial.on_angles(&angles, None);
        let slopes: Vec<Vec<f64>> = (0..axes)
            .map(|axis| polynomial.on_angles(&angles, Some(axis)))
            .collect();
        let bends = polynomial.bends();
        let cell = FRAC_PI_2 / (angles.len() - 1) as f64;
        let widths = vec![angles.len(); axes];
        let mut seen = 0.0_f64;
        let mut bound = Some(0.0_f64);
        let mut indices = vec![0; axes];
        let mut sides = vec![[0.0; 2]; axes];
        let mut middle = vec![0.0; axes];
        for (flat, value) in values.iter().enumerate() {
            unravel_index(flat, &widths, &mut indices);
            for (axis, index) in indices.iter().enumerate() {
                let angle = angles[*index];
                let [low, center, high] = [angle + cell, angle, angle - cell]
                    .map(|angle| natural_coordinate(&domain[axis], inside_turn(angle).cos()));
                middle[axis] = center;
                sides[axis] = [low, high];
            }
            let exact = query.value(&middle);
            if !exact.is_finite() {
                return Err(SynopsisError::NotANumber { at: middle });
            }
            let apart = (exact - value).abs();
            seen = seen.max(apart);
            let Some(proved) = bound else {
                continue;
            };
            bound = None;
            if let Some(query_slopes) = query.slopes(&sides) {
                let mut moved = 0.0;
                for axis in 0..axes {
                    let width = (domain[axis].max - domain[axis].min) / 2.0;
                    let query_slope = query_slopes[axis].map(|slope| -slope * width);
                    let angle = angles[indices[axis]];
                    let away = slope_error(
                        query_slope,
                        slopes[axis][flat],
                        [angle - cell, angle + cell],
                    );
                    moved += cell * (away + cell * bends[axis]);
                }
                bound = Some(proved.max(apart + moved));
            }
        }
        let per_record = bound.unwrap_or(seen);
        Ok(Truncation {
            per_record,
            is_proved: bound.is_some(),
            records,
            error: per_record * records,
        })
    }
}

fn inside_turn(angle: f64) -> f64 {
    angle.clamp(0.0, 2.0 * FRAC_PI_2)
}

/// Largest difference between the derivative of a query after an angle and `slope`, in a cell of angles: that derivative is `factor`,
/// which lies between two numbers, times the sine.
fn slope_error(factor: [f64; 2], slope: f64, cell: [f64; 2]) -> f64 {
    let [first, last] = cell.map(inside_turn);
    let least = first.sin().min(last.sin()).max(0.0);
    let most = if (first..=last).contains(&FRAC_PI_2) {
        1.0
    } else {
        first.sin().max(last.sin())
    };
    let mut largest = 0.0_f64;
    for factor in factor {
        for sine in [least, most] {
            largest = largest.max((factor * sine - slope).abs());
        }
    }
    largest
}

/// A sum of products of cosines.
struct Polynomial<'a> {
    coefficients: &'a [f64],
    /// Number of frequencies of each axis.
    frequencies: usize,
    axes: usize,
}

impl Polynomial<'_> {
    /// Values at all angles of every axis, or those of the derivative after one of them.
    fn on_angles(&self, angles: &[f64], derived: Option<usize>) -> Vec<f64> {
        let tensor = Tensor {
            values: self.coefficients.to_vec(),
            widths: vec![self.frequencies; self.axes],
        };
        tensor
            .transformed_axes(&vec![angles.len(); self.axes], |axis, j, m| {
                let m = m as f64;
                let angle = angles[j];
                if derived == Some(axis) {
                    -m * (m * angle).sin()
                } else {
                    (m * angle).cos()
                }
            })
            .values
    }

    /// `sum_j sum_m m_i m_j |c_m|` for each axis `i`.
    fn bends(&self) -> Vec<f64> {
        let widths = vec![self.frequencies; self.axes];
        let mut bends = vec![0.0; self.axes];
        let mut frequencies = vec![0; self.axes];
        for (flat, coefficient) in self.coefficients.iter().enumerate() {
            unravel_index(flat, &widths, &mut frequencies);
            let sum: usize = frequencies.iter().sum();
            for (bend, frequency) in bends.iter_mut().zip(&frequencies) {
                *bend += (frequency * sum) as f64 * coefficient.abs();
            }
        }
        bends
    }
}
