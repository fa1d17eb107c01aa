//! `bernstream explain`: the expected error of a release, before any record is read. Everything here is public.

mod choices;
mod errors;
mod plan;
mod visibility;

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::budget_forecast::budget_in_words;
use crate::cli::cap::CapLoss;
use crate::cli::components::promise_mismatch;
use crate::cli::explain::choices::private_choices;
use crate::cli::explain::errors::{Accuracy, curve_scale};
use crate::cli::explain::plan::PublicQuantities;
use crate::cli::failure::Failure;
use crate::cli::figures::three_digits;
use crate::cli::left::RemainingBudget;
use crate::cli::print::{as_json, line, note, print, push_section, warning};
use crate::cli::progress::show_during;
use crate::cli::{candidates, comparison, settings};
use bernstream_config::{PrivacyUnit, ReleaseSettings, WorkerSettings, guarantee};
use bernstream_ledger::Ledger;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_synopsis::Basis;
use bernstream_synopsis::price::Price;

#[derive(Debug, clap::Args)]
pub struct ExplainArguments {
    /// The configuration.
    file: PathBuf,
    /// Tell sensitivity and noise in grid units as well, and what the noise is added to
    #[arg(long, conflicts_with = "compare")]
    verbose: bool,
    /// Tell what the cap on a user's records drops, if users with records in a window have so many of them on average: a public guess. The
    /// law is taken to be geometric, in which each next record is as likely as the one before
    #[arg(long, value_name = "MEAN", conflicts_with = "compare", value_parser = mean)]
    records_per_user: Option<f64>,
    /// Print all of it as JSON, and nothing else; docs/reference/commands.md says what the fields are
    #[arg(long, conflicts_with = "compare")]
    json: bool,
    #[command(flatten)]
    comparison: comparison::ComparisonArguments,
}

/// Everything that `--json` prints.
#[derive(Debug, Serialize)]
struct ExplainReport {
    pipeline: String,
    /// The most that a block may spend.
    total: Price,
    releases: Vec<ExplainedRelease>,
    /// Records that the cap on a user's records drops; empty without a guess at how many there are, and without users.
    cap: Vec<String>,
    /// Charges of the windows of a block, and how long it lasts.
    budget: Vec<String>,
    /// Absent without a ledger that can be used with this file.
    ledger: Option<RemainingBudget>,
    /// The reason why the ledger that is there cannot be used with this file.
    refused: Option<String>,
    guarantee: Vec<String>,
    notes: Vec<String>,
}

/// Everything that is told of one release.
#[derive(Debug, Serialize)]
struct ExplainedRelease {
    name: String,
    function: String,
    /// The most important, in sentences.
    in_short: Vec<String>,
    accuracy: Accuracy,
    /// Everything else, in sentences.
    sections: Vec<ExplainSection>,
    /// Sections that only `--verbose` tells in words.
    details: Vec<ExplainSection>,
}

fn mean(text: &str) -> Result<f64, String> {
    let mean: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (1.0..=1e9).contains(&mean) {
        Ok(mean)
    } else {
        Err("must be from 1 to 1e9".to_owned())
    }
}

/// Lines under a heading.
#[derive(Debug, Serialize)]
struct ExplainSection {
    heading: &'static str,
    lines: Vec<String>,
}

impl ExplainSection {
    fn new(heading: &'static str, lines: Vec<String>) -> Self {
        ExplainSection { heading, lines }
    }
}

/// Prints errors and prices, budget, guarantee and the rest; or the comparison with other functions.
///
/// # Errors
///
/// If the configuration has a fault, if nothing in it can be compared, or if standard output cannot be written.
pub fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let settings = settings::load_visibly(&arguments.file)?;
    if arguments.comparison.compare {
        return print(comparison::comparison_in_words(
            &settings,
            &arguments.comparison,
        )?);
    }
    let mut explained = show_during("simulating the noise", || explain_settings(&settings))?;
    if let Some(mean) = arguments.records_per_user {
        match &settings.privacy.unit {
            PrivacyUnit::Record => {
                note("--records-per-user tells nothing: every record is a unit, so there is no cap")
            }
            PrivacyUnit::User {
                max_records_per_window: None,
                ..
            } => note("--records-per-user tells nothing: counts by key have caps of their own"),
            PrivacyUnit::User {
                max_records_per_window: Some(cap),
                ..
            } => {
                let loss = CapLoss::of_mean(u64::from(*cap), mean);
                explained.cap = cap_in_words(loss, mean);
                if loss.is_much() {
                    warning(format_args!(
                        "the cap drops most of the records: {}",
                        loss.alternative_in_words()
                    ));
                }
            }
        }
    }
    match arguments.json {
        true => line(as_json(&explained)?),
        false => print(explained.in_words(arguments.verbose)),
    }
}

fn explain_settings(settings: &WorkerSettings) -> Result<ExplainReport, Failure> {
    Ok(ExplainReport {
        pipeline: settings.pipeline.clone(),
        total: settings.privacy.total,
        releases: settings
            .releases
            .iter()
            .map(|release| explain_release(settings, release))
            .collect::<Result<_, _>>()?,
        cap: Vec::new(),
        budget: budget_in_words(settings),
        ledger: RemainingBudget::of_ledger(settings),
        // A ledger that cannot be read is told by whoever opens it.
        refused: Ledger::newest_settings(&settings.ledger)
            .ok()
            .and_then(|recorded| promise_mismatch(settings, &recorded)),
        guarantee: guarantee::promise_lines(settings),
        notes: guarantee::surprising_settings(settings),
    })
}

/// The share of records that a cap drops of a geometric law.
fn cap_in_words(loss: CapLoss, mean: f64) -> Vec<String> {
    let dropped = format!(
        "max_records_per_window = {} drops {} % of the records, if users with records in a window have {} of them on average, and each \
         next one is as likely as the one before",
        loss.cap,
        three_digits(100.0 * loss.dropped),
        three_digits(mean)
    );
    vec![dropped, loss.alternative_in_words()]
}

/// Sentences on whether readers will see anything, for each release of which that can be told.
///
/// # Errors
///
/// If the noise of its price cannot be drawn.
pub fn visibility_verdicts(settings: &WorkerSettings) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for release in settings
        .releases
        .iter()
        .filter(|release| curve_scale(settings, release).is_some())
    {
        let name = settings::name_before(settings, release);
        let words =
            Accuracy::of_plan(&PublicQuantities::new(settings, release)?)?.visibility_in_words();
        lines.extend(words.into_iter().map(|line| format!("{name}{line}")));
    }
    Ok(lines)
}

fn explain_release(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
) -> Result<ExplainedRelease, Failure> {
    let plan = PublicQuantities::new(settings, release)?;
    let accuracy = Accuracy::of_plan(&plan)?;
    let mut sections = Vec::new();
    if let PricePolicy::Decaying { half_after, .. } = release.policy {
        let lines = accuracy.later_windows(&plan, half_after.get());
        sections.push(ExplainSection::new("Later windows", lines));
    }
    if let Some(table) = &release.auto {
        let lines = candidates::candidates_in_words(table, release);
        sections.push(ExplainSection::new("Choice of noise and size", lines));
        let lines = candidates::reading_advice(table, settings, release, &plan.band)?;
        sections.push(ExplainSection::new("Readings", lines));
    }
    sections.push(ExplainSection::new(
        "Private choices",
        private_choices(settings, release)?,
    ));
    sections.push(ExplainSection::new("Noise", plan.noise_in_words()?));
    if let Some(series) = &plan.series {
        sections.push(ExplainSection::new("Sums", plan.sums_in_words(series)));
    }
    let mut approximation = plan.approximation_in_words();
    if approximation.is_empty()
        && release.shape().basis == Basis::Bernstein
        && release.auto.is_none()
    {
        let unknown =
            "not predicted for this function: the errors above are due to the noise alone";
        approximation.push(unknown.to_owned());
    }
    sections.push(ExplainSection::new("Approximation", approximation));
    let mut details = vec![
        plan.released_form(),
        ExplainSection::new("Sensitivity", plan.sensitivity_in_words()),
        ExplainSection::new("Grid units", plan.noise_in_units()?),
    ];
    sections.retain(|section| !section.lines.is_empty());
    details.retain(|section| !section.lines.is_empty());
    Ok(ExplainedRelease {
        name: release.name.clone(),
        function: release.function.meaning.clone(),
        in_short: accuracy.in_short(&plan),
        accuracy,
        sections,
        details,
    })
}

impl ExplainReport {
    /// Everything in words, the most important first: errors, prices, budget.
    fn in_words(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        for release in &self.releases {
            let heading = self.heading_of("In short", release);
            push_section(&mut text, &heading, &release.in_short);
            let heading = self.heading_of("Price and error", release);
            push_section(&mut text, &heading, &release.accuracy.table());
        }
        if !self.cap.is_empty() {
            push_section(&mut text, "Cap", &self.cap);
        }
        push_section(&mut text, "Budget", &self.budget);
        if let Some(left) = &self.ledger {
            push_section(&mut text, "Left", &left.in_words());
        }
        if let Some(why) = &self.refused {
            push_section(&mut text, "Left", std::slice::from_ref(why));
        }
        push_section(&mut text, "Guarantee", &self.guarantee);
        for release in &self.releases {
            push_section(
                &mut text,
                &self.heading_of("Function", release),
                std::slice::from_ref(&release.function),
            );
            let details = release.details.iter().filter(|_| is_verbose);
            for ExplainSection { heading, lines } in release.sections.iter().chain(details) {
                push_section(&mut text, heading, lines);
            }
        }
        if !self.notes.is_empty() {
            push_section(&mut text, "Note", &self.notes);
        }
        text
    }

    /// A heading that names the release if there are several.
    fn heading_of(&self, heading: &str, release: &ExplainedRelease) -> String {
        match self.releases.len() {
            1 => heading.to_owned(),
            _ => format!("{heading} of {:?}", release.name),
        }
    }
}
