//! How far a function is from its approximation by cosines.

use std::f64::consts::FRAC_PI_2;

use serde::Serialize;

use super::coefficients::{Tensor, even_angles, place as place_of, resolution};
use super::function::{Query, place};
use crate::description::Axis;
use crate::error::Error;

/// The error of an answer because there are finitely many moments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Truncation {
    /// `sup |f - p|` over the domain.
    pub per_record: f64,
    /// Whether that is a proved bound. Otherwise it is an estimate, the largest that was seen on a fine grid.
    pub is_proved: bool,
    /// How often it counts: the released number of records, itself noisy.
    pub records: f64,
    /// Both together: the most that it can change the sum.
    pub error: f64,
}

impl Truncation {
    /// Looks at `f - p` at even angles, two to four a frequency. An expression has derivatives: at every point around such an
    /// angle, within half a step `s` on each axis, `|f - p|` is at most what it is there and `s sum_i sup |d_i (f - p)|`, where the
    /// derivative of `f` lies in an interval and that of `p` moves by at most `s sum_j sum_m m_i m_j |c_m|`.
    pub(super) fn of(
        query: &Query<'_>,
        domain: &[Axis],
        t: usize,
        coefficients: &[f64],
        records: f64,
    ) -> Result<Self, Error> {
        let axes = domain.len();
        let steps = resolution(axes, t);
        let angles = even_angles(steps);
        let half = FRAC_PI_2 / steps as f64;
        let polynomial = |derived: Option<usize>| {
            let tensor = Tensor {
                values: coefficients.to_vec(),
                widths: vec![t; axes],
            };
            let entry = |axis: usize, j: usize, m: usize| {
                let m = m as f64;
                let angle = angles[j];
                if derived == Some(axis) {
                    -m * (m * angle).sin()
                } else {
                    (m * angle).cos()
                }
            };
            tensor.turned(&vec![steps + 1; axes], entry).values
        };
        let values: Vec<f64> = polynomial(None);
        let slopes: Vec<Vec<f64>> = (0..axes).map(|axis| polynomial(Some(axis))).collect();
        let bend = bends(coefficients, t, axes);
        let widths = vec![steps + 1; axes];
        let mut seen = 0.0_f64;
        let mut bound = Some(0.0_f64);
        let mut at = vec![0; axes];
        let mut sides = vec![[0.0; 2]; axes];
        let mut middle = vec![0.0; axes];
        for (flat, value) in values.iter().enumerate() {
            place_of(flat, &widths, |axis, j| at[axis] = j);
            for (axis, j) in at.iter().enumerate() {
                let around =
                    |angle: f64| place(&domain[axis], angle.clamp(0.0, 2.0 * FRAC_PI_2).cos());
                middle[axis] = around(angles[*j]);
                sides[axis] = [around(angles[*j] + half), around(angles[*j] - half)];
            }
            let exact = query.value(&middle);
            if !exact.is_finite() {
                return Err(Error::NotANumber { at: middle });
            }
            let apart = (exact - value).abs();
            seen = seen.max(apart);
            bound = bound.and_then(|bound| {
                let of_query = query.slopes(&sides)?;
                let moved = |axis: usize| {
                    let width = (domain[axis].max - domain[axis].min) / 2.0;
                    let angle = angles[at[axis]];
                    // The derivative of the cosine, minus the sine, over the cell.
                    let ends = [angle - half, angle + half].map(|a| a.clamp(0.0, 2.0 * FRAC_PI_2));
                    let top = if (ends[0]..=ends[1]).contains(&FRAC_PI_2) {
                        1.0
                    } else {
                        ends[0].sin().max(ends[1].sin())
                    };
                    let sines = [ends[0].sin().min(ends[1].sin()).max(0.0), top];
                    let products = of_query[axis]
                        .iter()
                        .flat_map(|slope| sines.map(|sine| -slope * width * sine));
                    let away = products
                        .map(|slope| (slope - slopes[axis][flat]).abs())
                        .fold(0.0, f64::max);
                    half * (away + half * bend[axis])
                };
                Some(bound.max(apart + (0..axes).map(moved).sum::<f64>()))
            });
        }
        let (per_record, is_proved) = bound.map_or((seen, false), |bound| (bound, true));
        Ok(Truncation {
            per_record,
            is_proved,
            records,
            error: per_record * records,
        })
    }
}

/// `sum_j sum_m m_i m_j |c_m|` for each axis `i`.
fn bends(coefficients: &[f64], t: usize, axes: usize) -> Vec<f64> {
    let mut bends = vec![0.0; axes];
    let mut m = vec![0; axes];
    for (flat, c) in coefficients.iter().enumerate() {
        place_of(flat, &vec![t; axes], |axis, at| m[axis] = at);
        let sum: usize = m.iter().sum();
        bends
            .iter_mut()
            .zip(&m)
            .for_each(|(bend, m)| *bend += (m * sum) as f64 * c.abs());
    }
    bends
}
