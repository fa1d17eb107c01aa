//! The progress of long work: one line of a terminal, which is rewritten. Nothing of it goes to files and pipes.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two updates.
const REDRAWN: Duration = Duration::from_millis(200);
/// The least time of work before it is said how long the rest takes.
const LEAST_RUN: Duration = Duration::from_secs(2);
/// The most characters of a line: in the last column of a terminal of 80 some wrap.
const LONGEST: usize = 79;

/// Work that ends before the first line is due prints nothing.
pub struct ProgressPrinter {
    is_terminal: bool,
    shown_at: Instant,
    is_shown: bool,
}

impl ProgressPrinter {
    pub fn new() -> Self {
        ProgressPrinter {
            is_terminal: io::stderr().is_terminal(),
            shown_at: Instant::now(),
            is_shown: false,
        }
    }

    /// Shows `line` if one is due.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        if !self.is_terminal || self.shown_at.elapsed() < REDRAWN {
            return;
        }
        self.shown_at = Instant::now();
        self.is_shown = true;
        rewrite(&fit_to_terminal(&line()));
    }
}

impl Drop for ProgressPrinter {
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

/// The part of a line that fits a terminal: a line that wraps cannot be rewritten.
fn fit_to_terminal(line: &str) -> String {
    line.chars().take(LONGEST).collect()
}

/// A count out of all, with the percentage.
pub fn part_in_words(done: u64, all: u64) -> String {
    match u128::from(done)
        .saturating_mul(100)
        .checked_div(u128::from(all))
    {
        Some(percent) => format!("{done} of {all} ({} %)", percent.min(100)),
        None => done.to_string(),
    }
}

/// The amount of some work that is done, and of all of it; 0 in all where nobody knows.
#[derive(Debug, Default)]
pub struct WorkDone {
    done: AtomicU64,
    all: AtomicU64,
}

impl WorkDone {
    /// Threads may tell in another order than they have worked: what is done stays done.
    pub fn set(&self, done: u64, all: u64) {
        self.done.fetch_max(done, Relaxed);
        self.all.store(all, Relaxed);
    }

    /// The line of `what`; none while there is nothing to tell. With `ends` the work ends then at the latest, however much of it is left.
    fn line(&self, what: &str, elapsed: Duration, ends: Option<Duration>) -> Option<String> {
        let done = self.done.load(Relaxed);
        let all = self.all.load(Relaxed);
        let told = match all {
            0 if elapsed.as_secs() == 0 => return None,
            0 if ends.is_some() => String::new(),
            0 => format!(": {} s", elapsed.as_secs()),
            _ => format!(": {}", part_in_words(done, all)),
        };
        let left = ends
            .or_else(|| time_left(elapsed, done, all))
            .filter(|left| left.as_secs() > 0);
        Some(format!(
            "{what}{told}{}",
            left.map_or_else(String::new, |left| format!(", {}", in_words(left)))
        ))
    }
}

/// Estimates how long the rest takes if it goes on as fast as the part that is done; not known in the beginning.
fn time_left(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "an estimate to show")]
    let rest = all.saturating_sub(done) as f64 / done as f64;
    let is_known = done > 0 && elapsed >= LEAST_RUN;
    is_known
        .then(|| Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest).unwrap_or(Duration::MAX))
}

fn in_words(left: Duration) -> String {
    match left.as_secs() {
        seconds @ ..90 => format!("about {seconds} s left"),
        seconds @ ..5400 => format!("about {} min left", (seconds + 30) / 60),
        seconds => format!("about {} h left", seconds / 3600),
    }
}

/// Shows `what` and the elapsed time while `work` runs.
pub fn show_during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    show_progress(what, |_| work())
}

/// Shows `what`, how much of it is done, and about how long the rest takes, while `work` runs and says how far it is.
pub fn show_progress<T>(what: &str, work: impl FnOnce(&WorkDone) -> T) -> T {
    run_watched(what, None, work)
}

/// Shows the progress of work that ends at `end`, whatever is left of it.
pub fn show_progress_until<T>(what: &str, end: Instant, work: impl FnOnce(&WorkDone) -> T) -> T {
    run_watched(what, Some(end), work)
}

fn run_watched<T>(what: &str, end: Option<Instant>, work: impl FnOnce(&WorkDone) -> T) -> T {
    let (working, is_done) = mpsc::channel::<()>();
    let count = WorkDone::default();
    let count = &count;
    thread::scope(|scope| {
        // Without a thread the work runs silently.
        let _ = thread::Builder::new()
            .spawn_scoped(scope, move || show_until(&is_done, what, end, count));
        let done = work(count);
        drop(working);
        done
    })
}

/// Shows how far the work is until the other end of `is_done` is dropped.
fn show_until(is_done: &Receiver<()>, what: &str, end: Option<Instant>, count: &WorkDone) {
    let started = Instant::now();
    let mut progress = ProgressPrinter::new();
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(REDRAWN) {
        let ends = end.map(|end| end.saturating_duration_since(Instant::now()));
        if let Some(line) = count.line(what, started.elapsed(), ends) {
            progress.show(|| line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_shown_in_percent_if_the_whole_is_known() {
        assert_eq!(
            [
                part_in_words(1, 3),
                part_in_words(3, 3),
                part_in_words(7, 0)
            ],
            ["1 of 3 (33 %)", "3 of 3 (100 %)", "7"]
        );
        assert_eq!(part_in_words(4, 3), "4 of 3 (100 %)");
    }

    fn line(done: u64, all: u64, elapsed: u64, ends: Option<u64>) -> Option<String> {
        let work = WorkDone::default();
        work.set(done, all);
        work.line(
            "adding",
            Duration::from_secs(elapsed),
            ends.map(Duration::from_secs),
        )
    }

    #[test]
    fn a_line_says_what_is_done_and_what_is_left() {
        for (done, all, elapsed, told) in [
            (0, 0, 0, None),
            (0, 0, 7, Some("adding: 7 s")),
            (0, 8, 0, Some("adding: 0 of 8 (0 %)")),
            // Too early to tell, and nothing to tell it from.
            (4, 8, 1, Some("adding: 4 of 8 (50 %)")),
            (0, 8, 9, Some("adding: 0 of 8 (0 %)")),
            (2, 8, 10, Some("adding: 2 of 8 (25 %), about 30 s left")),
            (1, 10, 10, Some("adding: 1 of 10 (10 %), about 2 min left")),
            (1, 1000, 10, Some("adding: 1 of 1000 (0 %), about 2 h left")),
            (8, 8, 10, Some("adding: 8 of 8 (100 %)")),
        ] {
            assert_eq!(
                line(done, all, elapsed, None).as_deref(),
                told,
                "{done} of {all} after {elapsed} s"
            );
        }
    }

    #[test]
    fn what_ends_at_a_time_says_how_long_that_is() {
        assert_eq!(
            line(2, 8, 10, Some(100)).unwrap(),
            "adding: 2 of 8 (25 %), about 2 min left"
        );
        assert_eq!(line(0, 0, 1, Some(80)).unwrap(), "adding, about 80 s left");
        assert_eq!(line(2, 8, 10, Some(0)).unwrap(), "adding: 2 of 8 (25 %)");
    }

    #[test]
    fn a_line_fits_a_terminal_of_80_columns() {
        let longest = line(u64::MAX - 1, u64::MAX, u64::MAX, Some(u64::MAX)).unwrap();
        assert!(longest.len() > 80, "{longest}");
        assert_eq!(fit_to_terminal(&longest).len(), 79);
        assert_eq!(fit_to_terminal(&"é".repeat(80)).chars().count(), 79);
        assert_eq!(fit_to_terminal("short"), "short");
    }

    #[test]
    fn what_is_worked_out_comes_back_and_a_panic_ends_the_line_too() {
        assert_eq!(show_during("adding", || 1 + 1), 2);
        let panicked = std::panic::catch_unwind(|| show_during("adding", || panic!("on purpose")));
        assert!(panicked.is_err());
    }
}
