//! How the synopses of a comparison are read, and how far what they tell is from what is true.

use crate::cli::comparison::world::{JudgedPlace, TrueValue};
use crate::cli::figures::join_numbers;
use bernstream_release::window::RecordLabel;
use bernstream_synopsis::description::{
    AxisDescription, Basis, CellLabel, Classifier, Method, Regression, TargetDescription,
};
use bernstream_synopsis::machine::Loss;
use bernstream_synopsis::tables::{KernelFit, TableKernel, Tables};
use bernstream_synopsis::{Evaluator, Synopsis, SynopsisError, SynopsisReading};

/// A probability counts as at least this much, and as at most one less this much: one of 0 would be infinitely wrong.
pub const LEAST: f64 = 0.001;
/// Most released values that are smoothed by their posterior, whose time grows with their cube.
const FEW: usize = 100;

/// A way to read a synopsis.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparedReading {
    Published,
    Posterior,
    /// The kernel over tables of cells, with these bandwidths in natural units, or the smallest.
    Cells {
        bandwidths: Option<Vec<f64>>,
        fit: KernelFit,
    },
    /// The mean of all records of tables of cells, at every point.
    Whole,
}

impl ComparedReading {
    /// Readings that are tried of the file's own release: of cells with wider bandwidths too.
    pub fn of_own_release(
        basis: &Basis,
        values: usize,
        label: &RecordLabel,
        narrowest: &[f64],
        domain: &[AxisDescription],
    ) -> Vec<ComparedReading> {
        let mut readings = ComparedReading::of_release(basis, values, label);
        if matches!(basis, Basis::Tables(_)) {
            let fit = default_fit(label);
            for times in [2.0, 4.0] {
                let axes = narrowest.iter().zip(domain);
                let bandwidths: Vec<f64> = axes
                    .map(|(bandwidth, axis)| (times * bandwidth).min(axis.max - axis.min))
                    .collect();
                let reading = ComparedReading::Cells {
                    bandwidths: Some(bandwidths),
                    fit,
                };
                if !readings.contains(&reading) {
                    readings.push(reading);
                }
            }
            readings.push(ComparedReading::Whole);
        }
        readings
    }

    /// Readings that are tried of any release.
    pub fn of_release(basis: &Basis, values: usize, label: &RecordLabel) -> Vec<ComparedReading> {
        match basis {
            Basis::Tables(_) => {
                let default = default_fit(label);
                let other = if default == KernelFit::Linear {
                    KernelFit::Constant
                } else {
                    KernelFit::Linear
                };
                [default, other]
                    .map(|fit| ComparedReading::Cells {
                        bandwidths: None,
                        fit,
                    })
                    .to_vec()
            }
            Basis::Bernstein | Basis::Kernel(_) if values <= FEW => {
                vec![ComparedReading::Published, ComparedReading::Posterior]
            }
            _ => vec![ComparedReading::Published],
        }
    }

    /// The name in a table.
    pub fn name(&self) -> String {
        match self {
            ComparedReading::Published => "as published".to_owned(),
            ComparedReading::Posterior => "posterior".to_owned(),
            ComparedReading::Cells {
                bandwidths: None,
                fit,
            } => fit_name(*fit).to_owned(),
            ComparedReading::Cells {
                bandwidths: Some(bandwidths),
                fit,
            } => {
                format!(
                    "{}, bandwidths {}",
                    fit_name(*fit),
                    join_numbers(bandwidths, ",")
                )
            }
            ComparedReading::Whole => "the mean of all records".to_owned(),
        }
    }

    /// The command that asks for it.
    pub fn command(&self, label: &RecordLabel, domain: &[AxisDescription]) -> String {
        match self {
            ComparedReading::Published => "`bernstream evaluate`".to_owned(),
            ComparedReading::Posterior => "`bernstream evaluate --by posterior`".to_owned(),
            ComparedReading::Cells { bandwidths, fit } if *fit == default_fit(label) => {
                match bandwidths {
                    None => "`bernstream evaluate`".to_owned(),
                    Some(bandwidths) => {
                        format!(
                            "`bernstream evaluate --bandwidths {}`",
                            join_numbers(bandwidths, ",")
                        )
                    }
                }
            }
            ComparedReading::Cells { bandwidths, fit } => {
                let fit = match fit {
                    KernelFit::Constant => "constant",
                    KernelFit::Linear => "linear",
                    KernelFit::Naive => "naive",
                };
                let wider = bandwidths
                    .as_ref()
                    .map(|bandwidths| format!(" --bandwidths {}", join_numbers(bandwidths, ",")));
                format!(
                    "`bernstream evaluate --fit {fit}{}`",
                    wider.unwrap_or_default()
                )
            }
            ComparedReading::Whole => {
                let sides: Vec<String> = domain
                    .iter()
                    .map(|axis| format!("{}..{}", axis.min, axis.max))
                    .collect();
                format!("`bernstream query --range {}`", sides.join(","))
            }
        }
    }
}

fn fit_name(fit: KernelFit) -> &'static str {
    match fit {
        KernelFit::Constant => "local means",
        KernelFit::Linear => "local lines",
        KernelFit::Naive => "naive Bayes",
    }
}

/// The fit that readers of cells get without asking for another.
fn default_fit(label: &RecordLabel) -> KernelFit {
    if matches!(label, RecordLabel::Number(_)) {
        KernelFit::Linear
    } else {
        KernelFit::Constant
    }
}

/// Value of a reading at a place.
enum Prediction {
    Number(f64),
    /// The probability of each class.
    Classes(Vec<f64>),
    /// A class alone.
    Class(usize),
}

/// Error of a reading, a mean over places.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadingAccuracy {
    /// The error of a number in its units, or the log loss of a probability; `None` where only a class is told.
    pub error: Option<f64>,
    /// The share of records that have another class; `None` of a number.
    pub wrong: Option<f64>,
}

/// Compares a reading of a synopsis with what is true.
///
/// # Errors
///
/// If the synopsis cannot be read so.
pub fn mean_error_of(
    synopsis: &Synopsis,
    reading: &ComparedReading,
    judged: &[JudgedPlace],
) -> Result<ReadingAccuracy, SynopsisError> {
    let tables = match reading {
        ComparedReading::Cells { .. } | ComparedReading::Whole => Some(synopsis.tables()?),
        ComparedReading::Published | ComparedReading::Posterior => None,
    };
    let reader = SynopsisReader::new(synopsis, tables.as_ref(), reading)?;
    let mut error = Some(0.0);
    let mut wrong = Some(0.0);
    for JudgedPlace { place, truth } in judged {
        let off = off_at_place(&reader.predict_at(place)?, truth);
        error = sum_if_both(error, off.error);
        wrong = sum_if_both(wrong, off.wrong);
    }
    let places = judged.len().max(1) as f64;
    Ok(ReadingAccuracy {
        error: error.map(|sum| sum / places),
        wrong: wrong.map(|sum| sum / places),
    })
}

fn sum_if_both(sum: Option<f64>, more: Option<f64>) -> Option<f64> {
    Some(sum? + more?)
}

fn off_at_place(told: &Prediction, truth: &TrueValue) -> ReadingAccuracy {
    match (told, truth) {
        (Prediction::Number(told), TrueValue::Number(truth)) => ReadingAccuracy {
            error: Some((told - truth).abs()),
            wrong: None,
        },
        (Prediction::Classes(told), TrueValue::Classes(truth)) => {
            let loss = told
                .iter()
                .zip(truth)
                .map(|(p, q)| -q * p.clamp(LEAST, 1.0 - LEAST).ln())
                .sum();
            let likeliest = told
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .map_or(0, |(class, _)| class);
            ReadingAccuracy {
                error: Some(loss),
                wrong: truth.get(likeliest).map(|q| 1.0 - q),
            }
        }
        (Prediction::Class(class), TrueValue::Classes(truth)) => ReadingAccuracy {
            error: None,
            wrong: truth.get(*class).map(|q| 1.0 - q),
        },
        _ => ReadingAccuracy::default(),
    }
}

enum SynopsisReader<'t> {
    Function(Box<Evaluator>, TargetDescription),
    Cells(TableKernel<'t>, &'t Tables, KernelFit),
    /// One value for every place.
    Whole(Vec<f64>),
}

impl<'t> SynopsisReader<'t> {
    fn new(
        synopsis: &Synopsis,
        tables: Option<&'t Tables>,
        reading: &ComparedReading,
    ) -> Result<Self, SynopsisError> {
        let about = synopsis.description();
        match reading {
            ComparedReading::Published => {
                SynopsisReader::of_function(synopsis, SynopsisReading::Bernstein(about.order))
            }
            ComparedReading::Posterior => {
                SynopsisReader::of_function(synopsis, SynopsisReading::Posterior)
            }
            ComparedReading::Cells { bandwidths, fit } => {
                let tables = tables.ok_or(SynopsisError::NoTables)?;
                let kernel = tables.kernel(bandwidths.as_deref())?;
                Ok(SynopsisReader::Cells(kernel, tables, *fit))
            }
            ComparedReading::Whole => {
                let tables = tables.ok_or(SynopsisError::NoTables)?;
                let sides: Vec<[f64; 2]> = about
                    .domain
                    .iter()
                    .map(|axis| [axis.min, axis.max])
                    .collect();
                let range = tables.range(&sides)?;
                if let Some(CellLabel::Number { .. }) = tables.label() {
                    return Ok(SynopsisReader::Whole(vec![range.mean()?.value]));
                }
                let mut probabilities = Vec::new();
                for table in 0..tables.count() {
                    probabilities.push(range.probability(table)?.value);
                }
                Ok(SynopsisReader::Whole(probabilities))
            }
        }
    }

    fn of_function(synopsis: &Synopsis, by: SynopsisReading) -> Result<Self, SynopsisError> {
        let evaluator = Box::new(synopsis.evaluator(by)?);
        Ok(SynopsisReader::Function(
            evaluator,
            synopsis.description().target.clone(),
        ))
    }

    fn predict_at(&self, place: &[f64]) -> Result<Prediction, SynopsisError> {
        Ok(match self {
            SynopsisReader::Whole(told) => match told[..] {
                [mean] => Prediction::Number(mean),
                _ => Prediction::Classes(told.clone()),
            },
            SynopsisReader::Cells(kernel, tables, fit) => match tables.label() {
                Some(CellLabel::Number { .. }) => {
                    Prediction::Number(kernel.expected(place, *fit)?.value)
                }
                Some(CellLabel::Above { .. }) => {
                    two_classes(kernel.probability(place, 1, *fit)?.value)
                }
                _ => {
                    let mut probabilities = Vec::new();
                    for table in 0..tables.count() {
                        probabilities.push(kernel.probability(place, table, *fit)?.value);
                    }
                    Prediction::Classes(probabilities)
                }
            },
            SynopsisReader::Function(evaluator, about) => {
                let value = evaluator.evaluate(place)?;
                match about {
                    // The bounds of a label and of a probability are public.
                    TargetDescription::Regression(Regression { min, max, .. }) => {
                        Prediction::Number(value.clamp(*min, *max))
                    }
                    TargetDescription::Probability(_) => two_classes(value.clamp(0.0, 1.0)),
                    // A score of these is the logarithm of the odds.
                    TargetDescription::Classifier(Classifier {
                        method:
                            Method::Logistic { .. }
                            | Method::KernelMachine {
                                loss: Loss::Logistic,
                                ..
                            },
                        ..
                    }) => two_classes(1.0 / (1.0 + (-value).exp())),
                    _ => Prediction::Class(usize::from(value > 0.0)),
                }
            }
        })
    }
}

/// Two classes, of which the second has this probability.
fn two_classes(p: f64) -> Prediction {
    Prediction::Classes(vec![1.0 - p, p])
}
