//! The privacy unit, the definition and the budget.

use std::fmt;
use std::time::Duration;

use crate::settings::block_count::most_blocks;
use bernstream_noise::accountant::policy::without_reserve;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::Fraction;
use bernstream_synopsis::description::{ImpliedPrivacy, PrivacyDefinition};
use bernstream_synopsis::grid::SpanGrid;
use bernstream_synopsis::price::Price;

/// The privacy unit, the definition and the budget.
#[derive(Clone, Debug)]
pub struct PrivacySettings {
    pub unit: PrivacyUnit,
    pub adjacency: Adjacency,
    /// The public number of records of a window, under [`Adjacency::ReplaceOne`].
    pub records_per_window: Option<u64>,
    pub definition: PrivacyDefinition,
    /// The largest privacy loss of a unit in its block.
    pub total: Price,
    /// The (epsilon, delta) from which the total was derived, if the file gives them.
    pub implies: Option<ImpliedPrivacy>,
    /// The part of the total that windows may not spend; nothing spends it.
    pub reserve: Fraction,
    /// The budget that the total is a share of, if it is one.
    pub budget: Option<SharedBudget>,
}

/// A total that the pipelines of an input keep together.
#[derive(Clone, Debug)]
pub struct SharedBudget {
    /// The topic that says who holds which share.
    pub topic: String,
    pub share: Fraction,
    /// The largest privacy loss of a unit in its block, through all pipelines together.
    pub whole: Price,
}

impl PrivacySettings {
    /// The part of the total of a block that regular windows may spend.
    pub fn spendable_limit(&self) -> Price {
        without_reserve(self.total, self.reserve)
    }

    /// Number of values that a unit can change, with `values` for each key: its records can be in different keys.
    pub fn touched_values(&self, values: usize) -> usize {
        values.saturating_mul(self.unit.most_contributions() as usize)
    }

    /// The most windows of `grid` that one period of a user meets; `None` without such periods, or without a grid.
    pub(crate) fn windows_of_period(&self, grid: Option<SpanGrid>) -> Option<u64> {
        match &self.unit {
            PrivacyUnit::User {
                per: Period::Every(per),
                ..
            } => Some(most_blocks(*per, grid?.length())),
            PrivacyUnit::User {
                per: Period::Ever, ..
            }
            | PrivacyUnit::Record => None,
        }
    }

    /// The neighbouring relation.
    pub(crate) fn protected(&self) -> NeighbourRelation {
        NeighbourRelation {
            adjacency: self.adjacency,
            contributions: self.unit.most_contributions(),
        }
    }
}

/// The privacy unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivacyUnit {
    Record,
    /// All records of a user in one period.
    User {
        column: String,
        per: Period,
        /// Absent where no release keeps records: counts by key have caps of their own.
        max_records_per_window: Option<u32>,
    },
}

/// The time during which all records of a user form one privacy unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Each period is a unit with its own total.
    Every(Duration),
    Ever,
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Every(length) => {
                f.write_str(&bernstream_synopsis::clock::format_duration(*length))
            }
            Period::Ever => f.write_str("ever"),
        }
    }
}

impl PrivacyUnit {
    /// The most records of a unit that count in a window, over all keys; 1 where releases have caps of their own.
    pub fn most_contributions(&self) -> u32 {
        match self {
            PrivacyUnit::Record => 1,
            PrivacyUnit::User {
                max_records_per_window,
                ..
            } => max_records_per_window.unwrap_or(1),
        }
    }
}

/// The neighbouring relation: adjacency, and the most records of a unit that count in a window.
#[derive(Clone, Copy, Debug)]
pub struct NeighbourRelation {
    pub adjacency: Adjacency,
    pub contributions: u32,
}
