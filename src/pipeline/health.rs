//! What the probes see: latches that the loops set, nothing that the data sets.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::metrics::Metrics;

/// A loop that does not turn for so long, and for what a window can take beside it, hangs. Publishing waits for a broker
/// for less.
const HANGS_AFTER: Duration = Duration::from_secs(180);
/// Multiplications a second of a slow machine.
const SLOW: u64 = 100_000_000;

/// Shared between the loops, which set it, and the endpoints, which read it.
#[derive(Debug, Default)]
pub struct Health {
    /// The input was found and is being read.
    pub reading: AtomicBool,
    /// The witness was read and agrees with the ledger.
    pub witnessed: AtomicBool,
    /// What was due has been published.
    pub publishing: AtomicBool,
    /// The newest window was withheld: the budget of its block is spent.
    pub spent: AtomicBool,
    read_turn: AtomicI64,
    release_turn: AtomicI64,
    /// Seconds that a window can take to compute.
    allowed: AtomicU64,
}

/// The two loops of a worker.
#[derive(Clone, Copy, Debug)]
pub enum Loop {
    Read,
    Release,
}

impl Health {
    /// A window can take so many multiplications: a public number, so that no records can make a worker look hung.
    pub fn allow(&self, products: u64) {
        self.allowed.store(products / SLOW, Ordering::Relaxed);
    }

    /// A loop has come round.
    pub fn turn(&self, which: Loop) {
        let turn = match which {
            Loop::Read => &self.read_turn,
            Loop::Release => &self.release_turn,
        };
        turn.store(Timestamp::now().micros(), Ordering::Relaxed);
    }

    /// Whether both loops came round lately, or have not started yet.
    pub fn turns(&self) -> bool {
        let now = Timestamp::now();
        let patience = HANGS_AFTER.saturating_add(Duration::from_secs(self.allowed.load(Ordering::Relaxed)));
        [&self.read_turn, &self.release_turn].iter().all(|turn| {
            let last = turn.load(Ordering::Relaxed);
            last == 0 || now.since(Timestamp::from_micros(last)) < patience
        })
    }

    /// What must work: its name in the metrics, what it does in words, and whether it does.
    fn parts(&self) -> [(&'static str, &'static str, bool); 3] {
        [
            ("input", "reading the input", &self.reading),
            ("witness", "agreeing with the witness", &self.witnessed),
            ("output", "publishing what is due", &self.publishing),
        ]
        .map(|(name, what, latch)| (name, what, latch.load(Ordering::Relaxed)))
    }

    /// What the worker still waits for, in words.
    pub fn missing(&self) -> Vec<&'static str> {
        self.parts().into_iter().filter(|(.., works)| !works).map(|(_, what, _)| what).collect()
    }

    /// Shows which parts work, as the readiness probe does.
    pub fn show(&self, metrics: &Metrics) {
        for (name, _, works) in self.parts() {
            metrics.ready.with_label_values(&[name]).set(i64::from(works));
        }
    }

    /// Something that people should know of a ready worker.
    pub fn remark(&self) -> &'static str {
        if self.spent.load(Ordering::Relaxed) { "; the budget of the current block is spent" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_takes_as_long_as_it_may_is_no_hang() {
        let health = Health::default();
        assert!(health.turns());
        let ago = |seconds: i64| Timestamp::from_micros(Timestamp::now().micros() - 1_000_000 * seconds);
        health.release_turn.store(ago(600).micros(), Ordering::Relaxed);
        assert!(!health.turns());
        health.allow(1000 * SLOW);
        assert!(health.turns());
        health.release_turn.store(ago(1200).micros(), Ordering::Relaxed);
        assert!(!health.turns());
    }
}
