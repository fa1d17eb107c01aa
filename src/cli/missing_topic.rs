//! Topics that are missing when everything is opened.

use std::time::Instant;

use bernstream_kafka::UnknownTopic;

/// The rule by which a missing topic ends an attempt to open everything.
#[derive(Debug)]
pub enum MissingTopic {
    /// At the start of a process a topic may never have been made: it counts the second time in a row, so that a mistake is told at once.
    AtStart { has_missed: bool },
    /// After an outage brokers do not know all topics at once: where a worker has run, or they did not answer at first.
    Later(UnknownTopic),
}

impl MissingTopic {
    pub fn at_start() -> Self {
        MissingTopic::AtStart { has_missed: false }
    }

    pub fn later() -> Self {
        MissingTopic::Later(UnknownTopic::default())
    }

    /// Notes whether the latest attempt failed because something `is_missing`. Returns whether trying again may help.
    pub fn may_return(&mut self, is_missing: bool) -> bool {
        if !is_missing {
            if let MissingTopic::AtStart { .. } = self {
                *self = MissingTopic::later();
            }
            return false;
        }
        match self {
            MissingTopic::AtStart { has_missed } => !std::mem::replace(has_missed, true),
            MissingTopic::Later(unknown) => unknown.note_unknown(Instant::now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_a_start_a_topic_is_missing_the_second_time_and_after_an_outage_later() {
        let mut topic = MissingTopic::at_start();
        assert_eq!(
            [true, true].map(|is_missing| topic.may_return(is_missing)),
            [true, false]
        );
        let mut topic = MissingTopic::at_start();
        let looks = [true, false, true, true].map(|is_missing| topic.may_return(is_missing));
        assert_eq!(looks, [true, false, true, true]);
    }
}
