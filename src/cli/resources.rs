//! What a worker needs of memory and disk, and whether it may have it.
//!
//! A process that cannot have memory is ended by the kernel, or aborts wherever it asks next, so what is known beforehand is
//! compared with its limits before anything else starts.

mod limits;

use std::time::Duration;

pub use self::limits::check_limits;
use bernstream_config::{InputParams, ReleaseSettings, WorkerSettings, synopsis_bytes};
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::bytes_held;
use bernstream_synopsis::Basis;
use bernstream_synopsis::clock::{format_duration, saturating_micros};

/// A worker with empty windows: program, clients, ledger, bands. Measured: 28 MB, and 40 to 54 of a program that is not optimized.
const BASE: u64 = 48 << 20;
/// Messages that are fetched but not decoded: the queues of all readers together (64 MB), and a broker's answer to each (50 MB).
const QUEUED: u64 = 64 << 20;
const ANSWER: u64 = 50 << 20;
/// The least that the queue of one of many readers holds.
const LEAST_QUEUED: u64 = 8 << 20;
/// Bytes that a reader holds of the message that it decodes: its bytes, its columns, and the schema that is kept. With messages of a megabyte,
/// the most that Kafka accepts by default.
const DECODED: u64 = 8 << 20;
/// Bytes that stay of a window's message until the window is in the ledger, beside its payload: key, headers and digests, and its part of a
/// row, which is written, read again and compared. It has something to spare: with it `check` promises 261 MB for 20,000 keys of 41
/// values and 122 MB for 5,000 of 401, where 170 and 102 were measured (a program that is not optimized); that is some 2 KB a message.
const BESIDE_MESSAGE: u64 = 4500;
/// Windows between readers and the output: joined, queued (`pipeline.rs`), and being released.
const RELEASED_LATER: u64 = 6;
/// Bytes that the ledger keeps of a message and of a window until they are archived. Measured: 342 and 102 bytes.
const MESSAGE_ROW: u64 = 350;
const WINDOW_ROW: u64 = 500;
/// Bytes that counts by key keep of a user and period, whose name is short, in a hash table that is between half full and full; and of each key
/// in a list that has room for up to twice as many.
const UNIT_BYTES: u64 = 170;
const UNIT_KEY_BYTES: u64 = 40;

fn bytes_fetched(readers: u64) -> u64 {
    QUEUED.max(LEAST_QUEUED * readers) + ANSWER * readers
}

/// The most readers that hold windows: a topic with fewer partitions has fewer.
fn most_readers(settings: &WorkerSettings) -> u64 {
    match &settings.input {
        InputParams::Kafka(kafka) => u64::from(kafka.most_readers()),
        InputParams::Files(_) => 1,
    }
}

/// Memory of a worker that keeps up with its input.
fn least_memory(settings: &WorkerSettings) -> u64 {
    let open = open_windows(settings)
        .or(windows_in_all(settings))
        .unwrap_or(1);
    let held = open.saturating_mul(most_readers(settings));
    let windows = bytes_of_each(settings)
        .saturating_mul(settings.key_count() as u64)
        .saturating_mul(held);
    let released = MessageBytes::of_window(settings).total();
    BASE.saturating_add(windows)
        .saturating_add(bytes_of_work(settings))
        .saturating_add(released)
        .saturating_add(DECODED * most_readers(settings))
}

/// Bytes that are kept of the records of a window and key.
fn bytes_of_each(settings: &WorkerSettings) -> u64 {
    settings
        .releases
        .iter()
        .map(|release| bytes_held(&release.function.target.accumulator(), settings.key_count()))
        .fold(0, u64::saturating_add)
}

/// Bytes that are kept of the messages of a window while it is released: they are paid for in one transaction.
struct MessageBytes {
    /// Of the messages of one key, from releases that have one for each.
    of_key: u64,
    keys: u64,
    /// Of the tables of all keys.
    of_tables: u64,
}

impl MessageBytes {
    fn of_window(settings: &WorkerSettings) -> Self {
        let mut bytes = MessageBytes {
            of_key: 0,
            keys: settings.key_count() as u64,
            of_tables: 0,
        };
        for release in &settings.releases {
            let of_message = bytes_of_message(settings, release);
            let kind = match release.function.keyed_counts() {
                Some(_) => &mut bytes.of_tables,
                None => &mut bytes.of_key,
            };
            *kind = kind.saturating_add(of_message);
        }
        bytes
    }

    fn total(&self) -> u64 {
        let of_keys = self.of_key.saturating_mul(self.keys);
        of_keys.saturating_add(self.of_tables)
    }

    fn in_words(&self) -> String {
        let MessageBytes {
            of_key,
            keys,
            of_tables,
        } = self;
        let total = bytes_in_words(self.total());
        match (of_key, of_tables) {
            (_, 0) => format!("keys x bytes of each one's messages = {keys} x {of_key} = {total}"),
            (0, _) => format!("its tables of all keys: {total}"),
            _ => format!(
                "keys x bytes of each one's messages, and its tables of all keys = {keys} x {of_key} + {of_tables} = {total}"
            ),
        }
    }
}

fn bytes_of_message(settings: &WorkerSettings, release: &ReleaseSettings) -> u64 {
    let values = release.shape().value_count();
    let state = settings
        .noise_series(release)
        .ok()
        .flatten()
        .map_or(0, |series| series.state_bytes(values) as u64);
    // A state is read, continued, and written.
    synopsis_bytes(&release.shape(), settings.columns.key.len()) as u64 + BESIDE_MESSAGE + 3 * state
}

/// Bytes that the computation of a window and key needs.
fn bytes_of_work(settings: &WorkerSettings) -> u64 {
    settings
        .releases
        .iter()
        .map(|release| release.function.target.cost().bytes)
        .max()
        .unwrap_or(0)
}

/// Tells what a worker writes in a day.
pub fn disk_in_words(settings: &WorkerSettings) -> Vec<String> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let messages = settings.synopses_of_window() as u64;
    let mut window: u64 = 0;
    for release in &settings.releases {
        let synopses = settings.synopses_of_release(release) as u64;
        let of_each = synopsis_bytes(&release.shape(), settings.columns.key.len()) as u64;
        window = window.saturating_add(of_each.saturating_mul(synopses));
    }
    let rows = messages
        .saturating_mul(MESSAGE_ROW)
        .saturating_add(WINDOW_ROW);
    let in_a_day = windows_in(settings, DAY);
    let kept = window.saturating_mul(windows_in(settings, settings.ledger.keep_published));
    vec![
        format!(
            "a window is one row of the ledger, of about {}, and {messages} {}, of about {} in all",
            bytes_in_words(rows),
            if messages == 1 { "message" } else { "messages" },
            bytes_in_words(window)
        ),
        format!(
            "the output takes about {} a day, times its replicas, for as long as it keeps them",
            bytes_in_words(window.saturating_mul(in_a_day))
        ),
        format!(
            "the ledger keeps them for {}: about {}",
            format_duration(settings.ledger.keep_published),
            bytes_in_words(kept)
        ),
        format!(
            "and about {} a day, {} a year, until `bernstream ledger archive` moves its old rows away",
            bytes_in_words(rows.saturating_mul(in_a_day)),
            bytes_in_words(rows.saturating_mul(windows_in(settings, 365 * DAY)))
        ),
    ]
}

/// Number of windows in a time so long, as many as the grid has at most.
fn windows_in(settings: &WorkerSettings, time: Duration) -> u64 {
    let length = saturating_micros(settings.windows.grid.length()).unsigned_abs();
    let windows = saturating_micros(time).unsigned_abs().div_ceil(length);
    windows.min(windows_in_all(settings).unwrap_or(u64::MAX))
}

/// Tells what a worker keeps in memory.
pub fn memory_in_words(settings: &WorkerSettings) -> Vec<String> {
    let groups = settings.key_count() as u64;
    let kept = bytes_of_each(settings);
    let readers = most_readers(settings);
    let open = OpenWindows {
        readers,
        groups,
        kept,
    };
    let mut lines = Vec::new();
    if let Some(windows) = open_windows(settings) {
        lines.push(format!("in normal operation: {}", open.in_words(windows)));
    }
    lines.push(match windows_in_all(settings) {
        None => format!(
            "in a backfill: {} for each window",
            bytes_in_words(open.total_bytes(1))
        ),
        Some(all) => match settings.input {
            InputParams::Kafka(_) => {
                format!("in a backfill of all windows: {}", open.in_words(all))
            }
            InputParams::Files(_) => open.in_words(all),
        },
    });
    let work = bytes_of_work(settings);
    if work > 0 {
        lines.push(format!(
            "and, while a full window and key is computed: {}",
            bytes_in_words(work)
        ));
    }
    lines.push(format!(
        "and, while a window is released: {}",
        MessageBytes::of_window(settings).in_words()
    ));
    lines.extend(kept_of_users(settings));
    lines.extend(kept_of_candidates(settings));
    if let Some(scale) = &settings.scale {
        let users = if settings.windows.cap.is_some() {
            ", which take some thirty times as much once they are unpacked"
        } else {
            ""
        };
        let most = bytes_in_words(scale.most);
        lines.push(format!(
            "and up to {most} of what absorbers send of a window (scale.most_megabytes){users}"
        ));
    }
    let least = least_memory(settings);
    if let InputParams::Files(_) = &settings.input {
        // All windows are open until the files are read.
        lines.push(format!(
            "in all {}: with less it does not start",
            bytes_in_words(least)
        ));
        return lines;
    }
    // Of each reader a window waits to be handed over and one to be joined; some that are joined wait to be released.
    let waiting = groups
        .saturating_mul(kept)
        .saturating_mul(2 * readers + RELEASED_LATER);
    let absorbed = settings.scale.as_ref().map_or(0, |scale| scale.most);
    let full = least
        .saturating_add(bytes_fetched(readers))
        .saturating_add(waiting)
        .saturating_add(absorbed);
    lines.push(format!(
        "in all {} for a worker that keeps up, and {} while it reads what it has missed: with less than the first it does not start",
        bytes_in_words(least),
        bytes_in_words(full)
    ));
    lines
}

/// Tells what is kept of each user until a window closes. How many users there are is not known.
fn kept_of_users(settings: &WorkerSettings) -> Vec<String> {
    let Some(cap) = &settings.windows.cap else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if cap.records > 0 {
        lines.push(format!(
            "and, until a window closes, the records of each user and period: up to {}",
            cap.records
        ));
    }
    // A table has its own.
    let most_keys: u64 = settings.releases.iter().map(kept_keys).sum();
    if most_keys > 0 {
        lines.push(format!(
            "and, until a window closes, about {UNIT_BYTES} bytes for each user and period, and {UNIT_KEY_BYTES} for each key that is kept \
             of them, at most {most_keys}"
        ));
    }
    lines
}

/// Tells what is kept of the keys that nobody listed until a window closes, where every record is a unit.
fn kept_of_candidates(settings: &WorkerSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for release in &settings.releases {
        if let AccumulatorSpec::FoundKeys(counting) = release.function.target.accumulator()
            && let Some(bytes) = counting.most_bytes()
        {
            lines.push(format!(
                "and, of each open window and reader, the different keys that came so far: up to {} (candidates, longest)",
                bytes_in_words(bytes)
            ));
        }
    }
    lines
}

/// The most keys of a unit that a window keeps for a table: those that count, and where caps are told as many as are told apart.
fn kept_keys(release: &ReleaseSettings) -> u64 {
    let Some(counts) = release.function.keyed_counts() else {
        return 0;
    };
    let told = match release.shape().basis {
        Basis::Keys(table) => table.units.and_then(|told| told.bins.last().copied()),
        _ => None,
    };
    u64::from(told.map_or(0, |last| last.least).max(counts.max_keys))
}

/// The factors of what open windows take.
struct OpenWindows {
    readers: u64,
    groups: u64,
    /// Bytes of a window and key.
    kept: u64,
}

impl OpenWindows {
    fn total_bytes(&self, windows: u64) -> u64 {
        self.groups
            .saturating_mul(self.kept)
            .saturating_mul(self.readers)
            .saturating_mul(windows)
    }

    fn in_words(&self, windows: u64) -> String {
        let OpenWindows {
            readers,
            groups,
            kept,
        } = self;
        let bytes = bytes_in_words(self.total_bytes(windows));
        if *readers == 1 {
            format!("open windows x keys x bytes of each = {windows} x {groups} x {kept} = {bytes}")
        } else {
            let product = format!("{readers} x {windows} x {groups} x {kept}");
            format!("readers x open windows x keys x bytes of each = {product} = {bytes}")
        }
    }
}

/// Number of windows that can be open at once while the worker keeps up with Kafka; `None` for files, which have no pace.
///
/// A window is open from `start - max_future_skew` until `end + allowed_lateness + clock_slack + publish_delay`, and as long as
/// later windows overlap it. A span of length `w` contains at most `floor(w / length) + 1` starts.
fn open_windows(settings: &WorkerSettings) -> Option<u64> {
    let InputParams::Kafka(kafka) = &settings.input else {
        return None;
    };
    let rules = &settings.windows;
    let length = rules.grid.length();
    // A window stays open for the later windows that overlap it.
    let spans = [
        length,
        rules.max_future_skew,
        rules.allowed_lateness,
        kafka.clock_slack,
        settings.publish_delay,
        settings.charge_reach(),
    ];
    let open = spans
        .into_iter()
        .fold(Duration::ZERO, Duration::saturating_add);
    let count = (saturating_micros(open) / saturating_micros(length))
        .unsigned_abs()
        .saturating_add(1);
    Some(windows_in_all(settings).map_or(count, |all| count.min(all)))
}

/// Number of windows of the grid from origin to end.
pub fn windows_in_all(settings: &WorkerSettings) -> Option<u64> {
    let grid = &settings.windows.grid;
    settings
        .windows
        .end
        .map(|end| grid.count_spans(grid.origin(), end))
}

fn bytes_in_words(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} KB", count.div_ceil(1000)),
        10_000_000..10_000_000_000 => format!("{} MB", count.div_ceil(1_000_000)),
        _ => format!("{} GB", count.div_ceil(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_config::guarantee;

    fn settings(text: &str) -> WorkerSettings {
        with_readers(1, text)
    }

    fn with_readers(readers: u32, text: &str) -> WorkerSettings {
        let text = text.replacen(
            "[input.kafka]",
            &format!("[input.kafka]\nreaders = {readers}"),
            1,
        );
        WorkerSettings::parse(&text, "test").unwrap()
    }

    #[test]
    fn every_reader_holds_the_windows_that_are_open() {
        let settings = with_readers(4, FLIGHTS);
        let line = "in normal operation: readers x open windows x keys x bytes of each = 4 x 2 x 3 x 696 = 17 KB";
        assert_eq!(memory_in_words(&settings)[0], line);
        let [one, four] = [1, 4].map(|readers| least_memory(&with_readers(readers, FLIGHTS)));
        assert_eq!(four - one, 3 * (2 * 3 * 696 + DECODED));
    }

    const FLIGHTS: &str = include_str!("../../tests/data/lattice.toml");

    #[test]
    fn no_time_has_more_open_windows_than_the_bound() {
        for (length, end) in [
            ("1d", "2014-01-01T05:00:00Z"),
            ("1h", "2013-01-02T05:00:00Z"),
            ("10m", "2013-01-01T06:00:00Z"),
        ] {
            let text = FLIGHTS
                .replace("length = \"1d\"", &format!("length = \"{length}\""))
                .replace("2014-01-01T05:00:00Z", end);
            let settings = settings(&text);
            let (rules, InputParams::Kafka(kafka)) = (&settings.windows, &settings.input) else {
                panic!()
            };
            let mut most = 0;
            for second in 0..20_000 {
                let now = rules.grid.origin().plus(Duration::from_secs(second * 7));
                let end = rules.end.unwrap();
                let all = rules.grid.spans_meeting(bernstream_synopsis::grid::Span {
                    start: rules.grid.origin(),
                    end,
                });
                let is_open = |window: &bernstream_synopsis::grid::Span| {
                    let over = rules
                        .window_cutoff(*window, None)
                        .plus(kafka.clock_slack)
                        .plus(settings.publish_delay);
                    window.start <= now.plus(rules.max_future_skew) && now <= over
                };
                most = most.max(all.filter(is_open).count() as u64);
            }
            let bound = open_windows(&settings).unwrap();
            assert!(
                most <= bound && bound <= most + 1,
                "{length}: {most} {bound}"
            );
        }
    }

    #[test]
    fn the_memory_is_the_product_that_is_shown() {
        let settings = settings(FLIGHTS);
        // 84 = 4 x 210 minutes / 10 minutes, and three nodes.
        assert_eq!(
            memory_in_words(&settings)[..2],
            [
                "in normal operation: open windows x keys x bytes of each = 2 x 3 x 696 = 4176 bytes",
                "in a backfill of all windows: open windows x keys x bytes of each = 365 x 3 x 696 = 763 KB",
            ]
        );
        // 41 values, schema and metadata, and what stays of a message.
        assert_eq!(
            memory_in_words(&settings)[2],
            "and, while a window is released: keys x bytes of each one's messages = 3 x 10972 = 33 KB"
        );
        assert!(
            memory_in_words(&settings)[3]
                .starts_with("in all 59 MB for a worker that keeps up, and 179 MB while")
        );
        // Three messages of 350 bytes and a window of 500.
        assert!(
            disk_in_words(&settings)[3]
                .starts_with("and about 1550 bytes a day, 566 KB a year, until")
        );
    }

    #[test]
    fn a_table_of_all_keys_is_one_message() {
        let counts = settings(include_str!("../../config/active-users.toml"));
        let memory = memory_in_words(&counts).join("\n");
        for words in [
            "and, while a window is released: its tables of all keys: 11 KB",
            "about 170 bytes for each user and period, and 40 for each key that is kept of them, at most 1",
        ] {
            assert!(memory.contains(words), "{memory}");
        }
        assert!(!memory.contains("records of each user"), "{memory}");
        let disk = disk_in_words(&counts);
        assert!(
            disk[0].contains("1 message, of about 6410 bytes in all"),
            "{disk:?}"
        );
        let users = memory_in_words(&settings(include_str!("../../config/users.toml"))).join("\n");
        assert!(
            users.contains("the records of each user and period: up to 20")
                && !users.contains("that is kept of them"),
            "{users}"
        );
    }

    #[test]
    fn the_memory_of_partials_is_shown() {
        let with =
            |text: &str| format!("{text}\n[scale]\ntopic = \"partials\"\nkey_file = \"key\"\n");
        let said = |text: &str| memory_in_words(&settings(text)).join("\n");
        assert!(!said(FLIGHTS).contains("absorbers"));
        let line = "and up to 512 MB of what absorbers send of a window (scale.most_megabytes)\n";
        assert!(
            said(&with(FLIGHTS)).contains(line),
            "{}",
            said(&with(FLIGHTS))
        );
        let other = with(FLIGHTS) + "most_megabytes = 7";
        assert!(
            said(&other).contains("and up to 7000 KB of what absorbers send"),
            "{}",
            said(&other)
        );
        let users = said(&with(include_str!("../../config/users.toml")));
        assert!(
            users.contains("and up to 64 MB of what absorbers send")
                && users.contains("thirty times"),
            "{users}"
        );
    }

    #[test]
    fn the_memory_of_a_solver_is_shown() {
        let label = "label = { column = \"arr_delay\", above = 15 }";
        let machine = "loss = \"hinge\"\nkernel = { gaussian = { bandwidth = 0.1 } }\nc = 100\nmax_records = 5000";
        let text = FLIGHTS.replace(
            "[release.density]\nbandwidths = [10]",
            &format!("{label}\n[release.machine]\n{machine}"),
        );
        let settings = settings(&text);
        // A Gram matrix of 5,000 records, and what Newton's method takes.
        assert_eq!(
            memory_in_words(&settings).get(2).map(String::as_str),
            Some("and, while a full window and key is computed: 246 MB")
        );
        let is_slow = |text: &str| {
            guarantee::surprising_settings(&self::settings(text))
                .iter()
                .any(|note| note.contains("multiplications, some "))
        };
        assert!(is_slow(&text));
        assert!(!is_slow(
            &text.replace("publish_delay = \"1m\"", "publish_delay = \"12h\"")
        ));
    }
}
