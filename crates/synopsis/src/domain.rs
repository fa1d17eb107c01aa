//! From a point of the domain to the unit cube.

use super::description::Axis;
use super::error::Error;

/// Maps a point of the domain to the unit cube.
pub(super) fn unit_point(axes: &[Axis], point: &[f64]) -> Result<Vec<f64>, Error> {
    if point.len() != axes.len() {
        return Err(Error::Dimensions {
            given: point.len(),
            expected: axes.len(),
        });
    }
    axes.iter()
        .zip(point)
        .map(|(axis, value)| unit_coordinate(axis, *value))
        .collect()
}

fn unit_coordinate(axis: &Axis, value: f64) -> Result<f64, Error> {
    if !(axis.min..=axis.max).contains(&value) {
        return Err(Error::OutsideDomain {
            column: axis.column.clone(),
            value,
            min: axis.min,
            max: axis.max,
        });
    }
    Ok(((value - axis.min) / (axis.max - axis.min)).clamp(0.0, 1.0))
}
