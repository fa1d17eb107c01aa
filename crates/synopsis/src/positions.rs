//! Positions up to which an input was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// One offset for each partition: the next offset to read, or the end offset of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(pub BTreeMap<i32, i64>);

/// Positions up to which an input was read for windows that have closed.
#[derive(Clone, Debug, Default)]
pub struct RecordedPositions {
    /// The end offsets of the newest one.
    pub ends: Positions,
    /// The cutoff and the end offsets of one that had closed well before the first record that is needed now could be sent.
    pub past: Option<(Timestamp, Positions)>,
}
