//! The size of the message of a synopsis.

use bernstream_synopsis::{Basis, Shape};

/// Columns that a schema has place for, and what each further one takes there and in the description.
const COLUMNS_OF_A_SCHEMA: usize = 5;
const BYTES_A_COLUMN: usize = 200;
/// Bytes of a bin of units in the description, the digits of its count among them.
const BYTES_A_BIN: usize = 60;

/// The most values of a synopsis that is no longer than `bytes`.
pub fn most_values(bytes: usize) -> usize {
    bytes.saturating_sub(message_bytes(0)) / 8
}

/// The approximate size of a synopsis of this shape, in bytes, with keys of so many columns.
pub fn synopsis_bytes(shape: &Shape, key_columns: usize) -> usize {
    let listed = match &shape.basis {
        // The description lists the points, with at most 22 characters a coordinate.
        Basis::Kernel(basis) => 24 * shape.dimensions * basis.points.len(),
        // The column of the names: their text, and where each ends; and of each row its window and the number of the ledger's row.
        Basis::Keys(basis) => {
            let names: usize = basis.keys.iter().map(|key| key.len() + 28).sum();
            let parts = match key_columns {
                0 | 1 => 0,
                // They have columns of their own, and are no longer than the names.
                columns => names + 4 * columns * basis.keys.len(),
            };
            let columns = basis.columns.len().saturating_sub(COLUMNS_OF_A_SCHEMA);
            let bins = basis.units.as_ref().map_or(0, |told| told.bins.len());
            names + parts + BYTES_A_COLUMN * columns + BYTES_A_BIN * bins
        }
        _ => 0,
    };
    message_bytes(shape.value_count()) + listed
}

/// The approximate size with `lattice_points`: eight bytes a coefficient, plus schema and metadata.
fn message_bytes(lattice_points: usize) -> usize {
    8 * lattice_points + 6144
}
