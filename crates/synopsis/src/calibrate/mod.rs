//! Amounts of privacy.

pub mod amount;

pub use amount::Amount;
pub use amount::Delta;
pub use amount::Epsilon;
pub use amount::Rho;
