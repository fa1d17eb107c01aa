//! The table of `evaluate`: points, values and bounds as CSV.

use std::io::Write;

use super::asked::EvaluateArguments;
use super::error::EvaluateError;
use crate::cli::figures::{above_noise, ten_digits, three_digits};
use crate::cli::reading::{LabelFit, ReadingArgument, Width};
use bernstream_synopsis as synopsis;
use bernstream_synopsis::approximation::ApproximationBand;
use bernstream_synopsis::description::{
    AxisDescription, Classifier, Density, Description, TargetDescription,
};
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate, Tables};
use bernstream_synopsis::{Evaluator, Synopsis};

const DEFAULT_POINTS: u32 = 25;

/// The divisor of the values.
#[derive(Clone, Copy)]
pub(super) enum Divisor {
    Nothing,
    Records(u64),
    Mass(f64),
    /// The mass of what is above 0.
    Clipped(f64),
    /// Everything: the values are shares at or below a point.
    Cumulative,
}

impl Divisor {
    fn value(self) -> f64 {
        match self {
            Divisor::Nothing | Divisor::Cumulative => 1.0,
            Divisor::Records(records) => records as f64,
            Divisor::Mass(mass) | Divisor::Clipped(mass) => mass,
        }
    }
}

pub(super) fn write_table(
    synopsis: &Synopsis,
    arguments: &EvaluateArguments,
    out: &mut impl Write,
) -> Result<Printed, EvaluateError> {
    let about = synopsis.description();
    if let Some(fit) = arguments.fit {
        return fitted_table(synopsis, fit, arguments, out);
    }
    let order = arguments.order.unwrap_or(about.order);
    let evaluator = synopsis.evaluator(arguments.by.at_order(order))?;
    if let TargetDescription::Cells(_) = about.target
        && (arguments.density || arguments.cumulative)
    {
        return table_of_cells(synopsis, arguments, out);
    }
    if arguments.cumulative {
        return cumulative_table(about, evaluator, arguments, out);
    }
    let divisor = divisor(about, &evaluator, arguments)?;
    let by = divisor.value();
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, order)?;
    // Evaluated before the first line is written: a wrong point leaves no partial table.
    let mut rows = Vec::new();
    let mut widest = 0.0_f64;
    for point in points_to_print(about, arguments) {
        let value = evaluator.evaluate(&point)?;
        let half = band.half_width_at(&evaluator, &point)?;
        widest = widest.max(half.unwrap_or(0.0));
        let ends = half
            .map(|half| evaluator.interval(&point, half))
            .transpose()?;
        let precision = half.unwrap_or(value.abs() / 1e3) / by;
        let mut cells = coordinates(&point);
        for number in std::iter::once(value).chain(ends.into_iter().flatten()) {
            let possible = if arguments.proper {
                number.max(0.0)
            } else {
                number
            };
            cells.push(above_noise(possible / by, precision).to_string());
        }
        if let TargetDescription::Classifier(classifier) = &about.target {
            cells.push(class_in_words(classifier, value, half.unwrap_or(0.0)));
        }
        rows.push(cells.join(","));
    }
    let bounds = if band == Width::None {
        ""
    } else {
        ",lower,upper"
    };
    let class = if matches!(about.target, TargetDescription::Classifier(_)) {
        ",class"
    } else {
        ""
    };
    write_rows(
        out,
        &format!("{},value{bounds}{class}", column_names(about)),
        &rows,
    )?;
    let is_published = arguments.by == ReadingArgument::Bernstein && order == about.order;
    let approximation = match synopsis.approximation_band().filter(|_| is_published) {
        Some(bound) => Some(largest_error(&bound, &points_to_print(about, arguments))? / by),
        None => None,
    };
    let form = synopsis
        .form_error()
        .filter(|_| is_published && !arguments.proper)
        .map(|error| with_form(error / by, widest / by, arguments.pointwise));
    Ok(Printed {
        divisor,
        band,
        approximation,
        form,
    })
}

fn largest_error(bound: &ApproximationBand, points: &[Vec<f64>]) -> Result<f64, EvaluateError> {
    let mut largest = 0.0_f64;
    for point in points {
        largest = largest.max(bound.half_width(point)?);
    }
    Ok(largest)
}

/// The divisor that is asked for, if the synopsis has it.
fn divisor(
    about: &Description,
    evaluator: &Evaluator,
    arguments: &EvaluateArguments,
) -> Result<Divisor, EvaluateError> {
    if !arguments.density {
        return Ok(Divisor::Nothing);
    }
    let TargetDescription::Density(Density { divide_by, .. }) = &about.target else {
        return Err(EvaluateError::NoDensity);
    };
    if arguments.proper {
        return Ok(Divisor::Clipped(evaluator.clone().proper_density()?.mass()));
    }
    if let Some(records) = divide_by {
        return Ok(Divisor::Records(*records));
    }
    let mass = evaluator.total_mass();
    if mass > 0.0 {
        Ok(Divisor::Mass(mass))
    } else {
        Err(synopsis::SynopsisError::NoMass { mass }.into())
    }
}

fn write_rows(out: &mut impl Write, header: &str, rows: &[String]) -> Result<(), EvaluateError> {
    writeln!(out, "{header}")?;
    for row in rows {
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// The cells of a point: its coordinates.
fn coordinates(point: &[f64]) -> Vec<String> {
    point.iter().map(|x| ten_digits(*x).to_string()).collect()
}

fn cumulative_table(
    about: &Description,
    evaluator: Evaluator,
    by: &EvaluateArguments,
    out: &mut impl Write,
) -> Result<Printed, EvaluateError> {
    if !matches!(about.target, TargetDescription::Density(_)) {
        return Err(EvaluateError::NoDensity);
    }
    let function = evaluator.distribution_function()?;
    let mut rows = Vec::new();
    for point in points_to_print(about, by) {
        let mut cells = coordinates(&point);
        cells.push(above_noise(function.evaluate(&point)?, 1e-2).to_string());
        rows.push(cells.join(","));
    }
    write_rows(out, &format!("{},value", column_names(about)), &rows)?;
    Ok(Printed::new(Divisor::Cumulative, Width::None))
}

/// The density, or the share at or below a point, of tables of cells.
fn table_of_cells(
    synopsis: &Synopsis,
    arguments: &EvaluateArguments,
    out: &mut impl Write,
) -> Result<Printed, EvaluateError> {
    let tables = synopsis.tables()?;
    let about = synopsis.description();
    let whole: Vec<[f64; 2]> = about
        .domain
        .iter()
        .map(|axis| [axis.min, axis.max])
        .collect();
    let mass = tables.range(&whole)?.count().value;
    let mut rows = Vec::new();
    for point in points_to_print(about, arguments) {
        let estimate = if arguments.cumulative {
            share_below(&tables, &about.domain, &point)?
        } else if mass > 0.0 {
            let read = tables.kernel(None)?.density(&point)?;
            let within = if arguments.pointwise {
                read.pointwise
            } else {
                read.simultaneous
            };
            Estimate {
                value: read.value / mass,
                interval: within.map(|ConfidenceInterval { lower, upper }| ConfidenceInterval {
                    lower: lower / mass,
                    upper: upper / mass,
                }),
            }
        } else {
            return Err(synopsis::SynopsisError::NoMass { mass }.into());
        };
        rows.push(row_of_estimate(&point, estimate));
    }
    write_rows(
        out,
        &format!("{},value,lower,upper", column_names(about)),
        &rows,
    )?;
    let divisor = if arguments.cumulative {
        Divisor::Cumulative
    } else {
        Divisor::Mass(mass)
    };
    Ok(Printed::new(divisor, Width::None))
}

/// The share of records at or below a point: the quotient of sums that the noise allows.
fn share_below(
    tables: &Tables,
    domain: &[AxisDescription],
    point: &[f64],
) -> Result<Estimate, EvaluateError> {
    let sides: Vec<[f64; 2]> = domain
        .iter()
        .zip(point)
        .map(|(axis, high)| [axis.min, *high])
        .collect();
    if domain.len() == point.len() && sides.iter().all(|[low, high]| low == high) {
        return Ok(Estimate {
            value: 0.0,
            interval: Some(ConfidenceInterval {
                lower: 0.0,
                upper: 0.0,
            }),
        });
    }
    Ok(tables.range(&sides)?.share())
}

/// A point, a value and its interval, which is empty where the noise may be all that there is.
fn row_of_estimate(point: &[f64], Estimate { value, interval }: Estimate) -> String {
    let half = interval.map_or(value.abs() / 1e3, |ConfidenceInterval { lower, upper }| {
        (upper - lower) / 2.0
    });
    let mut cells = coordinates(point);
    cells.push(above_noise(value, half).to_string());
    match interval {
        Some(ConfidenceInterval { lower, upper }) => {
            cells.push(above_noise(lower, half).to_string());
            cells.push(above_noise(upper, half).to_string());
        }
        None => cells.extend([String::new(), String::new()]),
    }
    cells.join(",")
}

/// The label of tables of cells, fitted so; without ends where the noise may be all that there is.
fn fitted_table(
    synopsis: &Synopsis,
    fit: LabelFit,
    arguments: &EvaluateArguments,
    out: &mut impl Write,
) -> Result<Printed, EvaluateError> {
    let about = synopsis.description();
    let function = synopsis.tables()?.fitted(fit.into())?;
    let mut rows = Vec::new();
    for point in points_to_print(about, arguments) {
        let read = function.read_point(&point)?;
        let interval = if arguments.pointwise {
            read.pointwise
        } else {
            read.simultaneous
        };
        let estimate = Estimate {
            value: read.value,
            interval,
        };
        rows.push(row_of_estimate(&point, estimate));
    }
    write_rows(
        out,
        &format!("{},value,lower,upper", column_names(about)),
        &rows,
    )?;
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, about.order)?;
    Ok(Printed::new(Divisor::Nothing, band))
}

/// The band holds in 19 of 20 windows, and so does the sum of the values that the form is reckoned with.
fn with_form(error: f64, widest: f64, pointwise: bool) -> String {
    let [error, within] = [error, error + widest].map(three_digits);
    let at = if pointwise {
        "at any single point"
    } else {
        "at all of these points"
    };
    format!(
        "what it cannot follow is at most {error}, wherever the records are: with the noise within {within} {at} in at least 9 of 10 windows"
    )
}

fn column_names(about: &Description) -> String {
    about
        .domain
        .iter()
        .map(|axis| axis.column.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

/// Everything that is to be said beside the printed values.
pub(super) struct Printed {
    pub divisor: Divisor,
    pub band: Width,
    /// The most that the function differs from that of the exact values, where its smoothness is declared.
    pub approximation: Option<f64>,
    /// The bound of noise and form together, in words, where the description says how far the form is off.
    pub form: Option<String>,
}

impl Printed {
    fn new(divisor: Divisor, band: Width) -> Self {
        Printed {
            divisor,
            band,
            approximation: None,
            form: None,
        }
    }
}

/// The class that a score predicts, unless the noise is larger than the score.
fn class_in_words(classifier: &Classifier, score: f64, half_width: f64) -> String {
    let Classifier { label, above, .. } = classifier;
    if score.abs() <= half_width {
        "too close to call".to_owned()
    } else if score > 0.0 {
        format!("{label} > {above}")
    } else {
        format!("{label} <= {above}")
    }
}

/// The points asked for, or a grid over the domain, the last axis fastest.
fn points_to_print(about: &Description, arguments: &EvaluateArguments) -> Vec<Vec<f64>> {
    if !arguments.at.is_empty() {
        return arguments.at.iter().map(|point| point.0.clone()).collect();
    }
    about.even_points(arguments.points.unwrap_or(DEFAULT_POINTS))
}
