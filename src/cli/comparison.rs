//! `bernstream explain --compare`: what other functions would tell at the same price, on public records.
//!
//! Every function is built, noised and read as a worker and its readers do, on records of a public law, or of a file that its owner
//! says is public; never on those of the stream.

mod reading;
mod trial;
mod world;

use std::path::{Path, PathBuf};

use crate::cli::comparison::reading::{LEAST, Reading};
use crate::cli::comparison::trial::{Contender, DRAWS, MeanError, Measured, measured};
use crate::cli::comparison::world::{BENDS, Record, World, rows};
use crate::cli::failure::Failure;
use crate::cli::figures::three_digits;
use crate::cli::print::section;
use crate::cli::progress::{counting, during};
use bernstream_config::{Release, Settings};
use bernstream_release::window::Label;
use bernstream_synopsis::description::{Axis, Method, Target};
use bernstream_synopsis::price::Price;

/// Most records of a window that is simulated.
const MOST_RECORDS: u64 = 100_000;

/// On what to compare.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Show instead what cells, machines and logistic regression would each tell at this price, on public records, and which to
    /// take: for releases with a label
    #[arg(long)]
    pub compare: bool,
    /// Compare on windows of so many records, a public guess [default: what the file expects]
    #[arg(long, requires = "compare", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,
    /// Compare on the rows of this file, or of the files of this folder, with the columns of the input: its rows must be public, because
    /// what is printed is not private
    #[arg(long, requires = "compare", value_name = "FILE")]
    public_sample: Option<PathBuf>,
}

/// A line of the table.
struct Line<'c> {
    contender: &'c Contender,
    reading: &'c Reading,
    measured: Measured,
}

/// The errors that lines are ordered by. A reading that tells classes alone comes after all that tell a probability.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Rank {
    error: f64,
    wrong: f64,
}

/// Rows of a file that its owner says is public.
struct PublicSample<'p> {
    rows: Vec<Record>,
    path: &'p Path,
}

/// The tables of all releases.
///
/// # Errors
///
/// If no release can be compared, if the number of records is not known, or if the public file cannot be read.
pub fn text(settings: &Settings, arguments: &Arguments) -> Result<String, Failure> {
    let mut text = String::new();
    let mut refused = Vec::new();
    let mut compared = 0;
    for release in &settings.releases {
        let heading = format!("Comparison of {}", release.name);
        match settings.question(release) {
            Ok(label) => {
                section(
                    &mut text,
                    &heading,
                    &of_release(settings, release, label, arguments)?,
                );
                compared += 1;
            }
            Err(why) => {
                section(&mut text, &heading, &[why.to_string()]);
                refused.push(format!(
                    "release {:?} cannot be compared: {why}",
                    release.name
                ));
            }
        }
    }
    if compared == 0 {
        Err(Failure::Configuration(refused.join("\n")))
    } else {
        Ok(text)
    }
}

fn of_release(
    settings: &Settings,
    release: &Release,
    label: &Label,
    arguments: &Arguments,
) -> Result<Vec<String>, Failure> {
    let known = arguments.records.or_else(|| records(release)).ok_or_else(|| {
        let name = &release.name;
        Failure::Configuration(format!(
            "release {name:?} does not say how many records a window has: add --records, a public guess"
        ))
    })?;
    let simulated = known.min(MOST_RECORDS);
    let public = match &arguments.public_sample {
        Some(path) => Some(PublicSample {
            rows: rows(path, settings, release, label)?,
            path,
        }),
        None => None,
    };
    let Selected { contenders, absent } = during("selecting what is automatic", || {
        select_contenders(settings, release, label, known)
    })?;
    let worlds = during("drawing records", || {
        draw_worlds(release, label, public.as_ref(), simulated)
    });
    let found = counting("comparing windows", |done| {
        measured(&contenders, &worlds, done)
    })?;
    let mut lines = Vec::new();
    for (contender, found) in contenders.iter().zip(found) {
        for (reading, measured) in contender.readings.iter().zip(found) {
            lines.push(Line {
                contender,
                reading,
                measured,
            });
        }
    }
    let lines = best_of_each(lines);
    let mut text = preface(release, label, known, simulated, public.as_ref());
    text.extend(table(&lines, label));
    for Absent { kind, why } in absent {
        text.push(format!("not in the table: {kind}: {why}"));
    }
    text.extend(recommendation(&lines, release, label));
    Ok(text)
}

/// One world for each width of the bends.
fn draw_worlds(
    release: &Release,
    label: &Label,
    public: Option<&PublicSample<'_>>,
    records: u64,
) -> Vec<World> {
    (0..BENDS.len())
        .map(|number| match public {
            Some(public) => World::resampled(release, label, &public.rows, records, number),
            None => World::drawn(release, label, records, number),
        })
        .collect()
}

/// The functions to compare, and those that cannot be released.
struct Selected {
    /// The release of the file first.
    contenders: Vec<Contender>,
    absent: Vec<Absent>,
}

/// A kind of function that cannot be released, and why.
#[derive(PartialEq)]
struct Absent {
    kind: String,
    why: String,
}

/// The noise that was selected for an alternative, as lines of a file, which holds for all of its family.
struct SelectedNoise {
    family: String,
    lines: String,
}

fn select_contenders(
    settings: &Settings,
    release: &Release,
    label: &Label,
    records: u64,
) -> Result<Selected, Failure> {
    let shape = release.shape();
    let own = Reading::of_own(
        &shape.basis,
        shape.values(),
        label,
        &release.narrowest(),
        &domain(release),
    );
    let mut contenders = vec![Contender::new(
        settings,
        release,
        format!("this file: {}", release.kind()),
        None,
        own,
    )?];
    let mut absent: Vec<Absent> = Vec::new();
    // The search takes longer than all the rest: once a family is enough.
    let mut selected: Option<SelectedNoise> = None;
    for alternative in release.alternatives(label, records) {
        let noise = selected
            .as_ref()
            .filter(|noise| noise.family == alternative.family);
        let lines = alternative.lines(noise.map(|noise| noise.lines.as_str()));
        match settings.with_lines(release, &lines) {
            Ok(other) => {
                let shape = other.shape();
                let readings = Reading::of(&shape.basis, shape.values(), label);
                selected = other.noise_lines().map(|lines| SelectedNoise {
                    family: alternative.family,
                    lines,
                });
                contenders.push(Contender::new(
                    settings,
                    &other,
                    alternative.kind,
                    Some(lines),
                    readings,
                )?);
            }
            Err(faults) => absent.push(Absent {
                kind: alternative.kind,
                why: faults.reason(),
            }),
        }
    }
    absent.dedup();
    Ok(Selected { contenders, absent })
}

/// What the comparison rests on.
fn preface(
    release: &Release,
    label: &Label,
    records: u64,
    simulated: u64,
    public: Option<&PublicSample<'_>>,
) -> Vec<String> {
    let price = match release.payment.own() {
        pure @ Price::Pure(_) => format!("epsilon {pure}"),
        other => other.to_string(),
    };
    let mut lines = vec![format!(
        "at this price of the noise of a window, {price}, and {records} records a window: {} windows, {DRAWS} draws of noise for each",
        BENDS.len()
    )];
    if simulated < records {
        lines.push(format!(
            "the windows have {simulated} records: with more of them the noise counts for less"
        ));
    }
    let bends = BENDS.map(|bend| bend.to_string()).join(", ");
    lines.push(match public {
        Some(PublicSample { rows, path }) => format!(
            "on {} public rows of {}, whatever their time and key: windows are drawn from one half of them, and judged by the other",
            rows.len(),
            path.display()
        ),
        None => format!(
            "on records of public laws, none of the stream: half of the places in a cluster and half anywhere, and curves with bends \
             as wide as {bends} of an axis; your records may follow another law: --public-sample takes a file that is public"
        ),
    });
    lines.push(match label {
        Label::Number(_) if public.is_none() => {
            "error: how far the expected label is off at a place where a record is, in the units of the label".to_owned()
        }
        Label::Number(_) => {
            "error: how far the expected label is from that of a row, which scatters by itself, in the units of the label".to_owned()
        }
        _ => format!(
            "error: the log loss of a record, whose probability counts as at least {LEAST}; wrong: the share of records in another class \
             than the likeliest"
        ),
    });
    lines
}

/// The records that the file expects in a window.
fn records(release: &Release) -> Option<u64> {
    let most = match &release.function.about {
        Target::Regression(about) => max_records(&about.method),
        Target::Classifier(about) | Target::Probability(about) => max_records(&about.method),
        _ => None,
    };
    release.expected_records.or(most)
}

fn max_records(method: &Method) -> Option<u64> {
    match method {
        Method::PriestleyChao { max_records, .. }
        | Method::KernelMachine { max_records, .. }
        | Method::Logistic { max_records, .. } => Some(u64::from(*max_records)),
        Method::KernelBayes { .. } | Method::GaussianBayes { .. } => None,
    }
}

fn domain(release: &Release) -> Vec<Axis> {
    let axes = release.columns.iter().zip(&release.axes);
    axes.map(|(column, axis)| Axis {
        column: column.clone(),
        min: axis.min,
        max: axis.max,
    })
    .collect()
}

/// The best of the lines that differ in a free number and in their reading alone; of the file's own release every reading.
fn best_of_each(lines: Vec<Line<'_>>) -> Vec<Line<'_>> {
    let mut best: Vec<Line<'_>> = Vec::new();
    for line in lines {
        let is_own = line.contender.lines.is_none();
        let title = &line.contender.title;
        match best
            .iter_mut()
            .find(|other| !is_own && other.contender.title == *title)
        {
            Some(other) if line.rank() < other.rank() => *other = line,
            Some(_) => {}
            None => best.push(line),
        }
    }
    best.sort_by(|a, b| {
        let (a, b) = (a.rank(), b.rank());
        let by_error = a.error.total_cmp(&b.error);
        by_error.then(a.wrong.total_cmp(&b.wrong))
    });
    best
}

impl Line<'_> {
    fn rank(&self) -> Rank {
        Rank {
            error: mean_or_infinity(self.measured.error),
            wrong: mean_or_infinity(self.measured.wrong),
        }
    }

    fn name(&self) -> String {
        format!("{}, by {}", self.contender.title, self.reading.name())
    }
}

fn mean_or_infinity(error: Option<MeanError>) -> f64 {
    error.map_or(f64::INFINITY, |error| error.mean)
}

fn table(lines: &[Line<'_>], label: &Label) -> Vec<String> {
    let has_classes = !matches!(label, Label::Number(_));
    let titles = lines.iter().map(|line| line.contender.title.len());
    let readings = lines.iter().map(|line| line.reading.name().len());
    let widths = ColumnWidths {
        title: titles.max().unwrap_or(0).max(8),
        reading: readings.max().unwrap_or(0).max(7),
    };
    let wrong = if has_classes { "wrong" } else { "" };
    let mut text = vec![widths.row(
        " ",
        ["function", "read by", "error", "without noise", wrong],
    )];
    for (number, line) in lines.iter().enumerate() {
        let Measured {
            error,
            wrong,
            without_noise,
        } = &line.measured;
        let mark = if number == 0 { "*" } else { " " };
        let quiet = without_noise.map_or("-".to_owned(), three_digits);
        let wrong = if has_classes {
            with_deviation(*wrong)
        } else {
            String::new()
        };
        text.push(widths.row(
            mark,
            [
                &line.contender.title,
                &line.reading.name(),
                &with_deviation(*error),
                &quiet,
                &wrong,
            ],
        ));
    }
    text.push(
        "error +- its standard deviation by the noise that was drawn; every call draws anew"
            .to_owned(),
    );
    text
}

/// Widths of those columns of the table whose words differ in length.
struct ColumnWidths {
    title: usize,
    reading: usize,
}

impl ColumnWidths {
    fn row(&self, mark: &str, [function, read_by, error, quiet, wrong]: [&str; 5]) -> String {
        let ColumnWidths { title, reading } = self;
        format!("{mark} {function:<title$}  {read_by:<reading$}  {error:<20} {quiet:<14} {wrong}")
            .trim_end()
            .to_owned()
    }
}

fn with_deviation(error: Option<MeanError>) -> String {
    let Some(MeanError { mean, deviation }) = error else {
        return "-".to_owned();
    };
    // Less than the last digit of a float is none.
    let deviation = if deviation < 1e-12 * mean {
        0.0
    } else {
        deviation
    };
    format!("{} +- {}", three_digits(mean), three_digits(deviation))
}

/// The least error, how far it is ahead, and what to write.
fn recommendation(lines: &[Line<'_>], release: &Release, label: &Label) -> Vec<String> {
    let Some((best, others)) = lines.split_first() else {
        return Vec::new();
    };
    let against = others
        .iter()
        .find(|other| !std::ptr::eq(other.contender, best.contender))
        .map(|next| {
            let apart = match is_ahead(judged_by(best), judged_by(next)) {
                true => "",
                false => ", which may be the noise alone",
            };
            format!(
                ", against {} of {}{apart}",
                three_digits(judged_by(next).mean),
                next.name()
            )
        });
    let least = three_digits(judged_by(best).mean);
    let against = against.unwrap_or_default();
    let mut text = vec![format!(
        "* is recommended: {}: its error is the least, {least}{against}",
        best.name()
    )];
    if let Some(fewest) = lines
        .iter()
        .min_by(|a, b| a.rank().wrong.total_cmp(&b.rank().wrong))
        && let (Some(least), Some(more)) = (fewest.measured.wrong, best.measured.wrong)
        && is_ahead(least, more)
    {
        text.push(format!(
            "where only the class matters, the fewest are wrong of {}",
            fewest.name()
        ));
    }
    match &best.contender.lines {
        Some(written) => {
            text.push(
                "to take it, write in [release], in place of its function, noise and size:"
                    .to_owned(),
            );
            text.extend(
                written
                    .lines()
                    .filter(|line| !line.is_empty())
                    .map(|line| format!("  {line}")),
            );
        }
        None => text.push("the file has it".to_owned()),
    }
    text.push(format!(
        "and read it by {}",
        best.reading.command(label, &domain(release))
    ));
    text
}

/// The error that a line is judged by.
fn judged_by(line: &Line<'_>) -> MeanError {
    line.measured
        .error
        .or(line.measured.wrong)
        .unwrap_or(MeanError {
            mean: f64::NAN,
            deviation: f64::NAN,
        })
}

/// Tells whether the least is less by more than their noise makes likely.
fn is_ahead(least: MeanError, more: MeanError) -> bool {
    let variance = least.deviation * least.deviation + more.deviation * more.deviation;
    more.mean - least.mean > 2.0 * variance.sqrt()
}
