//! What can happen any number of times, told now and then.

use std::time::{Duration, Instant};

/// The pause between two lines about the same thing.
const PAUSE: Duration = Duration::from_secs(10);

/// Counts what happens, and says when it is time for a line: at once for the first, later for what came in between.
#[derive(Debug, Default)]
pub struct Repeated {
    last: Option<Instant>,
    untold: u64,
}

impl Repeated {
    pub fn add(&mut self, count: u64) {
        self.untold = self.untold.saturating_add(count);
    }

    /// How much happened since the last line, if it is time for one.
    pub fn due(&mut self) -> Option<u64> {
        if self.untold == 0 || self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let mut repeated = Repeated::default();
        assert_eq!(repeated.due(), None);
        repeated.add(1);
        assert_eq!(repeated.due(), Some(1));
        (0..1000).for_each(|_| repeated.add(2));
        assert_eq!(repeated.due(), None);
        repeated.last = repeated.last.and_then(|last| last.checked_sub(PAUSE));
        assert_eq!((repeated.due(), repeated.due()), (Some(2000), None));
    }
}
