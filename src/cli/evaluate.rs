//! `bernstream evaluate`: a synopsis at points, as CSV.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::cli::cluster::Cluster;
use crate::cli::failure::Failure;
use crate::cli::figures::{above_noise, ten_digits};
use crate::cli::newest::{self, Topic};
use crate::cli::print::{line, note, unprinted};
use crate::cli::progress::during;
use crate::cli::reading::{LabelFit, Reading, Width};
use crate::synopsis::approximation::ApproximationBand;
use crate::synopsis::description::{Axis, Choice, Classifier, Definition, Density, Description, Target};
use crate::synopsis::tables::Interval;
use crate::synopsis::{self, Evaluator, Synopsis};

const DEFAULT_POINTS: u32 = 25;

/// Prints a synopsis at points of its domain as CSV: coordinates, value, and the band that holds everywhere at once.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A synopsis, as published or as JSON; `-` reads standard input
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    file: Option<PathBuf>,
    #[command(flatten)]
    topic: Option<Topic>,
    #[command(flatten)]
    cluster: Option<Cluster>,
    /// A point in natural units, one number per axis, separated by commas; can be repeated
    #[arg(long, allow_hyphen_values = true, value_name = "X[,Y[,Z]]", conflicts_with = "points", value_parser = point)]
    at: Vec<Point>,
    /// Evaluate on this many evenly spaced points per axis [default: 25, if no point is given]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    points: Option<u32>,
    /// Order of the Bernstein operator [default: what the synopsis recommends]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::synopsis::bernstein::MAX_ORDER)))]
    order: Option<u32>,
    /// How the released values become a function
    #[arg(long, value_enum, default_value_t = Reading::Bernstein)]
    by: Reading,
    /// Smooth a density by counts of cells with larger bandwidths, in natural units, one per axis, separated by commas
    #[arg(long, value_name = "B[,B[,B]]", value_parser = point)]
    bandwidths: Option<Point>,
    /// Fit the label of tables of cells around each point so [default: a line for a number, a constant for classes]
    #[arg(long, value_enum, conflicts_with_all = ["density", "cumulative", "order", "by"])]
    fit: Option<LabelFit>,
    /// Print the pointwise band: narrower, and valid at any single point instead of everywhere at once
    #[arg(long)]
    pointwise: bool,
    /// Divide by the public number of records, or by the released mass if the number is private
    #[arg(long)]
    density: bool,
    /// Clip negative values to 0, and normalise the density to integrate to 1
    #[arg(long, requires = "density")]
    proper: bool,
    /// Print the cumulative distribution along the one axis, of the records as the kernel smooths them; it never decreases
    #[arg(long, conflicts_with_all = ["density", "pointwise"])]
    cumulative: bool,
    /// Print the description of the synopsis as JSON, and nothing else
    #[arg(long)]
    describe: bool,
    /// Print the whole synopsis as JSON, and nothing else; `evaluate`, `query` and the clients can read it
    #[arg(long, conflicts_with = "describe")]
    json: bool,
}

#[derive(Clone, Debug)]
struct Point(Vec<f64>);

fn point(text: &str) -> Result<Point, String> {
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("'{part}' is not a number"));
    text.split(',').map(number).collect::<Result<_, _>>().map(Point)
}

/// Why nothing, or not everything, was printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}", shown(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}", shown(path))]
    NoSynopsis { path: PathBuf, source: crate::synopsis::Error },
    #[error("cannot print")]
    Print(#[from] io::Error),
    #[error("cannot print the description")]
    Describe(#[from] serde_json::Error),
    #[error(transparent)]
    Synopsis(#[from] crate::synopsis::Error),
    #[error("this synopsis is not a density: remove --density or --cumulative")]
    NoDensity,
    #[error(transparent)]
    Topic(#[from] newest::Error),
    #[error(transparent)]
    Arguments(#[from] Failure),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Print(error) => return unprinted(&error),
            Error::Topic(error) => return error.into(),
            Error::Arguments(failure) => return failure,
            error => error,
        };
        let why = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        let text = format!("{error}{why}");
        match error {
            Error::Read { .. } => Failure::Unavailable(text),
            Error::NoDensity
            | Error::Synopsis(synopsis::Error::NoFunction)
            | Error::Synopsis(
                synopsis::Error::OutsideDomain { .. }
                | synopsis::Error::Dimensions { .. }
                | synopsis::Error::Reading { .. }
                | synopsis::Error::NoOtherBandwidths
                | synopsis::Error::NoTables
                | synopsis::Error::NoLabel
                | synopsis::Error::NoClasses
                | synopsis::Error::Bandwidths { .. }
                | synopsis::Error::NotOneAxis { .. },
            ) => Failure::Configuration(text),
            _ => Failure::Other(text),
        }
    }
}

/// Prints the table, the description or the whole synopsis.
///
/// # Errors
///
/// If no synopsis can be read, if the arguments do not fit it, or if standard output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    Ok(print(arguments)?)
}

fn print(arguments: &Arguments) -> Result<(), Error> {
    let synopsis = match (&arguments.topic, &arguments.cluster, &arguments.file) {
        (Some(topic), Some(cluster), _) => topic.newest(&cluster.broker()?)?,
        (_, _, file) => read(file.as_deref().unwrap_or(Path::new("-")))?,
    };
    let synopsis = match &arguments.bandwidths {
        Some(Point(bandwidths)) => during("simulating the noise", || synopsis.at_bandwidths(bandwidths))?,
        None => synopsis,
    };
    if arguments.describe {
        return Ok(line(serde_json::to_string_pretty(synopsis.description())?)?);
    }
    if arguments.json {
        return Ok(line(synopsis.to_json()?)?);
    }
    let mut csv = Vec::new();
    let Printed { divisor, band, approximation } = during("evaluating", || table(&synopsis, arguments, &mut csv))?;
    io::stdout().lock().write_all(&csv)?;
    note(format_args!("\n{}", what(synopsis.description(), divisor)));
    if let Some(off) = approximation {
        note(format_args!(
            "approximation error: at most {off:.3e} at these points, if the function is as smooth as declared"
        ));
    }
    note(guarantee(synopsis.description(), &band, arguments.pointwise));
    if let Some(reading) = synopsis.description().reading.filter(|_| arguments.by == Reading::Bernstein) {
        note(format_args!("`--by {reading}` is expected to be more accurate; it has no band"));
    }
    Ok(())
}

/// Reads a synopsis, as published or as JSON, which begins with a brace.
///
/// # Errors
///
/// If the file cannot be read or is not a synopsis.
pub(super) fn read(path: &Path) -> Result<Synopsis, Error> {
    let bytes = bytes(path)?;
    let synopsis = match std::str::from_utf8(&bytes) {
        Ok(text) if text.trim_start().starts_with('{') => Synopsis::from_json(text),
        _ => Synopsis::open(&bytes),
    };
    synopsis.map_err(|source| Error::NoSynopsis { path: path.to_owned(), source })
}

/// The name of a file to read.
fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || match path == Path::new("-") {
        true => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        false => std::fs::read(path),
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// What the values were divided by.
#[derive(Clone, Copy)]
enum Divisor {
    Nothing,
    Records(u64),
    Mass(f64),
    /// The mass of what is above 0.
    Clipped(f64),
    /// Everything: the values are shares at or below a point.
    Cumulative,
}

fn table(synopsis: &Synopsis, arguments: &Arguments, out: &mut impl Write) -> Result<Printed, Error> {
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
        (true, Target::Density(Density { divide_by: Some(records), .. }), _) => {
            (Divisor::Records(*records), *records as f64)
        }
        (true, Target::Density(_), mass) if mass > 0.0 => (Divisor::Mass(mass), mass),
        (true, Target::Density(_), mass) => return Err(synopsis::Error::NoMass { mass }.into()),
        (true, ..) => return Err(Error::NoDensity),
    };
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, order)?;
    // Evaluated before the first line is written: a wrong point leaves no partial table.
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let (value, half) = (evaluator.evaluate(&point)?, band.at(&evaluator, &point)?);
        let ends = half.map(|half| evaluator.interval(&point, half)).transpose()?;
        let possible = |x: f64| if arguments.proper { x.max(0.0) } else { x };
        let shown = |x: f64| above_noise(possible(x) / by, half.unwrap_or(value.abs() / 1e3) / by);
        let values = std::iter::once(value).chain(ends.into_iter().flatten());
        let mut cells: Vec<String> =
            point.iter().map(|x| ten_digits(*x)).chain(values.map(shown)).map(|x| x.to_string()).collect();
        if let Target::Classifier(classifier) = &about.target {
            cells.push(class(classifier, value, half.unwrap_or(0.0)));
        }
        rows.push(cells.join(","));
    }
    let bounds = if band == Width::None { "" } else { ",lower,upper" };
    let class = if matches!(about.target, Target::Classifier(_)) { ",class" } else { "" };
    writeln!(out, "{},value{bounds}{class}", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let bound = synopsis.approximation().filter(|_| arguments.by == Reading::Bernstein && order == about.order);
    let largest = |bound: ApproximationBand| {
        let widths = points(about, arguments).into_iter().map(|point| bound.half_width(&point));
        widths.collect::<Result<Vec<f64>, _>>().map(|widths| widths.into_iter().fold(0.0, f64::max) / by)
    };
    Ok(Printed { divisor, band, approximation: bound.map(largest).transpose()? })
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
            point.iter().map(|x| ten_digits(*x)).chain([value]).map(|x| x.to_string()).collect::<Vec<_>>().join(","),
        );
    }
    writeln!(out, "{},value", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    Ok(Printed { divisor: Divisor::Cumulative, band: Width::None, approximation: None })
}

/// The density, or the share at or below a point, of tables of cells.
fn of_tables(synopsis: &Synopsis, arguments: &Arguments, out: &mut impl Write) -> Result<Printed, Error> {
    let (tables, about) = (synopsis.tables()?, synopsis.description());
    let ends = |pick: fn(&Axis) -> f64| about.domain.iter().map(pick).collect::<Vec<f64>>();
    let whole: Vec<[f64; 2]> = about.domain.iter().map(|axis| [axis.min, axis.max]).collect();
    let mass = tables.range(&whole)?.count().value;
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let (value, interval) = if arguments.cumulative {
            // The quotient of sums that the noise allows.
            let sides =
                ends(|axis| axis.min).into_iter().zip(&point).map(|(low, high)| [low, *high]).collect::<Vec<_>>();
            let share = if point == ends(|axis| axis.min) { None } else { Some(tables.range(&sides)?.share()) };
            share.map_or((0.0, Some(Interval { lower: 0.0, upper: 0.0 })), |share| (share.value, share.interval))
        } else if mass > 0.0 {
            let read = tables.kernel(None)?.density(&point)?;
            let within = if arguments.pointwise { read.pointwise } else { read.simultaneous };
            (
                read.value / mass,
                within.map(|Interval { lower, upper }| Interval { lower: lower / mass, upper: upper / mass }),
            )
        } else {
            return Err(synopsis::Error::NoMass { mass }.into());
        };
        let half = interval.map_or(value.abs() / 1e3, |Interval { lower, upper }| (upper - lower) / 2.0);
        let told = |x: f64| above_noise(x, half).to_string();
        let ends =
            interval.map_or(["".to_owned(), "".to_owned()], |Interval { lower, upper }| [told(lower), told(upper)]);
        let row = point.iter().map(|x| ten_digits(*x).to_string()).chain([told(value)]).chain(ends);
        rows.push(row.collect::<Vec<_>>().join(","));
    }
    writeln!(out, "{},value,lower,upper", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let divisor = if arguments.cumulative { Divisor::Cumulative } else { Divisor::Mass(mass) };
    Ok(Printed { divisor, band: Width::None, approximation: None })
}

/// The label of tables of cells, fitted so; without ends where the noise may be all that there is.
fn fitted(synopsis: &Synopsis, fit: LabelFit, arguments: &Arguments, out: &mut impl Write) -> Result<Printed, Error> {
    let about = synopsis.description();
    let function = synopsis.tables()?.fitted(fit.into())?;
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let read = function.read(&point)?;
        let interval = if arguments.pointwise { read.pointwise } else { read.simultaneous };
        let half = interval.map_or(read.value.abs() / 1e3, |Interval { lower, upper }| (upper - lower) / 2.0);
        let told = |x: f64| above_noise(x, half).to_string();
        let ends =
            interval.map_or([const { String::new() }; 2], |interval| [told(interval.lower), told(interval.upper)]);
        let row = point.iter().map(|x| ten_digits(*x).to_string()).chain([told(read.value)]).chain(ends);
        rows.push(row.collect::<Vec<_>>().join(","));
    }
    writeln!(out, "{},value,lower,upper", columns(about))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    let band = Width::new(synopsis, arguments.by, arguments.pointwise, about.order)?;
    Ok(Printed { divisor: Divisor::Nothing, band, approximation: None })
}

fn columns(about: &Description) -> String {
    about.domain.iter().map(|axis| axis.column.as_str()).collect::<Vec<_>>().join(",")
}

/// What was printed beside the values.
struct Printed {
    divisor: Divisor,
    band: Width,
    /// The most that the function differs from that of the exact values, where its smoothness is declared.
    approximation: Option<f64>,
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

fn what(about: &Description, divisor: Divisor) -> String {
    let key = about.key.as_ref().map(|key| format!(", key '{key}'")).unwrap_or_default();
    let (pipeline, release, window) = (&about.pipeline, &about.release, about.window);
    // Behind the semicolon stands how to divide, which is done already.
    let quantity = about.meaning.split(';').next().unwrap_or_default();
    let value = match divisor {
        Divisor::Nothing => about.meaning.clone(),
        Divisor::Records(n) => format!("{}, divided by {n}", about.meaning),
        Divisor::Mass(mass) => {
            format!("{quantity}, divided by the released mass {mass:.1}, whose own noise the band ignores")
        }
        Divisor::Clipped(mass) => format!(
            "{quantity}, clipped at 0 and divided by the remaining mass {mass:.1}, whose own noise the band ignores"
        ),
        Divisor::Cumulative => "the share of records at or below a point, which rises from 0 to 1".to_owned(),
    };
    let simulated = if about.synthetic { "; the records were simulated" } else { "" };
    let span = format!("{} to {}", window.start, window.end);
    format!("{release} of {pipeline}{key}, {span}{simulated}\nvalue: {value}")
}

fn guarantee(about: &Description, band: &Width, pointwise: bool) -> String {
    let (privacy, percent) = (&about.privacy, about.band.level * 100.0);
    let noise = "lower, upper: cover the noise, not the approximation error";
    let band = match band {
        Width::Posterior => {
            "lower, upper: cover the function at any single point with 95 % probability, if the function is as smooth as \
             its kernel"
                .to_owned()
        }
        Width::None => "no band for this reading".to_owned(),
        _ if pointwise => format!("{noise}, at any single point with 95 % probability"),
        _ => format!("{noise}, everywhere at once with {percent} % probability"),
    };
    let definition = match &privacy.definition {
        Definition::PureEpsilon => String::new(),
        random @ Definition::Random(_) => format!("{random}, epsilon {}: ", privacy.price),
        other => format!("{other}, {}: ", privacy.price),
    };
    let choice = |choice: &Choice| format!("\nchosen privately from the records of this window and key: {choice}");
    let choices: String = about.choices.iter().map(choice).collect();
    format!("{band}{choices}\n{definition}{}", privacy.in_words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::synopsis::description::Smoothness;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> Result<Arguments, String> {
        let words = std::iter::once("evaluate").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.arguments).map_err(|e| e.to_string())
    }

    fn example() -> Description {
        serde_json::from_str(include_str!("../synopsis/example.json")).unwrap()
    }

    fn printed(line: &str, values: [f64; 3]) -> Result<String, Error> {
        let mut out = Vec::new();
        let synopsis = Synopsis::new(example(), values.to_vec()).unwrap();
        table(&synopsis, &parse(line).unwrap(), &mut out).map(|_| String::from_utf8(out).unwrap())
    }

    #[test]
    fn points_come_out_in_the_order_asked_for_with_their_band() {
        let csv = printed("file --at 75 --at -30", [2.0, 4.0, 6.0]).unwrap();
        assert_eq!(csv, "dep_delay,value,lower,upper\n75,4,3,5\n-30,2,0.75,3.25\n");
    }

    #[test]
    fn without_points_the_domain_is_covered_from_end_to_end() {
        assert_eq!(printed("file", [1.0; 3]).unwrap().lines().count(), 26);
        let csv = printed("file --points 2", [1.0; 3]).unwrap();
        assert!(csv.contains("\n-30,") && csv.contains("\n180,"), "{csv}");
    }

    #[test]
    fn another_order_gets_a_band_of_its_own() {
        let width = |line| -> f64 {
            let csv = printed(line, [0.0; 3]).unwrap();
            csv.trim().rsplit(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(width("file --at 75 --order 2"), width("file --at 75"));
        assert_ne!(width("file --at 75 --order 5"), width("file --at 75"));
    }

    #[test]
    fn a_density_integrates_to_one_and_needs_a_positive_mass() {
        let csv = printed("file --density --at 75", [2.0, 4.0, 6.0]).unwrap();
        let value: f64 = csv.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
        assert!((value - 1.0 / 210.0).abs() < 1e-5, "{value}");
        assert!(matches!(printed("file --density", [-1.0; 3]), Err(Error::Synopsis(synopsis::Error::NoMass { .. }))));
    }

    #[test]
    fn readings_and_bands_are_asked_for_by_name() {
        let widths = |line: &str| -> (f64, f64) {
            let csv = printed(line, [2.0, 9.0, 4.0]).unwrap();
            let cells: Vec<f64> = csv.lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap()).collect();
            (cells[1], cells[3] - cells[1])
        };
        let (value, everywhere) = widths("file --at 75");
        let (same, at_one_point) = widths("file --at 75 --pointwise");
        assert!(value == same && at_one_point < everywhere, "{at_one_point} {everywhere}");
        assert_eq!(widths("file --at 80 --by nearest").0, 9.0);
        assert!(widths("file --at 75 --by nearest --pointwise").1 < widths("file --at 75 --by nearest").1);
        // Three bumps of a bandwidth of 10 are far apart: nothing to smooth, and the band is that of the prior.
        assert!(widths("file --at 75 --by posterior").1 > 0.0);
        assert!(printed("file --at 75 --by kernel", [1.0; 3]).unwrap().starts_with("dep_delay,value\n"));
    }

    #[test]
    fn cells_are_read_by_their_kernel_and_have_both_bands() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../clients/golden/density-cells-1d-box.json")).unwrap();
        let synopsis = Synopsis::from_json(&golden["synopsis"].to_string()).unwrap();
        let printed = |line: &str| {
            let mut out = Vec::new();
            table(&synopsis, &parse(line).unwrap(), &mut out).map(|_| String::from_utf8(out).unwrap())
        };
        let cells = |line: &str| -> Vec<f64> {
            printed(line).unwrap().lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap()).collect()
        };
        let plain = cells("file --at 0");
        let value = synopsis.evaluate(&[0.0]).unwrap();
        assert!(
            (plain[1] / value - 1.0).abs() < 0.05 && plain[2] < plain[1] && plain[1] < plain[3],
            "{plain:?} {value}"
        );
        assert_eq!(cells("file --at 0 --by kernel"), plain);
        assert_eq!(cells("file --at 0 --order 5"), plain);
        assert!(cells("file --at 0 --pointwise")[3] < plain[3]);
        let refused = printed("file --at 0 --by nearest");
        assert!(matches!(refused, Err(Error::Synopsis(synopsis::Error::Reading { .. }))));
    }

    #[test]
    fn a_label_of_cells_is_fitted_as_is_asked_for() {
        let golden = |name: &str| {
            let text = match name {
                "classes" => include_str!("../../clients/golden/cells-classes-2d.json"),
                "number" => include_str!("../../clients/golden/cells-number-1d.json"),
                _ => include_str!("../../clients/golden/cells-1d.json"),
            };
            let golden: serde_json::Value = serde_json::from_str(text).unwrap();
            Synopsis::from_json(&golden["synopsis"].to_string()).unwrap()
        };
        let printed = |name: &str, line: &str| {
            let mut out = Vec::new();
            table(&golden(name), &parse(line).unwrap(), &mut out).map(|_| String::from_utf8(out).unwrap())
        };
        let first = |name: &str, line: &str| -> Vec<f64> {
            let csv = printed(name, line).unwrap();
            csv.lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap_or(f64::NAN)).collect()
        };
        let at = "file --at 20,12 --pointwise";
        let [constant, linear, naive] =
            ["constant", "linear", "naive"].map(|fit| first("classes", &format!("{at} --fit {fit}")));
        assert!(constant[2] != linear[2] && naive[2] != constant[2], "{constant:?} {linear:?} {naive:?}");
        assert!(naive[3] <= naive[2] && naive[2] <= naive[4], "{naive:?}");
        assert_eq!(first("classes", at)[2], constant[2]);
        assert!(first("classes", "file --at 20,12 --fit naive")[4] > naive[4]);
        assert!(matches!(printed("number", "file --fit naive"), Err(Error::Synopsis(synopsis::Error::NoClasses))));
        assert!(matches!(printed("none", "file --fit linear"), Err(Error::Synopsis(synopsis::Error::NoLabel))));
        assert!(parse("file --fit naive --density").is_err() && parse("file --fit cubic").is_err());
    }

    #[test]
    fn the_approximation_error_is_shown_if_a_smoothness_is_declared() {
        let shown = |smoothness: Option<Smoothness>, line: &str| {
            let about = Description { smoothness, ..example() };
            let synopsis = Synopsis::new(about, vec![1.0; 3]).unwrap();
            table(&synopsis, &parse(line).unwrap(), &mut Vec::new()).unwrap().approximation
        };
        let declared = || Some(Smoothness::Lipschitz(vec![0.01]));
        assert_eq!(shown(None, "file"), None);
        assert!(shown(declared(), "file").unwrap() > 0.7);
        assert_eq!(shown(declared(), "file --by posterior"), None);
        assert_eq!(shown(declared(), "file --order 3"), None);
    }

    #[test]
    fn a_proper_density_and_a_distribution_are_clipped_and_rise() {
        let csv = printed("file --density --proper", [9.0, -8.0, 3.0]).unwrap();
        assert!(!csv.contains(",-"), "{csv}");
        let csv = printed("file --cumulative --points 40", [9.0, -2.0, 3.0]).unwrap();
        let values: Vec<f64> = csv.lines().skip(1).map(|l| l.rsplit(',').next().unwrap().parse().unwrap()).collect();
        assert!(values.is_sorted() && values[0] == 0.0 && values[39] == 1.0, "{csv}");
        assert!(parse("file --proper").is_err() && parse("file --cumulative --density").is_err());
    }

    #[test]
    fn a_command_line_names_a_file_or_a_topic_with_its_brokers() {
        for wrong in ["", "--topic t", "--brokers b", "file --topic t --brokers b", "file --key K", "file --at x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["file --points 1", "file --order 0", "file --at 1 --points 3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--topic t --brokers b --key K --window 2013-01-01T05:00:00Z").unwrap().topic.is_some());
        assert!(parse("- --at -12.5,3").unwrap().topic.is_none());
    }
}
