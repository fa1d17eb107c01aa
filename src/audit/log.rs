//! The log of a replay, at the default level.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::Dispatch;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The lines that were logged.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What writes here.
    pub fn dispatch(&self) -> Dispatch {
        let lines = tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).without_time().json();
        Dispatch::new(lines.with_writer(self.clone()).finish())
    }

    /// In the order of the alphabet: two threads write them. A worker says now and then how far it is, by the clock and the
    /// schedule; those lines are left out.
    pub fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        let is_of_time = |line: &&str| line.contains("catching up") || line.contains("caught up");
        let mut lines: Vec<String> = text.lines().filter(|line| !is_of_time(line)).map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}
