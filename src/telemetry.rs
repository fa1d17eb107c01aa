//! Logs: text on a terminal, JSON elsewhere. For operators: a broken message is named by its offset; no record's value or key
//! is, nor how many there were.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging to standard error. `BERNSTREAM_LOG` takes the filters of `tracing`, such as `debug`.
///
/// The Kafka client repeats each second that a broker is down, once a client; the worker says it once. `rdkafka=error` shows it.
pub fn start() {
    let wanted = std::env::var("BERNSTREAM_LOG").unwrap_or_default();
    let filter = EnvFilter::new(format!("info,librdkafka=off,rdkafka=off,{wanted}"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second start, as in tests, keeps the first.
    let _ = if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() };
}
