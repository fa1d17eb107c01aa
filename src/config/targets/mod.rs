//! The functions that a release can publish, a file each: its table as written, the keys of that table, and how it becomes a
//! function.

mod context;
mod lengths;
mod wording;

pub mod bayes;
pub mod density;
pub mod expression;
pub mod logistic;
pub mod machine;
pub mod moments;
pub mod private_bandwidths;
pub mod regression;

pub use context::{FrequencyPlan, Labelled, ReadTarget, TargetContext};
pub use private_bandwidths::several;

use crate::config::text::Key;

/// The keys of every table.
pub const KEYS: &[&[Key]] =
    &[density::KEYS, regression::KEYS, bayes::KEYS, machine::KEYS, logistic::KEYS, expression::KEYS, moments::KEYS];
