//! Reasons why no sensitivity can be sampled.

use bernstream_synopsis::sampler::distribution::PriorDistribution;

/// More draws than anybody waits for.
pub const MOST_SAMPLES: u32 = 10_000_000;

/// Reason why no sensitivity can be sampled.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum SamplerError {
    #[error(
        "almost nothing of {law:?} lies within {min} to {max}, and values outside are dropped: choose a distribution of the \
         records inside the domain"
    )]
    Outside {
        law: PriorDistribution,
        min: f64,
        max: f64,
    },
    #[error(
        "most pairs do not differ at all: the range clips every value, or the prior has no spread; noise for such a \
         sensitivity would give no protection"
    )]
    NothingChanges,
    #[error("gamma is {0}: it must lie between 0 and 1")]
    Gamma(f64),
    #[error("{samples} samples cannot be drawn: the number must lie between 1 and {MOST_SAMPLES}")]
    Samples { samples: f64 },
    #[error("{samples} samples are too few for a gamma of {gamma}: they allow {least:.4} or more")]
    TooFew {
        gamma: f64,
        samples: u32,
        least: f64,
    },
    #[error("data sets without records have no neighbours to sample")]
    NoRecords,
    #[error(
        "the function is not finite on the data sets that the prior gives: change the prior, or clip the function"
    )]
    NotFinite,
    #[error("{0:?} is not a valid distribution")]
    Law(PriorDistribution),
    #[error(
        "values cannot be clipped to this range: its ends must differ, and be within 2^62 grid units"
    )]
    Range,
    #[error("not as many pairs were drawn as planned")]
    Incomplete,
    #[error("a sampled sensitivity holds for single records, not for all records of a user")]
    Unit,
    #[error("the sensitivity was sampled for another adjacency")]
    Adjacency,
}
