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
    let to_unit = |(axis, value): (&Axis, &f64)| match (axis.min..=axis.max).contains(value) {
        true => Ok(((value - axis.min) / (axis.max - axis.min)).clamp(0.0, 1.0)),
        false => Err(Error::OutsideDomain {
            column: axis.column.clone(),
            value: *value,
            min: axis.min,
            max: axis.max,
        }),
    };
    axes.iter().zip(point).map(to_unit).collect()
}
