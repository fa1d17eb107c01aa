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
//! * Beside the sampled sensitivity stands ours, which holds for all data, with gaps clipped at 2/n and labels at 1.2, where
//!   the vignette clips nothing. That has a price: the worst data are much worse than the prior's, most of all because a
//!   record can lie where there is no other, and n = 250 is little.

use crate::harness::exact::Opened as _;
use crate::harness::picture;

use std::f64::consts::PI;
use std::fmt::Write;
use std::fs;

use crate::harness::picture::{Axis, BRICK, DARK, GREEN, GREY, Layer, Panel, SKY};
use bernstream_functions::regression::LatticeRegression;
use bernstream_functions::sampler::{SamplingPlan, sample_sensitivity};
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::window::accumulator::Record;
use bernstream_release::{Target, TargetError};
use bernstream_synopsis::bernstein::{Operator, bernstein_basis, evaluate_polynomial};
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::{Adjacency, Sensitivity};
use plotters::chart::SeriesLabelPosition::LowerLeft;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

const RECORDS: usize = 250;
const DEGREE: u32 = 25;
const BANDWIDTH: f64 = 0.1;
/// Labels are clipped to this, up and down.
const BOUND: f64 = 1.2;
/// Of the gaps tried, in 1/n; the picture has the second.
const GAPS: [f64; 4] = [1.0, 2.0, 3.0, 6.0];
const POINTS: u32 = 200;
const REPEATS: usize = 200;

fn grid() -> impl Iterator<Item = f64> {
    (0..=POINTS).map(|i| f64::from(i) / f64::from(POINTS))
}

/// The order-1 polynomial of lattice values on the grid.
fn polynomial(values: &[f64]) -> Vec<f64> {
    let coefficients = Operator::new(1, DEGREE).coefficients(values, 1);
    grid()
        .map(|x| evaluate_polynomial(&coefficients, &[bernstein_basis(DEGREE, x)]))
        .collect()
}

fn sup_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Lattice values in the units of the labels.
fn natural(regression: &LatticeRegression, values: &[i128]) -> Vec<f64> {
    values
        .iter()
        .map(|value| *value as f64 * regression.unit() * BOUND)
        .collect()
}

fn solve(regression: &LatticeRegression, records: &[(f64, f64)]) -> Exact {
    let spec = regression.accumulator();
    regression.evaluate(
        &spec.filled_accumulator(records.iter().map(|(x, y)| spec.record(&[*x], y / BOUND))),
    )
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
    let mut drawn = 0;
    let mut factors = [false; 3];
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
    let mut draw = || {
        let x: f64 = rng.random();
        (x, x * (10.0 * x).sin() + noise.sample(&mut rng))
    };
    let mut data: Vec<(f64, f64)> = (0..RECORDS).map(|_| draw()).collect();
    data.sort_by(|a, b| a.0.total_cmp(&b.0));
    let exact: Vec<f64> = grid().map(|x| estimator(&data, x)).collect();

    let most = RECORDS as u32;
    let with_gap = |gap: f64| {
        let regression =
            LatticeRegression::new(BANDWIDTH, DEGREE, gap, most).expect("a regression");
        let values = solve(&regression, &data);
        (regression, values)
    };
    let unclipped = with_gap(1.0);
    let lattice: Vec<f64> = (0..=DEGREE)
        .map(|i| estimator(&data, f64::from(i) / f64::from(DEGREE)))
        .collect();
    let off = sup_distance(&natural(&unclipped.0, &unclipped.1.opened()), &lattice);
    assert!(
        off < 0.01,
        "with a gap of 1 the target is the vignette's estimator, but for clipped labels: {off}"
    );
    let bernstein = polynomial(&lattice);
    println!(
        "sup error of the polynomial {:.3}",
        sup_distance(&bernstein, &exact)
    );

    // The paper's condition does not bound the gap between neighbours, so its constant is refused.
    let refused = unclipped.0.papers_sensitivity(Adjacency::ReplaceOne, 1);
    assert!(
        matches!(refused, Err(TargetError::PaperIsWrong { .. })),
        "{refused:?}"
    );

    let plan = SamplingPlan::new(500, 0.2).expect("a plan");
    let values = |records: &[Record]| {
        let state = unclipped
            .0
            .accumulator()
            .filled_accumulator(records.iter().copied());
        natural(&unclipped.0, &unclipped.0.evaluate(&state).opened())
    };
    let sampled = sample_sensitivity(
        &plan,
        most,
        Adjacency::ReplaceOne,
        values,
        prior(),
        &mut rng,
    )
    .expect("a sensitivity");
    let vignettes = f64::from(DEGREE + 1) * sampled.sup;

    let price: Epsilon = "5".parse().expect("a price");
    let mut generator = Generator::frozen([6; 32]);
    // The first release, and the mean sup error of all.
    let mut releases = |(regression, values): &(LatticeRegression, Exact), sensitivity| {
        let laplace = Mechanism::laplace(sensitivity, price).expect("a scale");
        let mut release = || {
            polynomial(&natural(
                regression,
                laplace.release_noisy(values, &mut generator).values(),
            ))
        };
        let first = release();
        let errors = (0..REPEATS).map(|_| sup_distance(&release(), &exact));
        (first, errors.sum::<f64>() / REPEATS as f64)
    };
    let scale = Sensitivity((vignettes / (unclipped.0.unit() * BOUND)).ceil() as u64);
    let (theirs, error) = releases(&unclipped, scale);
    println!(
        "sampled (random differential privacy, gamma {}): 1-norm {:.3}, N times the sup norm {vignettes:.3}; mean sup error {error:.3}",
        sampled.gamma, sampled.sum
    );
    assert!(error < 0.3, "{error}");
    let ours = GAPS.map(|gap| {
        let clipped = with_gap(gap / f64::from(most));
        let tight = clipped
            .0
            .sensitivity(Adjacency::ReplaceOne, 1)
            .expect("a bound");
        let (first, error) = releases(&clipped, tight);
        let bias = sup_distance(
            &polynomial(&natural(&clipped.0, &clipped.1.opened())),
            &exact,
        );
        println!(
            "for all data, gap {gap}/n: D1 {:.3}; sup error {bias:.3}, with noise {error:.3}",
            tight.0 as f64 * clipped.0.unit() * BOUND
        );
        assert!(error < 0.4 * gap.max(1.5), "{gap}: {error}");
        first
    });
    let [_, ours, ..] = &ours;

    let mut table = String::from("x,exact,bernstein,ours,sampled\n");
    for (i, x) in grid().enumerate() {
        let _ = writeln!(
            table,
            "{x:.4},{:.5},{:.5},{:.5},{:.5}",
            exact[i], bernstein[i], ours[i], theirs[i]
        );
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
        y: Axis::new("y", -2.1..1.4),
        legend: LowerLeft,
        layers: vec![
            Layer::Dots {
                name: String::new(),
                color: GREY,
                points: data.clone(),
            },
            line("exact", BRICK, true, &exact),
            line("Bernstein polynomial", DARK, true, &bernstein),
            line(
                "private, sampled sensitivity (random DP, gamma 0.2)",
                GREEN,
                false,
                &theirs,
            ),
            line("private for all data, gaps to 2/n", SKY, false, ours),
        ],
    };
    picture::draw(&picture::output("vignette.svg"), 1, picture::WIDE, &[panel]);
}
