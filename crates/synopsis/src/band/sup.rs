//! The largest noise over the cube, draw by draw.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::bernstein::basis;

pub(super) const MAX_DRAWS: u32 = 20_000;
pub(super) const MIN_DRAWS: u32 = 1_000;
/// Multiplications of a simulation that has more than [`MIN_DRAWS`], counted as if no row were left out.
pub(super) const WORK: usize = 8_000_000_000;

/// Largest noise of one draw over the cube.
pub(super) struct Sup {
    /// Of noise times the weights, corrected to hold between the points looked at.
    pub weighted: f64,
    /// Of the noise itself, at those points.
    pub plain: f64,
}

impl Sup {
    pub fn or(self, other: &Sup) -> Sup {
        Sup {
            weighted: self.weighted.max(other.weighted),
            plain: self.plain.max(other.plain),
        }
    }
}

pub(super) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The sups of `draws` draws, in any order. `told` hears how many are done, of how many.
pub(super) fn sups(
    draws: u32,
    threads: usize,
    sup: impl Fn(u32) -> Sup + Sync,
    told: &(dyn Fn(u64, u64) + Sync),
) -> Vec<Sup> {
    let done = AtomicU64::new(0);
    let sup = &|draw| {
        let sup = sup(draw);
        told(done.fetch_add(1, Relaxed) + 1, u64::from(draws));
        sup
    };
    thread::scope(|scope| {
        let every = |first: u32| {
            move || {
                (first..draws)
                    .step_by(threads)
                    .map(sup)
                    .collect::<Vec<Sup>>()
            }
        };
        let workers: Vec<thread::ScopedJoinHandle<Vec<Sup>>> = (0..draws)
            .take(threads)
            .map(|first| scope.spawn(every(first)))
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

/// `s(x)`.
pub(super) fn weight(weights: &[f64], x: f64) -> f64 {
    let degree = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
    basis(degree, x)
        .iter()
        .zip(weights)
        .map(|(b, w)| b * w)
        .sum()
}
