//! How the synopses of a comparison are read, and how far what they tell is from what is true.

use crate::cli::comparison::world::Truth;
use bernstream_release::window::Label;
use bernstream_synopsis::description::{
    Axis, Basis, CellLabel, Classifier, Method, Regression, Target,
};
use bernstream_synopsis::machine::Loss;
use bernstream_synopsis::tables::{Fit, Kernel, Tables};
use bernstream_synopsis::{By, Error, Evaluator, Synopsis};

/// A probability counts as at least this much, and as at most one less this much: one of 0 would be infinitely wrong.
pub const LEAST: f64 = 0.001;
/// Most released values that are smoothed by their posterior, whose time grows with their cube.
const FEW: usize = 100;

/// A way to read a synopsis.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    Published,
    Posterior,
    /// Of tables of cells, with these bandwidths in natural units, or the smallest.
    Cells {
        bandwidths: Option<Vec<f64>>,
        fit: Fit,
    },
    /// Of tables of cells: what holds of all records holds at every point.
    Whole,
}

impl Reading {
    /// Those that are tried of the file's own release: of cells with wider bandwidths too.
    pub fn of_own(
        basis: &Basis,
        values: usize,
        label: &Label,
        narrowest: &[f64],
        domain: &[Axis],
    ) -> Vec<Reading> {
        let mut readings = Reading::of(basis, values, label);
        if matches!(basis, Basis::Tables(_)) {
            let fit = default_fit(label);
            for times in [2.0, 4.0] {
                let wider = |(b, axis): (&f64, &Axis)| (times * b).min(axis.max - axis.min);
                let bandwidths: Vec<f64> = narrowest.iter().zip(domain).map(wider).collect();
                let reading = Reading::Cells {
                    bandwidths: Some(bandwidths),
                    fit,
                };
                if !readings.contains(&reading) {
                    readings.push(reading);
                }
            }
            readings.push(Reading::Whole);
        }
        readings
    }

    /// Those that are tried of any release.
    pub fn of(basis: &Basis, values: usize, label: &Label) -> Vec<Reading> {
        match basis {
            Basis::Tables(_) => {
                let default = default_fit(label);
                let other = if default == Fit::Linear {
                    Fit::Constant
                } else {
                    Fit::Linear
                };
                [default, other]
                    .map(|fit| Reading::Cells {
                        bandwidths: None,
                        fit,
                    })
                    .to_vec()
            }
            Basis::Bernstein | Basis::Kernel(_) if values <= FEW => {
                vec![Reading::Published, Reading::Posterior]
            }
            _ => vec![Reading::Published],
        }
    }

    /// In a table.
    pub fn name(&self) -> String {
        let fit = |fit: &Fit| match fit {
            Fit::Constant => "local means",
            Fit::Linear => "local lines",
            Fit::Naive => "naive Bayes",
        };
        match self {
            Reading::Published => "as published".to_owned(),
            Reading::Posterior => "posterior".to_owned(),
            Reading::Cells {
                bandwidths: None,
                fit: by,
            } => fit(by).to_owned(),
            Reading::Cells {
                bandwidths: Some(bandwidths),
                fit: by,
            } => {
                format!("{}, bandwidths {}", fit(by), joined(bandwidths))
            }
            Reading::Whole => "the mean of all records".to_owned(),
        }
    }

    /// How to ask for it.
    pub fn command(&self, label: &Label, domain: &[Axis]) -> String {
        match self {
            Reading::Published => "`bernstream evaluate`".to_owned(),
            Reading::Posterior => "`bernstream evaluate --by posterior`".to_owned(),
            Reading::Cells { bandwidths, fit } if *fit == default_fit(label) => match bandwidths {
                None => "`bernstream evaluate`".to_owned(),
                Some(bandwidths) => {
                    format!("`bernstream evaluate --bandwidths {}`", joined(bandwidths))
                }
            },
            Reading::Cells { bandwidths, fit } => {
                let fit = match fit {
                    Fit::Constant => "constant",
                    Fit::Linear => "linear",
                    Fit::Naive => "naive",
                };
                let wider = bandwidths
                    .as_ref()
                    .map(|bandwidths| format!(" --bandwidths {}", joined(bandwidths)));
                format!(
                    "`bernstream evaluate --fit {fit}{}`",
                    wider.unwrap_or_default()
                )
            }
            Reading::Whole => {
                let sides: Vec<String> = domain
                    .iter()
                    .map(|axis| format!("{}..{}", axis.min, axis.max))
                    .collect();
                format!("`bernstream query --range {}`", sides.join(","))
            }
        }
    }
}

/// What readers of cells get without asking for another.
fn default_fit(label: &Label) -> Fit {
    if matches!(label, Label::Number(_)) {
        Fit::Linear
    } else {
        Fit::Constant
    }
}

fn joined(numbers: &[f64]) -> String {
    numbers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// What a reading tells at a place.
enum Told {
    Number(f64),
    /// The probability of each class.
    Classes(Vec<f64>),
    /// A class alone.
    Class(usize),
}

/// How far a reading is off, a mean over places.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off {
    /// The error of a number in its units, or the log loss of a probability; `None` where only a class is told.
    pub error: Option<f64>,
    /// The share of records that have another class; `None` of a number.
    pub wrong: Option<f64>,
}

/// How far this reading of a synopsis is off.
///
/// # Errors
///
/// If the synopsis cannot be read so.
pub fn off(
    synopsis: &Synopsis,
    reading: &Reading,
    judged: &[(Vec<f64>, Truth)],
) -> Result<Off, Error> {
    let tables = match reading {
        Reading::Cells { .. } | Reading::Whole => Some(synopsis.tables()?),
        Reading::Published | Reading::Posterior => None,
    };
    let reader = Reader::new(synopsis, tables.as_ref(), reading)?;
    let mut error = Some(0.0);
    let mut wrong = Some(0.0);
    for (place, truth) in judged {
        let (lost, missed) = lost(&reader.at(place)?, truth);
        error = error.zip(lost).map(|(sum, lost)| sum + lost);
        wrong = wrong.zip(missed).map(|(sum, missed)| sum + missed);
    }
    let mean = |sum: f64| sum / judged.len().max(1) as f64;
    Ok(Off {
        error: error.map(mean),
        wrong: wrong.map(mean),
    })
}

fn lost(told: &Told, truth: &Truth) -> (Option<f64>, Option<f64>) {
    match (told, truth) {
        (Told::Number(told), Truth::Number(truth)) => (Some((told - truth).abs()), None),
        (Told::Classes(told), Truth::Classes(truth)) => {
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
            (Some(loss), truth.get(likeliest).map(|q| 1.0 - q))
        }
        (Told::Class(class), Truth::Classes(truth)) => (None, truth.get(*class).map(|q| 1.0 - q)),
        _ => (None, None),
    }
}

enum Reader<'t> {
    Function(Box<Evaluator>, Target),
    Cells(Kernel<'t>, &'t Tables, Fit),
    /// The same everywhere.
    Whole(Vec<f64>),
}

impl<'t> Reader<'t> {
    fn new(
        synopsis: &Synopsis,
        tables: Option<&'t Tables>,
        reading: &Reading,
    ) -> Result<Self, Error> {
        let about = synopsis.description();
        let function = |by: By| {
            Ok(Reader::Function(
                Box::new(synopsis.evaluator(by)?),
                about.target.clone(),
            ))
        };
        match (reading, tables) {
            (Reading::Published, _) => function(By::Bernstein(about.order)),
            (Reading::Posterior, _) => function(By::Posterior),
            (Reading::Cells { bandwidths, fit }, Some(tables)) => Ok(Reader::Cells(
                tables.kernel(bandwidths.as_deref())?,
                tables,
                *fit,
            )),
            (Reading::Whole, Some(tables)) => {
                let sides: Vec<[f64; 2]> = about
                    .domain
                    .iter()
                    .map(|axis| [axis.min, axis.max])
                    .collect();
                let range = tables.range(&sides)?;
                let part = |table| Ok(range.probability(table)?.value);
                Ok(Reader::Whole(match tables.label() {
                    Some(CellLabel::Number { .. }) => vec![range.mean()?.value],
                    _ => (0..tables.count())
                        .map(part)
                        .collect::<Result<_, Error>>()?,
                }))
            }
            (Reading::Cells { .. } | Reading::Whole, None) => Err(Error::NoTables),
        }
    }

    fn at(&self, place: &[f64]) -> Result<Told, Error> {
        Ok(match self {
            Reader::Whole(told) => match told[..] {
                [mean] => Told::Number(mean),
                _ => Told::Classes(told.clone()),
            },
            Reader::Cells(kernel, tables, fit) => match tables.label() {
                Some(CellLabel::Number { .. }) => Told::Number(kernel.expected(place, *fit)?.value),
                Some(CellLabel::Above { .. }) => two(kernel.probability(place, 1, *fit)?.value),
                _ => {
                    let probability = |table| Ok(kernel.probability(place, table, *fit)?.value);
                    Told::Classes(
                        (0..tables.count())
                            .map(probability)
                            .collect::<Result<_, Error>>()?,
                    )
                }
            },
            Reader::Function(evaluator, about) => {
                let value = evaluator.evaluate(place)?;
                match about {
                    // The bounds of a label and of a probability are public.
                    Target::Regression(Regression { min, max, .. }) => {
                        Told::Number(value.clamp(*min, *max))
                    }
                    Target::Probability(_) => two(value.clamp(0.0, 1.0)),
                    // A score of these is the logarithm of the odds.
                    Target::Classifier(Classifier {
                        method:
                            Method::Logistic { .. }
                            | Method::KernelMachine {
                                loss: Loss::Logistic,
                                ..
                            },
                        ..
                    }) => two(1.0 / (1.0 + (-value).exp())),
                    _ => Told::Class(usize::from(value > 0.0)),
                }
            }
        })
    }
}

/// Two classes, of which the second has this probability.
fn two(p: f64) -> Told {
    Told::Classes(vec![1.0 - p, p])
}
