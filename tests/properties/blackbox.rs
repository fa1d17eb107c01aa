//! A caller's functions with true declarations: no pair of neighbours changes them by more, and some nearly do.

use bernstream_functions::blackbox::{
    BlackBox, DeclaredChange, Fitted, LatticeDeclaration, RecordFunction,
};
use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_release::window::accumulator::Record;
use bernstream_synopsis::Adjacency;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::exact::Opened as _;
use crate::priestley_chao::PriestleyChao;

const DEGREE: u32 = 20;
const GAP: f64 = 0.01;
const BANDWIDTH: f64 = 0.1;

/// Mean of the labels without the `cut` largest and smallest, over a fixed number of records.
#[derive(Clone, Debug)]
struct TrimmedMean {
    cut: usize,
    records: f64,
}

impl RecordFunction for TrimmedMean {
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
        let mut labels: Vec<f64> = records.iter().map(Record::label).collect();
        labels.sort_by(f64::total_cmp);
        let kept = labels
            .get(self.cut..labels.len().saturating_sub(self.cut))
            .unwrap_or_default();
        let mean = kept.iter().sum::<f64>() / self.records;
        Box::new(move |_| mean)
    }
}

/// One more record among the kept, or a shift of all of them that adds up to the range of a label.
fn trimmed_mean() -> BlackBox<TrimmedMean> {
    let change = |sup: f64| DeclaredChange { sup, sum: None };
    let declared = LatticeDeclaration {
        replaced: change(2.0 / 40.0),
        added: Some(change(1.0 / 40.0)),
        error: 1e-13,
        range: [-1.0, 1.0],
    };
    BlackBox::with_declaration(
        TrimmedMean {
            cut: 3,
            records: 40.0,
        },
        1,
        DEGREE,
        40,
        declared,
    )
    .unwrap()
}

/// `docs/proofs/regression.md`: a record's own term and its successor's weight, each by at most the gap.
fn regression() -> BlackBox<PriestleyChao> {
    let at = |d: f64| -> f64 {
        (0..=DEGREE)
            .map(|p| {
                (-((f64::from(p) / f64::from(DEGREE) - d) / BANDWIDTH).powi(2) / 2.0).exp()
                    / BANDWIDTH
            })
            .sum()
    };
    let largest = (0..=1000)
        .map(|d| at(f64::from(d) / 1000.0))
        .fold(0.0, f64::max)
        * (1.0 + 1e-6);
    let change = |times: f64| DeclaredChange {
        sup: times * GAP / BANDWIDTH,
        sum: Some(times * GAP * largest),
    };
    let declared = LatticeDeclaration {
        replaced: change(4.0),
        added: Some(change(2.0)),
        error: 1e-12,
        range: [-12.0, 12.0],
    };
    BlackBox::with_declaration(
        PriestleyChao {
            bandwidth: BANDWIDTH,
            gap: GAP,
        },
        1,
        DEGREE,
        100,
        declared,
    )
    .unwrap()
}

type Data = (Vec<Record>, Record, Record);

fn change<F: RecordFunction>(
    target: &BlackBox<F>,
    adjacency: Adjacency,
    (common, one, other): &Data,
) -> [u128; 2] {
    let side = |record: Option<&Record>| {
        target.evaluate(
            &target
                .accumulator()
                .filled_accumulator(common.iter().chain(record).copied()),
        )
    };
    let one = side(Some(one));
    let absent = side(None);
    let change = |other: &Exact| {
        let one = one.opened();
        let other = other.opened();
        let changes = || one.iter().zip(&other).map(|(a, b)| a.abs_diff(*b));
        [changes().max().unwrap_or(0), changes().sum::<u128>()]
    };
    // Under replace-one a record may also become invalid.
    let gone = change(&absent);
    let replaced = change(&side(Some(other)));
    [0, 1].map(|norm| {
        if adjacency == Adjacency::ReplaceOne {
            gone[norm].max(replaced[norm])
        } else {
            gone[norm]
        }
    })
}

/// Found over claimed, sup norm and 1-norm: from `starts`, improved by small steps of one record at a time.
fn tightness<F: RecordFunction>(
    target: &BlackBox<F>,
    adjacency: Adjacency,
    starts: &[Data],
) -> [f64; 2] {
    let claimed = [
        target.sup_sensitivity(adjacency, 1).unwrap(),
        target.sensitivity(adjacency, 1).unwrap().0,
    ]
    .map(|units| units as f64);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    [0, 1].map(|norm| {
        let mut best = starts
            .iter()
            .max_by_key(|data| change(target, adjacency, data)[norm])
            .unwrap()
            .clone();
        let mut found = change(target, adjacency, &best)[norm];
        for round in 0..400 {
            let step = 0.1 * 0.98_f64.powi(round);
            let mut moved = best.clone();
            let n = moved.0.len();
            let which = rng.random_range(0..n + 2);
            let record = match which {
                i if i < n => &mut moved.0[i],
                i if i == n => &mut moved.1,
                _ => &mut moved.2,
            };
            let mut near = |x: f64| x + step * (2.0 * rng.random::<f64>() - 1.0);
            *record = Record::new(&[near(record.x(0))], near(record.label()));
            let now = change(target, adjacency, &moved)[norm];
            if now > found {
                (found, best) = (now, moved);
            }
        }
        found as f64 / claimed[norm]
    })
}

fn random(rng: &mut ChaCha20Rng, n: usize) -> Data {
    let mut one = || Record::new(&[rng.random()], 2.0 * rng.random::<f64>() - 1.0);
    ((0..n).map(|_| one()).collect(), one(), one())
}

fn starts_of_means() -> Vec<Data> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut starts: Vec<Data> = (0..20).map(|_| random(&mut rng, 39)).collect();
    // Half the labels at either end: a record that changes ends takes one of the kept with it.
    let halves = (0..39)
        .map(|i| Record::new(&[0.5], if i < 20 { -1.0 } else { 1.0 }))
        .collect();
    starts.push((halves, Record::new(&[0.5], 1.0), Record::new(&[0.5], -1.0)));
    starts
}

fn starts_of_regressions() -> Vec<Data> {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let mut starts: Vec<Data> = (0..20).map(|_| random(&mut rng, 30)).collect();
    for place in (2..=8).map(|i| f64::from(i) / 10.0) {
        // A record falls on one of the opposite label, whose gap it takes away; and the same one gap further on.
        let at = |x: f64, label: f64| Record::new(&[x], label);
        let next = place + 1.001 * GAP;
        let common = vec![at(0.0, 0.0), at(place, 1.0), at(next, 1.0)];
        starts.push((common, at(place - 1e-9, -1.0), at(next - 1e-9, -1.0)));
        let common = vec![at(0.0, 0.0), at(place, 1.0), at(next, -1.0)];
        starts.push((common, at(place - 1e-9, -1.0), at(next - 1e-9, 1.0)));
    }
    starts
}

fn all() -> Vec<(&'static str, Adjacency, [f64; 2])> {
    let mean = trimmed_mean();
    let regression = regression();
    let means = starts_of_means();
    let regressions = starts_of_regressions();
    let both = [Adjacency::AddRemove, Adjacency::ReplaceOne];
    let means = both.map(|adjacency| ("mean", adjacency, tightness(&mean, adjacency, &means)));
    let regressions = both.map(|adjacency| {
        (
            "regression",
            adjacency,
            tightness(&regression, adjacency, &regressions),
        )
    });
    means.into_iter().chain(regressions).collect()
}

#[test]
fn no_neighbours_change_a_function_by_more_than_declared_and_some_nearly_do() {
    for (name, adjacency, [sup, sum]) in all() {
        println!("{name}, {adjacency:?}: sup {sup:.4}, 1-norm {sum:.4} of the claim");
        assert!(
            sup <= 1.0 && sum <= 1.0,
            "{name} {adjacency:?}: {sup} {sum}"
        );
        // Under add-remove the claim is that of a replacement, for a window that is full; a record that only comes makes
        // half of it (below, one that pushes another out makes all).
        let least = if adjacency == Adjacency::AddRemove {
            0.475
        } else {
            0.95
        };
        assert!(
            sup > least && sum > least,
            "{name} {adjacency:?}: {sup} {sum}"
        );
    }
}

#[test]
fn a_declaration_thirty_percent_too_small_is_found_out() {
    for (name, adjacency, [sup, sum]) in all() {
        let claimed = if adjacency == Adjacency::AddRemove {
            0.35
        } else {
            0.7
        };
        assert!(
            sup > claimed && sum > claimed,
            "{name} {adjacency:?}: {sup} {sum}"
        );
    }
}

#[test]
fn one_record_more_in_a_full_window_is_a_replacement() {
    let target = trimmed_mean();
    let (common, one, other) = starts_of_means().pop().unwrap();
    // 40 records are kept: with the new one first, the last is not.
    let full = target.evaluate(
        &target
            .accumulator()
            .filled_accumulator(common.iter().copied().chain([one])),
    );
    let pushed = target.evaluate(
        &target
            .accumulator()
            .filled_accumulator(common.iter().copied().chain([other])),
    );
    let found = full.opened()[0].abs_diff(pushed.opened()[0]) as f64;
    let claimed = target.sup_sensitivity(Adjacency::AddRemove, 1).unwrap() as f64;
    assert!(
        found <= claimed && found > 0.95 * claimed,
        "{found} {claimed}"
    );
}

/// The labels' sum, far from 0: a record that is not there any more changes it far more than one that has another label.
#[derive(Clone, Debug)]
struct Lifted;

impl RecordFunction for Lifted {
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
        let sum: f64 = records.iter().map(|record| 10.0 + record.label()).sum();
        Box::new(move |_| sum)
    }
}

#[test]
fn a_record_that_becomes_invalid_is_one_that_goes() {
    let change = |sup: f64| DeclaredChange { sup, sum: None };
    let declared = LatticeDeclaration {
        replaced: change(2.0),
        added: Some(change(11.0)),
        error: 1e-12,
        range: [0.0, 100.0],
    };
    let target = BlackBox::with_declaration(Lifted, 1, 4, 5, declared).unwrap();
    let record = Record::new(&[0.5], 1.0);
    let data = (vec![record; 4], record, Record::new(&[0.5], -1.0));
    let [sup, sum] = self::change(&target, Adjacency::ReplaceOne, &data);
    let claimed = u128::from(target.sup_sensitivity(Adjacency::ReplaceOne, 1).unwrap());
    assert!(
        sup <= claimed && sup * 100 > claimed * 99,
        "{sup} {claimed}"
    );
    assert!(
        sum <= u128::from(target.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0),
        "{sum}"
    );
}

#[derive(Clone, Debug)]
struct Constant(f64);

impl RecordFunction for Constant {
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
        Box::new(move |_| if records.is_empty() { 0.0 } else { self.0 })
    }
}

#[test]
fn values_are_clipped_whatever_they_are() {
    let change = DeclaredChange {
        sup: 100.0,
        sum: None,
    };
    let declared = LatticeDeclaration {
        replaced: change,
        added: Some(change),
        error: 0.0,
        range: [-1.0, 3.0],
    };
    for (value, clipped) in [
        (f64::NAN, 1.0),
        (f64::INFINITY, 3.0),
        (-7.0, -1.0),
        (2.0, 2.0),
    ] {
        let target = BlackBox::with_declaration(Constant(value), 2, 4, 10, declared).unwrap();
        let exact = target.evaluate(
            &target
                .accumulator()
                .filled_accumulator([Record::new(&[0.5], 0.0)]),
        );
        assert_eq!(exact.opened().len(), 25);
        assert!(
            exact
                .opened()
                .iter()
                .all(|v| (*v as f64 * target.unit() - clipped).abs() < 1e-8),
            "{value}"
        );
        // A declaration beyond the range is held to the range, which needs nobody's word.
        let sup = target.sup_sensitivity(Adjacency::AddRemove, 1).unwrap() as f64 * target.unit();
        assert!((sup - 4.0).abs() < 1e-6, "{sup}");
        let sum = target.sensitivity(Adjacency::AddRemove, 3).unwrap().0 as f64 * target.unit();
        assert!((sum - 3.0 * 25.0 * 4.0).abs() < 1e-3, "{sum}");
    }
}

#[test]
fn degenerate_windows_have_the_same_shape() {
    let same = vec![Record::new(&[0.3], 1.0); 40];
    let beyond = [Record::new(&[-3.0], -9.0), Record::new(&[9.0], 9.0)];
    let mean = trimmed_mean();
    let regression = regression();
    for records in [&[][..], &same, &same[..1], &beyond] {
        for target in [&mean as &dyn Target, &regression] {
            assert_eq!(
                target
                    .evaluate(
                        &target
                            .accumulator()
                            .filled_accumulator(records.iter().copied())
                    )
                    .opened()
                    .len(),
                21
            );
        }
    }
}

#[test]
fn what_cannot_be_declared_is_refused_in_words() {
    let right = LatticeDeclaration {
        replaced: DeclaredChange {
            sup: 1.0,
            sum: None,
        },
        added: None,
        error: 0.0,
        range: [0.0, 1.0],
    };
    let says = |dimensions, degree, most, declared, words: &str| {
        let message = BlackBox::with_declaration(Constant(0.0), dimensions, degree, most, declared)
            .unwrap_err()
            .to_string();
        assert!(message.contains(words), "{message}");
    };
    says(0, 5, 10, right, "1 to 3 axes, not 0");
    says(1, 0, 10, right, "degree 0 is out of range");
    says(3, 200, 10, right, "8120601 lattice points");
    says(1, 5, 0, right, "at least one record");
    says(
        1,
        5,
        10,
        LatticeDeclaration {
            range: [1.0, 1.0],
            ..right
        },
        "the first must be below the second",
    );
    says(
        1,
        5,
        10,
        LatticeDeclaration {
            error: f64::NAN,
            ..right
        },
        "a declared change of 1 a point",
    );
    says(
        1,
        5,
        10,
        LatticeDeclaration {
            replaced: DeclaredChange {
                sup: 0.0,
                sum: None,
            },
            ..right
        },
        "changes must be above 0",
    );
    says(
        1,
        5,
        10,
        LatticeDeclaration {
            replaced: DeclaredChange {
                sup: 1e-12,
                sum: None,
            },
            ..right
        },
        "finer than the grid",
    );
    let target = BlackBox::with_declaration(Constant(0.0), 1, 5, 10, right).unwrap();
    let message = target
        .sensitivity(Adjacency::AddRemove, 1)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("added or removed record changes the function is not declared"),
        "{message}"
    );
    assert!(target.sensitivity(Adjacency::ReplaceOne, u32::MAX).is_err());
}
