//! When the log tells that something has failed, and that it works again: once each, however often it changes in between.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What has worked for this long works again. Something that fails again sooner never did.
const CALM: Duration = Duration::from_secs(2);

/// Something that may fail for a while.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// What the log says; nothing at first.
    told: Option<bool>,
    /// Since when it works.
    works_since: Option<Instant>,
}

impl Outage {
    /// Whether to tell that it does not work.
    pub fn fails(&mut self) -> bool {
        self.works_since = None;
        self.told.replace(false) != Some(false)
    }

    /// Whether to tell that it works.
    pub fn works(&mut self, now: Instant) -> bool {
        let since = *self.works_since.get_or_insert(now);
        let is_news = match self.told {
            None => true,
            Some(false) => now.saturating_duration_since(since) >= CALM,
            Some(true) => false,
        };
        if is_news {
            self.told = Some(true);
        }
        is_news
    }
}

/// An outage that several threads see: the log tells it once, and its end once.
#[derive(Debug, Default)]
pub(super) struct CommonOutage {
    outage: Mutex<Outage>,
    /// The log says that it works: there is nothing to tell until it fails.
    is_over: AtomicBool,
}

impl CommonOutage {
    /// Whether to tell that it does not work.
    pub fn fails(&self) -> bool {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(false, Relaxed);
        outage.fails()
    }

    /// Whether to tell that it works; `works` says whether it does for all threads.
    pub fn works(&self, works: impl FnOnce() -> bool) -> bool {
        if self.is_over.load(Relaxed) || !works() {
            return false;
        }
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = outage.works(Instant::now());
        self.is_over.store(outage.told == Some(true), Relaxed);
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_and_its_end_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let after = |millis: u64| start + Duration::from_millis(millis);
        assert!(outage.works(start), "at first it is told at once");
        assert!(!outage.works(after(100)));
        assert!(outage.fails() && !outage.fails());
        // It flaps for a minute, ten times a second.
        assert!(!(0..600).any(|tenth| outage.works(after(200 + 100 * tenth)) || outage.fails()));
        let told = (0..100).filter(|tenth| outage.works(after(60_300 + 100 * tenth))).count();
        assert_eq!(told, 1);
        assert!(outage.fails(), "the next outage is another one");
    }
}
