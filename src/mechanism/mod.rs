//! From exact to noisy values: nothing else may release an exact value.

pub mod calibrate;
mod calibrated;
pub mod choice;
pub mod concentrated;
pub mod continual;
mod error;
pub mod exact;
pub mod fraction;
pub(crate) mod gaussian;
mod laplace;
pub mod law;
pub mod noise;
pub(crate) mod noisy;
pub mod online;
pub mod order;
mod selection;
pub mod price;

pub use calibrated::Mechanism;
pub use error::Error;
pub use exact::Exact;
pub use fraction::Fraction;
pub use law::{NoiseDistribution, Norm};
pub use noisy::Noisy;
pub use selection::{Candidates, Selection};
