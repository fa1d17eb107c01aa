//! From exact to noisy values: nothing else may release an exact value.

pub mod calibrate;
mod calibrated;
pub mod choice;
pub mod concentrated;
pub mod continual;
mod error;
pub mod exact;
pub(crate) mod gaussian;
mod laplace;
pub mod law;
pub mod noise;
mod noisy;
pub mod online;
mod selection;
pub mod price;

pub use calibrated::Mechanism;
pub use error::Error;
pub use law::{NoiseDistribution, Norm};
pub use noisy::{Dequantized, Noisy};
pub use selection::{Candidates, Selection};
