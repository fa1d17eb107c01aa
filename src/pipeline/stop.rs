//! The wish to stop, from a signal or from a loop that failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Cheap to clone; all clones share one wish.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps for `pause`, or until somebody asks to stop.
    pub fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.asked() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20).min(pause));
        }
    }
}
