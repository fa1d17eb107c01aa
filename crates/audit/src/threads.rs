//! Independent work on all processors.

use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

/// Number of processors.
pub(super) fn processors() -> u64 {
    thread::available_parallelism().map_or(1, NonZero::get) as u64
}

/// Splits `range` over the processors and gives what `work` makes of each part, in order.
pub(super) fn in_parts<T: Send>(
    range: Range<u64>,
    work: impl Fn(Range<u64>) -> T + Sync,
) -> Vec<T> {
    let parts = processors();
    let length = (range.end.saturating_sub(range.start))
        .div_ceil(parts)
        .max(1);
    let starts = (range.start..range.end).step_by(usize::try_from(length).unwrap_or(usize::MAX));
    thread::scope(|scope| {
        let end = range.end;
        let workers: Vec<_> = starts
            .map(|start| {
                scope.spawn({
                    let work = &work;
                    move || work(start..(start + length).min(end))
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
