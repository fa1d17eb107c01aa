//! The runtime for endpoints and signals.

use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

use crate::cli::failure::Failure;
use bernstream_worker::pipeline::StopRequest;

/// The runtime that serves the endpoints and handles signals; the loops of the worker are plain threads.
///
/// # Errors
///
/// If the operating system cannot start its thread.
pub fn start_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("the runtime cannot be started: {error}")))
}

/// SIGTERM and SIGINT request a stop, and `tell` says so: work in progress is finished first. A second signal ends the process at
/// once. From the return on: a signal that comes earlier ends the process.
pub fn stop_on_signal(
    runtime: &tokio::runtime::Runtime,
    stop: &StopRequest,
    tell: impl Fn() + Send + 'static,
) {
    let stop = stop.clone();
    let _inside = runtime.enter();
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return warn!(
            "no signal handler could be installed; the process can only be killed, which loses nothing"
        );
    };
    runtime.spawn(async move {
        for _ in 0..2 {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            if stop.is_requested() {
                std::process::exit(130);
            }
            tell();
            stop.request_stop();
        }
    });
}
