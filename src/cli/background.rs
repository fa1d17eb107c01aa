//! A thread beside the worker.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::cli::failure::Failure;
use bernstream_worker::pipeline::StopRequest;

/// Time that the end of the program waits for an answer that a thread waits for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A thread that is told to end when this is dropped.
#[derive(Debug)]
pub struct BackgroundThread {
    stop: StopRequest,
    thread: JoinHandle<()>,
}

impl BackgroundThread {
    /// Starts a thread that does `work` until the `stop` that it is given is asked for.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        name: &str,
        stop: &StopRequest,
        work: impl FnOnce(&StopRequest) + Send + 'static,
    ) -> Result<Self, Failure> {
        let given = stop.clone();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&given))
            .map_err(|error| Failure::Other(format!("no thread can be started: {error}")))?;
        Ok(BackgroundThread {
            stop: stop.clone(),
            thread,
        })
    }
}

impl Drop for BackgroundThread {
    /// Lets it end: the program crashes at its exit where a client is being made just then, which OpenSSL is part of.
    fn drop(&mut self) {
        self.stop.request_stop();
        let since = Instant::now();
        while !self.thread.is_finished() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
