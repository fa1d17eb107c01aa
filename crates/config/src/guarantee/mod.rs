//! Every sentence about the guarantee: shown by `check` and `explain`, and part of every synopsis.

mod definition;
mod exclusions;
pub mod notes;
mod price;
mod promise;
mod windows;

pub use definition::implied;
pub use exclusions::{ALL as NOT_PROTECTED, Exclusion, not_protected, others};
pub use notes::notes;
pub use price::price_policy;
pub use promise::promise;
