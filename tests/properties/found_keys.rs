//! Keys that nobody listed: every small stream against a plain reference, however it is spread over partitions and joined, every pair of
//! neighbours against the claims, names that mean harm, and bytes that no reader writes.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{BinaryArray, Int64Array};
use bernstream_functions::found_key_counts::FoundKeyCounts;
use bernstream_release::Target;
use bernstream_release::source::{Batch, KeyRows};
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{
    FoundKeyCounting, FoundKeyTotals, LONGEST_UNIT, RankKey, RecordCounts, ReleaseInput, Window,
    WindowPart, WindowRules, WindowStore,
};
use bernstream_synopsis::key_parts::join_parts;
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_synopsis::{Adjacency, Basis, KeyStatistic};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::batches::{rules, rules_for_users, seconds};
use crate::harness::exact::Opened as _;
use crate::key_counts::{PIPELINE, rank, split_of, streams};
use crate::memory::{allocations_of, peak_of};

/// Seconds of a period: a window has two.
const PERIOD: i64 = 5;
/// Longest key, in bytes.
const LONGEST: usize = 256;

/// A record: its user, its event time in seconds, and its key.
#[derive(Clone, Debug, PartialEq)]
struct KeyedRow {
    user: String,
    time: i64,
    key: Option<Vec<u8>>,
}

fn row(user: &str, time: i64, key: &str) -> KeyedRow {
    KeyedRow {
        user: user.to_owned(),
        time,
        key: Some(key.as_bytes().to_vec()),
    }
}

/// One message of these rows.
fn message(rows: &[KeyedRow]) -> Batch {
    let keys = rows.iter().map(|row| row.key.as_deref());
    let users = rows.iter().map(|row| Some(row.user.as_bytes()));
    let times = rows.iter().map(|row| row.time * 1_000_000);
    Batch {
        partition: 0,
        offset: 0,
        message_time: Some(seconds(10)),
        times: times.collect::<Vec<i64>>().into(),
        keys: Some(BinaryArray::from_iter(keys).into()),
        units: Some(BinaryArray::from_iter(users).into()),
        values: Vec::new(),
        found: None,
    }
}

fn of_users(max_keys: u32) -> FoundKeyCounting {
    FoundKeyCounting {
        max_keys,
        longest: LONGEST,
        limit: None,
        ranks: RankKey::for_pipeline(PIPELINE),
    }
}

fn of_records(limit: u32) -> FoundKeyCounting {
    FoundKeyCounting {
        limit: Some(limit),
        ..of_users(1)
    }
}

/// Windows of ten seconds; users have periods of five, and records are units where there is a limit.
fn rules_of(counting: &FoundKeyCounting) -> WindowRules {
    let rules = match counting.limit {
        Some(_) => rules(),
        None => rules_for_users(0, PERIOD.unsigned_abs()),
    };
    WindowRules {
        keys: None,
        longest_key: Some(counting.longest),
        ..rules
    }
}

fn store(counting: &FoundKeyCounting) -> WindowStore {
    let rules = rules_of(counting);
    let first = rules.grid.span_of(seconds(0));
    WindowStore::new(rules, vec![form(counting)], first.start, first, None)
}

fn form(counting: &FoundKeyCounting) -> ReleaseInput {
    ReleaseInput {
        axes: Vec::new(),
        label: None,
        columns: Vec::new(),
        accumulator: AccumulatorSpec::FoundKeys(counting.clone().into()),
        panes: 1,
    }
}

/// What a reader of these rows has of the first window.
fn part_of(counting: &FoundKeyCounting, rows: &[KeyedRow]) -> WindowPart {
    let mut store = store(counting);
    store.absorb_batch(&message(rows));
    store.close_part()
}

fn bytes_of(counting: &FoundKeyCounting, rows: &[KeyedRow]) -> Vec<u8> {
    part_of(counting, rows).canonical_bytes()
}

fn totals_of(counting: &FoundKeyCounting, rows: &[KeyedRow]) -> FoundKeyTotals {
    totals_in(&part_of(counting, rows).into_window())
}

fn totals_in(window: &Window) -> FoundKeyTotals {
    let [group] = &window.forms[0][..] else {
        panic!("one accumulator for all keys")
    };
    assert_eq!(group.key, None);
    group.accumulator.found_keys().expect("found keys").clone()
}

/// A reader that has taken partials of the first window in this order.
fn joined<'a>(
    counting: &FoundKeyCounting,
    partials: impl IntoIterator<Item = &'a Vec<u8>>,
) -> WindowStore {
    let mut store = store(counting);
    let first = store.next().expect("a window");
    for partial in partials {
        assert!(store.take_part(first, partial), "{partial:?}");
    }
    store
}

/// Joins the parts of readers in this order, every part by itself and through its bytes: the totals are these, and the bytes of all parts
/// together are those of one reader.
fn assert_joins(
    counting: &FoundKeyCounting,
    parts: &[Vec<KeyedRow>],
    expected: &FoundKeyTotals,
    whole: &[u8],
) {
    let mut opened = part_of(counting, &parts[0]);
    for part in &parts[1..] {
        opened.join_part(part_of(counting, part));
    }
    let name = format!("{counting:?}: {parts:?}");
    assert!(totals_in(&opened.into_window()) == *expected, "{name}");
    let partials: Vec<Vec<u8>> = parts.iter().map(|part| bytes_of(counting, part)).collect();
    let found = totals_in(&joined(counting, &partials).close_next());
    assert!(found == *expected, "{name}");
    let bytes = joined(counting, &partials).close_part().canonical_bytes();
    assert_eq!(bytes, whole, "{name}");
}

/// A user, and the start of a period.
type Unit = (String, i64);

fn unit_of(row: &KeyedRow) -> Unit {
    (row.user.clone(), row.time.div_euclid(PERIOD) * PERIOD)
}

fn text_of(row: &KeyedRow) -> String {
    String::from_utf8(row.key.clone().expect("a key")).expect("text")
}

/// Users of each key, written from the specification: of each unit the keys of the smallest ranks, each user once.
fn reference_users(counting: &FoundKeyCounting, rows: &[KeyedRow]) -> FoundKeyTotals {
    let mut units: BTreeMap<Unit, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        units.entry(unit_of(row)).or_default().insert(text_of(row));
    }
    let mut pairs = BTreeSet::new();
    for ((user, period), keys) in units {
        let mut ranked = Vec::new();
        for key in keys {
            ranked.push((rank(period, &user, &key), key));
        }
        ranked.sort();
        ranked.truncate(counting.max_keys as usize);
        pairs.extend(ranked.into_iter().map(|(_, key)| (key, user.clone())));
    }
    let mut counts = BTreeMap::new();
    for (key, _) in pairs {
        *counts.entry(key).or_default() += 1;
    }
    let is_full = false;
    FoundKeyTotals { counts, is_full }
}

/// Records of each key, or nothing where there are as many keys as the limit.
fn reference_records(counting: &FoundKeyCounting, rows: &[KeyedRow]) -> FoundKeyTotals {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(text_of(row)).or_default() += 1;
    }
    let is_full = counts.len() >= counting.limit.expect("a limit") as usize;
    if is_full {
        counts.clear();
    }
    FoundKeyTotals { counts, is_full }
}

/// The change of all numbers together.
fn change(with: &FoundKeyTotals, without: &FoundKeyTotals) -> u64 {
    let keys: BTreeSet<&String> = with.counts.keys().chain(without.counts.keys()).collect();
    let changes = keys
        .into_iter()
        .map(|key| count_of(with, key).abs_diff(count_of(without, key)));
    changes.sum()
}

fn count_of(totals: &FoundKeyTotals, key: &str) -> u64 {
    totals.counts.get(key).copied().unwrap_or(0)
}

/// Two users, two periods, three keys.
fn atoms() -> Vec<KeyedRow> {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for time in [2, 7] {
            for key in ["a", "b", "c"] {
                atoms.push(row(user, time, key));
            }
        }
    }
    atoms
}

fn chosen(atoms: &[KeyedRow], stream: &[usize]) -> Vec<KeyedRow> {
    stream.iter().map(|at| atoms[*at].clone()).collect()
}

/// All assignments of rows to parts are all splits in all orders of joins.
#[test]
fn every_split_and_every_order_of_joins_finds_what_the_reference_finds() {
    let atoms = atoms();
    for max_keys in [1, 2] {
        let counting = of_users(max_keys);
        let mut joins = 0;
        for stream in streams(atoms.len(), 4) {
            let mut rows = chosen(&atoms, &stream);
            let expected = reference_users(&counting, &rows);
            let bytes = bytes_of(&counting, &rows);
            assert!(totals_of(&counting, &rows) == expected, "{rows:?}");
            rows.reverse();
            assert_eq!(bytes, bytes_of(&counting, &rows), "{rows:?}");
            let parts: usize = if stream.len() == 4 { 2 } else { 3 };
            for number in 0..parts.pow(stream.len() as u32) {
                let split = split_of(&stream, parts, number);
                let split: Vec<_> = split.iter().map(|part| chosen(&atoms, part)).collect();
                assert_joins(&counting, &split, &expected, &bytes);
                joins += 1;
            }
        }
        println!("{max_keys} keys of a unit: {joins} joins");
    }
}

/// Case 1 of the specification: whoever keeps the first key by time in each partition counts two users, or a key that others push out.
#[test]
fn one_user_over_two_partitions_is_in_one_key_for_every_split() {
    let counting = of_users(1);
    for user in ["u0", "u1", "u2", "u3", "u4"] {
        let rows = [row(user, 1, "a"), row(user, 2, "b"), row(user, 3, "a")];
        let smallest = if rank(0, user, "a") < rank(0, user, "b") {
            "a"
        } else {
            "b"
        };
        let expected = FoundKeyTotals {
            counts: BTreeMap::from([(smallest.to_owned(), 1)]),
            is_full: false,
        };
        let whole = bytes_of(&counting, &rows);
        for number in 0..8 {
            let split = split_of(&[0, 1, 2], 2, number);
            let split: Vec<_> = split.iter().map(|part| chosen(&rows, part)).collect();
            assert_joins(&counting, &split, &expected, &whole);
        }
    }
}

/// Every stream of up to four rows, each unit of it in and out.
#[test]
fn no_unit_changes_more_keys_than_it_may_have_and_some_change_as_many() {
    let atoms = atoms();
    for max_keys in [1, 2] {
        let counting = of_users(max_keys);
        let mut largest = 0;
        for stream in streams(atoms.len(), 4) {
            let rows = chosen(&atoms, &stream);
            let with = totals_of(&counting, &rows);
            for unit in rows.iter().map(unit_of).collect::<BTreeSet<Unit>>() {
                let mut rest = rows.clone();
                rest.retain(|row| unit_of(row) != unit);
                let found = change(&with, &totals_of(&counting, &rest));
                assert!(found <= u64::from(max_keys), "{rows:?} without {unit:?}");
                largest = largest.max(found);
            }
        }
        assert_eq!(largest, u64::from(max_keys));
    }
}

/// Case 2: a cap over both days would push keys of one out for those of the other, four changes.
#[test]
fn a_day_of_a_user_in_two_days_changes_at_most_the_keys_of_that_day() {
    let counting = of_users(2);
    for user in ["u", "v", "w", "x"] {
        let days = [
            vec![row(user, 1, "a"), row(user, 2, "b")],
            vec![row(user, 6, "c"), row(user, 7, "d")],
        ];
        let both = totals_of(&counting, &days.concat());
        assert_eq!(both.counts.len(), 4, "each day has a cap of its own");
        for day in &days {
            assert_eq!(change(&both, &totals_of(&counting, day)), 2);
        }
        // The same keys on both days are of one user.
        let again = [days[0].clone(), vec![row(user, 6, "a"), row(user, 7, "b")]].concat();
        assert!(totals_of(&counting, &again) == totals_of(&counting, &days[0]));
    }
}

/// Case 3: five users with any of three keys, one of them gone. Whoever keeps the key of a user that most have changes others'.
#[test]
fn one_of_five_users_changes_one_key_by_one() {
    const USERS: [&str; 5] = ["v", "w", "x", "y", "z"];
    const SETS: usize = 8;
    let counting = of_users(1);
    let mut all = Vec::new();
    for number in 0..SETS.pow(5) {
        let mut rows = Vec::new();
        let mut digits = number;
        for user in USERS {
            for (place, key) in ["a", "b", "c"].into_iter().enumerate() {
                if ((digits % SETS) >> place) & 1 == 1 {
                    rows.push(row(user, 1, key));
                }
            }
            digits /= SETS;
        }
        all.push(totals_of(&counting, &rows));
    }
    for (number, with) in all.iter().enumerate() {
        for place in 0..USERS.len() as u32 {
            let step = SETS.pow(place);
            let keys = number / step % SETS;
            let found = change(with, &all[number - keys * step]);
            assert_eq!(found, u64::from(keys > 0), "{number} without {place}");
        }
    }
}

/// All lists of so many of these keys.
fn orders(keys: &[&str], length: usize) -> Vec<Vec<KeyedRow>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        let mut longer = Vec::new();
        for list in &all {
            for key in keys {
                longer.push([list.as_slice(), &[row("u", 1, key)]].concat());
            }
        }
        all = longer;
    }
    all
}

/// Different keys as the test of their number sees them.
fn keys_up_to_limit(totals: &FoundKeyTotals, counting: &FoundKeyCounting) -> usize {
    match totals.is_full {
        true => counting.limit.expect("a limit") as usize,
        false => totals.counts.len(),
    }
}

/// Case 4: whoever evicts the key with the fewest records changes 7. The number of keys changes by 1 as well, and does not depend on order.
#[test]
fn one_of_seven_records_changes_one_number_by_one_or_the_window_is_full() {
    for limit in [2, 3, 4] {
        let counting = of_records(limit);
        let mut known = BTreeMap::new();
        let mut removed = 0;
        for length in 0..=7 {
            for rows in orders(&["a", "b", "c"], length) {
                let totals = totals_of(&counting, &rows);
                assert!(totals == reference_records(&counting, &rows), "{rows:?}");
                for place in 0..rows.len() {
                    let mut rest = rows.clone();
                    rest.remove(place);
                    let keys: Vec<String> = rest.iter().map(text_of).collect();
                    let without: &FoundKeyTotals = &known[&keys];
                    let numbers = [&totals, without].map(|t| keys_up_to_limit(t, &counting));
                    assert!(numbers[0].abs_diff(numbers[1]) <= 1, "{rows:?}, {place}");
                    if !totals.is_full && !without.is_full {
                        assert_eq!(change(&totals, without), 1, "{rows:?}, {place}");
                        removed += 1;
                    }
                }
                known.insert(rows.iter().map(text_of).collect::<Vec<_>>(), totals);
            }
        }
        println!("limit {limit}: {} streams, {removed} removals", known.len());
        assert!(removed > 20);
    }
}

/// Each part by itself may have room where all together have not.
#[test]
fn records_joined_in_any_order_are_those_of_one_reader_also_where_they_are_full() {
    for limit in [2, 3, 4] {
        let counting = of_records(limit);
        let mut full_of_none = 0;
        for length in 0..=5 {
            for rows in orders(&["a", "b", "c", "d"], length) {
                let expected = reference_records(&counting, &rows);
                let whole = bytes_of(&counting, &rows);
                let places: Vec<usize> = (0..rows.len()).collect();
                for number in 0..3_usize.pow(length.min(3) as u32) {
                    let split = split_of(&places, 3, number * 7);
                    let split: Vec<_> = split.iter().map(|part| chosen(&rows, part)).collect();
                    assert_joins(&counting, &split, &expected, &whole);
                    let mut parts = split.iter().map(|part| totals_of(&counting, part));
                    full_of_none += u32::from(expected.is_full && !parts.any(|part| part.is_full));
                }
            }
        }
        println!("limit {limit}: {full_of_none} full joins of parts that are not");
        assert!(full_of_none > 0);
    }
}

/// Correction 1 of the specification: the join of two parts with room is full.
#[test]
fn a_join_is_full_where_no_part_is() {
    let counting = of_records(3);
    let one = vec![row("u", 1, "p"), row("u", 1, "q")];
    let many = [vec![row("u", 1, "r")], vec![row("u", 2, "z"); 100]].concat();
    for parts in [[&one, &many], [&many, &one]] {
        for part in parts {
            assert!(!totals_of(&counting, part).is_full);
        }
        let partials = parts.map(|part| bytes_of(&counting, part));
        let mut store = joined(&counting, &partials);
        let totals = totals_in(&store.close_next());
        assert!(totals.is_full && totals.counts.is_empty());
        // A part that is full keeps nothing, and says so to whoever joins it.
        let full = joined(&counting, &partials).close_part().canonical_bytes();
        assert_eq!(full, [0, 1]);
        let last = bytes_of(&counting, &[row("u", 1, "p")]);
        for order in [[&full, &last], [&last, &full]] {
            let totals = totals_in(&joined(&counting, order).close_next());
            assert!(totals.is_full && totals.counts.is_empty());
        }
    }
    // One key fewer than the limit is counted, as many as it are not.
    for (keys, is_full) in [(2, false), (3, true), (4, true)] {
        let rows: Vec<KeyedRow> = (0..keys).map(|key| row("u", 1, &key.to_string())).collect();
        assert_eq!(totals_of(&counting, &rows).is_full, is_full, "{keys}");
    }
}

/// Keys that are dropped: of their own records alone.
fn dropped_keys() -> Vec<Option<Vec<u8>>> {
    vec![
        None,
        Some(Vec::new()),
        Some(vec![b'x'; 257]),
        Some(vec![b'x'; 1 << 20]),
        Some(b"\xff".to_vec()),
        Some(b"caf\xe9".to_vec()),
        Some(b"\xed\xa0\x80".to_vec()),
        Some(b"\xc0\x80".to_vec()),
        // A letter that is cut after 256 bytes.
        Some([vec![b'x'; 255], "\u{e9}".as_bytes().to_vec()].concat()),
    ]
}

/// Keys that are data like any other.
fn odd_keys() -> Vec<String> {
    let mut odd: Vec<String> = [
        "../x",
        "/",
        "=1+1",
        "<script>",
        "\u{202e}gnp.exe",
        "\0",
        "a\0",
        "\n",
        "\"",
        "%2F",
        " ",
        "e\u{301}",
        "\u{e9}",
        "\u{10ffff}",
    ]
    .map(str::to_owned)
    .to_vec();
    odd.push("x".repeat(256));
    odd
}

fn with_key(user: &str, key: Option<Vec<u8>>) -> KeyedRow {
    KeyedRow {
        key,
        ..row(user, 1, "")
    }
}

/// Case 19, in windows: no key affects a record but its own.
#[test]
fn keys_that_mean_harm_are_dropped_or_counted_as_they_are() {
    for counting in [of_users(100), of_records(1000)] {
        let mut rows = vec![row("u", 1, "home"), row("v", 1, "home")];
        let mut expected = BTreeMap::from([("home".to_owned(), 2)]);
        for (place, key) in odd_keys().into_iter().enumerate() {
            for user in ["u", "v", "w"].into_iter().take(place % 3 + 1) {
                rows.push(row(user, 1, &key));
                *expected.entry(key.clone()).or_default() += 1;
            }
        }
        let sound = totals_of(&counting, &rows);
        assert!(sound.counts == expected && !sound.is_full);
        let bytes = bytes_of(&counting, &rows);
        let taken = rows.len() as u64;
        let dropped = dropped_keys();
        for (place, key) in dropped.iter().enumerate() {
            rows.insert(3 * place, with_key("u", key.clone()));
            rows.push(with_key("nobody", key.clone()));
        }
        let mut store = store(&counting);
        let counts = store.absorb_batch(&message(&rows));
        let expected_counts = RecordCounts {
            taken,
            unknown_key: 2 * dropped.len() as u64,
            ..RecordCounts::default()
        };
        assert_eq!(counts, expected_counts);
        let window = store.close_next();
        assert!(totals_in(&window) == sound);
        assert_eq!(bytes_of(&counting, &rows), bytes);
        let shown = format!("{window:?} {:?}", totals_in(&window));
        assert!(
            !shown.contains("home") && !shown.contains("script"),
            "{shown}"
        );
        // Through bytes as well.
        assert!(totals_in(&joined(&counting, [&bytes]).close_next()) == sound);
    }
}

/// Without rules for keys the form still takes nothing that is no key.
#[test]
fn a_message_without_keys_finds_none() {
    for counting in [of_users(2), of_records(5)] {
        let mut store = store(&counting);
        let batch = Batch {
            keys: None,
            ..message(&[row("u", 1, "a")])
        };
        assert_eq!(store.absorb_batch(&batch).unknown_key, 1);
        let empty = totals_in(&store.close_next());
        assert!(empty == FoundKeyTotals::default());
        assert_eq!(bytes_of(&counting, &[]), [0, 0]);
    }
}

/// A key of two columns is one text, and its parts as they stand do not make it another one.
#[test]
fn keys_of_several_columns_are_their_joined_texts() {
    // 5 + 1 + 250 bytes: as long as a key can be.
    let longest = "y".repeat(250);
    let longer = "y".repeat(251);
    let parts: [[Option<&[u8]>; 2]; 9] = [
        [Some(b"DE"), Some(b"7")],
        [Some(b"DE/7"), Some(b"")],
        [Some(b""), Some(b"DE/7")],
        [None, Some(b"7")],
        [Some(b"DE"), None],
        [Some(b"D\xff"), Some(b"7")],
        [Some(b"DE%"), Some(longest.as_bytes())],
        [Some(b"DE%"), Some(longer.as_bytes())],
        [Some(b"DE"), Some(b"7")],
    ];
    let columns = [
        BinaryArray::from_iter(parts.iter().map(|part| part[0])),
        BinaryArray::from_iter(parts.iter().map(|part| part[1])),
    ];
    let users = ["u", "v", "u", "v", "u", "v", "u", "v", "w"];
    let batch = Batch {
        times: Int64Array::from(vec![1_000_000; parts.len()]),
        keys: KeyRows::of_parts(columns.map(Into::into).to_vec()),
        units: Some(BinaryArray::from_iter(users.map(|user| Some(user.as_bytes()))).into()),
        ..message(&[])
    };
    let expected = BTreeMap::from([
        (join_parts(&["DE", "7"]), 2),
        (join_parts(&["DE/7", ""]), 1),
        (join_parts(&["", "DE/7"]), 1),
        (join_parts(&["DE%", &longest]), 1),
    ]);
    for counting in [of_users(100), of_records(1000)] {
        let mut store = store(&counting);
        assert_eq!(store.absorb_batch(&batch).unknown_key, 4);
        let found = totals_in(&store.close_next());
        assert_eq!(found.counts, expected);
    }
}

fn natural(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    natural(bytes, text.len() as u64);
    bytes.extend(text);
}

/// A unit as partials have it: the start of its period in seconds, its user, and the places of its keys.
#[derive(Clone)]
struct SentUnit {
    period: i64,
    user: Vec<u8>,
    keys: Vec<u64>,
}

fn sent_users(names: &[&[u8]], units: &[SentUnit]) -> Vec<u8> {
    let mut bytes = Vec::new();
    natural(&mut bytes, names.len() as u64);
    for name in names {
        text(&mut bytes, name);
    }
    natural(&mut bytes, units.len() as u64);
    for unit in units {
        let micros = 1_000_000 * unit.period;
        natural(&mut bytes, (micros << 1 ^ micros >> 63).cast_unsigned());
        text(&mut bytes, &unit.user);
        natural(&mut bytes, unit.keys.len() as u64);
        for key in &unit.keys {
            natural(&mut bytes, *key);
        }
    }
    bytes
}

fn is_taken(counting: &FoundKeyCounting, bytes: &[u8]) -> bool {
    let mut store = store(counting);
    let first = store.next().expect("a window");
    let is_taken = store.take_part(first, bytes);
    store.close_next();
    is_taken
}

/// Places of `a` and `b` in the order of their ranks.
fn ranked_pair(period: i64, user: &str) -> Vec<u64> {
    match rank(period, user, "a") < rank(period, user, "b") {
        true => vec![0, 1],
        false => vec![1, 0],
    }
}

/// Whoever has the key of partials can write what no reader would.
#[test]
fn units_that_no_reader_has_are_refused() {
    let counting = of_users(2);
    let names: [&[u8]; 2] = [b"a", b"b"];
    let unit = |period, user: &str| SentUnit {
        period,
        user: user.as_bytes().to_vec(),
        keys: ranked_pair(period, user),
    };
    let sound = [unit(0, "u"), unit(0, "v"), unit(5, "u")];
    let bytes = sent_users(&names, &sound);
    let rows = [[0, 1], [5, 6]].map(|[one, other]| {
        let both = ["u", "v"].map(|user| [row(user, one, "a"), row(user, other - 1, "b")]);
        both.concat()
    });
    let rows: Vec<KeyedRow> = rows.concat().into_iter().collect();
    let rows: Vec<KeyedRow> = rows
        .into_iter()
        .filter(|row| row.time < 5 || row.user == "u")
        .collect();
    assert_eq!(bytes, bytes_of(&counting, &rows), "as a reader writes it");
    assert!(is_taken(&counting, &bytes));
    for end in 0..bytes.len() {
        assert!(!is_taken(&counting, &bytes[..end]), "{end}");
    }
    assert!(!is_taken(&counting, &[bytes.as_slice(), &[0]].concat()));

    // Names.
    let one = |names: &[&[u8]], keys: Vec<u64>| {
        let user = unit(0, "u");
        sent_users(names, &[SentUnit { keys, ..user }])
    };
    let longest = [b'x'; LONGEST];
    let longer = [b'x'; LONGEST + 1];
    assert!(is_taken(&counting, &one(&[b"a"], vec![0])));
    assert!(is_taken(&counting, &one(&[&longest], vec![0])));
    let pair = ranked_pair(0, "u");
    let swapped: Vec<u64> = pair.iter().map(|place| 1 - place).collect();
    assert!(is_taken(&counting, &one(&names, pair.clone())));
    for (name, bytes) in [
        ("out of order", one(&[b"b", b"a"], swapped.clone())),
        ("twice", one(&[b"a", b"a"], vec![0, 1])),
        ("empty", one(&[b""], vec![0])),
        ("too long", one(&[&longer], vec![0])),
        ("no text", one(&[b"\xff"], vec![0])),
        ("a surrogate", one(&[b"\xed\xa0\x80"], vec![0])),
        ("of nobody", one(&names, vec![0])),
        ("all of nobody", sent_users(&names, &[])),
    ] {
        assert!(!is_taken(&counting, &bytes), "names {name}");
    }

    // Keys of a unit.
    let three: [&[u8]; 3] = [b"a", b"b", b"c"];
    let mut ranked = vec![0, 1, 2];
    ranked.sort_by_key(|place| rank(0, "u", ["a", "b", "c"][*place as usize]));
    assert!(is_taken(&of_users(3), &one(&three, ranked.clone())));
    for (name, bytes) in [
        ("none", one(&[], Vec::new())),
        ("in no order of ranks", one(&names, swapped)),
        ("one of them twice", one(&[b"a"], vec![0, 0])),
        ("that are not there", one(&[b"a"], vec![1])),
        ("that are nowhere", one(&[b"a"], vec![u64::MAX])),
        ("more than it may have", one(&three, ranked)),
    ] {
        assert!(!is_taken(&counting, &bytes), "keys {name}");
    }

    // Units.
    let only = |period, user: &[u8]| {
        let user = user.to_vec();
        let keys = vec![0];
        sent_users(&[b"a"], &[SentUnit { period, user, keys }])
    };
    assert!(is_taken(&counting, &only(5, &[b'u'; LONGEST_UNIT])));
    for (name, bytes) in [
        ("of a period before", only(-5, b"u")),
        ("of a period after", only(10, b"u")),
        ("that begin within a period", only(3, b"u")),
        ("of a long name", only(5, &[b'u'; LONGEST_UNIT + 1])),
        ("twice", sent_users(&names, &[unit(0, "u"), unit(0, "u")])),
        (
            "in no order",
            sent_users(&names, &[unit(0, "v"), unit(0, "u")]),
        ),
        (
            "in no order of periods",
            sent_users(&names, &[unit(5, "u"), unit(0, "u")]),
        ),
        ("of records", sent_records(&[(b"a", 1)], 0)),
    ] {
        assert!(!is_taken(&counting, &bytes), "units {name}");
    }
}

fn sent_records(names: &[(&[u8], u64)], flag: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    natural(&mut bytes, names.len() as u64);
    for (name, records) in names {
        text(&mut bytes, name);
        natural(&mut bytes, *records);
    }
    natural(&mut bytes, flag);
    bytes
}

#[test]
fn records_that_no_reader_has_are_refused() {
    let counting = of_records(3);
    let sound = sent_records(&[(b"a", 1), (b"b", 2)], 0);
    let rows = ["b", "a", "b"].map(|key| row("u", 1, key));
    assert_eq!(sound, bytes_of(&counting, &rows), "as a reader writes it");
    for end in 0..sound.len() {
        assert!(!is_taken(&counting, &sound[..end]), "{end}");
    }
    let longer = [b'x'; LONGEST + 1];
    for (name, bytes) in [
        ("two keys", sound.clone()),
        ("no keys", sent_records(&[], 0)),
        ("a full part", sent_records(&[], 1)),
        ("many records", sent_records(&[(b"a", u64::MAX)], 0)),
    ] {
        assert!(is_taken(&counting, &bytes), "{name}");
    }
    for (name, bytes) in [
        ("a byte more", [sound.as_slice(), &[0]].concat()),
        (
            "names out of order",
            sent_records(&[(b"b", 1), (b"a", 1)], 0),
        ),
        ("a name twice", sent_records(&[(b"a", 1), (b"a", 1)], 0)),
        ("no name", sent_records(&[(b"", 1)], 0)),
        ("a long name", sent_records(&[(&longer, 1)], 0)),
        ("no text", sent_records(&[(b"\xff", 1)], 0)),
        ("no records", sent_records(&[(b"a", 0)], 0)),
        (
            "as many as the limit",
            sent_records(&[(b"a", 1), (b"b", 1), (b"c", 1)], 0),
        ),
        ("full, with names", sent_records(&[(b"a", 1)], 1)),
        ("half full", sent_records(&[], 2)),
    ] {
        assert!(!is_taken(&counting, &bytes), "{name}");
    }
    // Numbers of several parts saturate.
    let many = sent_records(&[(b"a", u64::MAX)], 0);
    let totals = totals_in(&joined(&counting, [&many, &many, &sound]).close_next());
    assert_eq!(totals.counts["a"], u64::MAX);
    assert_eq!(totals.counts["b"], 2);
}

/// Bytes from outside never end the process, and no unit of what is taken has more keys than it may have.
#[test]
fn damaged_bytes_are_refused_or_taken_but_harm_nothing() {
    let mut random = ChaCha20Rng::seed_from_u64(45);
    for counting in [of_users(2), of_records(1000)] {
        let mut rows = Vec::new();
        for _ in 0..60 {
            let user = format!("u{}", random.random_range(0..10));
            let key = format!("k{}", random.random_range(0..20));
            rows.push(row(&user, random.random_range(0..10), &key));
        }
        let bytes = bytes_of(&counting, &rows);
        let mut taken = 0;
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..damaged.len());
                damaged[at] = random.random();
            }
            let mut store = store(&counting);
            let first = store.next().expect("a window");
            if store.take_part(first, &damaged) {
                taken += 1;
                let again = store.close_part().canonical_bytes();
                assert!(is_taken(&counting, &again));
            }
        }
        println!("{taken} of 20000 were taken");
        assert!(taken > 0);
    }
}

/// Most records are of a key that their user has already, and need no memory of their own.
#[test]
fn a_record_of_a_key_that_is_held_takes_no_memory() {
    let mut rows = Vec::new();
    for place in 0..900 {
        let user = format!("user-{}", place % 100);
        rows.push(row(&user, 1, &format!("page-{}", place % 3)));
    }
    let batch = message(&rows);
    for counting in [of_users(3), of_users(1), of_records(1000)] {
        let mut store = store(&counting);
        let first = allocations_of(|| _ = store.absorb_batch(&batch));
        let again = allocations_of(|| _ = store.absorb_batch(&batch));
        println!("{first} allocations, then {again}");
        assert!(again < 20, "{again} allocations of {} records", rows.len());
    }
}

/// Many names pass through one user, each of which pushes another one out: as few of them are held as the user may have.
#[test]
fn names_that_no_unit_holds_are_freed() {
    let counting = of_users(2);
    let mut keys: Vec<String> = Vec::new();
    for place in 0..5000 {
        keys.push(format!("{place}-{}", "x".repeat(200)));
    }
    // The last one of all first.
    keys.sort_by_key(|key| std::cmp::Reverse(rank(0, "u", key)));
    let mut store = store(&counting);
    for keys in keys.chunks(1000) {
        let rows: Vec<KeyedRow> = keys.iter().map(|key| row("u", 1, key)).collect();
        let batch = message(&rows);
        let (_, peak) = peak_of(|| store.absorb_batch(&batch));
        println!("{peak} bytes");
        assert!(peak < 50_000, "{peak} bytes of {} keys", keys.len());
    }
    let held = totals_in(&store.close_next()).counts;
    let last: BTreeSet<&String> = keys.iter().rev().take(2).collect();
    assert!(held.keys().collect::<BTreeSet<_>>() == last);
}

/// Windows that overlap hold copies of their panes, which share names, and join them.
#[test]
fn panes_join_to_what_their_records_are_together() {
    for max_keys in [1, 2] {
        let counting = of_users(max_keys);
        let mut rules = rules_of(&counting);
        rules.cap = rules_for_users(0, 30).cap;
        let mut form = form(&counting);
        form.panes = 3;
        let first = rules.grid.span_of(seconds(0));
        for user in ["u0", "u1", "u2", "u3", "u4", "u5"] {
            let mut store =
                WindowStore::new(rules.clone(), vec![form.clone()], first.start, first, None);
            let mut before = Vec::new();
            for (time, key) in [(2, "a"), (12, "b"), (22, "c")] {
                let rows = [row(user, time, key), row("other", time, "a")];
                let batch = Batch {
                    message_time: Some(seconds(time)),
                    ..message(&rows)
                };
                store.absorb_batch(&batch);
                before.extend(rows);
                // All of them in one window of one pane.
                let together: Vec<KeyedRow> = before
                    .iter()
                    .map(|row| KeyedRow {
                        time: 1,
                        ..row.clone()
                    })
                    .collect();
                let bytes = store.close_part().canonical_bytes();
                assert_eq!(bytes, bytes_of(&counting, &together), "{user}, {time}");
            }
        }
    }
}

#[test]
fn the_target_claims_one_user_in_each_key_and_hides_no_replacement() {
    for max_keys in [1, 2, 5, 1000] {
        let target = FoundKeyCounts::new(of_users(max_keys), KeyStatistic::Users, 20);
        let keys = u64::from(max_keys);
        let sensitivity = target.sensitivity(Adjacency::AddRemove, 1);
        assert_eq!(sensitivity.expect("one").0, keys * UNIT_GRAINS);
        let sup = target.sup_sensitivity(Adjacency::AddRemove, 1);
        assert_eq!(sup.expect("one"), UNIT_GRAINS);
        let euclidean = target.euclidean_sensitivity(Adjacency::AddRemove, 1);
        let euclidean = u128::from(euclidean.expect("one"));
        let square = u128::from(keys) * u128::from(UNIT_GRAINS).pow(2);
        assert!(euclidean.pow(2) >= square && (euclidean - 1).pow(2) < square);
        assert!(target.sensitivity(Adjacency::ReplaceOne, 1).is_err());
        assert!(target.sup_sensitivity(Adjacency::ReplaceOne, 1).is_err());
        let euclidean = target.euclidean_sensitivity(Adjacency::ReplaceOne, 1);
        assert!(euclidean.is_err());
    }
}

#[test]
fn the_target_has_candidates_in_place_of_values_and_the_shape_of_the_largest_table() {
    let counting = of_users(2);
    let target = FoundKeyCounts::new(counting.clone(), KeyStatistic::Users, 1000);
    let Basis::Keys(basis) = target.shape().basis else {
        panic!("a table by key")
    };
    let different: BTreeSet<&String> = basis.keys.iter().collect();
    assert_eq!((basis.keys.len(), different.len()), (1000, 1000));
    assert!(
        basis
            .keys
            .iter()
            .all(|key| key.len() == LONGEST && key.is_ascii())
    );
    assert!(basis.keys.is_sorted());
    let [column] = basis.columns[..] else {
        panic!("one column")
    };
    assert_eq!(column.statistic, KeyStatistic::Users);
    assert_eq!(column.unit.to_bits(), (1.0_f64 / 4096.0).to_bits());
    assert!(basis.found.is_none() && basis.units.is_none());
    assert_eq!(
        target.publish(vec![4096.0, -2048.0, 1.0]),
        [1.0, -0.5, 1.0 / 4096.0]
    );

    let rows = [row("u", 1, "a"), row("v", 1, "a"), row("v", 1, "b")];
    let window = part_of(&counting, &rows).into_window();
    let accumulator = &window.forms[0][0].accumulator;
    assert!(target.candidates(accumulator).is_some());
    assert!(target.evaluate(accumulator).opened().is_empty());
    let listed = AccumulatorSpec::Records { most: 1 }.empty();
    assert!(target.candidates(&listed).is_none());
}

/// Memory of this process that is in use.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split_whitespace().nth(1).expect("pages");
    pages.parse::<u64>().expect("a number") * 4096
}

/// What a user and key cost: `cargo test --release --test properties found_keys::a_million -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement of a million users"]
fn a_million_users_with_three_keys_each() {
    const USERS: usize = 1_000_000;
    const ROWS: usize = 10_000;
    const RECORDS: usize = 5_000_000;
    let counting = of_users(3);
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let mut batches = Vec::new();
    for _ in 0..RECORDS / ROWS {
        let mut rows = Vec::new();
        for _ in 0..ROWS {
            let user = format!("user-{:08}", random.random_range(0..USERS));
            let key = format!("/articles/2026/page-{:06}", random.random_range(0..10_000));
            rows.push(row(&user, random.random_range(0..5), &key));
        }
        batches.push(message(&rows));
    }
    let mut store = store(&counting);
    let before = resident_bytes();
    let begun = std::time::Instant::now();
    for batch in &batches {
        store.absorb_batch(batch);
    }
    let absorbed = begun.elapsed();
    let held = resident_bytes() - before;
    let bytes = store.close_part();
    let begun = std::time::Instant::now();
    let totals = totals_in(&bytes.into_window());
    let pairs: u64 = totals.counts.values().sum();
    println!(
        "{pairs} users and keys: {:.0} ns a record, {} MB, {:.0} bytes a user and key, closed in {:.2} s",
        absorbed.as_secs_f64() * 1e9 / RECORDS as f64,
        held / 1_000_000,
        held as f64 / pairs as f64,
        begun.elapsed().as_secs_f64(),
    );
}
