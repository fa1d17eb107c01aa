//! Every sentence about the guarantee: shown by `check` and `explain`, and part of every synopsis.

mod definition;
mod exclusions;
pub mod notes;
mod price;
mod promise;
mod windows;

pub use definition::implied_sentence;
pub use exclusions::{ALL as NOT_PROTECTED, Exclusion, not_protected, other_pipelines};
pub use notes::surprising_settings;
pub use price::policy_sentence;
pub use promise::promise_lines;
