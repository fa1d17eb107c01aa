//! `bernstream check`: whether the configuration is valid, what it guarantees, and whether everything it needs is there.

mod online;

use std::path::PathBuf;

use serde::Serialize;

use self::online::{has_ledger, online_checks};
use crate::cli::failure::Failure;
use crate::cli::foreseen::foresee_refusal;
use crate::cli::left::RemainingBudget;
use crate::cli::print::{self, as_json, note, print_verdict, push_section};
use crate::cli::progress::show_during;
use crate::cli::resources::{self, windows_in_all};
use crate::cli::sampled::SampleLimits;
use crate::cli::{alone, explain, newest_schema, sampled, settings};
use bernstream_config::{
    InputParams, OutputParams, ReleaseSettings, WorkerSettings, guarantee, synopsis_bytes,
};
use bernstream_kafka::check::TopicCheck;
use bernstream_kafka::source::record::TopicFormat;
use bernstream_synopsis::clock::{Timestamp, format_duration};

#[derive(Debug, clap::Args)]
pub struct CheckArguments {
    /// The configuration.
    file: PathBuf,
    /// Do not contact any broker, and do not look for the input.
    #[arg(long)]
    offline: bool,
    /// Try this many messages of each partition (100 without a number), half of them the oldest and half the newest. What is printed counts
    /// messages and records as they are, without noise, and names keys: it is not for publication. Of files all records are tried
    #[arg(long, value_name = "MESSAGES", num_args = 0..=1, require_equals = true, default_missing_value = "100", conflicts_with = "offline")]
    sample: Option<u32>,
    /// How many percent of the records of the sample have to be of use
    #[arg(long, value_name = "PERCENT", default_value = "50", requires = "sample", value_parser = clap::value_parser!(u64).range(..=100))]
    least_share: u64,
    /// Print all of it as JSON, and nothing else; docs/reference/commands.md says what the fields are
    #[arg(long)]
    json: bool,
}

/// Words of the file, and findings; everything that `--json` prints.
#[derive(Debug, Serialize)]
struct CheckReport {
    pipeline: String,
    guarantee: Vec<String>,
    not_protected: Vec<String>,
    other_pipelines: Vec<String>,
    schedule: Vec<String>,
    /// Empty without `[scale]`.
    absorbers: Vec<String>,
    memory: Vec<String>,
    disk: Vec<String>,
    message: Vec<String>,
    /// Tells whether readers will see anything, of each density that says how many records it expects.
    visibility: Vec<String>,
    /// Absent without a ledger.
    ledger: Option<RemainingBudget>,
    notes: Vec<String>,
    warnings: Vec<String>,
    /// Input, output and witness; empty with `--offline`.
    checks: Vec<TopicCheck>,
    /// Everything that was not looked at, because of `--offline`.
    not_looked_at: Option<String>,
    /// The reason why `run` would not go on with the ledger, the witness and the output that are there.
    #[serde(serialize_with = "as_text")]
    refused: Option<Failure>,
}

fn as_text<S: serde::Serializer>(
    refused: &Option<Failure>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    refused
        .as_ref()
        .map(ToString::to_string)
        .serialize(serializer)
}

/// Prints every fault, or the guarantee, the schedule, the memory and the findings at the brokers.
///
/// # Errors
///
/// If the configuration has a fault, if a check at the brokers fails, or if `run` would refuse the ledger that is there.
pub fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let settings = settings::load_visibly(&arguments.file)?;
    let mut checked = show_during("computing what it needs, and simulating the noise", || {
        summarize(&settings)
    })?;
    if !arguments.json {
        print_verdict(checked.in_words())?;
        checked.warnings.iter().for_each(print::warning);
    }
    match arguments.offline {
        true => checked.not_looked_at = Some(things_unseen(&settings)),
        false => {
            checked.checks = show_during("looking at the input and the output", || {
                online_checks(&settings)
            })
        }
    }
    // Where no broker answers, this is told already.
    let is_answered = checked.checks.iter().any(|check| !check.is_unanswered);
    if let Some(most) = arguments.sample
        && is_answered
    {
        let trial = SampleLimits {
            most,
            least: arguments.least_share,
        };
        checked
            .checks
            .extend(sampled::sample_checks(&settings, trial));
    }
    if let Some(registry) = &settings.registry
        && !arguments.offline
    {
        checked.checks.push(show_during("asking the registry", || {
            newest_schema::newest_schema_check(registry)
        }));
    }
    let is_unseen = arguments.offline || is_told_already(&settings, &checked.checks);
    let foreseen = show_during("looking at the ledger and its witness", || {
        foresee_refusal(&settings, is_unseen)
    });
    checked.refused = foreseen
        .err()
        .map(|refused| Failure::from(refused).with_advice(&settings));
    if arguments.json {
        print_verdict(as_json(&checked)? + "\n")?;
    } else if let Some(unseen) = &checked.not_looked_at {
        note(format_args!(
            "not looked at, because of --offline: {unseen}"
        ));
    } else if !checked.checks.is_empty() {
        print_verdict(list_checks(checks_heading(&settings), &checked.checks))?;
    }
    let is_new = checked.checks.iter().any(|check| check.is_to_come);
    judge_checks(checked)?;
    if is_new && !arguments.json {
        note(
            "next: `bernstream ledger init` creates what is missing, and then `bernstream run` starts the worker",
        );
    }
    Ok(())
}

/// Tells whether there is no use in asking brokers for the ledger: of a new pipeline the first thing that is missing is told already, and so
/// is a broker that does not answer.
fn is_told_already(settings: &WorkerSettings, checks: &[TopicCheck]) -> bool {
    checks
        .iter()
        .any(|check| check.is_unanswered || (check.fault.is_some() && !has_ledger(settings)))
}

fn judge_checks(checked: CheckReport) -> Result<(), Failure> {
    // What `ledger init` is still to create is no failure.
    let wrong = checked
        .checks
        .iter()
        .filter(|check| check.fault.is_some() && !check.is_to_come)
        .count();
    let verdict = format!("{wrong} of {} checks failed", checked.checks.len());
    match checked.refused {
        Some(refused) => Err(refused),
        None if wrong == 0 => Ok(()),
        None if checked.checks.iter().any(|check| check.is_unanswered) => {
            Err(Failure::Unavailable(verdict))
        }
        None => Err(Failure::Configuration(verdict)),
    }
}

/// Guarantee, schedule, memory and message size in words.
fn summarize(settings: &WorkerSettings) -> Result<CheckReport, Failure> {
    let mut notes = guarantee::surprising_settings(settings);
    notes.extend(settings.releases.iter().filter_map(settings::kept_choice));
    Ok(CheckReport {
        pipeline: settings.pipeline.clone(),
        guarantee: guarantee::promise_lines(settings),
        not_protected: guarantee::not_protected(settings),
        other_pipelines: guarantee::other_pipelines(settings),
        schedule: schedule_in_words(settings),
        absorbers: alone::capacity_in_words(settings),
        memory: resources::memory_in_words(settings),
        disk: resources::disk_in_words(settings),
        message: settings
            .releases
            .iter()
            .map(|release| message_size(settings, release))
            .collect(),
        visibility: explain::visibility_verdicts(settings)?,
        ledger: RemainingBudget::of_ledger(settings),
        notes,
        warnings: settings.warnings(Timestamp::now()),
        checks: Vec::new(),
        not_looked_at: None,
        refused: None,
    })
}

impl CheckReport {
    fn in_words(&self) -> String {
        let mut text = String::new();
        push_section(&mut text, "Guarantee", &self.guarantee);
        push_section(&mut text, "Not protected", &self.not_protected);
        push_section(&mut text, "Other pipelines", &self.other_pipelines);
        push_section(&mut text, "Schedule", &self.schedule);
        if !self.absorbers.is_empty() {
            push_section(&mut text, "Absorbers", &self.absorbers);
        }
        push_section(&mut text, "Memory", &self.memory);
        push_section(&mut text, "Disk", &self.disk);
        push_section(&mut text, "Message", &self.message);
        if !self.visibility.is_empty() {
            push_section(&mut text, "Visibility", &self.visibility);
        }
        if let Some(left) = &self.ledger {
            push_section(&mut text, "Left", &left.in_words());
        }
        if !self.notes.is_empty() {
            push_section(&mut text, "Note", &self.notes);
        }
        text
    }
}

/// The largest message, in bytes, that a topic takes by default, about.
const DEFAULT_LIMIT: usize = 1_000_000;
const OF_A_LARGE_TABLE: &str = ", more than a topic takes by default: `bernstream ledger init` creates one that takes it, and a topic that exists needs such a \
                                max.message.bytes, which `bernstream check` asks for without --offline";

fn message_size(settings: &WorkerSettings, release: &ReleaseSettings) -> String {
    let name = settings::name_before(settings, release);
    let values = release.shape().value_count();
    let bytes = synopsis_bytes(&release.shape(), settings.columns.key.len());
    match release.function.keyed_counts() {
        Some(_) => {
            let is_large = bytes > DEFAULT_LIMIT && settings.output.broker().is_some();
            let combined = match settings.columns.key.as_slice() {
                several @ [_, _, ..] => format!(", combinations of {}", several.join(" and ")),
                _ => String::new(),
            };
            let keys = match settings.found_keys {
                Some(found) => format!(
                    "at most {} keys of at most {} bytes that are found",
                    found.most, found.longest
                ),
                None => format!("{} keys", settings.key_count()),
            };
            format!(
                "{name}{values} values x 8 bytes, the names of {keys}{combined}, each with 28 bytes, and about 6 KB of schema and metadata: about {bytes} bytes for each window{}",
                if is_large { OF_A_LARGE_TABLE } else { "" }
            )
        }
        None => format!(
            "{name}{values} values x 8 bytes and about 6 KB of schema and metadata: about {bytes} bytes for each window and key"
        ),
    }
}

fn schedule_in_words(settings: &WorkerSettings) -> Vec<String> {
    let rules = &settings.windows;
    let origin = rules.grid.origin();
    let until = if let (Some(end), Some(count)) = (rules.end, windows_in_all(settings)) {
        format!("to {end}: {count} windows")
    } else {
        "on, without end".to_owned()
    };
    let mut lines = vec![format!(
        "windows of {} from {origin} {until}",
        format_duration(rules.grid.length())
    )];
    match &settings.input {
        InputParams::Kafka(kafka) => {
            if let TopicFormat::Records { form, .. } = &kafka.format {
                let form = form.name();
                lines.push(format!(
                    "each message is one record in {form}; one that cannot be read is dropped by itself"
                ));
            }
            lines.push(format!(
                "a window takes records up to its cutoff, {} after its end, by the message timestamp",
                format_duration(rules.allowed_lateness)
            ));
            lines.push(format!(
                "a record's event time may be up to {} ahead of its message timestamp",
                format_duration(rules.max_future_skew)
            ));
            let slack = format_duration(kafka.clock_slack);
            lines.push(match kafka.trust_producer_time {
                true => format!("it closes {slack} after its cutoff, by the worker's clock"),
                false => format!(
                    "it closes {slack} after its cutoff, by the brokers' clock or the worker's, whichever is behind: the \
                     brokers' clocks and the lag of their replicas are assumed to differ by less, together"
                ),
            });
            lines.push(format!("it is published {} after its cutoff", format_duration(settings.publish_delay)));
        }
        InputParams::Files(_) => lines.push(
            "every window is open until the end of the input, and published when all input is read and the window has ended"
                .to_owned(),
        ),
    }
    let synopses = settings.synopses_of_window();
    lines.push(format!(
        "every window is published, empty or not, as {synopses} {}",
        if synopses == 1 {
            "synopsis"
        } else {
            "synopses"
        }
    ));
    lines
}

/// The heading of what was looked at.
fn checks_heading(settings: &WorkerSettings) -> &'static str {
    let input = settings.input.broker().is_some();
    let output = settings.output.broker().is_some();
    match (input, output) {
        (true, true) => "Brokers",
        (false, false) => "Files",
        _ => "Brokers and files",
    }
}

fn list_checks(heading: &str, checks: &[TopicCheck]) -> String {
    let mut text = format!("{heading}\n");
    for check in checks {
        let what = &check.what;
        text += &if let Some((why, remedy)) = &check.fault {
            match check.is_to_come {
                true => format!("  next   {what}: {why} yet\n         = {remedy}\n"),
                false => format!("  fault  {what}: {why}\n         = {remedy}\n"),
            }
        } else if let Some((why, remedy)) = &check.warning {
            format!("  warn   {what}: {why}\n         = {remedy}\n")
        } else {
            format!("  ok     {what}\n")
        };
    }
    text
}

/// Everything that [`online`] would look at.
fn things_unseen(settings: &WorkerSettings) -> String {
    let mut topics = Vec::new();
    let mut files = Vec::new();
    match &settings.input {
        InputParams::Kafka(kafka) => {
            topics.push(&kafka.topic);
            if let Some(registry) = &settings.registry {
                files.push(format!("the registry at {}", registry.url));
            }
        }
        InputParams::Files(params) => {
            files.push(format!(
                "whether the files at {} are there and have the columns",
                params.path.display()
            ));
        }
    }
    if let OutputParams::Kafka { sink, witness } = &settings.output {
        topics.extend([&sink.topic, &witness.topic]);
    }
    if let Some(budget) = &settings.privacy.budget {
        topics.push(&budget.topic);
    }
    if let Some(log) = &settings.ledger_log {
        topics.push(&log.records.topic);
        files.push(format!(
            "the key of the ledger log, {}",
            log.key_file.display()
        ));
    }
    if let Some(scale) = &settings.scale {
        topics.push(&scale.topic);
        files.push(format!(
            "the key of absorbers, {}",
            scale.key_file.display()
        ));
    }
    let mut unseen = files;
    for topic in topics {
        unseen.push(format!("the topic {topic}"));
    }
    unseen.join(", ")
}
