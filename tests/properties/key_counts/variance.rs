//! Variances by key: every small stream and every pair of its neighbours, and whether intervals cover.

use super::*;

const VALUES: Shares = OF_USERS[2];
const USERS_AND_VALUES: Shares = OF_USERS[4];

fn with_squares(counting: KeyCounting) -> KeyCounting {
    KeyCounting {
        sum: None,
        keeps_squares: true,
        ..counting
    }
}

/// A share of the way from the lower bound to the upper one, exact for the values in use.
fn share_of(value: f64) -> f64 {
    (value + 10.0) / 20.0
}

/// The grains at the square of the values, of so many records: written from the page of proofs, in floats that are exact here.
pub fn reference_square(counted: i128, values: &[f64]) -> i128 {
    let squares: f64 = values.iter().map(|value| share_of(*value).powi(2)).sum();
    (counted as f64 * GRAINS as f64 * squares / values.len() as f64).floor() as i128
}

/// The rows that streams are made of: values at both ends, in the middle, and between.
fn valued_atoms() -> Vec<Record> {
    let mut atoms = Vec::new();
    for user in ["u", "v"] {
        for (key, value) in [(0, -10.0), (0, 10.0), (0, 0.0), (1, 10.0), (2, -2.5)] {
            atoms.push(row(user, 2, key, value));
        }
    }
    atoms
}

#[test]
fn every_split_and_every_order_of_joins_has_the_squares_of_the_reference() {
    let atoms = valued_atoms();
    let rules = user_rules();
    for caps in CAPS {
        let counting = with_squares(counting(caps));
        let all = streams(atoms.len(), 3);
        let mut partials = BTreeMap::new();
        for stream in &all {
            let mut rows = chosen(&atoms, stream);
            let bytes = partial_of(&rules, &counting, &rows);
            rows.reverse();
            assert_eq!(bytes, partial_of(&rules, &counting, &rows), "{stream:?}");
            partials.insert(stream.clone(), bytes);
        }
        for stream in &all {
            let rows = chosen(&atoms, stream);
            let expected = reference_totals(&counting, &rows);
            assert_eq!(expected, totals_of(&rules, &counting, &rows), "{stream:?}");
            for number in 0..3_usize.pow(stream.len() as u32) {
                let split = split_of(stream, 3, number);
                let parts = split.iter().map(|part| &partials[part]);
                let found = joined_totals(&rules, &counting, parts);
                assert_eq!(expected, found, "{caps:?}: {split:?}");
            }
        }
    }
}

/// Every unit of every stream of up to four rows, in and out.
#[test]
fn no_unit_changes_squares_by_more_than_is_claimed_and_some_change_all_of_it() {
    let atoms = valued_atoms();
    let rules = user_rules();
    for caps in CAPS {
        let counting = with_squares(counting(caps));
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
        for shares in [VALUES, USERS_AND_VALUES] {
            for norm in [Norm::One, Norm::Two] {
                let target = target(&counting, shares, norm);
                let largest = windows.largest_parts(&target, Adjacency::AddRemove, &pairs);
                assert_claims_are_reached(largest, &format!("{caps:?}, {shares:?}, {norm:?}"));
            }
        }
    }
}

/// Records that are units of their own: one more or less, or one with another value, which may be none.
#[test]
fn no_record_changes_squares_by_more_than_is_claimed_and_some_change_all_of_it() {
    let atoms = lone_atoms();
    let rules = record_rules();
    let counting = with_squares(counting(CAPS[0]));
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
        let target = target(&counting, VALUES, norm);
        for (adjacency, pairs) in [
            (Adjacency::AddRemove, &removed),
            (Adjacency::ReplaceOne, &replaced),
        ] {
            let largest = windows.largest_parts(&target, adjacency, pairs);
            assert_claims_are_reached(largest, &format!("{adjacency:?}, {norm:?}"));
        }
    }
}

/// Values of which nothing is exact in binary, some of them equal and some nearly so.
#[test]
fn grains_at_three_places_are_exactly_those_of_the_records() {
    let rules = user_rules();
    let values = [-10.0, -9.999_999, -3.3, 0.0, 0.1, 7.7, 10.0];
    for most in 1..=4 {
        let counting = with_squares(counting(Caps {
            keys: 1,
            records: most,
        }));
        for stream in streams(values.len(), 5) {
            let rows: Vec<Record> = stream
                .iter()
                .map(|at| row("u", 1, 0, values[*at]))
                .collect();
            let key = totals_of(&rules, &counting, &rows)[0].clone();
            let records = (rows.len() as i128).min(most.into());
            assert_eq!(key.low + key.middle + key.high, records * GRAINS);
            let least = key.low.min(key.middle).min(key.high);
            assert!(least >= 0, "{stream:?}: {key:?}");
            let [mut mean, mut square] = [0.0; 2];
            for at in &stream {
                let share = share_of(values[*at]);
                mean += share / stream.len() as f64;
                square += share * share / stream.len() as f64;
            }
            let found = [key.middle as f64 / 2.0 + key.high as f64, key.high as f64];
            for (found, exact) in found.into_iter().zip([mean, square]) {
                let found = found / GRAINS as f64;
                assert!((found - exact * records as f64).abs() < 1e-5, "{stream:?}");
            }
        }
    }
}

/// A partial of one unit and key in the first period with a sum of squares.
fn forged_square(records: u64, labels: i64, squares: u64) -> Vec<u8> {
    let mut bytes = forged_unit("u", &[(0, records, labels)]);
    write_natural(&mut bytes, squares.into());
    bytes
}

#[test]
fn forged_squares_change_no_unit_by_more_than_its_caps() {
    let rules = user_rules();
    let counting = with_squares(counting(CAPS[3]));
    let one = 1_u64 << 32;
    assert!(is_taken(&rules, &counting, &forged_square(2, 0, 2 * one)));
    for refused in [
        // More than so many squares can sum up to, and a unit without squares.
        forged_square(2, 0, 2 * one + 1),
        forged_square(1, 0, u64::MAX),
        forged_unit("u", &[(0, 1, 0)]),
    ] {
        assert!(!is_taken(&rules, &counting, &refused), "{refused:?}");
    }
    // Without variances no squares are taken.
    let plain = KeyCounting {
        keeps_squares: false,
        ..counting.clone()
    };
    assert!(!is_taken(&rules, &plain, &forged_square(2, 0, 2 * one)));

    // Squares that no records with such labels have still are parts of the records.
    let stopped = u64::from(u32::MAX);
    for (records, labels, squares) in [
        (1, 1 << 30, 0),
        (1, -(1 << 30), one),
        (2, 0, 0),
        (2, 0, 2 * one),
        (stopped, i64::MAX, 0),
        (stopped, i64::MIN, u64::MAX),
    ] {
        let partial = forged_square(records, labels, squares);
        let key = joined_totals(&rules, &counting, [partial].iter())[0].clone();
        let counted = i128::from(records.min(2));
        assert_eq!(key.low + key.middle + key.high, counted * GRAINS, "{key:?}");
        assert!(key.low.min(key.middle).min(key.high) >= 0, "{key:?}");
    }

    let rules = record_rules();
    let of_record = |numbers: [i128; 3]| {
        let mut bytes = vec![1, 0];
        for number in numbers {
            write_integer(&mut bytes, number);
        }
        bytes
    };
    assert!(is_taken(&rules, &counting, &of_record([0, GRAINS, GRAINS])));
    for numbers in [
        [0, 0, 0],
        [GRAINS, 1, 0],
        [GRAINS, -GRAINS, GRAINS],
        [2 * GRAINS, 0, -GRAINS],
        [i128::MAX, 1, 0],
        [1, i128::MAX, 1],
        [i128::MIN, 0, i128::MAX],
    ] {
        let bytes = of_record(numbers);
        assert!(!is_taken(&rules, &counting, &bytes), "{numbers:?}");
    }
}

/// As many records as there are of a user and key have squares that do not wrap, in whatever order partials come.
#[test]
fn squares_that_stop_are_the_same_for_every_order_of_joins() {
    let rules = user_rules();
    let counting = with_squares(counting(CAPS[3]));
    let large = u64::from(u32::MAX) - 1;
    let partials = [
        forged_square(large, (large as i64) << 30, large << 32),
        forged_square(1, 1 << 30, 1 << 32),
        forged_square(large, -((large as i64) << 30), 0),
    ];
    // Nothing has stopped yet: all values are at the upper end.
    let two = joined_totals(&rules, &counting, partials[..2].iter());
    assert_eq!((two[0].middle, two[0].high), (0, 2 * GRAINS));
    let expected = joined_totals(&rules, &counting, partials.iter());
    assert_eq!(
        expected[0].low + expected[0].middle + expected[0].high,
        2 * GRAINS
    );
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let partials = order.iter().map(|at| &partials[*at]);
        assert_eq!(joined_totals(&rules, &counting, partials), expected);
    }
}

/// Variances cost nothing beside a mean: the noise on each number is the same.
#[test]
fn numbers_with_squares_have_the_noise_of_those_without() {
    for (law, price) in LAWS {
        for shares in [VALUES, USERS_AND_VALUES] {
            let plain = counting(CAPS[3]);
            let squares = with_squares(plain.clone());
            let [plain, squares] =
                [plain, squares].map(|counting| target(&counting, shares, law.norm()));
            assert_eq!(scale_of(&plain, law, price), scale_of(&squares, law, price));
            let [plain, squares] = [plain, squares].map(|target| match target.shape().basis {
                Basis::Keys(basis) => basis.columns,
                other => panic!("{other:?}"),
            });
            assert_eq!(squares.len(), plain.len() + 1);
            let unit = plain.last().expect("a column").unit;
            for column in squares.iter().rev().take(3) {
                assert_eq!(column.unit, unit, "{column:?}");
            }
        }
    }
}

/// Distributions of shares over records: mean, and mean square.
#[derive(Clone, Copy, Debug)]
struct ValueMoments {
    mean: f64,
    square: f64,
}

/// All at one place, at both ends, spread evenly, most near one end.
const SPREADS: [ValueMoments; 8] = [
    ValueMoments {
        mean: 0.5,
        square: 0.25,
    },
    ValueMoments {
        mean: 0.0,
        square: 0.0,
    },
    ValueMoments {
        mean: 0.9,
        square: 0.81,
    },
    ValueMoments {
        mean: 0.5,
        square: 0.5,
    },
    ValueMoments {
        mean: 0.1,
        square: 0.1,
    },
    ValueMoments {
        mean: 0.5,
        square: 1.0 / 3.0,
    },
    ValueMoments {
        mean: 0.25,
        square: 0.125,
    },
    ValueMoments {
        mean: 0.04,
        square: 0.0032,
    },
];

impl CoveredRelease {
    /// Keys with so many records each, spread in each of these ways.
    fn of_spreads(law: NoiseDistribution, price: &str, records: i128) -> Self {
        let counting = with_squares(counting(CAPS[3]));
        let mut release = CoveredRelease::counting(counting, law, price, VALUES);
        for (key, totals) in release.totals.iter_mut().enumerate() {
            let ValueMoments { mean, square } = SPREADS[key % SPREADS.len()];
            let grains = (records * GRAINS) as f64;
            let [mean, square] = [mean, square].map(|moment| (moment * grains).round() as i128);
            *totals = KeyTotals {
                records,
                low: records * GRAINS - 2 * mean + square,
                middle: 2 * (mean - square),
                high: square,
                ..KeyTotals::default()
            };
        }
        release
    }

    /// What a reading says of the exact totals of these keys together.
    fn exact_moment(&self, reading: KeyReading, keys: &[usize]) -> f64 {
        let [mut middle, mut high, mut records] = [0.0; 3];
        for key in keys {
            let totals = &self.totals[*key];
            middle += totals.middle as f64 / GRAINS as f64;
            high += totals.high as f64 / GRAINS as f64;
            records += totals.records as f64;
        }
        let mean = (middle / 2.0 + high) / records;
        let variance = (high / records - mean * mean).max(0.0);
        match reading {
            KeyReading::Records => records,
            KeyReading::Sum => records * (20.0 * mean - 10.0),
            KeyReading::Mean => 20.0 * mean - 10.0,
            KeyReading::Variance => 400.0 * variance,
            KeyReading::Deviation => 20.0 * variance.sqrt(),
            other => panic!("no {other:?}"),
        }
    }
}

/// In which part of all draws an interval holds, how wide it is in the mean, and how often nothing is known.
#[derive(Clone, Copy, Debug, Default)]
struct CoveredWidth {
    covered: Covered,
    unknown: f64,
    width: f64,
}

/// By the name of each reading and the spread of the values.
type CoverageOfSpreads = BTreeMap<(Cow<'static, str>, usize), CoveredWidth>;

fn coverage_of_spreads(release: &CoveredRelease, times: f64, releases: u32) -> CoverageOfSpreads {
    let mut found = CoverageOfSpreads::new();
    for number in 0..releases {
        let synopsis = release.synopsis(number, times);
        let table = synopsis.key_table().expect("a table by key");
        for (key, row) in table.rows().iter().enumerate() {
            for (reading, estimate) in table.readings().iter().zip(&row.estimates) {
                let exact = release.exact_moment(*reading, &[key]);
                let place = (reading.name(), key % SPREADS.len());
                let found = found.entry(place).or_default();
                // The root of a rounding error of a variance is no error of its interval.
                let exact = match exact.abs() < 1e-3 {
                    true => 0.0,
                    false => exact,
                };
                found.covered.count(*estimate, exact);
                match estimate.interval {
                    Some(interval) => found.width += interval.upper - interval.lower,
                    None => found.unknown += 1.0,
                }
            }
        }
    }
    found
}

/// From a few records, of which little is known, to many; noise that is much larger is found out where variances are known well.
#[test]
fn intervals_of_variances_hold_and_larger_noise_is_found_out() {
    check_intervals(&[12, 40, 1000, 30_000], RELEASES, 0.91);
}

mod long {
    use super::*;

    #[test]
    fn intervals_of_variances_hold_for_every_spread_of_the_values() {
        check_intervals(&[12, 20, 40, 80, 150, 1000, 30_000], 300, 0.93);
    }
}

/// Intervals hold in this part of the draws of each spread at least, and in 94 % of all.
fn check_intervals(counts: &[i128], releases: u32, least: f64) {
    for (law, price) in LAWS {
        for records in counts.iter().copied() {
            let release = CoveredRelease::of_spreads(law, price, records);
            let larger = coverage_of_spreads(&release, 1.8, releases / 2);
            let mut is_found_out = false;
            let mut of_readings: BTreeMap<Cow<'static, str>, Covered> = BTreeMap::new();
            for (place, found) in coverage_of_spreads(&release, 1.0, releases) {
                let CoveredWidth {
                    covered,
                    unknown,
                    width,
                } = found;
                let (reading, spread) = &place;
                let part = covered.part();
                let width = width / (covered.draws - unknown).max(1.0);
                println!(
                    "{law:?}, {records}, {:?}, {reading}: {part:.4} of {}, unknown {unknown}, width {width:.4}, with larger noise {:.4}",
                    SPREADS[*spread],
                    covered.draws,
                    larger[&place].covered.part()
                );
                assert!(part >= least, "{law:?}, {records}, {place:?}: {part}");
                let all = of_readings.entry(reading.clone()).or_default();
                all.held += covered.held;
                all.draws += covered.draws;
                is_found_out |= reading == "variance" && larger[&place].covered.part() < 0.9;
                if records == 30_000 && reading == "variance" {
                    assert!(unknown == 0.0 && width < 1.0, "{place:?}: {width}");
                }
            }
            for (reading, all) in of_readings {
                assert!(all.part() >= 0.94, "{law:?}, {records}, {reading}: {all:?}");
            }
            assert!(is_found_out || records < 150, "{law:?}, {records}");
        }
    }
}

/// Columns add up over keys, and their variance is that of all their records together.
#[test]
fn variances_of_margins_are_those_of_all_records_together() {
    for (law, price) in LAWS {
        let mut release = CoveredRelease::of_spreads(law, price, 400);
        release.about.key_columns = PARTS_OF_KEYS.map(|(name, _)| name.to_owned()).to_vec();
        if let Basis::Keys(basis) = &mut release.about.basis {
            basis.keys = (0..COVERED)
                .map(|key| join_parts(&parts_of_covered(key)))
                .collect();
        }
        let mut covered = Covered::default();
        for number in 0..100 {
            let synopsis = release.synopsis(number, 1.0);
            let table = synopsis.key_table().expect("a table by key");
            let margin = table.margin(&["country"]).expect("a margin");
            let place = margin
                .readings
                .iter()
                .position(|reading| *reading == KeyReading::Variance);
            let place = place.expect("a variance");
            for row in &margin.rows {
                let keys = (0..COVERED).filter(|key| parts_of_covered(*key)[0] == row.parts[0]);
                let keys: Vec<usize> = keys.collect();
                let exact = release.exact_moment(KeyReading::Variance, &keys);
                covered.count(row.estimates[place], exact);
            }
        }
        let error = (covered.squares / covered.draws).sqrt();
        println!("{law:?}: {:.4}, off by {error:.3}", covered.part());
        assert!((0.935..=0.995).contains(&covered.part()), "{covered:?}");
        assert!(error < 4.0, "{error}");
    }
}
