//! Quantiles by key: every small stream and every pair of its neighbours, whether intervals cover, and how far quantiles are off beside other
//! ways to tell them.

use super::*;
use bernstream_synopsis::description::CountedQuantiles;
use bernstream_synopsis::key_quantiles::{QuantilePart, RankGrid};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

const RANGES: Shares = &[(CountedStatistic::Ranges, 1.0)];

/// Places from -10 to 10, in blocks and without.
const GRIDS: [RankGrid; 2] = [
    RankGrid {
        places: 9,
        block: Some(3),
    },
    RankGrid {
        places: 5,
        block: None,
    },
];

fn placed(grid: RankGrid, caps: Caps) -> KeyCounting {
    KeyCounting {
        sum: None,
        grid: Some(grid),
        ..counting(caps)
    }
}

/// Users, keys and values that lie at places, between them, and half-way.
fn placed_atoms() -> Vec<Record> {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for (key, value) in [(0, -10.0), (0, 10.0), (1, 1.25), (1, 6.0), (2, -3.5)] {
            atoms.push(row(user, 2, key, value));
        }
    }
    atoms
}

/// The place of a mean, written from the page of proofs.
fn reference_place(grid: RankGrid, values: &[f64]) -> usize {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let steps = (mean + 10.0) / 20.0 * f64::from(grid.places - 1);
    (steps + 0.5).floor() as usize
}

/// The units at each place of each key, written from the page of proofs.
fn reference_places(counting: &KeyCounting, grid: RankGrid, rows: &[Record]) -> Vec<Vec<u64>> {
    let mut units: BTreeMap<Unit, UnitValues> = BTreeMap::new();
    for row in rows {
        let values = units.entry(unit_of(row)).or_default();
        let values = values.entry(key_of(row)).or_default();
        values.push(row.value.expect("a value"));
    }
    let mut places = vec![vec![0; grid.places as usize]; KEYS.len()];
    for ((user, period), keys) in units {
        let mut ranked: Vec<usize> = keys.keys().copied().collect();
        ranked.sort_by_key(|key| (rank(period, user, KEYS[*key]), *key));
        for key in ranked.into_iter().take(counting.max_keys as usize) {
            places[key][reference_place(grid, &keys[&key])] += 1;
        }
    }
    places
}

fn places_of(totals: Vec<KeyTotals>, grid: RankGrid) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    for totals in totals {
        let mut places = totals.places;
        places.resize(grid.places as usize, 0);
        all.push(places);
    }
    all
}

#[test]
fn every_split_and_every_order_of_joins_has_the_places_of_the_reference() {
    let atoms = placed_atoms();
    let rules = user_rules();
    for grid in GRIDS {
        for caps in [CAPS[0], CAPS[2]] {
            let counting = placed(grid, caps);
            let all = streams(atoms.len(), 3);
            let mut partials = BTreeMap::new();
            for stream in &all {
                let rows = chosen(&atoms, stream);
                partials.insert(stream.clone(), partial_of(&rules, &counting, &rows));
            }
            for stream in &all {
                let rows = chosen(&atoms, stream);
                let expected = reference_places(&counting, grid, &rows);
                for number in 0..2_usize.pow(stream.len() as u32) {
                    let split = split_of(stream, 2, number);
                    let parts = split.iter().map(|part| &partials[part]);
                    let found = joined_totals(&rules, &counting, parts);
                    assert_eq!(expected, places_of(found, grid), "{caps:?}: {split:?}");
                }
            }
        }
    }
}

/// Every unit of every stream of up to three rows, in and out.
#[test]
fn no_unit_changes_more_ranges_than_is_claimed_and_some_change_all_of_it() {
    let atoms = placed_atoms();
    let rules = user_rules();
    for grid in GRIDS {
        for caps in [CAPS[0], CAPS[2]] {
            let counting = placed(grid, caps);
            let mut windows = WindowTotals::default();
            for stream in streams(atoms.len(), 3) {
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
            for norm in [Norm::One, Norm::Two] {
                let target = target(&counting, RANGES, norm);
                let largest = windows.largest_parts(&target, Adjacency::AddRemove, &pairs);
                assert_claims_are_reached(largest, &format!("{grid:?}, {caps:?}, {norm:?}"));
            }
        }
    }
}

/// Records that are units of their own: one more or less, or one with another value, which may be none.
#[test]
fn no_record_changes_more_ranges_than_is_claimed_and_some_change_all_of_it() {
    let atoms = lone_atoms();
    let rules = record_rules();
    for grid in GRIDS {
        let counting = placed(grid, CAPS[0]);
        let mut windows = WindowTotals::default();
        for stream in streams(atoms.len(), 2) {
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
        for norm in [Norm::One, Norm::Two] {
            let target = target(&counting, RANGES, norm);
            for (adjacency, pairs) in [
                (Adjacency::AddRemove, &removed),
                (Adjacency::ReplaceOne, &replaced),
            ] {
                let largest = windows.largest_parts(&target, adjacency, pairs);
                assert_claims_are_reached(largest, &format!("{grid:?}, {adjacency:?}, {norm:?}"));
            }
        }
    }
}

/// Whole numbers count at their own place where a step is one, whatever the bounds are.
#[test]
fn whole_numbers_are_rounded_to_themselves() {
    let rules = record_rules();
    for (min, max) in [(-10.0, 10.0), (-3.0, 7.0), (0.0, 997.0)] {
        let grid = RankGrid {
            places: (max - min) as u32 + 1,
            block: None,
        };
        let counting = placed(grid, CAPS[0]);
        let mut store = WindowStore::new(
            rules.clone(),
            vec![ReleaseInput {
                label: Some(RecordLabel::Number(DomainAxis {
                    min,
                    max,
                    outside: OutsideRule::Drop,
                })),
                ..form(&counting)
            }],
            rules.grid.span_of(seconds(0)).start,
            rules.grid.span_of(seconds(0)),
            None,
        );
        for step in 0..grid.places {
            store.absorb_batch(&batch(&row("u", 1, 0, min + f64::from(step))));
        }
        let totals = closed_totals(&mut store);
        assert_eq!(
            totals[0].places,
            vec![1; grid.places as usize],
            "{min} {max}"
        );
    }
}

/// The places of a key's records are as many as its records, or the bytes are refused.
#[test]
fn partials_with_more_places_than_records_are_refused() {
    let rules = record_rules();
    let counting = placed(GRIDS[0], CAPS[0]);
    let rows = [row("u", 1, 0, -10.0), row("u", 2, 0, -10.0)];
    let bytes = partial_of(&rules, &counting, &rows);
    let mut store = store(&rules, &counting);
    let first = store.next().expect("a window");
    let (last, rest) = bytes.split_last().expect("bytes");
    // The last number is that of the units at the first place.
    assert_eq!(*last, 2);
    for forged in [0, 1, 3] {
        let forged = [rest, &[forged]].concat();
        assert!(!store.take_part(first, &forged), "{forged:?}");
    }
    assert!(store.take_part(first, &bytes));
}

const PARTS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.95];

/// Distributions of values over places: smooth, heaped, few.
#[derive(Clone, Copy, Debug)]
enum ValueSpread {
    Smooth,
    Heaped,
    Delays,
}

fn drawn_places(spread: ValueSpread, places: u32, count: u64, seed: u64) -> Vec<u64> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut units = vec![0; places as usize];
    for _ in 0..count {
        let place = match spread {
            ValueSpread::Smooth => f64::from(places) * rng.random::<f64>(),
            ValueSpread::Heaped => {
                8.0 * (f64::from(places) / 8.0 * rng.random::<f64>().powi(2)).floor()
            }
            ValueSpread::Delays => {
                let late = rng.random::<f64>() < 0.3;
                let early = 25.0 + 4.0 * rng.sample::<f64, _>(StandardNormal);
                early
                    + if late {
                        40.0 * rng.sample::<f64, _>(Exp1)
                    } else {
                        0.0
                    }
            }
        };
        units[place.clamp(0.0, f64::from(places - 1)) as usize] += 1;
    }
    units
}

/// The least place that a part of the units lie up to.
fn exact_quantile(units: &[u64], part: f64) -> usize {
    let all: u64 = units.iter().sum();
    let mut up_to = 0;
    for (place, units) in units.iter().enumerate() {
        up_to += units;
        if up_to as f64 >= part * all as f64 - 1e-9 {
            return place;
        }
    }
    units.len() - 1
}

/// Releases of keys whose values are spread alike.
struct QuantileRelease {
    release: CoveredRelease,
    grid: RankGrid,
}

impl QuantileRelease {
    fn new(law: NoiseDistribution, price: &str, spread: ValueSpread, count: u64) -> Self {
        let norm = law.norm();
        let grid = RankGrid::with_least_noise(211, |levels| match norm {
            Norm::Two => f64::from(levels).sqrt(),
            Norm::One | Norm::Sup => f64::from(levels),
        });
        let counting = KeyCounting {
            keys: (0..COVERED).map(|key| format!("key {key}")).collect(),
            ..placed(grid, CAPS[0])
        };
        let target = target(&counting, RANGES, norm);
        let mechanism = mechanism(&target, law, price);
        let mut release = CoveredRelease::new(law, price, OF_USERS[0]);
        release.about.basis = target.shape().basis;
        release.about.noise.scale = mechanism.scale().units() as f64;
        release.about.target = TargetDescription::Counts(KeyedCounts {
            max_keys: 1,
            max_records: None,
            per_user: None,
            value: Some(CountedValue {
                column: "amount".to_owned(),
                min: 0.0,
                max: f64::from(grid.places - 1),
            }),
            quantiles: Some(CountedQuantiles {
                grid,
                parts: PARTS.to_vec(),
            }),
            parts: vec![PricePart {
                of: "ranges".to_owned(),
                part: 1.0,
            }],
        });
        for (key, totals) in release.totals.iter_mut().enumerate() {
            totals.places = drawn_places(spread, grid.places, count, key as u64);
        }
        (release.target, release.mechanism) = (target, mechanism);
        QuantileRelease { release, grid }
    }

    fn exact(&self, reading: KeyReading, key: usize) -> f64 {
        let places = &self.release.totals[key].places;
        match reading {
            KeyReading::Quantile(part) => exact_quantile(places, part.fraction()) as f64,
            _ => places.iter().sum::<u64>() as f64,
        }
    }

    /// By the name of each reading: in which part of all draws its interval holds the exact number, and the mean size of its error.
    fn coverage(&self, times: f64, releases: u32) -> BTreeMap<String, Covered> {
        let mut covered: BTreeMap<String, Covered> = BTreeMap::new();
        for number in 0..releases {
            let synopsis = self.release.synopsis(number, times);
            let table = synopsis.key_table().expect("a table by key");
            for (place, KeyRow { estimates, .. }) in table.rows().iter().enumerate() {
                for (reading, estimate) in table.readings().iter().zip(estimates) {
                    let exact = self.exact(*reading, place);
                    let covered = covered.entry(reading.name().into_owned()).or_default();
                    let is_held = estimate.interval.is_none_or(|interval| {
                        (interval.lower - 1e-9..=interval.upper + 1e-9).contains(&exact)
                    });
                    covered.draws += 1.0;
                    covered.held += f64::from(u8::from(is_held));
                    covered.squares += (estimate.value - exact).abs();
                }
            }
        }
        covered
    }
}

#[test]
fn intervals_of_quantiles_hold_and_larger_noise_is_found_out() {
    for (law, price) in LAWS {
        for spread in [
            ValueSpread::Smooth,
            ValueSpread::Heaped,
            ValueSpread::Delays,
        ] {
            let release = QuantileRelease::new(law, price, spread, 400);
            let larger = release.coverage(3.0, 25);
            for (reading, covered) in release.coverage(1.0, 25) {
                let part = covered.held / covered.draws;
                let larger = larger[&reading].held / larger[&reading].draws;
                println!(
                    "{law:?}, {spread:?}, {reading}: {part:.4}, {larger:.4} of {}",
                    covered.draws
                );
                // Where many values are heaped at a place, the noise moves no quantile off it.
                assert!(part >= 0.935, "{law:?} {spread:?} {reading}: {part}");
                if matches!(spread, ValueSpread::Smooth) || reading == "values" {
                    assert!(part <= 0.999, "{law:?} {spread:?} {reading}: {part}");
                    assert!(larger < 0.93, "{law:?} {spread:?} {reading}: {larger}");
                }
            }
        }
    }
}

/// A grid without blocks, at the same price.
fn flat_error(units: &[u64], part: f64, rng: &mut ChaCha20Rng) -> f64 {
    let mut counts = Vec::new();
    for units in units {
        let size: f64 = rng.sample(Exp1);
        counts.push(*units as f64 + if rng.random() { size } else { -size });
    }
    let all: f64 = counts.iter().sum();
    let mut up_to = 0.0;
    let place = counts.iter().position(|count| {
        up_to += count;
        up_to >= part * all
    });
    place
        .unwrap_or(units.len() - 1)
        .abs_diff(exact_quantile(units, part)) as f64
}

/// Permute-and-flip by the rank error, whose price is divided among the quantiles.
fn selected_error(units: &[u64], part: f64, epsilon: f64, rng: &mut ChaCha20Rng) -> f64 {
    let all: u64 = units.iter().sum();
    let wanted = part * all as f64;
    let mut best = (f64::MIN, 0);
    let mut below = 0.0;
    for (place, units) in units.iter().enumerate() {
        let up_to = below + *units as f64;
        let utility = -(below - wanted).max(wanted - up_to).max(0.0);
        let noise: f64 = rng.sample(Exp1);
        let noisy = epsilon * utility / 2.0 + noise;
        if noisy > best.0 {
            best = (noisy, place);
        }
        below = up_to;
    }
    best.1.abs_diff(exact_quantile(units, part)) as f64
}

/// The numbers of `docs/proofs/quantiles.md`: a day of about 290 delays in whole minutes, at epsilon 1, by three ways.
#[test]
fn five_quantiles_are_nearer_than_by_other_ways_and_one_is_near_the_best_of_them() {
    let release = QuantileRelease::new(
        NoiseDistribution::DiscreteLaplace,
        "1",
        ValueSpread::Delays,
        290,
    );
    let ours = release.coverage(1.0, 25);
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut sums = [0.0; 4];
    for part in PARTS {
        let name = QuantilePart::new(part).expect("a part").name();
        let error = ours[&name].squares / ours[&name].draws;
        let [mut flat, mut five, mut one] = [0.0; 3];
        for totals in &release.release.totals {
            for _ in 0..25 {
                flat += flat_error(&totals.places, part, &mut rng) / 1000.0;
                five += selected_error(&totals.places, part, 0.2, &mut rng) / 1000.0;
                one += selected_error(&totals.places, part, 1.0, &mut rng) / 1000.0;
            }
        }
        println!(
            "{name}: {error:.2}; places alone {flat:.2}; one of five selections {five:.2}, one alone {one:.2}"
        );
        for (sum, error) in sums.iter_mut().zip([error, flat, five, one]) {
            *sum += error;
        }
        if part == 0.5 {
            assert!(error < 2.5 * one, "{error} {one}");
        }
    }
    let [ours, flat, five, _] = sums;
    println!("{:?}: {ours:.2} {flat:.2} {five:.2}", release.grid);
    assert!(ours < 0.75 * flat && ours < 0.5 * five, "{sums:?}");
}

const AUDITED: [[&str; 2]; 3] = [
    [
        USER,
        r#"epsilon = 2
[release]
name = "quantiles"
epsilon = 1
quantiles = { of = [0.5, 0.9], max_keys = 2, step = 0.5, value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
    ],
    [
        r#""record"
adjacency = "add_remove""#,
        r#"rho = 0.5
[release]
name = "quantiles"
rho = 0.5
noise = "gaussian"
quantiles = { of = [0.5], step = 0.1, value = { column = "amount", min = -5, max = 10, outside = "drop" } }"#,
    ],
    [
        r#""record"
adjacency = { replace_one = { records_per_window = 500 } }"#,
        r#"epsilon = 1
[release]
name = "quantiles"
epsilon = 1
quantiles = { of = [0.5], step = 3, value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
    ],
];

#[test]
fn an_audit_replays_quantiles_and_finds_half_the_sensitivity_out() {
    for [unit, release] in AUDITED {
        let settings = audited(unit, release, COUNTRIES);
        let sound = plan_of(&settings);
        let halved = with_half(&sound, half_change);
        for (plan, is_sound) in [(&sound, true), (&halved, false)] {
            let subject = subject(&settings, plan);
            let mut pairs = neighbours::neighbouring_pairs(&subject);
            pairs.truncate(REPLAYED);
            let report = run_pairs(&subject, &pairs, 1, || true).expect("replays");
            assert!(report.violations.is_empty(), "{:?}", report.violations);
            assert_eq!(report.beyond.is_empty(), is_sound, "{:?}", report.beyond);
            if is_sound {
                let (_, largest) = report.largest.iter().next().expect("a change");
                assert!(largest.share_of_declared() > 0.99, "{largest:?}");
            }
        }
    }
}
