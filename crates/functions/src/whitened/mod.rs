//! Functions of a kernel's space by whitened coordinates on public points: what the kernel ball and the Gaussian process
//! add noise to (`docs/proofs/kernel-points.md`).
//!
//! `P = (p_1, ..., p_d)` are public points, chosen by the kernel alone ([`points`](bernstream_synopsis::whitened::points)); `K = L L'` is the kernel matrix
//! between them. The exact values of a target are `c = L^-1 (f(p_1), ..., f(p_d))`. For every `f` in the space of the kernel
//!
//! ```text
//! ||c||_2 <= ||f||_H
//! ```
//!
//! as `c` are the coordinates of the projection of `f` on the span of `K(p_i, .)` in an orthonormal basis, Newton's. So
//! noise for the 2-norm depends on how smooth the kernel is, and not on how many points a lattice has. Published is
//! `a = L'^-1 c`, noisy: then `sum_i a_i K(y, p_i)` is the projection at every `y`, and it is off by at most
//! `||f||_H P_d(y)`, `P_d(y)^2 = K(y, y) - ||L^-1 k_P(y)||^2` the square of the power function.
//!
//! # What the sensitivities rest on
//!
//! Not on the inequality above: `L^-1` amplifies every rounding of the kernel out of the ball. The matrix in use is `M`, the
//! floats that were computed for `L^-1`. Densities tabulate `M k_P` as whole numbers, and their sensitivities are read off
//! these ([`density`]). Machines are computed in floats: there [`stretch`](bernstream_synopsis::whitened::Points::stretch_bound) bounds what `M` makes of a function of
//! norm 1, and [`spread`](bernstream_synopsis::whitened::Points::whitening_norm) what it makes of errors.

pub mod caller;
pub mod density;

pub use caller::KernelBlackBox;
pub use density::KernelDensity;
