//! From exact to noisy values: nothing else may release an exact value. And the accountant, which says what that costs.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod accountant;
pub mod calibrate;
mod calibrated;
mod candidate_counts;
pub mod concentrated;
pub mod continual;
mod error;
mod exact;
pub mod gaussian;
pub mod key_search;
pub mod key_selection;
mod laplace;
pub mod noise;
mod noisy;
pub mod online;
pub mod order;
mod selection;

pub use calibrated::Mechanism;
pub use candidate_counts::CandidateCounts;
pub use error::NoiseError;
pub use exact::Exact;

pub use noisy::Noisy;
pub use selection::{FunctionCandidates, PermuteAndFlip};
