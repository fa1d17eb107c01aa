//! `bernstream explain --compare`: what other functions would tell at the same price, on public records.
//!
//! Every function is built, noised and read as a worker and its readers do, on records of a public law, or of a file that its owner
//! says is public; never on those of the stream.

mod reading;
mod table;
mod trial;
mod world;

use std::path::{Path, PathBuf};

use crate::cli::comparison::reading::{ComparedReading, LEAST};
use crate::cli::comparison::table::{ComparisonLine, best_of_each, recommendation, table_in_words};
use crate::cli::comparison::trial::{ComparedRelease, DRAWS, measure_contenders};
use crate::cli::comparison::world::{BENDS, ComparisonData, ComparisonRecord, read_public_rows};
use crate::cli::failure::Failure;
use crate::cli::print::push_section;
use crate::cli::progress::{show_during, show_progress};
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_release::window::RecordLabel;
use bernstream_synopsis::description::{AxisDescription, Method, TargetDescription};
use bernstream_synopsis::price::Price;

/// Most records of a window that is simulated.
const MOST_RECORDS: u64 = 100_000;

/// On what to compare.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ComparisonArguments {
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

/// Rows of a file that its owner says is public.
struct PublicSample<'p> {
    rows: Vec<ComparisonRecord>,
    path: &'p Path,
}

/// The tables of all releases.
///
/// # Errors
///
/// If no release can be compared, if the number of records is not known, or if the public file cannot be read.
pub fn comparison_in_words(
    settings: &WorkerSettings,
    arguments: &ComparisonArguments,
) -> Result<String, Failure> {
    let mut text = String::new();
    let mut refused = Vec::new();
    let mut compared = 0;
    for release in &settings.releases {
        let heading = format!("Comparison of {}", release.name);
        match settings.compared_label(release) {
            Ok(label) => {
                push_section(
                    &mut text,
                    &heading,
                    &compare_release(settings, release, label, arguments)?,
                );
                compared += 1;
            }
            Err(why) => {
                push_section(&mut text, &heading, &[why.to_string()]);
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

fn compare_release(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
    label: &RecordLabel,
    arguments: &ComparisonArguments,
) -> Result<Vec<String>, Failure> {
    let known = arguments.records.or_else(|| expected_records(release)).ok_or_else(|| {
        let name = &release.name;
        Failure::Configuration(format!(
            "release {name:?} does not say how many records a window has: add --records, a public guess"
        ))
    })?;
    let simulated = known.min(MOST_RECORDS);
    let public = match &arguments.public_sample {
        Some(path) => Some(PublicSample {
            rows: read_public_rows(path, settings, release, label)?,
            path,
        }),
        None => None,
    };
    let SelectedFunctions { contenders, absent } =
        show_during("selecting what is automatic", || {
            select_contenders(settings, release, label, known)
        })?;
    let worlds = show_during("drawing records", || {
        draw_worlds(release, label, public.as_ref(), simulated)
    });
    let found = show_progress("comparing windows", |done| {
        measure_contenders(&contenders, &worlds, done)
    })?;
    let mut lines = Vec::new();
    for (contender, found) in contenders.iter().zip(found) {
        for (reading, measured) in contender.readings.iter().zip(found) {
            lines.push(ComparisonLine {
                contender,
                reading,
                measured,
            });
        }
    }
    let lines = best_of_each(lines);
    let mut text = preface_in_words(release, label, known, simulated, public.as_ref());
    text.extend(table_in_words(&lines, label));
    for AbsentFunction { kind, why } in absent {
        text.push(format!("not in the table: {kind}: {why}"));
    }
    text.extend(recommendation(&lines, release, label));
    Ok(text)
}

/// One world for each width of the bends.
fn draw_worlds(
    release: &ReleaseSettings,
    label: &RecordLabel,
    public: Option<&PublicSample<'_>>,
    records: u64,
) -> Vec<ComparisonData> {
    (0..BENDS.len())
        .map(|number| match public {
            Some(public) => {
                ComparisonData::resample_rows(release, label, &public.rows, records, number)
            }
            None => ComparisonData::draw_from_law(release, label, records, number),
        })
        .collect()
}

/// The functions to compare, and those that cannot be released.
struct SelectedFunctions {
    /// The release of the file first.
    contenders: Vec<ComparedRelease>,
    absent: Vec<AbsentFunction>,
}

/// A kind of function that cannot be released, and why.
#[derive(PartialEq)]
struct AbsentFunction {
    kind: String,
    why: String,
}

/// The noise that was selected for an alternative, as lines of a file, which holds for all of its family.
struct SelectedNoise {
    family: String,
    lines: String,
}

fn select_contenders(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
    label: &RecordLabel,
    records: u64,
) -> Result<SelectedFunctions, Failure> {
    let shape = release.shape();
    let own = ComparedReading::of_own_release(
        &shape.basis,
        shape.value_count(),
        label,
        &release.narrowest_bandwidths(),
        &axes_of_release(release),
    );
    let mut contenders = vec![ComparedRelease::new(
        settings,
        release,
        format!("this file: {}", release.table_name()),
        None,
        own,
    )?];
    let mut absent: Vec<AbsentFunction> = Vec::new();
    // The search takes longer than all the rest: once a family is enough.
    let mut selected: Option<SelectedNoise> = None;
    for alternative in release.alternative_functions(label, records) {
        let noise = selected
            .as_ref()
            .filter(|noise| noise.family == alternative.family);
        let lines = alternative.file_lines(noise.map(|noise| noise.lines.as_str()));
        match settings.release_with_lines(release, &lines) {
            Ok(other) => {
                let shape = other.shape();
                let readings =
                    ComparedReading::of_release(&shape.basis, shape.value_count(), label);
                selected = other.noise_lines().map(|lines| SelectedNoise {
                    family: alternative.family,
                    lines,
                });
                contenders.push(ComparedRelease::new(
                    settings,
                    &other,
                    alternative.kind,
                    Some(lines),
                    readings,
                )?);
            }
            Err(faults) => absent.push(AbsentFunction {
                kind: alternative.kind,
                why: faults.reason(),
            }),
        }
    }
    absent.dedup();
    Ok(SelectedFunctions { contenders, absent })
}

/// Tells what the comparison rests on.
fn preface_in_words(
    release: &ReleaseSettings,
    label: &RecordLabel,
    records: u64,
    simulated: u64,
    public: Option<&PublicSample<'_>>,
) -> Vec<String> {
    let price = match release.payment.mechanism_price() {
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
        RecordLabel::Number(_) if public.is_none() => {
            "error: how far the expected label is off at a place where a record is, in the units of the label".to_owned()
        }
        RecordLabel::Number(_) => {
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
fn expected_records(release: &ReleaseSettings) -> Option<u64> {
    let most = match &release.function.about {
        TargetDescription::Regression(about) => max_records(&about.method),
        TargetDescription::Classifier(about) | TargetDescription::Probability(about) => {
            max_records(&about.method)
        }
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

fn axes_of_release(release: &ReleaseSettings) -> Vec<AxisDescription> {
    let axes = release.columns.iter().zip(&release.axes);
    axes.map(|(column, axis)| AxisDescription {
        column: column.clone(),
        min: axis.min,
        max: axis.max,
    })
    .collect()
}
