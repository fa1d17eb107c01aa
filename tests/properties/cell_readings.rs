//! Counts of cells, read as they are published, smoothed by their posterior, and without negative counts.

use std::f64::consts::PI;

use crate::harness::exact::Opened as _;
use bernstream_functions::cells::CellDensity;
use bernstream_release::Target;
use bernstream_synopsis::description::{
    AxisDescription, Basis, Density, Description, NoiseDescription, NoiseDistribution, Smoothing,
    TargetDescription as Function,
};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::{Synopsis, SynopsisError, SynopsisReading};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

/// A law of records on the unit cube, so many of them, and cells to share them among.
struct Setting {
    law: Law,
    records: u32,
    bandwidth: f64,
    spline: Spline,
    steps: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    /// Three crowds of different widths.
    Crowds,
    /// Everywhere alike.
    Uniform,
    /// Most of them at the lower end.
    Exponential,
}

/// A window of one setting.
struct Window<'a> {
    setting: &'a Setting,
    records: Vec<Vec<f64>>,
}

impl Setting {
    fn window(&self, seed: u64) -> Window<'_> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut record = |i: u32| -> Vec<f64> {
            let mut coordinate = || match self.law {
                Law::Crowds => {
                    let (centre, width) = [(0.3, 0.05), (0.6, 0.15), (0.75, 0.08)][i as usize % 3];
                    centre + width * rng.sample::<f64, _>(StandardNormal)
                }
                Law::Uniform => rng.random(),
                Law::Exponential => 0.25 * rng.sample::<f64, _>(Exp1),
            };
            self.steps
                .iter()
                .map(|_| coordinate().clamp(0.0, 1.0))
                .collect()
        };
        let records = (0..self.records).map(&mut record).collect();
        Window {
            setting: self,
            records,
        }
    }

    fn points(&self) -> Vec<Vec<f64>> {
        let side = [60, 14, 8][self.steps.len() - 1];
        self.steps
            .iter()
            .fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
                let along = (0..=side).map(|i| f64::from(i) / f64::from(side));
                points
                    .iter()
                    .flat_map(|p| along.clone().map(move |y| [p.as_slice(), &[y]].concat()))
                    .collect()
            })
    }
}

impl Window<'_> {
    /// The kernel density itself, times the number of records.
    fn at(&self, y: &[f64]) -> f64 {
        let b = self.setting.bandwidth;
        let bump = |x: &Vec<f64>| {
            let square: f64 = x.iter().zip(y).map(|(x, y)| ((x - y) / b).powi(2)).sum();
            (-square / 2.0).exp() / (b * (2.0 * PI).sqrt()).powi(y.len() as i32)
        };
        self.records.iter().map(bump).sum()
    }

    /// With Laplace noise of `scale` records on each count, and `told` times that in the description.
    fn released(&self, scale: f64, told: f64, seed: u64) -> Synopsis {
        let Setting {
            bandwidth,
            spline,
            steps,
            ..
        } = self.setting;
        let target =
            CellDensity::diagonal(&vec![*bandwidth; steps.len()], *spline, steps).expect("cells");
        let spec = target.accumulator();
        let exact = target.evaluate(
            &spec.filled_accumulator(
                self.records
                    .iter()
                    .map(|x| spec.record(x, 0.0))
                    .collect::<Vec<_>>(),
            ),
        );
        // What a record on a node is in a value.
        let record = target.unit() * 2.0_f64.powi(32);
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut laplace = || rng.sample::<f64, _>(Exp1) * if rng.random() { scale } else { -scale };
        let values = exact
            .opened()
            .iter()
            .map(|count| *count as f64 * target.unit() + record * laplace())
            .collect();
        let example = bernstream_synopsis::EXAMPLE;
        let mut about: Description = serde_json::from_str(example).expect("the example");
        let axis = |i: usize| AxisDescription {
            column: format!("x{i}"),
            min: 0.0,
            max: 1.0,
        };
        about.domain = (0..steps.len()).map(axis).collect();
        about.basis = Basis::Cells(target.basis().clone());
        (about.degree, about.order) = (1, 1);
        let scale = scale * record * told;
        about.noise = NoiseDescription {
            law: NoiseDistribution::DiscreteLaplace,
            scale,
            grid: scale * 1e-10,
            calibrated: Default::default(),
        };
        let kernel = Smoothing::Bandwidths(vec![*bandwidth; steps.len()]);
        about.target = Function::Density(Density {
            kernel,
            divide_by: None,
        });
        Synopsis::new(about, values).expect("a synopsis")
    }

    /// The largest error over the domain, relative to the number of records.
    fn error(&self, synopsis: &Synopsis, by: SynopsisReading) -> f64 {
        let evaluator = synopsis.evaluator(by).expect("a reading");
        let error = |y: &Vec<f64>| (evaluator.evaluate(y).expect("a value") - self.at(y)).abs();
        self.setting.points().iter().map(error).fold(0.0, f64::max)
            / f64::from(self.setting.records)
    }
}

/// The mean errors as published, by the posterior, and without negative counts.
fn errors(setting: &Setting, scale: f64, told: f64, windows: u64) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for seed in 0..windows {
        let window = setting.window(seed);
        let synopsis = window.released(scale, told, seed + 10_000);
        for (sum, by) in sums.iter_mut().zip([
            SynopsisReading::Bernstein(1),
            SynopsisReading::Posterior,
            SynopsisReading::Nonnegative,
        ]) {
            *sum += window.error(&synopsis, by) / windows as f64;
        }
    }
    sums
}

fn line(law: Law) -> Setting {
    Setting {
        law,
        records: 2_000,
        bandwidth: 0.08,
        spline: Spline::Linear,
        steps: vec![14],
    }
}

fn plane(law: Law) -> Setting {
    Setting {
        law,
        records: 2_000,
        bandwidth: 0.15,
        spline: Spline::Quadratic,
        steps: vec![7, 7],
    }
}

#[test]
fn smoothed_counts_are_nearer_to_the_truth_where_noise_rules() {
    for (setting, scale, at_most) in [
        (line(Law::Crowds), 100.0, 0.9),
        (line(Law::Uniform), 100.0, 0.6),
        (line(Law::Exponential), 100.0, 0.95),
        (plane(Law::Crowds), 30.0, 0.8),
        (plane(Law::Uniform), 30.0, 0.5),
        (plane(Law::Exponential), 30.0, 0.95),
    ] {
        let [plain, posterior, nonnegative] = errors(&setting, scale, 1.0, 20);
        let what = format!(
            "{:?} {:?}: {plain:.3} {posterior:.3} {nonnegative:.3}",
            setting.law, setting.steps
        );
        println!("{what}");
        assert!(
            posterior < at_most * plain && nonnegative < at_most * plain,
            "{what}"
        );
        assert!(nonnegative < 1.02 * posterior, "{what}");
    }
}

#[test]
fn where_there_is_hardly_any_noise_all_readings_are_one() {
    for setting in [line(Law::Crowds), plane(Law::Exponential)] {
        let window = setting.window(1);
        let synopsis = window.released(1e-3, 1.0, 2);
        let plain = synopsis.evaluator(1).unwrap();
        for by in [SynopsisReading::Posterior, SynopsisReading::Nonnegative] {
            let smoothed = synopsis.evaluator(by).unwrap();
            for y in setting.points() {
                let a = plain.evaluate(&y).unwrap();
                let b = smoothed.evaluate(&y).unwrap();
                assert!(
                    (a - b).abs() < 1e-4 * f64::from(setting.records),
                    "{y:?}: {a} {b}"
                );
            }
        }
        // And what the form misses is small.
        assert!(window.error(&synopsis, SynopsisReading::Posterior) < 0.05);
    }
}

#[test]
fn a_scale_told_ten_times_too_small_loses_the_gain() {
    let [plain, right, _] = errors(&plane(Law::Crowds), 30.0, 1.0, 10);
    let [_, misled, _] = errors(&plane(Law::Crowds), 30.0, 0.1, 10);
    assert!(
        misled > 1.2 * right,
        "plain {plain}, right {right}, misled {misled}"
    );
}

/// As far as the prior is right: where noise hides nearly everything, crowds are covered in five windows of six.
#[test]
fn the_posterior_deviation_is_that_of_the_error() {
    for (setting, scale) in [(line(Law::Crowds), 15.0), (plane(Law::Crowds), 20.0)] {
        let mut inside = 0;
        let mut half = 0;
        let mut all = 0;
        for seed in 0..25 {
            let window = setting.window(seed);
            let evaluator = window
                .released(scale, 1.0, seed + 20_000)
                .evaluator(SynopsisReading::Posterior)
                .unwrap();
            for y in setting.points().iter().step_by(3) {
                let deviation = evaluator.deviation(y).unwrap().expect("a deviation");
                let error = (evaluator.evaluate(y).unwrap() - window.at(y)).abs();
                inside += u32::from(error <= 1.96 * deviation);
                half += u32::from(error <= 0.98 * deviation);
                all += 1;
            }
        }
        let [covered, in_half] = [inside, half].map(|count| f64::from(count) / f64::from(all));
        println!("{:?}: {covered} {in_half}", setting.steps);
        assert!(covered > 0.8 && in_half < 0.93, "{covered} {in_half}");
    }
}

#[test]
fn what_cells_cannot_be_read_by_is_refused() {
    let setting = line(Law::Uniform);
    let synopsis = setting.window(0).released(10.0, 1.0, 1);
    assert!(matches!(
        synopsis.evaluator(SynopsisReading::Nearest),
        Err(SynopsisError::Reading {
            by: SynopsisReading::Nearest
        })
    ));
    assert_eq!(
        synopsis
            .evaluator(SynopsisReading::Nonnegative)
            .unwrap()
            .deviation(&[0.5])
            .unwrap(),
        None
    );
    assert!(
        synopsis
            .evaluator(SynopsisReading::Nonnegative)
            .unwrap()
            .evaluate(&[0.99])
            .unwrap()
            >= 0.0
    );
    // The eigenvectors of so many nodes would take too long.
    let fine = Setting {
        steps: vec![600],
        bandwidth: 0.003,
        ..line(Law::Uniform)
    };
    let synopsis = fine.window(0).released(10.0, 1.0, 1);
    assert!(synopsis.evaluator(1).is_ok());
    assert!(matches!(
        synopsis.evaluator(SynopsisReading::Posterior),
        Err(SynopsisError::Reading { .. })
    ));
}
