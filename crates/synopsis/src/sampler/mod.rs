//! Public priors that a sensitivity was sampled from.

pub mod distribution;

pub use self::distribution::PriorDistribution;
