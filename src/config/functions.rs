//! The functions that can be released, one table each: written -> used.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use crate::config::body::Coordinates;
use crate::config::document::Document;
use crate::config::file::{self, Field};
use crate::config::release::{Ground, Labelled, Planned};
use crate::config::sections::Found;
use crate::config::{Function, choices, forms};
use crate::synopsis::description::{self, Classifier, Clip, Method, Regression, Smoothing};
use crate::synopsis::query::{self, MOST_SMOOTHNESS};
use crate::targets::bayes::gaussian::GaussianBayes;
use crate::targets::bayes::kernel::KernelBayes;
use crate::targets::covariance::CovarianceDensity;
use crate::targets::density::Density;
use crate::targets::expression::{self, Formula, Variable};
use crate::targets::logistic::{Logistic, Score};
use crate::targets::machine::{self, Kernel, KernelMachine, Machine};
use crate::targets::moments::{self, Moments};
use crate::targets::regression::Regression as PriestleyChao;
use crate::targets::whitened::KernelDensity;
use crate::targets::{self, Target};
use crate::window::{Axis, Label};

pub fn density(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Density,
) -> Found<Function> {
    if let Some(label) = ground.label {
        return Err(document.fault(label.span(), "a density has no label", "leave it out"));
    }
    if let Some(private) = written.private_bandwidths {
        return match (written.bandwidths, written.covariance) {
            // The first of the candidates stands for all.
            (None, None) => Ok(choices::bandwidths(document, ground, private)?.candidates.first().clone()),
            (Some(_), _) => Err(document.not_one_of(place.clone(), &["bandwidths", "private_bandwidths"], true)),
            (_, Some(_)) => Err(document.not_one_of(place.clone(), &["covariance", "private_bandwidths"], true)),
        };
    }
    let (target, kernel) = match (written.bandwidths, written.covariance) {
        (bandwidths, None) => {
            let bandwidths = per_axis(document, ground, place, "bandwidths", bandwidths)?;
            let in_cube = in_unit_cube(&bandwidths, ground);
            let place = bandwidths.span();
            let target = match ground.on {
                Coordinates::Lattice { degree } => built(document, &place, Density::new(&in_cube, degree))?,
                Coordinates::Points { most } => {
                    built(document, &place, KernelDensity::diagonal(&in_cube, most as usize))?
                }
            };
            (target, Smoothing::Bandwidths(bandwidths.into_inner()))
        }
        (None, Some(covariance)) => {
            let place = covariance.span();
            let rows = covariance.into_inner().into_iter().map(|row| row.into_inner());
            let rows: Vec<Vec<f64>> = rows.map(|row| row.into_iter().map(Spanned::into_inner).collect()).collect();
            let widths: Vec<f64> = ground.widths().collect();
            let scaled = |(row, w): (&Vec<f64>, &f64)| row.iter().zip(&widths).map(|(x, v)| x / (w * v)).collect();
            let in_cube: Vec<Vec<f64>> = rows.iter().zip(&widths).map(scaled).collect();
            let is_square = rows.len() == widths.len() && rows.iter().all(|row| row.len() == widths.len());
            if !is_square {
                let size = widths.len();
                return Err(document.fault(place, format!("must be a matrix of {size} rows and columns"), ""));
            }
            let target = match ground.on {
                Coordinates::Lattice { degree } => built(document, &place, CovarianceDensity::new(&in_cube, degree))?,
                Coordinates::Points { most } => {
                    built(document, &place, KernelDensity::covariance(&in_cube, most as usize))?
                }
            };
            (target, Smoothing::Covariance(rows))
        }
        (Some(_), Some(_)) => {
            return Err(document.not_one_of(place.clone(), &["bandwidths", "covariance"], true));
        }
    };
    Ok(intensity(ground, target, kernel))
}

/// A kernel density, in records per unit of its axes.
pub(super) fn intensity(ground: &Ground<'_>, target: Arc<dyn Target>, kernel: Smoothing) -> Function {
    let per = ground.per();
    Function {
        about: description::Target::Density(description::Density { kernel, divide_by: None }),
        meaning: format!("records per unit of {per}; divide by the released mass for a density"),
        quantity: format!("records per unit of {per}"),
        unit: target.unit() / ground.volume(),
        offset: 0.0,
        target,
    }
}

pub fn regression(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Regression,
) -> Found<Function> {
    let label = number(document, ground, place);
    let bandwidth = document.required(place, "bandwidth", written.bandwidth, forms::positive);
    let gap = document.required(place, "gap", written.gap, forms::positive);
    let max_records = document.required(place, "max_records", written.max_records, forms::count);
    let (column, bounds) = label?;
    let (bandwidth, gap, max_records) = (bandwidth?.into_inner(), gap?.into_inner(), max_records?.into_inner());
    let [axis] = ground.axes else {
        let what = format!("has {} axes, this regression has one", ground.axes.len());
        return Err(document.fault(place.clone(), what, "use [release.machine] for more"));
    };
    let width = axis.max - axis.min;
    let target = PriestleyChao::new(bandwidth / width, ground.degree(document, place)?, gap / width, max_records);
    let target = built(document, place, target)?;
    let method = Method::PriestleyChao { bandwidth, gap, max_records };
    Ok(expected_number(ground, column, bounds, method, target))
}

pub fn bayes(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Bayes,
) -> Found<Function> {
    let label = class(document, ground, place);
    let (target, method) = match (written.bandwidths, written.min_deviations) {
        (bandwidths @ Some(_), None) => {
            let bandwidths = per_axis(document, ground, place, "bandwidths", bandwidths)?;
            let target = KernelBayes::new(&in_unit_cube(&bandwidths, ground), ground.degree(document, place)?);
            let target = built(document, &bandwidths.span(), target)?;
            (target, Method::KernelBayes { bandwidths: bandwidths.into_inner() })
        }
        (None, deviations @ Some(_)) => {
            let deviations = per_axis(document, ground, place, "min_deviations", deviations)?;
            let target = GaussianBayes::new(&in_unit_cube(&deviations, ground), ground.degree(document, place)?);
            let target = built(document, &deviations.span(), target)?;
            (target, Method::GaussianBayes { min_deviations: deviations.into_inner() })
        }
        (both, _) => {
            let keys = ["bandwidths", "min_deviations"];
            return Err(document.not_one_of(place.clone(), &keys, both.is_some()));
        }
    };
    let (column, above) = label?;
    let unit = target.unit() / ground.volume();
    let quantity = format!("records per unit of {}", ground.per());
    Ok(score(column, above, method, target, unit, quantity))
}

pub fn machine(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Machine,
) -> Found<Function> {
    let loss = document.required(place, "loss", written.loss, Ok);
    let kernel = document.required(place, "kernel", written.kernel, Ok).and_then(|written| kernel(document, written));
    let c = document.required(place, "c", written.c, forms::positive);
    let max_records = document.required(place, "max_records", written.max_records, forms::count);
    let landmarks = document.optional(written.landmarks, forms::count);
    let loss = loss?;
    // The loss says which kind of label it is for.
    let label = match loss.get_ref().classifies() {
        true => class(document, ground, place).map(|(column, above)| (column, Err(above))),
        false => number(document, ground, place).map(|(column, bounds)| (column, Ok(bounds))),
    };
    let (kernel, c, records) = (kernel?, c?.into_inner(), max_records?.into_inner());
    let landmarks = landmarks?;
    if let (Some(landmarks), Kernel::Gaussian { bandwidth } | Kernel::Laplacian { bandwidth }) = (&landmarks, kernel)
        && bandwidth * f64::from(*landmarks.get_ref()) < 1.0
    {
        let what = format!(
            "lie farther apart than the kernel is wide, {bandwidth} of the domain: between them nothing would be seen"
        );
        let least = (1.0 / bandwidth).ceil();
        return Err(document.fault(landmarks.span(), what, format!("take {least} or more, or a wider kernel")));
    }
    let landmarks = landmarks.map(Spanned::into_inner);
    let (column, label) = label?;
    let loss = loss.into_inner();
    let dimensions = ground.axes.len();
    let settings = |degree| machine::Settings { kernel, loss, c, records, dimensions, degree, landmarks };
    let target = match ground.on {
        Coordinates::Lattice { degree } => built(document, place, Machine::new(settings(degree)))?,
        Coordinates::Points { most } => built(document, place, KernelMachine::new(settings(1), most as usize))?,
    };
    let method = Method::KernelMachine { loss, kernel, c, max_records: records, landmarks };
    Ok(match label {
        Ok(bounds) => expected_number(ground, column, bounds, method, target),
        Err(above) => {
            let unit = target.unit();
            score(column, above, method, target, unit, "of the score".to_owned())
        }
    })
}

pub fn logistic(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Logistic,
) -> Found<Function> {
    let label = class(document, ground, place);
    let score_of = document.required(place, "score", written.score, Ok);
    let c = document.required(place, "c", written.c, forms::positive);
    let max_records = document.required(place, "max_records", written.max_records, forms::count);
    let (column, above) = label?;
    let (written, c, max_records) = (score_of?.into_inner(), c?.into_inner(), max_records?.into_inner());
    let is_linear = matches!(written, file::Score::Linear);
    let degree = ground.degree(document, place)?;
    let score_of = if is_linear { Score::Linear } else { Score::Sigmoid { degree } };
    let target = built(document, place, Logistic::new(ground.axes.len(), c, max_records, score_of))?;
    let method = Method::Logistic { c, max_records };
    let unit = target.unit();
    if is_linear {
        return Ok(score(column, above, method, target, unit, "of the score".to_owned()));
    }
    let likely = format!("the probability that {column} > {above}");
    Ok(Function {
        about: description::Target::Probability(Classifier { label: column.to_owned(), above, method }),
        meaning: likely.clone(),
        quantity: "of the probability".to_owned(),
        unit,
        offset: 0.0,
        target,
    })
}

pub fn expression(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Expression,
) -> Found<Function> {
    let text = document.required(place, "value", written.value, forms::words)?;
    let variable = |name: &String, axis: &Axis| Variable { name: name.clone(), min: axis.min, max: axis.max };
    let axes: Vec<Variable> = ground.columns.iter().zip(ground.axes).map(|(name, axis)| variable(name, axis)).collect();
    let label = ground.label.map(|label| match label.get_ref() {
        Labelled { column, label: Label::Number(axis) } => expression::Label::Number(variable(column, axis)),
        Labelled { column, label: Label::Above(_) } => expression::Label::Class(column.clone()),
    });
    let clip = written.clip.map(|table| clip(document, table)).transpose()?;
    let formula = Formula::new(text.get_ref(), &axes, label.as_ref(), ground.degree(document, place)?);
    let (place, target) = match &clip {
        Some(clip) => {
            let Clip { sup, sum } = *clip.get_ref();
            (clip.span(), formula.and_then(|formula| formula.clipped(sup, sum)))
        }
        None => (text.span(), formula.and_then(Formula::proved)),
    };
    let target = built(document, &place, target)?;
    let (text, clip) = (text.into_inner(), clip.map(Spanned::into_inner));
    let clipped = clip.map(|Clip { sup, sum }| format!(", each clipped to {sup} a lattice point and {sum} in all"));
    Ok(Function {
        meaning: format!("the sum of {text} over the records{}", clipped.unwrap_or_default()),
        quantity: "of the sum".to_owned(),
        about: description::Target::Sum(description::Sum { expression: text, clip }),
        unit: target.unit(),
        offset: 0.0,
        target,
    })
}

pub fn moments(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Moments,
) -> Found<Function> {
    if let Some(label) = ground.label {
        return Err(document.fault(label.span(), "moments have no label: every column is an axis", "leave it out"));
    }
    let axes = ground.axes.len();
    let (frequencies, place) = match (written.frequencies, written.smoothness) {
        (frequencies @ Some(_), None) => {
            let frequencies = document.required(place, "frequencies", frequencies, forms::count)?;
            (*frequencies.get_ref(), frequencies.span())
        }
        (None, smoothness @ Some(_)) => {
            let smoothness = document.required(place, "smoothness", smoothness, |smoothness| match smoothness {
                1..=MOST_SMOOTHNESS => Ok(smoothness),
                _ => Err(format!("must be from 1 to {MOST_SMOOTHNESS}")),
            })?;
            // A price that is at fault has been told.
            let chosen = ground.planned.map_or(1, |planned| {
                let Planned { records, epsilon } = planned;
                query::frequencies(axes, *smoothness.get_ref(), records, epsilon, moments::most_frequencies(axes))
            });
            (chosen, smoothness.span())
        }
        (both, _) => {
            return Err(document.not_one_of(place.clone(), &["frequencies", "smoothness"], both.is_some()));
        }
    };
    let target = built(document, &place, Moments::new(axes, frequencies))?;
    Ok(Function {
        meaning: format!(
            "sums over the records of products of cosines of the angles of {}, {frequencies} an axis, the first the number of \
             records: ask `bernstream query` what any smooth function adds up to",
            ground.per()
        ),
        quantity: "of a sum of cosines over the records".to_owned(),
        about: description::Target::Moments(description::Moments { frequencies }),
        unit: target.unit(),
        offset: 0.0,
        target,
    })
}

/// What a record of an expression is clipped to; whether the numbers fit is the target's to say.
fn clip(document: &mut Document<'_>, table: Spanned<file::Clip>) -> Found<Spanned<Clip>> {
    let (place, written) = (table.span(), table.into_inner());
    let sup = document.required(&place, "sup", written.sup, forms::positive);
    let sum = document.required(&place, "sum", written.sum, forms::positive);
    Ok(Spanned::new(place, Clip { sup: sup?.into_inner(), sum: sum?.into_inner() }))
}

/// What a label is expected to be: values in `[-1, 1]` of the label's bounds.
fn expected_number(
    ground: &Ground<'_>,
    column: &str,
    bounds: &Axis,
    method: Method,
    target: Arc<dyn Target>,
) -> Function {
    let (middle, half) = ((bounds.min + bounds.max) / 2.0, (bounds.max - bounds.min) / 2.0);
    let about = Regression { label: column.to_owned(), min: bounds.min, max: bounds.max, method };
    Function {
        about: description::Target::Regression(about),
        meaning: format!("{column} as expected at {}; {middle} where there are no records", ground.per()),
        quantity: format!("of {column}"),
        unit: target.unit() * half,
        offset: middle,
        target,
    }
}

fn score(column: &str, above: f64, method: Method, target: Arc<dyn Target>, unit: f64, quantity: String) -> Function {
    Function {
        about: description::Target::Classifier(Classifier { label: column.to_owned(), above, method }),
        meaning: format!("a score: above 0 where {column} > {above} is expected, below 0 where it is not"),
        quantity,
        unit,
        offset: 0.0,
        target,
    }
}

fn kernel(document: &mut Document<'_>, written: Spanned<file::Kernel>) -> Found<Kernel> {
    let mut bandwidth = |table: Spanned<file::Width>| {
        let (place, written) = (table.span(), table.into_inner());
        document.required(&place, "bandwidth", written.bandwidth, forms::positive).map(Spanned::into_inner)
    };
    match written.into_inner() {
        file::Kernel::Gaussian(table) => bandwidth(table).map(|bandwidth| Kernel::Gaussian { bandwidth }),
        file::Kernel::Laplacian(table) => bandwidth(table).map(|bandwidth| Kernel::Laplacian { bandwidth }),
        file::Kernel::Polynomial(table) => {
            let (place, written) = (table.span(), table.into_inner());
            let power = document.required(&place, "power", written.power, forms::count)?;
            Ok(Kernel::Polynomial { power: power.into_inner() })
        }
        file::Kernel::Linear => Ok(Kernel::Linear),
    }
}

/// A target that can be built, or why it cannot, said at `place`.
fn built<T: Target + 'static>(
    document: &mut Document<'_>,
    place: &Range<usize>,
    target: Result<T, targets::Error>,
) -> Found<Arc<dyn Target>> {
    match target {
        Ok(target) => Ok(Arc::new(target)),
        Err(error) => Err(document.fault(place.clone(), error.to_string(), "")),
    }
}

/// The column and the bounds of a label that is a number.
fn number<'g>(document: &mut Document<'_>, ground: &'g Ground<'_>, place: &Range<usize>) -> Found<(&'g str, &'g Axis)> {
    match ground.label.map(|label| (label.span(), label.get_ref())) {
        Some((_, Labelled { column, label: Label::Number(axis) })) => Ok((column, axis)),
        Some((label, _)) => Err(document.fault(label, "must be a number, with `min` and `max`", "a class has no mean")),
        None => Err(no_label(document, place)),
    }
}

/// The column and the threshold of a label that is a class.
fn class<'g>(document: &mut Document<'_>, ground: &'g Ground<'_>, place: &Range<usize>) -> Found<(&'g str, f64)> {
    match ground.label.map(|label| (label.span(), label.get_ref())) {
        Some((_, Labelled { column, label: Label::Above(above) })) => Ok((column, *above)),
        Some((label, _)) => {
            Err(document.fault(label, "must be a class, with `above`", "a score tells two classes apart"))
        }
        None => Err(no_label(document, place)),
    }
}

const LABELS: &str = "add a class, label = { column = \"late\", above = 15 }, or a number, label = { column = \"late\", \
                      min = -60, max = 150, outside = \"clamp\" }";

fn no_label(document: &mut Document<'_>, place: &Range<usize>) -> crate::config::document::Reported {
    document.fault(place.clone(), "needs release.label", LABELS)
}

/// One length an axis, in natural units.
fn per_axis(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    key: &str,
    written: Field<Vec<Spanned<f64>>>,
) -> Found<Spanned<Vec<f64>>> {
    let list = document.required(place, key, written, Ok)?;
    lengths(document, ground, list)
}

/// A list of lengths, one an axis, each within its domain.
pub(super) fn lengths(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    list: Spanned<Vec<Spanned<f64>>>,
) -> Found<Spanned<Vec<f64>>> {
    let (axes, count, list_place) = (ground.axes.len(), list.get_ref().len(), list.span());
    if count != axes {
        let what = format!("has {count} numbers for {axes} axes");
        return Err(document.fault(list_place, what, "write one number for each axis"));
    }
    let mut lengths = Vec::new();
    for (length, width) in list.into_inner().into_iter().zip(ground.widths()) {
        let (place, length) = (length.span(), length.into_inner());
        lengths.push(match length > 0.0 && length <= width {
            true => Ok(length),
            false => {
                let what = format!("must be above 0 and at most the width of the domain, {width}");
                Err(document.fault(place, what, "about a twentieth of the width is a good start"))
            }
        });
    }
    Ok(Spanned::new(list_place, lengths.into_iter().collect::<Found<_>>()?))
}

fn in_unit_cube(lengths: &Spanned<Vec<f64>>, ground: &Ground<'_>) -> Vec<f64> {
    lengths.get_ref().iter().zip(ground.widths()).map(|(length, width)| length / width).collect()
}
