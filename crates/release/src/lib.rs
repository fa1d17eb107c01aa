//! From records to exact sums: batches of records, windows that hold them, and what every function is.
//!
//! A record is mapped into the public domain, and capped before it is summed; sums are integers. What a function makes of
//! them is [`bernstream_noise::Exact`]; what was drawn around that is sealed here ([`Sealed`]), and only then leaves.
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

pub mod blackbox;
pub mod builtin;
pub mod choice;
mod dequantized;
pub mod error;
pub mod lattice;
pub mod marginals;
pub mod sampler;
mod scaling;
mod sealed;
pub mod source;
pub mod target;
pub mod window;

pub use dequantized::Dequantized;
pub use error::TargetError;
pub use scaling::ValueScaling;
pub use sealed::Sealed;
pub use target::EvaluationCost;
pub use target::Target;
