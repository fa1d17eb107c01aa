//! The functions that a release can publish, a file each: its table as written, and how the table is read. A new one is a file
//! here, a `mod` line, and a name in [`with_targets`].

mod context;
mod found_counts;
mod lengths;
mod told_caps;
mod wording;

pub mod bayes;
pub mod cells;
pub mod counts;
pub mod density;
pub mod expression;
pub mod logistic;
pub mod machine;
pub mod moments;
pub mod private_bandwidths;
pub mod quantiles;
pub mod regression;

pub use context::{
    DeclaredSearch, DeclaredUnits, FrequencyPlan, Labelled, ReadTarget, TargetContext,
};
pub use private_bandwidths::several_candidates;

/// Passes the names of all targets to the macro `$list`. A name is that of the table in `[release]` and of the module here.
macro_rules! with_targets {
    ($list:ident) => {
        $list! { counts, quantiles, density, cells, regression, bayes, machine, logistic, expression, moments }
    };
}
pub(crate) use with_targets;
