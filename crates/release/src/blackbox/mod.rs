//! Reasons why a function of the caller is refused.

pub mod error;

pub use self::error::BlackBoxError;
