//! When the log tells that something has failed, and that it works again: once each, however often it changes in between. Each reason
//! is told, once an outage: what is only waiting at first may turn into a loss.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What has worked for this long works again. Something that fails again sooner never did.
const CALM: Duration = Duration::from_secs(2);

/// Something that may fail for a while, for reasons `R`.
#[derive(Debug)]
pub(super) struct Outage<R> {
    /// What the log says; nothing at first.
    told: Option<bool>,
    /// The reasons that it has told since it last said that it works.
    reasons: Vec<R>,
    /// Since when it works.
    works_since: Option<Instant>,
}

impl<R> Default for Outage<R> {
    fn default() -> Self {
        Outage { told: None, reasons: Vec::new(), works_since: None }
    }
}

impl<R: PartialEq> Outage<R> {
    /// Whether to tell that it does not work, for this reason.
    pub fn fails(&mut self, reason: R) -> bool {
        self.works_since = None;
        self.told = Some(false);
        let is_news = !self.reasons.contains(&reason);
        if is_news {
            self.reasons.push(reason);
        }
        is_news
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
            self.reasons.clear();
        }
        is_news
    }
}

/// An outage that several threads see: the log tells each of its reasons once, and its end once.
#[derive(Debug)]
pub(super) struct CommonOutage<R> {
    outage: Mutex<Outage<R>>,
    /// The log says that it works: there is nothing to tell until it fails.
    is_over: AtomicBool,
}

impl<R> Default for CommonOutage<R> {
    fn default() -> Self {
        CommonOutage { outage: Mutex::default(), is_over: AtomicBool::new(false) }
    }
}

impl<R: PartialEq> CommonOutage<R> {
    /// Whether to tell that it does not work, for this reason.
    pub fn fails(&self, reason: R) -> bool {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(false, Relaxed);
        outage.fails(reason)
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
        let silence = "no answer";
        let after = |millis: u64| start + Duration::from_millis(millis);
        assert!(outage.works(start), "at first it is told at once");
        assert!(!outage.works(after(100)));
        assert!(outage.fails(silence) && !outage.fails(silence));
        // It flaps for a minute, ten times a second.
        assert!(!(0..600).any(|tenth| outage.works(after(200 + 100 * tenth)) || outage.fails(silence)));
        let told = (0..100).filter(|tenth| outage.works(after(60_300 + 100 * tenth))).count();
        assert_eq!(told, 1);
        assert!(outage.fails(silence), "the next outage is another one");
    }

    #[test]
    fn each_reason_of_an_outage_is_told_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert!(outage.fails("no answer"));
        assert!(!outage.works(start), "it has not worked for long");
        assert!(outage.fails("lost claims"), "another reason is news");
        // The two of them flap.
        assert!(!(0..100).any(|_| outage.fails("no answer") || outage.fails("lost claims")));
        assert!(!outage.works(start) && outage.works(start + CALM), "the end is told once, whatever the reasons were");
        assert!(outage.fails("lost claims"));
    }
}
