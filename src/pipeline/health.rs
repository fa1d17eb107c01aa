//! What the probes see: flags that the loops set, never the data.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::metrics::Metrics;

/// A loop without a heartbeat for this long, plus the time that a window can take, hangs. Publishing waits less for a
/// broker.
const HANGS_AFTER: Duration = Duration::from_secs(180);
/// Multiplications per second of a slow machine.
const SLOW: u64 = 100_000_000;

/// Shared between the loops, which set it, and the endpoints, which read it.
#[derive(Debug, Default)]
pub struct Health {
    /// The input was found and is being read.
    pub reading: AtomicBool,
    /// The witness was read and agrees with the ledger.
    pub witnessed: AtomicBool,
    /// Everything due has been published.
    pub publishing: AtomicBool,
    /// The newest window was withheld: the budget of its block is spent.
    pub spent: AtomicBool,
    last_read: AtomicI64,
    last_release: AtomicI64,
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
    /// Sets how many multiplications a window can take: a public number, so that no records can make a worker look hung.
    pub fn allow(&self, products: u64) {
        self.allowed.store(products / SLOW, Ordering::Relaxed);
    }

    /// Records a heartbeat of a loop.
    pub fn beat(&self, which: Loop) {
        let beat = match which {
            Loop::Read => &self.last_read,
            Loop::Release => &self.last_release,
        };
        beat.store(Timestamp::now().micros(), Ordering::Relaxed);
    }

    /// Whether both loops had a heartbeat lately, or have not started yet.
    pub fn is_alive(&self) -> bool {
        let now = Timestamp::now();
        let patience = HANGS_AFTER.saturating_add(Duration::from_secs(self.allowed.load(Ordering::Relaxed)));
        [&self.last_read, &self.last_release].iter().all(|beat| {
            let last = beat.load(Ordering::Relaxed);
            last == 0 || now.since(Timestamp::from_micros(last)) < patience
        })
    }

    /// What must work: its name in the metrics, what it does in words, and whether it works.
    fn parts(&self) -> [(&'static str, &'static str, bool); 3] {
        [
            ("input", "reading the input", &self.reading),
            ("witness", "agreeing with the witness", &self.witnessed),
            ("output", "publishing what is due", &self.publishing),
        ]
        .map(|(name, what, flag)| (name, what, flag.load(Ordering::Relaxed)))
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

    /// What people should know about a ready worker.
    pub fn remark(&self) -> &'static str {
        if self.spent.load(Ordering::Relaxed) { "; the budget of the current block is spent" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_takes_as_long_as_it_may_does_not_hang() {
        let health = Health::default();
        assert!(health.is_alive());
        let ago = |seconds: i64| Timestamp::from_micros(Timestamp::now().micros() - 1_000_000 * seconds);
        health.last_release.store(ago(600).micros(), Ordering::Relaxed);
        assert!(!health.is_alive());
        health.allow(1000 * SLOW);
        assert!(health.is_alive());
        health.last_release.store(ago(1200).micros(), Ordering::Relaxed);
        assert!(!health.is_alive());
    }
}
