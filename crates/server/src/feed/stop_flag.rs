//! How a thread is asked to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Asks the reading thread to end.
#[derive(Clone, Debug, Default)]
pub(super) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Sleeps until `pause` is over, or the flag is set and the thread unparked. Only the reading thread may call it.
    pub fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_set() && Instant::now() < until {
            thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}
