//! Logs for operators: text on a terminal, JSON elsewhere. They name a broken message by its offset, but never contain values,
//! keys or counts of records.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging to standard error. `BERNSTREAM_LOG` takes the filters of `tracing`, for example `debug`.
///
/// Every Kafka client would repeat each second that a broker is down; the worker logs it once. `rdkafka=error` shows all.
pub fn start_logging() {
    let wanted = std::env::var("BERNSTREAM_LOG").unwrap_or_default();
    let filter = EnvFilter::new(format!("info,librdkafka=off,rdkafka=off,{wanted}"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    // A second start, as in tests, has no effect.
    let _ = if std::io::stderr().is_terminal() {
        logs.try_init()
    } else {
        logs.json().try_init()
    };
}
