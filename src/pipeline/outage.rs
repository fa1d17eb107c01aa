//! When the log tells that something has failed, and that it works again: once each, however often it changes in between.

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
