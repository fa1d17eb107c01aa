//! Public records to compare on: drawn from a law, or the rows of a file that is public.

use std::path::Path;
use std::time::Duration;

use arrow_array::{Array, Float64Array};
use rand::rngs::ChaCha12Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::StandardNormal;

use crate::cli::failure::Failure;
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_kafka::source::files::{FileSource, FileSourceParams};
use bernstream_kafka::source::record::DeclaredTypes;
use bernstream_kafka::source::{self, RecordSource, SourceEvent};
use bernstream_release::source::Columns;
use bernstream_release::window::RecordLabel;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::machine::CubeKernel;
use bernstream_synopsis::rough::{KernelSum, WorstCaseFunctions, WorstCaseKind};

/// Widths of the bends of a curve, as parts of an axis: a law each.
pub const BENDS: [f64; 4] = [0.5, 0.3, 0.2, 0.1];
/// Width of the cluster of places.
const CLUSTER: f64 = 0.15;
/// The most that the expected label is from its middle, and a label from what is expected, as parts of half its range.
const HEIGHT: f64 = 0.6;
const SCATTER: f64 = 0.35;
/// The most that the logarithms of two probabilities are apart.
const ODDS: f64 = 2.0;
/// Number of places where a reading is judged: drawn from a law, or rows.
const PLACES: usize = 200;
const ROWS: usize = 1000;
/// The seed of the laws, which are public: every comparison draws the same records.
const SEED: u64 = 0x636f_6d70_6172_6500;

/// Records, and what readings are judged by.
pub struct ComparisonData {
    records: Vec<ComparisonRecord>,
    pub judged: Vec<JudgedPlace>,
}

/// A record as a window keeps it: drawn from a law, or a row of a public file.
#[derive(Clone)]
pub struct ComparisonRecord {
    /// Coordinates in the unit cube.
    place: Vec<f64>,
    /// The label as [`AccumulatorSpec::record`] takes it.
    label: f64,
}

/// A place where readings are judged.
pub struct JudgedPlace {
    /// Coordinates in natural units.
    pub place: Vec<f64>,
    pub truth: TrueValue,
}

/// The truth at a place.
pub enum TrueValue {
    /// The expected label, or that of a record.
    Number(f64),
    /// The probability of each class, or certainty of that of a record.
    Classes(Vec<f64>),
}

impl ComparisonData {
    /// The accumulator of a window that holds the records.
    pub fn accumulate_records(&self, spec: &AccumulatorSpec) -> Accumulator {
        let most = match spec {
            AccumulatorSpec::Records { most } => *most as usize,
            _ => usize::MAX,
        };
        spec.filled_accumulator(
            self.records
                .iter()
                .take(most)
                .map(|record| spec.record(&record.place, record.label)),
        )
    }

    /// Draws so many records of the law of this number, and the law itself at places of records.
    pub fn draw_from_law(
        release: &ReleaseSettings,
        label: &RecordLabel,
        records: u64,
        number: usize,
    ) -> ComparisonData {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(number as u64);
        let law = RecordLaw::new(release, label, number, &mut rng);
        let records = (0..records).map(|_| law.record(&mut rng)).collect();
        let mut judged = Vec::new();
        for _ in 0..PLACES {
            let place = law.place(&mut rng);
            judged.push(JudgedPlace {
                truth: law.truth(&place, label),
                place: natural_units(release, &place),
            });
        }
        ComparisonData { records, judged }
    }

    /// Draws so many records of one half of the rows, with repetition, and some of the other half to judge by.
    pub fn resample_rows(
        release: &ReleaseSettings,
        label: &RecordLabel,
        rows: &[ComparisonRecord],
        records: u64,
        number: usize,
    ) -> ComparisonData {
        let mut rng = ChaCha12Rng::seed_from_u64(SEED);
        rng.set_stream(number as u64);
        // Rows of a file are in some order: halves take turns.
        let given: Vec<&ComparisonRecord> = rows.iter().step_by(2).collect();
        let held_out: Vec<&ComparisonRecord> = rows.iter().skip(1).step_by(2).collect();
        let records = (0..records)
            .filter_map(|_| draw_record(&given, &mut rng))
            .collect();
        let mut judged = Vec::new();
        for _ in 0..ROWS {
            if let Some(record) = draw_record(&held_out, &mut rng) {
                judged.push(JudgedPlace {
                    place: natural_units(release, &record.place),
                    truth: truth_of_record(label, record.label),
                });
            }
        }
        ComparisonData { records, judged }
    }
}

/// One of the records, each with the same probability; `None` if there are none.
fn draw_record(records: &[&ComparisonRecord], rng: &mut ChaCha12Rng) -> Option<ComparisonRecord> {
    let number = rng.random_range(0..records.len().max(1));
    records.get(number).map(|record| (*record).clone())
}

/// The truth that a record with this label, as a window keeps it, tells for certain.
fn truth_of_record(label: &RecordLabel, kept: f64) -> TrueValue {
    match label {
        RecordLabel::Number(bounds) => {
            TrueValue::Number(bounds.min + (bounds.max - bounds.min) * (kept + 1.0) / 2.0)
        }
        RecordLabel::Above(_) if kept > 0.0 => TrueValue::Classes(vec![0.0, 1.0]),
        RecordLabel::Above(_) => TrueValue::Classes(vec![1.0, 0.0]),
        RecordLabel::Classes(values) => TrueValue::Classes(
            (0..values.len())
                .map(|class| f64::from(u8::from(class as f64 == kept)))
                .collect(),
        ),
    }
}

/// The rows of a public file, or of a folder of them, that a window of the release would keep, whatever their time and key.
///
/// # Errors
///
/// If it cannot be read, lacks a column, or has too few rows to tell anything.
pub fn read_public_rows(
    path: &Path,
    settings: &WorkerSettings,
    release: &ReleaseSettings,
    label: &RecordLabel,
) -> Result<Vec<ComparisonRecord>, Failure> {
    let columns = Columns {
        key: Vec::new(),
        unit: None,
        values: release.columns.clone(),
        ..settings.columns.clone()
    };
    let params = FileSourceParams {
        path: path.to_owned(),
        declared: DeclaredTypes::default(),
    };
    let mut files = FileSource::open(&params, columns).map_err(unavailable)?;
    let mut rows = Vec::new();
    while let SourceEvent::Batch(batch) = files
        .next_event(None, Duration::ZERO)
        .map_err(unavailable)?
    {
        for row in 0..batch.times.len() {
            let mut values = batch.values.iter().map(|column| number_at(column, row));
            let axes = release
                .axes
                .iter()
                .map(|axis| axis.unit_place(values.next()??));
            let Some(place) = axes.collect::<Option<Vec<f64>>>() else {
                continue;
            };
            if let Some(label) = values.next().flatten().and_then(|value| label.of(value)) {
                rows.push(ComparisonRecord { place, label });
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

fn unavailable(error: source::SourceError) -> Failure {
    Failure::Unavailable(error.to_string())
}

/// The value of a row; `None` where it is null or no number.
fn number_at(column: &Float64Array, row: usize) -> Option<f64> {
    (column.is_valid(row) && !column.value(row).is_nan()).then(|| column.value(row))
}

/// A law of places and labels, which resembles no records in particular.
struct RecordLaw {
    centre: Vec<f64>,
    /// One for a number; for classes the logarithm of how probable each is.
    curves: Vec<KernelSum>,
    is_number: bool,
}

impl RecordLaw {
    fn new(
        release: &ReleaseSettings,
        label: &RecordLabel,
        number: usize,
        rng: &mut ChaCha12Rng,
    ) -> RecordLaw {
        let axes = release.axes.len();
        let count = match label {
            RecordLabel::Number(_) | RecordLabel::Above(_) => 1,
            RecordLabel::Classes(values) => values.len(),
        };
        let height = match label {
            RecordLabel::Number(_) => HEIGHT,
            RecordLabel::Above(_) => ODDS,
            RecordLabel::Classes(_) => ODDS / 2.0,
        };
        let bandwidth = BENDS.get(number % BENDS.len()).copied().unwrap_or(1.0);
        let rough = WorstCaseFunctions {
            kernel: PointKernel::Machine(CubeKernel::Gaussian { bandwidth }),
            axes,
            is: WorstCaseKind::Bounded(height),
        };
        let curves = rough
            .draw_functions(&grid(axes))
            .into_iter()
            .skip(number)
            .step_by(7)
            .take(count)
            .collect();
        let centre = (0..axes)
            .map(|_| 0.25 + 0.5 * rng.random::<f64>())
            .collect();
        RecordLaw {
            centre,
            curves,
            is_number: matches!(label, RecordLabel::Number(_)),
        }
    }

    /// Half of the places are in a cluster, the others anywhere.
    fn place<R: Rng>(&self, rng: &mut R) -> Vec<f64> {
        let is_clustered = rng.random::<bool>();
        let mut place = Vec::new();
        for centre in &self.centre {
            place.push(if is_clustered {
                (centre + CLUSTER * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 1.0)
            } else {
                rng.random()
            });
        }
        place
    }

    fn record<R: Rng>(&self, rng: &mut R) -> ComparisonRecord {
        let place = self.place(rng);
        if self.is_number {
            let scatter = SCATTER * (2.0 * rng.random::<f64>() - 1.0);
            let label = self.curve(0, &place) + scatter;
            return ComparisonRecord { place, label };
        }
        let probabilities = self.probabilities(&place);
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
        ComparisonRecord { place, label }
    }

    fn curve(&self, number: usize, y: &[f64]) -> f64 {
        self.curves.get(number).map_or(0.0, |curve| curve.at(y))
    }

    /// Probabilities of the classes. Of two classes the curve is the logarithm of the odds of the second.
    fn probabilities(&self, y: &[f64]) -> Vec<f64> {
        let mut weights: Vec<f64> = self.curves.iter().map(|curve| curve.at(y).exp()).collect();
        if let [odds] = weights[..] {
            weights = vec![1.0, odds];
        }
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / all).collect()
    }

    fn truth(&self, y: &[f64], label: &RecordLabel) -> TrueValue {
        match label {
            RecordLabel::Number(bounds) => TrueValue::Number(
                bounds.min + (bounds.max - bounds.min) * (self.curve(0, y) + 1.0) / 2.0,
            ),
            RecordLabel::Above(_) | RecordLabel::Classes(_) => {
                TrueValue::Classes(self.probabilities(y))
            }
        }
    }
}

/// Points at which a curve is bounded.
fn grid(axes: usize) -> Vec<Vec<f64>> {
    let steps: u32 = match axes {
        1 => 100,
        2 => 20,
        _ => 8,
    };
    let mut points: Vec<Vec<f64>> = vec![Vec::new()];
    for _ in 0..axes {
        let mut longer = Vec::new();
        for point in &points {
            for step in 0..=steps {
                longer.push([&point[..], &[f64::from(step) / f64::from(steps)]].concat());
            }
        }
        points = longer;
    }
    points
}

/// A place of the unit cube in the units of the axes.
fn natural_units(release: &ReleaseSettings, y: &[f64]) -> Vec<f64> {
    release
        .axes
        .iter()
        .zip(y)
        .map(|(axis, y)| (axis.min + (axis.max - axis.min) * y).min(axis.max))
        .collect()
}
