//! What is promised to whom.

use std::fmt;
use std::time::Duration;

use crate::accountant::policy::{Fraction, without_reserve};
use crate::mechanism::price::Price;
use crate::synopsis::description::{Definition, Implied};
use crate::targets::Adjacency;

/// What is promised to whom.
#[derive(Clone, Debug)]
pub struct Privacy {
    pub unit: Unit,
    pub adjacency: Adjacency,
    /// The public number of records of a window, under [`Adjacency::ReplaceOne`].
    pub records_per_window: Option<u64>,
    pub definition: Definition,
    /// The most that a unit may lose in its block.
    pub total: Price,
    /// What the total was worked out from, where that is what is promised.
    pub implies: Option<Implied>,
    /// What of it is kept back, for corrections.
    pub reserve: Fraction,
}

impl Privacy {
    /// What ordinary windows may spend of a block.
    pub fn limit(&self) -> Price {
        without_reserve(self.total, self.reserve)
    }

    /// How many of `values` of each key a unit can change: one of several records can be in as many keys.
    pub fn touched(&self, values: usize) -> usize {
        values.saturating_mul(self.unit.contributions() as usize)
    }
}

/// Who is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    Record,
    /// All records of a user in one period.
    User {
        column: String,
        per: Period,
        max_records_per_window: u32,
    },
}

/// How long a user is one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Then again, with a total of its own.
    Every(Duration),
    Ever,
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Every(length) => f.write_str(&crate::clock::show(*length)),
            Period::Ever => f.write_str("ever"),
        }
    }
}

impl Unit {
    /// How many records of one unit count in a window, over all keys.
    pub fn contributions(&self) -> u32 {
        match self {
            Unit::Record => 1,
            Unit::User { max_records_per_window, .. } => *max_records_per_window,
        }
    }
}

/// Who is protected, and how many records count.
#[derive(Clone, Copy, Debug)]
pub struct Protected {
    pub adjacency: Adjacency,
    pub contributions: u32,
}
