//! A topic that brokers do not know for a moment.

use std::time::{Duration, Instant};

/// How long a topic may be unknown that was there: brokers that come back from an outage do not know all of them at once.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);

/// After so long without an answer about it, the time begins anew.
const ANEW: Duration = Duration::from_secs(60);

/// For how long brokers have said that they do not know a topic.
#[derive(Debug, Default)]
pub struct UnknownTopic {
    since: Option<Instant>,
    latest: Option<Instant>,
}

impl UnknownTopic {
    /// Notes that brokers did not know the topic at `now`; whether it may come back.
    pub fn may_return(&mut self, now: Instant) -> bool {
        if self
            .latest
            .is_none_or(|latest| now.saturating_duration_since(latest) >= ANEW)
        {
            self.since = Some(now);
        }
        self.latest = Some(now);
        self.since
            .is_some_and(|since| now.saturating_duration_since(since) < UNKNOWN_FOR)
    }

    /// Notes that brokers know the topic.
    pub fn is_known(&mut self) {
        *self = UnknownTopic::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_is_not_known_again_soon_is_gone() {
        let start = Instant::now();
        let mut unknown = UnknownTopic::default();
        let mut may_return = |second| unknown.may_return(start + Duration::from_secs(second));
        assert!(may_return(0) && may_return(29));
        assert!(!may_return(30) && !may_return(31));
        assert!(may_return(91) && may_return(120), "the next outage");
        assert!(!may_return(121));
        unknown.is_known();
        assert!(unknown.may_return(start + Duration::from_secs(122)));
    }
}
