//! What the tests and benchmarks share.
#![allow(dead_code, reason = "each program uses some of it")]

pub mod cluster;
pub mod exact;
pub mod files;
pub mod http;
pub mod kafka;
pub mod ledger;
pub mod lifeline;
pub mod picture;
pub mod plan;
pub mod policies;
pub mod preload;
pub mod prometheus;
pub mod running;
pub mod setup;

use std::thread;
use std::time::{Duration, Instant};

/// Nothing that works takes as long, on a slow machine that has other work too: only a fault comes to the end of it.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Looks again until `found` finds something; after [`PATIENCE`] it fails, with what `told` tells.
pub fn wait_for<T>(
    what: &str,
    told: impl Fn() -> String,
    mut found: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "{what} did not come within {PATIENCE:?}:\n{}",
            told()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a test whose preparations must be over within a time that it names to others: with more of it until they are.
///
/// `test` returns whether they were.
pub fn in_time(test: impl Fn(Duration) -> bool) {
    let is_done = [8, 60, 600]
        .into_iter()
        .any(|seconds| test(Duration::from_secs(seconds)));
    assert!(is_done, "the preparations take longer than ten minutes");
}
