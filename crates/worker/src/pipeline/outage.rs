//! Log lines about what has failed, and works again: once each, however often it changes in between. Each reason
//! is told, once an outage: what is only waiting at first may turn into a loss. While it lasts, the reason of the moment is told once a
//! minute.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bernstream_synopsis::clock::Reminder;

/// The time after which what works counts as working again. Something that fails again sooner never did.
const RECOVERED_AFTER: Duration = Duration::from_secs(2);

/// The last word of the log about an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoggedState {
    /// It has said nothing yet.
    Nothing,
    Fails,
    Works,
}

/// Something that may fail for a while, for reasons `R`.
#[derive(Debug)]
pub struct Outage<R> {
    logged: LoggedState,
    /// The reasons that it has told since it last said that it works.
    reasons: Vec<R>,
    reminder: Reminder,
    /// Since when it works.
    works_since: Option<Instant>,
}

impl<R> Default for Outage<R> {
    fn default() -> Self {
        Outage {
            logged: LoggedState::Nothing,
            reasons: Vec::new(),
            reminder: Reminder::default(),
            works_since: None,
        }
    }
}

impl<R: PartialEq> Outage<R> {
    /// Records a failure; returns whether to tell it, for this reason.
    pub fn record_failure(&mut self, reason: R, now: Instant) -> bool {
        self.works_since = None;
        self.logged = LoggedState::Fails;
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
            self.reminder.forget_reminder();
        }
        self.reminder.is_due(now)
    }

    /// Records that it works; returns whether to tell that.
    pub fn record_recovery(&mut self, now: Instant) -> bool {
        let since = *self.works_since.get_or_insert(now);
        let is_news = match self.logged {
            LoggedState::Nothing => true,
            LoggedState::Fails => now.saturating_duration_since(since) >= RECOVERED_AFTER,
            LoggedState::Works => false,
        };
        if is_news {
            self.logged = LoggedState::Works;
            self.reasons.clear();
            self.reminder.forget_reminder();
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
        CommonOutage {
            outage: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }
}

impl<R: PartialEq> CommonOutage<R> {
    /// Records a failure; returns whether to tell it, for this reason.
    pub fn record_failure(&self, reason: R) -> bool {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(false, Relaxed);
        outage.record_failure(reason, Instant::now())
    }

    /// Records that it works; returns whether to tell that. `works` says whether it does for all threads.
    pub fn record_recovery(&self, works: impl FnOnce() -> bool) -> bool {
        if self.is_over.load(Relaxed) || !works() {
            return false;
        }
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = outage.record_recovery(Instant::now());
        self.is_over
            .store(outage.logged == LoggedState::Works, Relaxed);
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_and_its_end_once() {
        let mut outage = Outage::default();
        let start = Instant::now();
        let silence = "no answer";
        let after = |millis: u64| start + Duration::from_millis(millis);
        assert!(outage.record_recovery(start), "at first it is told at once");
        assert!(!outage.record_recovery(after(100)));
        assert!(
            outage.record_failure(silence, after(200))
                && !outage.record_failure(silence, after(200))
        );
        // It flaps for most of a minute, ten times a second.
        let mut flaps = |at| outage.record_recovery(at) || outage.record_failure(silence, at);
        assert!(!(0..590).any(|tenth| flaps(after(200 + 100 * tenth))));
        let told = (0..100)
            .filter(|tenth| outage.record_recovery(after(60_300 + 100 * tenth)))
            .count();
        assert_eq!(told, 1);
        assert!(
            outage.record_failure(silence, after(70_300)),
            "the next outage is another one"
        );
    }

    #[test]
    fn each_reason_of_an_outage_is_told_once() {
        let mut outage = Outage::default();
        let start = Instant::now();
        assert!(outage.record_failure("no answer", start));
        assert!(!outage.record_recovery(start), "it has not worked for long");
        assert!(
            outage.record_failure("lost claims", start),
            "another reason is news"
        );
        // The two of them flap.
        assert!(!(0..100).any(|_| outage.record_failure("no answer", start)
            || outage.record_failure("lost claims", start)));
        assert!(
            !outage.record_recovery(start) && outage.record_recovery(start + RECOVERED_AFTER),
            "the end is told once, whatever the reasons were"
        );
        assert!(outage.record_failure("lost claims", start));
    }

    #[test]
    fn what_is_waited_for_now_is_told_every_minute() {
        let mut outage = Outage::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(
            outage.record_failure("no answer", start)
                && outage.record_failure("lost claims", after(5))
        );
        let told = (6..200)
            .filter(|second| outage.record_failure("no answer", after(*second)))
            .collect::<Vec<_>>();
        assert_eq!(
            told,
            [65, 125, 185],
            "the first reason again: it is what lasts"
        );
    }
}
