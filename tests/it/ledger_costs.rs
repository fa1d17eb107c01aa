//! What a ledger of years costs: bytes on the disk, and the time and the memory of those who read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bernstream_config::WorkerSettings;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver::step;
use bernstream_ledger::witness::Witness;
use bernstream_ledger::witness::file::FileWitness;
use bernstream_ledger::{ClosingWindow, Ledger, Paid};
use bernstream_synopsis::grid::Span;

use crate::harness::ledger::{at, closing, folder, genesis, params, price, sealed};

const CONFIGURATION: &str = r#"
pipeline = "costs"
[input]
time = "time"
files = { path = "in" }
[windows]
origin = "1970-01-01T00:00:00Z"
length = "60s"
end = "2030-01-01T00:00:00Z"
[privacy]
unit = "record"
adjacency = "add_remove"
epsilon = 1.0
[release]
name = "costs"
epsilon = 0.4
degree = 4
order = 1
domain = [{ column = "x", min = 0, max = 1, outside = "clamp" }]
[release.density]
bandwidths = [0.5]
[output]
files = { path = "out" }
[ledger]
path = "ledger"
keep_published = "1h"
"#;

/// A sink that takes everything and keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn publish(&mut self, _: &[Paid]) -> Result<(), sink::Unpublished> {
        Ok(())
    }
}

/// A pipeline with a window a minute, as its worker keeps its ledger and a witness file: step by step, without the records.
struct Pipeline {
    folder: tempfile::TempDir,
    settings: WorkerSettings,
    ledger: Ledger,
    witness: Box<dyn Witness + Send>,
    keys: Vec<String>,
}

impl Pipeline {
    fn new(messages: usize) -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("ledger")).unwrap();
        let text = ["in", "out", "ledger"]
            .iter()
            .fold(CONFIGURATION.to_owned(), |text, name| {
                text.replace(
                    &format!("path = \"{name}\""),
                    &format!("path = \"{}\"", folder.path().join(name).display()),
                )
            });
        fs::write(folder.path().join("bernstream.toml"), text).unwrap();
        let settings = WorkerSettings::load(&folder.path().join("bernstream.toml")).unwrap();
        let mut witness = settings
            .output
            .open_witness_remembering(&settings.ledger.path)
            .unwrap();
        let genesis = genesis(at(0), &witness.identity().unwrap(), None);
        let ledger = Ledger::create(&settings.ledger, genesis).unwrap();
        let keys = (0..messages)
            .map(|key| format!("costs/key-{key}"))
            .collect();
        Pipeline {
            folder,
            settings,
            ledger,
            witness,
            keys,
        }
    }

    /// Closes, pays for, claims and publishes so many windows.
    fn pass(&mut self, windows: usize) {
        for _ in 0..windows {
            let start = self.ledger.next_window();
            let window = Span {
                start,
                end: start.plus(Duration::from_secs(60)),
            };
            let sealed = self.keys.iter().map(|key| sealed(window, key, 0)).collect();
            let closing = ClosingWindow {
                window,
                publish_at: window.end,
                charges: vec![(window, price(4))],
                sealed,
                ..closing(&self.ledger, &[], 4, 0)
            };
            self.ledger.pay_window(closing).unwrap();
            loop {
                let done = step(
                    &mut self.ledger,
                    &mut *self.witness,
                    &mut Nowhere,
                    window.end,
                )
                .unwrap();
                if !done.has_claimed && done.next_due.is_none() {
                    break;
                }
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// Runs a command of the ledger, and returns the most memory that its process has used, in bytes.
    #[cfg(target_os = "linux")]
    fn command(&self, name: &str) -> u64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        command
            .args(["ledger", name])
            .arg(self.folder.path().join("bernstream.toml"))
            .stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut most = 0;
        let ended = loop {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let now = text.lines().find_map(|line| {
                line.strip_prefix("VmHWM:")?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            });
            most = most.max(now.unwrap_or(0));
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(ended.success(), "{name}: {ended}");
        most * 1024
    }

    /// The bytes of its archives.
    fn archived(&self) -> u64 {
        let files = fs::read_dir(self.path()).unwrap().map(|file| file.unwrap());
        let archives = files.filter(|file| file.path().to_string_lossy().ends_with(".jsonl.zst"));
        archives.map(|file| file.metadata().unwrap().len()).sum()
    }

    /// What the file costs, and what of it is not the chain of rows: bytes, without free pages.
    fn costs(&self, what: &str) -> (i64, i64) {
        let file = rusqlite::Connection::open(self.path().join("ledger.sqlite")).unwrap();
        let sizes = "SELECT tbl_name = 'rows', sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY 1";
        let mut sizes = file.prepare(sizes).unwrap();
        let sizes = sizes
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(|size| size.unwrap());
        let sizes: std::collections::BTreeMap<bool, i64> = sizes.collect();
        let chain = sizes[&true];
        let beyond = sizes[&false];
        let windows = self.ledger.head().sequence as f64;
        let messages = windows * self.keys.len() as f64;
        println!(
            "{what}: {} bytes, {:.0} a window and {:.1} a message, of which the chain {:.0} and {:.1}",
            chain + beyond,
            (chain + beyond) as f64 / windows,
            (chain + beyond) as f64 / messages,
            chain as f64 / windows,
            chain as f64 / messages,
        );
        (chain + beyond, beyond)
    }
}

#[test]
fn an_old_row_costs_little_more_than_its_chain() {
    let windows = 1200;
    let messages = 12;
    let mut pipeline = Pipeline::new(messages);
    pipeline.pass(60);
    let (_, kept) = pipeline.costs("before any is dropped");
    pipeline.pass(windows - 60);
    let (_, beyond) = pipeline.costs("after keep_published");
    // The last hour keeps its messages.
    let newest = kept * 62 / 60;
    let bound = i64::try_from(windows * 500 + windows * messages * 100).unwrap();
    assert!(
        beyond - newest < bound,
        "the bound: {beyond} bytes beyond the chain"
    );
    assert!(
        beyond - newest < 200 * i64::try_from(windows).unwrap(),
        "as measured: {beyond} bytes beyond the chain"
    );
    let ledger = Ledger::inspect(&pipeline.settings.ledger).unwrap();
    let (first, last) = ledger
        .archive_rows(pipeline.ledger.head(), &mut |_| {})
        .unwrap()
        .unwrap();
    let moved = last + 1 - first;
    let archived = pipeline.archived();
    println!("{moved} windows in {archived} bytes of archive");
    // Two digests of a message and two of a row do not compress.
    assert!(
        moved > 500 && archived < moved * (200 + 12 * 100),
        "{moved} windows in {archived} bytes"
    );
    Ledger::inspect(&pipeline.settings.ledger).unwrap();
}

/// For how long this thread has been on a processor: how busy the machine is otherwise does not count.
#[cfg(target_os = "linux")]
fn busy() -> Duration {
    let counts = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(counts.split_whitespace().next().unwrap().parse().unwrap())
}

/// What publishing a message takes where so many windows have so many.
#[cfg(target_os = "linux")]
fn publishing(folder: &Path, windows: usize, messages: usize) -> Duration {
    let mut ledger = Ledger::create(&params(folder), genesis(at(0), "w", None)).unwrap();
    let keys: Vec<String> = (0..messages).map(|key| format!("key-{key}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for draw in 0..windows {
        ledger
            .pay_window(closing(&ledger, &keys, 4, draw as u64))
            .unwrap();
    }
    let head = *ledger.head();
    let ever = at(i64::MAX / 60_000_000);
    let begun = busy();
    let mut published = 0;
    loop {
        // As the worker does.
        let batch = ledger.due_messages(&head, ever, 512).unwrap();
        if batch.is_empty() {
            break;
        }
        published += batch.len();
        ledger.mark_published(&batch, at(0)).unwrap();
        ledger.next_due(&head).unwrap();
    }
    assert_eq!(published, windows * messages);
    let taken = (busy() - begun) / u32::try_from(published).unwrap();
    println!("{windows} windows of {messages} messages: {taken:?} a message");
    taken
}

#[test]
#[cfg(target_os = "linux")]
fn publishing_a_large_window_takes_no_longer_for_each_message_than_a_small_one() {
    let [small, _, large] = [(100, 60), (10, 600), (1, 6000)].map(|(windows, messages)| {
        let folder = folder();
        publishing(folder.path(), windows, messages)
    });
    assert!(
        large < 5 * small,
        "{large:?} a message in a window of 6000, {small:?} in one of 60"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn what_verifying_keeps_in_memory_of_a_message_is_little() {
    let mut pipeline = Pipeline::new(60);
    let taken = [400, 1000].map(|windows| {
        pipeline.pass(windows);
        pipeline.command("verify")
    });
    let of_a_message = taken[1].saturating_sub(taken[0]) as f64 / 60_000.0;
    println!("{taken:?} bytes: {of_a_message:.0} a message");
    assert!(
        of_a_message < 120.0,
        "{of_a_message} bytes a message, {taken:?}"
    );
}

/// Run it by its name, with `--ignored --nocapture`.
#[test]
#[ignore = "it writes a million messages"]
#[cfg(target_os = "linux")]
fn what_verifying_a_million_messages_takes() {
    let mut pipeline = Pipeline::new(60);
    for windows in [1_667, 15_000] {
        pipeline.pass(windows);
        let started = Instant::now();
        let most = pipeline.command("verify");
        println!(
            "{} messages: {most} bytes, {:?}",
            pipeline.ledger.head().sequence * 60,
            started.elapsed()
        );
    }
}

/// Passes so many windows of so many messages each, and tells what they cost.
#[cfg(target_os = "linux")]
fn tell_costs(windows: usize, messages: usize) {
    let clock = |what: &str, started: Instant| println!("  {what}: {:?}", started.elapsed());
    let mut pipeline = Pipeline::new(messages);
    println!("{windows} windows of a minute with {messages} messages each");
    pipeline.pass(60);
    pipeline.costs("  the first hour, before anything is dropped");
    let started = Instant::now();
    pipeline.pass(windows - 60);
    clock("the rest was passed in", started);
    pipeline.costs("  at the end, messages of an hour kept");
    let head = *pipeline.ledger.head();
    let params = pipeline.settings.ledger.clone();
    let starts = |mut pipeline: Pipeline| {
        let Pipeline { ledger, .. } = pipeline;
        drop(ledger);
        let started = Instant::now();
        pipeline.ledger = Ledger::open(&params).unwrap();
        clock("a start opens the ledger in", started);
        pipeline
    };
    pipeline = starts(pipeline);
    let memory = params.path.join("witness-place");
    let witness = pipeline.folder.path().join("out/witness");
    println!(
        "  the witness has {} bytes",
        fs::metadata(&witness).unwrap().len()
    );
    let started = Instant::now();
    FileWitness::open(&witness).unwrap();
    clock("the witness is read from its beginning in", started);
    let started = Instant::now();
    FileWitness::open_remembering(&witness, &memory).unwrap();
    clock("a start reads it in", started);
    let verify = |pipeline: &Pipeline| {
        let started = Instant::now();
        let most = pipeline.command("verify");
        clock(
            &format!("verified with at most {} MB in", most / 1_000_000),
            started,
        );
    };
    verify(&pipeline);
    let started = Instant::now();
    let moved = Ledger::inspect(&params)
        .unwrap()
        .archive_rows(&head, &mut |_| {})
        .unwrap();
    clock(
        &format!("{moved:?} moved to an archive, with a verification, in"),
        started,
    );
    pipeline.costs("  the ledger without them");
    let archived = pipeline.archived();
    println!(
        "  {archived} bytes of archive, {} a window and {} a message",
        archived / windows as u64,
        archived / (windows * messages) as u64
    );
    verify(&pipeline);
    let _ = starts(pipeline);
}

/// A year of a window a minute, 525,600 in all, with 12 messages each, and a month with 60: run it by its name, with `--ignored
/// --nocapture`.
#[test]
#[ignore = "it takes many minutes and three gigabytes of memory"]
#[cfg(target_os = "linux")]
fn a_year_of_messages() {
    tell_costs(30 * 24 * 60, 60);
    tell_costs(365 * 24 * 60, 12);
}
