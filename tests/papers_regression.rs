//! The vignette of the R package `diffpriv`: Priestley-Chao regression, released by the Bernstein mechanism.
//!
//! What its Figure 2 shows: 250 points `y = x sin(10 x) + N(0, 0.2)`, `x` uniform; the exact regression, bandwidth 0.1; its
//! Bernstein polynomial, `k = 25`, `h = 1`; and the private one at epsilon 5, with a sensitivity sampled from 500 pairs of
//! data sets of a made-up prior: random differential privacy with `gamma = 0.2`. The 26 coefficients of its section 2 are
//! tested in `synopsis::bernstein`.
//!
//! Departures:
//!
//! * The vignette's kernel is `exp(-x^2/2)/b`, not a density, so its curve is `sqrt(2 pi)` times a regression and misses the
//!   points by that factor. Here everything is divided by it.
//! * The points are drawn anew; R's generator is not rebuilt.
//! * Beside the sampled sensitivity stands ours, which holds for all data: gaps clipped at 6/n, labels at 1.5, neither
//!   of which the vignette does.

#[path = "support/picture.rs"]
mod picture;

use std::f64::consts::PI;
use std::fmt::Write;
use std::fs;

use bernstream::mechanism::Laplace;
use bernstream::mechanism::calibrate::Epsilon;
use bernstream::mechanism::noise::Generator;
use bernstream::synopsis::bernstein::{Operator, basis, evaluate};
use bernstream::target::regression::Regression;
use bernstream::target::sampler::{Plan, sample};
use bernstream::target::{Adjacency, Error, Exact, Sensitivity, Target};
use bernstream::window::keep::Record;
use picture::{Axis, BRICK, DARK, GREEN, GREY, Layer, Panel, SKY};
use plotters::chart::SeriesLabelPosition::LowerLeft;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

const RECORDS: usize = 250;
const DEGREE: u32 = 25;
const BANDWIDTH: f64 = 0.1;
/// Labels are clipped to this, up and down.
const BOUND: f64 = 1.5;
const GAP: f64 = 6.0 / RECORDS as f64;
const POINTS: u32 = 200;
const REPEATS: usize = 200;

fn grid() -> impl Iterator<Item = f64> {
    (0..=POINTS).map(|i| f64::from(i) / f64::from(POINTS))
}

/// The order-1 polynomial of lattice values on the grid.
fn polynomial(values: &[f64]) -> Vec<f64> {
    let coefficients = Operator::new(1, DEGREE).coefficients(values, 1);
    grid().map(|x| evaluate(&coefficients, &[basis(DEGREE, x)])).collect()
}

fn sup_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Lattice values in the units of the labels.
fn natural(regression: &Regression, values: &[i128]) -> Vec<f64> {
    values.iter().map(|value| *value as f64 * regression.unit() * BOUND).collect()
}

fn solve(regression: &Regression, records: impl IntoIterator<Item = (f64, f64)>) -> Exact {
    let keep = regression.keep();
    regression.evaluate(&keep.state(records.into_iter().map(|(x, y)| keep.record(&[x], y / BOUND))))
}

/// The vignette's estimator at `x`, divided by `sqrt(2 pi)`; `data` sorted.
fn estimator(data: &[(f64, f64)], x: f64) -> f64 {
    let term = |pair: &[(f64, f64)]| {
        let z = (x - pair[1].0) / BANDWIDTH;
        (pair[1].0 - pair[0].0) * pair[1].1 * (-z * z / 2.0).exp()
    };
    data.windows(2).map(term).sum::<f64>() / (BANDWIDTH * (2.0 * PI).sqrt())
}

/// The vignette's `P`: one law of labels a data set, each of three factors there or not.
///
/// Draws one record at a time; a pair of neighbouring data sets takes `RECORDS + 1` of them.
fn prior() -> impl FnMut(&mut ChaCha20Rng) -> Record {
    let noise = Normal::new(0.0, 0.2).expect("a law");
    let (mut drawn, mut factors) = (0, [false; 3]);
    move |rng| {
        if drawn % (RECORDS + 1) == 0 {
            factors = [0.95, 0.5, 0.5].map(|chance| rng.random_bool(chance));
        }
        drawn += 1;
        let x: f64 = rng.random();
        let sin = if factors[1] { x.sin() } else { 1.0 };
        let cos = if factors[2] { x.cos() } else { 1.0 };
        let y = if factors[0] { x * sin * cos } else { 0.0 } + noise.sample(rng);
        Record::new(&[x], y / BOUND)
    }
}

#[test]
fn the_vignettes_regression_is_released_with_a_sensitivity_that_holds() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let noise = Normal::new(0.0, 0.2).expect("a law");
    let mut data: Vec<(f64, f64)> =
        (0..RECORDS).map(|_| rng.random::<f64>()).map(|x| (x, x * (10.0 * x).sin() + noise.sample(&mut rng))).collect();
    data.sort_by(|a, b| a.0.total_cmp(&b.0));
    let exact: Vec<f64> = grid().map(|x| estimator(&data, x)).collect();

    let most = RECORDS as u32;
    let [clipped, unclipped] =
        [GAP, 1.0].map(|gap| Regression::new(BANDWIDTH, DEGREE, gap, most).expect("a regression"));
    let [ours, theirs] = [&clipped, &unclipped].map(|regression| solve(regression, data.iter().copied()));
    let lattice: Vec<f64> = (0..=DEGREE).map(|i| estimator(&data, f64::from(i) / f64::from(DEGREE))).collect();
    let error = sup_distance(&natural(&unclipped, theirs.reveal()), &lattice);
    assert!(error < 1e-3, "with a gap of 1 the target is the vignette's estimator: {error}");
    let clipping = sup_distance(&natural(&clipped, ours.reveal()), &lattice);
    let bernstein = polynomial(&lattice);
    println!("clipping costs {clipping:.4}, the polynomial {:.4} (sup)", sup_distance(&bernstein, &exact));

    // The paper's condition does not bound the gap between neighbours, so its constant is refused.
    let refused = clipped.papers_sensitivity(Adjacency::ReplaceOne, 1);
    assert!(matches!(refused, Err(Error::PaperIsWrong { .. })), "{refused:?}");

    let tight = clipped.sensitivity(Adjacency::ReplaceOne, 1).expect("a bound");
    let plan = Plan::new(500, 0.2).expect("a plan");
    let values = |records: &[Record]| {
        let state = unclipped.keep().state(records.iter().copied());
        natural(&unclipped, unclipped.evaluate(&state).reveal())
    };
    let sampled = sample(&plan, most, Adjacency::ReplaceOne, values, prior(), &mut rng).expect("a sensitivity");
    let in_units = |value: f64| Sensitivity((value / (unclipped.unit() * BOUND)).ceil() as u64);
    let vignette = in_units(f64::from(DEGREE + 1) * sampled.sup);
    println!(
        "1-norm: ours {:.3}, for all data; sampled {:.3} (random differential privacy, gamma {}), N times the sampled sup {:.3}",
        tight.0 as f64 * clipped.unit() * BOUND,
        sampled.sum,
        sampled.gamma,
        f64::from(DEGREE + 1) * sampled.sup,
    );

    let price: Epsilon = "5".parse().expect("a price");
    let mut generator = Generator::frozen([6; 32]);
    let mut release = |regression: &Regression, exact: &Exact, sensitivity| {
        let laplace = Laplace::calibrated(sensitivity, price).expect("a scale");
        polynomial(&natural(regression, laplace.release(exact, &mut generator).values()))
    };
    let mut runs = Vec::new();
    for _ in 0..REPEATS {
        runs.push([release(&clipped, &ours, tight), release(&unclipped, &theirs, vignette)]);
    }
    let errors =
        [0, 1].map(|which| runs.iter().map(|run| sup_distance(&run[which], &exact)).sum::<f64>() / REPEATS as f64);
    println!("mean sup error at epsilon 5: ours {:.3}, sampled {:.3}", errors[0], errors[1]);

    let [ours, theirs] = &runs[0];
    let mut table = String::from("x,exact,bernstein,ours,sampled\n");
    for (i, x) in grid().enumerate() {
        let _ = writeln!(table, "{x:.4},{:.5},{:.5},{:.5},{:.5}", exact[i], bernstein[i], ours[i], theirs[i]);
    }
    fs::write(picture::output("vignette.csv"), table).expect("written");
    let line = |name: &str, color, is_dashed, values: &[f64]| Layer::Line {
        name: name.into(),
        color,
        is_dashed,
        points: grid().zip(values.iter().copied()).collect(),
    };
    let panel = Panel {
        title: "Priestley-Chao regression, n = 250, k = 25, epsilon 5",
        x: Axis::new("x", 0.0..1.0),
        y: Axis::new("y", -1.6..1.6),
        legend: LowerLeft,
        layers: vec![
            Layer::Dots { name: String::new(), color: GREY, points: data.clone() },
            line("exact", BRICK, true, &exact),
            line("Bernstein polynomial", DARK, true, &bernstein),
            line("private, sampled sensitivity (random DP, gamma 0.2)", GREEN, false, theirs),
            line("private, for all data", SKY, false, ours),
        ],
    };
    picture::draw(&picture::output("vignette.svg"), 1, picture::WIDE, &[panel]);
}
