//! Arithmetic that functions on a lattice share: how many points it may have, how sums become whole grid units, and what a
//! Gaussian adds up to on it.

use std::f64::consts::PI;

use super::error::TargetError;
use bernstream_synopsis::quadratic::QuadraticForm;
use bernstream_synopsis::shape_error::ShapeError;

const HIGHEST_DEGREE: u32 = 5_000;
const MOST_POINTS: usize = 1 << 20;

/// One grid unit is `2^-32` of the most that a record can change a value, or up to twice that part.
pub const UNITS_A_PEAK: u32 = 32;

/// `(k + 1)^l`: the points of a lattice of degree `k`.
///
/// # Errors
///
/// If there are not 1 to 3 axes, the degree is not 1 to 5,000, or there are more than 2^20 points.
pub fn lattice_points(axes: usize, degree: u32) -> Result<usize, TargetError> {
    if !(1..=3).contains(&axes) {
        return Err(ShapeError::Axes(axes).into());
    }
    if !(1..=HIGHEST_DEGREE).contains(&degree) {
        return Err(TargetError::Degree {
            degree,
            most: HIGHEST_DEGREE,
        });
    }
    let points = (u64::from(degree) + 1).pow(axes as u32);
    if points > MOST_POINTS as u64 {
        return Err(TargetError::Points {
            degree,
            axes,
            points,
            most: MOST_POINTS,
        });
    }
    Ok(points as usize)
}

/// `sum / 2^shift`, halves up and not to even: then sums that differ by at most a whole number of units still do.
pub fn round_half_up(sum: i128, shift: u32) -> i128 {
    sum.saturating_add(1 << (shift - 1)) >> shift
}

/// Change by a unit of several records: each record's change follows the one before, so they add up.
///
/// # Errors
///
/// If the sum is larger than a number can say.
pub fn times_contributions(units: u128, contributions: u32) -> Result<u64, TargetError> {
    units
        .checked_mul(u128::from(contributions))
        .and_then(|units| u64::try_from(units).ok())
        .ok_or(TargetError::Contributions { contributions })
}

/// `sum over all whole z of K_H(z / k)`, to a part in 10^12, never less; `None` unless `H` is positive definite.
///
/// The sum is taken here or, by Poisson summation, as `k^l sum_w exp(-2 pi^2 k^2 w' H w)`, whichever has fewer terms.
/// Points with `z' A z > r^2` are left out of `sum exp(-z' A z / 2)`. As `exp(-t / 2) <= exp(-r^2 / 4) exp(-t / 4)` there,
/// and `z' A z >= |z|^2 / trace(A^-1)`, they add up to at most `exp(-r^2 / 4) (1 + 2 sqrt(pi trace(A^-1)))^l`.
pub fn gaussian_sum(covariance: &[Vec<f64>], degree: u32) -> Option<f64> {
    const SQUARED: f64 = 200.0;
    let form = QuadraticForm::new(covariance)?;
    let axes = covariance.len();
    let k = f64::from(degree);
    let density = ((2.0 * PI).powi(axes as i32) * form.determinant()).powf(-0.5);
    let volume = k.powi(axes as i32);
    let matrix = if density > volume {
        scaled(&form.inverse(), k.powi(-2))
    } else {
        scaled(covariance, (2.0 * PI * k).powi(2))
    };
    let factor = density.max(volume);
    let form = QuadraticForm::new(&matrix)?;
    let mut sum = 0.0;
    for run in form.points_within(&vec![0.0; axes], SQUARED, &vec![i32::MAX; axes]) {
        let mut z: Vec<f64> = run.lead.iter().map(|z| f64::from(*z)).collect();
        z.push(0.0);
        for last in run.first..=run.last {
            z[run.lead.len()] = f64::from(last);
            sum += (-0.5 * form.evaluate_form(&z)).exp();
        }
    }
    let inverse = form.inverse();
    let trace: f64 = (0..axes).map(|i| inverse[i][i]).sum();
    let tail = (-SQUARED / 4.0).exp() * (1.0 + 2.0 * (PI * trace).sqrt()).powi(axes as i32);
    Some(factor * (sum + tail) * (1.0 + 1e-12))
}

fn scaled(matrix: &[Vec<f64>], factor: f64) -> Vec<Vec<f64>> {
    let mut scaled = matrix.to_vec();
    for entry in scaled.iter_mut().flatten() {
        *entry *= factor;
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up_so_that_whole_differences_stay_whole() {
        assert_eq!(
            [1, 2, 3, 4, 6, 10].map(|sum| round_half_up(sum, 2)),
            [0, 1, 1, 1, 2, 3]
        );
        for sum in 0..64 {
            assert_eq!(round_half_up(sum + 4, 2) - round_half_up(sum, 2), 1);
        }
        assert_eq!(round_half_up(i128::MAX, 18), i128::MAX >> 18);
    }
}
