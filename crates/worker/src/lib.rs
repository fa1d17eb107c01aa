//! The worker: it reads records, closes windows, pays and publishes ([`pipeline`] shows the walk, a step a line); absorbers read
//! partitions for it ([`scale`]).
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

pub mod metrics;
pub mod pipeline;
pub mod scale;
pub mod telemetry;
