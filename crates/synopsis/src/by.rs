//! The ways to read released values as a function.

use std::fmt;

/// Reading by which released values become a function. A number is the order of the Bernstein operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynopsisReading {
    /// The iterated Bernstein operator of an order from 1 to [`MAX_ORDER`](super::bernstein::MAX_ORDER); what has no lattice is read as it was published, at
    /// any order.
    Bernstein(u32),
    /// The value at the nearest lattice point: the baseline of `[AR17]`.
    Nearest,
    /// Interpolation by the kernel that the description names.
    Kernel,
    /// The mean of a Gaussian process, given the noise that is known to be on the values; of cells, the counts are smoothed so, and
    /// read as they were published.
    Posterior,
    /// [`SynopsisReading::Posterior`] of cells, with no count below 0.
    Nonnegative,
}

impl From<u32> for SynopsisReading {
    fn from(order: u32) -> Self {
        SynopsisReading::Bernstein(order)
    }
}

impl fmt::Display for SynopsisReading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SynopsisReading::Bernstein(order) => {
                write!(f, "the Bernstein operator of order {order}")
            }
            SynopsisReading::Nearest => f.write_str("the nearest lattice point"),
            SynopsisReading::Kernel => f.write_str("kernel interpolation"),
            SynopsisReading::Posterior => f.write_str("posterior smoothing"),
            SynopsisReading::Nonnegative => {
                f.write_str("posterior smoothing without negative counts")
            }
        }
    }
}
