//! Errors of a synopsis, or of a query of it.

use arrow_schema::ArrowError;

use super::bernstein::MAX_ORDER;
use super::by::SynopsisReading;
use crate::expression::ExpressionError;
use crate::terminal_text::escape_unprintable;

/// Error of a synopsis, or of a query of it.
#[derive(Debug, thiserror::Error)]
pub enum SynopsisError {
    #[error("not a synopsis: {0}")]
    Damaged(String),
    #[error("cannot encode the synopsis")]
    Encode(#[source] ArrowError),
    #[error("a point of this synopsis has {expected} coordinates, not {given}")]
    Dimensions { given: usize, expected: usize },
    #[error("{column} = {value} is outside the domain {min} to {max}")]
    OutsideDomain {
        column: String,
        value: f64,
        min: f64,
        max: f64,
    },
    #[error(
        "it holds moments of the records, not a function of a point: query it with `bernstream query`"
    )]
    NoFunction,
    #[error(
        "it holds a function of a point, not moments of the records: use `bernstream evaluate`"
    )]
    NoMoments,
    #[error(
        "it holds no tables of cells, which only [release.cells] makes, whatever the noise of another release is: densities, shares and quantiles \
         at other bandwidths are read from those"
    )]
    NoTables,
    #[error(
        "it holds tables of cells: ask for the count of a range with `range` instead of an integral"
    )]
    AskTables,
    #[error("it holds counts by key, not a function of a point: read them with `bernstream query`")]
    AskKeys,
    #[error("it holds no counts by key, which only [release.counts] makes")]
    NoKeys,
    #[error("there is no key '{}' in this table", escape_unprintable(.key))]
    NoSuchKey { key: String },
    #[error("there is no key '{}' in this table: {absence}", escape_unprintable(.key))]
    AbsentKey { key: String, absence: String },
    #[error(
        "nobody listed its keys: those that were not found are missing in it, and sums and shares would be without them"
    )]
    KeysMissing,
    #[error(
        "users and quantiles do not add up: a user may be in several keys, and how many users are in one or the other is not published"
    )]
    NothingAddsUp,
    #[error("it has no shares: only records have, and sums of values none of which is below 0")]
    NoShares,
    #[error("'{column}' is no column of several that its keys have parts of{}", known_columns(.known))]
    NoSuchKeyColumn { column: String, known: String },
    #[error("its label is not a number: ask for the probability of a class")]
    NoNumber,
    #[error(
        "its label has no classes: naive Bayes and ratios of densities need `above` or `values`"
    )]
    NoClasses,
    #[error("it has no label to fit: its function is the density of the records")]
    NoLabel,
    #[error("a ratio of densities is one of two classes, not of a class and itself")]
    OneClass,
    #[error("there is no table {table}: it holds {tables}, and probabilities only with a label")]
    NoSuchTable { table: usize, tables: usize },
    #[error("a range needs two ends on each axis, the lower one first")]
    EmptyRange,
    #[error("a quantile is that of a part from 0 to 1, not {part}")]
    Part { part: f64 },
    #[error(
        "the question has no finite answer at {at:?}: it must be a number everywhere in the domain"
    )]
    NotANumber { at: Vec<f64> },
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error("order {order} is not from 1 to {MAX_ORDER}")]
    Order { order: u32 },
    #[error("the values of this synopsis cannot be read by {by}")]
    Reading { by: SynopsisReading },
    #[error(
        "the released mass is {mass}, not positive: noise outweighs the records, and there is no density to show"
    )]
    NoMass { mass: f64 },
    #[error(
        "only counts of cells, with a bandwidth for each axis, can be read with other bandwidths"
    )]
    NoOtherBandwidths,
    #[error(
        "other bandwidths are one for each axis, none smaller than the released {least:?}, and at most as wide as the domain"
    )]
    Bandwidths { least: Vec<f64> },
    #[error("a distribution function needs one axis, not {axes}")]
    NotOneAxis { axes: usize },
}

fn known_columns(known: &str) -> String {
    match known {
        "" => String::new(),
        known => format!(": {known}"),
    }
}
