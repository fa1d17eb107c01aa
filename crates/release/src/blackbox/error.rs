//! Reasons why a caller's function cannot be a target.

/// Reason why a caller's function cannot be a target.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum BlackBoxError {
    #[error("a window must keep at least one record for a function of its records")]
    NoRecords,
    #[error(
        "values cannot be clipped to [{lo}, {hi}]: the first must be below the second, both finite"
    )]
    Range { lo: f64, hi: f64 },
    #[error(
        "a declared change of {sup} a point and {sum} in all, with an evaluation error of {error}, is invalid: changes must be \
         above 0, the error not negative, and all finite"
    )]
    Change { sup: f64, sum: f64, error: f64 },
    #[error(
        "a change of {sup} in values from {lo} to {hi} is finer than the grid: narrow the range"
    )]
    Fine { sup: f64, lo: f64, hi: f64 },
    #[error(
        "how much an added or removed record changes the function is not declared: declare it, or use replace_one"
    )]
    NotDeclared,
    #[error(
        "a sampled sensitivity holds for units of one record: make the unit a record, or declare a sensitivity"
    )]
    SampledUnit,
}
