//! Continual release: sums over panes, published again with every pane, with noise that is correlated so that it does not
//! add up.
//!
//! With `x_t` the exact pane and `w_t` its noise, a series makes the noisy panes `p_t = x_t + w_t`; what it publishes is a
//! sum of these, which costs nothing more. The noise is not fresh: `w_t = z_t - f(w_0, ..., w_(t-1))`, `z_t` fresh and `f`
//! a rounded recurrence, so that in the sums over `w` later noise takes earlier noise back. What is kept of `w` and `p` is what the next step needs: it
//! is secret, because `p - w` is exact.
//!
//! Why it is private (`docs/proofs/sums.md`). Let streams `x` and `x'` differ by `v` in pane `j`, and fix what is published. Then `w' = w` but for
//! `w'_j = w_j - v`, and the fresh noise that leads there, `z_t = w_t + f(w_<t)`, differs by `-v` in step `j`, by
//! `f(w'_<t) - f(w_<t)` after it, and not at all before. `f` is linear but for its rounding, so that is column `t - j` of `C =
//! 1 + f` times `v`, and at most [`blt::Blt::rounding_drift`] more. Between fixed streams and fixed published values the map from `z`
//! to `w` is one to one, so the odds of what is published are those of `z` and `z'`.
//!
//! The shift of step `t` is a function of what was published before it, never of what comes: so it holds for streams that are
//! chosen after looking. Its squares add up to at most a bound, always. Under `rho` the Renyi divergence of order `a` of a
//! step is `a shift^2 / 2 sigma^2` given the past, and `exp((a - 1)(loss - a sum of shift^2 / 2 sigma^2))` has a mean of at
//! most 1 step after step: the whole costs what one release with a change of that bound costs. With a delta it is the
//! same for the normal law (fully adaptive Gaussian composition, `[ST22]`), of which whole numbers are a
//! function; the distance of the discrete law from that is paid for every draw.
//!
//! Laws of pure differential privacy: a pane is in one draw (hopping) or in one node of each level of a tree (cumulative); the
//! losses add up. The loss of a draw is the norm of the change over the scale, and a norm of a sum is at most the sum of the
//! norms: a unit in several panes loses no more than the sum over its panes, with no factor.

pub mod blt;
mod correlation;
mod encoding;
mod error;
pub mod fir;
mod guarded;
mod rounding;
mod series;
mod state;
pub mod tree;

pub use correlation::{Correlation, NoiseMemory};
pub use error::{MOST_PANES, SeriesError};
pub use series::{CalibratedSeries, SeriesKind};
pub use state::SeriesState;
