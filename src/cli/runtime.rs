//! What a long command runs beside its own threads: endpoints and signals.

use tracing::{info, warn};

use crate::cli::failure::Failure;
use crate::pipeline::Stop;

/// What serves the endpoints and hears the signals; the worker's own loops are plain threads.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Other(format!("no runtime could be started: {error}")))
}

/// SIGTERM and SIGINT ask to stop: what is under way is finished first. A second one ends the process at once.
pub fn stop_on_signal(runtime: &tokio::runtime::Runtime, stop: &Stop) {
    let stop = stop.clone();
    runtime.spawn(async move {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return warn!("signals cannot be heard; the process can only be killed, which loses nothing");
        };
        for _ in 0..2 {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            if stop.asked() {
                std::process::exit(130);
            }
            info!("stopping");
            stop.ask();
        }
    });
}
