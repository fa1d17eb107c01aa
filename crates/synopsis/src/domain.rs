//! From a point of the domain to the unit cube.

use super::description::AxisDescription;
use super::error::SynopsisError;

/// Maps a point of the domain to the unit cube.
pub(super) fn unit_point(
    axes: &[AxisDescription],
    point: &[f64],
) -> Result<Vec<f64>, SynopsisError> {
    if point.len() != axes.len() {
        return Err(SynopsisError::Dimensions {
            given: point.len(),
            expected: axes.len(),
        });
    }
    axes.iter()
        .zip(point)
        .map(|(axis, value)| unit_coordinate(axis, *value))
        .collect()
}

fn unit_coordinate(axis: &AxisDescription, value: f64) -> Result<f64, SynopsisError> {
    if !(axis.min..=axis.max).contains(&value) {
        return Err(SynopsisError::OutsideDomain {
            column: axis.column.clone(),
            value,
            min: axis.min,
            max: axis.max,
        });
    }
    Ok(((value - axis.min) / (axis.max - axis.min)).clamp(0.0, 1.0))
}
