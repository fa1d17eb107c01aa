//! From grid units to natural ones.

use super::target::Target;

/// What the values of a function stand for: `offset + unit * value`, in natural units. Public, as the function is: outside of this
/// crate there are those of targets and of settings only, so no bare number can be brought into a synopsis as an offset.
///
/// ```
/// # fn scaling(target: &dyn bernstream::targets::Target) {
/// let scaling = bernstream::targets::ValueScaling::of(target);
/// assert_eq!(scaling.offset(), 0.0);
/// # }
/// ```
///
/// ```compile_fail,E0624
/// let exact = 17.0;
/// let scaling = bernstream::targets::ValueScaling::new(1.0, exact);
/// ```
///
/// ```compile_fail,E0451
/// let exact = 17.0;
/// let scaling = bernstream::targets::ValueScaling { unit: 1.0, offset: exact };
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueScaling {
    unit: f64,
    offset: f64,
}

impl ValueScaling {
    /// The unit of the target itself, without an offset.
    pub fn of(target: &dyn Target) -> Self {
        ValueScaling::new(target.unit(), 0.0)
    }

    pub(crate) fn new(unit: f64, offset: f64) -> Self {
        ValueScaling { unit, offset }
    }

    /// What one grid unit stands for.
    pub fn unit(self) -> f64 {
        self.unit
    }

    /// The natural value of zero grid units.
    pub fn offset(self) -> f64 {
        self.offset
    }
}
