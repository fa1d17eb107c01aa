//! Expressions over columns: parsed, bounded, evaluated.

pub mod error;
pub mod interval;
pub mod parse;
mod pointwise;

pub use self::error::ExpressionError;
pub use self::error::Unbounded;
pub use self::pointwise::PointwiseExpression;
