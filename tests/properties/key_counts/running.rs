//! Running sums of tables by key: what a unit changes in each pane of a period and in their sums, what the noise is made for, and whether
//! the intervals of early and of late sums cover.

use bernstream_noise::continual::{CalibratedSeries, SeriesKind};

use super::*;

/// Lengths of a period in seconds, of panes of ten: three panes, and two and a half, which meet three.
const PERIODS: [u64; 2] = [30, 25];
/// The most panes that a period meets.
const PANES: usize = 3;
/// Times of the rows, in seconds: each pane of the first period, and what lies in the same pane and after it.
const TIMES: [i64; 4] = [2, 12, 22, 27];

/// Statistics that add up over panes.
const SUMMED: [Shares; 4] = [
    &[(CountedStatistic::Records, 1.0)],
    &[(CountedStatistic::Values, 1.0)],
    &[(CountedStatistic::Sums, 1.0)],
    &[
        (CountedStatistic::Records, 0.4),
        (CountedStatistic::Sums, 0.6),
    ],
];

fn rules_of_period(period: u64) -> WindowRules {
    with_three_keys(rules_for_users(0, period))
}

/// The tables of the first panes.
fn pane_tables(rules: &WindowRules, counting: &KeyCounting, rows: &[Record]) -> Vec<CountedKeys> {
    let mut store = store(rules, counting);
    for row in rows {
        store.absorb_batch(&batch(row));
    }
    (0..PANES).map(|_| closed_counts(&mut store)).collect()
}

/// The exact values of each pane.
fn pane_values(target: &KeyCounts, tables: &[CountedKeys]) -> Vec<Vec<i128>> {
    let of_pane = |table: &CountedKeys| target.evaluate(&Accumulator::Keys(table.clone()));
    tables.iter().map(|table| of_pane(table).opened()).collect()
}

/// The user and the number of the period of a row.
fn unit_in(period: u64, row: &Record) -> (&'static str, i64) {
    let time = row.time.expect("a time");
    (row.user.expect("a user"), time.div_euclid(period as i64))
}

/// A user at each time, and another one at some of them, of two keys each.
fn atoms_of_panes() -> Vec<Record> {
    let mut atoms = Vec::new();
    for (user, times) in [("u", &TIMES[..]), ("v", &TIMES[..2])] {
        for time in times {
            atoms.push(row(user, *time, 0, 10.0));
            atoms.push(row(user, *time, 1, -10.0));
        }
    }
    atoms
}

/// The changes of neighbours, as parts of the claims for one pane: 1-norm, sup norm, 2-norm.
struct PaneChanges {
    /// The largest of one pane.
    of_a_pane: [f64; 3],
    /// The largest of the sum over all panes so far.
    of_a_sum: [f64; 3],
    /// The most panes that change.
    panes: usize,
}

impl PaneChanges {
    fn none() -> Self {
        PaneChanges {
            of_a_pane: [0.0; 3],
            of_a_sum: [0.0; 3],
            panes: 0,
        }
    }

    fn compare(&mut self, claimed: [f64; 3], with: &[Vec<i128>], without: &[Vec<i128>]) {
        let mut sums = [vec![0; with[0].len()], vec![0; with[0].len()]];
        let mut changed = 0;
        for (with, without) in with.iter().zip(without) {
            let found = norms(with, without);
            changed += usize::from(found[0] > 0);
            keep_larger(&mut self.of_a_pane, found, claimed);
            for (sum, pane) in sums.iter_mut().zip([with, without]) {
                for (sum, value) in sum.iter_mut().zip(pane) {
                    *sum += value;
                }
            }
            keep_larger(&mut self.of_a_sum, norms(&sums[0], &sums[1]), claimed);
        }
        self.panes = self.panes.max(changed);
    }
}

fn keep_larger(largest: &mut [f64; 3], found: [u128; 3], claimed: [f64; 3]) {
    for ((largest, found), claimed) in largest.iter_mut().zip(found).zip(claimed) {
        *largest = largest.max(found as f64 / claimed);
    }
}

/// Every stream of a few rows in three panes: a period of a user in and out changes each of its panes by at most the claim, and
/// no other pane. A pane is what it would be without the others.
#[test]
fn no_unit_changes_a_pane_of_its_period_by_more_than_is_claimed() {
    let atoms = atoms_of_panes();
    for period in PERIODS {
        let rules = rules_of_period(period);
        for caps in CAPS {
            let counting = counting(caps);
            // Two rows of a key reach the bound of a sum; and one in each pane.
            let most = (2 * caps.keys as usize).max(PANES);
            let mut tables = BTreeMap::new();
            for stream in streams(atoms.len(), most) {
                let rows = chosen(&atoms, &stream);
                let found = pane_tables(&rules, &counting, &rows);
                if stream.len() < 4 {
                    for (pane, table) in found.iter().enumerate() {
                        let of_pane = |row: &&Record| row.time.expect("a time") / 10 == pane as i64;
                        let alone: Vec<Record> = rows.iter().filter(of_pane).cloned().collect();
                        let alone = pane_tables(&rules, &counting, &alone);
                        assert_eq!(alone[pane].totals, table.totals, "{stream:?}");
                    }
                }
                tables.insert(stream, found);
            }
            for shares in SUMMED {
                for norm in [Norm::One, Norm::Two] {
                    let target = target(&counting, shares, norm);
                    assert!(target.adds_up() && !target.is_sum());
                    let claimed = claims(&target, Adjacency::AddRemove, 1);
                    let values: BTreeMap<&Vec<usize>, Vec<Vec<i128>>> = tables
                        .iter()
                        .map(|(stream, tables)| (stream, pane_values(&target, tables)))
                        .collect();
                    let mut changes = PaneChanges::none();
                    for stream in tables.keys() {
                        let units: BTreeSet<_> = stream
                            .iter()
                            .map(|at| unit_in(period, &atoms[*at]))
                            .collect();
                        for unit in units {
                            let mut rest = stream.clone();
                            rest.retain(|at| unit_in(period, &atoms[*at]) != unit);
                            changes.compare(claimed, &values[stream], &values[&rest]);
                        }
                    }
                    let name = format!("{period}, {caps:?}, {shares:?}, {norm:?}");
                    assert_claims_are_reached(changes.of_a_pane, &name);
                    assert!(
                        changes.of_a_pane.iter().all(|part| *part <= 1.0 + 1e-12),
                        "{name}"
                    );
                    assert_eq!(changes.panes, PANES, "{name}");
                    for part in changes.of_a_sum {
                        assert!(part <= PANES as f64 + 1e-12, "{name}: {part}");
                    }
                }
            }
        }
    }
}

/// A user who has as much as counts in every pane of a period changes their sum by as many claims as it meets panes: noise that is made for
/// one pane fewer would be too little.
#[test]
fn a_user_in_every_pane_of_a_period_changes_the_sum_by_all_that_is_claimed() {
    for period in PERIODS {
        let rules = rules_of_period(period);
        for caps in CAPS {
            let counting = counting(caps);
            let mut rows = Vec::new();
            for pane in 0..PANES as i64 {
                for key in 0..caps.keys as usize {
                    for second in 0..3 {
                        rows.push(row("u", 10 * pane + second, key, 10.0));
                    }
                }
            }
            assert!(rows.iter().all(|row| unit_in(period, row).1 == 0));
            for shares in SUMMED {
                for norm in [Norm::One, Norm::Two] {
                    let target = target(&counting, shares, norm);
                    let claimed = claims(&target, Adjacency::AddRemove, 1);
                    let [with, without] = [rows.as_slice(), &[]]
                        .map(|rows| pane_values(&target, &pane_tables(&rules, &counting, rows)));
                    let mut changes = PaneChanges::none();
                    changes.compare(claimed, &with, &without);
                    for part in changes.of_a_sum {
                        assert!(
                            (part / PANES as f64 - 1.0).abs() < 1e-3,
                            "{period}, {caps:?}, {shares:?}: {part}"
                        );
                    }
                }
            }
        }
    }
}

/// A running sum of hours; `UNIT` and `CAPS` are filled in.
const SETTINGS: &str = r#"
pipeline = "running"
[input]
time = "time"
files = { path = "nowhere" }
key = { column = "country", values = ["AT", "BR", "CH"] }
[windows]
origin = "2025-01-01T00:00:00Z"
length = "1h"
end = "2025-01-05T00:00:00Z"
[privacy]
unit = UNIT
adjacency = "add_remove"
rho = 100
[release]
name = "so-far"
rho = 0.5
noise = "gaussian"
windows = { cumulative = "64h" }
counts = { of = ["records", "mean"], CAPS value = { column = "amount", min = -10, max = 10, outside = "clamp" } }
[output]
files = { path = "out" }
[ledger]
path = "ledger"
"#;

/// Under rho the noise depends on how many panes of its period a unit can be in: all that the period meets, whatever a user's records are.
#[test]
fn the_noise_of_a_running_sum_is_made_for_all_panes_of_a_period() {
    for (unit, caps, panes) in [
        (r#""record""#, "", 1),
        (
            r#"{ user = { column = "user", per = "1h" } }"#,
            "max_keys = 2, max_records = 2,",
            1,
        ),
        (
            r#"{ user = { column = "user", per = "1d" } }"#,
            "max_keys = 2, max_records = 2,",
            24,
        ),
        // Half an hour longer than a day: it meets 25 hours, one of them in part.
        (
            r#"{ user = { column = "user", per = "1470m" } }"#,
            "max_keys = 2, max_records = 2,",
            25,
        ),
    ] {
        let text = SETTINGS.replace("UNIT", unit).replace("CAPS", caps);
        let settings =
            WorkerSettings::parse(&text, "f").unwrap_or_else(|faults| panic!("{faults}"));
        let [release] = &settings.releases[..] else {
            panic!("one release")
        };
        assert!(release.is_sum_of_panes());
        let series = settings
            .noise_series(release)
            .expect("noise")
            .expect("a series");
        let target = &*release.function.target;
        let of_panes = |panes: u32| {
            let change = target.sensitivity_in(Norm::Two, Adjacency::AddRemove, 1);
            CalibratedSeries::calibrated(
                SeriesKind::Cumulative,
                NoiseDistribution::DiscreteGaussian,
                change.expect("a claim"),
                target.shape().value_count(),
                panes,
                price_of(NoiseDistribution::DiscreteGaussian, "0.5"),
                64,
            )
            .expect("a series")
        };
        assert_eq!(series, of_panes(panes), "{unit}");
        assert_ne!(series, of_panes(panes + 1), "{unit}");
    }
}

/// Steps of a running sum whose intervals are tried, the first and the last among them.
const STEPS: [u64; 4] = [0, 6, 40, 63];

/// Running sums of a release of many keys, whose records are spread over the panes.
struct RunningRelease {
    of_a_pane: CoveredRelease,
    series: CalibratedSeries,
    law: NoiseDistribution,
}

impl RunningRelease {
    fn new(of_a_pane: CoveredRelease, law: NoiseDistribution, price: &str) -> Self {
        let target = &of_a_pane.target;
        let change = target.sensitivity_in(law.norm(), Adjacency::AddRemove, 1);
        let series = CalibratedSeries::calibrated(
            SeriesKind::Cumulative,
            law,
            change.expect("a claim"),
            target.shape().value_count(),
            1,
            price_of(law, price),
            64,
        )
        .expect("a series");
        RunningRelease {
            of_a_pane,
            series,
            law,
        }
    }

    /// The sums after each of [`STEPS`], whose records come in the first pane; their noise is `times` what it is.
    fn synopses(&self, release: u32, times: f64) -> Vec<Synopsis> {
        let mut seed = [11; 32];
        seed[..4].copy_from_slice(&release.to_le_bytes());
        let mut generator = Generator::frozen(seed);
        let CoveredRelease {
            target,
            about,
            mechanism,
            totals,
            ..
        } = &self.of_a_pane;
        let exact = target.evaluate(&Accumulator::Keys(CountedKeys {
            totals: totals.clone(),
            units: Vec::new(),
        }));
        let plain = exact.opened();
        let count = plain.len();
        let mut state = self.series.begin_state(count);
        let mut synopses = Vec::new();
        for step in 0..=STEPS[STEPS.len() - 1] {
            let nothing = bernstream_noise::Exact::new(vec![0; count]);
            let pane = if step == 0 { &exact } else { &nothing };
            let noisy = self.series.release_step(pane, &mut state, &mut generator);
            if !STEPS.contains(&step) {
                continue;
            }
            let mut values = Vec::new();
            for (noisy, plain) in noisy.values().iter().zip(&plain) {
                values.push(*plain as f64 + times * (noisy - plain) as f64);
            }
            // What the worker says of it.
            let deviation = self.series.deviation(count, step);
            let of_one = self.law.deviation(count) * mechanism.scale().units() as f64;
            let about = about.clone().at_scale(deviation / of_one);
            synopses.push(Synopsis::new(about, target.publish(values)).expect("a synopsis"));
        }
        synopses
    }

    /// In which part of all draws intervals hold, by step and reading; those of the sums over two keys are called so.
    fn coverage(&self, times: f64) -> BTreeMap<(u64, String), Covered> {
        let mut covered: BTreeMap<(u64, String), Covered> = BTreeMap::new();
        for release in 0..RELEASES {
            for (synopsis, step) in self.synopses(release, times).iter().zip(STEPS) {
                let table = synopsis.key_table().expect("a table by key");
                for (place, KeyRow { estimates, .. }) in table.rows().iter().enumerate() {
                    for (reading, estimate) in table.readings().iter().zip(estimates) {
                        let exact = self.of_a_pane.exact_reading(*reading, place);
                        let name = (step, reading.name().into_owned());
                        covered.entry(name).or_default().count(*estimate, exact);
                    }
                }
                let margin = table.margin(&[PARTS_OF_KEYS[0].0]).expect("a margin");
                for row in &margin.rows {
                    for (reading, estimate) in margin.readings.iter().zip(&row.estimates) {
                        let exact = self.of_a_pane.exact_sum(0, &row.parts[0], *reading);
                        let name = (step, format!("{} of two keys", reading.name()));
                        covered.entry(name).or_default().count(*estimate, exact);
                    }
                }
            }
        }
        covered
    }
}

/// The noise of a sum is that of several draws, and its law no longer the one of the description but nearer to the normal one: intervals hold at
/// every step, and are hardly wider than need be.
#[test]
fn intervals_of_running_sums_hold_early_and_late_and_larger_noise_is_found_out() {
    for (law, price) in LAWS {
        for shares in [OF_USERS[1], OF_USERS[2], OF_USERS[3]] {
            let of_a_pane = CoveredRelease::of_two_columns(law, price, shares);
            let release = RunningRelease::new(of_a_pane, law, price);
            let larger = release.coverage(1.3);
            for (name, covered) in release.coverage(1.0) {
                let part = covered.part();
                let larger = larger[&name].part();
                let deviation = (covered.squares / covered.draws).sqrt();
                println!(
                    "{law:?}, {shares:?}, {name:?}: {part:.4} of {}, with larger noise {larger:.4}; deviation {deviation:.3}",
                    covered.draws
                );
                let least = if covered.draws < 2000.0 { 0.93 } else { 0.94 };
                assert!(
                    (least..=0.98).contains(&part),
                    "{law:?} {shares:?} {name:?}: {part}"
                );
                assert!(larger < 0.935, "{law:?} {shares:?} {name:?}: {larger}");
            }
        }
    }
}

/// Running sums of users: a window of each meets two days, so each day pays twice.
const SUMS_OF_A_USER: [&str; 2] = [
    r#"rho = 10
[release]
name = "counts"
rho = 0.5
noise = "gaussian"
windows = { cumulative = "8d" }
counts = { of = ["records", "mean"], max_keys = 2, max_records = 3, value = { column = "amount", min = -5, max = 10, outside = "clamp" } }"#,
    r#"epsilon = 10
[release]
name = "counts"
epsilon = 1
windows = { cumulative = "8d" }
counts = { of = ["sum"], max_keys = 3, value = { column = "amount", min = -5, max = 10, outside = "drop" }, per_user = { min = -10, max = 25 } }"#,
];

/// Through the worker's own steps: streams with a unit more or less, whose sums differ by what their panes do.
#[test]
fn an_audit_replays_running_sums_and_comes_near_their_claims() {
    for release in SUMS_OF_A_USER {
        let settings = audited(USER, release, COUNTRIES);
        let sound = plan_of(&settings);
        assert!(sound.releases[0].series.is_some());
        for (plan, is_sound) in [(&sound, true), (&with_half(&sound, half_change), false)] {
            let subject = subject(&settings, plan);
            let mut pairs = neighbours::neighbouring_pairs(&subject);
            pairs.truncate(REPLAYED);
            let report = run_pairs(&subject, &pairs, 1, || true).expect("replays");
            assert!(report.violations.is_empty(), "{:?}", report.violations);
            assert_eq!(report.beyond.is_empty(), is_sound, "{:?}", report.beyond);
            if is_sound {
                let (place, largest) = report.largest.iter().next().expect("a change");
                let part = largest.share_of_declared();
                println!("{place:?}: {part:.4} of the claim by {:?}", largest.pair);
                assert!(part > 0.99, "{largest:?}");
            }
        }
    }
}
