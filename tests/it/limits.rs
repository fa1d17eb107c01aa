//! What memory a worker takes, and one that may not have it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use bernstream_synopsis::Positions;
#[cfg(target_os = "linux")]
use bernstream_synopsis::clock::Timestamp;
#[cfg(target_os = "linux")]
use bernstream_synopsis::grid::Span;
#[cfg(target_os = "linux")]
use bernstream_worker::scale::{
    AddedPiece, CollectedPartials, PartitionPartial, WindowAnnouncement, split_into_pieces,
};
#[cfg(target_os = "linux")]
use rand::{Rng as _, SeedableRng as _, rngs::ChaCha20Rng};

/// Runs a worker whose address space is limited to so many MB.
fn run_within(megabytes: u64) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("tests/data/lattice.toml").expect("the configuration");
    let configuration = folder.path().join("bernstream.toml");
    std::fs::write(&configuration, text).expect("it is written");
    let script = format!("ulimit -v {}; exec \"$0\" run \"$1\"", megabytes * 1024);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script, env!("CARGO_BIN_EXE_bernstream")])
        .arg(configuration)
        .env_remove("MALLOC_ARENA_MAX");
    shell.current_dir(folder.path()).output().expect("it runs")
}

#[test]
fn too_little_address_space_is_said_before_anything_starts() {
    for megabytes in [150, 250, 350, 450, 550, 650] {
        let ended = run_within(megabytes);
        let words = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(70), "{megabytes} MB: {words}");
        assert!(
            words.contains("the address space of this process is limited to"),
            "{megabytes} MB: {words}"
        );
        assert!(words.contains("memory.max"), "what to do instead: {words}");
    }
}

/// A minute of records from a file, four of each of so many keys.
fn of_keys(folder: &Path, keys: usize) {
    let list: String = (0..keys).map(|key| format!("key-{key:06}\n")).collect();
    fs::write(folder.join("keys.txt"), list).expect("it is written");
    let mut records = "time,x,key\n".to_owned();
    for record in 0..4 * keys {
        let second = record % 60;
        let x = record * 7919 % 101;
        let key = record * 7907 % keys;
        writeln!(records, "2025-01-01T00:00:{second:02}Z,{x},key-{key:06}").expect("it is text");
    }
    fs::write(folder.join("input.csv"), records).expect("it is written");
    let configuration = r#"
        pipeline = "many"
        [input]
        time = "time"
        key = { column = "key", values_file = "keys.txt", type = "text" }
        files = { path = "input.csv" }
        [windows]
        origin = "2025-01-01T00:00:00Z"
        length = "1m"
        end = "2025-01-01T00:01:00Z"
        [privacy]
        unit = "record"
        adjacency = "add_remove"
        epsilon = 1.0
        [release]
        name = "density"
        epsilon = 1.0
        degree = 40
        order = 1
        domain = [{ column = "x", min = 0, max = 100, outside = "clamp" }]
        [release.density]
        bandwidths = [5]
        [output]
        files = { path = "out" }
        [ledger]
        path = "ledger"
    "#;
    fs::write(folder.join("bernstream.toml"), configuration).expect("it is written");
}

/// The most memory that a worker of so many keys has used, and how much `check` says that it needs, in MB.
fn used_and_promised(keys: usize) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    of_keys(folder.path(), keys);
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        command
            .args(arguments)
            .arg("bernstream.toml")
            .current_dir(folder.path());
        command
    };
    let begun = command(&["ledger", "init", "--from", "2025-01-01T00:00:00Z"])
        .output()
        .expect("it runs");
    assert!(
        begun.status.success(),
        "{}",
        String::from_utf8_lossy(&begun.stderr)
    );
    let checked = command(&["check"]).output().expect("it runs");
    let words = String::from_utf8_lossy(&checked.stdout).into_owned();
    let promised = words
        .lines()
        .find_map(|line| line.trim().strip_prefix("in all ")?.split_once(' '));
    let promised = promised.filter(|(_, rest)| rest.starts_with("MB: with less it does not start"));
    let promised = promised
        .unwrap_or_else(|| panic!("{words}"))
        .0
        .parse()
        .expect("a number");

    let log = fs::File::create(folder.path().join("log")).expect("a file");
    let started = Instant::now();
    let mut worker = command(&["run"])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("it runs");
    let status = format!("/proc/{}/status", worker.id());
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
        if let Some(ended) = worker.try_wait().expect("its end is seen") {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let log = fs::read_to_string(folder.path().join("log")).expect("its log");
    assert!(
        ended.success() && log.contains("everything paid for is published"),
        "{log}"
    );
    let used: u64 = most * 1024 / 1_000_000;
    println!(
        "{keys} keys: {used} MB, `check` says {promised} MB; {:.1} s",
        started.elapsed().as_secs_f64()
    );
    (used, promised)
}

#[cfg(target_os = "linux")]
fn assert_promise_is_kept(keys: usize) {
    let (used, promised) = used_and_promised(keys);
    assert!(
        used <= promised && promised <= 2 * used,
        "{keys} keys take {used} MB, `check` says {promised} MB"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_of_many_keys_takes_no_more_memory_than_check_says() {
    assert_promise_is_kept(5000);
}

/// Minutes of a program that is not optimized: run it by its name, with `--ignored --nocapture`.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "it takes minutes and a gigabyte of memory"]
fn so_does_one_of_a_hundred_thousand_keys() {
    assert_promise_is_kept(100_000);
}

/// By how much the most memory of this process exceeds what it has now, in kB, while `work` runs.
#[cfg(target_os = "linux")]
fn memory_of(work: impl FnOnce()) -> u64 {
    let of = |name: &str| {
        let text = fs::read_to_string("/proc/self/status").expect("it runs");
        let found = text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse::<u64>()
                .ok()
        });
        found.expect("a size")
    };
    fs::write("/proc/self/clear_refs", "5").expect("the peak begins anew");
    let before = of("VmRSS:");
    work();
    of("VmHWM:").saturating_sub(before)
}

/// What the next test runs in a process of its own.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a part of the next test"]
fn unpack() {
    let at = Timestamp::from_micros;
    let announcement = WindowAnnouncement {
        version: 1,
        settings: String::new(),
        choices: String::new(),
        topic: String::new(),
        window: Span {
            start: at(0),
            end: at(1),
        },
        cutoff: at(1),
        first: at(0),
        backfill_until: None,
        ends: Positions([(0, 1)].into()),
        past: Positions::default(),
    };
    let mut bytes = vec![0; 40_000_000];
    ChaCha20Rng::seed_from_u64(1).fill_bytes(&mut bytes);
    let name = announcement.partial_name(0).expect("announced");
    let pieces = split_into_pieces(&PartitionPartial {
        name,
        partition: 0,
        bytes,
    })
    .expect("pieces");
    let mut collected = CollectedPartials::new(&announcement, 1 << 30);
    let more = memory_of(|| {
        let added = pieces
            .into_iter()
            .map(|piece| collected.add_piece(piece))
            .last();
        assert_eq!(added, Some(AddedPiece::Complete));
    });
    println!("{more} kB more");
}

/// `scale.most_megabytes` bounds what absorbers make the worker hold, also while it unpacks a partial: then its pieces and its bytes are
/// there, and nothing else.
#[cfg(target_os = "linux")]
#[test]
fn a_partial_that_is_unpacked_takes_the_memory_of_its_bytes_and_its_pieces() {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let output = command
        .args(["--ignored", "--exact", "--nocapture", "limits::unpack"])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let more = text.lines().find_map(|line| {
        line.strip_suffix(" kB more")?
            .split(' ')
            .next_back()?
            .parse::<u64>()
            .ok()
    });
    let more = more.unwrap_or_else(|| panic!("{text}"));
    // Of 40 MB, which cannot be compressed.
    assert!(more < 50_000, "{more} kB");
}
