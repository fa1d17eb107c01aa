//! How much a record can change a machine or a logistic regression, against searches that try to change it more.

use bernstream_functions::logistic::{Logistic, LogisticScore};
use bernstream_functions::machine::{Machine, MachineSettings};
use bernstream_release::window::accumulator::{Accumulator, Record};
use bernstream_release::{Target, TargetError};
use bernstream_synopsis::machine::{CubeKernel, Loss};
use bernstream_synopsis::{Adjacency, ShapeError};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::change::{between, claims, gain};
use crate::harness::exact::Opened as _;

const ADJACENCIES: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::ReplaceOne];

const NARROW: CubeKernel = CubeKernel::Gaussian { bandwidth: 0.1 };
const WIDE: CubeKernel = CubeKernel::Gaussian { bandwidth: 2.0 };
const LAPLACIAN: CubeKernel = CubeKernel::Laplacian { bandwidth: 0.3 };
const CUBIC: CubeKernel = CubeKernel::Polynomial { power: 3 };

/// Kernel, loss, `C`, axes, degree, and what the search must reach of the claims, in the 1-norm (and the 2-norm, which lies
/// between) and the sup norm.
///
/// The tolerance of the solver is 5 % of every claim, and a search cannot use it: 0.952 is all there is. A record that lies
/// alone and changes sides moves a function by just that under hinge and Huber loss, so their sup norm is tight.
///
/// Gaps that remain, all measured:
/// * Logistic and squared loss with a large `C` (0.74 and 0.49 at `C = 10`; 0.93 and 0.84 at 1, where they are nearly
///   alone): the bound lets the others hold a function against a record without resisting when it gives way. They do
///   resist, by their curvature, but how much is not known for all data.
/// * The 1-norm of narrow kernels: the bound is the mean of what a lone record does and of the worst function
///   of norm `r`, which spreads over the lattice (0.62 for 0.1; 0.95 for 2, where every function spreads).
const CASES: [(CubeKernel, Loss, f64, usize, u32, [f64; 2]); 12] = [
    (NARROW, Loss::Hinge, 1.0, 1, 12, [0.6, 0.95]),
    (WIDE, Loss::Hinge, 1.0, 1, 12, [0.95, 0.95]),
    (WIDE, Loss::Hinge, 10.0, 2, 4, [0.94, 0.95]),
    (LAPLACIAN, Loss::Hinge, 4.0, 1, 12, [0.79, 0.95]),
    (CUBIC, Loss::Hinge, 1.0, 2, 4, [0.5, 0.95]),
    (CubeKernel::Linear, Loss::Hinge, 1.0, 2, 2, [0.6, 0.95]),
    (WIDE, Loss::Huber, 10.0, 1, 12, [0.95, 0.95]),
    (CUBIC, Loss::Huber, 1.0, 1, 12, [0.7, 0.95]),
    (WIDE, Loss::Logistic, 1.0, 1, 12, [0.92, 0.92]),
    (WIDE, Loss::Logistic, 10.0, 1, 12, [0.72, 0.72]),
    (WIDE, Loss::Squared, 0.2, 1, 12, [0.92, 0.92]),
    (WIDE, Loss::Squared, 10.0, 1, 12, [0.48, 0.48]),
];

/// `m`.
const RECORDS: u32 = 40;

fn settings(
    (kernel, loss, c, dimensions, degree, _): (CubeKernel, Loss, f64, usize, u32, [f64; 2]),
) -> MachineSettings {
    MachineSettings {
        kernel,
        loss,
        c,
        records: RECORDS,
        dimensions,
        degree,
        landmarks: None,
    }
}

fn machine(settings: MachineSettings) -> Machine {
    Machine::new(settings).unwrap()
}

/// A side of a neighbouring pair: places and labels.
type Side = Vec<(Vec<f64>, f64)>;

fn state(target: &dyn Target, side: &Side) -> Accumulator {
    target
        .accumulator()
        .filled_accumulator(side.iter().map(|(x, label)| Record::new(x, *label)))
}

/// The difference over what is claimed: 1-norm, sup norm, 2-norm.
fn change(target: &dyn Target, adjacency: Adjacency, one: &Side, other: &Side) -> [f64; 3] {
    let one = target.evaluate(&state(target, one));
    let other = target.evaluate(&state(target, other));
    let found = between(&one, &other);
    let claimed = claims(target, adjacency, 1);
    [0, 1, 2].map(|norm| found[norm] as f64 / claimed[norm])
}

/// Windows of `m` records that share all but one, and what a window of `m` keeps when one more arrives: the searches
/// start from what the proofs say is worst, and move every record, label and multiplicity.
struct Search<'a> {
    target: &'a dyn Target,
    adjacency: Adjacency,
    dimensions: usize,
    /// `m`.
    records: usize,
    classes: bool,
}

impl Search<'_> {
    fn label(&self, rng: &mut ChaCha20Rng) -> f64 {
        if self.classes || rng.random_bool(0.7) {
            if rng.random_bool(0.5) { 1.0 } else { -1.0 }
        } else {
            rng.random_range(-1.0..=1.0)
        }
    }

    fn place(&self, rng: &mut ChaCha20Rng) -> Vec<f64> {
        match rng.random_range(0..3) {
            0 => (0..self.dimensions)
                .map(|_| f64::from(rng.random_range(0..2_u32)))
                .collect(),
            1 => vec![0.5; self.dimensions],
            _ => (0..self.dimensions).map(|_| rng.random()).collect(),
        }
    }

    /// The two that are exchanged first, then what both sides share.
    fn starts(&self, rng: &mut ChaCha20Rng) -> Vec<Side> {
        let lattice: Vec<Vec<f64>> = [0.0, 0.25, 0.5, 1.0]
            .map(|x| vec![x; self.dimensions])
            .to_vec();
        let mut starts = Vec::new();
        for x in &lattice {
            for share in [0, 1] {
                // Alone, or against records that all say the same.
                for label in [1.0, -1.0] {
                    let mut side = vec![(x.clone(), 1.0), (x.clone(), -1.0)];
                    side.extend((0..share).map(|_| (x.clone(), label)));
                    starts.push(side);
                }
            }
        }
        // A full window, its others apart: in the corner that is farthest from where the record changes sides.
        for x in &lattice {
            let far: Vec<f64> = x.iter().map(|x| if *x > 0.4 { 0.0 } else { 1.0 }).collect();
            let mut side = vec![(x.clone(), 1.0), (x.clone(), -1.0)];
            side.extend(
                (1..self.records).map(|i| (far.clone(), if i % 2 == 0 { 1.0 } else { -1.0 })),
            );
            starts.push(side);
        }
        // Two camps on either side of where the record changes its own.
        for gap in [0.05, 0.2, 0.5] {
            let at = |x: f64| vec![x.clamp(0.0, 1.0); self.dimensions];
            let mut side = vec![(at(0.5 - gap / 2.0), 1.0), (at(0.5 + gap / 2.0), -1.0)];
            side.extend((1..self.records).map(|i| {
                if i % 2 == 0 {
                    (at(0.5 - gap), -1.0)
                } else {
                    (at(0.5 + gap), 1.0)
                }
            }));
            starts.push(side);
        }
        for _ in 0..30 {
            let share = rng.random_range(0..self.records);
            starts.push(
                (0..share + 2)
                    .map(|_| (self.place(rng), self.label(rng)))
                    .collect(),
            );
        }
        starts
    }

    fn found(&self, both: &Side) -> [f64; 3] {
        let shared = &both[2..];
        let side = |one: usize| -> Side {
            std::iter::once(both[one].clone())
                .chain(shared.iter().cloned())
                .collect()
        };
        // In a full window the record that arrives first pushes the last one out, so one is exchanged; in others there is
        // one record more, or not.
        if self.adjacency == Adjacency::AddRemove && both.len() < self.records + 1 {
            return change(self.target, self.adjacency, &side(0), &shared.to_vec());
        }
        change(self.target, self.adjacency, &side(0), &side(1))
    }

    fn worst(&self, rng: &mut ChaCha20Rng, rounds: i32) -> [f64; 3] {
        [0, 1, 2].map(|norm| {
            let starts = self.starts(rng);
            let mut found: Vec<(f64, Side)> = starts
                .into_iter()
                .map(|side| (self.found(&side)[norm], side))
                .collect();
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
            found.truncate(2);
            for (best, both) in &mut found {
                for round in 0..rounds {
                    let step = 0.3 * 0.95_f64.powi(round);
                    let mut moved = both.clone();
                    let one = rng.random_range(0..moved.len());
                    for (index, (place, label)) in moved.iter_mut().enumerate() {
                        if index == one || rng.random_bool(0.3) {
                            place.iter_mut().for_each(|x| {
                                *x = (*x + step * rng.random_range(-1.0..=1.0)).clamp(0.0, 1.0)
                            });
                            if rng.random_bool(0.1) {
                                *label = self.label(rng);
                            }
                        }
                    }
                    let change = self.found(&moved)[norm];
                    if change > *best {
                        (*best, *both) = (change, moved);
                    }
                }
            }
            found[0].0.max(found[1].0)
        })
    }
}

/// Found over claimed, for the 1-norm, the sup norm and the 2-norm; the seed is the same for a target and its control.
fn tightness(
    target: &dyn Target,
    adjacency: Adjacency,
    dimensions: usize,
    classes: bool,
) -> [f64; 3] {
    let search = Search {
        target,
        adjacency,
        dimensions,
        records: RECORDS as usize,
        classes,
    };
    search.worst(&mut ChaCha20Rng::seed_from_u64(1), 60)
}

#[test]
fn no_record_changes_a_machine_by_more_than_claimed_and_some_nearly_do() {
    for case in CASES {
        let target = machine(settings(case));
        for adjacency in ADJACENCIES {
            if target.sensitivity(adjacency, 1) == Err(TargetError::SquaredLoss) {
                continue;
            }
            let [sum, sup, length] = tightness(&target, adjacency, case.3, case.1.classifies());
            let (kernel, loss, c, ..) = case;
            let less = gain(&target, adjacency);
            println!(
                "{kernel:?} {loss:?} C = {c} {adjacency:?}: {sum:.3} {sup:.3} {length:.3} of the claim; {less:.3} below \
                 sqrt(D1 S)"
            );
            assert!(
                sum <= 1.0 && sup <= 1.0 && length <= 1.0,
                "{case:?} {adjacency:?}: {sum} {sup} {length}"
            );
            // Two records that replace each other pull to one side as hard as they can where the function is between them;
            // for the smooth losses the others, without whom there is no exchange, resist.
            let resisted = adjacency == Adjacency::AddRemove && case.1 == Loss::Logistic;
            let near = if resisted { 0.45 } else { 1.0 };
            assert!(
                sum >= near * case.5[0] && sup >= near * case.5[1],
                "{case:?} {adjacency:?}: {sum} {sup}"
            );
            assert!(
                length >= near * case.5[0] - 0.005,
                "{case:?} {adjacency:?}: {length}"
            );
        }
    }
}

#[test]
fn a_sensitivity_thirty_percent_too_small_is_found_out() {
    for case in CASES {
        let target = machine(settings(case));
        let [sum, sup, length] =
            tightness(&target, Adjacency::ReplaceOne, case.3, case.1.classifies());
        // The others are those whose gap is explained above.
        assert!(
            case.5[0] < 0.71 || sum.min(length) / 0.7 > 1.0,
            "{case:?}: {sum} {length}"
        );
        assert!(case.5[1] < 0.71 || sup / 0.7 > 1.0, "{case:?}: {sup}");
    }
}

#[test]
fn landmarks_are_held_to_the_same_claims() {
    for (kernel, near) in [(NARROW, 0.9), (WIDE, 0.95), (LAPLACIAN, 0.9), (CUBIC, 0.95)] {
        let case = (kernel, Loss::Hinge, 1.0, 1, 12, [0.0; 2]);
        let target = machine(MachineSettings {
            landmarks: Some(6),
            ..settings(case)
        });
        let [sum, sup, length] = tightness(&target, Adjacency::ReplaceOne, 1, true);
        println!("{kernel:?} landmarks: {sum:.3} {sup:.3} {length:.3}");
        assert!(
            sum <= 1.0 && sup <= 1.0 && length <= 1.0 && sup > near,
            "{kernel:?}: {sum} {sup} {length}"
        );
    }
}

/// The linear score's coefficients differ most where a corner changes sides (`D1`); one coefficient alone never moves by
/// all of `r`, because a record pulls on all of them (0.73 of `S` found with two coefficients). The sigmoid has its
/// slope of 1/4 only where the score is 0, where a lone record leaves it on one side and takes it to the other.
#[test]
fn no_record_changes_a_logistic_regression_by_more_than_claimed_and_some_nearly_do() {
    for (dimensions, score, near) in [
        (1, LogisticScore::Linear, [0.92, 0.7]),
        (3, LogisticScore::Linear, [0.9, 0.6]),
        (1, LogisticScore::Sigmoid { degree: 6 }, [0.6, 0.9]),
        (2, LogisticScore::Sigmoid { degree: 4 }, [0.5, 0.9]),
    ] {
        let target = Logistic::new(dimensions, 1.0, RECORDS, score).unwrap();
        for adjacency in ADJACENCIES {
            let [sum, sup, length] = tightness(&target, adjacency, dimensions, true);
            let less = gain(&target, adjacency);
            println!(
                "{dimensions} {score:?} {adjacency:?}: {sum:.3} {sup:.3} {length:.3} of the claim; {less:.3} less"
            );
            assert!(
                sum <= 1.0 && sup <= 1.0 && length <= 1.0,
                "{score:?} {adjacency:?}: {sum} {sup} {length}"
            );
            assert!(
                length >= near[0],
                "{dimensions} {score:?} {adjacency:?}: {length}"
            );
            assert!(
                sum >= near[0] && sup >= near[1],
                "{dimensions} {score:?} {adjacency:?}: {sum} {sup}"
            );
            // The control: some claim is found out where it is 30 % smaller.
            assert!(adjacency == Adjacency::AddRemove || sum.max(sup) / 0.7 > 1.0);
        }
    }
}

#[test]
fn a_unit_of_several_records_is_held_to_as_many_sensitivities() {
    let target = machine(settings(CASES[1]));
    let side = |label: f64| -> Side { (0..5).map(|_| (vec![0.5], label)).collect() };
    let found =
        change(&target, Adjacency::ReplaceOne, &side(1.0), &side(-1.0)).map(|found| found / 5.0);
    assert!(
        found.iter().all(|found| (0.94..=1.0).contains(found)),
        "{found:?}"
    );
    let one = target.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0;
    assert_eq!(
        target.sensitivity(Adjacency::ReplaceOne, 5).unwrap().0,
        5 * one
    );
    assert_eq!(target.sensitivity(Adjacency::AddRemove, 1).unwrap().0, one);
}

/// The records of `machine.py`.
fn records(n: u32, axes: usize, classes: bool) -> Side {
    let record = |i: u32| {
        let x: Vec<f64> = (0..axes as u32)
            .map(|a| f64::from((7919 * (a + 1) * i + 101 * a) % 1009) / 1009.0)
            .collect();
        let y = (6.0 * x[0]).sin() + (x[axes - 1] - 0.5) + (f64::from((31 * i) % 17) - 8.0) / 16.0;
        let label = if classes {
            if y > 0.0 { 1.0 } else { -1.0 }
        } else {
            (y / 2.0).clamp(-1.0, 1.0)
        };
        (x, label)
    };
    (0..n).map(record).collect()
}

/// What `machine.py` found: the settings, whether the hinge is the sharp one, and the lattice values.
fn fixtures() -> Vec<(MachineSettings, bool, Vec<f64>)> {
    let lines: Vec<&str> = include_str!("../data/machine.txt").lines().collect();
    let fixture = |pair: &[&str]| {
        let words: Vec<&str> = pair[0].split(' ').collect();
        let number = |i: usize| -> f64 { words[i].parse().unwrap() };
        let kernel = match words[0] {
            "gaussian" => CubeKernel::Gaussian {
                bandwidth: number(1),
            },
            "laplacian" => CubeKernel::Laplacian {
                bandwidth: number(1),
            },
            "polynomial" => CubeKernel::Polynomial {
                power: number(1) as u32,
            },
            _ => CubeKernel::Linear,
        };
        let loss = match words[2] {
            "hinge" | "sharp" => Loss::Hinge,
            "logistic" => Loss::Logistic,
            "squared" => Loss::Squared,
            _ => Loss::Huber,
        };
        let [records, dimensions, degree] = [4, 5, 6].map(|i| number(i) as u32);
        let settings = MachineSettings {
            kernel,
            loss,
            c: number(3),
            records,
            dimensions: dimensions as usize,
            degree,
            landmarks: None,
        };
        (
            settings,
            words[2] == "sharp",
            pair[1]
                .split(' ')
                .map(|value| value.parse().unwrap())
                .collect(),
        )
    };
    lines.chunks_exact(2).map(fixture).collect()
}

fn values(target: &dyn Target, side: &Side) -> Vec<f64> {
    target
        .evaluate(&state(target, side))
        .opened()
        .iter()
        .map(|value| *value as f64 * target.unit())
        .collect()
}

fn farthest(ours: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter()
        .zip(theirs)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

#[test]
fn minimisers_are_those_of_scikit_learn_and_scipy() {
    for (settings, sharp, theirs) in fixtures() {
        let target = machine(settings);
        let side = records(60, settings.dimensions, settings.loss.classifies());
        let found = farthest(&values(&target, &side), &theirs);
        // Rounding the corner off moves the objective by at most C CORNER / 2, and it is 1-strongly convex.
        let corner = if sharp {
            (settings.c / 128.0).sqrt()
        } else {
            0.0
        };
        println!(
            "{settings:?}: {found:.1e}, allowed {:.1e} + {corner:.1e}",
            target.tolerance()
        );
        assert!(
            found <= target.tolerance() + corner + 1e-6,
            "{settings:?}: {found}"
        );
    }
}

#[test]
fn landmarks_lose_nothing_of_a_polynomial_and_little_of_a_smooth_kernel() {
    for (settings, sharp, theirs) in fixtures() {
        let few = match settings.kernel {
            CubeKernel::Gaussian { .. } => 12,
            CubeKernel::Polynomial { .. } => 4,
            _ => continue,
        };
        if !sharp {
            let target = machine(MachineSettings {
                landmarks: Some(few),
                ..settings
            });
            let side = records(60, settings.dimensions, settings.loss.classifies());
            let found = farthest(&values(&target, &side), &theirs);
            println!("{settings:?} {few} landmarks an axis: {found:.1e}");
            assert!(found <= target.tolerance() + 1e-3, "{settings:?}: {found}");
        }
    }
}

#[test]
fn a_logistic_regression_is_that_of_scikit_learn() {
    let linear = |(settings, ..): &(MachineSettings, bool, Vec<f64>)| {
        (settings.kernel, settings.loss) == (CubeKernel::Linear, Loss::Logistic)
    };
    let (settings, _, theirs) = fixtures().into_iter().find(linear).unwrap();
    let side = records(60, settings.dimensions, true);
    let regression = |score: LogisticScore| {
        Logistic::new(settings.dimensions, settings.c, settings.records, score).unwrap()
    };
    let coefficients = values(&regression(LogisticScore::Linear), &side);
    assert_eq!(coefficients.len(), settings.dimensions + 1);
    let t = |index: usize, axis: u32| f64::from(index as u32 / 3_u32.pow(2 - axis) % 3) - 1.0;
    let score = |index: usize| {
        coefficients[0]
            + (0..3)
                .map(|axis| coefficients[axis as usize + 1] * t(index, axis))
                .sum::<f64>()
    };
    let scores: Vec<f64> = (0..theirs.len()).map(score).collect();
    let tolerance = machine(settings).tolerance();
    assert!(farthest(&scores, &theirs) <= tolerance + 1e-6);
    let sigmoids: Vec<f64> = theirs
        .iter()
        .map(|score| 1.0 / (1.0 + (-score).exp()))
        .collect();
    let ours = values(
        &regression(LogisticScore::Sigmoid {
            degree: settings.degree,
        }),
        &side,
    );
    assert!(farthest(&ours, &sigmoids) <= tolerance / 4.0 + 1e-6);
}

#[test]
fn degenerate_windows_give_finite_functions_of_the_same_shape() {
    let at = |x: f64, label: f64| (vec![x, 1.0 - x], label);
    let mut windows: Vec<Side> = vec![
        Vec::new(),
        vec![at(0.3, 1.0)],
        vec![at(f64::NAN, f64::NAN), at(-7.0, 9.0)],
    ];
    windows.push(
        (0..RECORDS)
            .map(|i| at(f64::from(i) / f64::from(RECORDS), 1.0))
            .collect(),
    );
    windows.push((0..RECORDS).map(|_| at(0.5, -1.0)).collect());
    windows.push(
        (0..RECORDS)
            .map(|i| at(0.5, if i % 2 == 0 { 1.0 } else { -1.0 }))
            .collect(),
    );
    let mut targets: Vec<Box<dyn Target>> = vec![
        Box::new(Logistic::new(2, 5.0, RECORDS, LogisticScore::Linear).unwrap()),
        Box::new(Logistic::new(2, 5.0, RECORDS, LogisticScore::Sigmoid { degree: 3 }).unwrap()),
    ];
    for loss in [Loss::Hinge, Loss::Logistic, Loss::Squared, Loss::Huber] {
        for kernel in [NARROW, WIDE, LAPLACIAN, CUBIC, CubeKernel::Linear] {
            for (c, landmarks) in [(1e-6, None), (50.0, None), (50.0, Some(4))] {
                let settings = settings((kernel, loss, c, 2, 3, [0.0; 2]));
                targets.push(Box::new(machine(MachineSettings {
                    landmarks,
                    ..settings
                })));
            }
        }
    }
    for target in &targets {
        for window in &windows {
            let exact = target.evaluate(&state(&**target, window));
            assert_eq!(exact.opened().len(), target.shape().value_count());
            let largest = exact
                .opened()
                .iter()
                .map(|value| value.unsigned_abs())
                .max()
                .unwrap();
            assert!((largest as f64 * target.unit()).abs() < 100.0, "{target:?}");
        }
        let empty = target.evaluate(&target.accumulator().empty());
        assert!(
            empty
                .opened()
                .iter()
                .all(|value| (*value - empty.opened()[0]).abs() <= 1)
        );
    }
}

#[test]
fn more_records_than_the_window_keeps_are_not_used() {
    let target = machine(settings(CASES[0]));
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut side: Side = (0..RECORDS)
        .map(|_| (vec![rng.random_range(0.0..0.9)], 1.0))
        .collect();
    let full = target.evaluate(&state(&target, &side)).opened();
    side.push((vec![0.95], -1.0));
    assert_eq!(target.evaluate(&state(&target, &side)).opened(), full);
    // One that sorts first pushes another one out, and that is an exchange.
    side.push((vec![0.0], -1.0));
    let found = change(
        &target,
        Adjacency::AddRemove,
        &side,
        &side[..RECORDS as usize].to_vec(),
    );
    assert!(
        found[0] > 0.1 && found.iter().all(|found| *found <= 1.0),
        "{found:?}"
    );
}

#[test]
fn the_order_of_records_does_not_matter() {
    let target = machine(settings(CASES[3]));
    let side = records(30, 1, true);
    let backwards: Side = side.iter().rev().cloned().collect();
    let evaluated = |side: &Side| target.evaluate(&state(&target, side)).opened();
    assert_eq!(evaluated(&side), evaluated(&backwards));
}

#[test]
fn settings_without_a_bound_or_without_memory_are_refused() {
    let good = settings(CASES[0]);
    let error = |settings: MachineSettings| Machine::new(settings).unwrap_err();
    assert_eq!(
        error(MachineSettings { c: 0.0, ..good }),
        TargetError::Weight { c: 0.0 }
    );
    assert_eq!(
        error(MachineSettings { records: 0, ..good }),
        TargetError::NoRecords
    );
    assert_eq!(
        error(MachineSettings {
            dimensions: 4,
            ..good
        }),
        TargetError::Shape(ShapeError::Axes(4))
    );
    assert_eq!(
        error(MachineSettings {
            records: 5_001,
            ..good
        }),
        TargetError::NeedsLandmarks {
            records: 5_001,
            most: 5_000
        }
    );
    assert!(matches!(
        error(MachineSettings {
            degree: 10_000,
            ..good
        }),
        TargetError::Degree { .. }
    ));
    assert!(matches!(
        error(MachineSettings {
            dimensions: 3,
            degree: 30,
            ..good
        }),
        TargetError::Points { .. }
    ));
    assert!(matches!(
        error(MachineSettings {
            kernel: CubeKernel::Gaussian {
                bandwidth: f64::NAN
            },
            ..good
        }),
        TargetError::Shape(ShapeError::KernelBandwidth { .. })
    ));
    assert!(matches!(
        error(MachineSettings {
            kernel: CubeKernel::Polynomial { power: 0 },
            ..good
        }),
        TargetError::Shape(ShapeError::Power { .. })
    ));
    let many = MachineSettings {
        records: u32::MAX,
        landmarks: Some(30),
        ..good
    };
    assert!(matches!(error(many), TargetError::Features { .. }));
    let squared = machine(MachineSettings {
        loss: Loss::Squared,
        ..good
    });
    assert_eq!(
        squared.sensitivity(Adjacency::AddRemove, 1),
        Err(TargetError::SquaredLoss)
    );
    assert_eq!(
        squared.sup_sensitivity(Adjacency::AddRemove, 1),
        Err(TargetError::SquaredLoss)
    );
}
