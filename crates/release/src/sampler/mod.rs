//! Reasons why a sensitivity cannot be sampled.

pub mod error;

pub use self::error::SamplerError;
