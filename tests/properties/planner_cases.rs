//! Releases of every kind for `"auto"`, windows of records for them, and what real releases of these are off by.

use std::f64::consts::PI;
use std::sync::Arc;

use crate::harness::exact::Opened as _;
use bernstream_config::{Coordinates, NoiseCandidate, WorkerSettings};
use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_synopsis::Basis;
use bernstream_synopsis::bernstein::{Operator, bernstein_basis, evaluate_polynomial};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

const FLIGHTS: &str = include_str!("../data/lattice.toml");
/// So many draws of noise for all windows of a law together, and at least one for each.
const RELEASES: u32 = 256;

/// What is released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Density,
    /// Of two axes, correlated by 0.8.
    Covariance,
    Regression,
    /// With this loss, for a numeric label.
    Machine(&'static str),
    /// With this loss, for a class.
    Classifier(&'static str),
    /// The probability of a class.
    Logistic,
    KernelBayes,
    GaussianBayes,
}

impl Kind {
    /// Whether what is predicted is a bound: no records give a function as rough as is assumed.
    pub fn is_bounded(self) -> bool {
        matches!(
            self,
            Kind::Machine(_) | Kind::Classifier(_) | Kind::Logistic
        )
    }

    /// A sum over records, roughest where all of them are in one place.
    pub fn is_sum(self) -> bool {
        matches!(
            self,
            Kind::Density | Kind::Covariance | Kind::KernelBayes | Kind::GaussianBayes
        )
    }

    fn is_on_points(self) -> bool {
        matches!(
            self,
            Kind::Density | Kind::Covariance | Kind::Machine(_) | Kind::Classifier(_)
        )
    }

    /// The kinds of noise that it can have.
    pub fn noises(self, price: &str) -> Vec<&'static str> {
        let is_pure = !price.starts_with("rho");
        let mut noises = vec!["laplace", "cube"];
        noises.extend((!is_pure).then_some("gaussian"));
        noises.extend(self.is_on_points().then_some(if is_pure {
            "ball"
        } else {
            "gaussian_process"
        }));
        let is_density = matches!(self, Kind::Density | Kind::Covariance);
        noises.extend(is_density.then_some(if is_pure { "cells" } else { "gaussian_cells" }));
        noises
    }
}

/// How the records lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// All in one place, or all labels alternating: as rough as the prediction assumes.
    Rough,
    Heaped,
    Cluster,
    /// Half or more in a cluster like the kernel, from window to window more, the others anywhere: what a choice is made for.
    Ordinary,
    /// Temperature and humidity of a day, in whole degrees and per cent: stations and hours differ, and both depend on each other.
    Weather,
    Border,
    Mixture,
    Uniform,
}

pub const LAWS: [Law; 6] = [
    Law::Rough,
    Law::Heaped,
    Law::Cluster,
    Law::Border,
    Law::Mixture,
    Law::Uniform,
];

/// One release: axes of width 210, the bandwidth of each, records, price.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: Kind,
    pub axes: usize,
    pub bandwidth: f64,
    pub records: u64,
    pub price: &'static str,
}

/// A record: its place in the unit cube, and its label in [-1, 1].
pub type Row = (Vec<f64>, f64);

impl Case {
    /// With these lines for noise and size.
    pub fn settings(&self, size: &str) -> WorkerSettings {
        let axes: Vec<String> = (0..self.axes)
            .map(|i| format!("{{ column = \"x{i}\", min = -30, max = 180, outside = \"clamp\" }}"))
            .collect();
        let b = self.bandwidth;
        let label = "label = { column = \"y\", min = -1, max = 1, outside = \"clamp\" }\n";
        let class = "label = { column = \"y\", above = 0 }\n";
        let (label, function) = match self.kind {
            Kind::Density => (
                "",
                format!("[release.density]\nbandwidths = {:?}", vec![b; self.axes]),
            ),
            Kind::Covariance => (
                "",
                format!(
                    "[release.density]\ncovariance = [[{0}, {1}], [{1}, {0}]]",
                    b * b,
                    0.8 * b * b
                ),
            ),
            Kind::Regression => {
                let gap = 210.0 / self.records as f64;
                (
                    label,
                    format!(
                        "[release.regression]\nbandwidth = {b}\ngap = {gap}\nmax_records = {}",
                        self.records
                    ),
                )
            }
            Kind::Machine(loss) | Kind::Classifier(loss) => {
                let kernel = format!("kernel = {{ gaussian = {{ bandwidth = {} }} }}", b / 210.0);
                let label = if matches!(self.kind, Kind::Machine(_)) {
                    label
                } else {
                    class
                };
                (
                    label,
                    format!(
                        "[release.machine]\nloss = \"{loss}\"\n{kernel}\nc = 2\nmax_records = {}",
                        self.records
                    ),
                )
            }
            Kind::Logistic => (
                class,
                format!(
                    "[release.logistic]\nscore = \"sigmoid\"\nc = 2\nmax_records = {}",
                    self.records
                ),
            ),
            Kind::KernelBayes => (
                class,
                format!("[release.bayes]\nbandwidths = {:?}", vec![b; self.axes]),
            ),
            Kind::GaussianBayes => (
                class,
                format!("[release.bayes]\nmin_deviations = {:?}", vec![b; self.axes]),
            ),
        };
        let total = self.price.split(' ').next().unwrap();
        let text = FLIGHTS
            .replace(
                "epsilon = 1.0\n\n[release]",
                &format!("{total} = 1.0\n\n[release]"),
            )
            .replace(
                "epsilon = 1.0\ndegree = 40\norder = 4",
                &format!("{}\n{size}", self.price),
            )
            .replace(
                "domain = [{ column = \"dep_delay\", min = -30, max = 180, outside = \"clamp\" }]",
                &format!("{label}domain = [{}]", axes.join(", ")),
            )
            .replace("[release.density]\nbandwidths = [10]", &function);
        // The squared loss has no bound for a record more.
        let text = match self.kind {
            Kind::Machine("squared") => {
                let replaced = format!(
                    "{{ replace_one = {{ records_per_window = {} }} }}",
                    self.records
                );
                text.replace("\"add_remove\"", &replaced)
            }
            _ => text,
        };
        WorkerSettings::parse(&text, "test").unwrap()
    }

    pub fn auto(&self, noise: &str) -> WorkerSettings {
        let size = match noise {
            "auto" | "cells" | "gaussian_cells" => "",
            "ball" | "gaussian_process" => "\npoints = \"auto\"",
            _ => "\ndegree = \"auto\"\norder = \"auto\"",
        };
        self.settings(&format!(
            "noise = \"{noise}\"{size}\nexpected_records = {}",
            self.records
        ))
    }

    /// What the candidate itself would be, were it asked for.
    pub fn fixed(&self, candidate: &NoiseCandidate) -> WorkerSettings {
        let size = match candidate.on {
            Coordinates::Lattice { degree } => {
                format!("degree = {degree}\norder = {}", candidate.order)
            }
            Coordinates::Points { most } => format!("points = {most}"),
            Coordinates::Cells(grid) => {
                let step: Vec<f64> = grid.steps().iter().map(|m| 210.0 / f64::from(*m)).collect();
                format!("spline = \"{}\"\nstep = {step:?}", grid.spline)
            }
            Coordinates::Tensor(counts) => format!("points = {:?}", counts.along()),
        };
        self.settings(&format!("noise = \"{}\"\n{size}", candidate.noise))
    }

    /// The `number`th of `windows`.
    pub fn window(&self, law: Law, number: u32, windows: u32) -> Vec<Row> {
        let mut rng = ChaCha12Rng::seed_from_u64(u64::from(number));
        let width = self.bandwidth / 210.0;
        let mut at = || -> Vec<f64> { (0..self.axes).map(|_| rng.random()).collect() };
        let places = [at(), at(), at()];
        // An eighth at either end, as is assumed.
        let heap: Vec<f64> = places[0]
            .iter()
            .map(|x| (x * 4.0 / 3.0 - 1.0 / 6.0).clamp(0.0, 1.0))
            .collect();
        let phase: f64 = rng.random();
        let part = 0.5 + (f64::from(number) + 0.5) / f64::from(2 * windows);
        // Of every two neighbours one is where the sign of labels changes.
        let mut changes = vec![-2.0 * width * phase];
        while *changes.last().unwrap() < self.axes as f64 {
            changes.push(changes.last().unwrap() + width * (2.0 + 4.0 * rng.random::<f64>()));
        }
        let mut row = |number: u64| -> Row {
            let which = match rng.random::<f64>() {
                u if u < 0.5 => 0,
                u if u < 0.8 => 1,
                _ => 2,
            };
            let is_in_cluster = rng.random::<f64>() < part;
            let mut normal = || rng.sample::<f64, _>(StandardNormal);
            let place: Vec<f64> = match law {
                Law::Rough if self.kind.is_sum() => heap.clone(),
                Law::Rough if self.kind == Kind::Regression => {
                    vec![(number as f64 + 0.5) / self.records as f64]
                }
                Law::Heaped => places[which].clone(),
                Law::Cluster => places[0]
                    .iter()
                    .map(|c| c + 0.3 * width * normal())
                    .collect(),
                Law::Ordinary if is_in_cluster && self.kind == Kind::Covariance => {
                    let u = normal();
                    let v = normal();
                    vec![
                        places[0][0] + width * u,
                        places[0][1] + width * (0.8 * u + 0.6 * v),
                    ]
                }
                Law::Ordinary if is_in_cluster => {
                    places[0].iter().map(|c| c + width * normal()).collect()
                }
                Law::Border => places[0]
                    .iter()
                    .map(|_| 0.5 * width * normal().abs())
                    .collect(),
                Law::Mixture => {
                    let (centre, deviation) = if which == 1 { (0.3, 0.05) } else { (0.65, 0.1) };
                    places[0]
                        .iter()
                        .map(|_| centre + deviation * normal())
                        .collect()
                }
                Law::Weather => {
                    let station = places[which][0] - 0.5;
                    let day = (2.0 * PI * number as f64 / self.records as f64).sin();
                    let degrees =
                        8.0 + 24.0 * (phase - 0.5) + 6.0 * station + 5.0 * day + 1.5 * normal();
                    let humidity = 70.0 - 40.0 * station - 3.0 * (5.0 * day) + 8.0 * normal();
                    vec![(degrees.round() + 30.0) / 80.0, humidity.round() / 100.0]
                }
                Law::Rough | Law::Ordinary | Law::Uniform => {
                    places[0].iter().map(|_| rng.random()).collect()
                }
            };
            let along: f64 = place.iter().sum();
            let label = match (law, self.kind) {
                (Law::Rough, kind) if kind.is_sum() => 1.0,
                (Law::Rough, _) => {
                    let passed = changes.iter().take_while(|change| **change < along).count();
                    if passed % 2 == 0 { 1.0 } else { -1.0 }
                }
                // One wave for the domain.
                _ => (2.0 * PI * (along + phase)).sin(),
            };
            let is_class = !matches!(self.kind, Kind::Regression | Kind::Machine(_));
            (place, if is_class { label.signum() } else { label })
        };
        let rows: Vec<Row> = (0..self.records).map(&mut row).collect();
        // Where a cluster reaches beyond the domain it loses records; all others are moved to the border.
        let is_inside =
            |row: &Row| law != Law::Ordinary || row.0.iter().all(|x| (0.0..=1.0).contains(x));
        let clamped = |(place, label): Row| {
            (
                place.into_iter().map(|x| x.clamp(0.0, 1.0)).collect(),
                label,
            )
        };
        rows.into_iter().filter(is_inside).map(clamped).collect()
    }

    /// Steps of an axis between the places that are looked at.
    pub fn steps(&self) -> u32 {
        [400, 40, 12][self.axes - 1]
    }

    pub fn places(&self) -> Vec<Vec<f64>> {
        let along: Vec<f64> = (0..=self.steps())
            .map(|i| f64::from(i) / f64::from(self.steps()))
            .collect();
        (0..self.axes).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
            points
                .iter()
                .flat_map(|p| along.iter().map(move |y| [p.as_slice(), &[*y]].concat()))
                .collect()
        })
    }
}

/// The largest errors of releases: the mean of the noise alone, and of both; and of both over the eighth of windows whose
/// functions the form follows least; and those of both themselves.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub noise: f64,
    pub error: f64,
    pub worst: f64,
    pub all: Vec<f64>,
}

impl Found {
    /// The part of the releases that stay within.
    pub fn inside(&self, within: f64) -> f64 {
        self.all.iter().filter(|error| **error <= within).count() as f64 / self.all.len() as f64
    }
}

pub fn sup(values: &[f64], exact: &[f64]) -> f64 {
    values
        .iter()
        .zip(exact)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Noisy values as a function, at every place: for lattices at each of `orders`.
struct Curves {
    settings: WorkerSettings,
    orders: Vec<u32>,
    /// Basis functions at the places, one list a place and axis; or the kernel functions.
    bases: Vec<Vec<Vec<f64>>>,
}

impl Curves {
    fn new(settings: WorkerSettings, orders: &[u32], places: &[Vec<f64>]) -> Self {
        let shape = settings.releases[0].shape();
        let at = |y: &Vec<f64>| -> Vec<Vec<f64>> {
            match &shape.basis {
                Basis::Kernel(kernel) => vec![
                    kernel
                        .points
                        .iter()
                        .map(|p| kernel.kernel.value(y, p))
                        .collect(),
                ],
                Basis::Cells(cells) => vec![cells.kernel_values(y)],
                _ => y
                    .iter()
                    .map(|x| bernstein_basis(shape.degree, *x))
                    .collect(),
            }
        };
        let bases = places.iter().map(at).collect();
        Curves {
            settings,
            orders: orders.to_vec(),
            bases,
        }
    }

    fn at(&self, values: &[i128]) -> Vec<Vec<f64>> {
        let function = &self.settings.releases[0].function;
        let shape = self.settings.releases[0].shape();
        let natural = function.target.publish(
            values
                .iter()
                .map(|v| *v as f64 * function.grid_unit())
                .collect(),
        );
        let curve = |order: &u32| -> Vec<f64> {
            let coefficients = match shape.basis {
                Basis::Kernel(_) | Basis::Cells(_) => natural.clone(),
                _ => Operator::new(shape.dimensions, shape.degree).coefficients(&natural, *order),
            };
            self.bases
                .iter()
                .map(|bases| evaluate_polynomial(&coefficients, bases))
                .collect()
        };
        self.orders.iter().map(curve).collect()
    }
}

/// Real releases of `windows` windows, evaluated at each of `orders`. The exact function is a lattice of its values.
pub fn found(
    case: Case,
    law: Law,
    settings: WorkerSettings,
    orders: &[u32],
    windows: u32,
) -> Vec<Found> {
    let places = case.places();
    let fine = case
        .settings(&format!("degree = {}\norder = 1", case.steps()))
        .releases
        .remove(0)
        .function;
    let target = settings.releases[0].function.target.clone();
    let mechanism = mechanism(&settings);
    let curves = Curves::new(settings, orders, &places);
    let zero = vec![0.0; places.len()];
    let releases = (RELEASES / windows).max(1);
    // Form, noise, both.
    let mut all: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); orders.len()];
    for number in 0..windows {
        let records = case.window(law, number, windows);
        let filled = |target: &Arc<dyn Target>| {
            let spec = target.accumulator();
            target.evaluate(
                &spec.filled_accumulator(records.iter().map(|(x, label)| spec.record(x, *label))),
            )
        };
        let exact: Vec<f64> = filled(&fine.target)
            .opened()
            .iter()
            .map(|v| *v as f64 * fine.grid_unit())
            .collect();
        let truth = filled(&target);
        let form = curves.at(&truth.opened());
        let mut generator = Generator::frozen([number as u8; 32]);
        for _ in 0..releases {
            let noisy = mechanism.release_noisy(&truth, &mut generator);
            let noise: Vec<i128> = noisy
                .values()
                .iter()
                .zip(&truth.opened())
                .map(|(a, b)| a - b)
                .collect();
            let noise = curves.at(&noise);
            let both = curves.at(noisy.values());
            for (order, all) in all.iter_mut().enumerate() {
                all.push((
                    sup(&form[order], &exact),
                    sup(&noise[order], &zero),
                    sup(&both[order], &exact),
                ));
            }
        }
    }
    let summed = |mut all: Vec<(f64, f64, f64)>| {
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mean = |of: fn(&(f64, f64, f64)) -> f64, count: usize| {
            all.iter().take(count).map(of).sum::<f64>() / count as f64
        };
        let worst = windows.div_ceil(8) * releases;
        let noise = mean(|w| w.1, all.len());
        let error = mean(|w| w.2, all.len());
        Found {
            noise,
            error,
            worst: mean(|w| w.2, worst as usize),
            all: all.iter().map(|w| w.2).collect(),
        }
    };
    all.into_iter().map(summed).collect()
}

/// The mechanism of the only release.
pub fn mechanism(settings: &WorkerSettings) -> Mechanism {
    let release = &settings.releases[0];
    settings.mechanism_of(release, &release.function).unwrap()
}

pub const fn density(axes: usize, bandwidth: f64, records: u64, price: &'static str) -> Case {
    Case {
        kind: Kind::Density,
        axes,
        bandwidth,
        records,
        price,
    }
}
