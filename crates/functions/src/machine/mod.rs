//! Regularised empirical risk in an RKHS: support vector machines, kernel logistic regression, ridge and Huber regression
//! (`[AR17]` section 6; `docs/proofs/machines.md`).
//!
//! `f_D = argmin (C/m) sum_i L(y_i, f(x_i)) + ||f||^2 / 2` over the functions of the kernel, on the lattice. `m` is public,
//! the most records a window keeps. There is no intercept: without regularisation it has no sensitivity bound.
//!
//! # Why the sensitivities hold
//!
//! `f_D` moves by at most `r = (C/m)` [`exchange`](bernstream_synopsis::machine::Loss::exchange_bound) in the norm of the kernel, `K(x, x) <= 1`, when a record is
//! exchanged, and in a ball around half of what a lone record would do (`exchange.rs`). At most `m` records are used,
//! here too, so pulls are bounded by `M` and one record more is at worst an exchange. Hence, `N` the lattice points,
//! `t` the tolerance of the solver (`solver.rs`) and `Q = min(N, sqrt(sum_{p,q} |K(p, q)|))`,
//!
//! ```text
//! S  = r + 2 t
//! D1 = (min(2 M (C/m) max_x sum_p |K(x, p)|, r Q) + r Q) / 2 + 2 t Q
//! ```
//!
//! because `||g||_1 = max_s <g, sum_p s_p K_p> <= ||g|| Q`. In the 2-norm the lattice values of `g` are at most `||g|| R`, where
//! `R^2 = max_p sum_q |K(p, q)|` is at least the largest eigenvalue of `K` on the lattice, and those of a lone record at most
//! `P`, `P^2 = max_x sum_p K(x, p)^2`:
//!
//! ```text
//! D2 = (min(2 M (C/m) P, r R) + r R) / 2 + 2 t R
//! ```
//!
//! What the floats of the lattice values may lose
//! (`space.rs`) is added, and a unit for rounding. The constant `MC/n` of `[AR17]` is half of what holds.
//!
//! # Large windows
//!
//! The Gram matrix of more than [`MOST_EXACT`] records is too large. Then the functions are those of public landmarks
//! (`landmarks.rs`); the argument is the same with `phi(x)' phi(y)` for `K(x, y)`. The linear kernel always has explicit
//! features.
//!
//! [`whitened`] has the same machines without a lattice, for noise in the 2-norm.

pub(super) mod exchange;
mod landmarks;
pub(super) mod minimiser;
mod newton;
mod on_lattice;
mod pairs;
pub(crate) mod settings;
pub(super) mod solver;
pub(super) mod space;
pub mod whitened;

pub use on_lattice::Machine;
pub use settings::{MOST_EXACT, MachineSettings};
pub use whitened::KernelMachine;
