//! Kernels and losses of kernel machines.

pub mod kernel;
pub mod loss;

pub use kernel::Kernel;
pub use loss::Loss;
