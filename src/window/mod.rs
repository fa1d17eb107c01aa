//! What belongs where, and what a window remembers.

pub mod grid;
pub mod histogram;

use std::time::Duration;

use crate::clock::Timestamp;
use crate::window::grid::Grid;

/// The public rules that decide a record's fate; no rule looks at any other record.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The windows.
    pub grid: Grid,
    /// Where the grid ends, a window's end.
    pub end: Option<Timestamp>,
    /// How long after its end a window still takes records.
    pub grace: Duration,
    /// How far a record's event time may be ahead of its message timestamp.
    pub ahead: Duration,
    /// The declared group keys; without them a window has one group.
    pub keys: Option<Vec<String>>,
    /// The domain, one axis a value column, 1 to 3.
    pub axes: Vec<Axis>,
    /// How much a user may contribute; without it every record is a unit of its own.
    pub cap: Option<Cap>,
}

/// One axis of the domain, in natural units; mapped to `[0, 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub min: f64,
    pub max: f64,
    pub outside: Outside,
}

/// What happens to a record whose value lies outside the domain (null and NaN are always dropped).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    Clamp,
    Drop,
}

/// At most `records` of a user's records a window and period.
#[derive(Clone, Debug)]
pub struct Cap {
    pub period: Grid,
    pub records: u32,
}
