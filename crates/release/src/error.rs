//! Reasons why a target cannot be built or bounded.

use super::blackbox::error::BlackBoxError;
use super::sampler::error::SamplerError;
use bernstream_synopsis::expression::error::ExpressionError;
use bernstream_synopsis::histogram::MOST_CELLS;
use bernstream_synopsis::shape_error::ShapeError;

/// Reason why a target cannot be built or bounded. Axes count from 1.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TargetError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(
        "the smallest standard deviation of axis {axis} is {deviation} of its domain's width: it must be at least \
         {least} and at most 1; change the deviation or the domain"
    )]
    Deviation {
        axis: usize,
        deviation: f64,
        least: f64,
    },
    #[error("degree {degree} is out of range: it must lie between 1 and {most}")]
    Degree { degree: u32, most: u32 },
    #[error(
        "degree {degree} on {axes} axes makes {points} lattice points, more than {most}: lower the degree"
    )]
    Points {
        degree: u32,
        axes: usize,
        points: u64,
        most: usize,
    },
    #[error(
        "bandwidths this small need a histogram of {cells} cells for every window and key, more than {MOST_CELLS}: \
         widen the bandwidths or narrow the domain"
    )]
    Cells { cells: u128 },
    #[error(
        "{frequencies} frequencies on {axes} axes are not from 1 to {most}: more frequencies mean more noise on each"
    )]
    Frequencies {
        frequencies: u32,
        axes: usize,
        most: u32,
    },
    #[error(
        "one window and key would take {work} products at its cutoff, more than {most}: lower the degree, or choose a \
         matrix whose axes are less correlated"
    )]
    Work { work: u64, most: u64 },
    #[error(
        "the gap is {0} of its domain's width: it must be at least 2^-31 and at most 1; change the gap or the domain"
    )]
    Gap(f64),
    #[error("a regression keeps at least 2 records, not {0}")]
    FewRecords(u32),
    #[error(
        "{contributions} records a unit can change the release by more than 2^64 grid units, more noise than can be \
         drawn: lower the number of records a unit may contribute"
    )]
    Contributions { contributions: u32 },
    #[error(
        "users and sums of users have no sensitivity under replace_one, which hides values and not presence: use add_remove"
    )]
    NotReplaceable,
    #[error("the papers give no sensitivity for this function: leave out scale = \"paper\"")]
    PapersGiveNone,
    #[error(
        "the paper's sensitivity of {what} is false: neighbours were found that differ by more, so noise of that scale would \
         not be private; leave out scale = \"paper\""
    )]
    PaperIsWrong { what: &'static str },
    #[error("C is {c}: it must lie between 0.000001 and 1000000")]
    Weight { c: f64 },
    #[error(
        "{points} kernel points on a histogram of {cells} cells make a table of more than {most} numbers: take fewer \
         points, or widen the bandwidths"
    )]
    Table {
        points: usize,
        cells: usize,
        most: usize,
    },
    #[error("a window must keep at least one record: raise the number of records")]
    NoRecords,
    #[error(
        "the kernel matrix of {records} records is too large, at most {most} fit: give a number of landmarks, or keep \
         fewer records"
    )]
    NeedsLandmarks { records: u32, most: u32 },
    #[error(
        "{records} records of {width} features each are more than {most} numbers for every window and key: keep fewer \
         records, or take fewer landmarks"
    )]
    Features {
        records: u32,
        width: usize,
        most: u64,
    },
    #[error(
        "the squared loss has no proved sensitivity under add_remove: use the huber loss, or the adjacency replace_one"
    )]
    SquaredLoss,
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error(transparent)]
    BlackBox(#[from] BlackBoxError),
    #[error(transparent)]
    Sampler(#[from] SamplerError),
}
