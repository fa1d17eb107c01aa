//! `bernstream explain --compare`: what other functions would tell at the same price, on public records.
//!
//! Every function is built, noised and read as a worker and its readers do, on records of a public law, or of a file that its owner
//! says is public; never on those of the stream.

mod reading;
mod trial;
mod world;

use std::path::{Path, PathBuf};

use crate::cli::comparison::reading::{LEAST, Reading};
use crate::cli::comparison::trial::{Contender, DRAWS, Measured, measured};
use crate::cli::comparison::world::{BENDS, Row, World, rows};
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
    of: &'c Contender,
    reading: &'c Reading,
    measured: Measured,
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
    let path = arguments.public_sample.as_deref();
    let public = path
        .map(|path| rows(path, settings, release, label))
        .transpose()?;
    let selecting = || contenders(settings, release, label, known);
    let (contenders, absent) = during("selecting what is automatic", selecting)?;
    let world = |number| match &public {
        Some(rows) => World::resampled(release, label, rows, simulated, number),
        None => World::drawn(release, label, simulated, number),
    };
    let worlds: Vec<World> = during("drawing records", || (0..BENDS.len()).map(world).collect());
    let all = (contenders.len() * worlds.len()) as u64;
    let found = counting("comparing windows", |done| {
        measured(&contenders, &worlds, |count| done.set(count as u64, all))
    })?;
    let lines = contenders.iter().zip(found).flat_map(|(of, found)| {
        of.readings
            .iter()
            .zip(found)
            .map(move |(reading, measured)| Line {
                of,
                reading,
                measured,
            })
    });
    let lines = best_of_each(lines);
    let mut text = preface(
        release,
        label,
        (known, simulated),
        public.as_deref().zip(path),
    );
    text.extend(table(&lines, label));
    text.extend(
        absent
            .into_iter()
            .map(|(kind, why)| format!("not in the table: {kind}: {why}")),
    );
    text.extend(recommendation(&lines, release, label));
    Ok(text)
}

/// A kind of function that cannot be released, and why.
type Absent = (String, String);

/// The release of the file first.
fn contenders(
    settings: &Settings,
    release: &Release,
    label: &Label,
    records: u64,
) -> Result<(Vec<Contender>, Vec<Absent>), Failure> {
    let shape = release.shape();
    let own = Reading::of_own(
        &shape.basis,
        shape.values(),
        label,
        &release.narrowest(),
        &domain(release),
    );
    let mut found = vec![Contender::new(
        settings,
        release,
        format!("this file: {}", release.kind()),
        None,
        own,
    )?];
    let mut absent: Vec<Absent> = Vec::new();
    // The search takes longer than all the rest: once a family is enough.
    let mut chosen: Option<(String, String)> = None;
    for alternative in release.alternatives(label, records) {
        let same = chosen
            .as_ref()
            .filter(|(family, _)| *family == alternative.family);
        let lines = alternative.lines(same.map(|(_, noise)| noise.as_str()));
        match settings.with_lines(release, &lines) {
            Ok(other) => {
                let shape = other.shape();
                let readings = Reading::of(&shape.basis, shape.values(), label);
                chosen = other.noise_lines().map(|noise| (alternative.family, noise));
                found.push(Contender::new(
                    settings,
                    &other,
                    alternative.kind,
                    Some(lines),
                    readings,
                )?);
            }
            Err(faults) => absent.push((alternative.kind, faults.reason())),
        }
    }
    absent.dedup();
    Ok((found, absent))
}

/// What the comparison rests on.
fn preface(
    release: &Release,
    label: &Label,
    (records, simulated): (u64, u64),
    public: Option<(&[Row], &Path)>,
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
        Some((rows, path)) => format!(
            "on {} public rows of {}, whatever their time and key: windows are drawn from one half of them, and judged by the other",
            rows.len(),
            path.display()
        ),
        None => format!(
            "on records of public laws, none of the stream: half of the places in a cluster and half anywhere, and curves with bends \
             as wide as {bends} of an axis; your records may follow another law: --public-sample takes a file that is public"
        ),
    });
    lines.push(match (label, public) {
        (Label::Number(_), None) => {
            "error: how far the expected label is off at a place where a record is, in the units of the label".to_owned()
        }
        (Label::Number(_), Some(_)) => {
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
    let of = |method: &Method| match method {
        Method::PriestleyChao { max_records, .. }
        | Method::KernelMachine { max_records, .. }
        | Method::Logistic { max_records, .. } => Some(u64::from(*max_records)),
        Method::KernelBayes { .. } | Method::GaussianBayes { .. } => None,
    };
    let most = match &release.function.about {
        Target::Regression(about) => of(&about.method),
        Target::Classifier(about) | Target::Probability(about) => of(&about.method),
        _ => None,
    };
    release.expected_records.or(most)
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

/// Of what differs in a free number and in its reading alone the best; of the file's own release every reading.
fn best_of_each<'c>(lines: impl Iterator<Item = Line<'c>>) -> Vec<Line<'c>> {
    let mut best: Vec<Line<'c>> = Vec::new();
    for line in lines {
        let same =
            |other: &&mut Line<'_>| line.of.lines.is_some() && other.of.title == line.of.title;
        match best.iter_mut().find(same) {
            Some(other) if line.rank() < other.rank() => *other = line,
            Some(_) => {}
            None => best.push(line),
        }
    }
    best.sort_by(|a, b| {
        let (error, wrong) = a.rank();
        let (more, other) = b.rank();
        error.total_cmp(&more).then(wrong.total_cmp(&other))
    });
    best
}

impl Line<'_> {
    /// The error; what tells classes alone comes after all that tell a probability.
    fn rank(&self) -> (f64, f64) {
        let of = |figure: Option<(f64, f64)>| figure.map_or(f64::INFINITY, |(mean, _)| mean);
        (of(self.measured.error), of(self.measured.wrong))
    }

    fn name(&self) -> String {
        format!("{}, by {}", self.of.title, self.reading.name())
    }
}

fn table(lines: &[Line<'_>], label: &Label) -> Vec<String> {
    let shown = |figure: Option<(f64, f64)>| {
        figure.map_or("-".to_owned(), |(mean, deviation)| {
            // Less than the last digit of a float is none.
            let deviation = if deviation < 1e-12 * mean {
                0.0
            } else {
                deviation
            };
            format!("{} +- {}", three_digits(mean), three_digits(deviation))
        })
    };
    let has_classes = !matches!(label, Label::Number(_));
    let wide = |pick: fn(&Line<'_>) -> usize, least: usize| {
        lines.iter().map(pick).max().unwrap_or(0).max(least)
    };
    let title = wide(|line| line.of.title.len(), 8);
    let reading = wide(|line| line.reading.name().len(), 7);
    let row = |mark: &str, [a, b, c, d, e]: [&str; 5]| {
        format!("{mark} {a:<title$}  {b:<reading$}  {c:<20} {d:<14} {e}")
            .trim_end()
            .to_owned()
    };
    let wrong = if has_classes { "wrong" } else { "" };
    let mut text = vec![row(
        " ",
        ["function", "read by", "error", "without noise", wrong],
    )];
    for (at, line) in lines.iter().enumerate() {
        let Measured {
            error,
            wrong,
            without_noise,
        } = &line.measured;
        let mark = if at == 0 { "*" } else { " " };
        let quiet = without_noise.map_or("-".to_owned(), three_digits);
        let wrong = if has_classes {
            shown(*wrong)
        } else {
            String::new()
        };
        text.push(row(
            mark,
            [
                &line.of.title,
                &line.reading.name(),
                &shown(*error),
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

/// The least error, how far it is ahead, and what to write.
fn recommendation(lines: &[Line<'_>], release: &Release, label: &Label) -> Vec<String> {
    let Some((best, others)) = lines.split_first() else {
        return Vec::new();
    };
    let against = others
        .iter()
        .find(|other| !std::ptr::eq(other.of, best.of))
        .map(|next| {
            let apart = match is_ahead(figure(best), figure(next)) {
                true => "",
                false => ", which may be the noise alone",
            };
            format!(
                ", against {} of {}{apart}",
                three_digits(figure(next).0),
                next.name()
            )
        });
    let least = three_digits(figure(best).0);
    let against = against.unwrap_or_default();
    let mut text = vec![format!(
        "* is recommended: {}: its error is the least, {least}{against}",
        best.name()
    )];
    let wrong = |line: &Line<'_>| line.measured.wrong.map_or(f64::INFINITY, |(mean, _)| mean);
    if let Some(fewest) = lines.iter().min_by(|a, b| wrong(a).total_cmp(&wrong(b)))
        && let (Some(least), Some(more)) = (fewest.measured.wrong, best.measured.wrong)
        && is_ahead(least, more)
    {
        text.push(format!(
            "where only the class matters, the fewest are wrong of {}",
            fewest.name()
        ));
    }
    match &best.of.lines {
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

/// What a line is judged by.
fn figure(line: &Line<'_>) -> (f64, f64) {
    line.measured
        .error
        .or(line.measured.wrong)
        .unwrap_or((f64::NAN, f64::NAN))
}

/// Whether the least is less by more than their noise makes likely.
fn is_ahead((least, one): (f64, f64), (more, other): (f64, f64)) -> bool {
    more - least > 2.0 * (one * one + other * other).sqrt()
}
