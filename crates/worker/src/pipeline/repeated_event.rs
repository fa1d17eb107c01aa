//! Log lines about what can happen any number of times, written now and then.

use std::time::{Duration, Instant};

/// The pause between two lines about the same thing.
const LOG_LINE_PAUSE: Duration = Duration::from_secs(10);

/// Counts what happens, and says when it is time for a line: at once for the first, later for what came in between.
#[derive(Debug, Default)]
pub struct RepeatedEvent {
    last_line: Option<Instant>,
    unreported: u64,
    /// A description of the last event.
    newest: String,
}

impl RepeatedEvent {
    pub fn add_events(&mut self, count: u64, newest: String) {
        self.unreported = self.unreported.saturating_add(count);
        self.newest = newest;
    }

    /// The events since the last line, if it is time for a line.
    pub fn due_line(&mut self) -> Option<RepeatedLine> {
        if self.unreported == 0
            || self
                .last_line
                .is_some_and(|line| line.elapsed() < LOG_LINE_PAUSE)
        {
            return None;
        }
        self.last_line = Some(Instant::now());
        Some(RepeatedLine {
            count: std::mem::take(&mut self.unreported),
            newest: std::mem::take(&mut self.newest),
        })
    }
}

/// A line about what has happened since the one before.
#[derive(Debug, PartialEq, Eq)]
pub struct RepeatedLine {
    pub count: u64,
    /// A description of the last event.
    pub newest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let line = |count: u64, newest: &str| {
            let newest = newest.to_owned();
            Some(RepeatedLine { count, newest })
        };
        let mut repeated = RepeatedEvent::default();
        assert_eq!(repeated.due_line(), None);
        repeated.add_events(1, "a".to_owned());
        assert_eq!(repeated.due_line(), line(1, "a"));
        (0..1000).for_each(|number| repeated.add_events(2, number.to_string()));
        assert_eq!(repeated.due_line(), None);
        repeated.last_line = repeated
            .last_line
            .and_then(|line| line.checked_sub(LOG_LINE_PAUSE));
        assert_eq!(
            (repeated.due_line(), repeated.due_line()),
            (line(2000, "999"), None)
        );
    }
}
