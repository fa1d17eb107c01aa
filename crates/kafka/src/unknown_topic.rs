//! A topic that brokers do not know for a moment.

use std::time::{Duration, Instant};

/// Longest time for which a topic may be unknown that was there: brokers that come back from an outage do not know all of them at once.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);

/// The longest time between two answers that follow each other: what lies further apart was an outage in between.
const LONGEST_GAP: Duration = Duration::from_secs(20);

/// For how long brokers have said that they do not know a topic, apart from the times in which they said nothing.
#[derive(Debug, Default)]
pub struct UnknownTopic {
    unknown: Duration,
    latest: Option<Instant>,
}

impl UnknownTopic {
    /// Notes that brokers did not know the topic at `now`. Returns whether it may come back.
    pub fn note_unknown(&mut self, now: Instant) -> bool {
        if let Some(latest) = self.latest.replace(now) {
            let gap = now.saturating_duration_since(latest);
            if gap < LONGEST_GAP {
                self.unknown += gap;
            }
        }
        self.unknown < UNKNOWN_FOR
    }

    /// Notes that brokers know the topic.
    pub fn note_known(&mut self) {
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
        let mut may_return = |second| unknown.note_unknown(start + Duration::from_secs(second));
        assert!(may_return(0) && may_return(15) && may_return(29));
        assert!(may_return(60) && may_return(60), "an outage in between");
        assert!(!may_return(61), "thirty seconds in all");
        unknown.note_known();
        assert!(unknown.note_unknown(start + Duration::from_secs(62)));
    }
}
