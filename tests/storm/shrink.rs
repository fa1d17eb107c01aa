//! The smallest schedule that still fails.

use std::time::{Duration, Instant};

use super::schedule::Schedule;

/// Leaves out more and more faults, first half of them at once, then fewer, as long as what is left `fails`; until nothing can be
/// left out or the time is over.
pub fn smallest(
    schedule: &Schedule,
    time: Duration,
    fails: impl Fn(&Schedule) -> bool,
) -> Schedule {
    let deadline = Instant::now() + time;
    let mut smallest = schedule.clone();
    let mut piece = smallest.faults.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        let mut is_smaller = false;
        while at < smallest.faults.len() {
            if Instant::now() > deadline {
                return smallest;
            }
            let mut without = smallest.clone();
            without
                .faults
                .drain(at..(at + piece).min(without.faults.len()));
            if fails(&without) {
                smallest = without;
                is_smaller = true;
            } else {
                at += piece;
            }
        }
        if piece == 1 && !is_smaller {
            break;
        }
        piece = (piece / 2).max(1);
    }
    smallest
}
