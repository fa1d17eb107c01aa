//! What can happen any number of times, told now and then.

use std::time::{Duration, Instant};

/// The pause between two lines about the same thing.
const PAUSE: Duration = Duration::from_secs(10);

/// Counts what happens, and says when it is time for a line: at once for the first, later for what came in between.
#[derive(Debug, Default)]
pub struct Repeated {
    last: Option<Instant>,
    untold: u64,
    /// What the last of them was.
    what: String,
}

impl Repeated {
    pub fn add(&mut self, count: u64, what: String) {
        self.untold = self.untold.saturating_add(count);
        self.what = what;
    }

    /// How much happened since the last line, and what the last of it was, if it is time for a line.
    pub fn due(&mut self) -> Option<(u64, String)> {
        if self.untold == 0 || self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        self.last = Some(Instant::now());
        Some((
            std::mem::take(&mut self.untold),
            std::mem::take(&mut self.what),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let mut repeated = Repeated::default();
        assert_eq!(repeated.due(), None);
        repeated.add(1, "a".to_owned());
        assert_eq!(repeated.due(), Some((1, "a".to_owned())));
        (0..1000).for_each(|number| repeated.add(2, number.to_string()));
        assert_eq!(repeated.due(), None);
        repeated.last = repeated.last.and_then(|last| last.checked_sub(PAUSE));
        assert_eq!(
            (repeated.due(), repeated.due()),
            (Some((2000, "999".to_owned())), None)
        );
    }
}
