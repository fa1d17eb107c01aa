//! Counts by key: every small stream against a plain reference, every pair of its neighbours against the claims, however the records are
//! spread over partitions, and whether intervals cover.

mod caps;
mod quantiles;
mod running;
mod unlisted;
mod variance;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bernstream_audit::trade_off::{NeighbouringStreams, WindowAttack};
use bernstream_audit::{
    AuditSubject, AuditTest, Deadline, StampSource, decode_batches, neighbours, run_pairs,
};
use bernstream_config::WorkerSettings;
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_release::source::Batch;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::window::{
    CountedKeys, DomainAxis, KeyCounting, KeyTotals, OutsideRule, RankKey, RecordLabel,
    ReleaseInput, UnitSum, WindowRules, WindowStore,
};
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{
    CountedValue, Description, KeyedCounts, PricePart, TargetDescription,
};
use bernstream_synopsis::key_parts::join_parts;
use bernstream_synopsis::key_table::{KeyReading, KeyRow};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::tables::Estimate;
use bernstream_synopsis::{
    Adjacency, Basis, KeyStatistic, NoiseDistribution, Norm, Sensitivity, Synopsis,
};
use bernstream_worker::pipeline::{PlannedRelease, ReleasePlan, ReleaseVariant, StopRequest};
use sha2::{Digest, Sha256};

use crate::batches::{Record, batch, record, rules, rules_for_users, seconds};
use crate::change::{claims, norms};
use crate::harness::exact::Opened as _;
use crate::harness::plan::plan as plan_of;

const KEYS: [&str; 3] = ["a", "b", "c"];
pub const PIPELINE: &str = "attacked";
/// Grains of a record.
const GRAINS: i128 = 1 << 31;
/// Bound of the sum of a unit: less than two records can have.
const BOUND: f64 = 15.0;
/// Seconds of a period: a window has two.
const PERIOD: u64 = 5;

/// Two caps.
#[derive(Clone, Copy, Debug)]
struct Caps {
    keys: u32,
    records: u32,
}

const CAPS: [Caps; 4] = [
    Caps {
        keys: 1,
        records: 1,
    },
    Caps {
        keys: 1,
        records: 2,
    },
    Caps {
        keys: 2,
        records: 1,
    },
    Caps {
        keys: 2,
        records: 2,
    },
];

fn counting(caps: Caps) -> KeyCounting {
    KeyCounting {
        keys: KEYS.map(str::to_owned).to_vec(),
        max_keys: caps.keys,
        max_records: caps.records,
        sum: Some(UnitSum {
            value_min: -10.0,
            value_max: 10.0,
            min: -BOUND,
            max: BOUND,
        }),
        keeps_squares: false,
        grid: None,
        unit_bins: Vec::new(),
        ranks: RankKey::for_pipeline(PIPELINE),
    }
}

/// Of records that are units of their own, which have no sums of users.
fn counting_of_records() -> KeyCounting {
    KeyCounting {
        sum: None,
        ..counting(CAPS[0])
    }
}

fn form(counting: &KeyCounting) -> ReleaseInput {
    ReleaseInput {
        axes: Vec::new(),
        label: Some(RecordLabel::Number(DomainAxis {
            min: -10.0,
            max: 10.0,
            outside: OutsideRule::Drop,
        })),
        columns: vec![0],
        accumulator: AccumulatorSpec::Keys(counting.clone().into()),
        panes: 1,
    }
}

fn with_three_keys(rules: WindowRules) -> WindowRules {
    WindowRules {
        keys: Some(KEYS.map(str::to_owned).to_vec()),
        ..rules
    }
}

/// Windows of ten seconds, periods of five, and no cap on records.
fn user_rules() -> WindowRules {
    with_three_keys(rules_for_users(0, PERIOD))
}

/// Every record is a unit.
fn record_rules() -> WindowRules {
    with_three_keys(rules())
}

fn store(rules: &WindowRules, counting: &KeyCounting) -> WindowStore {
    let first = rules.grid.span_of(seconds(0));
    WindowStore::new(
        rules.clone(),
        vec![form(counting)],
        first.start,
        first,
        None,
    )
}

fn row(user: &'static str, time: i64, key: usize, value: f64) -> Record {
    Record {
        user: Some(user),
        key: Some(KEYS[key].as_bytes()),
        ..record(time, value)
    }
}

/// The totals of the first window, by one reader.
fn totals_of(rules: &WindowRules, counting: &KeyCounting, rows: &[Record]) -> Vec<KeyTotals> {
    let mut store = store(rules, counting);
    for row in rows {
        store.absorb_batch(&batch(row));
    }
    closed_totals(&mut store)
}

fn closed_totals(store: &mut WindowStore) -> Vec<KeyTotals> {
    closed_counts(store).totals
}

fn closed_counts(store: &mut WindowStore) -> CountedKeys {
    let window = store.close_next();
    let [group] = &window.forms[0][..] else {
        panic!("one accumulator for all keys")
    };
    CountedKeys {
        totals: group.accumulator.key_totals().to_vec(),
        units: group.accumulator.unit_counts().to_vec(),
    }
}

/// The partial of the first window, by a reader of these rows.
fn partial_of(rules: &WindowRules, counting: &KeyCounting, rows: &[Record]) -> Vec<u8> {
    let mut store = store(rules, counting);
    for row in rows {
        store.absorb_batch(&batch(row));
    }
    store.close_part().canonical_bytes()
}

/// The totals of the first window, of partials that come in this order.
fn joined_totals<'a>(
    rules: &WindowRules,
    counting: &KeyCounting,
    partials: impl Iterator<Item = &'a Vec<u8>>,
) -> Vec<KeyTotals> {
    let mut store = store(rules, counting);
    let first = store.next().expect("a window");
    for partial in partials {
        assert!(store.take_part(first, partial), "{partial:?}");
    }
    closed_totals(&mut store)
}

/// SipHash-2-4, as its paper has it.
fn sip_hash(key: [u8; 16], bytes: &[u8]) -> u64 {
    fn round(v: &mut [u64; 4]) {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
    let k0 = u64::from_le_bytes(key[..8].try_into().expect("8 bytes"));
    let k1 = u64::from_le_bytes(key[8..].try_into().expect("8 bytes"));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len() / 8 * 8 + 7, 0);
    padded.push(bytes.len() as u8);
    for word in padded.chunks(8) {
        let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

/// The rank of a key of a user, as the page of proofs says it.
pub fn rank(period: i64, user: &str, key: &str) -> u64 {
    let digest = Sha256::digest(format!("bernstream keys 1{PIPELINE}"));
    let mut text = (1_000_000 * period).to_le_bytes().to_vec();
    text.extend((user.len() as u64).to_le_bytes());
    text.extend(user.as_bytes());
    text.extend(key.as_bytes());
    sip_hash(digest[..16].try_into().expect("16 bytes"), &text)
}

/// A user and the start of a period.
type Unit = (&'static str, i64);

fn unit_of(row: &Record) -> Unit {
    let period = PERIOD as i64;
    let time = row.time.expect("a time");
    (row.user.expect("a user"), time.div_euclid(period) * period)
}

fn key_of(row: &Record) -> usize {
    let key = row.key.expect("a key");
    KEYS.iter()
        .position(|known| known.as_bytes() == key)
        .expect("a declared key")
}

/// The values of a unit's records, by key.
type UnitValues = BTreeMap<usize, Vec<f64>>;

/// What a window of these rows counts, written from the page of proofs.
fn reference_totals(counting: &KeyCounting, rows: &[Record]) -> Vec<KeyTotals> {
    let mut units: BTreeMap<Unit, UnitValues> = BTreeMap::new();
    for row in rows {
        let values = units.entry(unit_of(row)).or_default();
        let values = values.entry(key_of(row)).or_default();
        values.push(row.value.expect("a value"));
    }
    let mut totals = vec![KeyTotals::default(); KEYS.len()];
    let mut users = BTreeSet::new();
    for ((user, period), values) in units {
        let mut keys: Vec<usize> = values.keys().copied().collect();
        keys.sort_by_key(|key| (rank(period, user, KEYS[*key]), *key));
        for key in keys.into_iter().take(counting.max_keys as usize) {
            add_reference(&mut totals[key], counting, &values[&key]);
            users.insert((user, key));
        }
    }
    for (_, key) in users {
        totals[key].users += 1;
    }
    totals
}

fn add_reference(totals: &mut KeyTotals, counting: &KeyCounting, values: &[f64]) {
    let n = values.len() as i128;
    let counted = n.min(counting.max_records.into());
    let sum: f64 = values.iter().sum();
    // Labels of the values in use are exact.
    let labels = (sum / 10.0 * f64::from(1 << 30)) as i128;
    let mean = counted * GRAINS * (labels + (n << 30)) / (n << 31);
    let high = match counting.keeps_squares {
        true => variance::reference_square(counted, values),
        false => mean,
    };
    let middle = match counting.keeps_squares {
        true => 2 * (mean - high),
        false => 0,
    };
    totals.records += counted;
    totals.high += high;
    totals.middle += middle;
    totals.low += counted * GRAINS - middle - high;
    if counting.sum.is_some() {
        totals.sum += (sum.clamp(-BOUND, BOUND) * GRAINS as f64 / BOUND).trunc() as i128;
    }
}

/// The rows that streams are made of: two users, two periods, three keys.
fn atoms() -> Vec<Record> {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for time in [2, 7] {
            for (key, value) in [
                (0, 10.0),
                (1, -10.0),
                (2, if time == 2 { 5.0 } else { -2.5 }),
            ] {
                atoms.push(row(user, time, key, value));
            }
        }
    }
    atoms
}

/// All ascending lists of up to `most` of so many things.
pub fn streams(things: usize, most: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut newest: Vec<Vec<usize>> = all.clone();
    for _ in 0..most {
        let mut longer = Vec::new();
        for stream in &newest {
            for thing in stream.last().copied().unwrap_or(0)..things {
                longer.push([stream.as_slice(), &[thing]].concat());
            }
        }
        all.extend(longer.iter().cloned());
        newest = longer;
    }
    all
}

fn chosen(atoms: &[Record], stream: &[usize]) -> Vec<Record> {
    stream.iter().map(|at| atoms[*at].clone()).collect()
}

/// The parts that rows go to by the digits of a number.
pub fn split_of(stream: &[usize], parts: usize, number: usize) -> Vec<Vec<usize>> {
    let mut split = vec![Vec::new(); parts];
    let mut digits = number;
    for at in stream {
        split[digits % parts].push(*at);
        digits /= parts;
    }
    split
}

/// All assignments of rows to parts are all splits in all orders of joins; what a partial is does not depend on the order of arrival.
#[test]
fn every_split_and_every_order_of_joins_counts_what_the_reference_counts() {
    let atoms = atoms();
    let rules = user_rules();
    for caps in CAPS {
        let counting = counting(caps);
        let most = if caps.keys == caps.records { 4 } else { 3 };
        let all = streams(atoms.len(), most);
        let mut partials = BTreeMap::new();
        for stream in &all {
            let mut rows = chosen(&atoms, stream);
            let bytes = partial_of(&rules, &counting, &rows);
            rows.reverse();
            assert_eq!(bytes, partial_of(&rules, &counting, &rows), "{stream:?}");
            partials.insert(stream.clone(), bytes);
        }
        let mut joins = 0;
        for stream in &all {
            let expected = reference_totals(&counting, &chosen(&atoms, stream));
            assert_eq!(
                expected,
                totals_of(&rules, &counting, &chosen(&atoms, stream)),
                "{caps:?}: {stream:?}"
            );
            let parts: usize = if stream.len() == 4 { 2 } else { 3 };
            for number in 0..parts.pow(stream.len() as u32) {
                let split = split_of(stream, parts, number);
                let found =
                    joined_totals(&rules, &counting, split.iter().map(|part| &partials[part]));
                assert_eq!(expected, found, "{caps:?}: {split:?}");
                joins += 1;
            }
        }
        println!("{caps:?}: {} streams, {joins} joins", all.len());
    }
}

/// Statistics, each with its part of the price.
type Shares = &'static [(CountedStatistic, f64)];

const OF_USERS: [Shares; 6] = [
    &[(CountedStatistic::Users, 1.0)],
    &[(CountedStatistic::Records, 1.0)],
    &[(CountedStatistic::Values, 1.0)],
    &[(CountedStatistic::Sums, 1.0)],
    &[
        (CountedStatistic::Users, 0.3),
        (CountedStatistic::Values, 0.7),
    ],
    &[
        (CountedStatistic::Users, 0.2),
        (CountedStatistic::Records, 0.3),
        (CountedStatistic::Sums, 0.5),
    ],
];

const OF_RECORDS: [Shares; 2] = [
    &[(CountedStatistic::Records, 1.0)],
    &[(CountedStatistic::Values, 1.0)],
];

fn target(counting: &KeyCounting, shares: &[(CountedStatistic, f64)], norm: Norm) -> KeyCounts {
    let mut parts = Vec::new();
    for (statistic, part) in shares {
        parts.push(StatisticShare {
            statistic: *statistic,
            part: *part,
        });
    }
    KeyCounts::new(counting.clone(), &parts, norm).expect("parts that can be drawn")
}

/// The totals of the windows of many streams.
#[derive(Default)]
struct WindowTotals {
    totals: Vec<CountedKeys>,
    /// The place of each stream.
    places: BTreeMap<Vec<usize>, usize>,
}

/// The places of the windows of neighbouring streams.
struct NeighbouringWindows {
    with: usize,
    without: usize,
}

impl WindowTotals {
    fn add(&mut self, stream: Vec<usize>, totals: Vec<KeyTotals>) {
        let units = Vec::new();
        self.add_counted(stream, CountedKeys { totals, units });
    }

    fn add_counted(&mut self, stream: Vec<usize>, counted: CountedKeys) {
        self.places.insert(stream, self.totals.len());
        self.totals.push(counted);
    }

    fn pair(&self, with: &[usize], without: &[usize]) -> NeighbouringWindows {
        NeighbouringWindows {
            with: self.places[with],
            without: self.places[without],
        }
    }

    /// The largest changes of all pairs, as parts of the claims: 1-norm, sup norm, 2-norm.
    fn largest_parts(
        &self,
        target: &KeyCounts,
        adjacency: Adjacency,
        pairs: &[NeighbouringWindows],
    ) -> [f64; 3] {
        let claimed = claims(target, adjacency, 1);
        let exact: Vec<Vec<i128>> = self
            .totals
            .iter()
            .map(|totals| target.evaluate(&Accumulator::Keys(totals.clone())).opened())
            .collect();
        let mut largest = [0.0_f64; 3];
        for pair in pairs {
            let changes = norms(&exact[pair.with], &exact[pair.without]);
            for ((largest, change), claimed) in largest.iter_mut().zip(changes).zip(claimed) {
                let part = change as f64 / claimed;
                let [with, without] = [pair.with, pair.without].map(|place| &self.totals[place]);
                assert!(part <= 1.0 + 1e-12, "{part}: {with:?} and {without:?}");
                *largest = largest.max(part);
            }
        }
        largest
    }
}

/// Nothing beyond the claims, all of them reached; a claim that is 30 % too small would have been found out.
fn assert_claims_are_reached(largest: [f64; 3], name: &str) {
    println!("{name}: {largest:.6?} of the claims");
    for part in largest {
        let of_smaller_claim = part / 0.7;
        assert!(
            part > 0.999 && of_smaller_claim > 1.0,
            "{name}: {largest:?}"
        );
    }
}

/// Every stream of up to four rows, each unit of it in and out.
#[test]
fn no_unit_changes_more_than_is_claimed_and_some_change_all_of_it() {
    let atoms = atoms();
    let rules = user_rules();
    for caps in CAPS {
        let counting = counting(caps);
        let mut windows = WindowTotals::default();
        for stream in streams(atoms.len(), 4) {
            let found = totals_of(&rules, &counting, &chosen(&atoms, &stream));
            windows.add(stream, found);
        }
        let mut pairs = Vec::new();
        for stream in windows.places.keys() {
            let units: BTreeSet<Unit> = stream.iter().map(|at| unit_of(&atoms[*at])).collect();
            for unit in units {
                let mut rest = stream.clone();
                rest.retain(|at| unit_of(&atoms[*at]) != unit);
                pairs.push(windows.pair(stream, &rest));
            }
        }
        for shares in OF_USERS {
            for norm in [Norm::One, Norm::Two] {
                let target = target(&counting, shares, norm);
                let largest = windows.largest_parts(&target, Adjacency::AddRemove, &pairs);
                let name = format!("{caps:?}, {shares:?}, {norm:?}, {} pairs", pairs.len());
                assert_claims_are_reached(largest, &name);
            }
        }
    }
}

/// A record of each key and value, one that is not valid among them.
fn lone_atoms() -> Vec<Record> {
    let mut atoms = Vec::new();
    for key in 0..KEYS.len() {
        for value in [None, Some(-10.0), Some(2.5), Some(10.0), Some(11.0)] {
            atoms.push(Record {
                value,
                ..row("u", 3, key, 0.0)
            });
        }
    }
    atoms
}

/// Records that are units of their own: one more or less, or one with other values.
#[test]
fn no_record_changes_more_than_is_claimed_and_some_change_all_of_it() {
    let atoms = lone_atoms();
    let rules = record_rules();
    let counting = counting_of_records();
    let mut windows = WindowTotals::default();
    for stream in streams(atoms.len(), 3) {
        let rows = chosen(&atoms, &stream);
        let found = totals_of(&rules, &counting, &rows);
        let partial = partial_of(&rules, &counting, &rows);
        let joined = joined_totals(&rules, &counting, [partial].iter());
        assert_eq!(found, joined, "{stream:?}");
        windows.add(stream, found);
    }
    let mut removed = Vec::new();
    let mut replaced = Vec::new();
    for stream in windows.places.keys() {
        for place in 0..stream.len() {
            let mut rest = stream.clone();
            let gone = rest.remove(place);
            removed.push(windows.pair(stream, &rest));
            for other in 0..atoms.len() {
                if atoms[other].key == atoms[gone].key {
                    let mut changed = rest.clone();
                    changed.insert(changed.partition_point(|at| *at < other), other);
                    replaced.push(windows.pair(stream, &changed));
                }
            }
        }
    }
    for shares in OF_RECORDS {
        for norm in [Norm::One, Norm::Two] {
            let target = target(&counting, shares, norm);
            for (adjacency, pairs) in [
                (Adjacency::AddRemove, &removed),
                (Adjacency::ReplaceOne, &replaced),
            ] {
                let largest = windows.largest_parts(&target, adjacency, pairs);
                assert_claims_are_reached(largest, &format!("{adjacency:?}, {shares:?}, {norm:?}"));
            }
        }
    }
    // Nobody may be replaced by another one.
    for statistic in [CountedStatistic::Users, CountedStatistic::Sums] {
        let target = target(&counting, &[(statistic, 1.0)], Norm::One);
        assert!(target.sensitivity(Adjacency::ReplaceOne, 1).is_err());
        assert!(target.sup_sensitivity(Adjacency::ReplaceOne, 1).is_err());
        assert!(
            target
                .euclidean_sensitivity(Adjacency::ReplaceOne, 1)
                .is_err()
        );
    }
}

/// A user whose key of the smallest rank is this one.
fn user_of_first_key(period: i64, first: &str) -> &'static str {
    const USERS: [&str; 12] = [
        "u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9", "u10", "u11",
    ];
    let mut users = USERS.into_iter();
    users
        .find(|user| KEYS[..2].iter().min_by_key(|key| rank(period, user, key)) == Some(&first))
        .expect("one of twelve")
}

/// Case 1 of the specification: two partitions, one key of a user counts, and which one follows from the user alone.
#[test]
fn one_user_over_two_partitions_counts_the_same_for_every_split() {
    let rules = user_rules();
    let counting = counting(CAPS[1]);
    for first in ["a", "b"] {
        let user = user_of_first_key(0, first);
        let rows = [
            row(user, 1, 0, 10.0),
            row(user, 2, 1, 10.0),
            row(user, 3, 0, 10.0),
        ];
        let whole = totals_of(&rules, &counting, &rows);
        // Both records of `a` or the one of `b`, and one user: whoever cuts by time in each partition has one of `a`, or two users.
        let expected = if first == "a" { [2, 0, 0] } else { [0, 1, 0] };
        assert_eq!(
            whole.iter().map(|key| key.records).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(whole.iter().map(|key| key.users).sum::<i128>(), 1);
        for number in 0..8 {
            let split = split_of(&[0, 1, 2], 2, number);
            let partials: Vec<Vec<u8>> = split
                .iter()
                .map(|part| partial_of(&rules, &counting, &chosen(&rows, part)))
                .collect();
            for order in [[0, 1], [1, 0]] {
                let partials = order.iter().map(|part| &partials[*part]);
                assert_eq!(
                    joined_totals(&rules, &counting, partials),
                    whole,
                    "{number}"
                );
            }
        }
    }
}

/// Case 2: a window over two days, a user with two keys in each, one day out.
#[test]
fn a_day_of_a_user_in_two_days_changes_at_most_its_own_keys() {
    let rules = user_rules();
    let counting = counting(CAPS[2]);
    let days = [
        vec![row("u", 1, 0, 10.0), row("u", 2, 1, 10.0)],
        vec![
            row("u", 6, 2, 10.0),
            row("u", 7, 0, 10.0),
            row("u", 8, 1, 10.0),
        ],
    ];
    let both = totals_of(&rules, &counting, &days.concat());
    // A cap over both days would drop keys of one for the other: four changes.
    for day in &days {
        let one = totals_of(&rules, &counting, day);
        let mut changes = 0;
        for (with, without) in both.iter().zip(&one) {
            changes += (with.users - without.users).abs();
            assert!(with.records >= without.records);
        }
        assert!(changes <= 2, "{both:?} and {one:?}");
    }
    assert!(
        both.iter().all(|key| key.users <= 1),
        "one user is counted once"
    );
}

/// The sets of keys that a user can have in case 3: none, and some of them.
const KEY_SETS: [&[usize]; 5] = [&[], &[0], &[0, 1], &[1, 2], &[0, 1, 2]];

/// Users of each key where everybody counts in the key that most users have: the careless way.
fn popular_users(sets: &[usize]) -> [i128; 3] {
    let mut popularity = [0; 3];
    for set in sets {
        for key in KEY_SETS[*set] {
            popularity[*key] += 1;
        }
    }
    let mut users = [0; 3];
    for set in sets {
        let most = KEY_SETS[*set].iter().max_by_key(|key| popularity[**key]);
        if let Some(key) = most {
            users[*key] += 1;
        }
    }
    users
}

/// Case 3: five users over three keys, one of them out: one key changes, by one.
#[test]
fn removing_one_of_five_users_changes_one_key_by_one() {
    let rules = user_rules();
    let counting = counting(CAPS[0]);
    let mut users = BTreeMap::new();
    for number in 0..5_usize.pow(5) {
        let sets: Vec<usize> = (0..5).map(|user| number / 5_usize.pow(user) % 5).collect();
        let mut rows = Vec::new();
        for (user, set) in ["u", "v", "w", "x", "y"].into_iter().zip(&sets) {
            rows.extend(KEY_SETS[*set].iter().map(|key| row(user, 1, *key, 10.0)));
        }
        let totals = totals_of(&rules, &counting, &rows);
        users.insert(sets, totals.iter().map(|key| key.users).collect::<Vec<_>>());
    }
    let mut most_of_careless = 0;
    for (sets, with) in &users {
        for user in (0..5).filter(|user| sets[*user] != 0) {
            let mut rest = sets.clone();
            rest[user] = 0;
            assert_eq!(norms(with, &users[&rest])[0], 1, "{sets:?} without {user}");
            let careless = norms(&popular_users(sets), &popular_users(&rest))[0];
            most_of_careless = most_of_careless.max(careless);
        }
    }
    assert!(
        most_of_careless >= 5,
        "{most_of_careless}: popular keys would be caught"
    );
}

/// Case 10: the grains at both ends are those of the records, whatever the values are.
#[test]
fn grains_at_both_ends_are_exactly_those_of_the_records() {
    let rules = user_rules();
    let values = [-10.0, -9.999_999, -3.3, 0.0, 0.1, 7.7, 10.0];
    for most in 1..=4 {
        let counting = counting(Caps {
            keys: 1,
            records: most,
        });
        for stream in streams(values.len(), 5) {
            let rows: Vec<Record> = stream
                .iter()
                .map(|at| row("u", 1, 0, values[*at]))
                .collect();
            let key = totals_of(&rules, &counting, &rows)[0].clone();
            let records = (rows.len() as i128).min(most.into());
            assert_eq!(
                (key.records, key.low + key.high),
                (records, records * GRAINS)
            );
            assert!(key.low >= 0 && key.high >= 0, "{stream:?}: {key:?}");
            let shares = stream.iter().map(|at| (values[*at] + 10.0) / 20.0);
            let mean = shares.sum::<f64>() / rows.len().max(1) as f64;
            let found = key.high as f64 / GRAINS as f64;
            assert!((found - mean * records as f64).abs() < 1e-8, "{stream:?}");
        }
    }
}

/// Case 12: what comes first does not order the rows.
#[test]
fn a_record_at_the_front_moves_no_row_of_the_table() {
    let counting = counting(CAPS[3]);
    for rules in [user_rules(), record_rules()] {
        let rows = [row("v", 2, 0, 10.0), row("w", 3, 2, 10.0)];
        let more = [&[row("u", 1, 1, 10.0)], &rows[..]].concat();
        let without = totals_of(&rules, &counting, &rows);
        let with = totals_of(&rules, &counting, &more);
        assert_eq!((&with[0], &with[2]), (&without[0], &without[2]));
        assert_eq!((with[1].records, without[1].records), (1, 0));
        // Windows without records have every row too.
        assert_eq!(totals_of(&rules, &counting, &[]).len(), KEYS.len());
    }
    let target = target(&counting, OF_USERS[0], Norm::One);
    let Basis::Keys(basis) = target.shape().basis else {
        panic!("a table by key")
    };
    assert_eq!(basis.keys, KEYS);
}

/// Case 19: what is no declared key is dropped alone, and nothing of it is kept.
#[test]
fn odd_keys_are_dropped_and_kept_nowhere() {
    const LONG: [u8; 257] = [b'k'; 257];
    let odd: [&'static [u8]; 9] = [
        b"",
        &LONG,
        &[0xff, 0xfe, 0x80],
        b"../x",
        b"=1+1",
        b"<script>",
        "\u{202e}a".as_bytes(),
        b"\0",
        b"a\0",
    ];
    let counting = counting(CAPS[0]);
    for rules in [user_rules(), record_rules()] {
        let sound = [row("u", 1, 0, 10.0), row("v", 2, 1, 10.0)];
        let expected = partial_of(&rules, &counting, &sound);
        for key in odd {
            let odd = Record {
                key: Some(key),
                ..row("u", 1, 0, 10.0)
            };
            let mut store = store(&rules, &counting);
            for row in [&odd, &sound[0], &odd, &sound[1]] {
                store.absorb_batch(&batch(row));
            }
            // One key of a user counts: an odd one takes no place.
            assert_eq!(store.close_part().canonical_bytes(), expected, "{key:?}");
        }
    }
}

/// A partial of one unit in the first period with these keys, records and sums of labels.
fn forged_unit(user: &str, keys: &[(u64, u64, i64)]) -> Vec<u8> {
    let mut bytes = vec![1, 0, user.len() as u8];
    bytes.extend(user.as_bytes());
    write_natural(&mut bytes, keys.len() as u128);
    for (group, records, labels) in keys {
        write_natural(&mut bytes, (*group).into());
        write_natural(&mut bytes, (*records).into());
        write_integer(&mut bytes, (*labels).into());
    }
    bytes
}

fn write_natural(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn write_integer(bytes: &mut Vec<u8>, number: i128) {
    write_natural(bytes, ((number << 1) ^ (number >> 127)) as u128);
}

fn is_taken(rules: &WindowRules, counting: &KeyCounting, bytes: &[u8]) -> bool {
    let mut store = store(rules, counting);
    let first = store.next().expect("a window");
    let is_taken = store.take_part(first, bytes);
    store.close_next();
    is_taken
}

/// Whoever has the key can write a unit that counts twice in one key, or totals that overflow when they are added.
#[test]
fn forged_partials_change_no_unit_by_more_than_its_caps() {
    let rules = user_rules();
    let counting = counting(CAPS[3]);
    let user = user_of_first_key(0, "a");
    let takes = |keys: &[(u64, u64, i64)]| is_taken(&rules, &counting, &forged_unit(user, keys));
    assert!(takes(&[(0, 1, 0)]) && takes(&[(0, 1, 0), (1, 1, 0)]));
    for refused in [
        &[][..],
        &[(0, 0, 0)],
        &[(3, 1, 0)],
        // Out of order, and more than count.
        &[(1, 1, 0), (0, 1, 0)],
        // One key twice, with other records: within both caps, and beyond what one key may change.
        &[(0, 1, 0), (0, 1, 1)],
        &[(0, 1, 0), (0, 2, 0)],
        // More than so many records can sum up to.
        &[(0, 2, (1 << 31) + 1)],
        &[(0, 2, -(1 << 31) - 1)],
        &[(0, 1, i64::MIN)],
        &[(0, 1 << 32, 0)],
    ] {
        assert!(!takes(refused), "{refused:?}");
    }
    assert!(takes(&[(0, 2, 1 << 31)]));
    // Once the number of records has stopped, their sum goes on.
    assert!(takes(&[(0, u32::MAX.into(), i64::MAX)]));
    // No unit of another window.
    let mut elsewhere = forged_unit(user, &[(0, 1, 0)]);
    let mut later = Vec::new();
    write_integer(&mut later, 10_000_000);
    elsewhere.splice(1..2, later);
    assert!(!is_taken(&rules, &counting, &elsewhere));

    let rules = record_rules();
    let of_records = |low: i128, high: i128| {
        let mut bytes = vec![1, 0];
        write_integer(&mut bytes, low);
        write_integer(&mut bytes, high);
        bytes
    };
    let largest = i128::from(i64::MAX) * GRAINS;
    assert!(is_taken(&rules, &counting, &of_records(largest, 0)));
    for (low, high) in [
        (0, 0),
        (1, 0),
        (-GRAINS, 2 * GRAINS),
        (largest, GRAINS),
        (i128::MAX - (GRAINS - 1), 0),
        (i128::MAX, i128::MAX),
        (i128::MIN, 0),
    ] {
        let bytes = of_records(low, high);
        assert!(!is_taken(&rules, &counting, &bytes), "{low} {high}");
    }
    // A thousand of the largest do not overflow.
    let mut store = store(&rules, &counting);
    let first = store.next().expect("a window");
    for _ in 0..1000 {
        assert!(store.take_part(first, &of_records(largest, 0)));
    }
    store.absorb_batch(&batch(&row("u", 1, 0, 10.0)));
    let key = closed_totals(&mut store)[0].clone();
    assert_eq!((key.low, key.high), (1000 * largest, GRAINS));
}

/// As many records as there are of a user and key do not wrap, in whatever order partials come.
#[test]
fn counts_that_stop_are_the_same_for_every_order_of_joins() {
    let rules = user_rules();
    let counting = counting(CAPS[3]);
    let large = u64::from(u32::MAX) - 1;
    let half = (large as i64) << 29;
    let partials = [
        forged_unit("u", &[(0, large, half)]),
        forged_unit("u", &[(0, 5, 5 << 30)]),
        forged_unit("u", &[(0, large, -half)]),
    ];
    let expected = joined_totals(&rules, &counting, partials.iter());
    assert_eq!(expected[0].records, 2);
    assert_eq!(expected[0].low + expected[0].high, 2 * GRAINS);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let partials = order.iter().map(|at| &partials[*at]);
        assert_eq!(joined_totals(&rules, &counting, partials), expected);
    }
}

/// The part of the price that a statistic gets is that which was asked for, also where steps are coarse.
#[test]
fn every_statistic_has_the_noise_of_its_own_part_of_the_price() {
    for records in [1, 3, 1000, 700_001, 1 << 20] {
        let counting = counting(Caps { keys: 2, records });
        for (law, price) in LAWS {
            for shares in OF_USERS {
                let target = target(&counting, shares, law.norm());
                let scale = scale_of(&target, law, price);
                let Basis::Keys(basis) = target.shape().basis else {
                    panic!("a table by key")
                };
                for (statistic, part) in shares {
                    let change = match statistic {
                        CountedStatistic::Users => 1.0,
                        CountedStatistic::Records | CountedStatistic::Values => f64::from(records),
                        CountedStatistic::Sums => BOUND,
                        CountedStatistic::Ranges | CountedStatistic::Caps => {
                            panic!("no column of its own")
                        }
                    };
                    let ideal = ideal_deviation(law, change, *part);
                    let column = basis
                        .columns
                        .iter()
                        .find(|column| column.statistic == first_column(*statistic));
                    let found = scale * column.expect("a column").unit * law_factor(law);
                    let ratio = found / ideal;
                    assert!(
                        (ratio - 1.0).abs() < 0.02,
                        "{records}, {law:?}, {shares:?}: {ratio}"
                    );
                }
            }
        }
    }
}

const LAWS: [(NoiseDistribution, &str); 2] = [
    (NoiseDistribution::DiscreteLaplace, "1"),
    (NoiseDistribution::DiscreteGaussian, "0.5"),
];

fn price_of(law: NoiseDistribution, amount: &str) -> Price {
    match law {
        NoiseDistribution::DiscreteGaussian => {
            Price::Concentrated(amount.parse().expect("a price"))
        }
        _ => Price::Pure(amount.parse().expect("a price")),
    }
}

fn mechanism(target: &KeyCounts, law: NoiseDistribution, price: &str) -> Mechanism {
    let change = target
        .sensitivity_in(law.norm(), Adjacency::AddRemove, 1)
        .expect("a claim");
    let count = target.shape().value_count();
    Mechanism::calibrated(law, change, count, price_of(law, price)).expect("noise")
}

fn scale_of(target: &KeyCounts, law: NoiseDistribution, price: &str) -> f64 {
    mechanism(target, law, price).scale().units() as f64
}

/// The deviation of noise of scale 1.
fn law_factor(law: NoiseDistribution) -> f64 {
    match law {
        NoiseDistribution::DiscreteGaussian => 1.0,
        _ => 2.0_f64.sqrt(),
    }
}

/// The deviation for two keys that change by so much, at a part of epsilon 1 or of rho 0.5.
fn ideal_deviation(law: NoiseDistribution, change: f64, part: f64) -> f64 {
    match law {
        NoiseDistribution::DiscreteGaussian => 2.0_f64.sqrt() * change / part.sqrt(),
        _ => 2.0_f64.sqrt() * 2.0 * change / part,
    }
}

fn first_column(statistic: CountedStatistic) -> KeyStatistic {
    match statistic {
        CountedStatistic::Users => KeyStatistic::Users,
        CountedStatistic::Records => KeyStatistic::Records,
        CountedStatistic::Values => KeyStatistic::Low,
        CountedStatistic::Sums => KeyStatistic::Sum,
        CountedStatistic::Ranges | CountedStatistic::Caps => panic!("no column of its own"),
    }
}

/// A release of many keys: what is told of it, and how it is drawn.
struct CoveredRelease {
    target: KeyCounts,
    about: Description,
    mechanism: Mechanism,
    totals: Vec<KeyTotals>,
    /// Units by how many keys they have, where that is told.
    units: Vec<u64>,
}

/// Number of keys of a release, each a draw.
const COVERED: usize = 40;
/// Number of releases.
const RELEASES: u32 = 75;

impl CoveredRelease {
    fn new(law: NoiseDistribution, price: &str, shares: Shares) -> Self {
        CoveredRelease::counting(counting(CAPS[3]), law, price, shares)
    }

    fn counting(
        counting: KeyCounting,
        law: NoiseDistribution,
        price: &str,
        shares: Shares,
    ) -> Self {
        let counting = KeyCounting {
            keys: (0..COVERED).map(|key| format!("key {key}")).collect(),
            ..counting
        };
        let target = target(&counting, shares, law.norm());
        let mechanism = mechanism(&target, law, price);
        let mut about: Description =
            serde_json::from_str(bernstream_synopsis::EXAMPLE).expect("the example");
        about.domain = Vec::new();
        about.key = None;
        (about.degree, about.order, about.basis) = (1, 1, target.shape().basis);
        about.smoothness = None;
        about.form_error = None;
        about.reading = None;
        about.names = None;
        about.noise.law = law;
        about.noise.scale = mechanism.scale().units() as f64;
        about.noise.grid = 1.0;
        let parts = shares.iter().map(|(statistic, part)| PricePart {
            of: format!("{statistic:?}").to_lowercase(),
            part: *part,
        });
        about.target = TargetDescription::Counts(KeyedCounts {
            max_keys: 2,
            max_records: Some(2),
            per_user: None,
            value: Some(CountedValue {
                column: "amount".to_owned(),
                min: -10.0,
                max: 10.0,
            }),
            quantiles: None,
            parts: parts.collect(),
        });
        about.band = Band::of_released_values(law, target.shape().value_count())
            .scaled_to_noise(&about.noise);
        // From a few records to many, at every share of the way.
        let mut totals = Vec::new();
        for key in 0..COVERED as i128 {
            let records = 40 + 20 * key;
            let high = records * GRAINS * (key % 9) / 8;
            totals.push(KeyTotals {
                users: 3 * key,
                records,
                low: records * GRAINS - high,
                high,
                sum: (key - 20) * GRAINS / 3,
                ..KeyTotals::default()
            });
        }
        CoveredRelease {
            target,
            about,
            mechanism,
            totals,
            units: Vec::new(),
        }
    }

    fn synopsis(&self, release: u32, times: f64) -> Synopsis {
        let mut seed = [7; 32];
        seed[..4].copy_from_slice(&release.to_le_bytes());
        let exact = self.target.evaluate(&Accumulator::Keys(CountedKeys {
            totals: self.totals.clone(),
            units: self.units.clone(),
        }));
        let plain = exact.opened();
        let noisy = self
            .mechanism
            .release_noisy(&exact, &mut Generator::frozen(seed));
        let mut values = Vec::new();
        for (noisy, plain) in noisy.values().iter().zip(plain) {
            values.push(plain as f64 + times * (noisy - plain) as f64);
        }
        let published = self.target.publish(values);
        Synopsis::new(self.about.clone(), published).expect("a synopsis")
    }

    /// What a reading says of the exact totals.
    fn exact_reading(&self, reading: KeyReading, key: usize) -> f64 {
        let totals = &self.totals[key];
        let [low, high] = [totals.low, totals.high].map(|grains| grains as f64 / GRAINS as f64);
        let has_values = matches!(&self.about.basis, Basis::Keys(basis) if basis.columns.len() > 1);
        match reading {
            KeyReading::Users => totals.users as f64,
            KeyReading::Records => totals.records as f64,
            KeyReading::Sum if has_values => 10.0 * (high - low),
            KeyReading::Sum => totals.sum as f64 * BOUND / GRAINS as f64,
            KeyReading::Mean => 10.0 * (high - low) / (low + high),
            KeyReading::Variance
            | KeyReading::Deviation
            | KeyReading::Values
            | KeyReading::Quantile(_) => panic!("no squares and no quantiles"),
        }
    }

    /// In which part of all draws each reading's interval holds the exact number, and the mean square of its error.
    fn coverage(&self, times: f64) -> BTreeMap<Cow<'static, str>, Covered> {
        let mut covered: BTreeMap<Cow<'static, str>, Covered> = BTreeMap::new();
        for release in 0..RELEASES {
            let synopsis = self.synopsis(release, times);
            let table = synopsis.key_table().expect("a table by key");
            for (place, KeyRow { estimates, .. }) in table.rows().iter().enumerate() {
                for (reading, estimate) in table.readings().iter().zip(estimates) {
                    let exact = self.exact_reading(*reading, place);
                    let covered = covered.entry(reading.name()).or_default();
                    // What is unknown is not excluded.
                    let is_held = estimate.interval.is_none_or(|interval| {
                        (interval.lower - 1e-9..=interval.upper + 1e-9).contains(&exact)
                    });
                    covered.draws += 1.0;
                    covered.held += f64::from(u8::from(is_held));
                    covered.squares += (estimate.value - exact).powi(2);
                }
            }
        }
        covered
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    draws: f64,
    held: f64,
    squares: f64,
}

#[test]
fn intervals_of_every_reading_hold_and_larger_noise_is_found_out() {
    for (law, price) in LAWS {
        for shares in [
            OF_USERS[0],
            OF_USERS[1],
            OF_USERS[2],
            OF_USERS[3],
            OF_USERS[4],
        ] {
            let release = CoveredRelease::new(law, price, shares);
            let larger = release.coverage(1.3);
            for (reading, covered) in release.coverage(1.0) {
                let part = covered.held / covered.draws;
                println!(
                    "{law:?}, {shares:?}, {reading}: {part:.4} of {}",
                    covered.draws
                );
                assert!(covered.draws >= 2000.0);
                assert!(
                    (0.94..=0.97).contains(&part),
                    "{law:?} {shares:?} {reading}: {part}"
                );
                let larger = larger[&reading].held / larger[&reading].draws;
                assert!(larger < 0.93, "{law:?} {shares:?} {reading}: {larger}");
            }
        }
    }
}

/// Columns of a key, and each the number of its different values: keys are the first so many, dealt out.
const PARTS_OF_KEYS: [(&str, usize); 2] = [("country", 20), ("shop", 2)];

impl CoveredRelease {
    /// The same keys as combinations of two columns.
    fn of_two_columns(law: NoiseDistribution, price: &str, shares: Shares) -> Self {
        let mut release = CoveredRelease::new(law, price, shares);
        release.about.key_columns = PARTS_OF_KEYS.map(|(name, _)| name.to_owned()).to_vec();
        let Basis::Keys(basis) = &mut release.about.basis else {
            panic!("a table by key")
        };
        let keys = (0..COVERED).map(|key| join_parts(&parts_of_covered(key)));
        basis.keys = keys.collect();
        release
    }

    /// The exact totals of the keys with this part.
    fn exact_sum(&self, column: usize, part: &str, reading: KeyReading) -> f64 {
        let places = (0..COVERED).filter(|key| parts_of_covered(*key)[column] == part);
        let places: Vec<usize> = places.collect();
        if reading != KeyReading::Mean {
            let numbers = places
                .iter()
                .map(|place| self.exact_reading(reading, *place));
            return numbers.sum();
        }
        let of = |reading| self.exact_sum(column, part, reading);
        of(KeyReading::Sum) / of(KeyReading::Records)
    }

    /// In which part of all draws the intervals of each reading of a margin hold the exact number.
    fn coverage_of_margins(
        &self,
        column: usize,
        times: f64,
    ) -> BTreeMap<Cow<'static, str>, Covered> {
        let mut covered: BTreeMap<Cow<'static, str>, Covered> = BTreeMap::new();
        for release in 0..RELEASES {
            let synopsis = self.synopsis(release, times);
            let table = synopsis.key_table().expect("a table by key");
            let margin = table.margin(&[PARTS_OF_KEYS[column].0]).expect("a margin");
            assert_eq!(margin.rows.len(), PARTS_OF_KEYS[column].1);
            for row in &margin.rows {
                for (reading, estimate) in margin.readings.iter().zip(&row.estimates) {
                    let exact = self.exact_sum(column, &row.parts[0], *reading);
                    let covered = covered.entry(reading.name()).or_default();
                    covered.count(*estimate, exact);
                }
            }
        }
        covered
    }

    /// The same of the shares of keys in their country, and in all.
    fn coverage_of_shares(&self, columns: &[&str], times: f64) -> Covered {
        let mut covered = Covered::default();
        for release in 0..RELEASES {
            let synopsis = self.synopsis(release, times);
            let table = synopsis.key_table().expect("a table by key");
            let shares = table.shares(columns).expect("shares");
            assert_eq!(shares.readings, [KeyReading::Records]);
            for (key, row) in shares.rows.iter().enumerate() {
                let own = self.exact_reading(KeyReading::Records, key);
                let country = parts_of_covered(key)[0].clone();
                let whole = match columns {
                    [] => (0..COVERED)
                        .map(|key| self.exact_reading(KeyReading::Records, key))
                        .sum(),
                    _ => self.exact_sum(0, &country, KeyReading::Records),
                };
                covered.count(row[0], own / whole);
            }
        }
        covered
    }
}

fn parts_of_covered(key: usize) -> [String; 2] {
    let [(_, countries), (_, shops)] = PARTS_OF_KEYS;
    [
        format!("c/{}", key % countries),
        format!("{}%", key / countries % shops),
    ]
}

impl Covered {
    fn count(&mut self, estimate: Estimate, exact: f64) {
        let is_held = estimate.interval.is_none_or(|interval| {
            (interval.lower - 1e-9..=interval.upper + 1e-9).contains(&exact)
        });
        self.draws += 1.0;
        self.held += f64::from(u8::from(is_held));
        self.squares += (estimate.value - exact).powi(2);
    }

    fn part(&self) -> f64 {
        self.held / self.draws
    }
}

/// Margins of two keys and of twenty: their noise is that of sums, and neither wider nor narrower; noise that is 1.3 times as large is
/// found out.
#[test]
fn intervals_of_margins_hold_and_larger_noise_is_found_out() {
    for (law, price) in LAWS {
        for shares in [OF_USERS[2], OF_USERS[3], OF_USERS[4]] {
            let release = CoveredRelease::of_two_columns(law, price, shares);
            for (column, (least, most)) in [(0, (0.93, 0.975)), (1, (0.88, 1.0))] {
                let larger = release.coverage_of_margins(column, 1.3);
                for (reading, covered) in release.coverage_of_margins(column, 1.0) {
                    let part = covered.part();
                    println!(
                        "{law:?}, {shares:?}, {column}, {reading}: {part:.4} of {}",
                        covered.draws
                    );
                    assert!(
                        (least..=most).contains(&part),
                        "{law:?} {shares:?} {reading}: {part}"
                    );
                    let larger = larger[&reading].part();
                    assert!(larger < part, "{law:?} {shares:?} {reading}: {larger}");
                    assert!(
                        column > 0 || larger < 0.925,
                        "{law:?} {shares:?} {reading}: {larger}"
                    );
                }
            }
        }
    }
}

#[test]
fn intervals_of_shares_hold_and_larger_noise_is_found_out() {
    for (law, price) in LAWS {
        for shares in [OF_USERS[2], OF_USERS[3], OF_USERS[4]] {
            let release = CoveredRelease::of_two_columns(law, price, shares);
            let synopsis = release.synopsis(0, 1.0);
            let table = synopsis.key_table().expect("a table by key");
            if !table.readings().contains(&KeyReading::Records) {
                assert!(table.shares(&[]).is_err());
                continue;
            }
            for columns in [&[][..], &["country"]] {
                let part = release.coverage_of_shares(columns, 1.0).part();
                let larger = release.coverage_of_shares(columns, 1.3).part();
                println!(
                    "{law:?}, {shares:?}, {columns:?}: {part:.4}, with larger noise {larger:.4}"
                );
                assert!(
                    (0.94..=0.98).contains(&part),
                    "{law:?} {shares:?} {columns:?}: {part}"
                );
                assert!(larger < 0.93, "{law:?} {shares:?} {columns:?}: {larger}");
            }
        }
    }
}

/// A user in two keys is one user, so numbers of users of a margin are no sums: there are none.
#[test]
fn users_have_no_margins() {
    let release = CoveredRelease::of_two_columns(LAWS[0].0, LAWS[0].1, OF_USERS[0]);
    let synopsis = release.synopsis(0, 1.0);
    let table = synopsis.key_table().expect("a table by key");
    match table.margin(&["country"]) {
        Ok(margin) => assert!(!margin.readings.contains(&KeyReading::Users)),
        Err(error) => assert!(error.to_string().contains("do not add up")),
    }
    assert!(!KeyReading::Users.adds_up());
    assert!(table.margin(&["device"]).is_err());
}

/// Of many draws: the tests above compare scales.
#[test]
fn errors_are_those_of_the_ideal_deviation() {
    for (law, price) in LAWS {
        let mut errors = Covered::default();
        for seed in 0..6 {
            let release = CoveredRelease::new(law, price, OF_USERS[0]);
            for number in 0..200 {
                let synopsis = release.synopsis(1000 * (seed + 1) + number, 1.0);
                for (value, totals) in synopsis.values().iter().zip(&release.totals) {
                    errors.draws += 1.0;
                    errors.squares += (value - totals.users as f64).powi(2);
                }
            }
        }
        let deviation = (errors.squares / errors.draws).sqrt();
        let ratio = deviation / ideal_deviation(law, 1.0, 1.0);
        println!(
            "{law:?}: {ratio:.4} of the ideal deviation in {} draws",
            errors.draws
        );
        assert!((ratio - 1.0).abs() < 0.02, "{law:?}: {ratio}");
    }
}

/// Means are on the scale of the value, not on that of records.
#[test]
fn the_last_of_the_top_means_is_clear_only_where_intervals_are_apart() {
    let (law, price) = LAWS[0];
    let mut release = CoveredRelease::new(law, price, OF_USERS[2]);
    for (key, totals) in release.totals.iter_mut().enumerate() {
        // Far apart, on many records: one key at 8, the others at -8.
        let records = 100_000;
        let high = records * GRAINS * if key == 3 { 9 } else { 1 } / 10;
        (totals.records, totals.high) = (records, high);
        totals.low = records * GRAINS - high;
    }
    let synopsis = release.synopsis(1, 1.0);
    let table = synopsis.key_table().expect("a table");
    let top = table.top_keys(KeyReading::Mean, 1).expect("means");
    assert_eq!((top.rows[0].key, top.is_last_unclear), ("key 3", false));
    let two = table.top_keys(KeyReading::Mean, 2).expect("means");
    assert!(two.is_last_unclear, "all others are alike");
}

/// Counts by key of users, or of records, through the configuration.
fn audited(unit: &str, release: &str, key: &str) -> WorkerSettings {
    let text = format!(
        r#"
pipeline = "audited"
[input]
time = "time"
files = {{ path = "nowhere" }}
key = {key}
[windows]
origin = "2025-01-01T12:00:00Z"
length = "1d"
end = "2025-01-05T12:00:00Z"
[privacy]
unit = {unit}
{release}
[output]
files = {{ path = "out" }}
[ledger]
path = "ledger"
"#
    );
    WorkerSettings::parse(&text, "audited").unwrap_or_else(|faults| panic!("{faults}"))
}

/// Keys of one column, and of two, whose parts have what stands between parts.
const COUNTRIES: &str = r#"{ column = "country", values = ["AT", "BR", "CH", "DE"] }"#;
const SHOPS: &str = r#"{ columns = ["country", "shop"], values = { country = ["AT", "B/R"], shop = ["a", "b%2F"] } }"#;

const USER: &str = r#"{ user = { column = "user", per = "1d" } }
adjacency = "add_remove""#;

/// Releases of users: a window of each meets two days, so each day pays twice.
const OF_A_USER: [&str; 5] = [
    r#"epsilon = 2
[release]
name = "counts"
epsilon = 1
counts = { of = ["users", "records", "mean"], max_keys = 2, max_records = 3, value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
    r#"rho = 1
[release]
name = "counts"
rho = 0.5
counts = { of = ["users", "sum"], max_keys = 3, value = { column = "amount", min = -5, max = 10, outside = "drop" }, per_user = { min = -10, max = 25 } }"#,
    r#"epsilon = 4
[release]
name = "counts"
epsilon = 1
windows = { hopping = "2d" }
counts = { of = ["users"], max_keys = 1 }"#,
    r#"epsilon = 2
[release]
name = "counts"
epsilon = 1
counts = { of = ["users", "records"], max_keys = 2, max_records = 3, caps = { part = 0.5, most = 3 } }"#,
    r#"epsilon = 2
[release]
name = "counts"
epsilon = 1
counts = { of = ["users", "variance"], max_keys = 2, max_records = 3, value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
];

const OF_A_RECORD: [[&str; 2]; 3] = [
    [
        r#""record"
adjacency = "add_remove""#,
        r#"epsilon = 1
[release]
name = "counts"
epsilon = 1
counts = { of = ["records", "sum"], value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
    ],
    [
        r#""record"
adjacency = { replace_one = { records_per_window = 500 } }"#,
        r#"epsilon = 1
[release]
name = "counts"
epsilon = 1
counts = { of = ["mean"], value = { column = "amount", min = -5, max = 10, outside = "drop" } }"#,
    ],
    [
        r#""record"
adjacency = { replace_one = { records_per_window = 500 } }"#,
        r#"rho = 0.5
[release]
name = "counts"
rho = 0.5
counts = { of = ["variance"], value = { column = "amount", min = -5, max = 10, outside = "drop" } }"#,
    ],
];

fn subject<'a>(settings: &'a WorkerSettings, plan: &'a ReleasePlan) -> AuditSubject<'a> {
    AuditSubject {
        plan,
        columns: &settings.columns,
        adjacency: settings.privacy.adjacency,
        stamps: StampSource::None,
        backfill_until: None,
    }
}

fn audited_settings() -> Vec<WorkerSettings> {
    let of_users = OF_A_USER
        .iter()
        .map(|release| audited(USER, release, COUNTRIES));
    let of_records = OF_A_RECORD
        .iter()
        .map(|[unit, release]| audited(unit, release, COUNTRIES));
    let [unit, of_records_of_shops] = OF_A_RECORD[0];
    let of_shops = [
        audited(USER, OF_A_USER[0], SHOPS),
        audited(unit, of_records_of_shops, SHOPS),
    ];
    of_users.chain(of_records).chain(of_shops).collect()
}

/// Most pairs that are replayed of each configuration.
const REPLAYED: usize = 40;

#[test]
fn an_audit_replays_counts_and_comes_near_their_claims() {
    for settings in audited_settings() {
        let plan = plan_of(&settings);
        let subject = subject(&settings, &plan);
        let mut pairs = neighbours::neighbouring_pairs(&subject);
        let is_of_users = plan.rules.cap.is_some();
        for words in ["a day of a user", "in every key"] {
            let is_there = pairs.iter().any(|pair| pair.name.contains(words));
            assert_eq!(is_there, is_of_users, "{words}");
        }
        pairs.truncate(REPLAYED);
        let report = run_pairs(&subject, &pairs, 1, || true).expect("replays");
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        assert!(report.beyond.is_empty(), "{:?}", report.beyond);
        let (place, largest) = report.largest.iter().next().expect("a change");
        println!(
            "{place:?}: {:.4} of the claim by {:?} of {} pairs",
            largest.share_of_declared(),
            largest.pair,
            report.pairs
        );
        assert!(largest.share_of_declared() > 0.99, "{largest:?}");
    }
}

/// The plan with half the noise, or with half the declared change.
fn with_half(plan: &ReleasePlan, halve: impl Fn(&ReleaseVariant) -> ReleaseVariant) -> ReleasePlan {
    let mut releases = Vec::new();
    for release in &plan.releases {
        let halved = release
            .variants
            .try_map(|variant| Ok::<_, std::convert::Infallible>(halve(variant)));
        let Ok(variants) = halved;
        releases.push(PlannedRelease {
            variants,
            ..release.clone()
        });
    }
    ReleasePlan {
        releases,
        ..plan.clone()
    }
}

fn half_change(variant: &ReleaseVariant) -> ReleaseVariant {
    ReleaseVariant {
        change: Sensitivity(variant.change.0 / 2),
        ..variant.clone()
    }
}

#[test]
fn an_audit_of_counts_with_half_the_sensitivity_fails() {
    for settings in audited_settings() {
        let plan = with_half(&plan_of(&settings), half_change);
        let subject = subject(&settings, &plan);
        let mut pairs = neighbours::neighbouring_pairs(&subject);
        pairs.truncate(REPLAYED);
        let report = run_pairs(&subject, &pairs, 1, || true).expect("replays");
        let said = report.beyond.iter().map(|(_, what)| what);
        assert!(
            said.clone().any(|what| what.contains("declared are")),
            "{report:?}"
        );
    }
}

/// Noise that was made for half the change.
fn half_noise(variant: &ReleaseVariant) -> ReleaseVariant {
    let price = Price::Pure("1".parse().expect("an epsilon"));
    let law = variant.mechanism.distribution();
    let ReleaseVariant { change, .. } = half_change(variant);
    ReleaseVariant {
        mechanism: Mechanism::calibrated(law, change, variant.touched, price).expect("noise"),
        ..variant.clone()
    }
}

#[test]
fn an_attack_on_counts_with_half_the_noise_succeeds_and_on_the_real_noise_does_not() {
    let settings = audited(USER, OF_A_USER[0], COUNTRIES);
    let sound = plan_of(&settings);
    let halved = with_half(&sound, half_noise);
    for (plan, is_sound) in [(&sound, true), (&halved, false)] {
        let subject = subject(&settings, plan);
        let pairs = neighbours::neighbouring_pairs(&subject);
        let pair = pairs
            .iter()
            .find(|pair| pair.name.contains("in every key"))
            .expect("the pair that changes most");
        let [with, without] = [&pair.with, &pair.without]
            .map(|stream| decode_batches(&subject, stream).expect("a stream"));
        let streams = NeighbouringStreams {
            with: &with,
            without: &without,
        };
        let attack = WindowAttack::new(plan, 0, streams, &subject.replayed_windows());
        let deadline = Deadline::new(
            std::time::Instant::now() + std::time::Duration::from_secs(600),
            &StopRequest::default(),
        );
        let report = attack
            .expect("an attack")
            .run_attack((1, 0), 1e-9, 3000, &deadline)
            .expect("windows");
        let has_failed = report.tests.iter().any(AuditTest::has_failed);
        assert_ne!(has_failed, is_sound, "{:?}", report.tests);
    }
}

/// Batches are made by `batches.rs`, so that what is read here is what sources hand out.
#[test]
fn a_row_without_a_user_is_dropped_alone() {
    let rules = user_rules();
    let counting = counting(CAPS[3]);
    let mut store = store(&rules, &counting);
    let nobody = Record {
        user: None,
        ..row("u", 1, 0, 10.0)
    };
    let batches: [Batch; 2] = [batch(&nobody), batch(&row("u", 1, 1, 10.0))];
    for batch in &batches {
        store.absorb_batch(batch);
    }
    let totals = closed_totals(&mut store);
    assert_eq!((totals[0].records, totals[1].records), (0, 1));
}
