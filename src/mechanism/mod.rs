//! From exact to noisy: the only door.

pub mod calibrate;
mod calibrated;
pub mod choice;
pub mod concentrated;
pub mod continual;
mod error;
pub(crate) mod gaussian;
mod laplace;
pub mod noise;
pub mod online;
mod selection;
pub mod price;

pub use calibrated::{Mechanism, Noisy};
pub use error::Error;
pub use noise::{NoiseDistribution, Norm};
pub use selection::{Candidates, Selection};
