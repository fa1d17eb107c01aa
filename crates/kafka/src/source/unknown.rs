//! A topic that brokers do not know for a moment.

use std::time::{Duration, Instant};

use super::Error;

/// How long a topic may be unknown that was there: brokers that come back from an outage do not know all of them at once.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);

/// Since when brokers do not know a topic of a source that was opened.
#[derive(Debug, Default)]
pub struct UnknownTopic {
    since: Option<Instant>,
}

impl UnknownTopic {
    /// Whether trying again may help after this failure, which comes at `now`.
    pub fn may_pass(&mut self, failure: &Error, now: Instant) -> bool {
        if !failure.is_missing() {
            self.is_known();
            return failure.is_transient();
        }
        now.saturating_duration_since(*self.since.get_or_insert(now)) < UNKNOWN_FOR
    }

    /// Brokers know the topic.
    pub fn is_known(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_is_not_known_again_soon_is_gone() {
        let mut unknown = UnknownTopic::default();
        let start = Instant::now();
        let topic = "in".to_owned();
        let servers = "a:1".to_owned();
        let silent = Error::from(crate::Error::Unavailable { servers: servers.clone(), why: String::new() });
        let missing = Error::from(crate::Error::NoTopic { topic: topic.clone(), servers });
        let mut may_pass = |failure, second| unknown.may_pass(failure, start + Duration::from_secs(second));
        assert!(may_pass(&missing, 0) && may_pass(&missing, 29));
        assert!(may_pass(&silent, 31), "the next outage");
        assert!(may_pass(&missing, 32) && may_pass(&missing, 61));
        assert!(!may_pass(&missing, 62));
        assert!(!may_pass(&Error::Compacted { topic }, 63));
    }
}
