//! The functions that can be released: their exact values, and how much one record can change them.
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

pub mod bayes;
pub mod blackbox;
pub mod cells;
pub mod covariance;
pub mod density;
pub mod expression;
pub mod found_key_counts;
mod kernel;
pub mod key_counts;
pub mod logistic;
pub mod machine;
pub mod moments;
#[cfg(test)]
mod opened;
pub mod regression;
pub mod sampled;
pub mod sampler;
pub mod tables;
pub mod user_weighted;
pub mod whitened;
