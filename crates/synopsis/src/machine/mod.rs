//! Kernels and losses of kernel machines.

pub mod kernel;
pub mod loss;

pub use kernel::CubeKernel;
pub use loss::Loss;
