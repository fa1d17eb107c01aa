//! Logs: text on a terminal, JSON elsewhere; never a value, a key or a count of records.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging to standard error. `BERNSTREAM_LOG` takes the filters of `tracing`, such as `debug`.
pub fn start() {
    let filter = EnvFilter::try_from_env("BERNSTREAM_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,librdkafka=error,rdkafka=error"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start, as in tests, keeps the first.
    let _ = if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() };
}
