//! Points of a kernel, at which a function is whitened.

pub mod points;

pub use points::AxisCounts;
pub use points::Placement;
pub use points::Points;
