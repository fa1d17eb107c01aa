//! Prices and scales, and the exact arithmetic between them.

mod scale;

pub use scale::Scale;
