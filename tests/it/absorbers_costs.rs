//! What absorbers cost: processor time a row, what they exchange, and what is left for the worker.

use std::fs;
use std::time::{Duration, Instant};

use bernstream_worker::metrics::{Metrics, MetricsDetail};

use crate::absorbers::{NEVER, absorber, with_scale};
use crate::harness::kafka;
use crate::readers::{PARTITIONS, WINDOWS, configuration, published_with, send_rows};

/// Rows of a message: some 400 KB.
const ROWS: usize = 10_000;

/// Processor time of a process so far; the kernel counts in hundredths of a second.
fn spent(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = text
        .rsplit(") ")
        .next()
        .expect("fields")
        .split(' ')
        .collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().expect("ticks"))
        .sum();
    Duration::from_millis(10 * ticks)
}

/// All series of this name together.
fn sum(metrics: &Metrics, name: &str) -> f64 {
    let text = metrics.render_text().expect("metrics");
    let lines = text.lines().filter(|line| line.starts_with(name));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .fold(0.0, |sum, one| sum + one)
}

/// Run it by its name, in release, on a machine that does nothing else, with `--ignored --nocapture`. `BERNSTREAM_ROWS` is how many
/// millions of rows there are, 80 if it is not set: fewer are read before absorbers have joined their group. The broker takes its share of the same machine: processor time a row is what
/// carries over to others, the rows a second are not.
#[test]
#[ignore = "it measures, and needs a machine of its own"]
#[cfg(target_os = "linux")]
fn what_a_row_costs_with_one_two_and_four_absorbers() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let millions: usize =
        std::env::var("BERNSTREAM_ROWS").map_or(80, |text| text.parse().expect("a number"));
    let messages = (millions * 1_000_000 / ROWS).div_ceil(12 * WINDOWS as usize);
    let topic = send_rows(&servers, 0, ROWS, messages);
    let rows = (12 * WINDOWS as usize * messages * ROWS) as f64;
    println!("{rows} rows in {WINDOWS} windows and {PARTITIONS} partitions");
    println!(
        "absorbers | ns a row of all absorbers | rows a second | bytes a window | worker: ms a partial, releases too"
    );
    for absorbers in [0, 1, 2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = configuration(&servers, &topic, folder, 1).replace(
            r#"{ user = { column = "user", per = "1d", max_records_per_window = 3 } }"#,
            r#""record""#,
        );
        let text = with_scale(&text, folder, if absorbers == 0 { "100ms" } else { NEVER });
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let metrics =
            Metrics::new(MetricsDetail::Operator, "costs", "pure epsilon", "").expect("metrics");
        let started = Instant::now();
        let before = spent(std::process::id());
        let running: Vec<_> = (0..absorbers).map(|_| absorber(folder, None)).collect();
        let published = published_with(&text, folder, 1, &metrics);
        let took = started.elapsed();
        let worker = spent(std::process::id()) - before;
        assert!(!published.is_empty());
        let all: Duration = running.iter().map(|process| spent(process.id())).sum();
        let partials = sum(&metrics, "bernstream_partials_total").max(1.0);
        println!(
            "{absorbers} | {:.1} | {:.0} | {:.0} | {:.1}",
            all.as_secs_f64() * 1e9 / rows,
            rows / took.as_secs_f64(),
            sum(&metrics, "bernstream_partial_bytes_total") / WINDOWS as f64,
            worker.as_secs_f64() * 1e3 / partials,
        );
    }
}
