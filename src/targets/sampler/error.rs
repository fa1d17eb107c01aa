//! Why no sensitivity can be sampled.

use super::distribution::PriorDistribution;

/// More draws than anybody waits for.
pub(super) const MOST_SAMPLES: u32 = 10_000_000;

/// Why no sensitivity can be sampled.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Error {
    #[error(
        "of {law:?} next to nothing lies within {min} to {max}, and what lies outside is dropped: choose a law of the records \
         that count"
    )]
    Outside { law: PriorDistribution, min: f64, max: f64 },
    #[error(
        "most pairs do not differ at all: the range clips every value away, or the prior has no spread; noise for that would \
         protect nobody"
    )]
    NothingChanges,
    #[error("gamma is {0}: it must lie between 0 and 1")]
    Gamma(f64),
    #[error("{samples} samples cannot be drawn: between 1 and {MOST_SAMPLES} can")]
    Samples { samples: f64 },
    #[error("{samples} samples are too few for a gamma of {gamma}: they allow {least:.4} or more")]
    TooFew { gamma: f64, samples: u32, least: f64 },
    #[error("data sets without records have no neighbours to sample")]
    NoRecords,
    #[error("the function is not finite on the data sets that the prior gives: change the prior, or clip the function")]
    NotFinite,
    #[error("nothing can be drawn from {0:?}")]
    Law(PriorDistribution),
    #[error("values cannot be clipped to this range: its ends must differ, and be within 2^62 grid units")]
    Range,
    #[error("not as many pairs were drawn as planned")]
    Incomplete,
    #[error("a sampled sensitivity holds for single records, not for all records of a user")]
    Unit,
    #[error("the sensitivity was sampled for another adjacency")]
    Adjacency,
}
