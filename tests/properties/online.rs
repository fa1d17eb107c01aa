//! The Gaussian process one point at a time: the law of the batch, one price whatever the points, and what is free.

use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_noise::online::{OnlineAnswer, OnlineMechanism};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::machine::CubeKernel;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{PointKernel, Sensitivity};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::statistics::{TWO_SIDED, chi_square};

/// `Delta`, in grid units.
const DELTA: u64 = 1 << 24;

fn laplacian(bandwidth: f64) -> PointKernel {
    PointKernel::Machine(CubeKernel::Laplacian { bandwidth })
}

fn gaussian(bandwidth: f64) -> PointKernel {
    PointKernel::Machine(CubeKernel::Gaussian { bandwidth })
}

fn kernels() -> Vec<(PointKernel, usize)> {
    vec![
        (laplacian(0.2), 1),
        (laplacian(0.3), 2),
        (gaussian(0.3), 1),
        (gaussian(1.0), 2),
        (
            PointKernel::Gaussian {
                precision: vec![vec![30.0, -27.0], vec![-27.0, 30.0]],
            },
            2,
        ),
        (PointKernel::Machine(CubeKernel::Polynomial { power: 4 }), 2),
    ]
}

fn rho(rho: &str) -> Price {
    Price::Concentrated(rho.parse().unwrap())
}

fn online(kernel: &PointKernel, axes: usize, error: f64) -> OnlineMechanism {
    OnlineMechanism::new(kernel.clone(), axes, Sensitivity(DELTA), error, rho("0.5")).unwrap()
}

fn one(value: i128) -> Exact {
    Exact::new(vec![value])
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The factor of the kernel matrix, by the book.
struct Cholesky {
    kernel: PointKernel,
    points: Vec<Vec<f64>>,
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    fn new(kernel: &PointKernel) -> Self {
        Cholesky {
            kernel: kernel.clone(),
            points: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn of(kernel: &PointKernel, points: &[Vec<f64>]) -> Self {
        let mut factor = Cholesky::new(kernel);
        points.iter().for_each(|point| factor.push(point));
        factor
    }

    /// `L^-1 v`.
    fn solve(&self, values: &[f64]) -> Vec<f64> {
        let mut solved: Vec<f64> = Vec::new();
        for (row, value) in self.rows.iter().zip(values) {
            solved.push((value - inner(row, &solved)) / row[solved.len()]);
        }
        solved
    }

    /// `L^-1 k(y)`.
    fn at(&self, y: &[f64]) -> Vec<f64> {
        self.solve(
            &self
                .points
                .iter()
                .map(|p| self.kernel.value(p, y))
                .collect::<Vec<f64>>(),
        )
    }

    fn push(&mut self, point: &[f64]) {
        let mut row = self.at(point);
        let rest = self.kernel.value(point, point) - inner(&row, &row);
        row.push(rest.sqrt());
        self.rows.push(row);
        self.points.push(point.to_vec());
    }
}

/// Against the standard normal law, in 20 bins of equal probability.
fn misfit(sample: &[f64]) -> f64 {
    let below = |x: f64| libm::erfc(-x / 2.0_f64.sqrt()) / 2.0;
    let mut counts = [0.0; 20];
    sample
        .iter()
        .for_each(|x| counts[((below(*x) * 20.0) as usize).min(19)] += 1.0);
    chi_square(&counts.map(|count| (count, sample.len() as f64 / 20.0)))
}

#[test]
fn answers_one_by_one_have_the_law_of_the_batch() {
    const DRAWS: usize = 4_000;
    for (kernel, axes) in kernels() {
        let points: Vec<Vec<f64>> = [0.5, 0.1, 0.95, 0.4]
            .map(|x| [x, 1.0 - x * x, x][..axes].to_vec())
            .into_iter()
            .collect();
        let factor = Cholesky::of(&kernel, &points);
        let values: Vec<i128> = (0..4).map(|i| (i - 2) * 123_456_789).collect();
        let mut generator = Generator::frozen([7; 32]);
        // What noise makes of the values, over its deviation: one point at a time, and as one vector.
        let singly = |generator: &mut Generator| -> Vec<f64> {
            let mut online = online(&kernel, axes, 1.0);
            let asked = points.iter().zip(&values).map(|(point, value)| {
                let answer = online.answer_point(point, &one(*value), generator).unwrap();
                assert_eq!(answer.power, None);
                answer.value - *value as f64
            });
            let noise: Vec<f64> = asked.collect();
            noise.iter().map(|z| z / online.deviation()).collect()
        };
        let batch = |generator: &mut Generator| -> Vec<f64> {
            let noise = Mechanism::calibrated(
                NoiseDistribution::DiscreteGaussian,
                Sensitivity(DELTA),
                1,
                rho("0.5"),
            )
            .unwrap();
            let floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            let whitened = factor
                .solve(&floats)
                .iter()
                .map(|c| c.round() as i128)
                .collect();
            let noisy = noise.release_noisy(&Exact::new(whitened), generator);
            let coordinates: Vec<f64> = noisy.values().iter().map(|c| *c as f64).collect();
            let released = factor.rows.iter().map(|row| inner(row, &coordinates));
            released
                .zip(&floats)
                .map(|(y, value)| (y - value) / noise.scale().units() as f64)
                .collect()
        };
        let laws: [(&str, Vec<Vec<f64>>); 2] = [
            (
                "online",
                (0..DRAWS).map(|_| singly(&mut generator)).collect(),
            ),
            ("batch", (0..DRAWS).map(|_| batch(&mut generator)).collect()),
        ];
        for (name, draws) in laws {
            // Mean and covariance of the path.
            for (i, p) in points.iter().enumerate() {
                let variance = kernel.value(p, p);
                let mean = draws.iter().map(|path| path[i]).sum::<f64>() / DRAWS as f64;
                assert!(
                    mean.abs() < TWO_SIDED * (variance / DRAWS as f64).sqrt(),
                    "{name} {kernel:?}: {mean}"
                );
                for (j, q) in points.iter().enumerate() {
                    let found =
                        draws.iter().map(|path| path[i] * path[j]).sum::<f64>() / DRAWS as f64;
                    let law = kernel.value(p, q);
                    let deviation =
                        ((variance * kernel.value(q, q) + law * law) / DRAWS as f64).sqrt();
                    assert!(
                        (found - law).abs() < TWO_SIDED * deviation,
                        "{name} {kernel:?}: {found} {law}"
                    );
                }
            }
            // Independent normal coordinates, each and in pairs.
            let whitened: Vec<Vec<f64>> = draws.iter().map(|path| factor.solve(path)).collect();
            for i in 0..4 {
                let of =
                    |scale: f64| -> Vec<f64> { whitened.iter().map(|c| c[i] * scale).collect() };
                assert!(
                    misfit(&of(1.0)) <= 1.0,
                    "{name} {kernel:?} {i}: {}",
                    misfit(&of(1.0))
                );
                assert!(
                    misfit(&of(1.3)) > 1.0 && misfit(&of(0.7)) > 1.0,
                    "a scale 30 % off is found out"
                );
                let beside: Vec<f64> = whitened
                    .iter()
                    .map(|c| (c[i] + c[(i + 1) % 4]) / 2.0_f64.sqrt())
                    .collect();
                assert!(
                    misfit(&beside) <= 1.0,
                    "{name} {kernel:?} {i}: {}",
                    misfit(&beside)
                );
            }
        }
    }
}

/// Two neighbours asked the same points, with the same noise.
struct Pair {
    sides: [OnlineMechanism; 2],
    generators: [Generator; 2],
    factor: Cholesky,
    /// Of the coordinates.
    change: Vec<f64>,
    free: usize,
}

impl Pair {
    fn new(kernel: &PointKernel, axes: usize, error: f64) -> Self {
        Pair {
            sides: [0, 1].map(|_| online(kernel, axes, error)),
            generators: [0, 1].map(|_| Generator::frozen([9; 32])),
            factor: Cholesky::new(kernel),
            change: Vec::new(),
            free: 0,
        }
    }

    /// `values` of both; the answer of the first.
    fn ask(&mut self, point: &[f64], values: [i128; 2]) -> OnlineAnswer {
        let mut answers = Vec::new();
        for ((side, generator), value) in
            self.sides.iter_mut().zip(&mut self.generators).zip(values)
        {
            answers.push(side.answer_point(point, &one(value), generator).unwrap());
        }
        assert_eq!(answers[0].power, answers[1].power, "what is free is public");
        assert_eq!(answers[0].deviation, answers[1].deviation);
        if answers[0].power.is_some() {
            self.free += 1;
        } else {
            let known = inner(&self.factor.at(point), &self.change);
            self.factor.push(point);
            let pivot = *self.factor.rows.last().and_then(|row| row.last()).unwrap();
            self.change
                .push((answers[0].value - answers[1].value - known) / pivot);
        }
        answers[0]
    }

    /// Of `1.05 Delta`.
    fn length(&self) -> f64 {
        inner(&self.change, &self.change).sqrt() / (1.05 * DELTA as f64)
    }
}

/// Neighbours that differ by the function of norm `Delta` that the kernel at `x` is, rounded the worse way by up to `error`.
fn worst(kernel: &PointKernel, x: &[f64], point: &[f64], error: f64, up: bool) -> [i128; 2] {
    let exact = DELTA as f64 * kernel.value(x, point) / kernel.value(x, x).sqrt();
    let common = 1_000_000_007;
    [
        common + (exact + if up { error } else { -error }).trunc() as i128,
        common,
    ]
}

#[test]
fn no_course_of_points_changes_the_answers_by_more_than_was_paid_for_and_some_nearly_do() {
    for (kernel, axes) in kernels() {
        let at = |x: f64| [x, 0.3 + 0.4 * x, 0.5][..axes].to_vec();
        for error in [1.0, 2_000.0, 40_000.0] {
            let mut longest: f64 = 0.0;
            let mut free = 0;
            for course in 0..6 {
                let mut rng = ChaCha20Rng::seed_from_u64(course);
                let mut pair = Pair::new(&kernel, axes, error);
                let x = at(0.4);
                let mut low = 0.0;
                let mut high = 1.0;
                for i in 0..40 {
                    let point: Vec<f64> = match course {
                        // The record itself, and ever nearer.
                        0 => at(0.4 + 0.5_f64.powi(i + 1)),
                        // Evenly, and pairs so near that floats hardly tell them apart.
                        1 => at(f64::from(i) / 40.0),
                        2 => at(f64::from(i / 2) / 20.0 + f64::from(i % 2) * 1e-7),
                        // Where the answers lead: halves of an interval.
                        3 => at((low + high) / 2.0),
                        _ => (0..axes).map(|_| rng.random()).collect(),
                    };
                    let alternately = if course == 5 {
                        rng.random()
                    } else {
                        i % 2 == 0
                    };
                    let answer = pair.ask(&point, worst(&kernel, &x, &point, error, alternately));
                    let middle = (low + high) / 2.0;
                    if answer.value > 1e9 {
                        low = middle
                    } else {
                        high = middle
                    }
                }
                longest = longest.max(pair.length());
                free += pair.free;
            }
            println!(
                "{kernel:?}, error {error}: {longest:.4} of what is paid for, {free} of 240 free"
            );
            assert!(longest <= 1.0, "{kernel:?} {error}: {longest}");
            assert!(
                longest > 0.9 && longest / 0.7 > 1.0,
                "30 % less would be found out: {kernel:?} {longest}"
            );
            assert!(free > 0 && free < 234, "{kernel:?} {error}: {free}");
        }
    }
}

#[test]
fn without_its_limits_the_change_would_pass_what_was_paid_for() {
    // What was declared too small: errors of a hundred thousand, one declared.
    let kernel = laplacian(0.2);
    let mut pair = Pair::new(&kernel, 1, 1.0);
    for i in 0..40 {
        let point = [f64::from(i) / 40.0 * 0.05];
        pair.ask(
            &point,
            worst(&kernel, &[0.02], &point, 100_000.0, i % 2 == 0),
        );
    }
    assert!(pair.free == 0 && pair.length() > 1.0, "{}", pair.length());
}

#[test]
fn what_is_free_is_what_the_earlier_answers_predict() {
    for (kernel, axes) in kernels() {
        let mut generator = Generator::frozen([3; 32]);
        // Nearly all of the slack for errors: few points have noise of their own.
        let mut online = online(&kernel, axes, DELTA as f64 * 0.012);
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut factor = Cholesky::new(&kernel);
        let mut released = Vec::new();
        for i in 0..40 {
            let point: Vec<f64> = (0..axes).map(|_| rng.random()).collect();
            let answer = online
                .answer_point(&point, &one(i * 1_000_000), &mut generator)
                .unwrap();
            let n = factor.at(&point);
            let whole = kernel.value(&point, &point);
            match answer.power {
                None => {
                    assert!((answer.deviation / online.deviation() - whole.sqrt()).abs() < 1e-9);
                    factor.push(&point);
                    released.push(answer.value);
                }
                Some(power) => {
                    let predicted = inner(&n, &factor.solve(&released));
                    assert!(
                        (answer.value - predicted).abs() < 1e-3,
                        "{kernel:?}: {} {predicted}",
                        answer.value
                    );
                    let explained = inner(&n, &n);
                    assert!((power * power - (whole - explained)).abs() < 1e-9);
                    assert!(
                        ((answer.deviation / online.deviation()).powi(2) - explained).abs() < 1e-9
                    );
                }
            }
        }
        assert_eq!(released.len(), online.drawn());
        assert!(
            (1..39).contains(&released.len()),
            "{kernel:?}: {}",
            released.len()
        );
    }
}

#[test]
fn the_deviation_of_an_answer_is_that_of_its_noise() {
    const DRAWS: usize = 2_000;
    // The last point is free, between two others.
    let kernel = gaussian(0.3);
    let points = [0.2, 0.4, 0.4 + 1e-6];
    let mut generator = Generator::frozen([5; 32]);
    let mut squares = [0.0; 3];
    let mut stated = [0.0; 3];
    for _ in 0..DRAWS {
        let mut online = online(&kernel, 1, 1.0);
        for (i, x) in points.iter().enumerate() {
            let answer = online.answer_point(&[*x], &one(0), &mut generator).unwrap();
            assert_eq!(answer.power.is_some(), i == 2);
            squares[i] += answer.value.powi(2);
            stated[i] = answer.deviation;
        }
    }
    for i in 0..3 {
        let off = (squares[i] / DRAWS as f64).sqrt() / stated[i] - 1.0;
        assert!(
            off.abs() < TWO_SIDED / (2.0 * DRAWS as f64).sqrt(),
            "{i}: {off}"
        );
    }
}

#[test]
fn one_price_pays_for_all_points() {
    // 2^24 units of a coordinate to one of the grid, and a twentieth of slack.
    let change = (DELTA * 21 / 20 + 1) << 24;
    for price in [
        rho("0.5"),
        Price::Approximate {
            epsilon: "1".parse().unwrap(),
            delta: "0.000001".parse().unwrap(),
        },
    ] {
        let online =
            OnlineMechanism::new(laplacian(0.2), 1, Sensitivity(DELTA), 1.0, price).unwrap();
        let vector = Mechanism::calibrated(
            NoiseDistribution::DiscreteGaussian,
            Sensitivity(change),
            1 << 20,
            price,
        )
        .unwrap();
        let deviation = vector.scale().units() as f64 / f64::from(1 << 24);
        assert!(
            (online.deviation() / deviation - 1.0).abs() < 1e-6,
            "{} {deviation}",
            online.deviation()
        );
    }
    let pure = Price::Pure("1".parse().unwrap());
    assert!(
        OnlineMechanism::new(laplacian(0.2), 1, Sensitivity(DELTA), 1.0, pure).is_err(),
        "Gaussian noise has no pure price"
    );
}

#[test]
fn what_cannot_be_answered_says_why() {
    let refused = |kernel, axes, change, error| {
        OnlineMechanism::new(kernel, axes, Sensitivity(change), error, rho("0.5"))
            .unwrap_err()
            .to_string()
    };
    assert!(refused(laplacian(0.2), 1, 20, 1.0).contains("finer grid"));
    assert!(refused(laplacian(0.2), 1, 1 << 24, f64::NAN).contains("finer grid"));
    assert!(refused(laplacian(0.2), 1, 0, 1.0).contains("sensitivity of 0"));
    assert!(refused(laplacian(0.2), 1, u64::MAX, 1.0).contains("rho"));
    assert!(refused(laplacian(0.2), 4, 1 << 24, 1.0).contains("1 to 3 axes"));
    assert!(refused(laplacian(-1.0), 1, 1 << 24, 1.0).contains("bandwidth"));
    let mut generator = Generator::frozen([6; 32]);
    let mut online = online(&laplacian(0.2), 1, 1.0);
    for point in [&[1.5][..], &[f64::NAN], &[], &[0.5, 0.5]] {
        assert!(
            online.answer_point(point, &one(0), &mut generator).is_err(),
            "{point:?}"
        );
    }
    assert!(
        online
            .answer_point(&[0.5], &Exact::new(vec![]), &mut generator)
            .is_err()
    );
    // Values of any size: sums wrap.
    for (i, value) in [i128::MAX, i128::MIN, -1].into_iter().enumerate() {
        assert!(
            online
                .answer_point(&[i as f64 / 4.0], &one(value), &mut generator)
                .unwrap()
                .value
                .is_finite()
        );
    }
    assert_eq!(
        format!("{online:?}"),
        "Online(3 points drawn)",
        "no secret is shown"
    );
}

/// A grid of 2^24 units to the change, and values that are rounded to it.
#[test]
fn many_points_fit_into_the_slack() {
    let mut generator = Generator::frozen([8; 32]);
    // In no order, into the widest gaps.
    let place = |i: u32, turn: f64| (f64::from(i) * turn).fract();
    let mut drawn = |kernel: &PointKernel, axes: usize, points: u32| {
        let mut online = online(kernel, axes, 1.0);
        for i in 0..points {
            let point = [place(i, 0.618_033_988_7), place(i, 0.754_877_666_2)];
            online
                .answer_point(&point[..axes], &one(0), &mut generator)
                .unwrap();
        }
        online.drawn()
    };
    assert_eq!(drawn(&laplacian(0.2), 1, 50_000), 50_000);
    assert_eq!(drawn(&laplacian(0.2), 2, 300), 300);
    // Smooth kernels know all there is after a few.
    let few =
        [(gaussian(0.1), 1), (gaussian(0.2), 2)].map(|(kernel, axes)| drawn(&kernel, axes, 300));
    println!("{few:?}");
    assert!(few[0] > 15 && few[1] > 60, "{few:?}");
}
