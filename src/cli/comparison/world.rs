//! Public records to compare on: drawn from a law, or the rows of a file that is public.

use std::path::Path;
use std::time::Duration;

use arrow_array::{Array, Float64Array};
use rand::rngs::ChaCha12Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::StandardNormal;

use crate::cli::failure::Failure;
use bernstream_config::{Release, Settings};
use bernstream_kafka::source::files::{Files, Params};
use bernstream_kafka::source::record::Declared;
use bernstream_kafka::source::{Event, Source};
use bernstream_release::source::Columns;
use bernstream_release::window::Label;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::machine::Kernel;
use bernstream_synopsis::rough::{Kind, Sum, WorstCaseFunctions};

/// How wide the bends of a curve are, as parts of an axis: a law each.
pub const BENDS: [f64; 4] = [0.5, 0.3, 0.2, 0.1];
/// How wide the cluster of places is.
const CLUSTER: f64 = 0.15;
/// How far the expected label is from its middle at most, and how far a label is from what is expected, as parts of half its range.
const HEIGHT: f64 = 0.6;
const SCATTER: f64 = 0.35;
/// How far the logarithms of two probabilities are apart at most.
const ODDS: f64 = 2.0;
/// Where a reading is judged.
const PLACES: usize = 200;
const ROWS: usize = 1000;
/// Of the laws, which are public: every comparison draws the same records.
const SEED: u64 = 0x636f_6d70_6172_6500;

/// Records, and what readings are judged by.
pub struct World {
    /// Places in the unit cube, each with its label as [`AccumulatorSpec::record`] takes it.
    records: Vec<(Vec<f64>, f64)>,
    /// Places in natural units.
    pub judged: Vec<(Vec<f64>, Truth)>,
}

/// What is true at a place.
pub enum Truth {
    /// The expected label, or that of a record.
    Number(f64),
    /// The probability of each class, or certainty of that of a record.
    Classes(Vec<f64>),
}

impl World {
    /// What a window keeps of the records.
    pub fn accumulated(&self, spec: &AccumulatorSpec) -> Accumulator {
        let most = match spec {
            AccumulatorSpec::Records { most } => *most as usize,
            _ => usize::MAX,
        };
        spec.filled(
            self.records
                .iter()
                .take(most)
                .map(|(x, label)| spec.record(x, *label)),
        )
    }

    /// So many records of the law of this number, and the law itself at places of records.
    pub fn drawn(release: &Release, label: &Label, records: u64, number: usize) -> World {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(number as u64);
        let law = Law::new(release, label, number, &mut rng);
        let records = (0..records).map(|_| law.record(&mut rng)).collect();
        let judged = (0..PLACES)
            .map(|_| {
                let y = law.place(&mut rng);
                let truth = law.truth(&y, label);
                (natural(release, &y), truth)
            })
            .collect();
        World { records, judged }
    }

    /// So many records of one half of the rows, drawn with repetition, and some of the other half to judge by.
    pub fn resampled(
        release: &Release,
        label: &Label,
        rows: &[Row],
        records: u64,
        number: usize,
    ) -> World {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(number as u64);
        // Rows of a file are in some order: halves take turns.
        let half = |odd: usize| rows.iter().skip(odd).step_by(2).collect::<Vec<&Row>>();
        let given = half(0);
        let held_out = half(1);
        let mut any = |of: &[&Row]| {
            of.get(rng.random_range(0..of.len().max(1)))
                .map(|row| (row.x.clone(), row.label))
        };
        let records = (0..records).filter_map(|_| any(&given)).collect();
        let judge = |(x, kept): (Vec<f64>, f64)| {
            let truth = match label {
                Label::Number(bounds) => {
                    Truth::Number(bounds.min + (bounds.max - bounds.min) * (kept + 1.0) / 2.0)
                }
                Label::Above(_) => Truth::Classes(if kept > 0.0 {
                    vec![0.0, 1.0]
                } else {
                    vec![1.0, 0.0]
                }),
                Label::Classes(values) => Truth::Classes(
                    (0..values.len())
                        .map(|class| f64::from(u8::from(class as f64 == kept)))
                        .collect(),
                ),
            };
            (natural(release, &x), truth)
        };
        let judged = (0..ROWS)
            .filter_map(|_| any(&held_out))
            .map(judge)
            .collect();
        World { records, judged }
    }
}

/// A row of a public file, as a window keeps it.
pub struct Row {
    x: Vec<f64>,
    label: f64,
}

/// The rows of a public file, or of a folder of them, that a window of the release would keep, whatever their time and key.
///
/// # Errors
///
/// If it cannot be read, lacks a column, or has too few rows to tell anything.
pub fn rows(
    path: &Path,
    settings: &Settings,
    release: &Release,
    label: &Label,
) -> Result<Vec<Row>, Failure> {
    let unavailable =
        |error: bernstream_kafka::source::Error| Failure::Unavailable(error.to_string());
    let columns = Columns {
        key: None,
        unit: None,
        values: release.columns.clone(),
        ..settings.columns.clone()
    };
    let params = Params {
        path: path.to_owned(),
        declared: Declared::default(),
    };
    let mut files = Files::open(&params, columns).map_err(unavailable)?;
    let mut rows = Vec::new();
    while let Event::Batch(batch) = files.next(None, Duration::ZERO).map_err(unavailable)? {
        for at in 0..batch.times.len() {
            let number = |column: &Float64Array| {
                (column.is_valid(at) && !column.value(at).is_nan()).then(|| column.value(at))
            };
            let mut values = batch.values.iter().map(number);
            let axes = release.axes.iter().map(|axis| axis.unit(values.next()??));
            let Some(x) = axes.collect::<Option<Vec<f64>>>() else {
                continue;
            };
            if let Some(label) = values.next().flatten().and_then(|value| label.of(value)) {
                rows.push(Row { x, label });
            }
        }
    }
    if rows.len() < 2 * PLACES {
        let what = format!(
            "{} has {} complete rows in the domain of {:?}: a comparison needs {} or more",
            path.display(),
            rows.len(),
            release.name,
            2 * PLACES
        );
        return Err(Failure::Configuration(what));
    }
    Ok(rows)
}

/// A law of places and labels, which resembles no records in particular.
struct Law {
    centre: Vec<f64>,
    /// One for a number; for classes the logarithm of how probable each is.
    curves: Vec<Sum>,
    is_number: bool,
}

impl Law {
    fn new(release: &Release, label: &Label, number: usize, rng: &mut ChaCha12Rng) -> Law {
        let axes = release.axes.len();
        let (count, height) = match label {
            Label::Number(_) => (1, HEIGHT),
            Label::Above(_) => (1, ODDS),
            Label::Classes(values) => (values.len(), ODDS / 2.0),
        };
        let bandwidth = BENDS.get(number % BENDS.len()).copied().unwrap_or(1.0);
        let rough = WorstCaseFunctions {
            kernel: PointKernel::Machine(Kernel::Gaussian { bandwidth }),
            axes,
            is: Kind::Bounded(height),
        };
        let curves = rough
            .functions(&grid(axes))
            .into_iter()
            .skip(number)
            .step_by(7)
            .take(count)
            .collect();
        let centre = (0..axes)
            .map(|_| 0.25 + 0.5 * rng.random::<f64>())
            .collect();
        Law {
            centre,
            curves,
            is_number: matches!(label, Label::Number(_)),
        }
    }

    /// Half of the places are in a cluster, the others anywhere.
    fn place<R: Rng>(&self, rng: &mut R) -> Vec<f64> {
        let is_clustered = rng.random::<bool>();
        let along = |centre: &f64| match is_clustered {
            true => (centre + CLUSTER * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 1.0),
            false => rng.random(),
        };
        self.centre.iter().map(along).collect()
    }

    fn record<R: Rng>(&self, rng: &mut R) -> (Vec<f64>, f64) {
        let y = self.place(rng);
        if self.is_number {
            let scatter = SCATTER * (2.0 * rng.random::<f64>() - 1.0);
            return (y.clone(), self.curve(0, &y) + scatter);
        }
        let probabilities = self.probabilities(&y);
        let mut left = rng.random::<f64>();
        let mut class = 0;
        while class + 1 < probabilities.len() && left >= probabilities[class] {
            left -= probabilities[class];
            class += 1;
        }
        let label = match self.curves.len() {
            1 => {
                if class == 1 {
                    1.0
                } else {
                    -1.0
                }
            }
            _ => class as f64,
        };
        (y, label)
    }

    fn curve(&self, number: usize, y: &[f64]) -> f64 {
        self.curves.get(number).map_or(0.0, |curve| curve.at(y))
    }

    /// Of two classes the curve is the logarithm of the odds of the second.
    fn probabilities(&self, y: &[f64]) -> Vec<f64> {
        let mut weights: Vec<f64> = self.curves.iter().map(|curve| curve.at(y).exp()).collect();
        if let [odds] = weights[..] {
            weights = vec![1.0, odds];
        }
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }

    fn truth(&self, y: &[f64], label: &Label) -> Truth {
        match label {
            Label::Number(bounds) => Truth::Number(
                bounds.min + (bounds.max - bounds.min) * (self.curve(0, y) + 1.0) / 2.0,
            ),
            Label::Above(_) | Label::Classes(_) => Truth::Classes(self.probabilities(y)),
        }
    }
}

/// Where a curve is bounded.
fn grid(axes: usize) -> Vec<Vec<f64>> {
    let steps: u32 = match axes {
        1 => 100,
        2 => 20,
        _ => 8,
    };
    let along = || (0..=steps).map(|i| f64::from(i) / f64::from(steps));
    (0..axes).fold(vec![vec![]], |points: Vec<Vec<f64>>, _| {
        points
            .iter()
            .flat_map(|p| along().map(move |y| [&p[..], &[y]].concat()))
            .collect()
    })
}

fn natural(release: &Release, y: &[f64]) -> Vec<f64> {
    release
        .axes
        .iter()
        .zip(y)
        .map(|(axis, y)| (axis.min + (axis.max - axis.min) * y).min(axis.max))
        .collect()
}
