//! Questions to moments: answers against the sums themselves, their errors against what they say of them, and the error against
//! the number of records beside the rates of `[WFZW13]` table 1.

use std::fmt::Write;
use std::fs;

use crate::harness::exact::Opened as _;
use bernstream_functions::moments::CosineMoments;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::{AxisDescription, Basis, Description, NoiseDescription};
use bernstream_synopsis::moments::most_frequencies;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::query::{
    Approximation, CoefficientGrid, Query, frequencies, gaussian_bump, half_space,
    papers_frequencies, polynomial,
};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

type Record = Vec<f64>;
type Question = Box<dyn Fn(&[f64]) -> f64>;

/// On the domain `[-1, 1]^d`: some in a heap, some anywhere, some at the border.
fn records(axes: usize, count: usize) -> Vec<Record> {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut place = |i: usize| match i % 10 {
        0..6 => 0.3 + 0.1 * (0..4).map(|_| rng.random::<f64>() - 0.5).sum::<f64>(),
        6..9 => 2.0 * rng.random::<f64>() - 1.0,
        _ => 1.0,
    };
    (0..count)
        .map(|i| (0..axes).map(|axis| place(i / (axis + 1))).collect())
        .collect()
}

/// Exact moments of a window, and noise of one law at one price: as many releases as wanted.
struct Window {
    moments: CosineMoments,
    exact: bernstream_noise::Exact,
    mechanism: Mechanism,
    law: NoiseDistribution,
}

impl Window {
    fn new(axes: usize, t: u32, records: &[Record], law: NoiseDistribution, epsilon: &str) -> Self {
        let moments = CosineMoments::new(axes, t).unwrap();
        let spec = moments.accumulator();
        let unit = |x: &Record| x.iter().map(|x| (x + 1.0) / 2.0).collect::<Vec<f64>>();
        let exact = moments
            .evaluate(&spec.filled_accumulator(records.iter().map(|x| spec.record(&unit(x), 0.0))));
        let change = moments
            .sensitivity_in(law.norm(), Adjacency::AddRemove, 1)
            .unwrap();
        let mechanism = Mechanism::calibrated(
            law,
            change,
            moments.shape().value_count(),
            Price::Pure(epsilon.parse().unwrap()),
        )
        .unwrap();
        Window {
            moments,
            exact,
            mechanism,
            law,
        }
    }

    fn synopsis(&self, values: &[i128]) -> Synopsis {
        let shape = self.moments.shape();
        let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        about.domain = (0..shape.dimensions)
            .map(|axis| AxisDescription {
                column: ["x", "y", "z"][axis].into(),
                min: -1.0,
                max: 1.0,
            })
            .collect();
        let Basis::Cosine { frequencies } = shape.basis else {
            panic!("not moments")
        };
        (about.basis, about.degree, about.order) = (Basis::Cosine { frequencies }, 1, 1);
        let unit = self.moments.unit();
        about.noise = NoiseDescription {
            law: self.law,
            scale: self.mechanism.scale().units() as f64 * unit,
            grid: unit,
            ..about.noise
        };
        Synopsis::new(
            about,
            values.iter().map(|value| *value as f64 * unit).collect(),
        )
        .unwrap()
    }

    /// Without noise.
    fn exact(&self) -> Synopsis {
        self.synopsis(&self.exact.opened())
    }

    fn release(&self, seed: u8) -> Synopsis {
        let mut generator = Generator::frozen([seed; 32]);
        self.synopsis(
            self.mechanism
                .release_noisy(&self.exact, &mut generator)
                .values(),
        )
    }
}

fn total(records: &[Record], f: impl Fn(&[f64]) -> f64) -> f64 {
    records.iter().map(|x| f(x)).sum()
}

#[test]
fn questions_of_every_kind_are_answered_within_their_truncation() {
    let records = records(2, 2_000);
    let synopsis = Window::new(2, 16, &records, NoiseDistribution::DiscreteLaplace, "10").exact();
    let text = |text: &str| Query::expression(text, &synopsis).unwrap();
    let bump = || gaussian_bump(vec![0.2, 0.1], vec![0.5, 0.7]);
    let half = || half_space(vec![3.0, -2.0], 0.4);
    let cubic = || {
        polynomial(vec![
            (1.0, vec![3, 0]),
            (-2.0, vec![1, 2]),
            (0.5, vec![0, 0]),
        ])
    };
    let questions: [(&str, Query<'_>, f64); 7] = [
        (
            "text",
            text("exp(-x^2) * y"),
            total(&records, |x| (-x[0] * x[0]).exp() * x[1]),
        ),
        (
            "a kink",
            text("abs(x - 0.3)"),
            total(&records, |x| (x[0] - 0.3).abs()),
        ),
        ("a bump", Query::function(bump()), total(&records, bump())),
        (
            "a half-space",
            Query::function(half()),
            total(&records, half()),
        ),
        (
            "a polynomial",
            Query::function(cubic()),
            total(&records, cubic()),
        ),
        (
            "a closure",
            Query::function(|x| x[0].cos() * x[1].sin()),
            total(&records, |x| x[0].cos() * x[1].sin()),
        ),
        ("a constant", text("1"), 2_000.0),
    ];
    for (name, query, exact) in questions {
        let answer = synopsis.answer(&query).unwrap();
        let off = (answer.sum - exact).abs();
        let truncation = answer.truncation;
        println!(
            "{name}: off by {off:.4}, truncation {:.4} (proved: {}), noise {:.1}",
            truncation.error, truncation.is_proved, answer.noise.half_width
        );
        // The moments themselves are right to a part in ten thousand.
        assert!(
            off <= truncation.error + 0.1,
            "{name}: {off} {truncation:?}"
        );
        assert!(
            (answer.mean.unwrap().value - exact / 2_000.0).abs() < truncation.per_record + 1e-4
        );
        let smooth = name != "a kink";
        assert!(
            !smooth || truncation.per_record < 5e-3,
            "{name}: {truncation:?}"
        );
    }
}

#[test]
fn the_papers_coefficients_answer_too_with_more_truncation() {
    let records = records(1, 1_000);
    let synopsis = Window::new(1, 24, &records, NoiseDistribution::DiscreteLaplace, "1").exact();
    let f = |x: &[f64]| (2.0 * x[0]).exp() / 8.0;
    let [plain, jackson] = [
        Approximation::Chebyshev,
        Approximation::Jackson { smoothness: 2 },
    ]
    .map(|by| {
        synopsis
            .answer(&Query::function(f).with_approximation(by))
            .unwrap()
    });
    assert!((jackson.sum - total(&records, f)).abs() <= jackson.truncation.error + 0.1);
    assert!(jackson.truncation.per_record > plain.truncation.per_record);
    assert!(jackson.truncation.per_record < 0.05, "{jackson:?}");
}

#[test]
fn a_sparse_grid_answers_on_three_axes() {
    let records = records(3, 500);
    let synopsis = Window::new(3, 6, &records, NoiseDistribution::DiscreteLaplace, "1").exact();
    let f = |x: &[f64]| (0.4 * x[0] - 0.3 * x[1] * x[2]).exp();
    let answer = synopsis
        .answer(&Query::function(f).with_grid(CoefficientGrid::Sparse { level: 8 }))
        .unwrap();
    let off = (answer.sum - total(&records, f)).abs();
    assert!(
        off <= answer.truncation.error + 0.5 && answer.truncation.per_record < 1e-3,
        "{off} {answer:?}"
    );
}

/// The part of releases whose noise is within the half-width, and the variance over what is claimed.
fn covered(law: NoiseDistribution, narrower: f64) -> [f64; 2] {
    let records = records(1, 300);
    let window = Window::new(1, 6, &records, law, "0.5");
    let query = Query::function(|x| (x[0] - 0.3).exp());
    let (exact, weights) = (
        window.exact().answer(&query).unwrap(),
        window.exact().weights(&query).unwrap(),
    );
    // A price of 0.5 and 250 releases: nobody's records.
    let off = |seed| {
        window
            .release(seed)
            .values()
            .iter()
            .zip(&weights)
            .map(|(m, w)| m * w)
            .sum::<f64>()
            - exact.sum
    };
    let errors: Vec<f64> = (0..250).map(off).collect();
    let within = errors
        .iter()
        .filter(|error| error.abs() <= narrower * exact.noise.half_width)
        .count();
    let variance = errors
        .iter()
        .map(|error| (error / exact.noise.deviation).powi(2))
        .sum::<f64>();
    [within as f64 / 250.0, variance / 250.0]
}

#[test]
fn released_noise_is_as_large_as_an_answer_says() {
    for law in [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
    ] {
        let [within, variance] = covered(law, 1.0);
        // Three and a half deviations of a count of 237 or so.
        assert!(within > 0.90 && within < 0.995, "{law}: {within}");
        assert!((variance - 1.0).abs() < 0.4, "{law}: {variance}");
        assert!(covered(law, 0.7)[0] < 0.9, "{law}: 30 % too narrow");
    }
}

#[test]
fn a_synopsis_of_moments_is_no_function_and_says_where_to_ask() {
    let synopsis = Window::new(
        1,
        4,
        &records(1, 10),
        NoiseDistribution::DiscreteLaplace,
        "1",
    )
    .exact();
    let refused = synopsis.evaluate(&[0.0]).unwrap_err().to_string();
    assert!(refused.contains("bernstream query"), "{refused}");
    let nowhere = synopsis
        .answer(&Query::expression("ln(x)", &synopsis).unwrap())
        .unwrap_err()
        .to_string();
    assert!(nowhere.contains("no finite answer at"), "{nowhere}");
}

/// Functions whose derivatives up to the order `K` are at most 1, and that are no smoother: powers that begin somewhere, and
/// waves, in some direction.
fn family(axes: usize, smoothness: u32) -> Vec<Question> {
    let factorial: f64 = (1..=smoothness).map(f64::from).product();
    let directions: Vec<Vec<f64>> = match axes {
        1 => vec![vec![1.0]],
        _ => vec![vec![1.0, 0.0], vec![0.6, 0.8], vec![-0.8, 0.6]],
    };
    let mut family: Vec<Question> = Vec::new();
    for direction in directions {
        for c in [-0.7, -0.35, 0.0, 0.3, 0.55, 0.8] {
            let along =
                move |x: &[f64], d: &[f64]| x.iter().zip(d).map(|(x, d)| x * d).sum::<f64>() - c;
            let d = direction.clone();
            family.push(Box::new(move |x| {
                along(x, &d).max(0.0).powi(smoothness as i32) / factorial
            }));
            let d = direction.clone();
            family.push(Box::new(move |x| along(x, &d).cos()));
        }
    }
    family
}

/// Mean over releases of the worst error of a mean over the family.
fn worst(window: &Window, records: &[Record], family: &[Question], by: Approximation) -> f64 {
    const RELEASES: u8 = 12;
    let n: f64 = records.len() as f64;
    let exact: Vec<f64> = family.iter().map(|f| total(records, f)).collect();
    let releases: Vec<Synopsis> = (0..RELEASES).map(|seed| window.release(seed)).collect();
    // An answer is linear in the moments: weights once a question.
    let weights: Vec<Vec<f64>> = family
        .iter()
        .map(|f| {
            releases[0]
                .weights(&Query::function(f).with_approximation(by))
                .unwrap()
        })
        .collect();
    let error = |release: &Synopsis| {
        let answer = |weights: &Vec<f64>| {
            weights
                .iter()
                .zip(release.values())
                .map(|(w, m)| w * m)
                .sum::<f64>()
        };
        weights
            .iter()
            .zip(&exact)
            .map(|(w, exact)| (answer(w) - exact).abs() / n)
            .fold(0.0, f64::max)
    };
    releases.iter().map(error).sum::<f64>() / f64::from(RELEASES)
}

/// Written to `target/smooth-queries.txt`.
#[test]
fn more_records_and_smoother_questions_mean_smaller_errors_at_the_papers_rates_or_better() {
    let mut table = String::from(
        "Smooth queries at epsilon 1: mean worst error of a mean over a family of K-smooth queries (add-remove).\n\
         paper: t = n^(1/(2d+K)), Laplace noise, generalised Jackson coefficients. ours: t by predicted error, Chebyshev.\n\
         rate: n^(-K/(2d+K)), the paper's table 1 without its constant.\n\n",
    );
    writeln!(
        table,
        "{:>2} {:>2} {:>7} | {:>4} {:>8} | {:>4} {:>8} {:>8} | {:>8}",
        "d", "K", "n", "t", "paper", "t", "laplace", "cube", "rate"
    )
    .unwrap();
    for (axes, smoothness) in [(1, 1), (1, 2), (1, 8), (2, 1), (2, 4), (2, 8)] {
        let family = family(axes, smoothness);
        let mut errors: Vec<[f64; 4]> = Vec::new();
        for n in [1_000, 10_000, 100_000] {
            let records = records(axes, n);
            let papers = papers_frequencies(axes, smoothness, n as u64);
            let ours = frequencies(axes, smoothness, n as u64, 1.0, most_frequencies(axes));
            let error = |t, law, by| {
                worst(
                    &Window::new(axes, t, &records, law, "1"),
                    &records,
                    &family,
                    by,
                )
            };
            let row = [
                error(
                    papers,
                    NoiseDistribution::DiscreteLaplace,
                    Approximation::Jackson { smoothness },
                ),
                error(
                    ours,
                    NoiseDistribution::DiscreteLaplace,
                    Approximation::Chebyshev,
                ),
                error(
                    ours,
                    NoiseDistribution::DiscreteCube,
                    Approximation::Chebyshev,
                ),
                (n as f64)
                    .powf(-f64::from(smoothness) / (2.0 * axes as f64 + f64::from(smoothness))),
            ];
            let [paper, laplace, cube, rate] = row;
            writeln!(table, "{axes:>2} {smoothness:>2} {n:>7} | {papers:>4} {paper:>8.5} | {ours:>4} {laplace:>8.5} {cube:>8.5} | {rate:>8.5}").unwrap();
            errors.push(row);
        }
        // Over two decades the error falls by at least four fifths, in powers, of what the rate says.
        let fall = |column: usize| (errors[0][column] / errors[2][column]).ln();
        assert!(
            fall(1) > 0.8 * fall(3),
            "d {axes}, K {smoothness}: {errors:.5?}\n{table}"
        );
        for [paper, laplace, cube, _] in &errors {
            assert!(
                cube < laplace && cube < paper,
                "d {axes}, K {smoothness}: {errors:.5?}\n{table}"
            );
        }
    }
    println!("{table}");
    fs::create_dir_all("target").unwrap();
    fs::write("target/smooth-queries.txt", table).unwrap();
}
