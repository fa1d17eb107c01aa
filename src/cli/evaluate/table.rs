//! The table of `evaluate`: points, values and bounds as CSV.

use std::io::Write;

use super::asked::Arguments;
use super::error::Error;
use crate::cli::figures::{above_noise, ten_digits, three_digits};
use crate::cli::reading::{LabelFit, Reading, Width};
use bernstream_synopsis as synopsis;
use bernstream_synopsis::approximation::ApproximationBand;
use bernstream_synopsis::description::{Axis, Classifier, Density, Description, Target};
use bernstream_synopsis::tables::Interval;
use bernstream_synopsis::{Evaluator, Synopsis};

const DEFAULT_POINTS: u32 = 25;

/// What the values were divided by.
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

pub(super) fn table(
    synopsis: &Synopsis,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<Printed, Error> {
    let about = synopsis.description();
    if let Some(fit) = arguments.fit {
        return fitted(synopsis, fit, arguments, out);
    }
    let order = arguments.order.unwrap_or(about.order);
    let evaluator = synopsis.evaluator(arguments.by.at_order(order))?;
    if let Target::Cells(_) = about.target
        && (arguments.density || arguments.cumulative)
    {
        return of_tables(synopsis, arguments, out);
    }
    if arguments.cumulative {
        return cumulative(about, evaluator, arguments, out);
    }
    let (divisor, by) = match (arguments.density, &about.target, evaluator.mass()) {
        (false, ..) => (Divisor::Nothing, 1.0),
        (true, Target::Density(_), _) if arguments.proper => {
            let mass = evaluator.clone().proper()?.mass();
            (Divisor::Clipped(mass), mass)
        }
        (
            true,
            Target::Density(Density {
                divide_by: Some(records),
                ..
            }),
            _,
        ) => (Divisor::Records(*records), *records as f64),
        (true, Target::Density(_), mass) if mass > 0.0 => (Divisor::Mass(mass), mass),
        (true, Target::Density(_), mass) => return Err(synopsis::Error::NoMass { mass }.into()),
        (true, ..) => return Err(Error::NoDensity),
    };
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, order)?;
    // Evaluated before the first line is written: a wrong point leaves no partial table.
    let mut rows = Vec::new();
    let mut widest = 0.0_f64;
    for point in points(about, arguments) {
        let value = evaluator.evaluate(&point)?;
        let half = band.at(&evaluator, &point)?;
        widest = widest.max(half.unwrap_or(0.0));
        let ends = half
            .map(|half| evaluator.interval(&point, half))
            .transpose()?;
        let possible = |x: f64| if arguments.proper { x.max(0.0) } else { x };
        let shown = |x: f64| above_noise(possible(x) / by, half.unwrap_or(value.abs() / 1e3) / by);
        let values = std::iter::once(value).chain(ends.into_iter().flatten());
        let mut cells: Vec<String> = point
            .iter()
            .map(|x| ten_digits(*x))
            .chain(values.map(shown))
            .map(|x| x.to_string())
            .collect();
        if let Target::Classifier(classifier) = &about.target {
            cells.push(class(classifier, value, half.unwrap_or(0.0)));
        }
        rows.push(cells.join(","));
    }
    let bounds = if band == Width::None {
        ""
    } else {
        ",lower,upper"
    };
    let class = if matches!(about.target, Target::Classifier(_)) {
        ",class"
    } else {
        ""
    };
    writeln!(out, "{},value{bounds}{class}", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let bound = synopsis
        .approximation()
        .filter(|_| arguments.by == Reading::Bernstein && order == about.order);
    let largest = |bound: ApproximationBand| {
        let widths = points(about, arguments)
            .into_iter()
            .map(|point| bound.half_width(&point));
        widths
            .collect::<Result<Vec<f64>, _>>()
            .map(|widths| widths.into_iter().fold(0.0, f64::max) / by)
    };
    let is_published =
        arguments.by == Reading::Bernstein && order == about.order && !arguments.proper;
    let form = synopsis
        .form_error()
        .filter(|_| is_published)
        .map(|error| with_form(error / by, widest / by, arguments.pointwise));
    Ok(Printed {
        divisor,
        band,
        approximation: bound.map(largest).transpose()?,
        form,
    })
}

fn cumulative(
    about: &Description,
    evaluator: Evaluator,
    by: &Arguments,
    out: &mut impl Write,
) -> Result<Printed, Error> {
    if !matches!(about.target, Target::Density(_)) {
        return Err(Error::NoDensity);
    }
    let function = evaluator.cumulative()?;
    let mut rows = Vec::new();
    for point in points(about, by) {
        let value = above_noise(function.evaluate(&point)?, 1e-2);
        rows.push(
            point
                .iter()
                .map(|x| ten_digits(*x))
                .chain([value])
                .map(|x| x.to_string())
                .collect::<Vec<_>>()
                .join(","),
        );
    }
    writeln!(out, "{},value", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    Ok(Printed {
        divisor: Divisor::Cumulative,
        band: Width::None,
        approximation: None,
        form: None,
    })
}

/// The density, or the share at or below a point, of tables of cells.
fn of_tables(
    synopsis: &Synopsis,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<Printed, Error> {
    let tables = synopsis.tables()?;
    let about = synopsis.description();
    let ends = |pick: fn(&Axis) -> f64| about.domain.iter().map(pick).collect::<Vec<f64>>();
    let whole: Vec<[f64; 2]> = about
        .domain
        .iter()
        .map(|axis| [axis.min, axis.max])
        .collect();
    let mass = tables.range(&whole)?.count().value;
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let (value, interval) = if arguments.cumulative {
            // The quotient of sums that the noise allows.
            let sides = ends(|axis| axis.min)
                .into_iter()
                .zip(&point)
                .map(|(low, high)| [low, *high])
                .collect::<Vec<_>>();
            let share = if point == ends(|axis| axis.min) {
                None
            } else {
                Some(tables.range(&sides)?.share())
            };
            share.map_or(
                (
                    0.0,
                    Some(Interval {
                        lower: 0.0,
                        upper: 0.0,
                    }),
                ),
                |share| (share.value, share.interval),
            )
        } else if mass > 0.0 {
            let read = tables.kernel(None)?.density(&point)?;
            let within = if arguments.pointwise {
                read.pointwise
            } else {
                read.simultaneous
            };
            (
                read.value / mass,
                within.map(|Interval { lower, upper }| Interval {
                    lower: lower / mass,
                    upper: upper / mass,
                }),
            )
        } else {
            return Err(synopsis::Error::NoMass { mass }.into());
        };
        let half = interval.map_or(value.abs() / 1e3, |Interval { lower, upper }| {
            (upper - lower) / 2.0
        });
        let told = |x: f64| above_noise(x, half).to_string();
        let ends = interval.map_or(
            ["".to_owned(), "".to_owned()],
            |Interval { lower, upper }| [told(lower), told(upper)],
        );
        let row = point
            .iter()
            .map(|x| ten_digits(*x).to_string())
            .chain([told(value)])
            .chain(ends);
        rows.push(row.collect::<Vec<_>>().join(","));
    }
    writeln!(out, "{},value,lower,upper", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let divisor = if arguments.cumulative {
        Divisor::Cumulative
    } else {
        Divisor::Mass(mass)
    };
    Ok(Printed {
        divisor,
        band: Width::None,
        approximation: None,
        form: None,
    })
}

/// The label of tables of cells, fitted so; without ends where the noise may be all that there is.
fn fitted(
    synopsis: &Synopsis,
    fit: LabelFit,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<Printed, Error> {
    let about = synopsis.description();
    let function = synopsis.tables()?.fitted(fit.into())?;
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let read = function.read(&point)?;
        let interval = if arguments.pointwise {
            read.pointwise
        } else {
            read.simultaneous
        };
        let half = interval.map_or(read.value.abs() / 1e3, |Interval { lower, upper }| {
            (upper - lower) / 2.0
        });
        let told = |x: f64| above_noise(x, half).to_string();
        let ends = interval.map_or([const { String::new() }; 2], |interval| {
            [told(interval.lower), told(interval.upper)]
        });
        let row = point
            .iter()
            .map(|x| ten_digits(*x).to_string())
            .chain([told(read.value)])
            .chain(ends);
        rows.push(row.collect::<Vec<_>>().join(","));
    }
    writeln!(out, "{},value,lower,upper", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, about.order)?;
    Ok(Printed {
        divisor: Divisor::Nothing,
        band,
        approximation: None,
        form: None,
    })
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

fn columns(about: &Description) -> String {
    about
        .domain
        .iter()
        .map(|axis| axis.column.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

/// What was printed beside the values.
pub(super) struct Printed {
    pub divisor: Divisor,
    pub band: Width,
    /// The most that the function differs from that of the exact values, where its smoothness is declared.
    pub approximation: Option<f64>,
    /// What noise and form together stay within, in words, where the description says how far the form is off.
    pub form: Option<String>,
}

/// The class that a score predicts, unless the noise is larger than the score.
fn class(classifier: &Classifier, score: f64, half_width: f64) -> String {
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
fn points(about: &Description, arguments: &Arguments) -> Vec<Vec<f64>> {
    if !arguments.at.is_empty() {
        return arguments.at.iter().map(|point| point.0.clone()).collect();
    }
    about.even_points(arguments.points.unwrap_or(DEFAULT_POINTS))
}
