//! The progress of long work: one line of a terminal, which is rewritten. Nothing of it goes to files and pipes.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two updates.
const REDRAWN: Duration = Duration::from_millis(200);

/// Work that ends before the first line is due prints nothing.
pub struct Progress {
    is_terminal: bool,
    shown_at: Instant,
    is_shown: bool,
}

impl Progress {
    pub fn new() -> Self {
        Progress { is_terminal: io::stderr().is_terminal(), shown_at: Instant::now(), is_shown: false }
    }

    /// Shows `line` if one is due.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        if !self.is_terminal || self.shown_at.elapsed() < REDRAWN {
            return;
        }
        (self.shown_at, self.is_shown) = (Instant::now(), true);
        rewrite(&line());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            rewrite("");
        }
    }
}

/// Replaces the current line of the terminal.
fn rewrite(text: &str) {
    let mut terminal = io::stderr().lock();
    // The work goes on without its terminal.
    let _ = write!(terminal, "\r{text}\x1b[K").and_then(|()| terminal.flush());
}

/// A count out of all, with the percentage.
pub fn part(done: u64, all: u64) -> String {
    match u128::from(done).saturating_mul(100).checked_div(u128::from(all)) {
        Some(percent) => format!("{done} of {all} ({percent} %)"),
        None => done.to_string(),
    }
}

/// Shows `what` and the elapsed time while `work` runs.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (working, is_done) = mpsc::channel::<()>();
    let watch = move || {
        let (started, mut progress) = (Instant::now(), Progress::new());
        while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(REDRAWN) {
            let seconds = started.elapsed().as_secs();
            if seconds > 0 {
                progress.show(|| format!("{what}: {seconds} s"));
            }
        }
    };
    thread::scope(|scope| {
        // Without a thread the work runs silently.
        let _ = thread::Builder::new().spawn_scoped(scope, watch);
        let done = work();
        drop(working);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_shown_in_percent_if_the_whole_is_known() {
        assert_eq!([part(1, 3), part(3, 3), part(7, 0)], ["1 of 3 (33 %)", "3 of 3 (100 %)", "7"]);
    }

    #[test]
    fn what_is_worked_out_comes_back_and_a_panic_ends_the_line_too() {
        assert_eq!(during("adding", || 1 + 1), 2);
        let panicked = std::panic::catch_unwind(|| during("adding", || panic!("on purpose")));
        assert!(panicked.is_err());
    }
}
