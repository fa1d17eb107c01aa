//! Counts by key: a million users and 10,000 keys in one window. What a record costs, what is held of a user and key, and how long the
//! window takes from its last record to its message; beside it the same grouping by a hash map that keeps every key of every user, which is what
//! a batch job does.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::{BinaryArray, Float64Array, Int64Array};
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::source::Batch;
use bernstream_release::window::{
    Cap, DomainAxis, KeyCounting, OutsideRule, RankKey, RecordLabel, ReleaseInput, WindowRules,
    WindowStore,
};
use bernstream_release::{Dequantized, Target, ValueScaling};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;
use bernstream_synopsis::law::Norm;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const USERS: usize = 1_000_000;
const KEYS: usize = 10_000;
const MAX_KEYS: u32 = 3;
const ROWS: usize = 10_000;
const BATCHES: usize = 500;

fn main() {
    let keys: Vec<String> = (0..KEYS).map(|key| format!("key-{key:06}")).collect();
    let counting = KeyCounting {
        keys: keys.clone(),
        max_keys: MAX_KEYS,
        max_records: 4,
        sum: None,
        keeps_squares: false,
        grid: None,
        unit_bins: Vec::new(),
        ranks: RankKey::for_pipeline("bench"),
    };
    let shares =
        [CountedStatistic::Users, CountedStatistic::Values].map(|statistic| StatisticShare {
            statistic,
            part: 0.5,
        });
    let target = KeyCounts::new(counting, &shares, Norm::One).expect("a target");
    let mut windows = open_windows(&keys, &target);
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let batches: Vec<Batch> = (0..BATCHES).map(|_| batch(&keys, &mut random)).collect();
    let before = resident_bytes();
    let begun = Instant::now();
    for batch in &batches {
        black_box(windows.absorb_batch(batch));
    }
    let absorbed = begun.elapsed();
    let held = resident_bytes().saturating_sub(before);
    let records = (ROWS * BATCHES) as f64;
    println!(
        "{USERS} users, {KEYS} keys, {MAX_KEYS} of a user, {records} records: {:.0} ns a record",
        absorbed.as_secs_f64() * 1e9 / records
    );
    let pairs = group_by_hash_map(&batches, records);
    println!(
        "held {:.0} MB: {:.0} bytes a user and key that is kept (at most {pairs} before the cap)",
        held as f64 / 1e6,
        held as f64 / (USERS as f64 * f64::from(MAX_KEYS)),
    );
    let closing = Instant::now();
    let window = windows.close_next();
    let settled = closing.elapsed();
    let exact = target.evaluate(&window.forms[0][0].accumulator);
    let change = target
        .sensitivity(Adjacency::AddRemove, 1)
        .expect("a sensitivity");
    let mechanism = Mechanism::laplace(change, "1".parse().expect("a price")).expect("a mechanism");
    let mut generator = Generator::from_entropy().expect("randomness");
    let noisy = mechanism.release_noisy(&exact, &mut generator);
    let values = Dequantized::from_noisy(&noisy, &target, ValueScaling::of_target(&target));
    println!(
        "caps decided in {:.2} s, {} noisy values in {:.2} s",
        settled.as_secs_f64(),
        values.values().len(),
        closing.elapsed().as_secs_f64()
    );
}

fn open_windows(keys: &[String], target: &KeyCounts) -> WindowStore {
    let grid = SpanGrid::new(Timestamp::from_micros(0), Duration::from_secs(60)).expect("a length");
    let rules = WindowRules {
        grid,
        end: None,
        allowed_lateness: Duration::from_secs(60),
        max_future_skew: Duration::from_secs(60),
        keys: Some(keys.to_vec()),
        other: Vec::new(),
        longest_key: None,
        cap: Some(Cap {
            period: grid.into(),
            records: 0,
        }),
    };
    let form = ReleaseInput {
        axes: Vec::new(),
        label: Some(RecordLabel::Number(DomainAxis {
            min: 0.0,
            max: 100.0,
            outside: OutsideRule::Clamp,
        })),
        columns: vec![0],
        accumulator: target.accumulator(),
        panes: 1,
    };
    let first = grid.span_of(Timestamp::from_micros(0));
    WindowStore::new(rules, vec![form], first.start, first, None)
}

fn batch(keys: &[String], random: &mut ChaCha20Rng) -> Batch {
    let mut times = Vec::with_capacity(ROWS);
    let mut values = Vec::with_capacity(ROWS);
    let mut chosen = Vec::with_capacity(ROWS);
    let mut users = Vec::with_capacity(ROWS);
    for _ in 0..ROWS {
        times.push(random.random_range(0..60_000_000));
        values.push(random.random_range(-5.0..105.0));
        chosen.push(keys[random.random_range(0..KEYS)].as_bytes());
        users.push(format!("user-{:08}", random.random_range(0..USERS)));
    }
    let users: BinaryArray = users.iter().map(|user| Some(user.as_bytes())).collect();
    let chosen: BinaryArray = chosen.into_iter().map(Some).collect();
    Batch {
        partition: 0,
        offset: 0,
        message_time: Some(Timestamp::from_micros(61_000_000)),
        times: Int64Array::from(times),
        keys: Some(chosen.into()),
        units: Some(users.into()),
        values: vec![Float64Array::from(values)],
        found: None,
    }
}

/// Groups the same records by user and key without a cap; returns the number of pairs.
fn group_by_hash_map(batches: &[Batch], records: f64) -> usize {
    let before = resident_bytes();
    let begun = Instant::now();
    let mut groups: HashMap<Vec<u8>, u64> = HashMap::new();
    for batch in batches {
        let users = batch.units.as_ref().expect("users");
        let keys = batch.keys.as_ref().expect("keys");
        for row in 0..ROWS {
            let mut pair = users.get(row).expect("a user").to_vec();
            pair.extend_from_slice(&keys.get(row).expect("a key"));
            *groups.entry(pair).or_default() += 1;
        }
    }
    let held = resident_bytes().saturating_sub(before);
    println!(
        "a hash map of all users and keys: {:.0} ns a record, {:.0} MB",
        begun.elapsed().as_secs_f64() * 1e9 / records,
        held as f64 / 1e6
    );
    groups.len()
}

/// Memory of this process that is in use.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split_whitespace().nth(1).expect("pages");
    pages.parse::<u64>().expect("a number") * 4096
}
