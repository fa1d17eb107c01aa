//! Prices and scales, and the exact arithmetic between them.

pub(super) mod amount;
mod scale;

pub use amount::{Amount, Delta, Epsilon, Rho};
pub use scale::Scale;
