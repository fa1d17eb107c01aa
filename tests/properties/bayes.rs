//! Naive Bayes: how much a record can change the scores, against searches that try to change them more; and the scores
//! themselves beside those of scipy (`tests/data/bayes.py`).

use std::f64::consts::PI;

use bernstream_functions::bayes::gaussian::GaussianBayes;
use bernstream_functions::bayes::kernel::KernelBayes;
use bernstream_noise::Exact;
use bernstream_release::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_synopsis::Adjacency;
use rand::rngs::ChaCha20Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use crate::change;
use crate::harness::exact::Opened as _;

const BOTH: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::ReplaceOne];

/// Bandwidths, degree, and how near the search must come to the 1-norm claimed.
///
/// Narrow kernels: within 5 %. Where bandwidths are wide the claim gives every axis the heaviest column and the two columns
/// that overlap least, at once; but columns far apart lie at the borders and are light. Found there: 0.72, 0.58, 0.81.
const KERNELS: [(&[f64], u32, f64); 9] = [
    (&[0.1], 20, 0.95),
    (&[0.02], 50, 0.95),
    (&[1.0], 3, 0.95),
    (&[0.05, 0.05], 10, 0.95),
    (&[0.1, 0.1], 8, 0.95),
    (&[0.2, 0.3], 6, 0.7),
    (&[1.0, 0.05], 6, 0.55),
    (&[0.05, 0.05, 0.05], 4, 0.95),
    (&[0.2, 0.2, 0.2], 4, 0.78),
];

/// Least standard deviations, degree, and how near the search must come to the 1-norm claimed.
///
/// One axis: within 5 %. More: the claim adds the axes up as if no sign of one met an opposite one of another, and gives
/// each its own worst mean. Found: 0.60, 0.61, 0.45, 0.24 (the 1-norm of three independent zero-mean terms is nearer to
/// `sqrt 3` than to 3 times that of one).
const GAUSSIANS: [(&[f64], u32, f64); 8] = [
    (&[0.2], 20, 0.95),
    (&[0.05], 40, 0.95),
    (&[0.5], 10, 0.95),
    (&[1.0], 5, 0.95),
    (&[0.2, 0.2], 8, 0.57),
    (&[0.5, 0.3], 6, 0.58),
    (&[0.2, 0.2, 0.2], 5, 0.42),
    (&[0.5, 0.5, 0.5], 4, 0.23),
];

/// `n` copies of each record.
fn state(target: &dyn Target, records: &[(Record, u64)]) -> Accumulator {
    match target.accumulator() {
        AccumulatorSpec::Sums(feature) => {
            let mut sums = vec![0; feature.sum_count()];
            for (record, n) in records {
                let mut one = vec![0; feature.sum_count()];
                feature.add(record, &mut one);
                sums.iter_mut()
                    .zip(one)
                    .for_each(|(sum, one)| *sum += one * i128::from(*n));
            }
            Accumulator::Sums(sums)
        }
        spec => spec.filled_accumulator(
            records
                .iter()
                .flat_map(|(record, n)| (0..*n).map(|_| *record)),
        ),
    }
}

/// Two neighbours: in each class a heap of equal records, and the record that comes, or changes its class and place.
#[derive(Clone)]
struct Pair {
    /// Of the positive class, then of the negative one: where the heap is, and where the record is.
    places: [[Vec<f64>; 2]; 2],
    heap: u64,
    /// Both classes alike.
    is_mirrored: bool,
}

impl Pair {
    fn random(axes: usize, degree: u32, heaps: &[u64], rng: &mut ChaCha20Rng) -> Self {
        let k = f64::from(degree);
        let mut place = || -> Vec<f64> {
            let x = |rng: &mut ChaCha20Rng| match rng.random_range(0..4) {
                0 => 0.0,
                1 => 1.0,
                2 => (rng.random::<f64>() * k).round() / k,
                _ => rng.random(),
            };
            (0..axes).map(|_| x(rng)).collect()
        };
        let places = [[place(), place()], [place(), place()]];
        let is_mirrored = rng.random_bool(0.7);
        Pair {
            places,
            heap: *heaps.choose(rng).unwrap(),
            is_mirrored,
        }
        .mirrored()
    }

    fn mirrored(mut self) -> Self {
        if self.is_mirrored {
            self.places[1] = self.places[0].clone();
        }
        self
    }

    fn moved(&self, step: f64, rng: &mut ChaCha20Rng) -> Self {
        let mut moved = self.clone();
        for x in moved.places.iter_mut().flatten().flatten() {
            if rng.random() {
                *x = (*x + step * (2.0 * rng.random::<f64>() - 1.0)).clamp(0.0, 1.0);
            }
        }
        moved.mirrored()
    }

    /// The difference that `contributions` such records make.
    fn difference(
        &self,
        target: &dyn Target,
        adjacency: Adjacency,
        contributions: u64,
    ) -> [u128; 3] {
        let record = |class: usize, which: usize| {
            target.accumulator().record(
                &self.places[class][which],
                if class == 0 { 1.0 } else { -1.0 },
            )
        };
        let heaps = [(record(0, 0), self.heap), (record(1, 0), self.heap)];
        let side = |extra: Option<Record>| {
            let extra = extra.map(|record| (record, contributions));
            target.evaluate(&state(
                target,
                &heaps.into_iter().chain(extra).collect::<Vec<_>>(),
            ))
        };
        let one = side(Some(record(0, 1)));
        let other = side((adjacency == Adjacency::ReplaceOne).then(|| record(1, 1)));
        change::between(&one, &other)
    }
}

/// Found over claimed, for the 1-norm, the sup norm and the 2-norm: random starts, the best of them improved by ever smaller steps.
fn tightness(
    target: &dyn Target,
    heaps: &[u64],
    adjacency: Adjacency,
    contributions: u32,
) -> [f64; 3] {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let shape = target.shape();
    let claimed = change::claims(target, adjacency, contributions);
    [0, 1, 2].map(|norm| {
        let value = |pair: &Pair| pair.difference(target, adjacency, contributions.into())[norm];
        let mut starts: Vec<(u128, Pair)> = (0..200)
            .map(|_| Pair::random(shape.dimensions, shape.degree, heaps, &mut rng))
            .map(|pair| (value(&pair), pair))
            .collect();
        starts.sort_by_key(|(found, _)| std::cmp::Reverse(*found));
        let best = starts.into_iter().take(10).map(|(mut found, mut best)| {
            for round in 0..80 {
                let moved = best.moved(0.3 * 0.93_f64.powi(round), &mut rng);
                let change = value(&moved);
                if change > found {
                    (found, best) = (change, moved);
                }
            }
            found
        });
        best.max().unwrap() as f64 / claimed[norm]
    })
}

type Heaped = (String, Box<dyn Target>, &'static [u64], f64);

/// Every target with the heaps to try: a kernel's largest change needs some hundred records (and loses `1 / n`), a
/// Gaussian's far more than `1 / v`, and as many as it counts.
fn targets() -> Vec<Heaped> {
    let kernel = |(widths, degree, near): (&[f64], u32, f64)| -> (String, Box<dyn Target>, &'static [u64], f64) {
        (format!("kernel {widths:?} k = {degree}"), Box::new(KernelBayes::new(widths, degree).unwrap()), &[400], near)
    };
    let gaussian = |(widths, degree, near): (&[f64], u32, f64)| -> (String, Box<dyn Target>, &'static [u64], f64) {
        let target = GaussianBayes::new(widths, degree).unwrap();
        (format!("gaussian {widths:?} k = {degree}"), Box::new(target), &[1_000, 1 << 24, 1 << 36], near)
    };
    KERNELS
        .into_iter()
        .map(kernel)
        .chain(GAUSSIANS.into_iter().map(gaussian))
        .collect()
}

#[test]
fn no_record_changes_the_scores_by_more_than_claimed_and_some_nearly_do() {
    for adjacency in BOTH {
        for (name, target, heaps, near) in targets() {
            let [sum, sup, length] = tightness(&*target, heaps, adjacency, 1);
            let gain = change::gain(&*target, adjacency);
            println!(
                "{adjacency:?}, {name}: {sum:.4}, {sup:.4}, {length:.4} of the claim; {gain:.3} below sqrt(D1 S)"
            );
            assert!(
                sum <= 1.0 && sup <= 1.0 && length <= 1.0,
                "{adjacency:?} {name}: {sum} {sup} {length}"
            );
            assert!(
                sum > near && sup > 0.95 && length > near,
                "{adjacency:?} {name}: {sum} {sup} {length}"
            );
            // The same search finds out a bound that is 30 % too small, where the bound is not itself that loose.
            assert!(
                sup / 0.7 > 1.0 && (near < 0.7 || sum.min(length) / 0.7 > 1.0),
                "{name}: {length}"
            );
        }
    }
}

#[test]
fn a_unit_of_several_records_is_held_to_as_many_sensitivities() {
    for adjacency in BOTH {
        for index in [0, 3, 10] {
            let (name, target, heaps, near) = targets().swap_remove(index);
            let found = tightness(&*target, heaps, adjacency, 7);
            println!("{adjacency:?}, {name}, 7 records: {found:.4?} of the claim");
            assert!(
                found
                    .iter()
                    .all(|found| *found <= 1.0 && *found > near - 0.05)
                    && found[1] > 0.9,
                "{name}: {found:?}"
            );
        }
    }
}

#[test]
fn random_neighbours_stay_within_the_claim() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for (name, target, _, _) in targets() {
        let axes = target.shape().dimensions;
        let mut record = |target: &dyn Target| {
            let x: [f64; 3] = rng.random();
            target
                .accumulator()
                .record(&x[..axes], if rng.random() { 1.0 } else { -1.0 })
        };
        for n in [0, 1, 2, 3, 5, 30] {
            for _ in 0..10 {
                let mut records: Vec<(Record, u64)> =
                    (0..=n).map(|_| (record(&*target), 1)).collect();
                let one = target.evaluate(&state(&*target, &records));
                let without = target.evaluate(&state(&*target, &records[1..]));
                records[0].0 = record(&*target);
                let replaced = target.evaluate(&state(&*target, &records));
                for (other, adjacency) in [(without, BOTH[0]), (replaced, BOTH[1])] {
                    let found = change::between(&one, &other)
                        .into_iter()
                        .zip(change::claims(&*target, adjacency, 1));
                    found.for_each(|(found, claim)| {
                        assert!(found as f64 <= claim, "{name}: {found} {claim}")
                    });
                }
            }
        }
    }
}

/// A case of `tests/data/bayes.txt`.
struct Case {
    target: Box<dyn Target>,
    records: Vec<Record>,
    scores: Vec<f64>,
    /// What the grid of the records may cost at a lattice point.
    limit: f64,
}

fn cases() -> Vec<Case> {
    let text = include_str!("../data/bayes.txt");
    let mut lines = text.lines();
    let numbers =
        |line: &str| -> Vec<f64> { line.split(' ').map(|word| word.parse().unwrap()).collect() };
    let mut cases = Vec::new();
    while let Some(line) = lines.next() {
        let (name, rest) = line.split_once(' ').unwrap();
        let rest = numbers(rest);
        let axes = rest[0] as usize;
        let degree = rest[1] as u32;
        let n = rest[rest.len() - 1];
        let widths = &rest[2..2 + axes];
        let target: Box<dyn Target> = match name {
            "kernel" => Box::new(KernelBayes::new(widths, degree).unwrap()),
            _ => Box::new(GaussianBayes::new(widths, degree).unwrap()),
        };
        let peak: f64 = widths
            .iter()
            .map(|b| 1.0 / ((2.0 * PI).sqrt() * b))
            .product();
        // A kernel's record is spread over three nodes an axis (`tests/properties/sensitivity.rs`); a Gaussian's lies on 2^-31.
        let error = if name == "kernel" {
            2.5e-4 * axes as f64
        } else {
            1e-7
        };
        let record = |line: &str| {
            let line = numbers(line);
            target.accumulator().record(&line[..axes], line[axes])
        };
        let records = (0..n as usize)
            .map(|_| record(lines.next().unwrap()))
            .collect();
        let scores = numbers(lines.next().unwrap());
        cases.push(Case {
            target,
            records,
            scores,
            limit: error * n * peak,
        });
    }
    cases
}

fn scores(target: &dyn Target, exact: &Exact) -> Vec<f64> {
    exact
        .opened()
        .iter()
        .map(|value| *value as f64 * target.unit())
        .collect()
}

#[test]
fn scores_are_those_of_scipy() {
    let cases = cases();
    assert_eq!(cases.len(), 12);
    for (index, case) in cases.iter().enumerate() {
        let found = scores(
            &*case.target,
            &case.target.evaluate(
                &case
                    .target
                    .accumulator()
                    .filled_accumulator(case.records.clone()),
            ),
        );
        assert_eq!(found.len(), case.scores.len());
        let error = found
            .iter()
            .zip(&case.scores)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        println!(
            "case {index}: off by {:.3} of the limit",
            error / case.limit
        );
        assert!(error < case.limit, "case {index}: {error}");
    }
}

#[test]
fn the_order_of_records_does_not_matter() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    for mut case in cases() {
        let exact = case
            .target
            .evaluate(
                &case
                    .target
                    .accumulator()
                    .filled_accumulator(case.records.clone()),
            )
            .opened();
        case.records.shuffle(&mut rng);
        assert_eq!(
            case.target
                .evaluate(
                    &case
                        .target
                        .accumulator()
                        .filled_accumulator(case.records.clone())
                )
                .opened(),
            exact
        );
        let fewer = case
            .target
            .accumulator()
            .filled_accumulator(case.records[1..].iter().copied());
        assert_ne!(case.target.evaluate(&fewer).opened(), exact);
    }
}

#[test]
fn degenerate_windows_give_finite_scores_of_the_same_shape() {
    for (name, target, _, _) in targets() {
        let record = |x: f64, label: f64| target.accumulator().record(&[x; 3], label);
        let values = |records: &[Record]| {
            scores(
                &*target,
                &target.evaluate(&target.accumulator().filled_accumulator(records.to_vec())),
            )
        };
        let windows = [
            vec![],
            vec![record(0.3, 1.0)],
            vec![record(0.3, -1.0); 50],
            vec![record(0.0, 1.0), record(1.0, -1.0)],
            vec![
                record(-3.0, 7.0),
                record(f64::NAN, -7.0),
                record(f64::INFINITY, 1.0),
            ],
        ];
        for window in &windows {
            let values = values(window);
            assert_eq!(values.len(), target.shape().value_count(), "{name}");
            assert!(values.iter().all(|value| value.is_finite()), "{name}");
        }
        assert!(
            values(&windows[0]).iter().all(|value| *value == 0.0),
            "{name}"
        );
        assert!(
            values(&windows[1]).iter().all(|value| *value >= 0.0),
            "{name}"
        );
        assert!(
            values(&windows[2]).iter().all(|value| *value <= 0.0),
            "{name}"
        );
        // Records of both classes in one place cancel.
        let both = [record(0.4, 1.0), record(0.4, -1.0)].repeat(20);
        assert!(values(&both).iter().all(|value| *value == 0.0), "{name}");
    }
}

#[test]
fn what_cannot_be_built_is_refused_in_words() {
    let says = |result: Result<Box<dyn Target>, bernstream_release::TargetError>, words: &str| {
        let message = result.expect_err(words).to_string();
        assert!(message.contains(words), "{message}");
    };
    let kernel = |widths: &[f64], k| {
        KernelBayes::new(widths, k).map(|target| Box::new(target) as Box<dyn Target>)
    };
    let gaussian = |widths: &[f64], k| {
        GaussianBayes::new(widths, k).map(|target| Box::new(target) as Box<dyn Target>)
    };
    says(kernel(&[], 10), "1 to 3 axes, not 0");
    says(gaussian(&[0.1; 4], 10), "1 to 3 axes, not 4");
    for wrong in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
        says(kernel(&[0.1, wrong], 10), "the bandwidth of axis 2 is ");
        says(
            gaussian(&[0.1, wrong], 10),
            "the smallest standard deviation of axis 2 is ",
        );
    }
    says(gaussian(&[0.0009], 10), "at least 0.001");
    says(kernel(&[0.1], 0), "degree 0 is out of range");
    says(
        gaussian(&[0.1; 3], 101),
        "degree 101 on 3 axes makes 1061208 lattice points",
    );
    says(kernel(&[1e-9], 10), "histogram of");
    let most = kernel(&[0.1], 20)
        .unwrap()
        .sensitivity(Adjacency::AddRemove, u32::MAX);
    assert!(
        most.unwrap_err()
            .to_string()
            .contains("4294967295 records a unit")
    );
}
