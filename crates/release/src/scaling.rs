//! Scale from grid units to natural ones.

use super::target::Target;

/// The scale of the values of a function: `offset + unit * value` is what a value stands for, in natural units. Public, as the function is: both numbers
/// follow from the target and the settings, never from records.
///
/// ```
/// # fn scaling(target: &dyn bernstream_release::Target) {
/// let scaling = bernstream_release::ValueScaling::of_target(target);
/// assert_eq!(scaling.offset(), 0.0);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueScaling {
    unit: f64,
    offset: f64,
}

impl ValueScaling {
    /// The unit of the target itself, without an offset.
    pub fn of_target(target: &dyn Target) -> Self {
        ValueScaling::new(target.unit(), 0.0)
    }

    pub fn new(unit: f64, offset: f64) -> Self {
        ValueScaling { unit, offset }
    }

    /// Natural value of one grid unit.
    pub fn unit(self) -> f64 {
        self.unit
    }

    /// The natural value of zero grid units.
    pub fn offset(self) -> f64 {
        self.offset
    }
}
