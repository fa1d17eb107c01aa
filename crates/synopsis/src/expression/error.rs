//! Why an expression cannot be a target.

/// Why an expression cannot be a target.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ExpressionError {
    #[error("the expression cannot be read at character {column}: {what}")]
    Syntax { column: usize, what: String },
    #[error("two variables of the expression are called '{0}': rename a column")]
    Twice(String),
    #[error(
        "the domain of '{name}' in the expression runs from {min} to {max}: its max must be above its min"
    )]
    Domain { name: String, min: f64, max: f64 },
    #[error("the expression is 0 for every record of the domain")]
    Zero,
    #[error(
        "the expression cannot be bounded over the domain: {0}; change the expression or the domain, or clip what a record \
         adds"
    )]
    Unbounded(Unbounded),
    #[error("a record cannot be clipped to {sup} a point and {sum} in all: 0 < sup <= sum")]
    Clip { sup: f64, sum: f64 },
}

/// Operation that interval arithmetic could not bound.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unbounded {
    #[error("it divides by a value that can be 0")]
    Division,
    #[error("it takes the logarithm of a value that can be 0 or less")]
    Logarithm,
    #[error(
        "it takes the square root of a value that can be negative (write a square as x^2, not x*x)"
    )]
    Root,
    #[error(
        "it raises a value that can be 0 or less to a power that is not a whole number up to 64"
    )]
    Power,
    #[error("it can be too large or too small for a number")]
    TooLarge,
}
