//! What is published. Usable without the rest of the crate (`default-features = false`).
//!
//! A synopsis carries noisy values of a function on a lattice, and what they mean. Anyone can evaluate it anywhere, at
//! any order, forever: that costs no privacy.
//!
//! ```
//! use bernstream::synopsis::{By, Synopsis};
//!
//! # fn main() -> Result<(), bernstream::synopsis::Error> {
//! # use bernstream::synopsis::{band::Band, description::*};
//! # let description = serde_json::from_str::<Description>(include_str!("example.json")).expect("a description");
//! # let message = Synopsis::new(description, vec![2.0, 4.0, 6.0])?.encode()?.bytes;
//! // `message` is the value of a Kafka message, or a file.
//! let synopsis = Synopsis::open(&message)?;
//! let delay = [75.0];
//! let flights_per_minute = synopsis.evaluate(&delay)?;
//! let noise_at_most = synopsis.half_width(&delay)?;
//! println!("{flights_per_minute:.1} flights a minute, give or take {noise_at_most:.1}");
//! # assert_eq!(flights_per_minute, 4.0);
//!
//! // For many points, and for a density instead of an intensity:
//! let evaluator = synopsis.evaluator(synopsis.description().order)?;
//! let density = evaluator.evaluate(&delay)? / evaluator.mass();
//! # assert!((density - 1.0 / 210.0).abs() < 1e-12);
//!
//! // Smoothed by the known distribution of its noise, with the uncertainty that remains:
//! let smooth = synopsis.evaluator(By::Posterior)?;
//! let (mean, deviation) = (smooth.evaluate(&delay)?, smooth.deviation(&delay)?);
//! # assert!(mean.is_finite() && deviation.is_some_and(|deviation| deviation > 0.0));
//! # Ok(())
//! # }
//! ```

pub mod approximation;
pub mod band;
pub mod cell_error;
pub mod bernstein;
mod by;
mod counts;
pub mod description;
mod domain;
mod eigen;
mod error;
pub mod evaluator;
pub mod form_error;
pub mod integral;
mod message;
mod newton;
pub(crate) mod noise;
pub mod pointwise;
mod posterior;
pub mod proper;
pub mod predict;
pub mod query;
mod released;
pub mod rough;
pub mod tables;
mod wider;

pub use by::By;
pub use error::Error;
pub use evaluator::Evaluator;
pub use message::Encoded;
pub use released::Synopsis;
