//! Checks of the bandwidths that a caller gives, in units of the cube's width.

use super::quadratic::QuadraticForm;
use super::shape_error::ShapeError;

/// Checks bandwidths of a diagonal kernel, one for each axis.
///
/// # Errors
///
/// If one is not in (0, 1].
pub fn check_bandwidths(bandwidths: &[f64]) -> Result<(), ShapeError> {
    match bandwidths.iter().position(|b| !(*b > 0.0 && *b <= 1.0)) {
        Some(index) => Err(ShapeError::Bandwidth {
            axis: index + 1,
            bandwidth: bandwidths[index],
        }),
        None => Ok(()),
    }
}

/// Checks the covariance matrix of a kernel on 2 or 3 axes, and inverts it.
///
/// # Errors
///
/// If it is not square, not symmetric, not positive definite, or a variance is above 1.
pub fn check_covariance(covariance: &[Vec<f64>]) -> Result<QuadraticForm, ShapeError> {
    let axes = covariance.len();
    if !(2..=3).contains(&axes) || covariance.iter().any(|row| row.len() != axes) {
        return Err(ShapeError::Matrix);
    }
    for (i, row) in covariance.iter().enumerate() {
        for (j, entry) in row.iter().enumerate().take(i) {
            if *entry != covariance[j][i] {
                return Err(ShapeError::Matrix);
            }
        }
    }
    if let Some(i) = (0..axes).find(|i| covariance[*i][*i] > 1.0) {
        return Err(ShapeError::Bandwidth {
            axis: i + 1,
            bandwidth: covariance[i][i].sqrt(),
        });
    }
    let form = QuadraticForm::new(covariance).ok_or(ShapeError::NotPositiveDefinite)?;
    let proper = form
        .inverse()
        .iter()
        .enumerate()
        .all(|(i, row)| row[i] > 0.0 && row[i].is_finite());
    proper
        .then_some(form)
        .ok_or(ShapeError::NotPositiveDefinite)
}
