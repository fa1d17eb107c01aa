//! The functions that can be released: their exact values, and how much one record can change them.

mod adjacency;
pub mod bayes;
pub mod blackbox;
pub(crate) mod builtin;
pub mod cells;
pub(crate) mod cholesky;
pub mod covariance;
pub mod density;
mod error;
pub mod expression;
mod kernel;
mod lattice;
pub mod logistic;
pub mod machine;
pub mod marginals;
pub mod moments;
mod quadratic;
pub mod regression;
pub mod sampled;
pub mod sampler;
mod scaling;
mod shape;
pub mod tables;
mod target;
pub mod whitened;

pub use adjacency::{Adjacency, Sensitivity};
pub use error::Error;
pub use scaling::ValueScaling;
pub use shape::{Basis, CellBasis, KernelBasis, PointKernel, Shape, TableBasis};
pub use target::{Cost, Exact, Target};
