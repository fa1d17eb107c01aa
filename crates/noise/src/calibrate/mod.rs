//! Prices and scales, and the exact arithmetic between them.

pub mod scale;

pub use scale::Scale;
