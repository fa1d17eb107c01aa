//! Lines, naive Bayes and ratios of densities, read from noisy tables of classes: whether they are what they say without noise, and
//! whether their intervals hold with it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::harness::exact::Opened as _;
use bernstream_functions::tables::CellTables;
use bernstream_release::Target;
use bernstream_release::window::accumulator::TableLabel;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{
    AxisDescription, CellLabel, Cells, Description, NoiseBand, NoiseDescription,
    TargetDescription as Function,
};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::tables::{ConfidenceInterval, KernelFit, PointEstimate, TableKernel};
use bernstream_synopsis::{Synopsis, SynopsisError};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

const LAWS: [NoiseDistribution; 2] = [
    NoiseDistribution::DiscreteLaplace,
    NoiseDistribution::DiscreteGaussian,
];

/// Records of three classes on the unit cube, noise of this scale in records, and a grid.
#[derive(Clone, Copy)]
struct Setting {
    law: Law,
    records: u32,
    axes: usize,
    steps: u32,
    bandwidth: f64,
    scale: f64,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    /// Each class around a place of its own, its axes independent.
    Crowds,
    /// Evenly spread; the first class below the middle of the first axis, the second above it, and a few of the third.
    Step,
}

impl Setting {
    /// A place and a class.
    fn rows(&self) -> Vec<(Vec<f64>, u32)> {
        let mut rng = ChaCha12Rng::seed_from_u64(17);
        let mut row = |_| match self.law {
            Law::Crowds => {
                let class = [0, 0, 0, 1, 1, 2][rng.random_range(0..6)];
                let centre =
                    |axis: usize| 0.5 + 0.25 * (2.1 * f64::from(class) + 1.3 * axis as f64).cos();
                let mut at = |axis| {
                    (centre(axis) + 0.15 * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 1.0)
                };
                ((0..self.axes).map(&mut at).collect(), class)
            }
            Law::Step => {
                let at: Vec<f64> = (0..self.axes).map(|_| rng.random()).collect();
                let class = if rng.random_bool(0.05) {
                    2
                } else {
                    u32::from(at[0] > 0.5)
                };
                (at, class)
            }
        };
        (0..self.records).map(&mut row).collect()
    }

    fn target(&self) -> CellTables {
        let bandwidths = vec![self.bandwidth; self.axes];
        let steps = vec![self.steps; self.axes];
        CellTables::new(
            &bandwidths,
            Spline::Linear,
            &steps,
            Some(TableLabel::Classes(3)),
        )
        .expect("tables")
    }

    /// The exact tables.
    fn counts(&self) -> Vec<f64> {
        let target = self.target();
        let spec = target.accumulator();
        let records = self
            .rows()
            .into_iter()
            .map(|(x, class)| spec.record(&x, f64::from(class)))
            .collect::<Vec<_>>();
        target
            .evaluate(&spec.filled_accumulator(records))
            .opened()
            .iter()
            .map(|value| *value as f64 * target.unit())
            .collect()
    }

    fn description(&self, law: NoiseDistribution) -> Description {
        let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        about.domain = (0..self.axes)
            .map(|i| AxisDescription {
                column: format!("x{i}"),
                min: 0.0,
                max: 1.0,
            })
            .collect();
        (about.degree, about.order, about.basis) = (1, 1, self.target().shape().basis);
        let label = CellLabel::Classes {
            column: "y".to_owned(),
            values: vec![1.0, 2.0, 3.0],
        };
        about.target = Function::Cells(Cells { label: Some(label) });
        about.noise = NoiseDescription {
            law,
            scale: self.scale,
            grid: 1e-9,
            calibrated: Default::default(),
        };
        about.band = band(self, law).scaled_to_noise(&about.noise);
        about
    }

    /// Without noise, and with intervals that are the value itself before it is clipped and drawn to that of all records.
    fn exact(&self, law: NoiseDistribution) -> Synopsis {
        let about = self.description(law);
        let band = NoiseBand {
            half_width: 1e-9,
            pointwise: Some(1e-9),
            ..about.band.clone()
        };
        Synopsis::new(Description { band, ..about }, self.counts()).unwrap()
    }

    /// With noise that is `times` what is told.
    fn noisy(&self, counts: &[f64], law: NoiseDistribution, times: f64, release: u64) -> Synopsis {
        let mut rng = ChaCha12Rng::seed_from_u64(1_000 + release);
        let mut draw = || match law {
            NoiseDistribution::DiscreteLaplace => {
                rng.sample::<f64, _>(Exp1) * if rng.random() { 1.0 } else { -1.0 }
            }
            _ => rng.sample::<f64, _>(StandardNormal),
        };
        let values = counts
            .iter()
            .map(|count| count + times * self.scale * draw())
            .collect();
        Synopsis::new(self.description(law), values).unwrap()
    }

    /// All over the cube, or beside the step.
    fn points(&self) -> Vec<Vec<f64>> {
        let side = [19, 5, 3][self.axes - 1];
        (0..self.axes).fold(vec![vec![]], |points: Vec<Vec<f64>>, axis| {
            let (low, high) = if matches!(self.law, Law::Step) && axis == 0 {
                (0.44, 0.56)
            } else {
                (0.0, 1.0)
            };
            let along = (0..=side).map(|i| low + (high - low) * f64::from(i) / f64::from(side));
            points
                .iter()
                .flat_map(|p| along.clone().map(move |y| [p.as_slice(), &[y]].concat()))
                .collect()
        })
    }
}

thread_local! {
    static BANDS: RefCell<HashMap<(NoiseDistribution, usize, u32), Band>> = RefCell::default();
}

fn band(of: &Setting, law: NoiseDistribution) -> Band {
    let simulate = || Band::simulate(&of.target().shape(), law, 1);
    BANDS.with(|bands| {
        bands
            .borrow_mut()
            .entry((law, of.axes, of.steps))
            .or_insert_with(simulate)
            .clone()
    })
}

/// What is read of every class, or of the second and third beside the first.
#[derive(Clone, Copy, Debug)]
enum Read {
    Classes(KernelFit),
    Ratio,
}

fn read(kernel: &TableKernel<'_>, point: &[f64], what: Read) -> Vec<PointEstimate> {
    match what {
        Read::Classes(fit) => (0..3)
            .map(|table| kernel.probability(point, table, fit).unwrap())
            .collect(),
        Read::Ratio => (1..3)
            .map(|of| kernel.density_ratio(point, of, 0).unwrap())
            .collect(),
    }
}

/// In which part of the releases intervals hold what is read without noise.
#[derive(Debug)]
struct Coverage {
    /// At the place and of the class where it is the smallest, and on average.
    least: f64,
    mean: f64,
    /// Of the class where it is the smallest, everywhere and at two bandwidths.
    everywhere: f64,
    /// Of the pointwise intervals.
    unknown: f64,
}

fn coverage(of: &Setting, law: NoiseDistribution, what: Read, times: f64) -> Coverage {
    const RELEASES: u64 = 300;
    let points = of.points();
    let counts = of.counts();
    let exact = of.exact(law);
    let exact = exact.tables().unwrap();
    let wide = vec![1.5 * of.bandwidth; of.axes];
    let truth = |bandwidths: Option<&[f64]>| -> Vec<Vec<f64>> {
        let kernel = exact.kernel(bandwidths).unwrap();
        let at = |point: &Vec<f64>| {
            read(&kernel, point, what)
                .iter()
                .map(|r| r.pointwise.unwrap().lower)
                .collect()
        };
        points.iter().map(at).collect()
    };
    let truths = [truth(None), truth(Some(&wide))];
    let classes = truths[0][0].len();
    let mut held = vec![vec![0.0; classes]; points.len()];
    let mut all = vec![0.0; classes];
    let mut unknown = 0.0;
    for release in 0..RELEASES {
        let noisy = of.noisy(&counts, law, times, release);
        let noisy = noisy.tables().unwrap();
        let mut everywhere = vec![true; classes];
        for (bandwidths, truth) in [None, Some(&wide[..])].into_iter().zip(&truths) {
            let kernel = noisy.kernel(bandwidths).unwrap();
            for (place, point) in points.iter().enumerate() {
                for (class, found) in read(&kernel, point, what).iter().enumerate() {
                    everywhere[class] &= holds(found.simultaneous, truth[place][class]);
                    if bandwidths.is_none() {
                        held[place][class] +=
                            f64::from(u8::from(holds(found.pointwise, truth[place][class])));
                        unknown += f64::from(u8::from(found.pointwise.is_none()));
                    }
                }
            }
        }
        all.iter_mut()
            .zip(everywhere)
            .for_each(|(sum, held)| *sum += f64::from(u8::from(held)));
    }
    let releases = RELEASES as f64;
    let each = || held.iter().flatten().map(|held| held / releases);
    let number = (points.len() * classes) as f64;
    Coverage {
        least: each().fold(1.0, f64::min),
        mean: each().sum::<f64>() / number,
        everywhere: all
            .iter()
            .fold(1.0_f64, |least, held| least.min(held / releases)),
        unknown: unknown / number / releases,
    }
}

fn holds(interval: Option<ConfidenceInterval>, value: f64) -> bool {
    // What is unknown is not excluded.
    interval.is_none_or(|ConfidenceInterval { lower, upper }| {
        (lower - 1e-7..=upper + 1e-7).contains(&value)
    })
}

fn crowds(axes: usize) -> Setting {
    let (steps, bandwidth) = [(14, 0.1), (7, 0.18), (4, 0.3)][axes - 1];
    Setting {
        law: Law::Crowds,
        records: 4_000,
        axes,
        steps,
        bandwidth,
        scale: 1.0,
    }
}

fn poor(axes: usize) -> Setting {
    Setting {
        records: 1_000,
        scale: 2.5,
        ..crowds(axes)
    }
}

fn step(axes: usize) -> Setting {
    Setting {
        law: Law::Step,
        records: 3_000,
        ..crowds(axes)
    }
}

fn check(of: &Setting, law: NoiseDistribution, what: Read) {
    let found = coverage(of, law, what, 1.0);
    println!(
        "{:?} of {} on {}, {law:?}, {what:?}: {found:.3?}",
        of.law, of.records, of.axes
    );
    // A share of 300 releases is known to 1.3 in 100; the least is one of many.
    assert!(
        found.least > 0.89 && found.mean > 0.94 && found.everywhere > 0.93,
        "{law:?} {what:?} {found:?}"
    );
    assert!(found.unknown < 0.6, "{law:?} {what:?} {found:?}");
}

/// With noise half as large again as is told, far fewer hold.
fn is_found_out(of: &Setting, what: Read) {
    let misled = coverage(of, NoiseDistribution::DiscreteGaussian, what, 1.5);
    println!("{what:?} with larger noise: {misled:.3?}");
    assert!(
        misled.mean < 0.9 && misled.least < 0.85,
        "{what:?} {misled:?}"
    );
}

#[test]
fn the_interval_of_a_line_holds_beside_a_step() {
    for of in [step(1), step(2), crowds(2), poor(1)] {
        for law in LAWS {
            check(&of, law, Read::Classes(KernelFit::Linear));
        }
    }
    is_found_out(&step(1), Read::Classes(KernelFit::Linear));
}

#[test]
fn the_interval_of_naive_bayes_holds() {
    for of in [crowds(2), poor(2), crowds(3)] {
        for law in LAWS {
            check(&of, law, Read::Classes(KernelFit::Naive));
        }
    }
    is_found_out(&crowds(2), Read::Classes(KernelFit::Naive));
}

#[test]
fn the_interval_of_a_ratio_of_densities_holds() {
    for of in [crowds(1), crowds(2), poor(1)] {
        for law in LAWS {
            check(&of, law, Read::Ratio);
        }
    }
    is_found_out(&crowds(1), Read::Ratio);
}

#[test]
fn on_one_axis_naive_bayes_is_a_local_mean() {
    let of = poor(1);
    let noisy = of.noisy(&of.counts(), LAWS[0], 1.0, 3);
    let tables = noisy.tables().unwrap();
    let kernel = tables.kernel(None).unwrap();
    for point in of.points() {
        for table in 0..3 {
            let read = |fit| kernel.probability(&point, table, fit).unwrap();
            assert_eq!(
                format!("{:.9?}", read(KernelFit::Naive)),
                format!("{:.9?}", read(KernelFit::Constant))
            );
        }
        assert_eq!(
            kernel
                .most_probable_class(&point, KernelFit::Naive)
                .unwrap()
                .table,
            kernel
                .most_probable_class(&point, KernelFit::Constant)
                .unwrap()
                .table
        );
    }
}

/// Where the axes of each class are independent, naive Bayes is right, and nearer to the truth under noise than a mean.
#[test]
fn naive_bayes_is_what_the_classes_own_densities_say() {
    let of = Setting {
        records: 300_000,
        ..crowds(2)
    };
    let exact = of.exact(LAWS[0]);
    let exact = exact.tables().unwrap();
    let of_mean = exact.kernel(None).unwrap();
    let mut rough = [0.0; 2];
    let few = poor(2);
    let noisy: Vec<Synopsis> = (0..30)
        .map(|release| few.noisy(&few.counts(), LAWS[0], 1.0, release))
        .collect();
    for point in of.points() {
        for table in 0..3 {
            let [naive, mean] = [KernelFit::Naive, KernelFit::Constant]
                .map(|fit| of_mean.probability(&point, table, fit).unwrap().value);
            let dense = of_mean.density(&point).unwrap().value > 0.02 * f64::from(of.records);
            assert!(
                !dense || (naive - mean).abs() < 0.05,
                "{point:?} {table}: {naive} {mean}"
            );
            for release in &noisy {
                for (sum, fit) in rough
                    .iter_mut()
                    .zip([KernelFit::Naive, KernelFit::Constant])
                {
                    let tables = release.tables().unwrap();
                    *sum += (tables
                        .kernel(None)
                        .unwrap()
                        .probability(&point, table, fit)
                        .unwrap()
                        .value
                        - mean)
                        .abs();
                }
            }
        }
    }
    println!(
        "sum of errors: naive {:.1}, constant {:.1}",
        rough[0], rough[1]
    );
    assert!(rough[0] < 0.95 * rough[1], "{rough:?}");
}

#[test]
fn a_ratio_of_densities_is_that_of_the_records_and_its_inverse_the_other_way_round() {
    let of = Setting {
        records: 50_000,
        ..crowds(1)
    };
    let noisy = of.noisy(&of.counts(), LAWS[0], 1.0, 1);
    let tables = noisy.tables().unwrap();
    let kernel = tables.kernel(None).unwrap();
    let rows = of.rows();
    let density = |class: u32, at: f64| {
        let of_class: Vec<f64> = rows
            .iter()
            .filter(|(_, c)| *c == class)
            .map(|(x, _)| x[0])
            .collect();
        of_class
            .iter()
            .map(|x| (-((x - at) / of.bandwidth).powi(2) / 2.0).exp())
            .sum::<f64>()
            / of_class.len() as f64
    };
    for at in [0.2, 0.45, 0.7] {
        let read = |of, over| kernel.density_ratio(&[at], of, over).unwrap();
        let ratio = read(1, 0);
        let inverse = read(0, 1);
        let truth = density(1, at) / density(0, at);
        assert!(
            (ratio.value / truth - 1.0).abs() < 0.03,
            "{at}: {ratio:?}, not {truth}"
        );
        let found = ratio.pointwise.unwrap();
        let turned = inverse.pointwise.unwrap();
        assert!(
            (ratio.value * inverse.value - 1.0).abs() < 1e-9
                && (found.lower * turned.upper - 1.0).abs() < 1e-9
        );
        assert!(ratio.simultaneous.unwrap().upper > found.upper && found.lower < ratio.value);
    }
    assert!(matches!(
        kernel.density_ratio(&[0.5], 1, 1),
        Err(SynopsisError::OneClass)
    ));
    assert!(matches!(
        kernel.density_ratio(&[0.5], 1, 3),
        Err(SynopsisError::NoSuchTable { .. })
    ));
}

/// A class that may have no records has no density.
#[test]
fn what_a_class_without_records_would_divide_by_is_unknown() {
    let of = crowds(2);
    let mut counts = of.counts();
    let third = counts.len() / 3;
    counts[2 * third..].fill(0.0);
    let noisy = of.noisy(&counts, LAWS[0], 1.0, 4);
    let tables = noisy.tables().unwrap();
    let kernel = tables.kernel(None).unwrap();
    let point = [0.6, 0.5];
    let ratio = |of, over| kernel.density_ratio(&point, of, over).unwrap().pointwise;
    assert!(ratio(0, 1).is_some() && ratio(0, 2).is_none() && ratio(2, 0).is_none());
    assert!(
        kernel
            .probability(&point, 0, KernelFit::Naive)
            .unwrap()
            .pointwise
            .is_none()
    );
    assert!(
        kernel
            .probability(&point, 0, KernelFit::Constant)
            .unwrap()
            .pointwise
            .is_some()
    );
    assert!(
        kernel
            .most_probable_class(&point, KernelFit::Naive)
            .unwrap()
            .is_too_close
    );
}
