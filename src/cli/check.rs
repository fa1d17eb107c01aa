//! `bernstream check`: whether the configuration is valid, what it guarantees, and whether everything it needs is there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::cli::components::input_id;
use crate::cli::failure::Failure;
use crate::cli::foreseen::foresee;
use crate::cli::left::RemainingBudget;
use crate::cli::print::{self, as_json, note, report, section};
use crate::cli::progress::during;
use crate::cli::resources::{self, windows_in_all};
use crate::cli::sampled::Trial;
use crate::cli::shares::{self, ShareRequest};
use crate::cli::{alone, explain, newest_schema, older_stamps, sampled, settings};
use bernstream_config::{Input, Output, Release, Settings, guarantee, synopsis_bytes};
use bernstream_kafka::check::{Check, Needed, check_topic, setting};
use bernstream_kafka::ledger::log;
use bernstream_kafka::right::Right;
use bernstream_kafka::source;
use bernstream_kafka::source::files::Files;
use bernstream_kafka::source::folder;
use bernstream_kafka::source::record::Format;
use bernstream_kafka::topic::Topic;
use bernstream_kafka::{broker_clock, ordered, replica_lag};
use bernstream_ledger as ledger;
use bernstream_ledger::log::Key;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

#[derive(Debug, clap::Args)]
pub struct Arguments {
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

/// What the file says, and what was found; what `--json` prints.
#[derive(Debug, Serialize)]
struct Checked {
    pipeline: String,
    guarantee: Vec<String>,
    not_protected: Vec<String>,
    other_pipelines: Vec<String>,
    schedule: Vec<String>,
    /// Empty without [scale].
    absorbers: Vec<String>,
    memory: Vec<String>,
    disk: Vec<String>,
    message: Vec<String>,
    /// Whether readers will see anything, of each density that says how many records it expects.
    visibility: Vec<String>,
    /// Absent without a ledger.
    ledger: Option<RemainingBudget>,
    notes: Vec<String>,
    warnings: Vec<String>,
    /// Input, output and witness; empty with `--offline`.
    checks: Vec<Check>,
    /// What was not looked at, because of `--offline`.
    not_looked_at: Option<String>,
    /// Why `run` would not go on with the ledger, the witness and the output that are there.
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
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = during(
        "reading the configuration, and selecting what is automatic",
        || settings::load(&arguments.file),
    )?;
    let mut checked = during("computing what it needs, and simulating the noise", || {
        summary(&settings)
    })?;
    if !arguments.json {
        report(checked.in_words())?;
        checked.warnings.iter().for_each(print::warning);
    }
    match arguments.offline {
        true => checked.not_looked_at = Some(unseen(&settings)),
        false => checked.checks = during("checking the brokers", || online(&settings)),
    }
    // Where no broker answers, this is told already.
    if let (Some(most), false) = (
        arguments.sample,
        checked.checks.iter().all(|check| check.is_unanswered),
    ) {
        let trial = Trial {
            most,
            least: arguments.least_share,
        };
        checked.checks.extend(sampled::checks(&settings, trial));
    }
    if let (Some(registry), false) = (&settings.registry, arguments.offline) {
        checked.checks.push(during("asking the registry", || {
            newest_schema::check(registry)
        }));
    }
    // Of a new pipeline the first thing that is missing is told already, and so is a broker that does not answer.
    let is_told =
        |check: &Check| check.is_unanswered || (check.fault.is_some() && !has_ledger(&settings));
    let is_unseen = arguments.offline || checked.checks.iter().any(is_told);
    let foreseen = during("looking at the ledger and its witness", || {
        foresee(&settings, is_unseen)
    });
    checked.refused = foreseen
        .err()
        .map(|refused| Failure::from(refused).advised(&settings));
    if arguments.json {
        report(as_json(&checked)? + "\n")?;
    } else if let Some(unseen) = &checked.not_looked_at {
        note(format_args!(
            "not looked at, because of --offline: {unseen}"
        ));
    } else if !checked.checks.is_empty() {
        report(list(&checked.checks))?;
    }
    let is_new = checked.checks.iter().any(|check| check.is_to_come);
    verdict(checked)?;
    if is_new && !arguments.json {
        note(
            "next: `bernstream ledger init` creates what is missing, and then `bernstream run` starts the worker",
        );
    }
    Ok(())
}

fn verdict(checked: Checked) -> Result<(), Failure> {
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
fn summary(settings: &Settings) -> Result<Checked, Failure> {
    let mut notes = guarantee::notes(settings);
    notes.extend(settings.releases.iter().filter_map(settings::kept));
    Ok(Checked {
        pipeline: settings.pipeline.clone(),
        guarantee: guarantee::promise(settings),
        not_protected: guarantee::not_protected(settings),
        other_pipelines: guarantee::others(settings),
        schedule: schedule(settings),
        absorbers: alone::in_words(settings),
        memory: resources::memory(settings),
        disk: resources::disk(settings),
        message: settings
            .releases
            .iter()
            .map(|release| message(settings, release))
            .collect(),
        visibility: explain::verdicts(settings)?,
        ledger: RemainingBudget::of(settings),
        notes,
        warnings: settings.warnings(Timestamp::now()),
        checks: Vec::new(),
        not_looked_at: None,
        refused: None,
    })
}

impl Checked {
    fn in_words(&self) -> String {
        let mut text = String::new();
        section(&mut text, "Guarantee", &self.guarantee);
        section(&mut text, "Not protected", &self.not_protected);
        section(&mut text, "Other pipelines", &self.other_pipelines);
        section(&mut text, "Schedule", &self.schedule);
        if !self.absorbers.is_empty() {
            section(&mut text, "Absorbers", &self.absorbers);
        }
        section(&mut text, "Memory", &self.memory);
        section(&mut text, "Disk", &self.disk);
        section(&mut text, "Message", &self.message);
        if !self.visibility.is_empty() {
            section(&mut text, "Visibility", &self.visibility);
        }
        if let Some(left) = &self.ledger {
            section(&mut text, "Left", &left.in_words());
        }
        if !self.notes.is_empty() {
            section(&mut text, "Note", &self.notes);
        }
        text
    }
}

fn message(settings: &Settings, release: &Release) -> String {
    let name = if settings.releases.len() > 1 {
        format!("{}: ", release.name)
    } else {
        String::new()
    };
    format!(
        "{name}{} values x 8 bytes and about 6 KB of schema and metadata: about {} bytes for each window and key",
        release.shape().values(),
        synopsis_bytes(&release.shape())
    )
}

fn schedule(settings: &Settings) -> Vec<String> {
    let rules = &settings.windows;
    let span = bernstream_synopsis::clock::show;
    let origin = rules.grid.origin();
    let until = match (rules.end, windows_in_all(settings)) {
        (Some(end), Some(count)) => format!("to {end}: {count} windows"),
        _ => "on, without end".to_owned(),
    };
    let mut lines = vec![format!(
        "windows of {} from {origin} {until}",
        span(rules.grid.length())
    )];
    match &settings.input {
        Input::Kafka(kafka) => {
            if let Format::Records { form, .. } = &kafka.format {
                let form = form.name();
                lines.push(format!(
                    "each message is one record in {form}; one that cannot be read is dropped by itself"
                ));
            }
            lines.push(format!(
                "a window takes records up to its cutoff, {} after its end, by the message timestamp",
                span(rules.allowed_lateness)
            ));
            lines.push(format!(
                "a record's event time may be up to {} ahead of its message timestamp",
                span(rules.max_future_skew)
            ));
            let slack = span(kafka.clock_slack);
            lines.push(match kafka.trust_producer_time {
                true => format!("it closes {slack} after its cutoff, by the worker's clock"),
                false => format!(
                    "it closes {slack} after its cutoff, by the brokers' clock or the worker's, whichever is behind: the \
                     brokers' clocks and the lag of their replicas are assumed to differ by less, together"
                ),
            });
            lines.push(format!("it is published {} after its cutoff", span(settings.publish_delay)));
        }
        Input::Files(_) => lines.push(
            "every window is open until the end of the input, and published when all input is read and the window has ended"
                .to_owned(),
        ),
    }
    let groups = settings.groups() * settings.releases.len();
    lines.push(format!(
        "every window is published, empty or not, as {groups} {}",
        if groups == 1 { "synopsis" } else { "synopses" }
    ));
    lines
}

fn list(checks: &[Check]) -> String {
    let mut text = String::from("Brokers\n");
    for check in checks {
        // Writing to a string cannot fail.
        let _ = match (&check.fault, &check.warning) {
            (None, None) => writeln!(text, "  ok     {}", check.what),
            (None, Some((why, remedy))) => {
                writeln!(text, "  warn   {}: {why}\n         = {remedy}", check.what)
            }
            (Some((why, remedy)), _) if check.is_to_come => {
                writeln!(
                    text,
                    "  next   {}: {why} yet\n         = {remedy}",
                    check.what
                )
            }
            (Some((why, remedy)), _) => {
                writeln!(text, "  fault  {}: {why}\n         = {remedy}", check.what)
            }
        };
    }
    text
}

/// What [`online`] would look at.
fn unseen(settings: &Settings) -> String {
    let mut topics = Vec::new();
    let mut files = Vec::new();
    match &settings.input {
        Input::Kafka(kafka) => {
            topics.push(&kafka.topic);
            files.extend(
                settings
                    .registry
                    .as_ref()
                    .map(|registry| format!("the registry at {}", registry.url)),
            );
        }
        Input::Files(params) => {
            files.push(format!(
                "whether the files at {} are there and have the columns",
                params.path.display()
            ));
        }
    }
    if let Output::Kafka { sink, witness } = &settings.output {
        topics.extend([&sink.topic, &witness.topic]);
    }
    topics.extend(settings.privacy.budget.iter().map(|budget| &budget.topic));
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
    let topics = topics.into_iter().map(|topic| format!("the topic {topic}"));
    files
        .into_iter()
        .chain(topics)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Checks the input, the output, the witness, and what the ledger has beside it.
fn online(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Input::Files(params) = &settings.input {
        let what = format!("files at {}", params.path.display());
        let found = Files::open(params, settings.columns.clone());
        let why = found
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        let is_unanswered = matches!(found, Err(source::Error::Disk { .. }));
        let remedy = match is_unanswered {
            true => "look after the disk, or wait for it",
            false => "correct `files` or the names of the columns",
        };
        checks.push(Check {
            is_unanswered,
            ..Check::new(what, found.is_ok(), why, remedy)
        });
        checks.extend(found.iter().flat_map(files_checks));
    }
    if let Input::Kafka(kafka) = &settings.input {
        let make = "create it with message.timestamp.type=LogAppendTime, as `bernstream produce --create` does";
        let input = Needed {
            broker: &kafka.broker,
            name: &kafka.topic,
            rights: &[Right::Read],
            wishes: &[],
            origin: make,
            replicas: 1,
        };
        let answers = check_topic(&mut checks, input, |topic| {
            let of_topic = input_checks(kafka, topic);
            let may_look = topic.rights.contains(&Right::Read)
                && of_topic.iter().all(|check| check.fault.is_none());
            let of_messages = if may_look {
                older_stamps::checks(settings, kafka)
            } else {
                None
            };
            of_topic.into_iter().chain(of_messages).collect()
        });
        // Wait only once for a broker that is down.
        if !answers && settings.output.broker() == Some(&kafka.broker) {
            return checks;
        }
        if answers && !kafka.broker.is_mock {
            checks.push(lag_check(
                kafka,
                replica_lag::longest(&kafka.broker, &kafka.topic)
                    .ok()
                    .flatten(),
            ));
        }
        if answers && !kafka.trust_producer_time {
            let origin = "`bernstream ledger init` creates it, and a worker that may";
            let before = checks.len();
            let clock = Needed {
                broker: &kafka.broker,
                name: &kafka.clock,
                rights: &[Right::Write],
                wishes: &[],
                origin,
                replicas: 1,
            };
            check_topic(&mut checks, clock, |topic| {
                clock_checks(&kafka.clock, topic)
            });
            created_by_init(settings, &mut checks, before);
        }
    }
    if let (Some(scale), Input::Kafka(kafka)) = (&settings.scale, &settings.input) {
        checks.extend(alone::checks(scale, kafka));
    }
    let bytes = settings
        .releases
        .iter()
        .map(|release| synopsis_bytes(&release.shape()))
        .max()
        .unwrap_or(0);
    let before = checks.len();
    checks.extend(settings.output.checks(bytes));
    created_by_init(settings, &mut checks, before);
    if let Some(budget) = settings.budget_topic() {
        let (before, origin) = (
            checks.len(),
            "`bernstream budget init` creates it, before the first pipeline of the input is started",
        );
        check_topic(&mut checks, budget.needed(origin), |topic| {
            ordered::checks(&budget, topic)
        });
        // What the topic lacks is told already.
        if checks
            .iter()
            .skip(before)
            .all(|check| check.fault.is_none())
        {
            checks.push(share_check(settings, &budget.topic));
        }
    }
    if let Some(log::Params { records, key_file }) = &settings.ledger_log {
        checks.push(key_check(key_file));
        let before = checks.len();
        let origin = match has_ledger(settings) {
            true => "`bernstream ledger log init` creates it",
            false => "`bernstream ledger init` creates it",
        };
        let wishes = &[(Right::Delete, "what nobody needs any more stays there")];
        let needed = Needed {
            wishes,
            ..records.needed(origin)
        };
        check_topic(&mut checks, needed, |topic| ordered::checks(records, topic));
        created_by_init(settings, &mut checks, before);
    }
    checks
}

/// Whether there is a ledger. That a disk does not say is told by who looks at the ledger.
fn has_ledger(settings: &Settings) -> bool {
    ledger::exists(&settings.ledger).unwrap_or(true)
}

/// The files of a folder that are passed over, although somebody may think that they are read.
fn files_checks(files: &Files) -> Vec<Check> {
    let unread = files.unread().map(|(path, why)| {
        let remedy = "give the file the column; until then it counts as null in all of its records";
        Check::new(
            format!("the columns of {}", path.display()),
            false,
            why.to_string(),
            remedy,
        )
    });
    let mut checks: Vec<Check> = unread.collect();
    if files.passed_over().len() > 0 {
        checks.push(Check::passed(format!(
            "passed over in the folder: {}",
            folder::shown(files.passed_over())
        )));
    }
    if files.empty().next().is_some() {
        checks.push(Check::passed(format!(
            "empty, so without records: {}",
            folder::shown(files.empty())
        )));
    }
    checks
}

/// What `ledger init` creates is not missing before it was run.
fn created_by_init(settings: &Settings, checks: &mut [Check], from: usize) {
    let is_to_come = !has_ledger(settings);
    checks
        .iter_mut()
        .skip(from)
        .for_each(|check| check.is_to_come = is_to_come && check.is_absent);
}

/// Whether the key of the ledger log can be used.
fn key_check(path: &Path) -> Check {
    let why = match Key::load(path) {
        Ok(_) => None,
        Err(bernstream_ledger::log::Error::KeyFile { why, .. }) => Some(why),
        Err(error) => Some(error.to_string()),
    };
    Check::new(
        format!("{} is a key of the ledger log", path.display()),
        why.is_none(),
        format!("it {}", why.unwrap_or_default()),
        "put the key there with which the log was written; a new log gets a new one (`head -c 32 /dev/urandom`), the same for all workers",
    )
}

/// Whether the pipeline holds the share that it asks for, or could take it.
fn share_check(settings: &Settings, name: &str) -> Check {
    let asked = || -> Result<(), Failure> {
        let (owner, was_claimed) = match settings.output.open_witness() {
            Ok(mut witness) => (witness.identity()?, witness.read()?.is_some()),
            Err(error) if error.is_missing() => (String::new(), false),
            Err(error) => return Err(error.into()),
        };
        let first = settings
            .blocks
            .first_from(Timestamp::now())
            .map_or(Span::ALL.start, |block| block.start);
        let beginner = ShareRequest {
            owner: &owner,
            was_claimed,
            first,
            may_wait: true,
        };
        Ok(shares::foresee(settings, &input_id(settings)?, &beginner)?)
    };
    let why = asked().err().map(|failure| failure.to_string());
    let what = format!("{name} has a share for this pipeline");
    Check::new(
        what,
        why.is_none(),
        why.unwrap_or_default(),
        "`bernstream budget show` says who holds what",
    )
}

fn input_checks(kafka: &source::kafka::Params, topic: &Topic) -> Vec<Check> {
    let name = &kafka.topic;
    let kind = setting(topic, "message.timestamp.type");
    if kafka.trust_producer_time {
        return vec![Check::passed(format!(
            "{name} has {kind}, producers are trusted"
        ))];
    }
    vec![Check::new(
        format!("{name} has LogAppendTime"),
        kind == "LogAppendTime",
        format!("message.timestamp.type is {kind}"),
        "set it to LogAppendTime before records are written, or trust_producer_time = true",
    )]
}

/// Whether a record can turn up after its window has closed, because a replica may lag by `lag`.
fn lag_check(kafka: &source::kafka::Params, lag: Option<Duration>) -> Check {
    let setting = replica_lag::SETTING;
    let slack = bernstream_synopsis::clock::show(kafka.clock_slack);
    let Some(lag) = lag else {
        return Check::passed(format!(
            "the brokers do not tell {setting}; clock_slack, {slack}, must be longer"
        ));
    };
    let longest = bernstream_synopsis::clock::show(lag);
    Check::new(
        format!("input.kafka.clock_slack is longer than {setting} of the brokers, {longest}"),
        kafka.clock_slack > lag,
        format!(
            "it is {slack}: a record that is stamped before a cutoff can turn up when its window has closed, and is lost"
        ),
        format!(
            "raise clock_slack above {longest} (and windows.publish_delay above it), or lower {setting}"
        ),
    )
}

fn clock_checks(name: &str, topic: &Topic) -> Vec<Check> {
    let is = |(key, value): (&str, &str)| {
        let found = setting(topic, key);
        let what = format!("{name} has {key} = {value}");
        let why = format!("it is {found}");
        Check::new(
            what,
            found == value,
            why,
            format!("set {key}={value}, or name another topic as input.kafka.clock"),
        )
    };
    broker_clock::SETTINGS.map(is).to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn settings(text: &str) -> Settings {
        Settings::parse(text, "test").unwrap()
    }

    const FLIGHTS: &str = include_str!("../../tests/data/lattice.toml");

    fn topic(partitions: usize, settings: &[(&str, &str)]) -> Topic {
        Topic {
            id: String::new(),
            partitions: (0..).take(partitions).collect(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            rights: Right::ALL.into(),
        }
    }

    fn faults(checks: &[Check]) -> usize {
        checks.iter().filter(|check| check.fault.is_some()).count()
    }

    #[test]
    fn the_slack_must_be_longer_than_a_replica_may_lag() {
        let settings = settings(FLIGHTS);
        let Input::Kafka(kafka) = settings.input else {
            panic!()
        };
        assert_eq!(kafka.clock_slack, Duration::from_secs(10));
        for (millis, expected) in [(9_999, 0), (10_000, 1), (30_000, 1)] {
            assert_eq!(
                faults(&[lag_check(&kafka, Some(Duration::from_millis(millis)))]),
                expected,
                "{millis}"
            );
        }
        assert_eq!(faults(&[lag_check(&kafka, None)]), 0);
    }

    #[test]
    fn the_input_must_have_the_brokers_time_unless_producers_are_trusted() {
        let settings = settings(FLIGHTS);
        let Input::Kafka(mut kafka) = settings.input else {
            panic!()
        };
        let [create, append] = ["CreateTime", "LogAppendTime"]
            .map(|kind| topic(1, &[("message.timestamp.type", kind)]));
        assert_eq!(faults(&input_checks(&kafka, &append)), 0);
        assert_eq!(faults(&input_checks(&kafka, &create)), 1);
        kafka.trust_producer_time = true;
        assert_eq!(faults(&input_checks(&kafka, &create)), 0);
    }
}
