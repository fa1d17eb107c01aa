//! The seeds of the fuzz targets, and for a few seconds what comes of changing them. The time bounds how many there are; which
//! they are, and in what order, is the same in every run.

use std::fs;
use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

#[path = "../../fuzz/inputs.rs"]
mod inputs;

/// For each of the seven; `FUZZ_SECONDS` says otherwise.
const SECONDS: u64 = 3;
const LONGEST: usize = 1 << 16;

fn run(target: &str, input: fn(&[u8])) {
    let folder = format!("fuzz/corpus/{target}");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect(&folder)
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files
        .iter()
        .map(|file| fs::read(file).expect("a seed"))
        .collect();
    assert!(!corpus.is_empty(), "{folder} has no seeds");
    for bytes in &corpus {
        try_one(target, input, bytes);
    }
    let seconds = std::env::var("FUZZ_SECONDS").map_or(SECONDS, |text| {
        text.parse().expect("FUZZ_SECONDS: a number")
    });
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut tried = 0_u64;
    while Instant::now() < end {
        try_one(target, input, &changed(&corpus, &mut rng));
        tried += 1;
    }
    println!("{target}: {} seeds, {tried} changed", corpus.len());
}

fn try_one(target: &str, input: fn(&[u8]), bytes: &[u8]) {
    if let Err(panic) = catch_unwind(|| input(bytes)) {
        let path = format!("{}/fuzz-{target}", env!("CARGO_TARGET_TMPDIR"));
        fs::write(&path, bytes).expect("the input that failed");
        eprintln!("{target} fails with the {} bytes in {path}", bytes.len());
        std::panic::resume_unwind(panic);
    }
}

/// A seed with one to eight changes.
fn changed(corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const NUMBERS: [i64; 8] = [
        0,
        -1,
        1,
        0x7f,
        0xffff,
        i32::MAX as i64,
        i32::MIN as i64,
        i64::MAX,
    ];
    let mut bytes = corpus[rng.random_range(0..corpus.len())].clone();
    for _ in 0..rng.random_range(1..=8) {
        let at = rng.random_range(0..=bytes.len());
        let end = at + rng.random_range(0..=(bytes.len() - at).min(16));
        match rng.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let number = NUMBERS[rng.random_range(0..NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][rng.random_range(0..4)].min(bytes.len() - at);
                bytes[at..at + width].copy_from_slice(&number[..width]);
            }
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let other = &corpus[rng.random_range(0..corpus.len())];
                let from = rng.random_range(0..=other.len());
                let to = from + rng.random_range(0..=(other.len() - from).min(64));
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

#[test]
fn messages_of_any_bytes() {
    run("message", inputs::message);
}

#[test]
fn records_of_any_bytes() {
    run("record", inputs::record);
}

#[test]
fn synopses_of_any_bytes() {
    run("synopsis", inputs::synopsis);
}

#[test]
fn claims_of_any_bytes() {
    run("claim", inputs::claim);
}

#[test]
fn configurations_of_any_bytes() {
    run("configuration", inputs::configuration);
}

#[test]
fn expressions_of_any_bytes() {
    run("expression", inputs::expression);
}

#[test]
fn parameters_of_any_bytes() {
    run("parameters", inputs::parameters);
}
