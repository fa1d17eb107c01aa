//! Reasons why there can be no noise.

use rand::rngs::SysError;

use bernstream_synopsis::ShapeError;
use bernstream_synopsis::calibrate::amount::{Delta, Epsilon, Rho};

/// Reasons why there can be no noise.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    #[error("the operating system gives no randomness, so nothing can be released: {0}")]
    Entropy(#[from] SysError),
    #[error("a price of 0 buys nothing: give the release an epsilon above 0")]
    NoPrice,
    #[error("a sensitivity of 0 cannot be right: every record has some effect")]
    NoSensitivity,
    #[error(
        "a price of {price} is so low that the noise would exceed 2^56 grid units, millions of times what a record adds: \
         raise epsilon or lower the number of records a unit may contribute"
    )]
    TooMuchNoise { price: Epsilon },
    #[error(
        "a rho of {rho} is so low that the noise would exceed 2^56 grid units, millions of times what a record adds: raise \
         rho or lower the number of records a unit may contribute"
    )]
    TooMuchNoiseForRho { rho: Rho },
    #[error("Gaussian noise needs a delta above 0 and below 1, such as 0.000001, not {delta}")]
    NoPromise { delta: Delta },
    #[error(
        "finding keys that nobody listed needs a delta below 1, and of each of the {max_keys} keys of a unit at least 10^-18, such \
         as 0.000000001 in all, not {delta}"
    )]
    NoDeltaForKeys { delta: Delta, max_keys: u32 },
    #[error(
        "a delta of {delta} is used up by the private test of whether there are too many different keys, which takes {test} of it: give more"
    )]
    NoDeltaBesideTest { delta: Delta, test: Delta },
    #[error(
        "a limit of {limit} different keys is too low for the private test of whether there are too many: give at least {least}, or \
         a higher epsilon"
    )]
    LimitTooLow { limit: u64, least: u64 },
    #[error(
        "an error of {error} at each point is too large beside a change of {change}, both in grid units: take a finer grid, \
         such as 2^24 units per change"
    )]
    NoSlack { change: u64, error: f64 },
    #[error(
        "a point has {axes} coordinates, each from 0 to 1, and the function has one value there"
    )]
    Point { axes: usize },
    #[error(transparent)]
    Kernel(#[from] ShapeError),
}
