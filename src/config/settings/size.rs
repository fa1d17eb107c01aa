//! How long the message of a synopsis is.

use crate::targets::{Basis, Shape};

/// The most values of a synopsis that is no longer than `bytes`.
pub fn most_values(bytes: usize) -> usize {
    bytes.saturating_sub(message_bytes(0)) / 8
}

/// About how long a synopsis of this shape is.
pub fn synopsis_bytes(shape: &Shape) -> usize {
    let points = match &shape.basis {
        // Its points stand in the description, at most 22 characters a coordinate.
        Basis::Kernel(basis) => 24 * shape.dimensions * basis.points.len(),
        _ => 0,
    };
    message_bytes(shape.values()) + points
}

/// About how long a synopsis of `lattice_points` is: eight bytes a coefficient, and its schema and metadata.
fn message_bytes(lattice_points: usize) -> usize {
    8 * lattice_points + 4096
}
