//! Everything that is published: messages, their evaluation, bands and readings. No file or socket, no clock but in `clock.rs`, and no
//! noise but that of bands, which is drawn from fixed seeds.
//!
//! A synopsis carries noisy values of a function on a lattice, and what they mean. Anyone can evaluate it anywhere, at
//! any order, forever: that costs no privacy.
//!
//! ```
//! use bernstream_synopsis::{Synopsis, SynopsisReading};
//!
//! # fn main() -> Result<(), bernstream_synopsis::SynopsisError> {
//! # use bernstream_synopsis::band::Band;
//! # use bernstream_synopsis::description::*;
//! # let description = serde_json::from_str::<Description>(bernstream_synopsis::EXAMPLE).expect("a description");
//! # let message = Synopsis::new(description, vec![2.0, 4.0, 6.0])?.encode()?.bytes;
//! // `message` is the value of a Kafka message, or a file.
//! let synopsis = Synopsis::decode_message(&message)?;
//! let delay = [75.0];
//! let flights_per_minute = synopsis.evaluate(&delay)?;
//! let noise_at_most = synopsis.half_width(&delay)?;
//! println!("{flights_per_minute:.1} flights a minute, give or take {noise_at_most:.1}");
//! # assert_eq!(flights_per_minute, 4.0);
//!
//! // For many points, and for a density instead of an intensity:
//! let evaluator = synopsis.evaluator(synopsis.description().order)?;
//! let density = evaluator.evaluate(&delay)? / evaluator.total_mass();
//! # assert!((density - 1.0 / 210.0).abs() < 1e-12);
//!
//! // Smoothed by the known distribution of its noise, with the uncertainty that remains:
//! let smooth = synopsis.evaluator(SynopsisReading::Posterior)?;
//! let (mean, deviation) = (smooth.evaluate(&delay)?, smooth.deviation(&delay)?);
//! # assert!(mean.is_finite() && deviation.is_some_and(|deviation| deviation > 0.0));
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod adjacency;
pub mod approximation;
pub mod band;
pub mod bandwidths;
pub mod bernstein;
mod by;
pub mod calibrate;
pub mod cell_error;
pub mod cell_kernel;
pub mod cholesky;
pub mod clock;
mod counts;
pub mod description;
mod domain;
mod eigen;
mod error;
pub mod evaluator;
pub mod expression;
pub mod form_error;
pub mod found_keys;
pub mod fraction;
pub mod grid;
pub mod histogram;
pub mod integral;
pub mod key_parts;
pub mod key_quantiles;
pub mod key_table;
pub mod key_threshold;
pub mod law;
pub mod machine;
mod message;
pub mod moments;
mod newton;
pub mod noise;
pub mod pointwise;
pub mod positions;
mod posterior;
pub mod predict;
pub mod price;
pub mod proper;
pub mod quadratic;
pub mod query;
mod released;
pub mod rough;
pub mod sampler;
pub mod scalar;
pub mod shape;
pub mod shape_error;
pub mod tables;
mod tensor;
pub mod terminal_text;
pub mod times;
pub mod told_caps;
pub mod whitened;
mod wider;

pub use fraction::Fraction;
pub use law::NoiseDistribution;
pub use law::Norm;

pub use self::positions::Positions;
pub use self::positions::RecordedPositions;
pub use self::scalar::IdType;
pub use self::times::TimeFormat;

pub use by::SynopsisReading;
pub use error::SynopsisError;
pub use evaluator::Evaluator;
pub use message::Encoded;
pub use released::Synopsis;

pub use adjacency::Adjacency;
pub use adjacency::Sensitivity;
pub use shape::Basis;
pub use shape::CellBasis;
pub use shape::KernelBasis;
pub use shape::KeyBasis;
pub use shape::KeyColumn;
pub use shape::KeyRange;
pub use shape::KeyStatistic;
pub use shape::MOST_CLASSES;
pub use shape::PointKernel;
pub use shape::Shape;
pub use shape::TableBasis;
pub use shape_error::ShapeError;

/// The description of a synopsis, as JSON: for examples and tests.
pub const EXAMPLE: &str = include_str!("example.json");
