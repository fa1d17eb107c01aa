//! The log of a replay, at the default level.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Dispatch, Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use bernstream_worker::pipeline::PROGRESS;

/// The lines that were logged.
#[derive(Clone, Default)]
pub(super) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// A dispatcher that writes here.
    pub fn dispatch(&self) -> Dispatch {
        let lines = tracing_subscriber::fmt()
            .with_max_level(Level::INFO)
            .without_time()
            .json();
        Dispatch::new(
            lines
                .with_writer(self.clone())
                .finish()
                .with(filter_fn(is_compared)),
        )
    }

    /// In the order of the alphabet: two threads write them.
    pub fn sorted_lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

/// Returns whether a line must be the same for neighbours. A worker says now and then how far it is, by the clock and the schedule; no warning is
/// of that kind.
fn is_compared(about: &Metadata<'_>) -> bool {
    about.target() != PROGRESS || *about.level() != Level::INFO
}

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for CapturedLog {
    type Writer = CapturedLog;

    fn make_writer(&'a self) -> CapturedLog {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use tracing::{debug, error, info, warn};

    use super::*;

    #[test]
    fn a_line_is_left_out_by_its_target_and_level_and_not_by_its_words() {
        let log = CapturedLog::default();
        tracing::dispatcher::with_default(&log.dispatch(), || {
            info!("caught up with 3 records");
            info!(target: PROGRESS, "how far it is");
            warn!(target: PROGRESS, "3 records are late");
            info!(target: "bernstream::progressive", "3 records are early");
            debug!("not of the default level");
            error!("catching up has failed");
        });
        let words = [
            "catching up has failed",
            "caught up with 3",
            "3 records are early",
            "3 records are late",
        ];
        let lines = log.sorted_lines();
        assert_eq!(lines.len(), words.len(), "{lines:?}");
        assert!(
            words
                .iter()
                .all(|words| lines.iter().any(|line| line.contains(words))),
            "{lines:?}"
        );
    }
}
