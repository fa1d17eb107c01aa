//! Told caps: every small stream against a plain reference, every pair of its neighbours against the claims, and whether the interval of
//! what a cap drops holds.

use super::*;
use bernstream_synopsis::told_caps::{CapReading, UnitBin, unit_bins};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;

/// Statistics beside which caps are told, and caps alone.
const TOLD: [Shares; 3] = [
    &[(CountedStatistic::Caps, 1.0)],
    &[
        (CountedStatistic::Users, 0.95),
        (CountedStatistic::Caps, 0.05),
    ],
    &[
        (CountedStatistic::Users, 0.25),
        (CountedStatistic::Values, 0.25),
        (CountedStatistic::Caps, 0.5),
    ],
];

fn told(caps: Caps, most: u32) -> KeyCounting {
    KeyCounting {
        unit_bins: unit_bins(most, KEYS.len() as u32, caps.keys),
        ..counting(caps)
    }
}

fn counts_of(rules: &WindowRules, counting: &KeyCounting, rows: &[Record]) -> CountedKeys {
    let mut store = store(rules, counting);
    for row in rows {
        store.absorb_batch(&batch(row));
    }
    closed_counts(&mut store)
}

/// What a window of these rows tells of units, written from the page of proofs.
fn reference_units(bins: &[UnitBin], rows: &[Record]) -> Vec<u64> {
    let mut keys: BTreeMap<Unit, BTreeSet<usize>> = BTreeMap::new();
    for row in rows {
        keys.entry(unit_of(row)).or_default().insert(key_of(row));
    }
    let mut units = vec![0; bins.len()];
    for keys in keys.values() {
        let keys = keys.len() as u32;
        let bin = bins
            .iter()
            .position(|bin| (bin.least..=bin.most).contains(&keys));
        units[bin.expect("a bin of every number")] += 1;
    }
    units
}

/// Through the bytes of partials, joined in every order: a key of a unit that two parts have counts once, and what the cap keeps is what it
/// keeps without.
#[test]
fn every_split_and_every_order_of_joins_has_the_units_of_the_reference() {
    let atoms = atoms();
    let rules = user_rules();
    for (caps, most) in [(CAPS[0], 1), (CAPS[1], 2), (CAPS[1], 3), (CAPS[2], 2)] {
        let counting = told(caps, most);
        let longest = if most == 2 { 4 } else { 3 };
        let all = streams(atoms.len(), longest);
        let mut partials = BTreeMap::new();
        for stream in &all {
            let rows = chosen(&atoms, stream);
            partials.insert(stream.clone(), partial_of(&rules, &counting, &rows));
        }
        for stream in &all {
            let rows = chosen(&atoms, stream);
            let expected = CountedKeys {
                totals: reference_totals(&counting, &rows),
                units: reference_units(&counting.unit_bins, &rows),
            };
            assert_eq!(expected, counts_of(&rules, &counting, &rows), "{stream:?}");
            for number in 0..2_usize.pow(stream.len() as u32) {
                let split = split_of(stream, 2, number);
                let mut store = store(&rules, &counting);
                let first = store.next().expect("a window");
                for part in &split {
                    assert!(store.take_part(first, &partials[part]), "{split:?}");
                }
                assert_eq!(expected, closed_counts(&mut store), "{caps:?}: {split:?}");
            }
        }
    }
}

/// Every unit of every stream of up to four rows, in and out: its keys above the cap move one number by one, and not as many as there are.
#[test]
fn no_unit_changes_more_than_is_claimed_where_caps_are_told_and_some_change_all_of_it() {
    let atoms = atoms();
    let rules = user_rules();
    for (caps, most) in [(CAPS[0], 1), (CAPS[1], 2), (CAPS[3], 2), (CAPS[2], 3)] {
        let counting = told(caps, most);
        let mut windows = WindowTotals::default();
        for stream in streams(atoms.len(), 4) {
            let found = counts_of(&rules, &counting, &chosen(&atoms, &stream));
            windows.add_counted(stream, found);
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
        for shares in TOLD {
            for norm in [Norm::One, Norm::Two] {
                let target = target(&counting, shares, norm);
                let largest = windows.largest_parts(&target, Adjacency::AddRemove, &pairs);
                let name = format!("{caps:?}, {most}, {shares:?}, {norm:?}");
                assert_claims_are_reached(largest, &name);
            }
        }
    }
}

#[test]
fn where_a_record_is_replaced_caps_have_no_sensitivity() {
    for shares in TOLD {
        let target = target(&told(CAPS[0], 2), shares, Norm::One);
        for norm in [Norm::One, Norm::Two, Norm::Sup] {
            let claim = target.sensitivity_in(norm, Adjacency::ReplaceOne, 1);
            assert!(claim.is_err(), "{shares:?}, {norm:?}");
        }
    }
}

/// A change of one at the part of the price that was asked for, whatever the cap is.
#[test]
fn told_caps_have_the_noise_of_their_own_part_of_the_price() {
    for keys in [1, 2, 3] {
        let counting = told(Caps { keys, records: 3 }, 3);
        for (law, price) in LAWS {
            for shares in TOLD {
                let target = target(&counting, shares, law.norm());
                let scale = scale_of(&target, law, price);
                let Basis::Keys(basis) = target.shape().basis else {
                    panic!("a table by key")
                };
                let (_, part) = shares[shares.len() - 1];
                // The ideal of the others is that of two keys.
                let two_keys = match law {
                    NoiseDistribution::DiscreteGaussian => 2.0_f64.sqrt(),
                    _ => 2.0,
                };
                let ideal = ideal_deviation(law, 1.0, part) / two_keys;
                let unit = basis.units.expect("told units").unit;
                let ratio = scale * unit * law_factor(law) / ideal;
                assert!((ratio - 1.0).abs() < 0.02, "{keys}, {law:?}: {ratio}");
            }
        }
    }
}

/// Numbers of keys that units have.
#[derive(Clone, Copy, Debug)]
enum KeySpread {
    /// One to four keys, told apart one by one.
    Few,
    /// One to 60, few units with many.
    Many,
    /// One to 60, all at the upper ends of their bins.
    UpperEnds,
    /// One to 200, some beyond what is told apart.
    Beyond,
}

impl KeySpread {
    fn keys(self) -> u32 {
        match self {
            KeySpread::Few => 4,
            KeySpread::Many | KeySpread::UpperEnds => 64,
            KeySpread::Beyond => 200,
        }
    }

    fn drawn(self, bins: &[UnitBin], rng: &mut ChaCha20Rng) -> u32 {
        let size: f64 = rng.sample(Exp1);
        let keys = match self {
            KeySpread::Few => return rng.random_range(1..=4),
            KeySpread::Many | KeySpread::UpperEnds => (size * size * 4.0) as u32 + 1,
            KeySpread::Beyond => (size * size * 12.0) as u32 + 1,
        };
        let keys = keys.min(self.keys());
        match self {
            KeySpread::UpperEnds => bin_of(bins, keys).most,
            _ => keys,
        }
    }
}

fn bin_of(bins: &[UnitBin], keys: u32) -> UnitBin {
    let found = bins.iter().find(|bin| keys <= bin.most);
    *found.expect("a bin of every number")
}

/// Releases of one population, and the share that its cap drops.
struct ToldRelease {
    release: CoveredRelease,
    dropped: f64,
}

impl ToldRelease {
    fn new(law: NoiseDistribution, price: &str, spread: KeySpread, cap: u32) -> Self {
        let shares = TOLD[1];
        let names = (0..spread.keys()).map(|key| format!("key {key}"));
        let counting = KeyCounting {
            keys: names.collect(),
            max_keys: cap,
            unit_bins: unit_bins(64, spread.keys(), cap),
            ..counting(CAPS[0])
        };
        let bins = counting.unit_bins.clone();
        let target = target(&counting, shares, law.norm());
        let mechanism = mechanism(&target, law, price);
        let mut release = CoveredRelease::new(law, price, OF_USERS[0]);
        release.about.basis = target.shape().basis;
        release.about.noise.scale = mechanism.scale().units() as f64;
        if let TargetDescription::Counts(counts) = &mut release.about.target {
            counts.max_keys = cap;
        }
        release.totals = vec![KeyTotals::default(); spread.keys() as usize];
        release.units = vec![0; bins.len()];
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let (mut dropped, mut all) = (0, 0);
        for _ in 0..4000 {
            let keys = spread.drawn(&bins, &mut rng);
            let place = bins.iter().position(|bin| keys <= bin.most);
            release.units[place.expect("a bin")] += 1;
            dropped += keys.saturating_sub(cap);
            all += keys;
        }
        (release.target, release.mechanism) = (target, mechanism);
        ToldRelease {
            release,
            dropped: f64::from(dropped) / f64::from(all),
        }
    }

    fn read(&self, release: u32, times: f64) -> CapReading {
        let synopsis = self.release.synopsis(release, times);
        synopsis.told_caps().expect("told caps")
    }

    /// In which part of so many releases the interval holds.
    fn coverage(&self, releases: u32, times: f64) -> f64 {
        let mut covered = Covered::default();
        for release in 0..releases {
            covered.count(self.read(release, times).dropped, self.dropped);
        }
        covered.part()
    }
}

/// The interval holds in 95 % of releases, give or take four deviations of so many; where bins are single numbers, not more often, and
/// larger noise is found out.
fn assert_shares_are_covered(releases: u32, spread: KeySpread, cap: u32) {
    let give = 4.0 * (0.95 * 0.05 / f64::from(releases)).sqrt();
    for (law, price) in LAWS {
        let release = ToldRelease::new(law, price, spread, cap);
        let part = release.coverage(releases, 1.0);
        let larger = release.coverage(releases, 2.0);
        println!(
            "{law:?}, {spread:?}, {cap}: drops {:.3}, held in {part:.3}, {larger:.3}",
            release.dropped
        );
        assert!(part >= 0.95 - give, "{law:?} {spread:?} {cap}: {part}");
        if matches!(spread, KeySpread::Few) {
            assert!(part <= 0.97 + give, "{law:?} {spread:?} {cap}: {part}");
            assert!(larger < 0.95 - give, "{law:?} {spread:?} {cap}: {larger}");
        }
    }
}

#[test]
fn intervals_of_what_a_cap_drops_hold_and_larger_noise_is_found_out() {
    assert_shares_are_covered(60, KeySpread::Few, 1);
    assert_shares_are_covered(60, KeySpread::Many, 3);
}

#[test]
fn messages_keep_the_numbers_of_units() {
    let (law, price) = LAWS[0];
    let release = ToldRelease::new(law, price, KeySpread::Beyond, 5);
    let synopsis = release.release.synopsis(0, 1.0);
    let encoded = synopsis.encode().expect("bytes");
    let decoded = Synopsis::decode_message(&encoded.bytes).expect("a synopsis");
    assert_eq!(decoded, synopsis);
    let other = release.release.synopsis(1, 1.0).encode().expect("bytes");
    assert_eq!(other.bytes.len(), encoded.bytes.len());
    let text = synopsis.to_json().expect("text");
    let read = Synopsis::from_json(&text).expect("a synopsis");
    assert_eq!(read, synopsis);
    assert_eq!(read.told_caps(), synopsis.told_caps());
    // One number of units less than there are bins.
    let mut about = synopsis.description().clone();
    let values = synopsis.values();
    assert!(Synopsis::new(about.clone(), values[..values.len() - 1].to_vec()).is_err());
    if let Basis::Keys(basis) = &mut about.basis
        && let Some(told) = &mut basis.units
    {
        told.packed = "0".repeat(16 * told.bins.len());
    }
    assert!(Synopsis::new(about, values.to_vec()).is_err());
}

mod long {
    use super::*;

    #[test]
    fn intervals_of_what_a_cap_drops_hold_in_many_releases() {
        for (spread, cap) in [
            (KeySpread::Few, 1),
            (KeySpread::Few, 3),
            (KeySpread::Many, 3),
            (KeySpread::Many, 10),
            (KeySpread::UpperEnds, 3),
            (KeySpread::Beyond, 5),
        ] {
            assert_shares_are_covered(400, spread, cap);
        }
    }
}
