//! The largest noise over the cube, draw by draw.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use crate::bernstein::bernstein_basis;
use crate::cholesky::sequential_dot;

pub(super) const MAX_DRAWS: u32 = 20_000;
pub(super) const MIN_DRAWS: u32 = 1_000;
/// Multiplications of a simulation that has more than [`MIN_DRAWS`], counted as if no row were left out.
const WORK: usize = 8_000_000_000;

/// Number of draws that [`WORK`] allows where one takes so many multiplications.
pub(super) fn affordable_draws(products: usize) -> u32 {
    u32::try_from(WORK / products.max(1))
        .unwrap_or(MAX_DRAWS)
        .clamp(MIN_DRAWS, MAX_DRAWS)
}

/// The generator of one draw.
pub(super) fn draw_generator(seed: u64, draw: u32) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(draw));
    rng
}

/// Largest noise of one draw over the cube.
pub(super) struct NoiseSup {
    /// Largest noise times the weights, corrected to hold between the points looked at.
    pub weighted: f64,
    /// Largest noise itself, at those points.
    pub plain: f64,
}

impl NoiseSup {
    pub fn max(self, other: &NoiseSup) -> NoiseSup {
        NoiseSup {
            weighted: self.weighted.max(other.weighted),
            plain: self.plain.max(other.plain),
        }
    }
}

pub(super) fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The sups of `draws` draws, in any order. `progress` hears how many are done, of how many.
pub(super) fn draw_sups(
    draws: u32,
    threads: usize,
    sup: impl Fn(u32) -> NoiseSup + Sync,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Vec<NoiseSup> {
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for first in (0..draws).take(threads) {
            workers.push(scope.spawn({
                let sup = &sup;
                let done = &done;
                move || {
                    let mut sups = Vec::new();
                    for draw in (first..draws).step_by(threads) {
                        sups.push(sup(draw));
                        progress(done.fetch_add(1, Relaxed) + 1, u64::from(draws));
                    }
                    sups
                }
            }));
        }
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// `s(x)`.
pub(super) fn weight_at(weights: &[f64], x: f64) -> f64 {
    let degree = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
    sequential_dot(&bernstein_basis(degree, x), weights)
}
